package lives

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/dynamostore"
	"github.com/runlane/runlane-go/internal/proof/awstest"
	"github.com/runlane/runlane-go/internal/proof/crash"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/memlane"
)

// memoryWorld is a world over memory storage, or what decorates it.
func memoryWorld(decorate func(lane.Storage) lane.Storage) *World {
	inner := memlane.NewStorage(nil)
	storage := decorate(inner)
	nothing := func() {}
	return &World{
		Environment: "lives", DoorMeets: true, Storage: func(bool) lane.Storage { return storage },
		Check: func(ctx context.Context, _ bool) ([]lane.Violation, error) {
			return crash.Violations(ctx, inner, "lives")
		},
		Begin: func(int) {}, Calm: nothing, Close: func(context.Context) error { return nil },
	}
}

// dynamoWorld is a world in a table that it shares with others.
func dynamoWorld(tb testing.TB, client *dynamodb.Client, table string, environment runlane.Environment, l *life) *World {
	tb.Helper()
	items := &written{API: client, table: table, all: map[itemKey]bool{}, fresh: map[itemKey]bool{}}
	if err := items.spread(l.ctx, client, environment, pick(l, "shards", []string{"1", "1", "1", "1", "1", "1", "2", "8"})); err != nil {
		tb.Fatal(err)
	}
	faulty := newFaulty(items, environment, l)
	w := &World{Environment: environment, Begin: faulty.begin, Calm: faulty.end}
	w.Storage = func(sound bool) lane.Storage {
		client := dynamostore.API(items)
		if !sound {
			client = faulty
		}
		return dynamostore.New(client, table, &dynamostore.Options{Now: l.clock.Now, RequestTimeout: awstest.RequestTimeout}) // each process has its own memory
	}
	chosen := &chosenItems{written: items}
	checker := dynamostore.New(chosen, table, &dynamostore.Options{Now: l.clock.Now, RequestTimeout: awstest.RequestTimeout})
	w.Check = func(ctx context.Context, all bool) ([]lane.Violation, error) {
		chosen.keys = items.takeFresh(all)
		return crash.Violations(ctx, checker, environment)
	}
	w.Close = func(ctx context.Context) error { return items.remove(ctx, client) }
	return w
}

// spread says over how many shards of each index the runs are spread: few, so that most of the time is not spent on empty ones.
func (w *written) spread(ctx context.Context, client *dynamodb.Client, environment runlane.Environment, shards string) error {
	key := itemKey{environment.Name() + ":config", "shards"}
	item, count := key.attributes(), &types.AttributeValueMemberN{Value: shards}
	item["rd"], item["wr"] = count, count
	w.note(key)
	_, err := client.PutItem(ctx, &dynamodb.PutItemInput{TableName: &w.table, Item: item})
	return err
}

type itemKey struct{ pk, sk string }

func compareItems(a, b itemKey) int {
	if c := strings.Compare(a.pk, b.pk); c != 0 {
		return c
	}
	return strings.Compare(a.sk, b.sk)
}

func (k itemKey) attributes() map[string]types.AttributeValue {
	return map[string]types.AttributeValue{
		"pk": &types.AttributeValueMemberS{Value: k.pk}, "sk": &types.AttributeValueMemberS{Value: k.sk},
	}
}

func keyOf(item row) itemKey { return itemKey{text(item, "pk"), text(item, "sk")} }

// keysOf are the items that a transaction writes.
func keysOf(in *dynamodb.TransactWriteItemsInput) (keys []itemKey) {
	for _, w := range in.TransactItems {
		switch {
		case w.Put != nil:
			keys = append(keys, keyOf(w.Put.Item))
		case w.Update != nil:
			keys = append(keys, keyOf(w.Update.Key))
		case w.Delete != nil:
			keys = append(keys, keyOf(w.Delete.Key))
		}
	}
	return keys
}

// written is a client that remembers what a life wrote: a scan of the table would read what all lives wrote.
type written struct {
	dynamostore.API

	table string
	mu    sync.Mutex
	all   map[itemKey]bool
	fresh map[itemKey]bool // since a reader took them
}

func (w *written) note(keys ...itemKey) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, key := range keys {
		w.all[key], w.fresh[key] = true, true
	}
}

// takeFresh returns what was written since the last time, or all.
func (w *written) takeFresh(all bool) (keys []itemKey) {
	w.mu.Lock()
	defer w.mu.Unlock()
	from := w.fresh
	if all {
		from = w.all
	}
	for key := range from {
		keys = append(keys, key)
	}
	w.fresh = map[itemKey]bool{}
	slices.SortFunc(keys, compareItems)
	return keys
}

// TransactWriteItems implements dynamostore.API.
func (w *written) TransactWriteItems(
	ctx context.Context, in *dynamodb.TransactWriteItemsInput, o ...func(*dynamodb.Options),
) (*dynamodb.TransactWriteItemsOutput, error) {
	w.note(keysOf(in)...)
	return w.API.TransactWriteItems(ctx, in, o...)
}

// UpdateItem implements dynamostore.API.
func (w *written) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, o ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	w.note(keyOf(in.Key))
	return w.API.UpdateItem(ctx, in, o...)
}

// remove deletes everything.
func (w *written) remove(ctx context.Context, client *dynamodb.Client) error {
	for keys := range slices.Chunk(w.takeFresh(true), 25) {
		requests := make([]types.WriteRequest, len(keys))
		for i, key := range keys {
			requests[i].DeleteRequest = &types.DeleteRequest{Key: key.attributes()}
		}
		left := map[string][]types.WriteRequest{w.table: requests}
		for len(left) > 0 {
			out, err := client.BatchWriteItem(ctx, &dynamodb.BatchWriteItemInput{RequestItems: left})
			if err != nil {
				return err
			}
			left = out.UnprocessedItems
		}
	}
	return nil
}

// chosenItems is a client whose table, to a scan, has the chosen items alone.
type chosenItems struct {
	*written

	keys []itemKey
}

// Scan implements dynamostore.API.
func (c *chosenItems) Scan(ctx context.Context, in *dynamodb.ScanInput, o ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error) {
	if aws.ToString(in.TableName) != c.table || in.ExclusiveStartKey != nil {
		return nil, errors.New("one scan of the table was expected")
	}
	scanned := &dynamodb.ScanOutput{}
	for keys := range slices.Chunk(c.keys, 100) {
		wanted := types.KeysAndAttributes{ConsistentRead: aws.Bool(true)}
		for _, key := range keys {
			wanted.Keys = append(wanted.Keys, key.attributes())
		}
		left := map[string]types.KeysAndAttributes{c.table: wanted}
		for len(left) > 0 {
			out, err := c.API.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{RequestItems: left}, o...)
			if err != nil {
				return nil, err
			}
			scanned.Items = append(scanned.Items, out.Responses[c.table]...)
			left = out.UnprocessedKeys
		}
	}
	return scanned, nil
}
