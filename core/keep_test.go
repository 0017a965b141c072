package core_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/memlane"
)

// Ticks remove what is no longer kept, each status by its own time, a limited number a tick, and nothing that holds a key.
func TestKeep_TicksRemoveOldRuns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const day = 24 * time.Hour
		task := runlane.NewTask[bool]("keep.me", nil)
		rt, err := core.Open(t.Context(), memlane.New(), &core.Options{
			Keep: runlane.Keep{Succeeded: day, Failed: 3 * day, Cancelled: runlane.KeepForever},
			Handlers: []runlane.Handler{task.Handle(func(_ context.Context, _ *runlane.Attempt, fails bool) error {
				if fails {
					return runlane.Permanent(errors.New("as asked"))
				}
				return nil
			})},
		})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = rt.Close(context.Background()) }()
		ran := func(fails bool, o *runlane.TriggerOptions) *runlane.Run {
			t.Helper()
			result, err := rt.RunNow(t.Context(), task.With(fails), o)
			if err != nil {
				t.Fatal(err)
			}
			return result.Run
		}
		for range 5 {
			ran(false, nil)
		}
		failed := ran(true, nil)
		keyed := ran(false, &runlane.TriggerOptions{IdempotencyKey: "k", IdempotencyTTL: 10 * day})
		cancelled, err := rt.Trigger(t.Context(), task.With(false), &runlane.TriggerOptions{Delay: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := rt.Runs().Cancel(t.Context(), cancelled.Run.ID, nil); err != nil {
			t.Fatal(err)
		}
		tick := func(removes int, more bool) {
			t.Helper()
			result, err := rt.Tick(t.Context(), &core.TickOptions{Limit: 3})
			if err != nil || result.Pruned.Done != removes || result.Pruned.More != more {
				t.Errorf("a tick removed %d runs, more: %t, want %d, %t: %v", result.Pruned.Done, result.Pruned.More, removes, more, err)
			}
		}
		left := func(n int) {
			t.Helper()
			page, err := rt.Runs().List(t.Context(), nil)
			if err != nil || len(page.Items) != n {
				t.Errorf("%d runs are left, want %d: %v", len(page.Items), n, err)
			}
		}
		tick(0, false)
		time.Sleep(day + time.Second)
		tick(3, true) // the limit
		tick(2, false)
		tick(0, false)
		left(3)
		time.Sleep(2 * day)
		tick(1, false)
		left(2)
		if _, err := rt.Runs().Get(t.Context(), failed.ID); !errors.Is(err, runlane.ErrRunNotFound) {
			t.Errorf("the failed run is kept: %v", err)
		}
		time.Sleep(10 * day)
		tick(1, false)
		if _, err := rt.Runs().Get(t.Context(), keyed.ID); !errors.Is(err, runlane.ErrRunNotFound) {
			t.Errorf("the run is kept although its key is free: %v", err)
		}
		left(1) // the cancelled one: no time is set for them
	})
}

// keepWorld is an environment with programs that keep differently.
type keepWorld struct {
	*testing.T
	lane  *lane.Lane
	seen  []lane.PruneCommand // what storages were asked
	short *runlane.Task[int]
	long  *runlane.Task[int]
	plain *runlane.Task[int]
}

type seenPruning struct {
	lane.Storage
	w *keepWorld
}

func (s *seenPruning) PruneRuns(ctx context.Context, c *lane.PruneCommand) (*lane.PruneProgress, error) {
	s.w.seen = append(s.w.seen, *c)
	return s.Storage.PruneRuns(ctx, c)
}

func newKeepWorld(t *testing.T) *keepWorld {
	keeping := func(id runlane.TaskID, keep runlane.Keep) *runlane.Task[int] {
		return runlane.NewTask(id, &runlane.TaskOptions[int]{Keep: keep})
	}
	w := &keepWorld{
		T: t, lane: memlane.New(), plain: keeping("plain", runlane.Keep{}),
		short: keeping("short", runlane.KeepAll(time.Hour)), long: keeping("long", runlane.Keep{Succeeded: runlane.KeepForever}),
	}
	w.lane.Storage = &seenPruning{w.lane.Storage, w}
	return w
}

func (w *keepWorld) open(keep runlane.Keep, tasks ...*runlane.Task[int]) *core.Runtime {
	w.Helper()
	options := &core.Options{Keep: keep}
	for _, task := range tasks {
		options.Handlers = append(options.Handlers, task.Handle(func(context.Context, *runlane.Attempt, int) error { return nil }))
	}
	l := *w.lane
	rt, err := core.Open(w.Context(), &l, options)
	if err != nil {
		w.Fatal(err)
	}
	return rt
}

// leaves ticks, and demands of which tasks runs are left.
func (w *keepWorld) leaves(rt *core.Runtime, want ...runlane.TaskID) {
	w.Helper()
	if _, err := rt.Tick(w.Context(), nil); err != nil {
		w.Fatal(err)
	}
	page, err := rt.Runs().List(w.Context(), nil)
	if err != nil {
		w.Fatal(err)
	}
	var left []runlane.TaskID
	for _, run := range page.Items {
		left = append(left, run.TaskID)
	}
	slices.Sort(left)
	if !slices.Equal(left, want) {
		w.Errorf("runs of %q are left, want %q", left, want)
	}
}

// A task's own time holds also for ticks of programs that know the task only by the catalog. Without a word, an
// environment keeps its runs for 30 days. A look reads an old run of a task with another time once, and then once a week.
func TestKeep_TasksMayKeepShorterOrLonger(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const day = 24 * time.Hour
		w := newKeepWorld(t)
		program, ticker := w.open(runlane.Keep{}, w.plain, w.short, w.long), w.open(runlane.Keep{})
		defer func() { _ = errors.Join(program.Close(context.Background()), ticker.Close(context.Background())) }()
		for _, task := range []*runlane.Task[int]{w.plain, w.short, w.long} {
			if _, err := program.RunNow(t.Context(), task.With(1), nil); err != nil {
				t.Fatal(err)
			}
		}
		w.leaves(program, "long", "plain", "short") // and stores the tasks
		time.Sleep(7 * time.Hour)
		state, err := ticker.Runs().Keeping(t.Context(), 0)
		if err != nil || len(state.Tasks) != 2 || len(state.Overdue) != 1 || state.Overdue[0].TaskID != "short" || state.More {
			t.Errorf("%+v: %v", state, err)
		}
		w.leaves(ticker, "long", "plain")
		time.Sleep(30*day - 8*time.Hour)
		w.leaves(ticker, "long", "plain")
		time.Sleep(2 * day)
		w.leaves(ticker, "long")
		w.seen = nil
		for range 6 * 4 {
			time.Sleep(6*time.Hour + time.Second)
			w.leaves(ticker, "long")
		}
		whole := 0
		for _, c := range w.seen {
			if len(c.Tasks)+len(c.Except) > 0 && c.Since.IsZero() {
				whole++
			}
		}
		if whole != 6 { // of three statuses the short ones and the others: once a week
			t.Errorf("%d of %d looks with a choice began with the oldest run", whole, len(w.seen))
		}
	})
}

// A program that says nothing follows the rule of another one, until that was not said for a month.
func TestKeep_AProgramWithoutARuleFollowsTheOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const day = 24 * time.Hour
		w := newKeepWorld(t)
		program, ticker := w.open(runlane.KeepAll(runlane.KeepForever), w.plain), w.open(runlane.Keep{})
		defer func() { _ = errors.Join(program.Close(context.Background()), ticker.Close(context.Background())) }()
		if _, err := program.RunNow(t.Context(), w.plain.With(1), nil); err != nil {
			t.Fatal(err)
		}
		time.Sleep(40 * day)
		w.leaves(program, "plain")
		time.Sleep(29 * day)
		w.leaves(ticker, "plain")
		time.Sleep(2 * day)
		w.leaves(ticker)
	})
}
