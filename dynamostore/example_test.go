package dynamostore_test

import (
	"context"

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

// What a few calls cost is the difference of two readings.
func ExampleUsage_Minus() {
	cost := func(ctx context.Context, storage *dynamostore.Store, rt *core.Runtime, call runlane.Call) dynamostore.Usage {
		before := storage.Stats()
		if _, err := rt.Trigger(ctx, call, nil); err != nil {
			panic(err)
		}
		return storage.Stats().Minus(before.Usage)
	}
	_ = cost
}
