package hostiletest

import (
	"context"
	"encoding/json"

	"github.com/runlane/runlane-go"
)

// callbacks use their attempt as no handler should.
func callbacks() []Handler {
	const failed, succeeded = runlane.StatusFailed, runlane.StatusSucceeded
	own := runlane.NewTask[marshaler]("hostile.own", &runlane.TaskOptions[marshaler]{})
	keyed := runlane.NewTask[int]("hostile.keyed", &runlane.TaskOptions[int]{
		IdempotencyKey: func(int) string { panic("key") },
	})
	return []Handler{
		{Name: "an output whose encoding panics", Status: failed, Code: runlane.ErrValidationFailed,
			Execute: func(_ context.Context, a *runlane.Attempt) error { return a.SetOutput(marshaler{true}) }},
		{Name: "an output whose encoding fails with a hostile error", Status: failed, Code: runlane.ErrTaskPanicked,
			Execute: func(_ context.Context, a *runlane.Attempt) error { return a.SetOutput(marshaler{}) }},
		{Name: "a payload whose encoding panics", Status: failed, Code: runlane.ErrValidationFailed,
			Execute: func(ctx context.Context, a *runlane.Attempt) error {
				_, err := a.Trigger(ctx, own.With(marshaler{true}), nil)
				return err
			}},
		{Name: "a payload whose encoding fails with a hostile error", Status: failed, Code: runlane.ErrValidationFailed,
			Execute: func(ctx context.Context, a *runlane.Attempt) error {
				_, err := a.Trigger(ctx, own.With(marshaler{}), nil)
				return err
			}},
		{Name: "a key function that panics", Status: failed, Code: runlane.ErrValidationFailed,
			Execute: func(ctx context.Context, a *runlane.Attempt) error {
				_, err := a.Trigger(ctx, keyed.With(1), nil)
				return err
			}},
		{
			Name:   "an output after its end",
			Status: succeeded,
			Execute: func(ctx context.Context, a *runlane.Attempt) error {
				go func() {
					<-ctx.Done()
					_ = a.SetOutput(json.RawMessage("1"))
					_ = a.Progress(ctx, "late")
					_, _ = a.Trigger(ctx, keyed.With(1), nil)
				}()
				return nil
			},
		},
	}
}
