package dynamostore_test

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/dynamostore"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/memlane"
)

// Package awslane composes storage and transport on AWS. New is for another pair: here runs are durable in DynamoDB and wakeups
// stay in this process, so that one worker needs no SQS.
func ExampleNew() {
	ctx := context.Background()
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		panic(err)
	}
	storage := dynamostore.New(dynamodb.NewFromConfig(cfg), "runs", &dynamostore.Options{})
	l, err := lane.New(storage, memlane.NewTransport(nil), nil)
	if err != nil {
		panic(err)
	}
	rt, err := core.Open(ctx, l, nil)
	if err != nil {
		panic(err)
	}
	defer func() { _ = rt.Close(ctx) }()
}

// A meter tells what a few calls cost. Usage is what was added since.
func ExampleWithMeter() {
	trigger := func(ctx context.Context, rt *core.Runtime, call runlane.Call) {
		var meter dynamostore.Meter
		before := meter.Stats()
		if _, err := rt.Trigger(dynamostore.WithMeter(ctx, &meter), call, nil); err != nil {
			panic(err)
		}
		spent := meter.Stats().Minus(before.Usage)
		fmt.Println(spent.WriteUnits, "write units in", spent.Requests, "requests")
	}
	_ = trigger
}
