package main

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/dynamostore"
	"github.com/runlane/runlane-go/internal/proof/awstest"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/memlane"
)

// freedCase is a queue whose runs all end at the same moment, in several processes.
type freedCase struct {
	limit, waiting, processes int
	late                      bool // the indexes show nothing of what happens from then on
	beside                    func(rt *core.Runtime, ids []runlane.RunID)
}

// freedReads is how many units of reads an outcome may take on average, the reading of its slots and what races cost included.
const freedReads = 16

// Of n slots that are freed together at least nine tenths go to waiting runs at once; before, those who freed them all offered them to
// the same run, and all but a few slots were idle until the next tick.
func TestLoad_SlotsFreedTogether_AreHandedOverAtOnce(t *testing.T) {
	for _, c := range []freedCase{
		{limit: 40, waiting: 80, processes: 4},
		{limit: 40, waiting: 80, processes: 4, late: true},
		{limit: 40, waiting: 40, processes: 2, late: true},
		{limit: 100, waiting: 200, processes: 4},
		{limit: 100, waiting: 200, processes: 4, late: true},
	} {
		name := fmt.Sprintf("limit %d, %d waiting, late %v", c.limit, c.waiting, c.late)
		if !c.late {
			t.Run(embedded+", "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					storage := memlane.NewStorage(nil)
					c.play(t, func(int) lane.Storage { return storage }, func() {}, func() {})
				})
			})
		}
		t.Run(dynamoDB+", "+name, func(t *testing.T) {
			client := awstest.DynamoDB(t)
			table := awstest.Table(t, client)
			index := &lateIndex{API: client, table: table}
			stores := make([]*dynamostore.Store, c.processes)
			for i := range stores {
				stores[i] = dynamostore.New(index, table, &dynamostore.Options{RequestTimeout: awstest.RequestTimeout})
			}
			reads := 0.0
			c.play(t, func(process int) lane.Storage { return stores[process] }, func() {
				if c.late {
					index.freeze(t)
				}
				reads -= readUnits(stores)
			}, func() { reads += readUnits(stores) })
			t.Logf("%.1f read units an outcome", reads/float64(c.limit))
			if reads > freedReads*float64(c.limit) {
				t.Errorf("%.1f read units an outcome, want at most %d", reads/float64(c.limit), freedReads)
			}
		})
	}
}

// Another process moved on most of the runs that an index still shows as waiting, those that waited longest. One outcome read 77 of them,
// one by one, before its wakeup was acknowledged.
func TestLoad_StaleRowsBeforeTheFirstWaitingRun_CostABoundedNumberOfReads(t *testing.T) {
	client := awstest.DynamoDB(t)
	table := awstest.Table(t, client)
	index := &lateIndex{API: client, table: table}
	finisher := dynamostore.New(index, table, &dynamostore.Options{RequestTimeout: awstest.RequestTimeout})
	other := dynamostore.New(client, table, &dynamostore.Options{RequestTimeout: awstest.RequestTimeout})
	c := &freedCase{limit: 1, waiting: 100, processes: 1}
	c.beside = func(rt *core.Runtime, ids []runlane.RunID) {
		index.freeze(t)
		l, err := lane.New(other, memlane.NewTransport(nil), nil)
		if err != nil {
			t.Fatal(err)
		}
		beside, err := core.Open(t.Context(), l, &core.Options{Environment: loadEnvironment, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = beside.Close(context.Background()) })
		for _, run := range c.longestWaiting(t, rt, ids)[:77] {
			if _, err := beside.Runs().Cancel(t.Context(), run.ID, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	reads := 0.0
	c.play(t, func(int) lane.Storage { return finisher }, func() { reads -= finisher.Stats().ReadUnits }, func() { reads += finisher.Stats().ReadUnits })
	t.Logf("%.1f read units", reads)
	if reads > freedReads {
		t.Errorf("an outcome read %.1f units, want at most %d", reads, freedReads)
	}
}

// longestWaiting are the runs that wait for a slot, in the order in which they do.
func (c *freedCase) longestWaiting(t *testing.T, rt *core.Runtime, ids []runlane.RunID) (runs []*runlane.Run) {
	t.Helper()
	for _, id := range ids {
		run, err := rt.Runs().Get(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if run.Status == runlane.StatusQueued {
			runs = append(runs, run)
		}
	}
	slices.SortFunc(runs, func(a, b *runlane.Run) int { return a.UpdatedAt.Compare(b.UpdatedAt) })
	return runs
}

func readUnits(stores []*dynamostore.Store) (units float64) {
	for _, store := range stores {
		units += store.Stats().ReadUnits
	}
	return units
}

// gaveUp counts hand-overs that ended because their time was over: on a machine that is this slow they prove nothing.
type gaveUp struct{ count atomic.Int64 }

func (*gaveUp) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelWarn }
func (g *gaveUp) WithAttrs([]slog.Attr) slog.Handler             { return g }
func (g *gaveUp) WithGroup(string) slog.Handler                  { return g }

func (g *gaveUp) Handle(_ context.Context, record slog.Record) error {
	record.Attrs(func(a slog.Attr) bool {
		if a.Key == "code" && a.Value.String() == string(runlane.ErrOperationCancelled) && strings.HasPrefix(record.Message, "freed slot") {
			g.count.Add(1)
		}
		return true
	})
	return nil
}

// play fills the queue, executes as many runs as it takes, and lets them all end between the calls of free and freed.
func (c *freedCase) play(t *testing.T, open func(process int) lane.Storage, free, freed func()) {
	t.Helper()
	var executing sync.WaitGroup
	executing.Add(c.limit)
	ending := make(chan struct{})
	task := runlane.NewTask("load.freed", &runlane.TaskOptions[struct{}]{Queue: runlane.Queue{Name: "narrow", Concurrency: c.limit}})
	handler := task.Handle(func(context.Context, *runlane.Attempt, struct{}) error {
		executing.Done()
		<-ending
		return nil
	})
	var runtimes []*core.Runtime
	tooSlow := &gaveUp{}
	for process := range c.processes {
		l, err := lane.New(open(process), memlane.NewTransport(nil), nil)
		if err != nil {
			t.Fatal(err)
		}
		rt, err := core.Open(t.Context(), l, &core.Options{
			Environment: loadEnvironment, Handlers: []runlane.Handler{handler}, Logger: slog.New(tooSlow),
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = rt.Close(context.Background()) })
		runtimes = append(runtimes, rt)
	}
	items := make([]core.BatchItem, c.limit+c.waiting)
	for i := range items {
		items[i] = core.BatchItem{Call: task.With(struct{}{})}
	}
	results, err := runtimes[0].TriggerBatch(t.Context(), items)
	if err != nil {
		t.Fatal(err)
	}
	var ids []runlane.RunID
	for i := range results {
		if results[i].Err != nil {
			t.Fatal(results[i].Err)
		}
		ids = append(ids, results[i].Result.Run.ID)
	}
	for len(c.reserved(t, runtimes[0], ids)) < c.limit { // creations that met at one number wait
		if _, err := runtimes[0].Tick(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
	}
	var attempts sync.WaitGroup
	var failed atomic.Int64
	for i, run := range c.reserved(t, runtimes[0], ids) {
		attempts.Go(func() {
			w := lane.Wakeup{RunKey: lane.RunKey{Environment: loadEnvironment, RunID: run.ID}, Queue: "narrow", RequestedAt: run.UpdatedAt}
			result, err := runtimes[i%len(runtimes)].ExecuteDelivery(t.Context(), w, nil)
			if err != nil || result.Ignored != "" {
				failed.Add(1)
				t.Errorf("run %s: %+v, %v", run.ID, result, err)
				executing.Done()
			}
		})
	}
	executing.Wait()
	if failed.Load() > 0 {
		close(ending)
		attempts.Wait()
		t.FailNow()
	}
	if c.beside != nil {
		c.beside(runtimes[0], ids)
	}
	free()
	close(ending)
	attempts.Wait()
	freed()
	handed := len(c.reserved(t, runtimes[0], ids))
	late := int(tooSlow.count.Load())
	t.Logf("of %d slots freed together %d are handed over, %d hand-overs ran out of time", c.limit, handed, late)
	if handed > c.limit {
		t.Errorf("%d runs have a slot, the limit is %d", handed, c.limit)
	}
	if want := (min(c.limit, c.waiting)*9 + 9) / 10; handed+late < want {
		t.Errorf("of %d slots freed together %d were handed over, want at least %d", c.limit, handed, want)
	}
}

// reserved are the runs that have a reservation.
func (c *freedCase) reserved(t *testing.T, rt *core.Runtime, ids []runlane.RunID) (runs []*runlane.Run) {
	t.Helper()
	for _, id := range ids {
		run, err := rt.Runs().Get(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if run.Status == runlane.StatusQueued && !run.DispatchExpiresAt.IsZero() {
			runs = append(runs, run)
		}
	}
	return runs
}

// lateIndex is a client whose index of due runs stands still once it is frozen: as if it were late by longer than anything that follows.
type lateIndex struct {
	dynamostore.API

	table string
	rows  atomic.Pointer[[]map[string]types.AttributeValue] // in order
}

func (l *lateIndex) freeze(t *testing.T) {
	t.Helper()
	var rows []map[string]types.AttributeValue
	in := &dynamodb.ScanInput{TableName: &l.table, IndexName: aws.String("due")}
	for {
		out, err := l.API.Scan(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, out.Items...)
		if in.ExclusiveStartKey = out.LastEvaluatedKey; in.ExclusiveStartKey == nil {
			break
		}
	}
	sortRows(rows)
	l.rows.Store(&rows)
}

func attribute(row map[string]types.AttributeValue, name string) string {
	if s, ok := row[name].(*types.AttributeValueMemberS); ok {
		return s.Value
	}
	return ""
}

func sortRows(rows []map[string]types.AttributeValue) {
	slices.SortFunc(rows, func(a, b map[string]types.AttributeValue) int {
		return cmp.Or(strings.Compare(attribute(a, "da"), attribute(b, "da")), strings.Compare(attribute(a, "pk"), attribute(b, "pk")))
	})
}

// Query answers for the frozen index what DynamoDB would: rows of a partition between two keys, in order, behind a start.
func (l *lateIndex) Query(ctx context.Context, in *dynamodb.QueryInput, o ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	rows := l.rows.Load()
	if rows == nil || aws.ToString(in.IndexName) != "due" || in.ExpressionAttributeValues[":until"] == nil {
		return l.API.Query(ctx, in, o...)
	}
	dp := attribute(in.ExpressionAttributeValues, ":dp") + attribute(in.ExpressionAttributeValues, ":p")
	from, until := attribute(in.ExpressionAttributeValues, ":from"), attribute(in.ExpressionAttributeValues, ":until")
	out := &dynamodb.QueryOutput{}
	for _, row := range *rows {
		da := attribute(row, "da")
		behind := in.ExclusiveStartKey == nil || da+" "+attribute(row, "pk") > attribute(in.ExclusiveStartKey, "da")+" "+attribute(in.ExclusiveStartKey, "pk")
		if attribute(row, "dp") != dp || da < from || da > until || !behind {
			continue
		}
		if in.Limit != nil && len(out.Items) == int(*in.Limit) {
			out.LastEvaluatedKey = out.Items[len(out.Items)-1]
			break
		}
		out.Items = append(out.Items, row)
	}
	out.Count = int32(len(out.Items)) // a page
	return out, nil
}
