package main

import (
	"context"
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
	"go.uber.org/goleak"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/awslane"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/examples/webhooks"
	"github.com/runlane/runlane-go/functions"
	"github.com/runlane/runlane-go/infra"
	"github.com/runlane/runlane-go/internal/proof/awstest"
	"github.com/runlane/runlane-go/internal/proof/lambdatest"
)

// Idle connections belong to the SDK's HTTP client, which lives as long as the process.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"),
		goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"))
}

// deployed is what a stack deploys: table and queues, and the functions behind their event sources.
type deployed struct {
	target
	*core.Runtime
	db *dynamodb.Client
}

// deploy makes it. Without functions no run is executed.
func deploy(t *testing.T, withFunctions bool) *deployed {
	t.Helper()
	d := &deployed{db: awstest.LocalStackDynamoDB(t)}
	queueClient := awstest.SQS(t)
	standard, fifo := awstest.Queue(t, queueClient, false), awstest.Queue(t, queueClient, true)
	d.target = target{
		environment: "prod", table: awstest.StreamedTable(t, d.db),
		queues: map[runlane.QueueName]string{webhooks.Queue.Name: standard.URL, "orders": fifo.URL},
	}
	l, err := awslane.New(awstest.Config(t), awslane.Options{Environment: "prod", Table: d.table, Queues: d.queues})
	if err != nil {
		t.Fatal(err)
	}
	d.Runtime, err = core.Open(t.Context(), l, &core.Options{Handlers: (&webhooks.Sender{}).Handlers()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	if withFunctions {
		d.feed(t, queueClient, standard, fifo)
	}
	return d
}

// feed runs the functions until the test ends.
func (d *deployed) feed(t *testing.T, client *sqs.Client, queues ...infra.Queue) {
	t.Helper()
	mappings := &lambdatest.Mappings{Failed: func(err error) { t.Error(err) }}
	for _, queue := range queues {
		mappings.Queue(client, queue.URL, nil, functions.Bridge(d.Runtime))
	}
	mappings.Stream(d.db, awstest.Streams(t), d.table, nil, functions.Relay(d.Runtime))
	t.Cleanup(mappings.Stop)
}

// open plans a check of the deployment.
func (d *deployed) open(t *testing.T, cfg aws.Config, patience time.Duration) *smoke {
	t.Helper()
	s, err := open(t.Context(), cfg, d.target, 2, patience)
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
func (d *deployed) wantKept(t *testing.T, ids ...runlane.RunID) {
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
		for _, item := range page.Items {
			if pk := item["pk"].(*types.AttributeValueMemberS).Value; !strings.HasPrefix(pk, "prod:config") && !slices.Contains(got, pk) {
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
	d := deploy(t, true)
	// A run of the application, as finished as those of the check.
	theirs, err := d.Trigger(t.Context(), webhooks.Check.With(webhooks.Probe{Do: webhooks.CheckSucceed}), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Wait(t.Context(), theirs.Run.ID); err != nil {
		t.Fatal(err)
	}

	s := d.open(t, awstest.Config(t), time.Minute)
	good := s.check(t.Context())
	report := s.reportText(t)
	t.Log("\n" + report)
	runs := float64(len(s.probes))
	if s.told.WriteUnits > runs*most.Writes || s.told.ReadUnits > runs*most.Reads {
		t.Errorf("%.0f runs used %+v, more than the bound %+v of each", runs, s.told, most)
	}
	if !good || s.removed != 2*len(kinds()) {
		t.Errorf("good: %t; %d runs were removed, want %d", good, s.removed, 2*len(kinds()))
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

func TestCheck_NothingExecutes_SaysWhyAndRemovesAll(t *testing.T) {
	t.Parallel()
	d := deploy(t, false)
	s := d.open(t, awstest.Config(t), 100*time.Millisecond)
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
	d := deploy(t, false)
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
		s := d.open(t, cfg, time.Minute)
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

func TestCheck_MayNotDelete_NamesWhatIsLeftBehind(t *testing.T) {
	t.Parallel()
	d := deploy(t, false)
	denied := errors.New("denied")
	cfg := awstest.Config(t)
	cfg.APIOptions = append(cfg.APIOptions, func(stack *middleware.Stack) error {
		return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("DenyDelete", func(
			ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler,
		) (out middleware.InitializeOutput, metadata middleware.Metadata, err error) {
			if _, deletion := in.Parameters.(*dynamodb.DeleteItemInput); deletion {
				return out, metadata, denied
			}
			return next.HandleInitialize(ctx, in)
		}), middleware.Before)
	})
	s := d.open(t, cfg, 100*time.Millisecond)
	if s.check(t.Context()) || s.removed != 0 || len(s.leftover) != len(s.probes) || !errors.Is(s.leftover[0], denied) {
		t.Errorf("%d of %d runs were removed; left: %v", s.removed, len(s.probes), s.leftover)
	}
	if report := s.reportText(t); strings.Count(report, "LEFT BEHIND: "+s.prefix) != len(s.probes) {
		t.Error(report)
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
