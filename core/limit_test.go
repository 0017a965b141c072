package core_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/memlane"
)

// The time of a wait that something else may end, too, is over at its millisecond, whenever the next tick is.
func TestWait_ATimeLimit_EndsAtItsMillisecond(t *testing.T) {
	t.Parallel()
	never := runlane.NewSignal[int]("never")
	for name, wait := range map[string]func(context.Context, *runlane.Attempt, time.Duration) error{
		"a limit": func(ctx context.Context, a *runlane.Attempt, d time.Duration) error {
			if _, err := never.Wait(ctx, a, &runlane.WaitOptions{Timeout: d}); !errors.Is(err, runlane.ErrWaitTimedOut) {
				return err
			}
			return nil
		},
		"a sleep beside a wait": func(ctx context.Context, a *runlane.Attempt, d time.Duration) error {
			slept := a.Sleep(ctx, "sleep", d)
			if slept == nil {
				return nil
			}
			_, err := never.Wait(ctx, a, nil)
			return errors.Join(slept, err)
		},
	} {
		for _, d := range []time.Duration{1500 * time.Millisecond, 44 * time.Second, 71 * time.Second} {
			t.Run(name+" of "+d.String(), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					task := runlane.NewTask[int]("t", nil)
					rt := openQuiet(t, memlane.New(), core.Options{}, task.Handle(func(ctx context.Context, a *runlane.Attempt, _ int) error {
						return wait(ctx, a, d)
					}))
					defer startWork(t, rt, nil)()
					time.Sleep(5 * time.Second) // the first tick is over
					began := trigger(t, rt, task.With(1))
					run, err := rt.Wait(t.Context(), began.ID)
					if err != nil || run.Status != runlane.StatusSucceeded || run.FinishedAt.Sub(began.CreatedAt) != d {
						t.Errorf("%s after %s, %v", run.Status, run.FinishedAt.Sub(began.CreatedAt), err)
					}
				})
			})
		}
	}
}
