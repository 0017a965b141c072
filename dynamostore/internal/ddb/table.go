// Package ddb accesses a DynamoDB table. It repeats requests where that is safe, settles writes without an answer by
// reading, counts costs, and converts errors. It knows items and conditions, but not runs.
package ddb

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/dynamostore/internal/item"
)

type Client interface {
	BatchGetItem(
		ctx context.Context, in *dynamodb.BatchGetItemInput, o ...func(*dynamodb.Options),
	) (*dynamodb.BatchGetItemOutput, error)
	DeleteItem(
		ctx context.Context, in *dynamodb.DeleteItemInput, o ...func(*dynamodb.Options),
	) (*dynamodb.DeleteItemOutput, error)
	DescribeTable(
		ctx context.Context, in *dynamodb.DescribeTableInput, o ...func(*dynamodb.Options),
	) (*dynamodb.DescribeTableOutput, error)
	GetItem(
		ctx context.Context, in *dynamodb.GetItemInput, o ...func(*dynamodb.Options),
	) (*dynamodb.GetItemOutput, error)
	Query(ctx context.Context, in *dynamodb.QueryInput, o ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error)
	Scan(ctx context.Context, in *dynamodb.ScanInput, o ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error)
	TransactWriteItems(
		ctx context.Context, in *dynamodb.TransactWriteItemsInput, o ...func(*dynamodb.Options),
	) (*dynamodb.TransactWriteItemsOutput, error)
	UpdateItem(
		ctx context.Context, in *dynamodb.UpdateItemInput, o ...func(*dynamodb.Options),
	) (*dynamodb.UpdateItemOutput, error)
}

const BatchKeys = 100

const unprocessedGap = 20 * time.Millisecond

// Table is a DynamoDB table with string keys. Its fields must not change after its first use.
type Table struct {
	Client  Client
	Name    string
	Indexes []Index
	Timeout time.Duration // of one request
	Meter   Meter
	Load    Load
}

// Failure converts an error of the client or the context to *runlane.Error, unless it already is one.
func (t *Table) Failure(ctx context.Context, doing string, err error) error {
	return failure(ctx, t.Name, doing, err)
}

func (t *Table) describe(ctx context.Context) (*types.TableDescription, error) {
	var out *dynamodb.DescribeTableOutput
	err := t.send(ctx, func(ctx context.Context) (err error) {
		out, err = t.Client.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &t.Name})
		return err
	})
	if err != nil {
		return nil, t.Failure(ctx, "look at the table", err)
	}
	return out.Table, nil
}

// Check compares the table's keys and indexes with the layout.
func (t *Table) Check(ctx context.Context) error {
	table, err := t.describe(ctx)
	if err != nil {
		return err
	}
	faults := keyFaults("the table", table.KeySchema, item.PK, item.SK)
	for _, index := range t.Indexes {
		faults = append(faults, indexFaults(table, index)...)
	}
	if len(faults) == 0 {
		return nil
	}
	return &runlane.Error{
		Code:    runlane.ErrConfigurationInvalid,
		Message: fmt.Sprintf("table %q does not have the layout: %s", t.Name, strings.Join(faults, "; ")),
		Hint: "create the table by the template, or locally by make local-up; delete and create a wrong index " +
			"again, since an index cannot be changed",
	}
}

func indexFaults(table *types.TableDescription, want Index) []string {
	if found := indexOf(table, want.Name); found != nil {
		return keyFaults("index "+want.Name, found.KeySchema, want.Hash, want.Sort)
	}
	return []string{"index " + want.Name + " is missing"}
}

func keyFaults(what string, schema []types.KeySchemaElement, hash, sort string) []string {
	if len(schema) == 2 && aws.ToString(schema[0].AttributeName) == hash &&
		aws.ToString(schema[1].AttributeName) == sort {
		return nil
	}
	return []string{fmt.Sprintf("%s is not keyed by %s and %s", what, hash, sort)}
}

// write sends one request that writes.
func (t *Table) write(ctx context.Context, request func(context.Context) error) error {
	err := t.send(ctx, request)
	t.Load.wrote(err)
	return err
}

// send limits the time of one request.
func (t *Table) send(ctx context.Context, request func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, t.Timeout)
	defer cancel()
	return request(ctx)
}

// Get reads one item strongly; nil when absent.
func (t *Table) Get(ctx context.Context, operation, pk, sk string) (item.Item, error) {
	return t.get(ctx, operation, pk, sk, true)
}

// GetLate reads one item eventually consistently, for half the price; nil when absent.
func (t *Table) GetLate(ctx context.Context, operation, pk, sk string) (item.Item, error) {
	return t.get(ctx, operation, pk, sk, false)
}

func (t *Table) get(ctx context.Context, operation, pk, sk string, strongly bool) (item.Item, error) {
	var out *dynamodb.GetItemOutput
	err := t.send(ctx, func(ctx context.Context) (err error) {
		out, err = t.Client.GetItem(ctx, &dynamodb.GetItemInput{
			TableName:      &t.Name,
			Key:            item.Key(pk, sk),
			ConsistentRead: aws.Bool(strongly),
		})
		return err
	})
	if err != nil {
		t.Meter.Used(ctx, operation, Usage{Requests: 1})
		return nil, t.Failure(ctx, operation, err)
	}
	t.Meter.Used(ctx, operation, Usage{Requests: 1, ReadUnits: ReadUnits(item.Size(out.Item), strongly)})
	if len(out.Item) == 0 {
		return nil, nil
	}
	return out.Item, nil
}

// BatchGet reads each item once, strongly, and repeats unprocessed keys.
func (t *Table) BatchGet(ctx context.Context, operation string, keys []item.Item, each func(item.Item) error) error {
	seen := map[string]bool{}
	keys = slices.DeleteFunc(keys, func(k item.Item) bool {
		id := item.TextOf(k[item.PK]) + "\x00" + item.TextOf(k[item.SK])
		defer func() { seen[id] = true }()
		return seen[id]
	})
	for len(keys) > 0 {
		n := min(len(keys), BatchKeys)
		var out *dynamodb.BatchGetItemOutput
		err := t.send(ctx, func(ctx context.Context) (err error) {
			out, err = t.Client.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{
				RequestItems: map[string]types.KeysAndAttributes{
					t.Name: {Keys: keys[:n], ConsistentRead: aws.Bool(true)},
				},
			})
			return err
		})
		usage := Usage{Requests: 1}
		if err != nil {
			t.Meter.Used(ctx, operation, usage)
			return t.Failure(ctx, operation, err)
		}
		left := out.UnprocessedKeys[t.Name].Keys
		usage.ReadUnits = float64(n - len(left) - len(out.Responses[t.Name])) // absent items cost the minimum
		for _, it := range out.Responses[t.Name] {
			usage.ReadUnits += ReadUnits(item.Size(it), true)
			if err := each(it); err != nil {
				return err
			}
		}
		t.Meter.Used(ctx, operation, usage)
		keys = append(left, keys[n:]...)
		if len(left) == n {
			if err := Sleep(ctx, unprocessedGap+jitter(unprocessedGap)); err != nil {
				return t.Failure(ctx, operation, err)
			}
		}
	}
	return nil
}

// Query reads the items of one partition key in the order of their sort keys: strongly from the table, or from an
// index.
type Query struct {
	Operation string
	Index     string // "": the table
	Where     string // the key condition
	Values    item.Item
	Backwards bool
	Limit     int       // items one request reads; 0: as many as fit
	Behind    item.Item // key to start after; nil: from the first
}

// Query calls each for every item until it returns false.
func (t *Table) Query(ctx context.Context, q *Query, each func(item.Item) (more bool, err error)) error {
	in := &dynamodb.QueryInput{
		TableName:                 &t.Name,
		KeyConditionExpression:    &q.Where,
		ExpressionAttributeNames:  item.Names(q.Where),
		ExpressionAttributeValues: q.Values,
		ExclusiveStartKey:         q.Behind,
		ScanIndexForward:          aws.Bool(!q.Backwards),
	}
	strong := q.Index == ""
	if strong {
		in.ConsistentRead = &strong
	} else {
		in.IndexName = &q.Index
	}
	if q.Limit > 0 {
		in.Limit = aws.Int32(int32(q.Limit)) // page limits are small
	}
	for {
		var out *dynamodb.QueryOutput
		err := t.send(ctx, func(ctx context.Context) (err error) {
			out, err = t.Client.Query(ctx, in)
			return err
		})
		if err != nil {
			t.Meter.Used(ctx, q.Operation, Usage{Requests: 1})
			return t.Failure(ctx, q.Operation, err)
		}
		size := 0
		for _, it := range out.Items {
			size += item.Size(it)
		}
		t.Meter.Used(ctx, q.Operation, Usage{Requests: 1, ReadUnits: ReadUnits(size, strong)})
		for _, it := range out.Items {
			if more, err := each(it); err != nil || !more {
				return err
			}
		}
		if out.LastEvaluatedKey == nil {
			return nil
		}
		in.ExclusiveStartKey = out.LastEvaluatedKey
	}
}

// Scan reads at most limit items of the table strongly, after a key. next is the key to continue after; nil at the end.
func (t *Table) Scan(
	ctx context.Context, operation string, behind item.Item, limit int,
) (items []item.Item, next item.Item, err error) {
	in := &dynamodb.ScanInput{
		TableName:         &t.Name,
		ConsistentRead:    aws.Bool(true),
		Limit:             aws.Int32(int32(limit)), // page limits are small
		ExclusiveStartKey: behind,
	}
	var out *dynamodb.ScanOutput
	err = t.send(ctx, func(ctx context.Context) (err error) {
		out, err = t.Client.Scan(ctx, in)
		return err
	})
	if err != nil {
		return nil, nil, t.Failure(ctx, operation, err)
	}
	size := 0
	for _, it := range out.Items {
		size += item.Size(it)
	}
	t.Meter.Used(ctx, operation, Usage{Requests: 1, ReadUnits: ReadUnits(size, true)})
	return out.Items, out.LastEvaluatedKey, nil
}
