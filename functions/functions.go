// Package functions runs a runtime inside AWS Lambda. One program serves three roles, each a function of the deployment
// template:
//
//   - bridge takes wakeups from SQS and executes their runs ([Bridge]),
//   - relay reads the table's stream and publishes wakeups that their writers left to it ([Relay]),
//   - tick maintains, once a minute ([Tick]).
//
// A program's main is one line, functions.Start(open). Package functions/eventsource feeds the same handlers from local
// AWS. The fourth function, the server behind a function URL, is package functionurl's, so that these three do not link
// it.
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

// RoleVariable names the role of a function: [RoleBridge], [RoleRelay] or [RoleTick].
const RoleVariable = "RUNLANE_FUNCTION"

// The roles.
const (
	RoleBridge = "bridge"
	RoleRelay  = "relay"
	RoleTick   = "tick"
)

// BindingsVariable names the queues whose bindings are a bridge's own, with commas between them: those that its event
// source mappings read. The bridge refuses tasks that need more time than its invocations only where one of these
// carries their wakeups. What comes by another binding, as while a deployment moves a queue to another function, is
// executed where it fits, else handed back, and the log says so once. A bridge with an empty list, whose last queue
// moved away, refuses nothing. Without the variable the bindings that an event comes from count as own.
const BindingsVariable = "RUNLANE_BINDINGS"

// How Lambda says why an environment starts: because an event waits, or ahead of events (provisioned concurrency).
const (
	initializationVariable = "AWS_LAMBDA_INITIALIZATION_TYPE"
	onDemand               = "on-demand"
)

// openTime bounds the opening of the runtime, below the 10 s that Lambda gives the start of an environment.
const openTime = 8 * time.Second

// Opener builds the program's runtime. The same function serves Start, a worker's main, the command line and tests.
type Opener = func(ctx context.Context) (*core.Runtime, error)

// Start serves the role that RUNLANE_FUNCTION names, and does not return. It makes Lambda's logger the default of slog
// before it calls open, writes metrics to the log, see [MetricsVariable], and sets the variables that secrets hold, see
// [SecretsVariable].
//
// The first event opens the runtime, or the start if environments start ahead of events
// (docs/internals/design.md, Modules and deployment). An error of opening is logged, each code and message once, with its hint.
// Invocations then fail with it, so that messages and stream records come again, until what was missing is there: the
// next invocation tries to open again, 10 s after the last try unless the error is Retryable. The bridge also refuses a
// task that its own bindings carry ([BindingsVariable]) with a timeout longer than an invocation, as soon as its first
// invocation shows how long that is.
func Start(open Opener) {
	logger := lambdacontext.NewLogger()
	slog.SetDefault(logger)
	lambda.Start(newHandler(os.Getenv(RoleVariable), open, logger))
}

// newHandler is Start without Lambda: a function that lambda.NewHandler takes.
func newHandler(role string, open Opener, logger *slog.Logger) any {
	p := &program{role: role, open: open, logger: logger, meter: newMeter(role), bound: bound()}
	var handler any
	switch role {
	case RoleBridge:
		handler = func(ctx context.Context, event events.SQSEvent) (events.SQSEventResponse, error) {
			began := time.Now()
			rt, err := p.runtime(ctx)
			defer p.meter.flush(rt)
			if err == nil {
				err = p.fits(ctx, rt, began, event)
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
			p.meter.look(ctx, rt)
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

// openAhead opens the runtime where environments start ahead of their events.
func (p *program) openAhead() {
	if kind := os.Getenv(initializationVariable); kind != "" && kind != onDemand {
		_, _ = p.runtime(context.Background()) // kept, and returned by every invocation
	}
}

// program opens its runtime, until it is open.
type program struct {
	role      string
	open      Opener
	logger    *slog.Logger
	meter     *meter // nil where metrics are off
	bound     []runlane.QueueName
	misrouted misrouted

	mu       sync.Mutex
	rt       *core.Runtime
	err      error
	failed   time.Time // when err was returned first
	logged   map[told]bool
	informed bool // the variables of secrets are set
}

func (p *program) runtime(ctx context.Context) (*core.Runtime, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.rt != nil || p.kept() {
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
		p.rt, p.failed = nil, wall()
		p.log(p.err)
	}
	return p.rt, p.err
}
