package eventsource_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/runlane/runlane-go/functions/eventsource"
)

func TestStream_PartialFailure_IsRepeatedFromTheFailedRecord(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var calls [][]string
		s := (&fakeShard{id: "s"}).insert(1, 2, 3, 4, 5)
		follow(t, newFakeStream(s), &eventsource.StreamOptions{BatchSize: 4}, time.Minute, func(
			_ context.Context, e events.DynamoDBEvent,
		) (events.DynamoDBEventResponse, error) {
			calls = append(calls, sequences(e))
			switch len(calls) {
			case 1:
				return events.DynamoDBEventResponse{BatchItemFailures: []events.DynamoDBBatchItemFailure{{ItemIdentifier: "4"}, {ItemIdentifier: "3"}}}, nil
			case 2:
				return failed("not in the batch"), nil
			case 3:
				return events.DynamoDBEventResponse{}, errScripted
			default:
				return events.DynamoDBEventResponse{}, nil
			}
		})
		equal(t, "calls", calls, [][]string{{"1", "2", "3", "4"}, {"3", "4"}, {"3", "4"}, {"3", "4"}, {"5"}})
	})
}

func TestStream_BatchWithoutProgress_IsLeftAfterItsRetries(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		s := (&fakeShard{id: "s"}).insert(1)
		follow(t, newFakeStream(s), &eventsource.StreamOptions{MaxRetries: 3}, 5*time.Minute, func(
			_ context.Context, e events.DynamoDBEvent,
		) (events.DynamoDBEventResponse, error) {
			calls++
			return failed("1"), nil
		})
		equal(t, "calls", calls, 4)
	})
}

func TestStream_Faults_LoseAndRepeatNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := (&fakeShard{id: "s"}).insert(1, 2)
		f := newFakeStream(s)
		f.describe = 3
		faults := []error{errScripted, &types.ExpiredIteratorException{}, errScripted, &types.ExpiredIteratorException{}}
		f.onRead = func(_ string, position int) error {
			if position == 2 && len(faults) > 0 {
				err := faults[0]
				faults = faults[1:]
				if len(faults) == 2 {
					s.insert(3)
				}
				return err
			}
			return nil
		}
		startFaults := 1
		f.onStart = func(*dynamodbstreams.GetShardIteratorInput) error {
			if startFaults > 0 {
				startFaults--
				return errScripted
			}
			return nil
		}
		var got collected
		follow(t, f, nil, time.Minute, got.handle)
		equal(t, "records", got.all(), []string{"1", "2", "3"})
		equal(t, "iterators", f.starts["s"], []string{"TRIM_HORIZON", "TRIM_HORIZON", "AFTER_SEQUENCE_NUMBER", "AFTER_SEQUENCE_NUMBER"})
	})
}

func TestStream_TrimmedRecords_GoesOnWithTheOldest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFakeStream((&fakeShard{id: "s"}).insert(1))
		trimmed := false
		f.onRead = func(string, int) error {
			if !trimmed {
				trimmed = true
				return &types.TrimmedDataAccessException{}
			}
			return nil
		}
		var got collected
		follow(t, f, nil, 5*time.Second, got.handle)
		equal(t, "records", got.all(), []string{"1"})
	})
}

func TestStream_ShardIsGone_OthersGoOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFakeStream((&fakeShard{id: "gone"}).insert(1), (&fakeShard{id: "child", parent: "gone"}).insert(2))
		f.onStart = func(in *dynamodbstreams.GetShardIteratorInput) error {
			if *in.ShardId == "gone" {
				return &types.ResourceNotFoundException{}
			}
			return nil
		}
		var got collected
		follow(t, f, nil, 5*time.Second, got.handle)
		equal(t, "records", got.all(), []string{"2"})
	})
}
