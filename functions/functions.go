// Package functions runs a runtime in AWS Lambda. One program has three roles, each a function of the deployment
// template:
//
//   - bridge receives wakeups from SQS and executes their runs ([Bridge]),
//   - relay reads the table's stream and publishes wakeups that their writers left to it ([Relay]),
//   - tick does maintenance once a minute ([Tick]).
//
// A program's main is one line, functions.Start(open). Package functions/eventsource feeds the same handlers from local
// AWS. The fourth function, the server behind a function URL, is in package functionurl, so that these three do not
// link it.
package functions

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambdacontext"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
)

// RoleVariable has the role of a function: [RoleBridge], [RoleRelay] or [RoleTick].
const RoleVariable = "RUNLANE_FUNCTION"

// The roles.
const (
	RoleBridge = "bridge"
	RoleRelay  = "relay"
	RoleTick   = "tick"
)

// BindingsVariable lists the queues that a bridge's event source mappings read, comma-separated. The bridge rejects
// tasks that need more time than its invocations only if one of these bindings carries them. Wakeups of another
// binding, for example while a deployment moves a queue to another function, are executed if there is time, else handed
// back, and logged once. With an empty list, after the last queue moved away, the bridge rejects nothing. Without the
// variable the bindings of each event count.
const BindingsVariable = "RUNLANE_BINDINGS"

// Lambda's reason to start an environment: an event, or ahead of events (provisioned concurrency).
const (
	initializationVariable = "AWS_LAMBDA_INITIALIZATION_TYPE"
	onDemand               = "on-demand"
)

// openTime limits the opening of the runtime, below Lambda's 10 s for the start of an environment.
const openTime = 8 * time.Second

// Opener opens the program's runtime. The same function serves Start, a worker's main, the command line and tests.
type Opener = func(ctx context.Context) (*core.Runtime, error)

// Start serves the role of RUNLANE_FUNCTION and does not return. Before it calls open, it makes Lambda's logger slog's
// default and sets the variables of secrets, see [SecretsVariable]. It writes metrics to the log, see
// [MetricsVariable].
//
// The first event opens the runtime, or the start if environments start ahead of events (docs/internals/design.md,
// Modules and deployment). An error of opening is logged with its hint, once for each code and message. Invocations
// fail with it, so that their records are redelivered. The next invocation opens again, 10 s after the last try unless
// the error is Retryable. The bridge also rejects a task of its own bindings ([BindingsVariable]) with a timeout longer
// than an invocation.
func Start(open Opener) {
	logger := lambdacontext.NewLogger()
	slog.SetDefault(logger)
	lambda.Start(newHandler(os.Getenv(RoleVariable), open, logger))
}

func newHandler(role string, open Opener, logger *slog.Logger) any {
	p := &program{role: role, open: open, logger: logger, meter: newMeter(role), bound: boundQueues()}
	var handler any
	switch role {
	case RoleBridge:
		handler = func(ctx context.Context, event events.SQSEvent) (events.SQSEventResponse, error) {
			began := time.Now()
			rt, err := p.runtime(ctx)
			defer p.meter.flush(rt)
			if err == nil {
				err = p.checkInvocationTime(ctx, rt, began, event)
			}
			if err != nil {
				return events.SQSEventResponse{}, err
			}
			return bridge(ctx, rt, &p.misrouted, began, event)
		}
	case RoleRelay:
		handler = func(ctx context.Context, event events.DynamoDBEvent) (events.DynamoDBEventResponse, error) {
			rt, err := p.runtime(ctx)
			defer p.meter.flush(rt)
			if err != nil {
				return events.DynamoDBEventResponse{}, err
			}
			return Relay(rt)(ctx, event)
		}
	case RoleTick:
		handler = func(ctx context.Context) error {
			rt, err := p.runtime(ctx)
			defer p.meter.flush(rt)
			if err != nil {
				return err
			}
			p.meter.measure(ctx, rt)
			return Tick(rt)(ctx)
		}
	default:
		err := &runlane.Error{
			Code: runlane.ErrConfigurationInvalid, Message: fmt.Sprintf("%s is %q", RoleVariable, role),
			Hint: "set it to bridge, relay or tick",
		}
		p.log(err)
		return func(context.Context) error { return err }
	}
	p.openAhead()
	return handler
}

func (p *program) openAhead() {
	if kind := os.Getenv(initializationVariable); kind != "" && kind != onDemand {
		_, _ = p.runtime(context.Background()) // the error is kept for the invocations
	}
}

type program struct {
	role      string
	open      Opener
	logger    *slog.Logger
	meter     *meter // nil if metrics are off
	bound     []runlane.QueueName
	misrouted misrouted

	mu       sync.Mutex
	rt       *core.Runtime
	err      error
	failed   time.Time // when err was first returned
	logged   map[logKey]bool
	informed bool // the variables of secrets are set
}

func (p *program) runtime(ctx context.Context) (*core.Runtime, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.rt != nil || p.keepsError() {
		return p.rt, p.err
	}
	ctx, cancel := context.WithTimeout(ctx, openTime)
	defer cancel()
	if p.err = p.readSecrets(ctx); p.err == nil {
		p.rt, p.err = p.open(p.meter.attach(ctx))
	}
	if p.err == nil && p.rt == nil {
		p.err = &runlane.Error{
			Code:    runlane.ErrConfigurationInvalid,
			Message: "the opener returned no runtime",
			Hint:    "return what core.Open returns",
		}
	}
	if p.err != nil {
		p.rt, p.failed = nil, wallClock()
		p.log(p.err)
	}
	return p.rt, p.err
}
