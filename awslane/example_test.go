package awslane_test

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/awslane"
	"github.com/runlane/runlane-go/core"
)

// RUNLANE_TABLE, RUNLANE_QUEUES, RUNLANE_ENV and AWS's own variables say where the lane is: the stack's output Variables is one
// line for export.
func ExampleFromEnv() {
	ctx := context.Background()
	l, err := awslane.FromEnv(ctx)
	if err != nil {
		panic(err) // names the variable and what to set it to
	}
	rt, err := core.Open(ctx, l, nil) // the first requests
	if err != nil {
		panic(err)
	}
	defer func() { _ = rt.Close(ctx) }()
}

// New is for programs that configure themselves.
func ExampleNew() {
	cfg, err := config.LoadDefaultConfig(context.Background(), config.WithRegion("eu-west-1"))
	if err != nil {
		panic(err)
	}
	l, err := awslane.New(cfg, awslane.Options{
		Environment: "staging",
		Table:       "runs",
		Queues:      map[runlane.QueueName]string{"mail": "https://sqs.eu-west-1.amazonaws.com/123456789012/mail"},
	})
	if err != nil {
		panic(err)
	}
	fmt.Println(l.Name, l.Environment, l.Transport.Queues())
	// Output: aws staging [mail]
}

// Tune is for clients of a handler's own, which then behave like those of the lane.
func ExampleTune() {
	cfg := awslane.Tune(aws.Config{Region: "eu-west-1"})
	fmt.Println(cfg.Retryer().MaxAttempts(), "attempts")
	// Output: 4 attempts
}

// Config is for a client of another service, which finds its account and Region as the lane does.
func ExampleConfig() {
	cfg, err := awslane.Config(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(cfg.Retryer().MaxAttempts(), "attempts")
	// Output: 4 attempts
}
