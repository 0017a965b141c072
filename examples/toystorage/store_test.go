package toystorage

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/lanetest"
	"github.com/runlane/runlane-go/memlane"
)

const env runlane.Environment = "toy"

var noon = time.Date(2026, time.March, 4, 12, 0, 0, 0, time.UTC)

// mustAppend commits a command that the toy has to accept.
func mustAppend(t *testing.T, s *Storage, c *lane.AppendCommand) *runlane.Run {
	t.Helper()
	commit, err := s.AppendRunEvents(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return commit.Run
}

// inTheirOrder makes runs of every kind that the list tells apart and returns them as it has to show them.
func inTheirOrder(t *testing.T, s *Storage) []*runlane.Run {
	t.Helper()
	f := lanetest.NewFactory(env)
	running := func(leaseEnd time.Time) *runlane.Run {
		run := mustAppend(t, s, f.Creation(t, noon, lanetest.RunOptions{NoDelivery: true}))
		return mustAppend(t, s, f.Append(t, run, noon, lanetest.Claimed(f.NewToken(), leaseEnd), &runlane.RunStarted{Attempt: 1}))
	}
	finished := func(at time.Time) *runlane.Run {
		run := running(noon.Add(time.Hour))
		return mustAppend(t, s, f.Append(t, run, at, lanetest.Succeeded(run, nil)))
	}
	oldest, newest := finished(noon.Add(time.Minute)), finished(noon.Add(2*time.Minute))
	scheduled := mustAppend(t, s, f.Creation(t, noon, lanetest.RunOptions{RunAt: noon.Add(3 * time.Hour), Queue: "special"}))
	asked := running(noon.Add(2 * time.Hour))
	asked = mustAppend(t, s, f.Append(t, asked, noon, &runlane.RunCancellationRequested{}))
	leased := running(noon.Add(time.Hour))
	queued := mustAppend(t, s, f.Creation(t, noon, lanetest.RunOptions{}))
	return []*runlane.Run{queued, leased, asked, scheduled, newest, oldest}
}

// The suite's cases for lists of runs need leases. The rules hold for a storage without them too.
func TestListRuns_ActiveByUrgencyThenNewestFinished(t *testing.T) {
	t.Parallel()
	s := New()
	want := inTheirOrder(t, s)
	for limit := 1; limit <= len(want)+1; limit++ {
		var got []runlane.RunID
		q := &lane.RunQuery{PageQuery: lane.PageQuery{Environment: env, Limit: limit}}
		for pages := 0; pages == 0 || q.After != ""; pages++ {
			page, err := s.ListRuns(t.Context(), q)
			if err != nil || pages > len(want) {
				t.Fatalf("limit %d, page %d: %v", limit, pages, err)
			}
			for _, summary := range page.Items {
				got = append(got, summary.ID)
			}
			q.After = page.Next
		}
		if d := cmp.Diff(ids(want), got); d != "" {
			t.Errorf("limit %d (-want +got):\n%s", limit, d)
		}
	}
}

func ids(runs []*runlane.Run) []runlane.RunID {
	var all []runlane.RunID
	for _, run := range runs {
		all = append(all, run.ID)
	}
	return all
}

func TestListRuns_Filters(t *testing.T) {
	t.Parallel()
	s := New()
	all := inTheirOrder(t, s)
	for name, c := range map[string]struct {
		query lane.RunQuery
		want  []*runlane.Run
	}{
		"nothing":     {lane.RunQuery{TaskID: lanetest.TaskID}, all},
		"statuses":    {lane.RunQuery{Statuses: []runlane.Status{runlane.StatusSucceeded, runlane.StatusQueued}}, []*runlane.Run{all[0], all[4], all[5]}},
		"queue":       {lane.RunQuery{Queue: "special"}, all[3:4]},
		"task":        {lane.RunQuery{TaskID: "another"}, nil},
		"schedule":    {lane.RunQuery{ScheduleID: "nightly"}, nil},
		"source":      {lane.RunQuery{SourceRunID: all[0].ID}, nil},
		"environment": {lane.RunQuery{PageQuery: lane.PageQuery{Environment: "elsewhere"}}, nil},
	} {
		if c.query.Environment == "" {
			c.query.Environment = env
		}
		page, err := s.ListRuns(t.Context(), &c.query)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if d := cmp.Diff(len(c.want), len(page.Items)); d != "" {
			t.Fatalf("%s: items (-want +got):\n%s", name, d)
		}
		for i, summary := range page.Items {
			if d := cmp.Diff(c.want[i].Summary(), summary); d != "" {
				t.Errorf("%s (-want +got):\n%s", name, d)
			}
		}
	}
}

func TestLists_RefuseForeignCursorsAndLimits(t *testing.T) {
	t.Parallel()
	s := New()
	run := inTheirOrder(t, s)[1]
	one := lane.PageQuery{Environment: env, Limit: 1}
	runs, err := s.ListRuns(t.Context(), &lane.RunQuery{PageQuery: one})
	if err != nil || runs.Next == "" {
		t.Fatal(runs, err)
	}
	events, err := s.ListRunEvents(t.Context(), &lane.EventQuery{PageQuery: one, RunID: run.ID})
	if err != nil || events.Next == "" {
		t.Fatal(events, err)
	}
	after := func(cursor runlane.Cursor) lane.PageQuery {
		return lane.PageQuery{Environment: env, Limit: 1, After: cursor}
	}
	listRuns := func(q lane.RunQuery) error { _, err := s.ListRuns(t.Context(), &q); return err }
	listEvents := func(q lane.EventQuery) error { _, err := s.ListRunEvents(t.Context(), &q); return err }
	for name, err := range map[string]error{
		"another filter":       listRuns(lane.RunQuery{PageQuery: after(runs.Next), Queue: "special"}),
		"another list":         listRuns(lane.RunQuery{PageQuery: after(events.Next)}),
		"another environment":  listRuns(lane.RunQuery{PageQuery: lane.PageQuery{Environment: "elsewhere", After: runs.Next}}),
		"never a cursor":       listRuns(lane.RunQuery{PageQuery: after("no cursor")}),
		"limit too high":       listRuns(lane.RunQuery{PageQuery: lane.PageQuery{Environment: env, Limit: runlane.MaxPageLimit + 1}}),
		"another run":          listEvents(lane.EventQuery{PageQuery: after(events.Next), RunID: "run_other"}),
		"another direction":    listEvents(lane.EventQuery{PageQuery: after(events.Next), RunID: run.ID, Descending: true}),
		"a cursor cut short":   listEvents(lane.EventQuery{PageQuery: after(events.Next[:len(events.Next)-4]), RunID: run.ID}),
		"a limit out of range": listEvents(lane.EventQuery{PageQuery: lane.PageQuery{Environment: env, Limit: -1}, RunID: run.ID}),
	} {
		if runlane.CodeOf(err) != runlane.ErrValidationFailed {
			t.Errorf("%s: error is %v, want %q", name, err, runlane.ErrValidationFailed)
		}
	}
	if err := listRuns(lane.RunQuery{PageQuery: after(runs.Next)}); err != nil {
		t.Errorf("its own cursor is refused: %v", err)
	}
}

// A key that is not enforced must not look enforced.
func TestAppendRunEvents_KeysAreRefused(t *testing.T) {
	t.Parallel()
	s, f := New(), lanetest.NewFactory(env)
	for name, o := range map[string]lanetest.RunOptions{
		"idempotency": {IdempotencyKey: "once", Retention: runlane.KeyRetention{TTL: time.Hour}}, "singleton": {SingletonKey: "alone"},
	} {
		c := f.Creation(t, noon, o)
		if _, err := s.AppendRunEvents(t.Context(), c); runlane.CodeOf(err) != runlane.ErrCapabilityUnsupported {
			t.Errorf("%s key: error is %v, want %q", name, err, runlane.ErrCapabilityUnsupported)
		}
		if _, err := s.GetRun(t.Context(), c.Key()); runlane.CodeOf(err) != runlane.ErrRunNotFound {
			t.Errorf("%s key: the refused run is there: %v", name, err)
		}
	}
}

func TestAppendRunEvents_LeaseTokenIsJudgedAfterTheSequence(t *testing.T) {
	t.Parallel()
	s, f := New(), lanetest.NewFactory(env)
	run := mustAppend(t, s, f.Creation(t, noon, lanetest.RunOptions{}))
	run = mustAppend(t, s, f.Append(t, run, noon, lanetest.Claimed("owner", noon.Add(time.Hour)), &runlane.RunStarted{Attempt: 1}))
	late := f.Append(t, run, noon, lanetest.Succeeded(run, nil))
	late.LeaseToken = "another"
	late.Projected.EventSequence = 99 // malformed too
	_, err := s.AppendRunEvents(t.Context(), late)
	wantConflict(t, err, runlane.ConflictLeaseOwnership)
	late.ExpectedSequence--
	_, err = s.AppendRunEvents(t.Context(), late)
	wantConflict(t, err, runlane.ConflictEventSequence)

	owned := f.Append(t, run, noon, lanetest.Succeeded(run, nil))
	owned.LeaseToken = "owner"
	mustAppend(t, s, owned)
}

func wantConflict(t *testing.T, err error, kind runlane.ConflictKind) {
	t.Helper()
	if runlane.CodeOf(err) != runlane.ErrStorageConflict || !errors.Is(err, kind) {
		t.Fatalf("error is %v, want conflict %q", err, kind)
	}
}

// The engine opens on the toy as far as the toy goes: runs are made, read and cancelled, and no worker can execute them.
func TestStorage_ServesARuntimeWithoutHandlers(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	l, err := lane.New(New(), memlane.NewTransport(nil), nil)
	if err != nil {
		t.Fatal(err)
	}
	rt, err := core.Open(ctx, l, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rt.Close(context.WithoutCancel(ctx)) }()
	greet := runlane.NewTask[string]("greet", nil)
	made, err := rt.Trigger(ctx, greet.With("toy"), nil)
	if err != nil {
		t.Fatal(err)
	}
	var types []runlane.EventType
	for e, err := range rt.Runs().Events(ctx, made.Run.ID, nil) {
		if err != nil {
			t.Fatal(err)
		}
		types = append(types, e.Type())
	}
	if !slices.Equal(types, []runlane.EventType{runlane.EventCreated, runlane.EventDeliveryRequested}) {
		t.Fatalf("history is %v", types)
	}
	_, err = core.Open(ctx, l, &core.Options{Handlers: []runlane.Handler{
		greet.Handle(func(context.Context, *runlane.Attempt, string) error { return nil }),
	}})
	if runlane.CodeOf(err) != runlane.ErrConfigurationInvalid {
		t.Fatalf("a handler was accepted: %v", err)
	}
}

// The suite proves this of storages that lease runs; a storage that does not must not share anything either.
func TestStorage_SharesNothingWithItsCallers(t *testing.T) {
	t.Parallel()
	s, f := New(), lanetest.NewFactory(env)
	command := f.Creation(t, noon, lanetest.RunOptions{
		Payload: []byte(`{"a":1}`), Meta: map[string]string{"m": "meta"}, TraceCarrier: map[string]string{"t": "trace"},
	})
	commit, err := s.AppendRunEvents(t.Context(), command)
	if err != nil {
		t.Fatal(err)
	}
	key := command.Key()
	stored := func() (*runlane.Run, []runlane.EventRecord, runlane.RunSummary) {
		run, err := s.GetRun(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		events, err := s.ListRunEvents(t.Context(), &lane.EventQuery{PageQuery: lane.PageQuery{Environment: env}, RunID: key.RunID})
		if err != nil {
			t.Fatal(err)
		}
		runs, err := s.ListRuns(t.Context(), &lane.RunQuery{PageQuery: lane.PageQuery{Environment: env}})
		if err != nil || len(runs.Items) != 1 {
			t.Fatal(runs, err)
		}
		return run, events.Items, runs.Items[0]
	}
	scribble := func(run *runlane.Run, event *runlane.Event) {
		run.Payload[0], run.Meta["m"], run.TraceCarrier["t"], run.Status = '#', "scribbled", "scribbled", "scribbled"
		body := event.Body.(*runlane.RunCreated)
		body.Payload[0], body.TaskID, event.Meta["m"], event.TraceCarrier["t"] = '#', "scribbled", "scribbled", "scribbled"
	}
	wantRun, wantEvents, wantSummary := stored()
	readRun, readEvents, _ := stored()
	for what, change := range map[string]func(){
		"the command":   func() { scribble(command.Projected, &command.Events[0]) },
		"the commit":    func() { scribble(commit.Run, &commit.Events[0].Event) },
		"what was read": func() { scribble(readRun, &readEvents[0].Event) },
	} {
		change()
		run, events, summary := stored()
		if d := cmp.Diff([]any{wantRun, wantEvents, wantSummary}, []any{run, events, summary}); d != "" {
			t.Errorf("changing %s changed what is stored (-want +got):\n%s", what, d)
		}
	}
}
