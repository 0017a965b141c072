package eventsource

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
)

func (s *stream) read(ctx context.Context, sh *shard) {
	var iterator *string
	failures := 0
	for ctx.Err() == nil {
		if iterator == nil {
			var gone bool
			var err error
			if iterator, gone, err = s.iterator(ctx, sh); gone {
				s.finish(sh)
				return
			} else if err != nil {
				failures++
				s.logFault(ctx, sh, failures, err)
				continue
			}
		}
		records, next, err := s.records(ctx, iterator)
		if err != nil {
			failures++
			switch { // after other errors the iterator is still good, and a new LATEST one would skip records
			case isAny[*types.TrimmedDataAccessException](err):
				sh.start, sh.sequence, iterator = types.ShardIteratorTypeTrimHorizon, "", nil // the oldest record left
			case isAny[*types.ExpiredIteratorException](err):
				iterator = nil
			}
			s.logFault(ctx, sh, failures, err)
			continue
		}
		failures = 0
		if !s.handle(ctx, sh, records) {
			return
		}
		if next == nil {
			s.finish(sh)
			return
		}
		iterator = next
		if len(records) == 0 {
			sleep(ctx, s.options.Poll)
		}
	}
}

func (s *stream) logFault(ctx context.Context, sh *shard, failures int, err error) {
	if ctx.Err() != nil {
		return
	}
	s.logger.Warn("cannot read a shard", "stream_arn", s.arn, "shard_id", sh.id, "error", err)
	pause(ctx, failures)
}

// iterator continues after the last handled record. gone: the service no longer has the shard.
func (s *stream) iterator(ctx context.Context, sh *shard) (iterator *string, gone bool, err error) {
	in := &dynamodbstreams.GetShardIteratorInput{
		StreamArn:         aws.String(s.arn),
		ShardId:           aws.String(sh.id),
		ShardIteratorType: sh.start,
	}
	if sh.sequence != "" {
		in.ShardIteratorType, in.SequenceNumber = types.ShardIteratorTypeAfterSequenceNumber, aws.String(sh.sequence)
	}
	request, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	out, err := s.client.GetShardIterator(request, in)
	if isAny[*types.ResourceNotFoundException](err) {
		return nil, true, nil
	}
	if err != nil {
		if isAny[*types.TrimmedDataAccessException](err) {
			sh.start, sh.sequence = types.ShardIteratorTypeTrimHorizon, ""
		}
		return nil, false, err
	}
	return out.ShardIterator, out.ShardIterator == nil, nil
}

func (s *stream) records(ctx context.Context, iterator *string) ([]types.Record, *string, error) {
	request, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	out, err := s.client.GetRecords(request, &dynamodbstreams.GetRecordsInput{ShardIterator: iterator})
	if err != nil {
		return nil, nil, err
	}
	return out.Records, out.NextShardIterator, nil
}

// handle filters the records and invokes the handler with batches of them. It returns false if ctx ended before that
// was done.
func (s *stream) handle(ctx context.Context, sh *shard, records []types.Record) bool {
	var batch []events.DynamoDBEventRecord
	for i := range records {
		if !s.options.Filter(&records[i]) {
			continue
		}
		batch = append(batch, s.event(&records[i]))
		if len(batch) == s.options.BatchSize {
			if !s.invoke(ctx, sh, batch) {
				return false
			}
			batch = nil
		}
	}
	if len(batch) > 0 && !s.invoke(ctx, sh, batch) {
		return false
	}
	if len(records) > 0 {
		sh.sequence = sequenceOf(&records[len(records)-1])
	}
	return true
}

// invoke repeats a batch from its first failed record until all are done, or too many tries made no progress.
func (s *stream) invoke(ctx context.Context, sh *shard, batch []events.DynamoDBEventRecord) bool {
	for failures := 0; ; {
		call, cancel := invocation(ctx, s.options.Timeout)
		response, err := s.handler(call, events.DynamoDBEvent{Records: batch})
		cancel()
		first := firstFailed(batch, response)
		if err != nil {
			first = 0
		}
		if first > 0 {
			failures = 0
		}
		batch = batch[first:]
		if len(batch) == 0 {
			return true
		}
		failures++
		if failures > s.options.MaxRetries {
			s.logger.Error("records are left unhandled after too many retries", "stream_arn", s.arn, "shard_id", sh.id,
				"sequence_number", batch[0].Change.SequenceNumber, "count", len(batch), "error", err)
			return true
		}
		if !pause(ctx, failures) {
			return false
		}
	}
}

// firstFailed is the index of the lowest reported record, 0 for an unknown one, or len(batch) without a report.
func firstFailed(batch []events.DynamoDBEventRecord, response events.DynamoDBEventResponse) int {
	first := len(batch)
	for _, f := range response.BatchItemFailures {
		at := 0
		for i := range batch {
			if batch[i].Change.SequenceNumber == f.ItemIdentifier {
				at = i
				break
			}
		}
		first = min(first, at)
	}
	return first
}

// forRelay is the filter of the relay's mapping.
func forRelay(r *types.Record) bool {
	if r.EventName != types.OperationTypeInsert || r.Dynamodb == nil {
		return false
	}
	mark, ok := r.Dynamodb.NewImage["relay"].(*types.AttributeValueMemberS)
	return ok && mark.Value == "1"
}

func sequenceOf(r *types.Record) string {
	if r.Dynamodb == nil {
		return ""
	}
	return aws.ToString(r.Dynamodb.SequenceNumber)
}

func (s *stream) event(r *types.Record) events.DynamoDBEventRecord {
	region := aws.ToString(r.AwsRegion)
	if parts := strings.Split(s.arn, ":"); region == "" && len(parts) > 3 {
		region = parts[3]
	}
	change := r.Dynamodb
	return events.DynamoDBEventRecord{
		AWSRegion:      region,
		EventID:        aws.ToString(r.EventID),
		EventName:      string(r.EventName),
		EventSource:    "aws:dynamodb",
		EventVersion:   aws.ToString(r.EventVersion),
		EventSourceArn: s.arn,
		Change: events.DynamoDBStreamRecord{
			ApproximateCreationDateTime: events.SecondsEpochTime{Time: timeOf(change.ApproximateCreationDateTime)},
			Keys:                        attributeMap(change.Keys),
			NewImage:                    attributeMap(change.NewImage),
			OldImage:                    attributeMap(change.OldImage),
			SequenceNumber:              aws.ToString(change.SequenceNumber),
			SizeBytes:                   aws.ToInt64(change.SizeBytes),
			StreamViewType:              string(change.StreamViewType),
		},
	}
}

func timeOf(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}

func isAny[T error](err error) bool {
	_, ok := errors.AsType[T](err)
	return ok
}
