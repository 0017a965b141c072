package functions

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambdacontext"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
)

// StartRole serves a role of another package, such as functionurl's, and does not return. It works like [Start],
// without metrics. build gets the open runtime and returns the handler of events; if build fails, opening fails. In a
// process with another role in RUNLANE_FUNCTION, invocations fail with runlane.ErrConfigurationInvalid.
func StartRole[In, Out any](
	role string, open Opener, build func(rt *core.Runtime) (func(ctx context.Context, event In) (Out, error), error),
) {
	logger := lambdacontext.NewLogger()
	slog.SetDefault(logger)
	lambda.Start(newRoleHandler(role, open, logger, build))
}

func newRoleHandler[In, Out any](
	role string, open Opener, logger *slog.Logger,
	build func(rt *core.Runtime) (func(ctx context.Context, event In) (Out, error), error),
) any {
	var answer func(ctx context.Context, event In) (Out, error) // set once the runtime is open
	p := &program{role: role, logger: logger, open: func(ctx context.Context) (*core.Runtime, error) {
		rt, err := open(ctx)
		if err != nil || rt == nil {
			return rt, err
		}
		if answer, err = build(rt); err != nil {
			return nil, errors.Join(err, rt.Close(ctx))
		}
		return rt, nil
	}}
	if set := os.Getenv(RoleVariable); set != role {
		err := &runlane.Error{
			Code: runlane.ErrConfigurationInvalid, Message: fmt.Sprintf("%s is %q", RoleVariable, set),
			Hint: "this program is of the role " + role + ": set that, or deploy another program",
		}
		p.log(err)
		return func(context.Context) error { return err }
	}
	p.openAhead()
	return func(ctx context.Context, event In) (Out, error) {
		if _, err := p.runtime(ctx); err != nil {
			var none Out
			return none, err
		}
		return answer(ctx, event)
	}
}
