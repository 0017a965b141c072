package main

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go/middleware"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/awslane"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/examples/webhooks"
	"github.com/runlane/runlane-go/functions"
	"github.com/runlane/runlane-go/infra"
	"github.com/runlane/runlane-go/internal/proof/awstest"
	"github.com/runlane/runlane-go/internal/proof/e2e/lambdatest"
)

// simulated is what a stack deploys: table and queues, and the functions behind their event sources.
type simulated struct {
	target
	*core.Runtime
	db *dynamodb.Client
}

// part is a function that simulate leaves out.
type part string

const (
	everyFunction part = "" // none is left out
	tick          part = "tick"
	noFunction    part = "all" // no run is executed
)

// simulate makes it.
func simulate(t *testing.T, without part, handlers ...runlane.Handler) *simulated {
	t.Helper()
	d := &simulated{db: awstest.LocalStackDynamoDB(t)}
	queueClient := awstest.SQS(t)
	standard, fifo := awstest.Queue(t, queueClient, false), awstest.Queue(t, queueClient, true)
	further := awstest.Queue(t, queueClient, false)
	if handlers == nil {
		handlers = (&webhooks.Sender{}).Handlers()
	}
	d.target = target{
		environment: "prod", table: awstest.StreamedTable(t, d.db),
		queues: map[runlane.QueueName]string{webhooks.Queue.Name: standard.URL, "orders": fifo.URL, "zebra": further.URL},
	}
	l, err := awslane.New(awstest.Config(t), awslane.Options{Environment: "prod", Table: d.table, Queues: d.queues})
	if err != nil {
		t.Fatal(err)
	}
	d.Runtime, err = core.Open(t.Context(), l, &core.Options{Handlers: handlers})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	if without != noFunction {
		d.feed(t, without, queueClient, standard, fifo, further)
	}
	return d
}

// feed runs the functions until the test ends. The tick comes each second, instead of each minute.
func (d *simulated) feed(t *testing.T, without part, client *sqs.Client, queues ...infra.Queue) {
	t.Helper()
	mappings := &lambdatest.Mappings{Failed: func(err error) { t.Error(err) }}
	for _, queue := range queues {
		mappings.Queue(client, queue.URL, nil, functions.Bridge(d.Runtime))
	}
	mappings.Stream(d.db, awstest.Streams(t), d.table, nil, functions.Relay(d.Runtime))
	t.Cleanup(mappings.Stop)
	if without == tick {
		return
	}
	ctx, stop := context.WithCancel(t.Context())
	ticked := make(chan struct{})
	go func() { // ends with ctx
		defer close(ticked)
		seconds := time.NewTicker(time.Second)
		defer seconds.Stop()
		for ctx.Err() == nil {
			if _, err := d.Tick(ctx, nil); err != nil && ctx.Err() == nil {
				t.Error(err)
			}
			select {
			case <-seconds.C:
			case <-ctx.Done():
			}
		}
	}()
	t.Cleanup(func() { stop(); <-ticked })
}

// open plans a check of the deployment.
func (d *simulated) open(t *testing.T, cfg aws.Config, w wish) *smoke {
	t.Helper()
	s, err := open(t.Context(), cfg, d.target, w)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.rt.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return s
}

// wantKept fails when the table holds a run, or something of one, that is not in ids, or misses one.
func (d *simulated) wantKept(t *testing.T, ids ...runlane.RunID) {
	t.Helper()
	var want, got []string
	for _, id := range ids {
		want = append(want, "prod:run:"+string(id))
	}
	pages := dynamodb.NewScanPaginator(d.db, &dynamodb.ScanInput{TableName: &d.table, ConsistentRead: aws.Bool(true)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, item := range page.Items { // the catalog of tasks is the tick's
			if pk := item["pk"].(*types.AttributeValueMemberS).Value; pk != "prod:task" && !strings.HasPrefix(pk, "prod:config") && !slices.Contains(got, pk) {
				got = append(got, pk)
			}
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(want, got) {
		t.Errorf("the table has %q, want %q", got, want)
	}
}

func (s *smoke) reportText(t *testing.T) string {
	t.Helper()
	var text strings.Builder
	if err := s.report(&text); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

func TestCheck_SoundDeployment_EndsWellAndRemovesItsRunsOnly(t *testing.T) {
	t.Parallel()
	d := simulate(t, everyFunction)
	// A run of the application, as finished as those of the check.
	theirs, err := d.Trigger(t.Context(), webhooks.Check.With(webhooks.Probe{Do: webhooks.CheckSucceed}), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Wait(t.Context(), theirs.Run.ID); err != nil {
		t.Fatal(err)
	}

	s := d.open(t, awstest.Config(t), wish{each: 2, patience: time.Minute})
	good := s.check(t.Context())
	report := s.reportText(t)
	t.Log("\n" + report)
	runs := float64(len(s.probes))
	if s.told.WriteUnits > runs*most.Writes || s.told.ReadUnits > runs*most.Reads {
		t.Errorf("%.0f runs used %+v, more than the bound %+v of each", runs, s.told, most)
	}
	if !good || s.removed != 2*(len(everyKind())+1) {
		t.Errorf("good: %t; %d runs were removed, want %d", good, s.removed, 2*(len(everyKind())+1))
	}
	d.wantKept(t, theirs.Run.ID)
	for _, p := range s.probes {
		x, ok := splitOf(p)
		if ok == p.cancel || ok && (x.commit <= 0 || x.start < -time.Millisecond || x.end < 0) { // events have whole milliseconds
			t.Errorf("%s: the time went to %+v, %t", p.id, x, ok)
		}
	}
	// The emulator doubles index entries in transactions, so it reports more, see dynamostore's test of the meter.
	if w := s.told.WriteUnits; w == 0 || s.billed.WriteUnits < w || s.billed.WriteUnits > 1.5*w || s.billed.Requests != s.told.Requests {
		t.Errorf("DynamoDB reports %+v, the meter computes %+v", s.billed, s.told)
	}
}

// A program without the example's task is checked with a task that it has, in all its queues.
func TestCheck_TaskOfOnesOwn_IsFoundExecutedAndRemoved(t *testing.T) {
	t.Parallel()
	greet := runlane.NewTask("greet", &runlane.TaskOptions[map[string]int]{
		Retry: runlane.Retry{MaxAttempts: 3, Backoff: runlane.Fixed(time.Second)}, Timeout: 5 * time.Second, Queue: webhooks.Queue,
	})
	d := simulate(t, everyFunction, greet.Handle(func(_ context.Context, a *runlane.Attempt, p map[string]int) error {
		if a.Number <= p["failures"] {
			return errors.New("asked for")
		}
		return nil
	}))
	w := wish{
		each: 2, patience: time.Minute, task: "greet", payload: json.RawMessage(`{}`), retried: json.RawMessage(`{"failures":1}`),
	}
	for end := time.Now().Add(time.Minute); ; { // a tick that finds another one storing the tasks leaves it to that one
		if _, err := d.Tick(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		_, err := open(t.Context(), awstest.Config(t), d.target, wish{each: 2})
		if err != nil && strings.Contains(err.Error(), "of greet") {
			break
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
	s := d.open(t, awstest.Config(t), w)
	good := s.check(t.Context())
	report := s.reportText(t)
	t.Log("\n" + report)
	if want := 2 * len(everyKind()); !good || s.removed != want { // one queue more, and never released
		t.Errorf("good: %t; %d runs were removed, want %d", good, s.removed, want)
	}
	if !strings.Contains(report, "eager in zebra  2") || !strings.Contains(report, "released") {
		t.Error(report)
	}
	d.wantKept(t)
}

// A tick that does not come is found by the run that nothing else wakes.
func TestCheck_DeadTick_IsFound(t *testing.T) {
	t.Parallel()
	d := simulate(t, tick)
	s := d.open(t, awstest.Config(t), wish{each: 1, patience: 20 * time.Second})
	if s.check(t.Context()) {
		t.Error("everything is well")
	}
	for _, p := range s.probes {
		if (p.fault != nil) != p.unsent {
			t.Errorf("%s: %v", p.id, p.fault)
		}
	}
	d.wantKept(t)
}

func TestCheck_NothingExecutes_SaysWhyAndRemovesAll(t *testing.T) {
	t.Parallel()
	d := simulate(t, noFunction)
	s := d.open(t, awstest.Config(t), wish{each: 2, patience: 100 * time.Millisecond})
	if s.check(t.Context()) {
		t.Error("everything is well")
	}
	for _, p := range s.probes {
		if (p.fault == nil) != p.cancel {
			t.Errorf("%s: %v", p.id, p.fault)
		}
	}
	if report := s.reportText(t); !strings.Contains(report, "WRONG: "+s.prefix+"_eager_1: ") || !strings.Contains(report, "waits for") {
		t.Error(report)
	}
	d.wantKept(t)
}

func TestCheck_Interrupted_RemovesWhatItMade(t *testing.T) {
	t.Parallel()
	d := simulate(t, noFunction)
	for _, commits := range []int{0, 1, 5} { // one after the other: each looks at the whole table
		ctx, interrupt := context.WithCancel(t.Context())
		if commits == 0 {
			interrupt()
		}
		cfg := awstest.Config(t)
		var seen atomic.Int64
		cfg.APIOptions = append(cfg.APIOptions, afterCommit(func() {
			if seen.Add(1) == int64(commits) {
				interrupt()
			}
		}))
		s := d.open(t, cfg, wish{each: 2, patience: time.Minute})
		if s.check(ctx) {
			t.Errorf("%d commits: everything is well", commits)
		}
		if s.removed != commits || len(s.leftover) > 0 {
			t.Errorf("%d commits: %d runs were removed; left: %v", commits, s.removed, s.leftover)
		}
		d.wantKept(t)
		interrupt()
	}
}

// afterCommit calls f behind each transaction that DynamoDB took.
func afterCommit(f func()) func(*middleware.Stack) error {
	return func(stack *middleware.Stack) error {
		return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("AfterCommit", func(
			ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler,
		) (middleware.InitializeOutput, middleware.Metadata, error) {
			out, metadata, err := next.HandleInitialize(ctx, in)
			if _, commit := out.Result.(*dynamodb.TransactWriteItemsOutput); commit && err == nil {
				f()
			}
			return out, metadata, err
		}), middleware.After)
	}
}
