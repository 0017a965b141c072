package core_test

import (
	"context"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/memlane"
)

var (
	moveChild  = runlane.NewFunc[int, int]("move.child", nil)
	moveCaller = runlane.NewTask[string]("move.caller", nil)
)

// newCaller is a program whose runs call two others, the second of which is released for an hour; with its clock.
func newCaller(t *testing.T) (m *mover, now *time.Time) {
	t.Helper()
	return newCallerOf(t, func(ctx context.Context, a *runlane.Attempt) error {
		numbers, err := runlane.CallAll(ctx, a, moveChild, []int{1, 2}, nil)
		if err != nil {
			return err
		}
		return a.SetOutput(numbers[0].Value + numbers[1].Value)
	})
}

// newCallerOf is a program whose runs call others as they like.
func newCallerOf(t *testing.T, call func(context.Context, *runlane.Attempt) error) (m *mover, now *time.Time) {
	t.Helper()
	now = new(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	clock := func() time.Time { return *now }
	l := memlane.New()
	l.Storage = memlane.NewStorage(&memlane.StorageOptions{Now: clock})
	rt := openQuiet(t, l, core.Options{
		World: &core.World{Now: clock},
		Handlers: []runlane.Handler{
			moveChild.Handle(func(_ context.Context, a *runlane.Attempt, n int) (int, error) {
				if n == 2 && a.Number == 1 {
					return 0, runlane.Release(time.Hour, "later")
				}
				return n, nil
			}),
			moveCaller.Handle(func(ctx context.Context, a *runlane.Attempt, _ string) error { return call(ctx, a) }),
		},
	})
	return &mover{Runtime: rt, t: t}, now
}

// A run that waits for others that it has called goes on where it is imported, whenever they have ended.
func TestMove_RunsThatWaitForOthersTheyCalled_GoOn(t *testing.T) {
	t.Parallel()
	from, _ := newCaller(t)
	id := from.trigger(moveCaller.With(""), nil)
	from.drain() // one of the two has ended, and is told
	file := from.export()
	to, now := newCaller(t)
	to.imports(file)
	run, err := to.Runs().Get(t.Context(), id)
	if err != nil || run.Status != runlane.StatusQueued {
		t.Fatalf("it is %s, %v", run.Status, err)
	}
	if again := to.imports(file); again.Written != 0 {
		t.Errorf("once more: %+v", again)
	}
	for range 6 { // a quarter of an hour each: it looks more than once before the second has ended
		tick(t, to)
		to.drain()
		*now = now.Add(15 * time.Minute)
	}
	if run, err = to.Runs().Get(t.Context(), id); err != nil || string(run.Output) != "3" {
		t.Errorf("it is %s with %s, %v, and waits for %+v", run.Status, run.Output, err, run.Waiting)
	}
	if len(to.histories()) != 3 {
		t.Errorf("there are %d runs", len(to.histories()))
	}
	to.sound()
}
