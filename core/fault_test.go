package core_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/lanetest"
	"github.com/runlane/runlane-go/memlane"
)

// faults are what a bad hour looks like: a fifth of all calls goes wrong in one of its ways.
func faults() []lanetest.FaultRule {
	return []lanetest.FaultRule{
		{Kind: lanetest.FaultBefore, Rate: 0.05},
		{Kind: lanetest.FaultAfter, Rate: 0.05},
		{Kind: lanetest.FaultConflict, Rate: 0.03},
		{Kind: lanetest.FaultThrottle, Rate: 0.03},
		{Kind: lanetest.FaultDuplicate, Rate: 0.03},
		{Kind: lanetest.FaultDelay, Rate: 0.03, Delay: 3 * time.Second},
	}
}

// journal counts what handlers did.
type journal struct {
	mu       sync.Mutex
	executed map[int]int // by number: the payload
}

func (j *journal) note(number int) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.executed[number]++
	return j.executed[number]
}

type numbered struct {
	Number int `json:"number"`
}

// Whatever goes wrong between the runtime and its lane: a run that was triggered exists once, is executed, and ends as its handler
// says. Two processes work on it; time passes in a bubble.
func TestFaults_EveryRunEndsAndNoneIsLost(t *testing.T) {
	t.Parallel()
	for i := range 5 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { faultyHours(t, 0) })
		})
	}
}

func faultyHours(t *testing.T, seed uint64) {
	t.Helper()
	const runs = 40
	plan := lanetest.NewFaultPlan(t, seed, faults()...)
	storage, transport := memlane.NewStorage(nil), memlane.NewTransport(nil)
	l, err := lane.New(lanetest.FaultyStorage(storage, plan), lanetest.FaultyTransport(transport, plan), nil)
	if err != nil {
		t.Fatal(err)
	}
	done := &journal{executed: map[int]int{}}
	task := runlane.NewTask[numbered]("numbered", nil)
	handler := task.Handle(func(_ context.Context, _ *runlane.Attempt, p numbered) error {
		n := done.note(p.Number)
		switch {
		case p.Number%4 == 1 && n < 3:
			return runlane.Release(time.Minute, "not yet")
		case p.Number%4 == 2:
			return runlane.Permanent(fmt.Errorf("number %d", p.Number))
		default:
			return nil
		}
	})
	rt, err := core.Open(t.Context(), l, &core.Options{
		Handlers: []runlane.Handler{handler}, Logger: slog.New(slog.DiscardHandler),
		MaxAbandoned: -1, // claims whose answers are lost count as abandoned: three of one run are rare, not impossible
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var workers sync.WaitGroup
	for i := range 2 {
		workers.Go(func() {
			if err := rt.Work(ctx, &core.WorkOptions{Concurrency: 4, WorkerID: fmt.Sprint("worker-", i)}); err != nil {
				t.Errorf("worker %d: %v", i, err)
			}
		})
	}
	ids := make([]runlane.RunID, runs)
	for number := range ids {
		ids[number] = triggerUntilDurable(t, rt, task, number)
	}
	began := time.Now()
	awaitEnds(t, storage, ids)
	t.Logf("all ended after %s; %d answers were lost", time.Since(began), plan.Struck(lanetest.FaultAfter))
	plan.Stop()
	stop()
	workers.Wait()
	if err := rt.Close(context.Background()); err != nil {
		t.Error(err)
	}
	for _, rule := range faults() {
		if plan.Struck(rule.Kind) == 0 {
			t.Errorf("%s never happened", rule.Kind)
		}
	}
	for number, id := range ids {
		verifyEnd(t, storage, id, number, done.executed[number])
	}
	verifyEnvironment(t, storage, runs)
}

// triggerUntilDurable repeats a trigger as any caller would: the same key finds what an earlier call has made.
func triggerUntilDurable(t *testing.T, rt *core.Runtime, task *runlane.Task[numbered], number int) runlane.RunID {
	t.Helper()
	for range 100 {
		result, err := rt.Trigger(t.Context(), task.With(numbered{number}), &runlane.TriggerOptions{IdempotencyKey: fmt.Sprint(number)})
		if err == nil {
			return result.Run.ID
		}
		if code := runlane.CodeOf(err); code != runlane.ErrStorageUnavailable {
			t.Fatalf("trigger %d: %v", number, err)
		}
	}
	t.Fatalf("trigger %d failed a hundred times", number)
	return ""
}

func stored(t *testing.T, storage lane.Storage, id runlane.RunID) *runlane.Run {
	t.Helper()
	run, err := storage.GetRun(t.Context(), lane.RunKey{RunID: id})
	if err != nil {
		t.Fatalf("run %s is lost: %v", id, err)
	}
	return run
}

// awaitEnds looks every ten seconds of virtual time, for two days.
func awaitEnds(t *testing.T, storage lane.Storage, ids []runlane.RunID) {
	t.Helper()
	began := time.Now()
	for _, id := range ids {
		for run := stored(t, storage, id); !run.Status.Terminal(); run = stored(t, storage, id) {
			if time.Since(began) > 48*time.Hour {
				t.Fatalf("run %s never ends: %+v", id, run)
			}
			time.Sleep(10 * time.Second)
		}
	}
}

// verifyEnd demands the end that the handler decided, and that the history says the same.
func verifyEnd(t *testing.T, storage lane.Storage, id runlane.RunID, number, executed int) {
	t.Helper()
	want := runlane.StatusSucceeded
	if number%4 == 2 {
		want = runlane.StatusFailed
	}
	run := stored(t, storage, id)
	if run.Status != want || executed == 0 || number%4 == 1 && run.Counters.Releases == 0 {
		t.Errorf("run %d is %s after %d executions, want %s: %+v", number, run.Status, executed, want, run)
	}
	q := &lane.EventQuery{RunID: id}
	q.Limit = runlane.MaxPageLimit
	page, err := storage.ListRunEvents(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	var events []runlane.Event
	for _, record := range page.Items {
		events = append(events, record.Event)
	}
	folded, err := core.ProjectRunEvents(nil, 0, events...)
	if err != nil || folded.Status != run.Status || folded.EventSequence != run.EventSequence || folded.Counters != run.Counters {
		t.Errorf("run %d is not the fold of its history: %+v %v", number, folded, err)
	}
}

// verifyEnvironment demands that each trigger made one run, and that the storage finds nothing wrong with itself.
func verifyEnvironment(t *testing.T, storage *memlane.Storage, runs int) {
	t.Helper()
	q := &lane.RunQuery{}
	q.Limit = runlane.MaxPageLimit
	page, err := storage.ListRuns(t.Context(), q)
	if err != nil || len(page.Items) != runs {
		t.Errorf("%d runs, want %d: %v", len(page.Items), runs, err)
	}
	found, err := storage.Check(t.Context(), &q.PageQuery)
	if err != nil || len(found.Items) != 0 {
		t.Errorf("%+v %v", found, err)
	}
}
