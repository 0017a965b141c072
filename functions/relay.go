package functions

import (
	"context"
	"log/slog"

	"github.com/aws/aws-lambda-go/events"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/dynamostore"
	"github.com/runlane/runlane-go/internal/streamimage"
)

// Relay publishes the wakeups that a commit's writer left to other publishers: rows that start pending, found in the
// table's stream. It claims them like any publisher, so repeated, late or unordered records do no harm. It leaves
// records of other environments, and unreadable ones, to the tick.
//
// If publishing fails, the first record with rows is the batch item failure. The error is always nil.
func Relay(rt *core.Runtime) func(context.Context, events.DynamoDBEvent) (events.DynamoDBEventResponse, error) {
	return func(ctx context.Context, event events.DynamoDBEvent) (events.DynamoDBEventResponse, error) {
		response := events.DynamoDBEventResponse{BatchItemFailures: []events.DynamoDBBatchItemFailure{}}
		var ids []string
		first := ""
		for i := range event.Records {
			record := &event.Records[i]
			pending := pendingRows(ctx, rt, record)
			if len(pending) > 0 && len(ids) == 0 {
				first = record.Change.SequenceNumber
			}
			ids = append(ids, pending...)
		}
		if len(ids) == 0 {
			return response, nil
		}
		ctx, end := rt.Trace(ctx, core.Work{Kind: core.WorkInvocation, Name: RoleRelay, Count: len(ids)})
		result, err := rt.PublishWakeups(ctx, ids)
		end(core.WorkEnd{Failed: result.Failed, Err: err})
		if err != nil {
			slog.WarnContext(
				ctx, "the relay could not publish every wakeup", "done", result.Done, "skipped", result.Skipped,
				"failed", result.Failed, "code", runlane.CodeOf(err), "error", err,
			)
			response.BatchItemFailures = append(response.BatchItemFailures, events.DynamoDBBatchItemFailure{
				ItemIdentifier: first,
			})
		}
		return response, nil
	}
}

func pendingRows(ctx context.Context, rt *core.Runtime, record *events.DynamoDBEventRecord) []string {
	if record.EventName != string(events.DynamoDBOperationTypeInsert) {
		return nil
	}
	parsed, err := dynamostore.ParseStreamImage(streamimage.Item(record.Change.NewImage))
	if err != nil {
		slog.ErrorContext(
			ctx,
			"a stream record cannot be read and is left to the tick",
			"sequence_number",
			record.Change.SequenceNumber,
			"code",
			runlane.CodeOf(err),
			"error",
			err,
		)
		return nil
	}
	if parsed.Environment.Name() != rt.Environment().Name() {
		return nil
	}
	return parsed.OutboxIDs
}
