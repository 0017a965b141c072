package sqlitelane_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/lanetest"
	"github.com/runlane/runlane-go/sqlitelane"
)

var update = flag.Bool("update", false, "record the file of the current format again: only while no release has it")

// recorded is a file of format 1, and what it says. A file that belongs to a release never changes again
// (docs/compatibility.md).
const recorded = "testdata/format1"

// told is everything that a file says.
type told struct {
	Runs        []*runlane.Run
	Payloads    map[runlane.RunID][2]string // payload and output, byte by byte
	Events      map[runlane.RunID][]runlane.EventRecord
	Deliveries  map[runlane.RunID]*lane.OutboxMessage
	Holders     []runlane.RunID
	DeadLetters []runlane.DeadLetter
	Schedules   []runlane.ScheduleRecord
	Occurrences []runlane.Occurrence
	Tasks       []lane.TaskRecord
	Notes       map[runlane.RunID]runlane.Progress
	Records     map[runlane.RunID][]lane.StepRecord
	Keys        map[string]runlane.RunID
	Waiting     int // wakeups
	Schema      []string
}

func tell(t *testing.T, s *sqlitelane.Storage, w *sqlitelane.Transport) *told {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	ctx, page := t.Context(), lane.PageQuery{Environment: deedsEnvironment, Limit: runlane.MaxPageLimit}
	out := &told{
		Payloads: map[runlane.RunID][2]string{}, Events: map[runlane.RunID][]runlane.EventRecord{},
		Deliveries: map[runlane.RunID]*lane.OutboxMessage{}, Notes: map[runlane.RunID]runlane.Progress{}, Records: map[runlane.RunID][]lane.StepRecord{}, Keys: map[string]runlane.RunID{},
	}
	runs, err := s.ListRuns(ctx, &lane.RunQuery{PageQuery: page})
	must(err)
	var ids []runlane.RunID
	for _, r := range runs.Items {
		ids = append(ids, r.ID)
	}
	slices.Sort(ids)
	for _, id := range ids {
		key := lane.RunKey{Environment: deedsEnvironment, RunID: id}
		i, err := s.InspectRun(ctx, &lane.InspectQuery{RunKey: key, Queue: runlane.Queue{Name: "bounded", Concurrency: 1}})
		must(err)
		out.Payloads[id] = [2]string{string(i.Run.Payload), string(i.Run.Output)}
		i.Run.Payload, i.Run.Output = nil, nil
		out.Runs, out.Deliveries[id], out.Holders = append(out.Runs, i.Run), i.Delivery, append(out.Holders, i.Holders...)
		events, err := s.ListRunEvents(ctx, &lane.EventQuery{PageQuery: page, RunID: id})
		must(err)
		out.Events[id] = events.Items
		out.Notes[id], err = s.GetProgress(ctx, key)
		must(err)
		records, err := s.ListRecords(ctx, &lane.RecordQuery{PageQuery: page, RunID: id, CreatedAt: i.Run.CreatedAt})
		must(err)
		if len(records.Items) > 0 {
			out.Records[id] = records.Items
		}
		for _, name := range []string{i.Run.IdempotencyKey, i.Run.SingletonKey} {
			owner := lane.OwnerKey{Environment: deedsEnvironment, TaskID: i.Run.TaskID, Key: name}
			if run, err := s.GetRunBySingletonKey(ctx, owner); err == nil {
				out.Keys["singleton "+name] = run.ID
			}
			if run, err := s.GetRunByIdempotencyKey(ctx, owner); err == nil {
				out.Keys["idempotency "+name] = run.ID
			}
		}
	}
	dead, err := s.ListDeadLetters(ctx, &lane.DeadLetterQuery{PageQuery: page})
	must(err)
	out.DeadLetters = dead.Items
	schedules, err := s.ListSchedules(ctx, &page)
	must(err)
	out.Schedules = schedules.Items
	tasks, err := s.ListTasks(ctx, &page)
	must(err)
	out.Tasks = tasks.Items
	for _, r := range out.Schedules {
		occurrences, err := s.ListScheduleOccurrences(ctx, &lane.OccurrenceQuery{PageQuery: page, ScheduleID: r.ID})
		must(err)
		out.Occurrences = append(out.Occurrences, occurrences.Items...)
	}
	out.Waiting, _, err = w.Depth(ctx, "wakeups")
	must(err)
	out.Schema, err = s.Schema()
	must(err)
	return out
}

// everyState fills a file: runs in every status, with everything that a run can have.
func everyState(t *testing.T, s *sqlitelane.Storage) {
	t.Helper()
	d := &deeds{t: t, s: s, w: deedsTransport(s), f: lanetest.NewFactory(deedsEnvironment), ack: func(string) {}}
	for _, name := range []string{"life", "retry", "bounded", "outbox", "schedule", "wakeup"} {
		for n := range 3 {
			if err := kinds[name](d, n); err != nil {
				t.Fatal(name, err)
			}
		}
	}
	created := func(o lanetest.RunOptions) *runlane.Run {
		t.Helper()
		o.Retention = runlane.KeyRetention{TTL: 100 * 365 * 24 * time.Hour}
		commit, err := d.create(o)
		if err != nil {
			t.Fatal(err)
		}
		return commit.Run
	}
	claim := func(run *runlane.Run) *runlane.Run {
		t.Helper()
		run, err := d.claim(run)
		if err != nil {
			t.Fatal(err)
		}
		return run
	}
	then := func(run *runlane.Run, body runlane.EventBody) {
		t.Helper()
		if _, err := d.append(run, body); err != nil {
			t.Fatal(err)
		}
	}
	far := time.Now().Add(1000 * time.Hour)
	created(lanetest.RunOptions{RunAt: far, Meta: map[string]string{"a": "b"}, TraceCarrier: map[string]string{"traceparent": "00"}})
	running := claim(created(lanetest.RunOptions{SingletonKey: "running", IdempotencyKey: "running", Payload: bytes.Repeat([]byte("{}"), 600)}))
	note := runlane.Progress{Attempt: 1, Note: "half way", At: noon}
	if err := s.PutProgress(t.Context(), lane.RunKey{Environment: deedsEnvironment, RunID: running.ID}, running.Lease.Token, note); err != nil {
		t.Fatal(err)
	}
	for i, result := range []string{`{"id":"ch_1"}`, `"` + strings.Repeat("page ", 1000) + `"`, ""} {
		if _, err := s.KeepRecord(t.Context(), &lane.KeepCommand{
			RunKey: lane.RunKey{Environment: deedsEnvironment, RunID: running.ID}, CreatedAt: running.CreatedAt,
			Record: lane.StepRecord{
				Name: fmt.Sprint("step ", i), Kind: runlane.StepKindStep, Attempt: 1, StartedAt: noon, At: noon.Add(time.Second), Type: "shop.Receipt",
				Result: []byte(result),
			},
		}); err != nil {
			t.Fatal(err)
		}
	}
	asked := claim(created(lanetest.RunOptions{Source: runlane.Source{Type: runlane.SourceRerun, RunID: "run_0"}}))
	then(asked, &runlane.RunCancellationRequested{Reason: "why not"})
	waiting := claim(created(lanetest.RunOptions{}))
	then(waiting, lanetest.Retried(waiting, far))
	released := claim(created(lanetest.RunOptions{Source: runlane.Source{Type: runlane.SourceSchedule, ScheduleID: "nightly", FireTime: noon}}))
	then(released, lanetest.Released(released, far))
	ended := claim(created(lanetest.RunOptions{IdempotencyKey: "ended", Payload: noise(5000)}))
	then(ended, lanetest.Succeeded(ended, noise(3000)))
	created(lanetest.RunOptions{Queue: "bounded", ConcurrencyKey: "waits", Concurrency: 1})
	reserved := created(lanetest.RunOptions{Queue: "bounded", ConcurrencyKey: "has", Concurrency: 1})
	if got, err := s.ReserveRunDispatch(t.Context(), d.f.Reserve(t, reserved, time.Now(), far, 1)); err != nil || got.Outcome != lane.Acquired {
		t.Fatal(got, err)
	}
	dead, err := d.create(lanetest.RunOptions{Outbox: lane.InitialOutbox{ClaimUntil: far}})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.MarkOutboxMessagesDeadLettered(t.Context(), &lane.MarkDeadLetteredCommand{
		Environment: deedsEnvironment, At: noon, Messages: []lane.OutboxFailure{{
			OutboxRef: dead.Outbox[0].OutboxRef, Attempts: 8, Failure: runlane.NewFailure("gone", "it is", map[string]string{"a": "b"}),
		}},
	}); err != nil {
		t.Fatal(err)
	}
	task := runlane.NewTask[struct{}]("nightly.report", nil).Definition()
	if err := s.PutTask(t.Context(), &lane.PutTaskCommand{Environment: deedsEnvironment, Record: task.Record(noon)}); err != nil {
		t.Fatal(err)
	}
}

func record(t *testing.T) {
	t.Helper()
	path := newPath(t)
	s := sqlitelane.NewStorage(path, 0)
	s.SetClock(noon)
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	everyState(t, s)
	said, err := json.MarshalIndent(tell(t, s, deedsTransport(s)), "", " ")
	if err = errors.Join(err, s.Close(context.Background())); err != nil {
		t.Fatal(err)
	}
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, err = z.Write([]byte(content(t, path)))
	err = errors.Join(err, z.Close(), os.MkdirAll(filepath.Dir(recorded), 0o750),
		os.WriteFile(recorded+".db.gz", packed.Bytes(), 0o600), os.WriteFile(recorded+".json", append(said, '\n'), 0o600))
	if err != nil {
		t.Fatal(err)
	}
}

// replay is the recorded file, unpacked.
func replay(t *testing.T) (path string) {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader([]byte(content(t, recorded+".db.gz"))))
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(z)
	path = newPath(t)
	if err = errors.Join(err, os.WriteFile(path, b, 0o600)); err != nil {
		t.Fatal(err)
	}
	return path
}

// docs/compatibility.md: everything that a released version stored is read by every later one, and goes on.
func TestFormat_ARecordedFileSaysTheSameForEver(t *testing.T) {
	t.Parallel()
	if *update {
		record(t)
	}
	s := started(t, replay(t), 0)
	s.SetClock(noon) // by which keys are retained and occurrences kept
	w := deedsTransport(s)
	got, err := json.MarshalIndent(tell(t, s, w), "", " ")
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(content(t, recorded+".json"), string(got)+"\n"); d != "" {
		t.Errorf("the file of format 1 says something else (-recorded +today):\n%s", d)
	}
	page, err := s.Check(t.Context(), &lane.PageQuery{Environment: deedsEnvironment, Limit: runlane.MaxPageLimit})
	if err != nil || len(page.Items) > 0 {
		t.Fatal(page, err)
	}
	statuses := map[runlane.Status]bool{}
	runs, err := s.ListRuns(t.Context(), &lane.RunQuery{PageQuery: lane.PageQuery{Environment: deedsEnvironment, Limit: 500}})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range runs.Items {
		statuses[r.Status] = true
	}
	for _, status := range runlane.Statuses() {
		if !statuses[status] {
			t.Errorf("the recording has no run that is %s", status)
		}
	}
	// It goes on: what waits in it can be brought to its end.
	d := &deeds{t: t, s: s, w: w, f: lanetest.NewFactory(deedsEnvironment), ack: func(string) {}, prefix: "later-"}
	for name, deed := range kinds {
		if err := deed(d, 1); err != nil {
			t.Error(name, err)
		}
	}
	for _, r := range runs.Items {
		if !r.Status.Active() || r.Status == runlane.StatusRunning || r.Queue == "bounded" {
			continue
		}
		run, err := s.GetRun(t.Context(), lane.RunKey{Environment: deedsEnvironment, RunID: r.ID})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := d.append(run, &runlane.RunCancelled{Reason: "over"}); err != nil {
			t.Error(r.Status, err)
		}
	}
}

// The tables are part of the format: a new file has those of the recorded one, until the format's number is raised.
func TestFormat_ANewFileHasTheRecordedTables(t *testing.T) {
	t.Parallel()
	var want told
	if err := json.Unmarshal([]byte(content(t, recorded+".json")), &want); err != nil {
		t.Fatal(err)
	}
	got, err := started(t, newPath(t), 0).Schema()
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want.Schema, got); d != "" {
		t.Errorf("the tables are others: raise the format, and read both (-recorded +today):\n%s", d)
	}
	if len(got) < 15 {
		t.Error(fmt.Sprint(len(got)), "tables and indexes")
	}
}
