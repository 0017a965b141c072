// Package eventbus sends the ends of runs to an EventBridge bus. It is the fifth function of the deployment template,
// which exists if EventBus names a bus: a reader of the table's stream beside the relay, so that the relay never waits
// for a bus.
//
// Every end is sent at least once, and the events of one run in order. EventBridge itself keeps no order: the run's
// eventSequence does. An event that the bus refuses stays in the stream or, after [Patience], in a queue, and is sent
// again (docs/events.md, What the bus refuses).
//
// The program of the function is one line, eventbus.Start(). It opens no runtime.
package eventbus

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambdacontext"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/awslane"
)

// Role is the function's value of functions.RoleVariable.
const Role = "events"

// The environment variables of [FromEnv], in addition to awslane.EnvironmentVariable.
const (
	// BusVariable has the name or ARN of the bus.
	BusVariable = "RUNLANE_EVENT_BUS"
	// RetriesVariable has the URL of the SQS queue of refused events, of which the function sends them again.
	RetriesVariable = "RUNLANE_EVENT_RETRIES"
)

// Source is the source of every event.
const Source = "runlane"

// Patience is how long an event that was refused for a while holds up its shard of the stream. Then it is set aside, so
// that nothing is lost when the stream forgets it after 24 hours.
const Patience = time.Hour

// Bus is the part of the EventBridge client that a [Sender] uses; *eventbridge.Client implements it.
type Bus interface {
	PutEvents(context.Context, *eventbridge.PutEventsInput, ...func(*eventbridge.Options)) (
		*eventbridge.PutEventsOutput, error)
}

// Queue is the part of the SQS client that a [Sender] uses; *sqs.Client implements it.
type Queue interface {
	SendMessageBatch(context.Context, *sqs.SendMessageBatchInput, ...func(*sqs.Options)) (
		*sqs.SendMessageBatchOutput, error)
}

// Options of [New].
type Options struct {
	// Bus is the name or ARN of the bus. Required.
	Bus string
	// Environment of the runs; others are passed over. "" means runlane.DefaultEnvironment.
	Environment runlane.Environment
	// Logger defaults to slog.Default().
	Logger *slog.Logger
	// Retries is the URL of the queue of refused events. Required.
	Retries string
}

// Sender sends the runs of stream records as events. It keeps nothing between calls and is safe for concurrent use.
type Sender struct {
	bus         Bus
	queue       Queue
	name        string
	environment runlane.Environment
	logger      *slog.Logger
	retries     string
}

// New makes no request. A missing or wrong option is runlane.ErrConfigurationInvalid.
func New(bus Bus, queue Queue, options Options) (*Sender, error) {
	if err := options.Environment.Validate(); err != nil {
		return nil, invalid(awslane.EnvironmentVariable+" is no environment name", "use printable text without ':'")
	}
	if options.Bus == "" {
		return nil, invalid("there is no bus", "set "+BusVariable+" to the name or ARN of an EventBridge bus")
	}
	if options.Retries == "" {
		return nil, invalid("there is no queue for refused events", "set "+RetriesVariable+" to the URL of an SQS queue")
	}
	s := &Sender{
		bus: bus, queue: queue, name: options.Bus, environment: options.Environment, logger: options.Logger,
		retries: options.Retries,
	}
	if s.logger == nil {
		s.logger = slog.Default()
	}
	return s, nil
}

// FromEnv reads the variables of this package, RUNLANE_ENV, and AWS's. Errors are those of [New] and awslane.Config.
func FromEnv(ctx context.Context) (*Sender, error) {
	cfg, err := awslane.Config(ctx)
	if err != nil {
		return nil, err
	}
	return New(eventbridge.NewFromConfig(cfg), sqs.NewFromConfig(cfg), Options{
		Bus:         os.Getenv(BusVariable),
		Environment: runlane.Environment(os.Getenv(awslane.EnvironmentVariable)),
		Retries:     os.Getenv(RetriesVariable),
	})
}

// Start serves the function and does not return. A wrong configuration is logged, and fails every invocation.
func Start() {
	slog.SetDefault(lambdacontext.NewLogger())
	sender, err := FromEnv(context.Background())
	if err != nil {
		slog.Error("the function cannot work", "code", runlane.CodeOf(err), "error", err)
	}
	lambda.Start(func(ctx context.Context, event json.RawMessage) (events.SQSEventResponse, error) {
		if err != nil {
			return events.SQSEventResponse{}, err
		}
		return sender.Handle(ctx, event)
	})
}

func invalid(message, hint string) error {
	return &runlane.Error{Code: runlane.ErrConfigurationInvalid, Message: message, Hint: hint}
}
