package dynamostore_test

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

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

// A seat is booked and the mail triggered, or neither.
func ExampleWrites() {
	sendTicket := runlane.NewTask[string]("tickets.send", nil)
	book := func(ctx context.Context, rt *core.Runtime, booking string, seat map[string]types.AttributeValue) error {
		_, err := rt.Trigger(ctx, sendTicket.With(booking), &runlane.TriggerOptions{
			IdempotencyKey: booking, // a repeated request makes no second booking
			Writes: dynamostore.Writes{{Put: &types.Put{
				TableName:           aws.String("seats"),
				Item:                seat,
				ConditionExpression: aws.String("attribute_not_exists(pk)"),
			}}},
		})
		if errors.Is(err, runlane.ConflictWrites) {
			return errors.New("somebody else has the seat")
		}
		return err
	}
	_ = book
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
