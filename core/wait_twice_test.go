package core_test

import (
	"context"
	"strings"
	"testing"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/memlane"
)

// A loop that waits again under one name would get the first answer for ever: it is refused, with what to do.
func TestWait_TwiceUnderOneName_IsRefusedAsAWait(t *testing.T) {
	t.Parallel()
	decided, task := runlane.NewSignal[int]("decided"), runlane.NewTask[int]("t", nil)
	rt := openQuiet(t, memlane.New(), core.Options{}, task.Handle(func(ctx context.Context, a *runlane.Attempt, _ int) error {
		for range 2 {
			if _, err := decided.Wait(ctx, a, &runlane.WaitOptions{Name: "decided"}); err != nil {
				return runlane.Permanent(err)
			}
		}
		return nil
	}))
	triggerWith(t, rt, task.With(1), &runlane.TriggerOptions{RunID: "run_a"})
	if err := rt.Signal(t.Context(), "run_a", decided.With(1), nil); err != nil {
		t.Fatal(err)
	}
	done, err := rt.ExecuteNext(t.Context(), nil)
	if err != nil || !strings.Contains(done.Run.Failure.Message, `wait "decided" is called twice in this attempt`) {
		t.Errorf("%+v, %v", done.Run.Failure, err)
	}
}
