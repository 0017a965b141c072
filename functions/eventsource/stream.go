package eventsource

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
)

// Defaults of [StreamOptions].
const (
	// DefaultStreamBatchSize is Lambda's default for streams.
	DefaultStreamBatchSize = 100
	// DefaultPoll is how often Lambda reads a shard.
	DefaultPoll = 250 * time.Millisecond
	// DefaultDiscover is how often Stream looks for new shards. It also looks when a shard ends.
	DefaultDiscover = 10 * time.Second
	// DefaultMaxRetries is how often a batch without progress is repeated.
	DefaultMaxRetries = 10
)

// StreamAPI is the part of the DynamoDB Streams client that [Stream] uses; *dynamodbstreams.Client implements it.
type StreamAPI interface {
	DescribeStream(context.Context, *dynamodbstreams.DescribeStreamInput, ...func(*dynamodbstreams.Options)) (
		*dynamodbstreams.DescribeStreamOutput, error)
	GetShardIterator(context.Context, *dynamodbstreams.GetShardIteratorInput, ...func(*dynamodbstreams.Options)) (
		*dynamodbstreams.GetShardIteratorOutput, error)
	GetRecords(context.Context, *dynamodbstreams.GetRecordsInput, ...func(*dynamodbstreams.Options)) (
		*dynamodbstreams.GetRecordsOutput, error)
}

// StreamHandler is the type of functions.Relay's result.
type StreamHandler = func(context.Context, events.DynamoDBEvent) (events.DynamoDBEventResponse, error)

// StreamOptions of [Stream]. nil means the defaults.
type StreamOptions struct {
	// BatchSize is the most records an invocation gets. 0 means DefaultStreamBatchSize.
	BatchSize int
	// Discover is how often Stream looks for new shards. 0 means DefaultDiscover.
	Discover time.Duration
	// Filter selects the records for the handler. nil means those for the relay.
	Filter func(*types.Record) bool
	// Latest starts with records written from now on. By default Stream reads everything that the stream still has.
	Latest bool
	// Logger defaults to slog.Default().
	Logger *slog.Logger
	// MaxRetries is how often a batch without progress is repeated before it is logged and skipped. 0 means
	// DefaultMaxRetries.
	MaxRetries int
	// Poll is how often a shard without new records is read. 0 means DefaultPoll.
	Poll time.Duration
	// Timeout of an invocation. 0 means DefaultTimeout.
	Timeout time.Duration
}

// Stream reads all shards of the stream, children after their parents, and invokes handler with the records of the
// filter. Those for the relay are INSERT of an item with "1" in its attribute relay. Each shard's records arrive in order, one invocation at a
// time. A batch is repeated from the first record that the response reports as failed, or as a whole after an error.
// Failures of the service are logged and retried.
//
// When ctx ends, Stream waits for running invocations and returns nil. Options out of range are
// runlane.ErrConfigurationInvalid.
func Stream(
	ctx context.Context, client StreamAPI, streamARN string, options *StreamOptions, handler StreamHandler,
) error {
	var o StreamOptions
	if options != nil {
		o = *options
	}
	if o.BatchSize < 0 || o.Discover < 0 || o.MaxRetries < 0 || o.Poll < 0 || o.Timeout < 0 {
		return invalid(fmt.Sprintf("a stream option is negative: %+v", o), "use 0 for the defaults")
	}
	o.BatchSize = orDefault(o.BatchSize, DefaultStreamBatchSize)
	o.Discover = orDefault(o.Discover, DefaultDiscover)
	o.MaxRetries = orDefault(o.MaxRetries, DefaultMaxRetries)
	o.Poll = orDefault(o.Poll, DefaultPoll)
	o.Timeout = orDefault(o.Timeout, DefaultTimeout)
	if o.Filter == nil {
		o.Filter = forRelay
	}
	s := &stream{
		client:  client,
		arn:     streamARN,
		options: o,
		logger:  loggerOr(o.Logger),
		handler: handler,
		shards:  map[string]*shard{},
		ended:   make(chan struct{}, 1),
	}
	s.run(ctx)
	return nil
}

func orDefault[T int | time.Duration](value, fallback T) T {
	if value == 0 {
		return fallback
	}
	return value
}

type stream struct {
	client  StreamAPI
	arn     string
	options StreamOptions
	logger  *slog.Logger
	handler StreamHandler
	readers sync.WaitGroup
	ended   chan struct{} // a shard was read to its end

	mu     sync.Mutex
	shards map[string]*shard // by ID, current and past ones
}

type shard struct {
	id       string
	start    types.ShardIteratorType
	sequence string // of the last record that was handled or filtered out
	finished bool   // guarded by stream.mu
}

func (s *stream) run(ctx context.Context) {
	defer s.readers.Wait()
	start, failures := types.ShardIteratorTypeTrimHorizon, 0
	if s.options.Latest {
		start = types.ShardIteratorTypeLatest
	}
	for ctx.Err() == nil {
		found, err := s.describe(ctx)
		if err != nil {
			if ctx.Err() == nil {
				failures++
				s.logger.Warn("cannot describe the stream", "stream_arn", s.arn, "error", err)
				pause(ctx, failures)
			}
			continue
		}
		failures = 0
		s.startReaders(ctx, found, start)
		start = types.ShardIteratorTypeTrimHorizon // later shards have only new records
		timer := time.NewTimer(s.options.Discover)
		select {
		case <-ctx.Done():
		case <-s.ended:
		case <-timer.C:
		}
		timer.Stop()
	}
}

func (s *stream) describe(ctx context.Context) ([]types.Shard, error) {
	var found []types.Shard
	var after *string
	for {
		request, cancel := context.WithTimeout(ctx, requestTimeout)
		out, err := s.client.DescribeStream(request, &dynamodbstreams.DescribeStreamInput{
			StreamArn: aws.String(s.arn), ExclusiveStartShardId: after,
		})
		cancel()
		if err != nil {
			return nil, err
		}
		found = append(found, out.StreamDescription.Shards...)
		after = out.StreamDescription.LastEvaluatedShardId
		if after == nil {
			return found, nil
		}
	}
}

// startReaders starts a reader for each new shard with a parent that is read to its end or gone.
func (s *stream) startReaders(ctx context.Context, found []types.Shard, start types.ShardIteratorType) {
	s.mu.Lock()
	defer s.mu.Unlock()
	listed := make(map[string]bool, len(found))
	for i := range found {
		listed[aws.ToString(found[i].ShardId)] = true
	}
	for i := range found {
		id, parent := aws.ToString(found[i].ShardId), aws.ToString(found[i].ParentShardId)
		if s.shards[id] != nil {
			continue
		}
		closed := found[i].SequenceNumberRange != nil && found[i].SequenceNumberRange.EndingSequenceNumber != nil
		if start == types.ShardIteratorTypeLatest && closed {
			s.shards[id] = &shard{id: id, finished: true} // it gets no new records
			continue
		}
		unread := listed[parent] && (s.shards[parent] == nil || !s.shards[parent].finished)
		if parent != "" && unread && start != types.ShardIteratorTypeLatest {
			continue // checked again when a shard ends
		}
		sh := &shard{id: id, start: start}
		s.shards[id] = sh
		s.readers.Go(func() { s.read(ctx, sh) })
	}
	for id := range s.shards { // the service forgets shards after a day
		if !listed[id] && s.shards[id].finished {
			delete(s.shards, id)
		}
	}
}

func (s *stream) finish(sh *shard) {
	s.mu.Lock()
	sh.finished = true
	s.mu.Unlock()
	select {
	case s.ended <- struct{}{}:
	default: // a signal is already pending
	}
}
