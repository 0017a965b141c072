package dynamostore_test

import (
	"context"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/dynamostore"
	"github.com/runlane/runlane-go/internal/proof/awstest"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/lanetest"
)

// TestConformance runs the contract over one shared table: its cases keep to separate environments.
func TestConformance(t *testing.T) {
	t.Parallel()
	client := awstest.DynamoDB(t)
	lanetest.RunStorage(t, storageHarness(client, awstest.Table(t, client), func(testing.TB) dynamostore.API { return client }))
}

// storageHarness is the contract over one shared table, through the client that each case is given.
func storageHarness(client *dynamodb.Client, table string, api func(testing.TB) dynamostore.API) lanetest.StorageHarness {
	return lanetest.StorageHarness{
		New: func(t testing.TB) lane.Storage {
			t.Helper()
			store := dynamostore.New(api(t), table, &dynamostore.Options{RequestTimeout: awstest.RequestTimeout})
			if err := store.Start(context.Background()); err != nil {
				t.Fatal(err)
			}
			return store
		},
		Capabilities: dynamostore.New(nil, "", nil).Capabilities(),
		PlantUnknownEvent: func(t testing.TB, _ lane.Storage, key lane.RunKey, event runlane.UnknownEvent) {
			t.Helper()
			plantUnknownEvent(t, client, table, key, event)
		},
		Skewed: func(t testing.TB, _ lane.Storage, ahead time.Duration) lane.Storage {
			t.Helper()
			return dynamostore.New(api(t), table, &dynamostore.Options{Now: func() time.Time { return time.Now().Add(ahead) }, RequestTimeout: awstest.RequestTimeout})
		},
		Mortal: func(t testing.TB, _ lane.Storage, requests int) lane.Storage {
			t.Helper()
			dying := &mortalClient{API: client}
			dying.left.Store(int64(requests))
			return dynamostore.New(dying, table, &dynamostore.Options{RequestTimeout: awstest.RequestTimeout})
		},
	}
}

// mortalClient is that of a process which dies after so many requests. The error is one that no caller tries again.
type mortalClient struct {
	dynamostore.API
	left atomic.Int64
}

func (c *mortalClient) alive() error {
	if c.left.Add(-1) >= 0 {
		return nil
	}
	return &smithy.GenericAPIError{Code: "AccessDeniedException", Message: "the process is dead", Fault: smithy.FaultClient}
}

func (c *mortalClient) BatchGetItem(ctx context.Context, in *dynamodb.BatchGetItemInput, o ...func(*dynamodb.Options)) (*dynamodb.BatchGetItemOutput, error) {
	if err := c.alive(); err != nil {
		return nil, err
	}
	return c.API.BatchGetItem(ctx, in, o...)
}

func (c *mortalClient) DeleteItem(ctx context.Context, in *dynamodb.DeleteItemInput, o ...func(*dynamodb.Options)) (*dynamodb.DeleteItemOutput, error) {
	if err := c.alive(); err != nil {
		return nil, err
	}
	return c.API.DeleteItem(ctx, in, o...)
}

func (c *mortalClient) Query(ctx context.Context, in *dynamodb.QueryInput, o ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	if err := c.alive(); err != nil {
		return nil, err
	}
	return c.API.Query(ctx, in, o...)
}

func (c *mortalClient) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, o ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	if err := c.alive(); err != nil {
		return nil, err
	}
	return c.API.UpdateItem(ctx, in, o...)
}

// plantUnknownEvent writes what a newer version's commit would: the next log item, and the run's sequence.
func plantUnknownEvent(t testing.TB, client *dynamodb.Client, table string, key lane.RunKey, event runlane.UnknownEvent) {
	t.Helper()
	pk := &types.AttributeValueMemberS{Value: key.Environment.Name() + ":run:" + string(key.RunID)}
	run := map[string]types.AttributeValue{"pk": pk, "sk": &types.AttributeValueMemberS{Value: "run"}}
	out, err := client.GetItem(context.Background(), &dynamodb.GetItemInput{TableName: &table, Key: run, ConsistentRead: aws.Bool(true)})
	if err != nil {
		t.Fatal(err)
	}
	last := 0
	if n, ok := out.Item["sq"].(*types.AttributeValueMemberN); ok {
		last, err = strconv.Atoi(n.Value)
	}
	if err != nil || last == 0 {
		t.Fatalf("the run has the sequence %v (%v)", out.Item["sq"], err)
	}
	sequence := strconv.Itoa(last + 1)
	// A number and no addition: where an answer is lost, the SDK sends it again.
	_, err = client.UpdateItem(context.Background(), &dynamodb.UpdateItemInput{
		TableName: &table, Key: run, UpdateExpression: aws.String("SET sq = :next"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":next": &types.AttributeValueMemberN{Value: sequence}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for len(sequence) < 10 {
		sequence = "0" + sequence
	}
	events := []byte(`[{"t":"` + string(event.Type) + `","o":1772625600000,"d":` + string(event.Data) + `}]`)
	_, err = client.PutItem(context.Background(), &dynamodb.PutItemInput{TableName: &table, Item: map[string]types.AttributeValue{
		"pk": pk, "sk": &types.AttributeValueMemberS{Value: "log:" + sequence}, "ev": &types.AttributeValueMemberB{Value: events},
		"ci": &types.AttributeValueMemberS{Value: "newer"},
	}})
	if err != nil {
		t.Fatal(err)
	}
}
