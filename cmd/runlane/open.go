package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/awslane"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/dynamostore"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/memlane"
	"github.com/runlane/runlane-go/sealed"
	"github.com/runlane/runlane-go/sqlitelane"
)

// limitsVariable sets the concurrency limit of queues for a program without tasks. Core never guesses it.
const limitsVariable = "RUNLANE_LIMITS"

func open(ctx context.Context) (*core.Runtime, error) {
	queues, err := parseLimits(os.Getenv(limitsVariable))
	if err != nil {
		return nil, err
	}
	codec, err := sealed.FromEnv(nil)
	if err != nil {
		return nil, err
	}
	tokenKeys, err := core.TokenKeysFromEnv()
	if err != nil {
		return nil, err
	}
	l, err := lane.Open(ctx, cmp.Or(os.Getenv(lane.Variable), onAWS.Name+":"), sqlitelane.Scheme, onAWS, memlane.Scheme)
	if err != nil {
		return nil, err
	}
	if _, alone := l.Transport.(unbound); alone {
		queues = nil // core requires a binding for each queue in its options
	}
	return core.Open(ctx, l, &core.Options{Codec: codec, Queues: queues, TokenKeys: tokenKeys})
}

// onAWS is awslane's scheme, but allows a lane without queues, which cannot send wakeups: most commands only read.
var onAWS = lane.Scheme{Name: awslane.Scheme.Name, Form: awslane.Scheme.Form, Open: openAWS}

func openAWS(ctx context.Context, table string) (*lane.Lane, error) {
	table = cmp.Or(table, os.Getenv(awslane.TableVariable))
	if table == "" {
		hint := "give --lane sqlite:PATH for a file or --table NAME for a deployment, or set the variable" +
			"; or start \"runlane dev\" in your project's folder, and repeat this there"
		return nil, invalid(
			"no lane is chosen: neither "+lane.Variable+" nor "+awslane.TableVariable+" is set", hint, nil)
	}
	environment := runlane.Environment(os.Getenv(awslane.EnvironmentVariable))
	if err := environment.Validate(); err != nil {
		return nil, invalid("--env is not a valid name of an environment", "use printable text without ':'", err)
	}
	cfg, err := loadConfig(ctx)
	if err != nil {
		return nil, err
	}
	if bindings := os.Getenv(awslane.QueuesVariable); bindings != "" {
		queues, err := awslane.ParseQueues(bindings)
		if err != nil {
			return nil, err
		}
		return awslane.New(cfg, awslane.Options{Environment: environment, Table: table, Queues: queues})
	}
	client := dynamodb.NewFromConfig(awslane.Tune(cfg), func(o *dynamodb.Options) {
		// Emulators send no checksum with errors, and the SDK would log a warning for each. AWS always does.
		o.DisableValidateResponseChecksum = o.DisableValidateResponseChecksum || o.BaseEndpoint != nil
	})
	return lane.New(dynamostore.New(client, table, nil), unbound{}, &lane.Options{
		Environment: environment, Name: "aws, no queue bound", ProductionDurable: true,
	})
}

// loadConfig reads AWS's variables and files. It retrieves credentials at once, since missing ones would later look
// like an outage.
func loadConfig(ctx context.Context) (aws.Config, error) {
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return cfg, invalid(
			"the configuration of AWS cannot be read",
			"check the variables AWS_*, --profile and the shared configuration files",
			err,
		)
	}
	if cfg.Region == "" {
		return cfg, invalid(
			"no AWS region is configured",
			"give --region, or set AWS_REGION; with a local endpoint any region will do",
			nil,
		)
	}
	if _, err := cfg.Credentials.Retrieve(ctx); err != nil && ctx.Err() == nil {
		return cfg, &runlane.Error{
			Code:    runlane.ErrStorageUnavailable,
			Message: "there are no usable AWS credentials",
			Cause:   err,
			Hint: "give --profile NAME, log in again if its session is over, or set AWS_ACCESS_KEY_ID and " +
				"AWS_SECRET_ACCESS_KEY",
		}
	}
	return cfg, nil
}

func parseLimits(text string) ([]runlane.Queue, error) {
	var queues []runlane.Queue
	for pair := range strings.SplitSeq(text, ",") {
		if pair = strings.TrimSpace(pair); pair == "" {
			continue
		}
		name, number, _ := strings.Cut(pair, "=")
		limit, err := strconv.Atoi(strings.TrimSpace(number))
		if err != nil || limit < 0 {
			return nil, invalid(
				fmt.Sprintf("%s: %q is not name=number", limitsVariable, pair),
				"write name=number, with 0 for no limit",
				nil,
			)
		}
		queue := runlane.Queue{Name: runlane.QueueName(strings.TrimSpace(name)), Concurrency: limit}
		if err := queue.Validate(); err != nil {
			return nil, invalid(fmt.Sprintf("%s: %q is not a valid queue with its limit", limitsVariable, pair),
				fmt.Sprintf("name a queue, and a limit up to %d", runlane.MaxQueueConcurrency), err)
		}
		if slices.ContainsFunc(queues, func(q runlane.Queue) bool { return q.Name == queue.Name }) {
			return nil, invalid(
				fmt.Sprintf("%s names queue %q twice", limitsVariable, queue.Name),
				"give each queue one limit",
				nil,
			)
		}
		queues = append(queues, queue)
	}
	return queues, nil
}

// unbound is a transport without queues. Core refuses commands that need a queue before it writes anything. A wakeup
// that is only a side effect stays in the outbox for a publisher with queues.
type unbound struct{ lane.UnimplementedTransport }

// Capabilities promises durability: it accepts no wakeup, so it loses none.
func (unbound) Capabilities() lane.TransportCapabilities {
	return lane.TransportCapabilities{DurableDelivery: true}
}

func (unbound) Queues() []runlane.QueueName { return []runlane.QueueName{} }

// PublishWakeups refuses all wakeups, with a failure that is not the wakeup's fault.
func (unbound) PublishWakeups(_ context.Context, c *lane.PublishCommand) ([]lane.PublishOutcome, error) {
	outcomes := make([]lane.PublishOutcome, len(c.Attempts))
	for i := range outcomes {
		outcomes[i] = lane.PublishOutcome{
			Type:    lane.PublishFailed,
			Failure: runlane.NewFailure(runlane.ErrTransportUnavailable, "this program has no queue bound", nil),
		}
	}
	return outcomes, nil
}

func invalid(message, hint string, cause error) error {
	return &runlane.Error{Code: runlane.ErrConfigurationInvalid, Message: message, Hint: hint, Cause: cause}
}
