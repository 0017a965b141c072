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
	"github.com/runlane/runlane-go/lane"
)

// pace is what each request to a pacedTable takes, on the clock of a synctest bubble: what a call took tells how many of its requests
// had to wait for one another.
const pace = time.Second

// pacedTable is a table in memory that answers lists of runs. A finished run is kept as its keys, so that a million have room.
type pacedTable struct {
	API
	finished item            // an example: every finished run is like it, but for its keys
	active   map[string]item // run items by partition key
	rows     map[string][]indexPosition
	shards   int // 0: the config item is not there

	requests atomic.Int64
}

// newPacedTable has so many finished runs, and active ones that wait for their time.
func newPacedTable(t *testing.T, finished, active, shards int) *pacedTable {
	t.Helper()
	table := &pacedTable{active: map[string]item{}, rows: map[string][]indexPosition{}, shards: shards}
	counts := shardCounts{Read: defaultShards, Write: defaultShards}
	if shards > 0 {
		counts = shardCounts{Read: shards, Write: shards}
	}
	lay := func(n int, name string, run func(i int) *runItem, m marker) {
		for i := range n {
			r := run(i)
			r.PK = runPK(lane.RunKey{Environment: "test", RunID: runlane.RunID(fmt.Sprintf("run_%s%020d", name, i))})
			r.index(m, counts)
			if r.DueP != "" {
				if err := r.marshal(); err != nil {
					t.Fatal(err)
				}
				table.active[r.PK] = r.raw
				table.rows[r.DueP] = append(table.rows[r.DueP], indexPosition{r.DueP, r.DueA, r.PK})
				continue
			}
			if table.finished == nil {
				if err := r.marshal(); err != nil {
					t.Fatal(err)
				}
				table.finished = r.raw
			}
			table.rows[r.DoneP] = append(table.rows[r.DoneP], indexPosition{r.DoneP, r.DoneA, r.PK})
		}
	}
	now := toMillis(testTime)
	lay(finished, "finished", func(i int) *runItem {
		return &runItem{Status: string(terminalStatuses()[i%3]), Queue: "default", Task: "bench.noop", FinishedAt: now + millis(i)}
	}, marker{})
	later := marker{waiting, now + 3_600_000}
	lay(active, "active", func(int) *runItem {
		return &runItem{Status: string(runlane.StatusScheduled), Queue: "default", Task: "bench.noop", RunAt: later.at}
	}, later)
	for _, rows := range table.rows {
		slices.SortFunc(rows, func(a, b indexPosition) int { return strings.Compare(a.Sort, b.Sort) })
	}
	return table
}

func (p *pacedTable) answer(ctx context.Context) error {
	p.requests.Add(1)
	return Sleep(ctx, pace)
}

func (p *pacedTable) GetItem(ctx context.Context, in *dynamodb.GetItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	out := &dynamodb.GetItemOutput{}
	if p.shards > 0 && textOf(in.Key[attrSK]) == skShards {
		count := &types.AttributeValueMemberN{Value: fmt.Sprint(p.shards)}
		out.Item = item{"rd": count, "wr": count}
	}
	return out, p.answer(ctx)
}

func (p *pacedTable) Query(ctx context.Context, in *dynamodb.QueryInput, _ ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	value := func(name string) string { return textOf(in.ExpressionAttributeValues[name]) }
	rows, from, until := p.rows[value(":p")], value(":from"), value(":until")
	order := func(row indexPosition, key string) int { return strings.Compare(row.Sort, key) }
	first, _ := slices.BinarySearchFunc(rows, from, order)
	behind, _ := slices.BinarySearchFunc(rows, until, order)
	rows = rows[first:max(first, behind)]
	limit, out := int(aws.ToInt32(in.Limit)), &dynamodb.QueryOutput{}
	for n := range min(limit, len(rows)) {
		row := rows[n]
		if !aws.ToBool(in.ScanIndexForward) {
			row = rows[len(rows)-1-n]
		}
		it := item{attrPK: text(row.PK), attrDueP: text(row.Partition), attrDueA: text(row.Sort)}
		if aws.ToString(in.IndexName) == indexDone {
			it = maps.Clone(p.finished)
			it[attrPK], it[attrDoneP], it[attrDoneA] = text(row.PK), text(row.Partition), text(row.Sort)
		}
		out.Items = append(out.Items, it)
	}
	if len(out.Items) < len(rows) {
		out.LastEvaluatedKey = keyOf(out.Items[len(out.Items)-1])
	}
	return out, p.answer(ctx)
}

func (p *pacedTable) BatchGetItem(
	ctx context.Context, in *dynamodb.BatchGetItemInput, _ ...func(*dynamodb.Options),
) (*dynamodb.BatchGetItemOutput, error) {
	out := &dynamodb.BatchGetItemOutput{Responses: map[string][]item{}}
	for table, wanted := range in.RequestItems {
		for _, key := range wanted.Keys {
			if it := p.active[textOf(key[attrPK])]; it != nil {
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
