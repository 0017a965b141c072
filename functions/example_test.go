package functions_test

import (
	"context"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/awslane"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/functions"
)

// One opener serves the three functions; which of them a process is, RUNLANE_FUNCTION says.
func ExampleStart() {
	handler := greet.Handle(func(context.Context, *runlane.Attempt, string) error { return nil })

	functions.Start(func(ctx context.Context) (*core.Runtime, error) {
		l, err := awslane.FromEnv(ctx)
		if err != nil {
			return nil, err
		}
		return core.Open(ctx, l, &core.Options{Handlers: []runlane.Handler{handler}})
	})
}
