// Package work executes the jobs.
package work

import (
	"context"
	"errors"
	"strings"

	"example.org/orders/jobs"
	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/awslane"
	"github.com/runlane/runlane-go/core"
)

// Open is the one opener: for the functions, for a worker in a container, for tests.
func Open(ctx context.Context) (*core.Runtime, error) {
	l, err := awslane.FromEnv(ctx)
	if err != nil {
		return nil, err
	}
	return core.Open(ctx, l, &core.Options{Handlers: []runlane.Handler{jobs.Confirm.Handle(confirm)}})
}

// confirm would send a mail. An error is tried again, a permanent one is not.
func confirm(_ context.Context, a *runlane.Attempt, o jobs.Order) error {
	if !strings.Contains(o.Email, "@") {
		return runlane.Permanent(errors.New("the order has no mail address"))
	}
	a.Logger().Info("order confirmed", "order", o.ID)
	return a.SetOutput(map[string]string{"confirmed": o.ID})
}
