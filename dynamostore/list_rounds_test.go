package dynamostore

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/dynamostore/internal/ddb"
	"github.com/runlane/runlane-go/dynamostore/internal/item"
	"github.com/runlane/runlane-go/dynamostore/internal/rows"
	"github.com/runlane/runlane-go/lane"
)

// pace is what each request to a pacedTable takes, on the clock of a synctest bubble: what a call took tells how many of its requests
// had to wait for one another.
const pace = time.Second

// pacedTable is a table in memory that answers lists of runs. A finished run is kept as its keys, so that a million have room.
type pacedTable struct {
	API
	finished item.Item            // an example: every finished run is like it, but for its keys
	active   map[string]item.Item // run items by partition key
	rows     map[string][]ddb.Position
	shards   int // 0: the config item is not there

	requests atomic.Int64
}

// newPacedTable has so many finished runs, and active ones that wait for their time.
func newPacedTable(t *testing.T, finished, active, shards int) *pacedTable {
	t.Helper()
	table := &pacedTable{active: map[string]item.Item{}, rows: map[string][]ddb.Position{}, shards: shards}
	counts := rows.Shards{Read: rows.DefaultShards, Write: rows.DefaultShards}
	if shards > 0 {
		counts = rows.Shards{Read: shards, Write: shards}
	}
	lay := func(n int, name string, run func(i int) *rows.Run, m rows.Marker) {
		for i := range n {
			r := run(i)
			r.PK = rows.RunPK(lane.RunKey{Environment: "test", RunID: runlane.RunID(fmt.Sprintf("run_%s%020d", name, i))})
			r.Index(m, counts)
			if r.DueP != "" {
				if err := r.Marshal(); err != nil {
					t.Fatal(err)
				}
				table.active[r.PK] = r.Raw
				table.rows[r.DueP] = append(table.rows[r.DueP], ddb.Position{Partition: r.DueP, Sort: r.DueA, PK: r.PK})
				continue
			}
			if table.finished == nil {
				if err := r.Marshal(); err != nil {
					t.Fatal(err)
				}
				table.finished = r.Raw
			}
			table.rows[r.DoneP] = append(table.rows[r.DoneP], ddb.Position{Partition: r.DoneP, Sort: r.DoneA, PK: r.PK})
		}
	}
	now := rows.ToMillis(testTime)
	lay(finished, "finished", func(i int) *rows.Run {
		return &rows.Run{Status: string(terminalStatuses()[i%3]), Queue: "default", Task: "bench.noop", FinishedAt: now + rows.Millis(i)}
	}, rows.Marker{})
	later := rows.Marker{Kind: rows.Waiting, At: now + 3_600_000}
	lay(active, "active", func(int) *rows.Run {
		return &rows.Run{Status: string(runlane.StatusScheduled), Queue: "default", Task: "bench.noop", RunAt: later.At}
	}, later)
	for _, rows := range table.rows {
		slices.SortFunc(rows, func(a, b ddb.Position) int { return strings.Compare(a.Sort, b.Sort) })
	}
	return table
}

func (p *pacedTable) answer(ctx context.Context) error {
	p.requests.Add(1)
	return ddb.Sleep(ctx, pace)
}

func (p *pacedTable) GetItem(ctx context.Context, in *dynamodb.GetItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	out := &dynamodb.GetItemOutput{}
	if p.shards > 0 && item.TextOf(in.Key[item.SK]) == rows.ShardsSK {
		count := &types.AttributeValueMemberN{Value: fmt.Sprint(p.shards)}
		out.Item = item.Item{"rd": count, "wr": count}
	}
	return out, p.answer(ctx)
}

func (p *pacedTable) Query(ctx context.Context, in *dynamodb.QueryInput, _ ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	value := func(name string) string { return item.TextOf(in.ExpressionAttributeValues[name]) }
	entries, from, until := p.rows[value(":p")], value(":from"), value(":until")
	order := func(row ddb.Position, key string) int { return strings.Compare(row.Sort, key) }
	first, _ := slices.BinarySearchFunc(entries, from, order)
	behind, _ := slices.BinarySearchFunc(entries, until, order)
	entries = entries[first:max(first, behind)]
	limit, out := int(aws.ToInt32(in.Limit)), &dynamodb.QueryOutput{}
	for n := range min(limit, len(entries)) {
		row := entries[n]
		if !aws.ToBool(in.ScanIndexForward) {
			row = entries[len(entries)-1-n]
		}
		it := item.Item{item.PK: item.Text(row.PK), rows.AttrDueP: item.Text(row.Partition), rows.AttrDueA: item.Text(row.Sort)}
		if aws.ToString(in.IndexName) == rows.IndexDone {
			it = maps.Clone(p.finished)
			it[item.PK], it[rows.AttrDoneP], it[rows.AttrDoneA] = item.Text(row.PK), item.Text(row.Partition), item.Text(row.Sort)
		}
		out.Items = append(out.Items, it)
	}
	if len(out.Items) < len(entries) {
		out.LastEvaluatedKey = item.KeyOf(out.Items[len(out.Items)-1])
	}
	return out, p.answer(ctx)
}

func (p *pacedTable) BatchGetItem(
	ctx context.Context, in *dynamodb.BatchGetItemInput, _ ...func(*dynamodb.Options),
) (*dynamodb.BatchGetItemOutput, error) {
	out := &dynamodb.BatchGetItemOutput{Responses: map[string][]item.Item{}}
	for table, wanted := range in.RequestItems {
		for _, key := range wanted.Keys {
			if it := p.active[item.TextOf(key[item.PK])]; it != nil {
				out.Responses[table] = append(out.Responses[table], it)
			}
		}
	}
	return out, p.answer(ctx)
}

// TestListRuns_FirstPage_IsTwoRounds_HoweverManyRunsAreRetained asks a store that has just been opened, as the command line does.
func TestListRuns_FirstPage_IsTwoRounds_HoweverManyRunsAreRetained(t *testing.T) {
	t.Parallel()
	finished := []int{10, 1_000}
	if *retained {
		finished = append(finished, 1_000_000)
	}
	for name, c := range map[string]struct {
		active, shards int
		statuses       []runlane.Status
		rounds         int
	}{
		"nothing active":                  {rounds: 2},
		"some active":                     {active: 20, rounds: 2},
		"a page of active ones":           {active: 400, rounds: 2},
		"finished ones alone":             {active: 20, statuses: terminalStatuses(), rounds: 1},
		"failed ones alone":               {active: 20, statuses: []runlane.Status{runlane.StatusFailed}, rounds: 1},
		"active ones alone":               {active: 20, statuses: []runlane.Status{runlane.StatusScheduled}, rounds: 2},
		"more shards than are usual":      {active: 20, shards: 12, rounds: 3}, // it learns of them in the first
		"more shards, finished ones only": {shards: 12, statuses: terminalStatuses(), rounds: 2},
		"fewer shards than are usual":     {active: 20, shards: 4, rounds: 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			requests := map[int]int64{}
			for _, n := range finished {
				table := newPacedTable(t, n, c.active, c.shards)
				synctest.Test(t, func(t *testing.T) {
					began := time.Now()
					page, err := New(table, "table", nil).ListRuns(t.Context(), &lane.RunQuery{
						PageQuery: lane.PageQuery{Environment: "test"}, Statuses: c.statuses,
					})
					if err != nil || len(page.Items) == 0 {
						t.Fatalf("%+v, %v", page, err)
					}
					rounds := float64(time.Since(began)) / float64(pace)
					t.Logf("%d finished: %d runs in %g rounds of %d requests", n, len(page.Items), rounds, table.requests.Load())
					if rounds > float64(c.rounds) {
						t.Errorf("%d finished: %g rounds, not %d", n, rounds, c.rounds)
					}
				})
				requests[n] = table.requests.Load()
			}
			for n, sent := range requests {
				if sent != requests[finished[1]] {
					t.Errorf("%d requests over %d finished runs, %d over %d", sent, n, requests[finished[1]], finished[1])
				}
			}
		})
	}
}
