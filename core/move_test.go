package core_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/memlane"
)

// mover is a runtime with tasks of each outcome, on a fresh lane.
type mover struct {
	*core.Runtime

	t *testing.T
}

var (
	moveGood = runlane.NewTask("move.good", &runlane.TaskOptions[string]{
		IdempotencyKey: func(s string) string { return s }, IdempotencyTTL: 24 * time.Hour,
	})
	moveBad  = runlane.NewTask("move.bad", &runlane.TaskOptions[string]{KeepLogs: true})
	moveSlow = runlane.NewTask("move.slow", &runlane.TaskOptions[string]{
		Queue: runlane.Queue{Name: "one", Concurrency: 1}, SingletonKey: func(s string) string { return s },
	})
	moveLong = runlane.NewTask("move.long", &runlane.TaskOptions[string]{
		Retry: runlane.Retry{MaxAttempts: 400, Backoff: runlane.Fixed(time.Second), NoJitter: true},
	})
)

func newMover(t *testing.T, l *lane.Lane) *mover {
	t.Helper()
	rt := openQuiet(t, l, core.Options{
		Handlers: []runlane.Handler{
			moveGood.Handle(func(_ context.Context, a *runlane.Attempt, s string) error { return a.SetOutput("done " + s) }),
			moveBad.Handle(func(_ context.Context, a *runlane.Attempt, _ string) error {
				a.Logger().Error("bad")
				return runlane.Permanent(errors.New("bad"))
			}),
			moveSlow.Handle(func(context.Context, *runlane.Attempt, string) error { return nil }),
			moveLong.Handle(func(_ context.Context, a *runlane.Attempt, s string) error {
				switch {
				case a.Number < 60:
					return errors.New("again")
				case s == "waits" && a.Run.Counters.Releases == 0:
					return runlane.Release(time.Hour, "later")
				}
				return nil
			}),
		},
		Schedules: []runlane.Schedule{{ID: "daily", When: runlane.Cron("0 8 * * *"), Call: moveGood.With("daily")}},
	})
	return &mover{Runtime: rt, t: t}
}

func (m *mover) trigger(call runlane.Call, options *runlane.TriggerOptions) runlane.RunID {
	m.t.Helper()
	made, err := m.Trigger(m.t.Context(), call, options)
	if err != nil {
		m.t.Fatal(err)
	}
	return made.Run.ID
}

func (m *mover) drain() {
	m.t.Helper()
	if err := m.Work(m.t.Context(), &core.WorkOptions{Drain: true}); err != nil {
		m.t.Fatal(err)
	}
}

// keep records a step of a run.
func (m *mover) keep(id runlane.RunID, name, result string) {
	m.t.Helper()
	run, err := m.Runs().Get(m.t.Context(), id)
	if err == nil {
		_, err = m.Lane().Storage.KeepRecord(m.t.Context(), &lane.KeepCommand{
			RunKey:    lane.RunKey{Environment: run.Environment, RunID: id},
			CreatedAt: run.CreatedAt,
			Record: lane.StepRecord{
				Name: name, Kind: runlane.StepKindStep, Attempt: 1, StartedAt: run.CreatedAt, At: run.CreatedAt, Type: "int", Result: []byte(result),
			},
		})
	}
	if err != nil {
		m.t.Fatal(err)
	}
}

// histories are those of all runs, with the runs.
func (m *mover) histories() map[runlane.RunID]string {
	m.t.Helper()
	all := map[runlane.RunID]string{}
	for summary, err := range m.Runs().All(m.t.Context(), nil) {
		if err != nil {
			m.t.Fatal(err)
		}
		run, err := m.Runs().Get(m.t.Context(), summary.ID)
		if err != nil {
			m.t.Fatal(err)
		}
		text, err := json.Marshal(run)
		if err != nil {
			m.t.Fatal(err)
		}
		for record, err := range m.Runs().Events(m.t.Context(), summary.ID, nil) {
			if err != nil {
				m.t.Fatal(err)
			}
			line, err := json.Marshal(record)
			if err != nil {
				m.t.Fatal(err)
			}
			text = append(append(text, '\n'), line...)
		}
		for _, line := range linesOf(m.t, m.Runtime, run.ID, nil) {
			text = append(text, "\nlogged "+line...)
		}
		records, err := m.Lane().Storage.ListRecords(m.t.Context(), &lane.RecordQuery{
			PageQuery: lane.PageQuery{Environment: run.Environment}, RunID: run.ID, CreatedAt: run.CreatedAt,
		})
		if err != nil {
			m.t.Fatal(err)
		}
		for _, record := range records.Items {
			text = fmt.Appendf(text, "\n%+v", record)
		}
		all[summary.ID] = string(text)
	}
	return all
}

// reservation are the fields of a slot that is reserved.
var reservation = regexp.MustCompile(`,"(dispatchedAt|dispatchExpiresAt)":"[^"]*"`)

// moved are the histories as another lane has them: runs that wait have left their slots behind.
func (m *mover) moved() map[runlane.RunID]string {
	all := m.histories()
	for id, text := range all {
		if strings.Contains(text, `"status":"queued"`) {
			all[id] = reservation.ReplaceAllString(text, "")
		}
	}
	return all
}

// sound wants every invariant of the storage held.
func (m *mover) sound() {
	m.t.Helper()
	page, err := m.Lane().Storage.Check(m.t.Context(), &lane.PageQuery{Environment: m.Environment(), Limit: runlane.MaxPageLimit})
	if err != nil || len(page.Items) > 0 {
		m.t.Errorf("violations: %+v, %v", page, err)
	}
}

// filled has runs of every kind that no attempt executes.
func filled(t *testing.T) *mover {
	t.Helper()
	m := newMover(t, memlane.New())
	m.trigger(moveGood.With("kept"), nil)
	m.trigger(moveBad.With("x"), nil)
	reset := m.trigger(moveGood.With("reset"), nil)
	m.trigger(moveSlow.With("ended"), nil)
	m.drain()
	tick(t, m)
	run := runOf(t, m, reset)
	key := lane.OwnerKey{Environment: run.Environment, TaskID: run.TaskID, Key: run.IdempotencyKey}
	if err := m.Lane().Storage.ResetIdempotencyKey(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	m.keep(reset, "of a run that ended", `{"a":1}`)
	queued := m.trigger(moveGood.With("queued"), nil)
	m.keep(queued, "first", "1")
	m.keep(queued, "second", "\x01\x01kbytes of a codec")
	m.trigger(moveBad.With("later"), &runlane.TriggerOptions{Delay: time.Hour})
	m.trigger(moveSlow.With("first"), nil)
	m.trigger(moveSlow.With("second"), nil)
	return m
}

func (m *mover) export() []byte {
	m.t.Helper()
	var b bytes.Buffer
	moved, err := m.Export(m.t.Context(), &b, nil)
	if err != nil {
		m.t.Fatal(err)
	}
	if moved.Runs != len(m.histories()) {
		m.t.Errorf("%+v", moved)
	}
	return b.Bytes()
}

func TestMove_EverythingIsThere_AndGoesOn(t *testing.T) {
	t.Parallel()
	from, to := filled(t), newMover(t, memlane.New())
	file := from.export()
	moved, err := to.Import(t.Context(), bytes.NewReader(file))
	if err != nil || moved.Written != moved.Runs || moved.Runs != 8 || moved.Tasks != 4 {
		t.Fatalf("%+v, %v", moved, err)
	}
	if diff := cmp.Diff(from.moved(), to.histories()); diff != "" {
		t.Error(diff)
	}
	to.sound()
	if again, err := to.Import(t.Context(), bytes.NewReader(file)); err != nil || again.Written != 0 {
		t.Errorf("a second import: %+v, %v", again, err)
	}
	for payload, owned := range map[string]bool{"kept": true, "reset": false, "queued": true} {
		made, err := to.Trigger(t.Context(), moveGood.With(payload), nil)
		if err != nil || (made.Outcome == runlane.TriggerReturnedExisting) != owned || made.PayloadDiffers {
			t.Errorf("%s: %+v, %v", payload, made, err)
		}
	}
	tick(t, to)
	to.drain()
	active := 0
	for run, err := range to.Runs().All(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		if run.Status.Active() {
			active++
		}
	}
	if active != 1 { // the one that is due in an hour
		t.Errorf("%d runs are active", active)
	}
	to.sound()
}

// A history that is longer than a commit is written in parts, and an import that ends between two of them is repeated. The run that waits goes
// on from there.
func TestMove_LongHistories_AreWrittenInParts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		from := newMover(t, memlane.New())
		ended, waits := from.trigger(moveLong.With("ends"), nil), from.trigger(moveLong.With("waits"), nil)
		from.drain()
		for id, status := range map[runlane.RunID]runlane.Status{ended: runlane.StatusSucceeded, waits: runlane.StatusReleased} {
			run, err := from.Runs().Get(t.Context(), id)
			if err != nil || run.Status != status || run.EventSequence <= lane.MaxCommitEvents {
				t.Fatalf("%s has %d events and is %s, want %s: %v", id, run.EventSequence, run.Status, status, err)
			}
		}
		file, all := from.export(), 1<<30
		for writes := 0; writes < all; writes++ {
			l := memlane.New()
			broken := &breaking{Storage: l.Storage, left: writes}
			l.Storage = broken
			to := newMover(t, l)
			_, err := to.Import(t.Context(), bytes.NewReader(file))
			if err == nil {
				all = writes
			}
			broken.left = 1 << 30
			if _, err := to.Import(t.Context(), bytes.NewReader(file)); err != nil {
				t.Fatalf("after %d writes: %v", writes, err)
			}
			if diff := cmp.Diff(from.moved(), to.histories()); diff != "" {
				t.Errorf("after %d writes: %s", writes, diff)
			}
			to.sound()
			time.Sleep(time.Hour)
			tick(t, to)
			to.drain()
			if run, err := to.Runs().Get(t.Context(), waits); err != nil || run.Status != runlane.StatusSucceeded || run.Counters.Attempts != 61 {
				t.Errorf("after %d writes: %v, %v", writes, run, err)
			}
		}
		if all < 4 {
			t.Errorf("the two histories were written in %d parts", all)
		}
	})
}

// A file that is not whole writes nothing.
func TestImport_FilesThatAreNotWhole_AreRefused(t *testing.T) {
	t.Parallel()
	file := string(filled(t).export())
	lines := strings.SplitAfter(file, "\n")
	for name, text := range map[string]string{
		"empty":               "",
		"no last line":        strings.Join(lines[:len(lines)-2], ""),
		"cut in a line":       file[:len(file)/2],
		"a line is missing":   lines[0] + strings.Join(lines[2:], ""),
		"a byte is changed":   strings.Replace(file, "move.good", "move.goof", 1),
		"a line more":         file + lines[1],
		"no head":             strings.Join(lines[1:], ""),
		"two heads":           lines[0] + file,
		"another format":      strings.Replace(file, `"v":1`, `"v":2`, 1),
		"another kind":        lines[0] + "{}\n" + strings.Join(lines[1:], ""),
		"another environment": strings.Replace(file, `"environment":"default"`, `"environment":"other"`, 1),
	} {
		to := newMover(t, memlane.New())
		if _, err := to.Import(t.Context(), strings.NewReader(text)); !errors.Is(err, runlane.ErrValidationFailed) {
			t.Errorf("%s: %v", name, err)
		}
		if runs := to.histories(); len(runs) > 0 {
			t.Errorf("%s: %d runs were written", name, len(runs))
		}
	}
}

// An import that ends in the middle is repeated, wherever it ended.
func TestImport_Interrupted_IsRepeated(t *testing.T) {
	t.Parallel()
	from := filled(t)
	file := from.export()
	for writes := 1; ; writes++ {
		l := memlane.New()
		broken := &breaking{Storage: l.Storage, left: writes}
		l.Storage = broken
		to := newMover(t, l)
		_, err := to.Import(t.Context(), bytes.NewReader(file))
		if err == nil {
			break
		}
		broken.left = 1 << 30
		if _, err := to.Import(t.Context(), bytes.NewReader(file)); err != nil {
			t.Fatalf("after %d writes: %v", writes, err)
		}
		if diff := cmp.Diff(from.moved(), to.histories()); diff != "" {
			t.Errorf("after %d writes: %s", writes, diff)
		}
		to.sound()
	}
}

// breaking fails after so many writes of events.
type breaking struct {
	lane.Storage

	left int
}

func (b *breaking) Unwrap() lane.Storage { return b.Storage }

func (b *breaking) AppendRunEvents(ctx context.Context, c *lane.AppendCommand) (*lane.Commit, error) {
	if b.left--; b.left < 0 {
		return nil, fmt.Errorf("broken")
	}
	return b.Storage.AppendRunEvents(ctx, c)
}

// A run that is there goes on, and no attempt begins before it remembers what it did.
func TestImport_RecordsAreThereBeforeTheRunIsDue(t *testing.T) {
	t.Parallel()
	from := newMover(t, memlane.New())
	id := from.trigger(moveGood.With("x"), nil)
	from.keep(id, "charge", "1")
	file := from.export()
	l := memlane.New()
	watched := &recordWatch{Storage: l.Storage}
	l.Storage = watched
	to := newMover(t, l)
	if _, err := to.Import(t.Context(), bytes.NewReader(file)); err != nil {
		t.Fatal(err)
	}
	if watched.statuses != "scheduled " {
		t.Errorf("the run was %q when it got its record", watched.statuses)
	}
	to.keepsAnother(t, file, id)
}

// recordWatch notes in which status runs get records.
type recordWatch struct {
	lane.Storage

	statuses string
}

func (w *recordWatch) Unwrap() lane.Storage { return w.Storage }

func (w *recordWatch) KeepRecord(ctx context.Context, c *lane.KeepCommand) (*lane.StepRecord, error) {
	run, err := w.GetRun(ctx, c.RunKey)
	if err != nil {
		return nil, err
	}
	w.statuses += string(run.Status) + " "
	return w.Storage.KeepRecord(ctx, c)
}

// keepsAnother refuses a file whose record differs from the one that is there, and one whose record cannot be kept.
func (m *mover) keepsAnother(t *testing.T, file []byte, id runlane.RunID) {
	t.Helper()
	from := newMover(t, memlane.New())
	if _, err := from.Import(t.Context(), bytes.NewReader(file)); err != nil {
		t.Fatal(err)
	}
	from.keep(id, "mail", "2")
	m.keep(id, "mail", "3")
	if _, err := m.Import(t.Context(), bytes.NewReader(from.export())); !errors.Is(err, runlane.ErrStorageConflict) {
		t.Errorf("a record that differs: %v", err)
	}
}

// What is no whole file is refused, and changes nothing.
func FuzzImport(f *testing.F) {
	f.Add([]byte(`{"export":{"v":1,"environment":"default","at":"2026-03-01T12:00:00Z"}}` + "\n" +
		`{"end":{"runs":0,"schedules":0,"tasks":0,"sha256":""}}` + "\n"))
	f.Add([]byte(`{"run":{"runId":"a","events":[{"type":"run.created","data":{}}]}}`))
	f.Add([]byte(`{"export":{"v":2,"environment":"default","at":"2026-03-01T12:00:00Z"}}` + "\n" +
		`{"flow":{"flowId":"a","createdAt":"2026-03-01T12:00:00Z","plan":{"nodes":[{"name":"b","task":"c","after":[0]}]}}}` + "\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		to := newMover(t, memlane.New())
		_, err := to.Import(t.Context(), bytes.NewReader(text))
		if err != nil && runlane.CodeOf(err) != runlane.ErrValidationFailed {
			t.Errorf("%v", err)
		}
		if err != nil && len(to.histories()) > 0 {
			t.Error("something was written")
		}
	})
}
