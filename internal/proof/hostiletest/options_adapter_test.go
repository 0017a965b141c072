package hostiletest_test

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/awslane"
	"github.com/runlane/runlane-go/dynamostore"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/memlane"
	"github.com/runlane/runlane-go/sqstransport"
)

const someQueue = "https://sqs.eu-west-1.amazonaws.com/123456789012/some"

// nowhere is a configuration whose clients would fail with any request.
var nowhere = aws.Config{Region: "eu-west-1"}

func pairing(what string, o lane.Options) refusal {
	return invalid(what, func(*world) []error {
		return []error{errorOf(lane.New(memlane.NewStorage(nil), memlane.NewTransport(nil), &o))}
	})
}

// embedding is a refusal by starting a transport in memory.
func embedding(what string, o memlane.TransportOptions) refusal {
	return invalid(what, func(w *world) []error { return []error{memlane.NewTransport(&o).Start(w.ctx(), lane.StartOptions{})} })
}

func sending(what string, o sqstransport.Options) refusal {
	return invalid(what, func(*world) []error {
		return []error{errorOf(sqstransport.New(sqs.NewFromConfig(nowhere), map[runlane.QueueName]string{"some": someQueue}, &o))}
	})
}

func storing(what string, o dynamostore.Options) refusal {
	return invalid(what, func(w *world) []error {
		return []error{dynamostore.New(dynamodb.NewFromConfig(nowhere), "table", &o).Start(w.ctx())}
	})
}

func composing(what string, change func(o *awslane.Options)) refusal {
	return invalid(what, func(*world) []error {
		o := awslane.Options{Table: "table", Queues: map[runlane.QueueName]string{"some": someQueue}}
		change(&o)
		return []error{errorOf(awslane.New(nowhere, o))}
	})
}

func adapterRules() map[string]rule {
	return map[string]rule{
		"lane.StartOptions.Environment":  legal("core checks it before"),
		"lane.StartOptions.Logger":       legal("any logger"),
		"lane.Options.Bodies":            refuses(pairing("no store", lane.Options{Bodies: &lane.Bodies{Above: lane.MinBodiesAbove}})),
		"lane.Options.Environment":       refuses(pairing("a colon", lane.Options{Environment: colon})),
		"lane.Options.Name":              legal("for diagnostics alone"),
		"lane.Options.NoOperatorReads":   legal("both are meant"),
		"lane.Options.ProductionDurable": refuses(pairing("of halves that are not", lane.Options{ProductionDurable: true})),

		"memlane.StorageOptions.Now":        legal("nil is the real one, every other function is the caller's"),
		"memlane.TransportOptions.HandBack": refuses(embedding("negative", memlane.TransportOptions{HandBack: -1})),
		"memlane.TransportOptions.MaxDelay": refuses(embedding("negative", memlane.TransportOptions{MaxDelay: -1})),
		"memlane.TransportOptions.Queues":   refuses(embedding("a colon", memlane.TransportOptions{Queues: []runlane.QueueName{colon}})),

		"dynamostore.Options.Now":            legal("nil is the real one, every other function is the caller's"),
		"dynamostore.Options.RequestTimeout": refuses(storing("negative", dynamostore.Options{RequestTimeout: -1})),

		"sqstransport.Options.Fair":    legal("both are meant"),
		"sqstransport.Options.Logger":  legal("nil is the default; every other one is the caller's"),
		"sqstransport.Options.Timeout": refuses(sending("negative", sqstransport.Options{Timeout: -1})),
		"sqstransport.Options.Visibility": refuses(
			sending("too short", sqstransport.Options{Visibility: time.Second}), sending("too long", sqstransport.Options{Visibility: 13 * time.Hour}),
			sending("a part of a second", sqstransport.Options{Visibility: 90*time.Second + time.Millisecond}),
		),

		"awslane.Options.Bodies":      legal("S3 refuses a name that is none, at the first large body; doctor tells it before"),
		"awslane.Options.Environment": refuses(composing("a colon", func(o *awslane.Options) { o.Environment = colon })),
		"awslane.Options.EventQueues": refuses(
			composing("one", func(o *awslane.Options) { o.EventQueues = []string{someQueue} }),
			composing("no URL", func(o *awslane.Options) { o.EventQueues = []string{someQueue, "some"} }),
		),
		"awslane.Options.Fair":      legal("both are meant"),
		"awslane.Options.Throttled": legal("nil counts nothing"),
		"awslane.Options.Logger":    legal("nil is the default; every other one is the caller's"),
		"awslane.Options.Queues": refuses(
			composing("none", func(o *awslane.Options) { o.Queues = nil }).as("queue"),
			composing("a colon", func(o *awslane.Options) { o.Queues = map[runlane.QueueName]string{colon: someQueue} }).as("queue"),
			composing("no URL", func(o *awslane.Options) { o.Queues = map[runlane.QueueName]string{"some": "some"} }).as("queue"),
		),
		"awslane.Options.Table": refuses(composing("none", func(o *awslane.Options) { o.Table = "" })),
	}
}
