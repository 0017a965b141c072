// Package awslane combines the storage on DynamoDB and the transport on SQS into one lane. [FromEnv] reads the
// deployment template's variables; [New] takes them from the program.
package awslane

import (
	"cmp"
	"context"
	"log/slog"
	"os"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/awslane/s3bodies"
	"github.com/runlane/runlane-go/dynamostore"
	"github.com/runlane/runlane-go/internal/host"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/sqstransport"
)

// The environment variables of [FromEnv], in addition to AWS's own (region, credentials, AWS_ENDPOINT_URL).
const (
	// EnvironmentVariable has the environment. Unset means runlane.DefaultEnvironment.
	EnvironmentVariable = "RUNLANE_ENV"
	// TableVariable has the name of the DynamoDB table.
	TableVariable = "RUNLANE_TABLE"
	// QueuesVariable binds queues: comma-separated name=url pairs.
	QueuesVariable = "RUNLANE_QUEUES"
	// BodiesVariable has the name of a bucket for large bodies. Unset means that DynamoDB holds them, or refuses them.
	BodiesVariable = "RUNLANE_BODIES_BUCKET"
)

// Options of [New].
type Options struct {
	// Bodies is the bucket for payloads, outputs, results of steps and signals of more than 64 KiB. "" means none. Every
	// process of the environment needs the same.
	Bodies string
	// Environment of runtimes on this lane that set none. "" means runlane.DefaultEnvironment.
	Environment runlane.Environment
	// EventQueues are the URLs of the queues of events that a bus refused: of those to be sent again, and of those given
	// up. doctor counts them. nil means that doctor does not look.
	EventQueues []string
	// Fair prevents tenants with many runs from delaying others on standard queues: see sqstransport.Options.
	Fair bool
	// Logger of the transport. nil means the runtime's.
	Logger *slog.Logger
	// Queues binds each queue to the URL of an SQS queue. Required.
	Queues map[runlane.QueueName]string
	// Table is the DynamoDB table. Required.
	Table string
	// Throttled is called concurrently, for each request that AWS throttled, also if a retry succeeds. May be nil.
	Throttled func()
}

// New builds the lane, named "aws" and production durable, with its own clients. It makes no request; opening a runtime
// does. Options or bindings that cannot work are runlane.ErrConfigurationInvalid.
//
// If cfg has no HTTP client or retryer, the clients get ones suited to Lambda: see [Tune].
func New(cfg aws.Config, options Options) (*lane.Lane, error) {
	if options.Table == "" {
		return nil, invalid("the lane has no table", "set "+TableVariable+" to the name of the DynamoDB table")
	}
	if cfg.Region == "" {
		return nil, invalid(
			"no AWS region is configured",
			"set AWS_REGION; with a local endpoint any region will do, like us-east-1",
		)
	}
	cfg = Tune(cfg)
	if options.Throttled != nil {
		cfg.APIOptions = append(slices.Clone(cfg.APIOptions), countThrottles(options.Throttled))
	}
	queues := sqs.NewFromConfig(cfg)
	transport, err := sqstransport.New(queues, options.Queues,
		&sqstransport.Options{Fair: options.Fair, Logger: options.Logger})
	if err != nil {
		return nil, err
	}
	watching, err := watchEvents(transport, queues, options.EventQueues)
	if err != nil {
		return nil, err
	}
	client := dynamodb.NewFromConfig(cfg, func(o *dynamodb.Options) {
		// Emulators send no checksum with errors, and the SDK would log a warning for each. AWS always sends one.
		o.DisableValidateResponseChecksum = o.DisableValidateResponseChecksum || o.BaseEndpoint != nil
	})
	var bodies *lane.Bodies
	if options.Bodies != "" {
		bodies = &lane.Bodies{Store: s3bodies.New(bucketClient(cfg), options.Bodies), Above: s3bodies.Above}
	}
	return lane.New(dynamostore.New(client, options.Table, nil), watching, &lane.Options{
		Bodies: bodies, Environment: options.Environment, Name: "aws", ProductionDurable: true,
	})
}

// bucketClient is for a bucket of AWS, or one of an emulator, which has its buckets behind one name.
func bucketClient(cfg aws.Config) *s3.Client {
	return s3.NewFromConfig(cfg, func(o *s3.Options) {
		o.UsePathStyle = o.BaseEndpoint != nil
		o.DisableLogOutputChecksumValidationSkipped = true // core checks the hash
	})
}

// FromEnv reads RUNLANE_ENV, RUNLANE_TABLE, RUNLANE_QUEUES, RUNLANE_BODIES_BUCKET, RUNLANE_EVENT_QUEUES and AWS's
// variables and files. It makes no request. A
// missing or wrong value is runlane.ErrConfigurationInvalid, with the variable and how to set it.
//
// Programs built with the tag lambda.norpc, like functions, read only the variables that Lambda sets: keys, region,
// endpoints and retries. A variable that needs more, like AWS_PROFILE, is an error there.
func FromEnv(ctx context.Context) (*lane.Lane, error) { return fromEnv(ctx, os.Getenv(TableVariable)) }

// Scheme opens "aws:", which is [FromEnv], and "aws:TABLE", which uses TABLE instead of RUNLANE_TABLE. Errors are
// FromEnv's.
var Scheme = lane.Scheme{
	Name: "aws",
	Form: "aws:",
	Open: func(ctx context.Context, table string) (*lane.Lane, error) {
		return fromEnv(ctx, cmp.Or(table, os.Getenv(TableVariable)))
	},
}

// Config is the AWS configuration of [FromEnv], tuned by [Tune], for clients of other services. Errors are the SDK's,
// and runlane.ErrConfigurationInvalid for unreadable certificates.
func Config(ctx context.Context) (aws.Config, error) {
	cfg, err := configure(ctx)
	if err != nil {
		return aws.Config{}, err
	}
	return Tune(cfg), nil
}

func fromEnv(ctx context.Context, table string) (*lane.Lane, error) {
	environment := runlane.Environment(os.Getenv(EnvironmentVariable))
	if err := environment.Validate(); err != nil {
		return nil, &runlane.Error{
			Code:    runlane.ErrConfigurationInvalid,
			Message: EnvironmentVariable + " is no environment name",
			Hint:    "use printable text without ':', or leave it unset for " + string(runlane.DefaultEnvironment),
			Cause:   err,
		}
	}
	if table == "" {
		return nil, invalid(TableVariable+" is not set", "set it to the name of the DynamoDB table")
	}
	queues, err := ParseQueues(os.Getenv(QueuesVariable))
	if err != nil {
		return nil, err
	}
	cfg, err := configure(ctx)
	if runlane.CodeOf(err) != "" {
		return nil, err
	}
	if err != nil {
		return nil, &runlane.Error{
			Code:    runlane.ErrConfigurationInvalid,
			Message: "the configuration of AWS cannot be read",
			Hint:    "check the variables AWS_* and the shared configuration files",
			Cause:   err,
		}
	}
	return New(cfg, Options{
		Bodies:      os.Getenv(BodiesVariable),
		Environment: environment,
		Table:       table,
		Queues:      queues,
		EventQueues: splitURLs(os.Getenv(EventQueuesVariable)),
		Throttled:   host.Of(ctx).Throttled,
	})
}

func invalid(message, hint string) error {
	return &runlane.Error{Code: runlane.ErrConfigurationInvalid, Message: message, Hint: hint}
}
