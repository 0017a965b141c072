package dynamostore

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/dynamostore/internal/item"
	"github.com/runlane/runlane-go/dynamostore/internal/rows"
	"github.com/runlane/runlane-go/lane"
)

// Timelines about what the indexes show, and to whom.

// plantAll writes items that the test has made.
func (w *world) plantAll(items []item.Item) {
	w.Helper()
	client, ok := w.store.db.Client.(*dynamodb.Client)
	if !ok {
		w.Fatalf("the loader writes through a special client, not %T", w.store.db.Client)
	}
	for batch := range slices.Chunk(items, batchWrites) {
		var writes []types.WriteRequest
		for _, it := range batch {
			writes = append(writes, types.WriteRequest{PutRequest: &types.PutRequest{Item: it}})
		}
		if err := writeBatch(w.Context(), client, w.store.db.Name, writes); err != nil {
			w.Fatal(err)
		}
	}
}

// partitions lays down n partitions of the world's queue in each of which a run waits for a slot, and returns these runs in the
// order in which a walk meets them.
func (w *world) partitions(n int) []*rows.Run {
	w.Helper()
	example := w.must(w.enter(0))
	copied, runs := example.template(), []*rows.Run{example.item()}
	var items []item.Item
	for i := range n - 1 {
		for _, it := range copied {
			it = maps.Clone(it)
			it[item.PK] = item.Text(rows.RunPK(lane.RunKey{Environment: "test", RunID: runlane.RunID(fmt.Sprintf("run_%04d", i))}))
			if item.TextOf(it[item.SK]) == rows.RunSK {
				r, err := rows.UnmarshalRun(it)
				if err != nil {
					w.Fatal(err)
				}
				r.ConcurrencyKey = fmt.Sprint("customer:", i)
				r.Index(r.Marker(), rows.Shards{Write: rows.DefaultShards, Read: rows.DefaultShards})
				if err := r.Marshal(); err != nil {
					w.Fatal(err)
				}
				runs, it = append(runs, r), r.Raw
			}
			items = append(items, it)
		}
	}
	w.plantAll(items)
	slices.SortFunc(runs, func(a, b *rows.Run) int { return strings.Compare(a.DueP+a.DueA, b.DueP+b.DueA) })
	return runs
}

// fill gives the only slot of each run's partition to another run, for good.
func (w *world) fill(runs ...*rows.Run) {
	w.Helper()
	var items []item.Item
	for _, r := range runs {
		slot, err := rows.Marshal(rows.SlotItem{PK: r.Partition().PK(), SK: rows.SlotSK(0), Run: "run_of_another"})
		if err != nil {
			w.Fatal(err)
		}
		items = append(items, slot)
	}
	w.plantAll(items)
}

// firstPage is what a tick without memory finds.
func (w *world) firstPage() (ids []runlane.RunID, more bool) {
	w.Helper()
	page, err := w.store.ListRunsNeedingDispatch(w.step(), &lane.DueQuery{
		PageQuery: lane.PageQuery{Environment: "test"}, At: w.now, Bounded: []runlane.Queue{w.queue},
	})
	if err != nil {
		w.Fatal(err)
	}
	return refIDs(page), page.Next != ""
}

func refIDs(page *runlane.Page[lane.RunRef]) (ids []runlane.RunID) {
	for _, ref := range page.Items {
		ids = append(ids, ref.RunID)
	}
	return ids
}

// More partitions are full than one scan visits, and they lie before the one with room. A tick remembers nothing: the next begins
// where the last was ended, and the one after the end begins at the start again.
func TestHazard14_MoreFullPartitionsThanAScanVisits_TheOnesBehindAreReached(t *testing.T) {
	w := newWorld(t).bounded(1)
	runs := w.partitions(maxJumps + 20)
	last := runs[len(runs)-1]
	w.fill(runs[:len(runs)-1]...)
	if got, more := w.firstPage(); len(got) != 0 || !more {
		t.Fatalf("the first scan found %v, more %t: it should have been ended by its bound", got, more)
	}
	if got := w.meter.Stats().Operations["read slots"].Requests; got != maxJumps {
		t.Errorf("it visited %d partitions, want %d", got, maxJumps)
	}
	if got, _ := w.firstPage(); !slices.Equal(got, []runlane.RunID{last.Key().RunID}) {
		t.Errorf("the second scan found %v, want the run in the last partition", got)
	}
	// The first partition's slot is freed, and the last one's taken: the walk comes around.
	w.fill(last)
	if _, err := w.store.db.Client.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{
		TableName: &w.store.db.Name, Key: item.Key(runs[0].Partition().PK(), rows.SlotSK(0)),
	}); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if got, _ := w.firstPage(); slices.Equal(got, []runlane.RunID{runs[0].Key().RunID}) {
			return
		}
	}
	t.Error("the first partition was not reached any more")
}

// plantBacklog lays down index rows of a queue, due an hour ago, without anything else of their runs.
func (w *world) plantBacklog(queue runlane.QueueName, n int) {
	w.Helper()
	var items []item.Item
	due := rows.Marker{Kind: rows.Waiting, At: rows.ToMillis(w.now.Add(-time.Hour))}
	for i := range n {
		pk := rows.RunPK(lane.RunKey{Environment: "test", RunID: runlane.RunID(fmt.Sprintf("run_heavy%05d", i))})
		key := due.Key("test", i%rows.DefaultShards, queue)
		items = append(items, item.Item{item.PK: item.Text(pk), item.SK: item.Text(rows.RunSK), rows.AttrDueP: item.Text(key.Partition), rows.AttrDueA: item.Text(key.Sort)})
	}
	w.plantAll(items)
}

// An older backlog of another queue is passed over by its keys: none of its runs is read, and it does not count for the rows that a page
// examines. It is read in chunks that grow, for little more than a request a thousand rows of a shard.
func TestHazard15_BacklogOfAnotherQueue_CostsItsKeysOnly(t *testing.T) {
	w := newWorld(t)
	w.plantBacklog("heavy", maxScanRows+100)
	w.create(eager, 0, nil)
	q := &lane.DueQuery{PageQuery: lane.PageQuery{Environment: "test", Limit: 10}, At: w.now, Queues: []runlane.QueueName{"default"}}
	page, err := w.store.ListRunnableRuns(w.step(), q)
	if err != nil {
		t.Fatal(err)
	}
	if found := refIDs(page); !slices.Equal(found, []runlane.RunID{w.run.ID}) || page.Next != "" {
		t.Errorf("the page has %v and more: %t, want the run behind the backlog alone", found, page.Next != "")
	}
	used := w.meter.Stats().Operations
	if used["read runs"].ReadUnits != 1 {
		t.Errorf("reading runs took %v units, want only its own: %v", used["read runs"], used)
	}
	if scan := used["scan"]; scan.Requests > 120 || scan.ReadUnits > 100 {
		t.Errorf("reading %d keys took %v", maxScanRows+100, scan)
	}
}

// Due rows of a bounded queue are not the business of the stage that delivers, which finds what lies behind
// them with one page.
func TestHazard39_DueRowsOfABoundedQueue_HideNoOtherQueue(t *testing.T) {
	w := newWorld(t)
	w.plantBacklog("heavy", maxScanRows+100)
	dead := w.create(eager, 0, nil).ack().claim(time.Minute, true).run.ID
	w.pass(time.Hour)
	q := &lane.DueQuery{
		PageQuery: lane.PageQuery{Environment: "test", Limit: 100}, At: w.now, Patience: lane.Patience{Queued: time.Minute},
		Bounded: []runlane.Queue{{Name: "heavy", Concurrency: 1}},
	}
	page, err := w.store.ListRunsNeedingDelivery(w.step(), q)
	if err != nil {
		t.Fatal(err)
	}
	if found := refIDs(page); !slices.Equal(found, []runlane.RunID{dead}) {
		t.Errorf("found %v, want the run of the worker that died", found)
	}
}

// staleIndex remembers what each partition of an index showed, and shows it again from then on.
type staleIndex struct {
	API
	shown map[string]*dynamodb.QueryOutput
	stale bool
}

func (c *staleIndex) Query(ctx context.Context, in *dynamodb.QueryInput, o ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	if in.IndexName == nil {
		return c.API.Query(ctx, in, o...)
	}
	partition := ""
	for _, v := range in.ExpressionAttributeValues {
		if value := item.TextOf(v); strings.HasPrefix(value, "test:") {
			partition = value
		}
	}
	if out, ok := c.shown[partition]; ok && c.stale {
		return out, nil
	}
	return c.API.Query(ctx, in, o...)
}

// remember reads the index as it is now.
func (c *staleIndex) remember(w *world, kind rows.MarkerKind) {
	w.Helper()
	c.shown = map[string]*dynamodb.QueryOutput{}
	for shard := range rows.DefaultShards {
		name := rows.DuePartition("test", kind, shard)
		out, err := c.API.Query(w.Context(), &dynamodb.QueryInput{
			TableName: &w.store.db.Name, IndexName: aws.String(rows.IndexDue), KeyConditionExpression: aws.String("#dp = :dp"),
			ExpressionAttributeNames: item.Names("#dp"), ExpressionAttributeValues: item.Item{":dp": item.Text(name)},
		})
		if err != nil {
			w.Fatal(err)
		}
		c.shown[name] = out
	}
}

// The index still shows runs where they were: one was moved, one has finished, one is gone. No reader counts them as waiting, none
// moves them, and no page says that there is more: a tick that repeats while something waits comes to its end.
func TestHazard24_StaleRows_AreNobodysWork(t *testing.T) {
	w := newWorld(t)
	index := &staleIndex{API: w.store.db.Client}
	w.create(eager, 0, nil).ack() // to be moved
	w.create(eager, 0, nil).ack()
	finished := *w
	w.create(eager, 0, nil).ack()
	gone := *w
	w.pass(2 * time.Minute)
	index.remember(w, rows.Deliverable)
	entries := 0
	for _, out := range index.shown {
		entries += len(out.Items)
	}
	finished.claim(time.Minute, true).succeed()
	gone.claim(time.Minute, true).succeed()
	if _, err := w.store.db.Client.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{
		TableName: &w.store.db.Name, Key: item.Key(rows.RunPK(gone.key()), rows.RunSK),
	}); err != nil || entries != 3 {
		t.Fatal(entries, err)
	}
	w.inspect() // moves the one that is left
	w.store = New(index, w.store.db.Name, &Options{Now: func() time.Time { return w.now }})
	index.stale = true
	q := &lane.DueQuery{PageQuery: lane.PageQuery{Environment: "test"}, At: w.now}
	for name, list := range map[string]func(context.Context, *lane.DueQuery) (*runlane.Page[lane.RunRef], error){
		"finalizing": w.store.ListRunsNeedingCancellationFinalization, "delivery": w.store.ListRunsNeedingDelivery,
		"redelivery": w.store.ListRunsNeedingRedelivery, "dispatch": w.store.ListRunsNeedingDispatch,
		"outbox": func(ctx context.Context, q *lane.DueQuery) (*runlane.Page[lane.RunRef], error) {
			claimed, err := w.store.ClaimOutboxMessages(ctx, &lane.ClaimOutboxCommand{Environment: "test", At: q.At, ClaimUntil: q.At.Add(time.Minute)})
			return &runlane.Page[lane.RunRef]{Items: make([]lane.RunRef, len(claimed))}, err
		},
	} {
		page, err := list(w.step(), q)
		if err != nil || len(page.Items) != 0 || page.Next != "" {
			t.Errorf("%s: %+v %v", name, page, err)
		}
		if got := w.meter.Stats(); got.WriteUnits != 0 {
			t.Errorf("%s wrote %v units: %v", name, got.WriteUnits, got.Operations)
		}
	}
	index.stale = false
	w.checked()
}
