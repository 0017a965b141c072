package core_test

import (
	"context"
	"strings"
	"testing"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/memlane"
	"github.com/runlane/runlane-go/sealed"
)

// A codec is given while a run waits for what it called: it goes on, and a flow may be started again.
func TestCalls_ACodecIsGivenMeanwhile(t *testing.T) {
	t.Parallel()
	key, err := sealed.NewKey("k")
	if err != nil {
		t.Fatal(err)
	}
	codec, err := sealed.New([]sealed.Key{key}, nil)
	if err != nil {
		t.Fatal(err)
	}
	l := memlane.New()
	child, parent := runlane.NewFunc[int, int]("child", nil), runlane.NewTask[int]("parent", nil)
	calls := parent.Handle(func(ctx context.Context, a *runlane.Attempt, _ int) error {
		_, err := child.Call(ctx, a, 7, nil)
		return err
	})
	flow := func() *runlane.Flow {
		f := runlane.NewFlow("f")
		f.Add("n", child.With(1), nil)
		return f
	}
	before := &retryWorld{Runtime: openQuiet(t, l, core.Options{}, calls)}
	triggerWith(t, before, parent.With(1), &runlane.TriggerOptions{RunID: "run_p"})
	before.start(t, flow())
	after := &retryWorld{Runtime: openQuiet(t, l, core.Options{Codec: codec}, calls,
		child.Handle(func(context.Context, *runlane.Attempt, int) (int, error) { return 1, nil }))}
	after.start(t, flow())
	run, err := after.Runs().Get(t.Context(), "run_p")
	if err != nil || run.Status != runlane.StatusSucceeded {
		t.Fatal(run, err)
	}
	if _, err := before.StartFlow(t.Context(), flow(), nil); err != nil {
		t.Error(err)
	}
}

// A run that waits since before its task had a number, and remembers nothing, began without one.
func TestBegan_OfARunThatWaits(t *testing.T) {
	t.Parallel()
	l := memlane.New()
	child := runlane.NewFunc[int, int]("child", nil)
	before, after := runlane.NewTask[int]("t", nil), runlane.NewTask("t", &runlane.TaskOptions[int]{Version: 2})
	old := &retryWorld{Runtime: openQuiet(t, l, core.Options{},
		before.Handle(func(ctx context.Context, a *runlane.Attempt, _ int) error {
			_, err := child.Call(ctx, a, 1, nil)
			return err
		}))}
	triggerWith(t, old, before.With(1), &runlane.TriggerOptions{RunID: "run_a"})
	old.drain(t)
	began := -1
	now := &retryWorld{Runtime: openQuiet(t, l, core.Options{},
		after.Handle(func(ctx context.Context, a *runlane.Attempt, _ int) (err error) {
			if began, err = a.Began(ctx); err == nil {
				_, err = child.Call(ctx, a, 1, nil)
			}
			return err
		}),
		child.Handle(func(context.Context, *runlane.Attempt, int) (int, error) { return 1, nil }))}
	now.drain(t)
	if run, err := now.Runs().Get(t.Context(), "run_a"); err != nil || run.Status != runlane.StatusSucceeded || began != 0 {
		t.Error(run, err, began)
	}
}

// A run that a newer version of its task has gone on with says which, to those who ask why an older one leaves it alone.
func TestExplain_ARunOfANewerVersion_NamesIt(t *testing.T) {
	t.Parallel()
	l := memlane.New()
	open := func(version int) (*runlane.Task[int], *retryWorld) {
		task := runlane.NewTask("t", &runlane.TaskOptions[int]{Version: version})
		return task, &retryWorld{Runtime: openQuiet(t, l, core.Options{},
			task.Handle(func(ctx context.Context, a *runlane.Attempt, _ int) error {
				if _, err := runlane.Step(ctx, a, "s", func(context.Context) (int, error) { return 1, nil }); err != nil {
					return err
				}
				_, err := runlane.NewSignal[int]("go").Wait(ctx, a, nil)
				return err
			}))}
	}
	task, newer := open(7)
	triggerWith(t, newer, task.With(1), &runlane.TriggerOptions{RunID: "run_a"})
	if done, err := newer.ExecuteNext(t.Context(), nil); err != nil || done.Run == nil { // a worker's tick stores the task
		t.Fatal(done, err)
	}
	_, older := open(3)
	without := &retryWorld{Runtime: openQuiet(t, l, core.Options{})}
	for name, c := range map[string]struct {
		w    *retryWorld
		want []string
	}{
		"newer":   {newer, nil},
		"older":   {older, []string{"Version 7 of its task", "version 3"}},
		"unknown": {without, []string{"Version 7 of its task", "none is known"}},
	} {
		e, err := c.w.Runs().Explain(t.Context(), "run_a")
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range c.want {
			if !strings.Contains(e.Next, want) {
				t.Errorf("%s: %q does not say %q", name, e.Next, want)
			}
		}
		if c.want == nil && strings.Contains(e.Next, "Version") {
			t.Errorf("%s: %q", name, e.Next)
		}
	}
}
