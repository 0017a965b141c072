package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

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

// engine is the product on DynamoDB Local.
type engine struct {
	*testing.T
	client  *dynamodb.Client
	table   string
	store   *dynamostore.Store
	wakeups *memlane.Transport
	rt      *core.Runtime
	trigger func(*runlane.TriggerOptions) runlane.RunID
}

// openEngine has one task, whose handler is told the number of the attempt.
func openEngine(t *testing.T, options runlane.TaskOptions[int], handler func(attempt int) error, now func() time.Time) *engine {
	t.Helper()
	e := &engine{T: t, client: awstest.DynamoDB(t)}
	e.table = awstest.Table(t, e.client)
	e.store = dynamostore.New(e.client, e.table, &dynamostore.Options{Now: now, RequestTimeout: awstest.RequestTimeout})
	e.wakeups = memlane.NewTransport(nil)
	l, err := lane.New(e.store, e.wakeups, nil)
	if err != nil {
		t.Fatal(err)
	}
	task := runlane.NewTask("simulated", &options)
	e.rt, err = core.Open(t.Context(), l, &core.Options{
		Handlers: []runlane.Handler{task.Handle(func(_ context.Context, a *runlane.Attempt, _ int) error { return handler(a.Number) })},
		Logger:   slog.New(slog.DiscardHandler), World: &core.World{Now: now},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.rt.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	e.trigger = func(options *runlane.TriggerOptions) runlane.RunID {
		result, err := e.rt.Trigger(t.Context(), task.With(1), options)
		if err != nil {
			t.Fatal(err)
		}
		return result.Run.ID
	}
	return e
}

// work executes wakeups, as the bridge does, until the store has seen so many of an operation.
func (e *engine) work(queue runlane.QueueName, operation string, count int64) {
	e.Helper()
	e.workers(queue, 4, operation, count)
}

// workers are so many at a time.
func (e *engine) workers(queue runlane.QueueName, atOnce int, operation string, count int64) {
	e.Helper()
	ctx, stop := context.WithCancel(e.Context())
	ended := make(chan error, 1)
	go func() { // ends with stop
		ended <- e.wakeups.Receive(ctx, []runlane.QueueName{queue}, atOnce, func(ctx context.Context, w lane.Wakeup) error {
			_, err := e.rt.ExecuteDelivery(ctx, w, nil)
			return err
		})
	}()
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	deadline := time.NewTimer(time.Minute)
	defer deadline.Stop()
	for done := false; !done; {
		select {
		case <-look.C:
			done = e.store.Stats().Operations[operation].Requests >= count
		case <-deadline.C:
			e.Errorf("after a minute: %v", e.store.Stats().Operations)
			done = true
		}
	}
	stop()
	if err := <-ended; err != nil {
		e.Error(err)
	}
}

// compare holds the requests of both against each other, by their names.
func compare(t *testing.T, engine map[string]dynamostore.Usage, simulated map[string]spent, only ...string) {
	t.Helper()
	names := map[string]bool{}
	for name := range engine {
		names[name] = true
	}
	for name := range simulated {
		names[name] = true
	}
	compared := 0
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if name == "read config" || strings.HasSuffix(name, "task") { // once a minute, and when a program starts
			continue
		}
		if len(only) > 0 && !slices.Contains(only, name) {
			continue
		}
		theirs := engine[name]
		ours := simulated[name]
		compared++
		if float64(theirs.Requests) != ours.Requests || theirs.WriteUnits != ours.Writes || theirs.ReadUnits != ours.Reads {
			t.Errorf("%s: the engine %+v, the simulation %+v", name, theirs, ours)
		}
	}
	if compared < 2 {
		t.Errorf("only %d operations were compared", compared)
	}
}

// smallLoad is so many single runs within less than a minute: no tick looks at them.
func smallLoad(runs float64) load {
	return load{Rate: 10, During: time.Duration(runs / 10 * float64(time.Second)), Then: 30 * time.Second, Handler: time.Millisecond, Weight: 1, Attempts: 1}
}

func TestSmallWorlds_SendWhatTheEngineSends(t *testing.T) {
	t.Parallel()
	const runs = 12
	fails := func(int) error { return errors.New("no") }
	once := func(attempt int) error {
		if attempt == 1 {
			return errors.New("no")
		}
		return nil
	}
	fine := func(int) error { return nil }
	for name, c := range map[string]struct {
		options  runlane.TaskOptions[int]
		trigger  *runlane.TriggerOptions
		handler  func(int) error
		last     string
		simulate func(*load)
	}{
		"simple": {handler: fine, last: "run.succeeded"},
		"one failure": {
			options: runlane.TaskOptions[int]{Retry: runlane.Retry{MaxAttempts: 3}}, handler: once, last: "run.succeeded",
			simulate: func(l *load) {
				l.Attempts, l.Failing = 3, func(_ time.Duration, attempt int) bool { return attempt == 1 }
			},
		},
		"failed for good": {
			options: runlane.TaskOptions[int]{Retry: runlane.Retry{MaxAttempts: 2, Backoff: runlane.Fixed(time.Second)}}, handler: fails, last: "run.failed",
			simulate: func(l *load) { l.Attempts, l.Failing = 2, func(time.Duration, int) bool { return true } },
		},
		"delayed": {
			trigger: &runlane.TriggerOptions{Delay: 1200 * time.Millisecond}, handler: fine, last: "run.succeeded",
			simulate: func(l *load) { l.Delay = 1200 * time.Millisecond },
		},
		"bounded with room": {
			options: runlane.TaskOptions[int]{Queue: runlane.Queue{Name: "bounded", Concurrency: 100}}, handler: fine, last: "run.succeeded",
			simulate: func(l *load) { l.Limit = 100 },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := openEngine(t, c.options, c.handler, time.Now)
			for range runs {
				e.trigger(c.trigger)
			}
			queue := c.options.Queue.Name
			if queue == "" {
				queue = runlane.DefaultQueue.Name
			}
			e.work(queue, c.last, runs)
			l := smallLoad(runs)
			if c.simulate != nil {
				c.simulate(&l)
			}
			w := simulate(1, freshDeployment(), l)
			if w.outcome.created != runs || w.outcome.active != 0 {
				t.Fatalf("%+v", w.outcome)
			}
			compare(t, e.store.Stats().Operations, w.requests)
		})
	}
}

// The relay publishes what was triggered for it.
func TestSmallWorlds_DeferredRuns_SendWhatTheEngineSends(t *testing.T) {
	t.Parallel()
	const runs = 12
	e := openEngine(t, runlane.TaskOptions[int]{}, func(int) error { return nil }, time.Now)
	for range runs {
		id := e.trigger(&runlane.TriggerOptions{Deferred: true})
		row := fmt.Sprintf("%s:1:0", id) // as the stream's record of the commit names it
		if result, err := e.rt.PublishWakeups(t.Context(), []string{row}); err != nil || result.Done != 1 {
			t.Fatal(result, err)
		}
	}
	e.work(runlane.DefaultQueue.Name, "run.succeeded", runs)
	l := smallLoad(runs)
	l.Deferred = true
	compare(t, e.store.Stats().Operations, simulate(1, freshDeployment(), l).requests)
}

// A tick parks the markers of runs whose wakeups wait, and asks for the wakeups again when ten minutes have passed.
func TestSmallWorlds_LostWakeups_SendWhatTheEngineSends(t *testing.T) {
	t.Parallel()
	const runs = 20
	now := time.Now()
	e := openEngine(t, runlane.TaskOptions[int]{}, func(int) error { return nil }, func() time.Time { return now })
	for range runs {
		e.trigger(nil)
	}
	created := e.store.Stats().Operations
	for minute := 1; minute <= 13; minute++ {
		now = now.Add(time.Minute)
		if _, err := e.rt.Tick(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
	}
	writes := map[string]dynamostore.Usage{}
	for name, usage := range e.store.Stats().Operations {
		writes[name] = usage.Minus(created[name])
	}

	w := newWorld(1, freshDeployment(), load{Backlog: runs, Weight: 1, Attempts: 1})
	w.ticks()
	w.fill()
	w.run(13*time.Minute+30*time.Second, nil)
	compare(t, writes, w.requests, "move marker", "run.delivery_requested", "acknowledge")
	if w.outcome.looked != 2*runs || w.outcome.again != runs {
		t.Errorf("%v looked at, %v asked for again", w.outcome.looked, w.outcome.again)
	}
}

// Runs stand in the shards that the simulation deals them to.
func TestShards_AreTheEngines(t *testing.T) {
	t.Parallel()
	e := openEngine(t, runlane.TaskOptions[int]{}, func(int) error { return nil }, time.Now)
	seen := map[int]bool{}
	for range 24 {
		id := e.trigger(nil)
		out, err := e.client.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: &e.table, Key: map[string]types.AttributeValue{
			"pk": &types.AttributeValueMemberS{Value: "default:run:" + string(id)}, "sk": &types.AttributeValueMemberS{Value: "run"},
		}, ConsistentRead: aws.Bool(true)})
		if err != nil {
			t.Fatal(err)
		}
		partition, ok := out.Item["dp"].(*types.AttributeValueMemberS)
		shard := shardOf(string(id), defaultShards)
		seen[shard] = true
		if want := fmt.Sprintf("default:%c:%d", deliverable, shard); !ok || partition.Value != want {
			t.Errorf("%s stands in %+v, want %s", id, partition, want)
		}
	}
	if len(seen) < 2 {
		t.Errorf("all runs stand in shard %v", seen)
	}
}
