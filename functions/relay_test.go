package functions_test

import (
	"context"
	"slices"
	"strconv"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/dynamostore"
	"github.com/runlane/runlane-go/functions"
	"github.com/runlane/runlane-go/internal/proof/awstest"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/memlane"
)

// table is a DynamoDB that keeps nothing but what transactions put.
type table struct {
	dynamostore.API

	put []map[string]types.AttributeValue
}

func (f *table) TransactWriteItems(
	_ context.Context, in *dynamodb.TransactWriteItemsInput, _ ...func(*dynamodb.Options),
) (*dynamodb.TransactWriteItemsOutput, error) {
	for i := range in.TransactItems {
		if p := in.TransactItems[i].Put; p != nil {
			f.put = append(f.put, p.Item)
		}
	}
	return &dynamodb.TransactWriteItemsOutput{}, nil
}

func (f *table) GetItem(context.Context, *dynamodb.GetItemInput, ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	return &dynamodb.GetItemOutput{}, nil
}

func (f *table) UpdateItem(context.Context, *dynamodb.UpdateItemInput, ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	return &dynamodb.UpdateItemOutput{}, nil
}

// unchecked starts without looking at its table.
type unchecked struct{ *dynamostore.Store }

func (unchecked) Start(context.Context) error { return nil }

// images are all items that one trigger writes, as the stream shows them.
func images(t *testing.T, environment runlane.Environment, options *runlane.TriggerOptions) []map[string]types.AttributeValue {
	t.Helper()
	f := &table{}
	l, err := lane.New(unchecked{dynamostore.New(f, "runs", nil)}, memlane.NewTransport(nil), &lane.Options{Environment: environment})
	if err != nil {
		t.Fatal(err)
	}
	rt, err := core.Open(t.Context(), l, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := rt.Trigger(t.Context(), greet.With("you"), options); err != nil {
		t.Fatal(err)
	}
	if err := rt.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(f.put) < 2 {
		t.Fatalf("a trigger wrote %d items", len(f.put))
	}
	return f.put
}

var deferred = &runlane.TriggerOptions{Deferred: true}

// inserts are stream records of the items, numbered from the given one.
func inserts(first int, items ...map[string]types.AttributeValue) []events.DynamoDBEventRecord {
	var records []events.DynamoDBEventRecord
	for i, item := range items {
		records = append(records, events.DynamoDBEventRecord{
			EventName: "INSERT", Change: events.DynamoDBStreamRecord{SequenceNumber: strconv.Itoa(first + i), NewImage: awstest.StreamImage(item)},
		})
	}
	return records
}

// ids are the outbox ids that dynamostore reads from the items.
func ids(t *testing.T, items []map[string]types.AttributeValue) []string {
	t.Helper()
	var list []string
	for _, item := range items {
		record, err := dynamostore.ParseStreamImage(item)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, record.OutboxIDs...)
	}
	return list
}

// claims records which outbox ids are asked for.
type claims struct {
	lane.Storage

	asked []string
	err   error
}

func (c *claims) ClaimOutboxMessages(_ context.Context, command *lane.ClaimOutboxCommand) ([]lane.OutboxMessage, error) {
	if command.Environment != "prod" {
		return nil, errScripted
	}
	c.asked = append(c.asked, command.IDs...)
	return nil, c.err
}

func relay(t *testing.T, c *claims, records ...events.DynamoDBEventRecord) []string {
	t.Helper()
	c.Storage = memlane.NewStorage(nil)
	rt := openOn(t, c, memlane.NewTransport(nil), &core.Options{})
	response, err := functions.Relay(rt)(t.Context(), events.DynamoDBEvent{Records: records})
	if err != nil {
		t.Fatal(err)
	}
	failed := []string{}
	for _, f := range response.BatchItemFailures {
		failed = append(failed, f.ItemIdentifier)
	}
	return failed
}

func TestHazard23_PendingRows_AreTheRelaysAndNoOthers(t *testing.T) {
	t.Parallel()
	pending, published := images(t, "prod", deferred), images(t, "prod", nil)
	foreign := images(t, "staging", deferred)
	if len(ids(t, pending)) != 1 || len(ids(t, foreign)) != 1 || len(ids(t, published)) != 0 {
		t.Fatalf("pending rows: %v, %v, %v", ids(t, pending), ids(t, foreign), ids(t, published))
	}
	changed := inserts(50, images(t, "prod", deferred)...)
	for i := range changed {
		changed[i].EventName = "MODIFY"
	}
	c := &claims{}
	equal(t, "failures", relay(t, c, slices.Concat(inserts(10, published...), changed, inserts(20, foreign...), inserts(30, pending...))...), []string{})
	equal(t, "rows asked for", c.asked, ids(t, pending))
}

func TestRelay_NothingPending_AsksForNothing(t *testing.T) {
	t.Parallel()
	c := &claims{err: errScripted}
	equal(t, "failures", relay(t, c, append(inserts(1, images(t, "prod", nil)...), events.DynamoDBEventRecord{EventName: "REMOVE"})...), []string{})
	equal(t, "rows asked for", len(c.asked), 0)
}

func TestRelay_UnreadableRecord_IsLeftToTheTick(t *testing.T) {
	t.Parallel()
	pending := images(t, "prod", deferred)
	var broken map[string]types.AttributeValue
	for _, item := range images(t, "prod", deferred) {
		if mark, ok := item[dynamostore.RelayAttribute].(*types.AttributeValueMemberS); ok && mark.Value == dynamostore.RelayValue {
			broken = item
		}
	}
	for name := range broken {
		if name != "pk" && name != dynamostore.RelayAttribute {
			broken[name] = &types.AttributeValueMemberBOOL{Value: true}
		}
	}
	if _, err := dynamostore.ParseStreamImage(broken); err == nil {
		t.Fatal("the record can be read")
	}
	c := &claims{}
	equal(t, "failures", relay(t, c, append(inserts(1, broken), inserts(2, pending...)...)...), []string{})
	equal(t, "rows asked for", c.asked, ids(t, pending))
}

func TestRelay_StorageFails_ReportsTheFirstRecordWithRows(t *testing.T) {
	t.Parallel()
	c := &claims{err: &runlane.Error{Code: runlane.ErrStorageUnavailable, Retryable: true}}
	first, second := images(t, "prod", deferred), images(t, "prod", deferred)
	at := slices.IndexFunc(first, func(item map[string]types.AttributeValue) bool {
		return len(ids(t, []map[string]types.AttributeValue{item})) > 0
	})
	records := slices.Concat(inserts(100, images(t, "prod", nil)...), inserts(200, first...), inserts(300, second...))
	equal(t, "failures", relay(t, c, records...), []string{strconv.Itoa(200 + at)})
	equal(t, "rows asked for", len(c.asked), 2)
}
