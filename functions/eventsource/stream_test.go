package eventsource_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/functions/eventsource"
)

const streamARN = "arn:aws:dynamodb:eu-west-1:000000000000:table/runs/stream/2026"

// fakeStream keeps shards in memory. Iterators are "<shard>/<position>/<serial>".
type fakeStream struct {
	mu       sync.Mutex
	shards   []*fakeShard
	reads    int
	serial   int
	describe int                                                   // requests that fail first
	onRead   func(shard string, position int) (err error)          // a fault before the model answers
	starts   map[string][]string                                   // iterator types asked for, by shard
	onStart  func(in *dynamodbstreams.GetShardIteratorInput) error // a fault before the model answers
}

type fakeShard struct {
	id, parent string
	records    []types.Record
	closed     bool
}

func newFakeStream(shards ...*fakeShard) *fakeStream {
	return &fakeStream{shards: shards, starts: map[string][]string{}}
}

// insert adds records for the relay, numbered.
func (s *fakeShard) insert(numbers ...int) *fakeShard {
	for _, n := range numbers {
		s.records = append(s.records, record(n, types.OperationTypeInsert, "1"))
	}
	return s
}

func record(n int, event types.OperationType, relay string) types.Record {
	image := map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: fmt.Sprint("run-", n)}}
	if relay != "" {
		image["relay"] = &types.AttributeValueMemberS{Value: relay}
	}
	return types.Record{EventName: event, EventID: aws.String(fmt.Sprint("event-", n)), Dynamodb: &types.StreamRecord{
		SequenceNumber: aws.String(strconv.Itoa(n)), NewImage: image,
	}}
}

func (f *fakeStream) find(id string) *fakeShard {
	for _, s := range f.shards {
		if s.id == id {
			return s
		}
	}
	return nil
}

func (f *fakeStream) DescribeStream(
	_ context.Context, in *dynamodbstreams.DescribeStreamInput, _ ...func(*dynamodbstreams.Options),
) (*dynamodbstreams.DescribeStreamOutput, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.describe > 0 {
		f.describe--
		return nil, errScripted
	}
	at := 0
	for i, s := range f.shards {
		if in.ExclusiveStartShardId != nil && s.id == *in.ExclusiveStartShardId {
			at = i + 1
		}
	}
	description := &types.StreamDescription{}
	for _, s := range f.shards[at:min(at+1, len(f.shards))] { // one a page
		shard := types.Shard{ShardId: aws.String(s.id), SequenceNumberRange: &types.SequenceNumberRange{}}
		if s.parent != "" {
			shard.ParentShardId = aws.String(s.parent)
		}
		if s.closed {
			shard.SequenceNumberRange.EndingSequenceNumber = aws.String("9")
		}
		description.Shards = append(description.Shards, shard)
		if at+1 < len(f.shards) {
			description.LastEvaluatedShardId = aws.String(s.id)
		}
	}
	return &dynamodbstreams.DescribeStreamOutput{StreamDescription: description}, nil
}

func (f *fakeStream) GetShardIterator(
	_ context.Context, in *dynamodbstreams.GetShardIteratorInput, _ ...func(*dynamodbstreams.Options),
) (*dynamodbstreams.GetShardIteratorOutput, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.starts[*in.ShardId] = append(f.starts[*in.ShardId], string(in.ShardIteratorType))
	if f.onStart != nil {
		if err := f.onStart(in); err != nil {
			return nil, err
		}
	}
	s := f.find(*in.ShardId)
	position := 0
	switch in.ShardIteratorType {
	case types.ShardIteratorTypeLatest:
		position = len(s.records)
	case types.ShardIteratorTypeAfterSequenceNumber:
		position = 1 + slices.IndexFunc(s.records, func(r types.Record) bool { return *r.Dynamodb.SequenceNumber == *in.SequenceNumber })
	case types.ShardIteratorTypeTrimHorizon, types.ShardIteratorTypeAtSequenceNumber, types.ShardIteratorTypeAtTimestamp:
	}
	return &dynamodbstreams.GetShardIteratorOutput{ShardIterator: f.iterator(s.id, position)}, nil
}

func (f *fakeStream) iterator(id string, position int) *string {
	f.serial++
	return aws.String(fmt.Sprintf("%s/%d/%d", id, position, f.serial))
}

func (f *fakeStream) GetRecords(
	_ context.Context, in *dynamodbstreams.GetRecordsInput, _ ...func(*dynamodbstreams.Options),
) (*dynamodbstreams.GetRecordsOutput, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reads++
	parts := strings.Split(*in.ShardIterator, "/")
	position, _ := strconv.Atoi(parts[1])
	if f.onRead != nil {
		if err := f.onRead(parts[0], position); err != nil {
			return nil, err
		}
	}
	s := f.find(parts[0])
	out := &dynamodbstreams.GetRecordsOutput{Records: slices.Clone(s.records[position:])}
	if !s.closed {
		out.NextShardIterator = f.iterator(s.id, len(s.records))
	}
	return out, nil
}

// collected are the sequence numbers of a handler's calls.
type collected struct {
	mu      sync.Mutex
	batches [][]string
}

func (c *collected) handle(_ context.Context, e events.DynamoDBEvent) (events.DynamoDBEventResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.batches = append(c.batches, sequences(e))
	return events.DynamoDBEventResponse{}, nil
}

func sequences(e events.DynamoDBEvent) (list []string) {
	for i := range e.Records {
		list = append(list, e.Records[i].Change.SequenceNumber)
	}
	return list
}

func (c *collected) all() []string { return slices.Concat(c.batches...) }

func follow(t *testing.T, f *fakeStream, options *eventsource.StreamOptions, d time.Duration, handler eventsource.StreamHandler) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	if options == nil {
		options = &eventsource.StreamOptions{}
	}
	options.Logger = quiet
	if err := eventsource.Stream(ctx, f, streamARN, options, handler); err != nil {
		t.Error(err)
	}
}

func failed(sequence string) events.DynamoDBEventResponse {
	return events.DynamoDBEventResponse{BatchItemFailures: []events.DynamoDBBatchItemFailure{{ItemIdentifier: sequence}}}
}

func TestStream_Filter_LetsOnlyTheRelaysRecordsThrough(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &fakeShard{id: "s"}
		s.records = []types.Record{
			record(1, types.OperationTypeInsert, "1"), record(2, types.OperationTypeModify, "1"), record(3, types.OperationTypeInsert, ""),
			record(4, types.OperationTypeInsert, "0"), record(5, types.OperationTypeRemove, "1"), record(6, types.OperationTypeInsert, "1"),
			{EventName: types.OperationTypeInsert},
		}
		var got collected
		follow(t, newFakeStream(s), nil, time.Second, got.handle)
		equal(t, "records", got.batches, [][]string{{"1", "6"}})
	})
}

func TestStream_Record_ArrivesAsLambdaSendsIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &fakeShard{id: "s"}
		r := record(7, types.OperationTypeInsert, "1")
		r.Dynamodb.StreamViewType, r.Dynamodb.SizeBytes = types.StreamViewTypeNewImage, aws.Int64(12)
		r.Dynamodb.NewImage = map[string]types.AttributeValue{
			"relay": &types.AttributeValueMemberS{Value: "1"},
			"all": &types.AttributeValueMemberM{Value: map[string]types.AttributeValue{
				"b": &types.AttributeValueMemberB{Value: []byte{1}}, "bs": &types.AttributeValueMemberBS{Value: [][]byte{{1}}},
				"bool": &types.AttributeValueMemberBOOL{Value: true}, "n": &types.AttributeValueMemberN{Value: "1.5"},
				"ns": &types.AttributeValueMemberNS{Value: []string{"1"}}, "ss": &types.AttributeValueMemberSS{Value: []string{"a"}},
				"null": &types.AttributeValueMemberNULL{Value: true},
				"l":    &types.AttributeValueMemberL{Value: []types.AttributeValue{&types.AttributeValueMemberS{Value: ""}}},
			}},
		}
		s.records = []types.Record{r}
		follow(t, newFakeStream(s), &eventsource.StreamOptions{Timeout: 9 * time.Second}, time.Second, func(
			ctx context.Context, e events.DynamoDBEvent,
		) (events.DynamoDBEventResponse, error) {
			deadline, _ := ctx.Deadline()
			equal(t, "time left", time.Until(deadline), 9*time.Second)
			got := e.Records[0]
			equal(t, "frame", []any{got.EventName, got.EventID, got.EventSource, got.EventSourceArn, got.AWSRegion, got.Change.SequenceNumber,
				got.Change.SizeBytes, got.Change.StreamViewType},
				[]any{"INSERT", "event-7", "aws:dynamodb", streamARN, "eu-west-1", "7", int64(12), "NEW_IMAGE"})
			text, err := json.Marshal(got.Change.NewImage["all"])
			equal(t, "image", []any{string(text), err}, []any{`{"M":{"b":{"B":"AQ=="},"bool":{"BOOL":true},"bs":{"BS":["AQ=="]},` +
				`"l":{"L":[{"S":""}]},"n":{"N":"1.5"},"ns":{"NS":["1"]},"null":{"NULL":true},"ss":{"SS":["a"]}}}`, error(nil)})
			return events.DynamoDBEventResponse{}, nil
		})
	})
}

func TestStream_Shards_ChildrenAfterParentsAndNewOnesFound(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		parent := (&fakeShard{id: "parent", parent: "long gone"}).insert(1, 2)
		f := newFakeStream(parent, (&fakeShard{id: "child", parent: "parent"}).insert(3), &fakeShard{id: "other"})
		go func() {
			time.Sleep(3 * time.Second)
			f.mu.Lock()
			parent.insert(20)
			parent.closed = true
			f.find("other").insert(30)
			f.mu.Unlock()
			time.Sleep(3 * time.Second)
			f.mu.Lock()
			f.shards = append(f.shards, (&fakeShard{id: "new"}).insert(40))
			f.mu.Unlock()
		}()
		var got collected
		follow(t, f, nil, 20*time.Second, got.handle)
		all := got.all()
		equal(t, "records", slices.Sorted(slices.Values(all)), []string{"1", "2", "20", "3", "30", "40"})
		if slices.Index(all, "3") < slices.Index(all, "20") {
			t.Errorf("a child came before its parent's end: %v", all)
		}
	})
}

func TestStream_Latest_LeavesOutWhatWasThere(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		closed := (&fakeShard{id: "closed"}).insert(1)
		closed.closed = true
		open := (&fakeShard{id: "open", parent: "closed"}).insert(2)
		f := newFakeStream(closed, open)
		go func() {
			time.Sleep(3 * time.Second)
			f.mu.Lock()
			defer f.mu.Unlock()
			open.insert(3)
			f.shards = append(f.shards, (&fakeShard{id: "new"}).insert(4))
		}()
		var got collected
		follow(t, f, &eventsource.StreamOptions{Latest: true}, 30*time.Second, got.handle)
		equal(t, "records", slices.Sorted(slices.Values(got.all())), []string{"3", "4"})
	})
}

func TestStream_Idle_ReadsFourTimesASecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFakeStream(&fakeShard{id: "s"})
		follow(t, f, nil, time.Minute, nil)
		if f.reads < 200 || f.reads > 241 {
			t.Errorf("%d reads in a minute", f.reads)
		}
	})
}

func TestStream_End_WaitsForItsInvocation(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		follow(t, newFakeStream((&fakeShard{id: "s"}).insert(1)), nil, time.Second, func(
			ctx context.Context, _ events.DynamoDBEvent,
		) (events.DynamoDBEventResponse, error) {
			time.Sleep(20 * time.Second)
			return events.DynamoDBEventResponse{}, ctx.Err()
		})
		equal(t, "end", time.Since(began), 20*time.Second)
	})
}

func TestStream_NegativeOptions_AreConfigurationInvalid(t *testing.T) {
	t.Parallel()
	for _, o := range []eventsource.StreamOptions{{BatchSize: -1}, {Discover: -1}, {MaxRetries: -1}, {Poll: -1}, {Timeout: -1}} {
		if err := eventsource.Stream(t.Context(), newFakeStream(), streamARN, &o, nil); !errors.Is(err, runlane.ErrConfigurationInvalid) {
			t.Errorf("error for %+v is %v", o, err)
		}
	}
}
