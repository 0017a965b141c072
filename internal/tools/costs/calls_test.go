package costs_test

import (
	"context"
	"slices"

	"github.com/runlane/runlane-go"
)

var (
	calling = runlane.NewTask[payload]("costs.calling", nil)
	fanning = runlane.NewTask[int]("costs.fanning", nil)
	called  = runlane.NewFunc[payload, payload]("costs.called", nil)
)

func callHandlers() []runlane.Handler {
	return []runlane.Handler{
		calling.Handle(func(ctx context.Context, a *runlane.Attempt, _ payload) error {
			_, err := called.Call(ctx, a, small("hello"), nil)
			return err
		}),
		fanning.Handle(func(ctx context.Context, a *runlane.Attempt, n int) error {
			_, err := runlane.CallAll(ctx, a, called, slices.Repeat([]payload{small("hello")}, n), nil)
			return err
		}),
		called.Handle(func(_ context.Context, _ *runlane.Attempt, p payload) (payload, error) { return p, nil }),
	}
}

// callRows are those of runs that call others.
func callRows() []row {
	return []row{
		{"call of another, both", 1, nil, ordinary(calling.With(small("hello")), nil)},
		{"call of 10 at once, each", 11, nil, ordinary(fanning.With(10), nil)},
		{"call of 1,000 at once, each", 1001, nil, ordinary(fanning.With(1000), nil)},
	}
}
