package runlaneotel_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"go.opentelemetry.io/contrib/propagators/aws/xray"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/memlane"
	runlaneotel "github.com/runlane/runlane-go/otel"
)

// world is a runtime with the SDK, which keeps spans, metrics and lines in memory.
type world struct {
	*core.Runtime

	t        *testing.T
	spans    *tracetest.InMemoryExporter
	provider *sdktrace.TracerProvider
	reader   *sdkmetric.ManualReader
	lines    *bytes.Buffer
}

var (
	child  = runlane.NewTask[int]("child", nil)
	below  = runlane.NewFunc[int, int]("below", nil)
	parent = runlane.NewTask("parent", &runlane.TaskOptions[int]{Retry: runlane.Retry{MaxAttempts: 2}})
)

func newWorld(t *testing.T, change func(*runlaneotel.Options)) *world {
	t.Helper()
	w := &world{t: t, spans: tracetest.NewInMemoryExporter(), reader: sdkmetric.NewManualReader(), lines: &bytes.Buffer{}}
	w.provider = sdktrace.NewTracerProvider(sdktrace.WithSyncer(w.spans))
	options := &runlaneotel.Options{
		TracerProvider: w.provider, MeterProvider: sdkmetric.NewMeterProvider(sdkmetric.WithReader(w.reader)),
	}
	if change != nil {
		change(options)
	}
	rt, err := core.Open(t.Context(), memlane.New(), &core.Options{
		Logger:  slog.New(runlaneotel.Logs(slog.NewTextHandler(w.lines, nil))),
		Metrics: runlaneotel.Metrics(options),
		Tracer:  runlaneotel.Tracer(options),
		Handlers: []runlane.Handler{
			child.Handle(func(_ context.Context, _ *runlane.Attempt, fail int) error {
				if fail > 0 {
					return runlane.Permanent(errors.New("secret"))
				}
				return nil
			}),
			parent.Handle(func(ctx context.Context, a *runlane.Attempt, fail int) error {
				a.Logger().WithGroup("mine").Info("in the handler", "n", a.Number)
				if _, err := runlane.Step(ctx, a, "charge", func(context.Context) (int, error) { return 1, nil }); err != nil {
					return err
				}
				if a.Number == 1 && fail > 0 {
					return errors.New("secret")
				}
				_, err := below.Call(ctx, a, 0, nil)
				return err
			}),
			below.Handle(func(context.Context, *runlane.Attempt, int) (int, error) { return 1, nil }),
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	w.Runtime = rt
	t.Cleanup(func() {
		if err := rt.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return w
}

// caller is a request that triggers.
func (w *world) caller(do func(ctx context.Context)) {
	ctx, span := w.provider.Tracer("caller").Start(w.t.Context(), "caller")
	do(ctx)
	span.End()
}

func (w *world) drain() {
	w.t.Helper()
	if err := w.Work(w.t.Context(), &core.WorkOptions{Drain: true}); err != nil {
		w.t.Fatal(err)
	}
}

// tree has a line for each span: below its parent, with its kind, status, and the names of what it links to.
func (w *world) tree() string {
	spans := w.spans.GetSpans()
	names, below := map[trace.SpanID]string{}, map[trace.SpanID][]*tracetest.SpanStub{}
	for i := range spans {
		names[spans[i].SpanContext.SpanID()] = spans[i].Name
		below[spans[i].Parent.SpanID()] = append(below[spans[i].Parent.SpanID()], &spans[i])
	}
	var text strings.Builder
	var write func(of trace.SpanID, indent string)
	write = func(of trace.SpanID, indent string) {
		slices.SortStableFunc(below[of], func(a, b *tracetest.SpanStub) int {
			return cmp.Or(a.StartTime.Compare(b.StartTime), cmp.Compare(a.Name, b.Name))
		})
		for _, s := range below[of] {
			fmt.Fprintf(&text, "%s%s %s", indent, s.Name, s.SpanKind)
			for _, a := range s.Attributes {
				if a.Key == "runlane.status" && strings.HasPrefix(s.Name, "process") || a.Key == "runlane.failed" {
					fmt.Fprint(&text, " ", a.Value.String())
				}
			}
			for _, l := range s.Links {
				fmt.Fprintf(&text, " -> %s", names[l.SpanContext.SpanID()])
			}
			text.WriteString("\n")
			write(s.SpanContext.SpanID(), indent+"  ")
		}
	}
	write(trace.SpanID{}, "")
	return text.String()
}

func (w *world) wantTree(want string) {
	w.t.Helper()
	if got := strings.TrimSpace(w.tree()); got != strings.TrimSpace(strings.ReplaceAll(want, "\t", "")) {
		w.t.Errorf("spans:\n%s", got)
	}
}

// The caller, its run, both attempts, the step, the child and the operator's retry are one trace.
func TestTracer_OneTraceFromTheTriggerToTheRetry(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		w.caller(func(ctx context.Context) {
			if _, err := w.Trigger(ctx, parent.With(1), nil); err != nil {
				t.Error(err)
			}
			if _, err := w.Trigger(ctx, child.With(1), &runlane.TriggerOptions{RunID: "run_failed"}); err != nil {
				t.Error(err)
			}
		})
		w.drain()
		if _, err := w.Runs().Retry(t.Context(), "run_failed", nil); err != nil {
			t.Fatal(err)
		}
		w.wantTree(`
			caller internal
			  create child producer
			    process child consumer failed
			      claim child internal
			    send default client
			    create child producer
			      send default client
			  create parent producer
			    process parent consumer retrying
			      claim parent internal
			      send default client
			      step charge internal
			    send default client
			    process parent consumer released
			      claim parent internal
			      create below producer
			        process below consumer succeeded
			          claim below internal
			          send default client
			        send default client
			    process parent consumer succeeded
			      claim parent internal`)
		for _, s := range w.spans.GetSpans() {
			if text := fmt.Sprintf("%+v", s); strings.Contains(text, "secret") && !strings.Contains(s.Status.Description, "secret") {
				t.Errorf("more than the run has: %s", text)
			}
		}
	})
}

// A flow's nodes are in the trace of its start; rows that one request sends are linked, as is the run of a rerun.
func TestTracer_FlowsAndWorkForManyRuns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		w.caller(func(ctx context.Context) {
			flow := runlane.NewFlow("f")
			first := flow.Add("first", child.With(0), nil)
			flow.Add("second", child.With(0), &runlane.NodeOptions{After: []runlane.Node{first}})
			if _, err := w.StartFlow(ctx, flow, nil); err != nil {
				t.Error(err)
			}
		})
		w.drain()
		w.wantTree(`
			caller internal
			  flow f internal
			    create child producer
			      process child consumer succeeded
			        claim child internal
			    create child producer
			      process child consumer succeeded
			        claim child internal
			        send default client
			      send default client`)
		w.spans.Reset()
		for range 2 {
			if _, err := w.Trigger(t.Context(), child.With(0), &runlane.TriggerOptions{Deferred: true}); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := w.Tick(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		w.wantTree(`
			create child producer
			create child producer
			send default client -> create child -> create child`)
	})
}

// With links each attempt is a trace of its own.
func TestTracer_Links(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(o *runlaneotel.Options) { o.Links = true })
		result, err := w.Trigger(t.Context(), parent.With(0), &runlane.TriggerOptions{RunID: "run_p"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.ExecuteNext(t.Context(), nil); err != nil {
			t.Fatal(result, err)
		}
		w.wantTree(`
			create parent producer
			  send default client
			process parent consumer released -> create parent
			  claim parent internal
			  create below producer -> create parent
			    send default client
			  step charge internal`)
	})
}

// The header of X-Ray is in the carrier, and a caller's header in any case is read.
func TestTracer_XRayAndForeignCarriers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(o *runlaneotel.Options) {
			o.Propagator = propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, xray.Propagator{})
		})
		const id = "4bf92f3577b34da6a3ce929d0e0e4736"
		run, err := w.Trigger(t.Context(), child.With(0), &runlane.TriggerOptions{TraceCarrier: map[string]string{
			"Traceparent": "00-" + id + "-00f067aa0ba902b7-01", "other": "stays",
		}})
		if err != nil {
			t.Fatal(err)
		}
		carrier := run.Run.TraceCarrier
		if !strings.HasPrefix(carrier["traceparent"], "00-"+id) || carrier["other"] != "stays" ||
			!strings.HasPrefix(carrier["X-Amzn-Trace-Id"], "Root=1-"+id[:8]+"-"+id[8:]+";Parent=") {
			t.Errorf("carrier %v", carrier)
		}
	})
}

// A value of a sampled attempt is an exemplar with its trace, and lines have its ids outside of groups.
func TestMetricsAndLogs_NameTheTrace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		if _, err := w.Trigger(t.Context(), parent.With(0), nil); err != nil {
			t.Fatal(err)
		}
		w.drain()
		id := w.spans.GetSpans()[0].SpanContext.TraceID()
		if !strings.Contains(w.lines.String(), "trace_id="+id.String()) || !strings.Contains(w.lines.String(), "mine.n=1") {
			t.Errorf("lines:\n%s", w.lines)
		}
		var got metricdata.ResourceMetrics
		if err := w.reader.Collect(t.Context(), &got); err != nil {
			t.Fatal(err)
		}
		seen := map[string]bool{}
		for _, m := range got.ScopeMetrics[0].Metrics {
			switch data := m.Data.(type) {
			case metricdata.Sum[int64]:
				for _, p := range data.DataPoints {
					seen[m.Name] = seen[m.Name] || slices.ContainsFunc(p.Exemplars, func(e metricdata.Exemplar[int64]) bool {
						return bytes.Equal(e.TraceID, id[:])
					})
				}
			case metricdata.Histogram[float64]:
				for _, p := range data.DataPoints {
					task, _ := p.Attributes.Value(attribute.Key("runlane.task"))
					seen[m.Name+" "+task.AsString()] = slices.ContainsFunc(p.Exemplars, func(e metricdata.Exemplar[float64]) bool {
						return bytes.Equal(e.TraceID, id[:])
					})
				}
			}
		}
		for _, name := range []string{
			"runlane.runs_created", "runlane.runs_succeeded", "messaging.client.sent.messages",
			"messaging.process.duration parent", "messaging.process.duration below", "runlane.start_delay parent",
		} {
			if !seen[name] {
				t.Errorf("%s has no exemplar of the trace: %v", name, seen)
			}
		}
	})
}

// The end of an invocation flushes; other work does not.
func TestTracer_FlushesAfterAnInvocation(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		flushed := 0
		w := newWorld(t, func(o *runlaneotel.Options) {
			o.Flush = func(context.Context) error { flushed++; return nil }
		})
		ctx, end := w.Trace(t.Context(), core.Work{Kind: core.WorkInvocation, Name: "bridge"})
		if _, err := w.RunNow(ctx, child.With(0), nil); err != nil || flushed != 0 {
			t.Fatal(flushed, err)
		}
		if end(core.WorkEnd{}); flushed != 1 {
			t.Errorf("flushed %d times", flushed)
		}
	})
}
