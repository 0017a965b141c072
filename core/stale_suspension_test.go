package core_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/memlane"
)

// A process that keeps the error of a wait and returns it from another run, or from a later attempt, waits for nothing
// that was looked for: what came before would never wake the run. The attempt fails and says so.
func TestSuspension_ThatIsKept_FailsTheNextAttempt(t *testing.T) {
	t.Parallel()
	for name, wrap := range map[string]func(error) error{
		"as it is": func(err error) error { return err },
		"wrapped":  func(err error) error { return fmt.Errorf("setting up: %w", err) },
		"joined":   func(err error) error { return errors.Join(errors.New("closing"), err) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ok := runlane.NewSignal[int]("ok")
				task := runlane.NewTask("task", &runlane.TaskOptions[int]{Retry: runlane.Retry{MaxAttempts: 1}})
				var kept error
				rt := openStranger(t, memlane.New(), task.Handle(func(ctx context.Context, a *runlane.Attempt, _ int) error {
					if kept == nil {
						_, kept = ok.Wait(ctx, a, nil)
					}
					return wrap(kept)
				}))
				first := rt.trigger(task.With(1), nil)
				rt.drain()
				second := rt.trigger(task.With(2), nil)
				for _, id := range []runlane.RunID{second, first} {
					if err := rt.Signal(t.Context(), id, ok.With(1), nil); err != nil {
						t.Fatal(err)
					}
				}
				rt.drain()
				for _, id := range []runlane.RunID{first, second} {
					run := runOf(t, rt, id)
					if run.Status != runlane.StatusFailed || run.Failure.Code != runlane.ErrValidationFailed ||
						!strings.Contains(run.Failure.Message, "of another attempt") {
						t.Errorf("%s: %s, %+v, waits for %+v", id, run.Status, run.Failure, run.Waiting)
					}
				}
			})
		})
	}
}
