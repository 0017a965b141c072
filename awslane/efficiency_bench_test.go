package awslane_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/awslane"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/dynamostore"
	"github.com/runlane/runlane-go/internal/proof/awstest"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/sqstransport"
)

// efficiencyRounds are measured, after one that only warms up.
var efficiencyRounds = flag.Int("rounds", 9, "how often BenchmarkRunBesideBareRequests measures both sides")

// efficiencyRuns of each side in a round, and at least eight for each that is under way at once.
const efficiencyRuns = 60

// BenchmarkRunBesideBareRequests compares the engine with a program that sends exactly the requests of a run, to the same emulators,
// through the same clients, and computes nothing: what it reaches is the limit. In both, so many callers trigger a run and wait for its
// end, and as many handlers receive. The sides take turns. A line has the medians of runs a second, the median ratio of neighboring
// rounds with its quartiles, and the requests a run of both, which have to be the same.
//
//	go test -run '^$' -bench RunBesideBareRequests ./awslane
func BenchmarkRunBesideBareRequests(b *testing.B) {
	for _, concurrency := range []int{1, 8, 32} {
		b.Run(fmt.Sprintf("concurrency=%d", concurrency), func(b *testing.B) {
			w := newEfficiencyWorld(b, concurrency)
			runs := max(efficiencyRuns, 8*concurrency)
			var engine, bare, ratios []float64
			for round := range *efficiencyRounds + 1 {
				first, second := w.engine, w.bare
				if round%2 == 1 {
					first, second = second, first
				}
				for _, side := range []*efficiencySide{first, second} {
					side.measure(b, runs)
				}
				if round > 0 { // connections are made, code is warm
					engine, bare = append(engine, w.engine.rate), append(bare, w.bare.rate)
					ratios = append(ratios, w.engine.rate/w.bare.rate)
				}
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(quantile(engine, 0.5), "runs/s")
			b.ReportMetric(quantile(bare, 0.5), "bare-runs/s")
			b.ReportMetric(quantile(ratios, 0.5), "ratio")
			b.ReportMetric(quantile(ratios, 0.25), "ratio-p25")
			b.ReportMetric(quantile(ratios, 0.75), "ratio-p75")
			b.ReportMetric(w.engine.requests(), "requests/run")
			b.ReportMetric(w.bare.requests(), "bare-requests/run")
		})
	}
}

func quantile(values []float64, part float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[min(int(part*float64(len(sorted))), len(sorted)-1)]
}

// efficiencySide is one of the two programs.
type efficiencySide struct {
	concurrency int
	rate        float64 // runs a second of the last round
	sent        *requestCounter
	finished    int
	prepare     func(runs int)                             // outside the measured time
	run         func(ctx context.Context, index int) error // triggers a run and returns when it has succeeded
}

func (s *efficiencySide) measure(b *testing.B, runs int) {
	b.Helper()
	s.prepare(runs)
	indexes := make(chan int, runs)
	for i := range runs {
		indexes <- i
	}
	close(indexes)
	var callers sync.WaitGroup
	failures := make(chan error, s.concurrency)
	before := s.sent.total()
	began := time.Now()
	for range s.concurrency {
		callers.Go(func() {
			for i := range indexes {
				if err := s.run(b.Context(), i); err != nil {
					failures <- err
					return
				}
			}
		})
	}
	callers.Wait()
	s.rate = float64(runs) / time.Since(began).Seconds()
	s.sent.add("measured", s.sent.total()-before)
	s.finished += runs
	select {
	case err := <-failures:
		b.Fatal(err)
	default:
	}
}

func (s *efficiencySide) requests() float64 {
	return float64(s.sent.of("measured")) / float64(s.finished)
}

// requestCounter counts what goes through clients.
type requestCounter struct {
	mu    sync.Mutex
	count map[string]int
}

func (c *requestCounter) add(what string, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.count[what] += n
}

func (c *requestCounter) of(what string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.count[what]
}

func (c *requestCounter) total() int { return c.of("request") }

// efficiencyWorld is a table and a queue for each side.
type efficiencyWorld struct{ engine, bare *efficiencySide }

var efficiencyTask = runlane.NewTask[struct{}]("efficiency.noop", nil)

func newEfficiencyWorld(b *testing.B, concurrency int) *efficiencyWorld {
	b.Helper()
	sent := &requestCounter{count: map[string]int{}}
	record := &recording{}
	handler := efficiencyTask.Handle(func(context.Context, *runlane.Attempt, struct{}) error { return nil })
	rt, ended := openEngine(b, sent, record, nil, handler, concurrency)
	engine := &efficiencySide{concurrency: concurrency, sent: sent, prepare: func(int) {}, run: func(ctx context.Context, _ int) error {
		result, err := rt.Trigger(ctx, efficiencyTask.With(struct{}{}), nil)
		if err != nil {
			return err
		}
		return ended.wait(ctx, result.Run.ID)
	}}
	engine.measure(b, 1) // the first of a store also reads how the table is divided
	record.begin()
	engine.measure(b, 1)
	template := record.end(b)
	engine.finished, sent.count = 0, map[string]int{}
	return &efficiencyWorld{engine: engine, bare: newBareSide(b, template, concurrency)}
}

// openEngine opens and works a runtime whose requests are counted and recorded. wrap may put something over the transport.
func openEngine(
	b *testing.B, sent *requestCounter, record *recording, wrap func(lane.Transport) lane.Transport, handler runlane.Handler, concurrency int,
) (*core.Runtime, *endings) {
	b.Helper()
	cfg := awslane.Tune(awstest.Config(b))
	db := dynamodb.New(awstest.DynamoDB(b).Options(), func(o *dynamodb.Options) {
		o.HTTPClient, o.APIOptions = cfg.HTTPClient, append(o.APIOptions, sent.middleware, record.middleware)
	})
	queues := sqs.New(awstest.SQS(b).Options(), func(o *sqs.Options) {
		o.HTTPClient, o.APIOptions = cfg.HTTPClient, append(o.APIOptions, sent.middleware, record.middleware)
	})
	queue := awstest.Queue(b, queues, false)
	var transport lane.Transport
	transport, err := sqstransport.New(queues, map[runlane.QueueName]string{runlane.DefaultQueue.Name: queue.URL}, nil)
	if err != nil {
		b.Fatal(err)
	}
	if wrap != nil {
		transport = wrap(transport)
	}
	l, err := lane.New(dynamostore.New(db, awstest.Table(b, db), nil), transport, &lane.Options{Environment: "bench"})
	if err != nil {
		b.Fatal(err)
	}
	ended := &endings{waiting: map[runlane.RunID]chan struct{}{}}
	rt, err := core.Open(b.Context(), l, &core.Options{
		Handlers: []runlane.Handler{handler}, Hooks: []core.Hook{ended.note}, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(b.Context()))
	worked := make(chan error, 1)
	go func() { worked <- rt.Work(ctx, &core.WorkOptions{Concurrency: concurrency, NoTick: true}) }()
	b.Cleanup(func() {
		stop()
		if err := errors.Join(<-worked, rt.Close(context.WithoutCancel(ctx))); err != nil {
			b.Error(err)
		}
	})
	return rt, ended
}

// endings tells callers that their runs have succeeded.
type endings struct {
	mu      sync.Mutex
	waiting map[runlane.RunID]chan struct{}
}

func (e *endings) channel(id runlane.RunID) chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	c, ok := e.waiting[id]
	if !ok {
		c = make(chan struct{})
		e.waiting[id] = c
	}
	return c
}

func (e *endings) note(c core.Change) {
	if c.Run.Status.Terminal() {
		close(e.channel(c.Run.ID))
	}
}

func (e *endings) wait(ctx context.Context, id runlane.RunID) error {
	select {
	case <-e.channel(id):
		e.mu.Lock()
		defer e.mu.Unlock()
		delete(e.waiting, id)
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(time.Minute):
		return fmt.Errorf("%s does not end", id)
	}
}
