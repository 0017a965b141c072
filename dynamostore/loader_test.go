package dynamostore

import (
	"context"
	"fmt"
	"maps"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"golang.org/x/sync/errgroup"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/dynamostore/internal/ddb"
	"github.com/runlane/runlane-go/dynamostore/internal/item"
	"github.com/runlane/runlane-go/dynamostore/internal/rows"
	"github.com/runlane/runlane-go/lane"
)

// Large retained sets are laid down by batch writes of the items that the engine would have written: an emulator commits one or
// two hundred transactions a second. The engine writes one run of a kind; its copies differ by their ids, and by what follows from
// these: partition key, shard, key in the index done, ids of commits.

// template are the items of a run that the engine wrote.
type template []item.Item

// template takes the world's present run as an example.
func (w *world) template() template {
	w.Helper()
	var items template
	err := w.store.db.Query(w.Context(), &ddb.Query{Operation: "load", Where: "#pk = :pk", Values: item.Item{":pk": item.Text(rows.RunPK(w.key()))}}, func(it item.Item) (bool, error) {
		items = append(items, it)
		return true, nil
	})
	if err != nil || len(items) < 2 {
		w.Fatalf("%d items of the example: %v", len(items), err)
	}
	return items
}

// copyOf are the items that the engine would have written for a run of the id.
func (w *world) copyOf(t template, id runlane.RunID, shards rows.Shards) []types.WriteRequest {
	w.Helper()
	pk := item.Text(rows.RunPK(lane.RunKey{Environment: "test", RunID: id}))
	var writes []types.WriteRequest
	for _, example := range t {
		it := maps.Clone(example)
		it[item.PK] = pk
		if _, isLog := it["ci"]; isLog {
			it["ci"] = item.Text(randomID())
		}
		if item.TextOf(it[item.SK]) == rows.RunSK {
			r, err := rows.UnmarshalRun(it)
			if err == nil {
				r.Index(r.Marker(), shards)
				err = r.Marshal()
			}
			if err != nil {
				w.Fatal(err)
			}
			it = r.Raw
		}
		writes = append(writes, types.WriteRequest{PutRequest: &types.PutRequest{Item: it}})
	}
	return writes
}

const batchWrites = 25

// load writes n runs like the example. Their ids begin with the prefix.
func (w *world) load(t template, prefix string, n int) *world {
	w.Helper()
	client, ok := w.store.db.Client.(*dynamodb.Client)
	if !ok {
		w.Fatalf("the loader writes through a special client, not %T", w.store.db.Client)
	}
	shards, err := w.store.shardCounts(w.Context(), "test")
	if err != nil {
		w.Fatal(err)
	}
	var batch []types.WriteRequest
	group, ctx := errgroup.WithContext(w.Context())
	group.SetLimit(ddb.MaxParallel)
	for i := range n {
		batch = append(batch, w.copyOf(t, runlane.RunID(fmt.Sprintf("run_%s%020d", prefix, i)), shards)...)
		for len(batch) >= batchWrites || i == n-1 && len(batch) > 0 {
			part := batch[:min(len(batch), batchWrites)]
			group.Go(func() error { return writeBatch(ctx, client, w.store.db.Name, part) })
			batch = batch[len(part):]
		}
	}
	if err := group.Wait(); err != nil {
		w.Fatal(err)
	}
	return w
}

func writeBatch(ctx context.Context, client *dynamodb.Client, table string, writes []types.WriteRequest) error {
	for len(writes) > 0 {
		out, err := client.BatchWriteItem(ctx, &dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{table: writes}})
		if err != nil {
			return err
		}
		writes = out.UnprocessedItems[table]
	}
	return nil
}
