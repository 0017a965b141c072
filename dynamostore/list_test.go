package dynamostore

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/dynamostore/internal/ddb"
	"github.com/runlane/runlane-go/dynamostore/internal/item"
	"github.com/runlane/runlane-go/dynamostore/internal/rows"
	"github.com/runlane/runlane-go/lane"
)

var retained = flag.Bool("retained", false, "look at as many runs as are promised, instead of a few")

// withActive lays down active runs: a third to be published, a third whose retry is due, a third under a lease.
func (w *world) withActive(n int) *world {
	w.Helper()
	w.create(deferred, 0, nil).load(w.template(), "deferred", n/3)
	w.pass(time.Second).create(eager, 0, nil).ack().claim(time.Hour, true)
	w.end(&runlane.RunRetryScheduled{Attempt: 1, Failure: runlane.Failure{Code: runlane.ErrTaskFailed}, RetryAt: w.now.Add(time.Second)})
	w.load(w.template(), "retrying", n/3)
	w.pass(time.Second).create(eager, 0, nil).ack().claim(time.Hour, false).load(w.template(), "running", n/3)
	return w.pass(time.Second)
}

func (w *world) list(q *lane.RunQuery) (ids []runlane.RunID, pages int) {
	w.Helper()
	q.Environment = "test"
	for {
		page, err := w.store.ListRuns(w.step(), q)
		if err != nil {
			w.Fatal(err)
		}
		for _, item := range page.Items {
			ids = append(ids, item.ID)
		}
		pages++
		if q.After = page.Next; q.After == "" {
			return ids, pages
		}
	}
}

// A filter that lets nothing through makes pages that are empty and go on: none examines more than a thousand rows.
func TestHazard25_FilterWithoutMatches_ExaminesABoundedPart(t *testing.T) {
	w := newWorld(t).withActive(150)
	w.create(eager, 0, nil).ack().other(&runlane.RunCancelled{}).load(w.template(), "cancelled", 900)
	q := &lane.RunQuery{TaskID: "another.task"}
	ids, pages := w.list(q)
	if len(ids) != 0 || pages != 2 { // 154 + 900 rows
		t.Errorf("%d runs on %d pages", len(ids), pages)
	}
	q.TaskID, q.Limit = "", runlane.MaxPageLimit
	if ids, pages := w.list(q); len(ids) != 154+900 || len(ids) != len(slices.Compact(slices.Sorted(slices.Values(ids)))) || pages > 10 {
		t.Errorf("%d runs on %d pages", len(ids), pages)
	}
}

// Runs that wait for a slot have no own time: they come after those that have one, by partition, and before finished ones.
func TestHazard25_SlotlessRuns_ComeBetweenTimedAndFinishedOnes(t *testing.T) {
	w := newWorld(t)
	w.finished(nil, nil).load(w.template(), "c", 3)
	w.pass(time.Second).create(eager, time.Hour, nil).load(w.template(), "a", 3)
	w.pass(time.Second).create(deferred, 0, nil)
	slots := w.template()
	for i, it := range slots {
		if item.TextOf(it[item.SK]) == rows.RunSK {
			r, err := rows.UnmarshalRun(it)
			if err != nil {
				t.Fatal(err)
			}
			r.Index(rows.Marker{Kind: rows.Slotless, At: rows.ToMillis(w.now)}, rows.Shards{Write: rows.DefaultShards, Read: rows.DefaultShards})
			if err := r.Marshal(); err != nil {
				t.Fatal(err)
			}
			slots[i] = r.Raw
		}
	}
	w.load(slots, "b", 3)
	for limit := range 12 {
		ids, _ := w.list(&lane.RunQuery{PageQuery: lane.PageQuery{Limit: limit}})
		var order []byte
		for _, id := range ids {
			if id[4] >= 'a' && (len(order) == 0 || order[len(order)-1] != id[4]) {
				order = append(order, id[4])
			}
		}
		if string(order) != "abc" || len(ids) != 12 {
			t.Errorf("limit %d: %d runs, in the order %q", limit, len(ids), order)
		}
	}
}

// tiedIndex is an index whose rows share few sort keys. Those that share one are in an order that is not their ids'.
type tiedIndex struct {
	API
	partitions map[string][]ddb.Row
}

func (x *tiedIndex) Query(_ context.Context, in *dynamodb.QueryInput, _ ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	value := func(name string) string { return item.TextOf(in.ExpressionAttributeValues[name]) }
	entries := slices.Clone(x.partitions[value(":p")])
	if !aws.ToBool(in.ScanIndexForward) {
		slices.Reverse(entries)
	}
	out := &dynamodb.QueryOutput{}
	started := in.ExclusiveStartKey == nil
	for _, row := range entries {
		if !started {
			started = row.PK == item.TextOf(in.ExclusiveStartKey[item.PK])
			continue
		}
		if row.Sort < value(":from") || row.Sort > value(":until") {
			continue
		}
		if len(out.Items) == int(aws.ToInt32(in.Limit)) {
			last := out.Items[len(out.Items)-1]
			out.LastEvaluatedKey = item.Item{item.PK: last[item.PK]}
			break
		}
		out.Items = append(out.Items, item.Item{item.PK: item.Text(row.PK), rows.AttrDueA: item.Text(row.Sort)})
	}
	return out, nil
}

// Every row is shown once and in order, wherever the walk is stopped and taken up again.
func TestWalkIndex_TiesAreNeitherMissedNorRepeated(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0)) // no secrecy
	for range 300 {
		index := &tiedIndex{partitions: map[string][]ddb.Row{}}
		sp := &ddb.Span{Index: indexes[0], SK: rows.RunSK, Backwards: random.IntN(2) == 0}
		total := random.IntN(60)
		for p := range 1 + random.IntN(4) {
			sp.Partitions = append(sp.Partitions, ddb.Partition{Name: fmt.Sprint("partition ", p), From: item.BeforeKeys, Until: item.BeyondKeys})
		}
		for n := range total {
			p := sp.Partitions[random.IntN(len(sp.Partitions))].Name
			row := ddb.Row{Position: ddb.Position{Partition: p, Sort: fmt.Sprintf("%013d:q", random.IntN(5)), PK: fmt.Sprint("pk ", n)}}
			index.partitions[p] = append(index.partitions[p], row)
		}
		for _, rows := range index.partitions {
			random.Shuffle(len(rows), func(a, b int) { rows[a], rows[b] = rows[b], rows[a] })
			slices.SortStableFunc(rows, func(a, b ddb.Row) int {
				return (&ddb.Span{}).Order(ddb.Position{Sort: a.Sort}, ddb.Position{Sort: b.Sort})
			})
		}
		store := New(index, "table", nil)
		var shown []ddb.Position
		for more, after := true, (ddb.Position{}); more; {
			var err error
			var examined int
			most, stop := 1+random.IntN(20), 1+random.IntN(10)
			before := len(shown)
			examined, after, more, err = store.db.Walk(t.Context(), "test", sp, after, 1+random.IntN(9), most, func(rows []ddb.Row) (int, bool, error) {
				taken := min(stop, len(rows))
				for _, row := range rows[:taken] {
					shown = append(shown, row.Position)
				}
				return taken, taken < len(rows), nil
			})
			if err != nil || examined != len(shown)-before || examined > most || more && examined == 0 {
				t.Fatalf("%d examined of at most %d: %v", examined, most, err)
			}
		}
		distinct := map[ddb.Position]bool{}
		for _, p := range shown {
			distinct[p] = true
		}
		if len(shown) != total || len(distinct) != total || !slices.IsSortedFunc(shown, sp.Order) {
			t.Fatalf("%d of %d rows, %d distinct: %v", len(shown), total, len(distinct), shown)
		}
	}
}
