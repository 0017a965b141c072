package functions_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/awslane"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/functions"
	"github.com/runlane/runlane-go/infra"
	"github.com/runlane/runlane-go/internal/proof/awstest"
	"github.com/runlane/runlane-go/internal/proof/e2e/lambdatest"
	"github.com/runlane/runlane-go/internal/proof/scenarios/patience"
)

// deployed is a program on local AWS with its table, its queue and what the template's mappings would do.
type deployed struct {
	*core.Runtime

	queue infra.Queue
	sqs   *sqs.Client

	mu      sync.Mutex
	greeted []string
}

func deploy(t *testing.T, fifo bool) *deployed {
	t.Helper()
	d, table := openLocal(t, fifo)
	d.feed(t, table)
	return d
}

// openLocal is the program without its mappings.
func openLocal(t *testing.T, fifo bool) (d *deployed, table string) {
	t.Helper()
	cfg, db := awstest.Config(t), awstest.LocalStackDynamoDB(t)
	d = &deployed{sqs: awstest.SQS(t)}
	table = awstest.StreamedTable(t, db)
	d.queue = awstest.Queue(t, d.sqs, fifo)
	l, err := awslane.New(cfg, awslane.Options{
		Environment: "prod", Table: table, Queues: map[runlane.QueueName]string{"default": d.queue.URL},
	})
	if err != nil {
		t.Fatal(err)
	}
	d.Runtime, err = core.Open(t.Context(), l, &core.Options{Handlers: []runlane.Handler{
		greet.Handle(func(_ context.Context, _ *runlane.Attempt, name string) error {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.greeted = append(d.greeted, name)
			return nil
		}),
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return d, table
}

// feed runs the mappings until the test ends.
func (d *deployed) feed(t *testing.T, table string) {
	t.Helper()
	mappings := &lambdatest.Mappings{Failed: func(err error) { t.Error(err) }}
	mappings.Queue(d.sqs, d.queue.URL, nil, functions.Bridge(d.Runtime))
	mappings.Stream(awstest.LocalStackDynamoDB(t), awstest.Streams(t), table, nil, functions.Relay(d.Runtime))
	t.Cleanup(mappings.Stop)
}

// greet triggers a run for each name and waits until all are through.
func (d *deployed) greet(t *testing.T, options *runlane.TriggerOptions, names ...string) {
	t.Helper()
	ctx, cancel := patience.Context(t)
	defer cancel()
	var ids []runlane.RunID
	for _, name := range names {
		result, err := d.Trigger(ctx, greet.With(name), options)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, result.Run.ID)
	}
	for _, id := range ids {
		run, err := d.Wait(ctx, id)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "status", run.Status, runlane.StatusSucceeded)
	}
}

func names(prefix string, n int) (list []string) {
	for i := range n {
		list = append(list, fmt.Sprint(prefix, i))
	}
	return list
}

func TestLocal_Runs_GoThroughRelayQueueAndBridge(t *testing.T) {
	t.Parallel()
	d := deploy(t, false)
	d.greet(t, deferred, names("relayed-", 12)...)
	d.greet(t, nil, names("eager-", 12)...)
	d.greet(t, &runlane.TriggerOptions{Delay: 2 * time.Second}, names("delayed-", 3)...)
	equal(t, "executions", len(d.greeted), 27)
}

func TestLocal_FIFO_RunsOfAKey_ExecuteInOrder(t *testing.T) {
	t.Parallel()
	d := deploy(t, true)
	var all []string
	for _, key := range []string{"a", "b"} {
		list := names(key, 8)
		all = append(all, list...)
		d.greet(t, &runlane.TriggerOptions{ConcurrencyKey: key}, list...)
	}
	var got []string
	for _, key := range []string{"a", "b"} {
		for _, name := range d.greeted {
			if strings.HasPrefix(name, key) {
				got = append(got, name)
			}
		}
	}
	equal(t, "order", got, all)
}

func TestLocal_LongLivedWorker_NeedsNoMappings(t *testing.T) {
	t.Parallel()
	d, _ := openLocal(t, false)
	ctx, cancel := context.WithCancel(t.Context())
	worker := make(chan error, 1)
	go func() { worker <- d.Work(ctx, nil) }() // ends with ctx
	d.greet(t, nil, names("eager-", 30)...)
	cancel()
	if err := <-worker; err != nil {
		t.Error(err)
	}
	equal(t, "executions", len(d.greeted), 30)
	visible, inFlight, err := d.depth(t)
	equal(t, "depth afterwards", []any{visible, inFlight, err}, []any{0, 0, error(nil)})
}

func (d *deployed) depth(t *testing.T) (visible, inFlight int, err error) {
	t.Helper()
	return d.Lane().Transport.Depth(t.Context(), "default")
}
