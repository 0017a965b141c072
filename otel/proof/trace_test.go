// Package proof shows the joined traces of a runtime, as the real collector prints them. It is a module of its own: the
// collector is large.
package proof

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/awslane"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/functions"
	"github.com/runlane/runlane-go/internal/proof/awstest"
	"github.com/runlane/runlane-go/internal/proof/e2e/lambdatest"
	"github.com/runlane/runlane-go/internal/proof/scenarios/patience"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/memlane"
	runlaneotel "github.com/runlane/runlane-go/otel"
)

func attributeOf(key, value string) attribute.KeyValue { return attribute.String(key, value) }

var (
	quiet  = slog.New(slog.DiscardHandler)
	leaf   = runlane.NewFunc[int, int]("leaf", nil)
	simple = runlane.NewTask[int]("simple", nil)
	broken = runlane.NewTask[int]("broken", nil)
	order  = runlane.NewTask("order", &runlane.TaskOptions[int]{
		Retry: runlane.Retry{MaxAttempts: 2, Backoff: runlane.Fixed(1)},
	})
)

func handlers() []runlane.Handler {
	return []runlane.Handler{
		leaf.Handle(func(context.Context, *runlane.Attempt, int) (int, error) { return 1, nil }),
		simple.Handle(func(context.Context, *runlane.Attempt, int) error { return nil }),
		broken.Handle(func(context.Context, *runlane.Attempt, int) error { return runlane.Permanent(errors.New("no")) }),
		order.Handle(func(ctx context.Context, a *runlane.Attempt, _ int) error {
			if _, err := runlane.Step(ctx, a, "charge", func(context.Context) (int, error) { return 1, nil }); err != nil {
				return err
			}
			if a.Run.Counters.Failures == 0 {
				return errors.New("again")
			}
			_, err := leaf.Call(ctx, a, 1, nil)
			return err
		}),
	}
}

func open(t *testing.T, l *lane.Lane, o *runlaneotel.Options, handlers ...runlane.Handler) *core.Runtime {
	t.Helper()
	rt, err := core.Open(t.Context(), l, &core.Options{
		Logger: quiet, Handlers: handlers, Tracer: runlaneotel.Tracer(o), Metrics: runlaneotel.Metrics(o),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := rt.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return rt
}

// inSpan is a caller with a span of its own.
func inSpan(t *testing.T, o *runlaneotel.Options, name string, do func(ctx context.Context) error) {
	t.Helper()
	ctx, span := o.TracerProvider.Tracer("proof").Start(t.Context(), name, trace.WithSpanKind(trace.SpanKindServer))
	defer span.End()
	if err := do(ctx); err != nil {
		t.Fatal(err)
	}
}

func compare(t *testing.T, got, want string) {
	t.Helper()
	want = strings.TrimSpace(strings.ReplaceAll(want, "\t", ""))
	if strings.TrimSpace(got) != want {
		t.Errorf("the collector printed\n%s\nand not\n%s", got, want)
	}
	t.Logf("the collector printed\n%s", got)
}

func TestCollector_JoinsTheTracesOfAnEmbeddedLane(t *testing.T) {
	c := startCollector(t)
	shop := c.options("shop")
	rt := open(t, memlane.New(), shop, handlers()...)
	inSpan(t, shop, "POST /simple", func(ctx context.Context) error {
		_, err := rt.Trigger(ctx, simple.With(1), nil)
		return err
	})
	inSpan(t, shop, "POST /orders", func(ctx context.Context) error {
		_, err := rt.Trigger(ctx, order.With(1), nil)
		return err
	})
	inSpan(t, shop, "POST /broken", func(ctx context.Context) error {
		_, err := rt.Trigger(ctx, broken.With(1), &runlane.TriggerOptions{RunID: "run_broken"})
		return err
	})
	inSpan(t, shop, "POST /flows", func(ctx context.Context) error {
		f := runlane.NewFlow("f")
		first := f.Add("first", simple.With(1), nil)
		f.Add("second", simple.With(2), &runlane.NodeOptions{After: []runlane.Node{first}})
		_, err := rt.StartFlow(ctx, f, nil)
		return err
	})
	if err := rt.Work(t.Context(), &core.WorkOptions{Drain: true, Concurrency: 1}); err != nil {
		t.Fatal(err)
	}
	inSpan(t, shop, "POST /retry", func(ctx context.Context) error {
		_, err := rt.Runs().Retry(ctx, "run_broken", nil)
		return err
	})
	if err := rt.Work(t.Context(), &core.WorkOptions{Drain: true, Concurrency: 1}); err != nil {
		t.Fatal(err)
	}
	spans, exemplars := spansIn(c.printed())

	compare(t, tree(spans, "shop", "POST /simple"), `
		shop: POST /simple Server
		  shop: create simple Producer
		    shop: send default Client
		    shop: process simple Consumer
		      shop: claim simple Internal`)
	compare(t, tree(spans, "shop", "POST /orders"), `
		shop: POST /orders Server
		  shop: create order Producer
		    shop: send default Client
		    shop: process order Consumer
		      shop: claim order Internal
		      shop: step charge Internal
		      shop: send default Client
		    shop: process order Consumer
		      shop: claim order Internal
		      shop: create leaf Producer
		        shop: send default Client
		        shop: process leaf Consumer
		          shop: claim leaf Internal
		          shop: send default Client
		    shop: process order Consumer
		      shop: claim order Internal`)
	compare(t, tree(spans, "shop", "POST /broken"), `
		shop: POST /broken Server
		  shop: create broken Producer
		    shop: send default Client
		    shop: process broken Consumer
		      shop: claim broken Internal
		    shop: create broken Producer -> POST /retry
		      shop: send default Client
		      shop: process broken Consumer
		        shop: claim broken Internal`)
	if got := tree(spans, "shop", "POST /flows"); strings.Count(got, "process simple") != 2 || strings.Count(got, "create simple") != 2 {
		t.Errorf("the collector printed\n%s", got)
	} else {
		t.Logf("the collector printed\n%s", got)
	}
	for _, s := range spans {
		if s.name == "POST /orders" && exemplars[s.trace] == 0 {
			t.Errorf("no metric has an exemplar of %s: %v", s.trace, exemplars)
		}
	}
}

// One trace leads from the caller's process through the outbox, the relay, SQS and the bridge, whose services are two.
func TestCollector_JoinsTheTraceThroughRelayAndQueue(t *testing.T) {
	c := startCollector(t)
	shop, lambda := c.options("shop"), c.options("functions")
	db, queues := awstest.LocalStackDynamoDB(t), awstest.SQS(t)
	table, queue := awstest.StreamedTable(t, db), awstest.Queue(t, queues, false)
	newLane := func() *lane.Lane {
		l, err := awslane.New(awstest.Config(t), awslane.Options{
			Environment: "prod", Table: table, Queues: map[runlane.QueueName]string{"default": queue.URL},
		})
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	caller, worker := open(t, newLane(), shop), open(t, newLane(), lambda, handlers()...)
	mappings := &lambdatest.Mappings{Failed: func(err error) { t.Error(err) }}
	mappings.Queue(queues, queue.URL, nil, functions.Bridge(worker))
	mappings.Stream(db, awstest.Streams(t), table, nil, functions.Relay(worker))
	ctx, cancel := patience.Context(t)
	defer cancel()
	var id runlane.RunID
	inSpan(t, shop, "POST /simple", func(ctx context.Context) error {
		result, err := caller.Trigger(ctx, simple.With(1), &runlane.TriggerOptions{Deferred: true})
		if err == nil {
			id = result.Run.ID
		}
		return err
	})
	if run, err := caller.Wait(ctx, id); err != nil || run.Status != runlane.StatusSucceeded {
		t.Fatal(run, err)
	}
	mappings.Stop()
	spans, _ := spansIn(c.printed())
	compare(t, tree(spans, "shop", "POST /simple"), `
		shop: POST /simple Server
		  shop: create simple Producer
		    functions: send default Client -> invoke relay
		    functions: process simple Consumer -> invoke bridge
		      functions: claim simple Internal`)
	compare(t, tree(spans, "functions", "invoke bridge"), `
		functions: invoke bridge Server -> create simple`)
}
