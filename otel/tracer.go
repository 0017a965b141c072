package runlaneotel

import (
	"context"
	"fmt"
	"maps"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
)

// scope names this package as the source of spans and metrics.
const scope = "github.com/runlane/runlane-go/otel"

// system is the messaging.system of all spans.
const system = "runlane"

// Attributes that the conventions have no name for.
const (
	keyAttempt     = attribute.Key("runlane.attempt")
	keyEnvironment = attribute.Key("runlane.environment")
	keyFailed      = attribute.Key("runlane.failed")
	keyFlow        = attribute.Key("runlane.flow")
	keyIgnored     = attribute.Key("runlane.ignored")
	keyOutcome     = attribute.Key("runlane.outcome")
	keySource      = attribute.Key("runlane.source")
	keySourceRun   = attribute.Key("runlane.source.run")
	keyStatus      = attribute.Key("runlane.status")
	keyStep        = attribute.Key("runlane.step")
	keyTask        = attribute.Key("runlane.task")
	keyWorker      = attribute.Key("runlane.worker")
)

// Options of [Tracer] and [Metrics]. nil means the defaults.
type Options struct {
	// Flush sends what the SDK has buffered. It is called at the end of each invocation of package functions, because
	// Lambda stops the process after it: usually ForceFlush of the SDK's TracerProvider. nil means never.
	Flush func(context.Context) error
	// Links begins a trace for each attempt, with a link to the one that created the run. By default an attempt is in that
	// trace, although it may come days later: choose links if your backend drops late spans, or bills by the trace's
	// length.
	Links bool
	// MeterProvider of [Metrics]. nil means the global one.
	MeterProvider metric.MeterProvider
	// Propagator writes the trace into the run's carrier. nil means W3C trace context, without baggage, which would be
	// stored with every run. For X-Ray, combine it with xray.Propagator.
	Propagator propagation.TextMapPropagator
	// TracerProvider of [Tracer]. nil means the global one.
	TracerProvider trace.TracerProvider
}

// Tracer makes spans of a runtime's work. See the package's documentation.
func Tracer(options *Options) core.Tracer {
	t := &tracer{}
	if options != nil {
		t.Options = *options
	}
	if t.Propagator == nil {
		t.Propagator = propagation.TraceContext{}
	}
	if t.TracerProvider == nil {
		t.TracerProvider = otel.GetTracerProvider()
	}
	t.spans = t.TracerProvider.Tracer(scope, trace.WithSchemaURL(semconv.SchemaURL))
	return t.start
}

type tracer struct {
	Options

	spans trace.Tracer
}

func (t *tracer) start(ctx context.Context, w *core.Work) (context.Context, func(core.WorkEnd)) {
	ctx, links := t.place(ctx, w)
	name, kind := spanOf(w)
	options := []trace.SpanStartOption{
		trace.WithSpanKind(kind), trace.WithAttributes(attributesOf(w)...), trace.WithLinks(links...),
	}
	if t.Links && w.Kind == core.WorkAttempt {
		options = append(options, trace.WithNewRoot())
	}
	if !w.Began.IsZero() {
		options = append(options, trace.WithTimestamp(w.Began))
	}
	inside, span := t.spans.Start(ctx, name, options...)
	if w.Kind == core.WorkCreate {
		w.Carrier = t.inject(inside, w.Carrier)
	}
	return inside, func(e core.WorkEnd) {
		end(span, w.Kind, e)
		if w.Kind == core.WorkInvocation && t.Flush != nil {
			if err := t.Flush(inside); err != nil {
				otel.Handle(err)
			}
		}
	}
}

// place returns the context with the work's parent, and its links. The parent is the span of ctx if it is in the trace
// of the run, or the run has none; else it is the run's, and ctx's is a link: a tick, a relay or an operator's request
// works for runs of many traces.
func (t *tracer) place(ctx context.Context, w *core.Work) (context.Context, []trace.Link) {
	here := trace.SpanContextFromContext(ctx)
	var links []trace.Link
	for _, carrier := range w.Links {
		links = t.link(links, t.owner(carrier))
	}
	owner := t.owner(w.Carrier)
	switch {
	case t.Links && w.Kind == core.WorkAttempt:
		links = t.link(t.link(links, owner), here)
	case !owner.IsValid() || here.TraceID() == owner.TraceID():
	case here.IsValid() && (w.Kind == core.WorkStep || t.Links && w.Kind == core.WorkClaim): // inside their attempt
	case here.IsValid() && t.Links:
		links = t.link(links, owner)
	default:
		links = t.link(links, here)
		ctx = t.Propagator.Extract(ctx, carrierOf(w.Carrier))
	}
	return ctx, links
}

func (t *tracer) owner(carrier map[string]string) trace.SpanContext {
	if len(carrier) == 0 {
		return trace.SpanContext{}
	}
	return trace.SpanContextFromContext(t.Propagator.Extract(context.Background(), carrierOf(carrier)))
}

func (*tracer) link(links []trace.Link, to trace.SpanContext) []trace.Link {
	if !to.IsValid() {
		return links
	}
	return append(links, trace.Link{SpanContext: to})
}

// inject returns the carrier of a new run. What else the caller put into it stays.
func (t *tracer) inject(ctx context.Context, given map[string]string) map[string]string {
	made := propagation.MapCarrier{}
	t.Propagator.Inject(ctx, made)
	if len(made) == 0 {
		return given
	}
	kept := maps.Clone(given)
	if kept == nil {
		return made
	}
	maps.Copy(kept, made)
	return kept
}

// spanOf follows the conventions: a producer creates the message, a client sends it, alone or with others, a consumer
// processes it. Tasks stand in the names of a run's spans, since a queue has many.
func spanOf(w *core.Work) (name string, kind trace.SpanKind) {
	switch w.Kind {
	case core.WorkCreate:
		return "create " + string(w.TaskID), trace.SpanKindProducer
	case core.WorkPublish:
		if w.Queue == "" {
			return "send", trace.SpanKindClient
		}
		return "send " + string(w.Queue), trace.SpanKindClient
	case core.WorkAttempt:
		return "process " + string(w.TaskID), trace.SpanKindConsumer
	case core.WorkClaim:
		return "claim " + string(w.TaskID), trace.SpanKindInternal
	case core.WorkInvocation:
		return "invoke " + w.Name, trace.SpanKindServer
	case core.WorkStep, core.WorkFlow:
		return string(w.Kind) + " " + w.Name, trace.SpanKindInternal
	default:
		return string(w.Kind), trace.SpanKindInternal
	}
}

func attributesOf(w *core.Work) []attribute.KeyValue {
	attrs := make([]attribute.KeyValue, 0, 12)
	attrs = append(attrs, keyEnvironment.String(string(w.Environment)))
	attrs = append(attrs, operationOf(w)...)
	for _, a := range [...]struct {
		key   attribute.Key
		value string
	}{
		{semconv.MessagingDestinationNameKey, string(w.Queue)},
		{semconv.MessagingMessageIDKey, string(w.RunID)},
		{keyTask, string(w.TaskID)},
		{keyWorker, w.WorkerID},
		{keySource, string(w.Source.Type)},
		{keySourceRun, string(w.Source.RunID)},
		{keyFlow, string(w.Source.FlowID)},
	} {
		if a.value != "" {
			attrs = append(attrs, a.key.String(a.value))
		}
	}
	if w.Attempt > 0 {
		attrs = append(attrs, keyAttempt.Int(w.Attempt))
	}
	if w.Count > 1 {
		attrs = append(attrs, semconv.MessagingBatchMessageCount(w.Count))
	}
	return attrs
}

// operationOf has what each kind of work alone has.
func operationOf(w *core.Work) []attribute.KeyValue {
	messaging := func(name string, kind attribute.KeyValue) []attribute.KeyValue {
		return []attribute.KeyValue{semconv.MessagingSystemKey.String(system), semconv.MessagingOperationName(name), kind}
	}
	switch w.Kind {
	case core.WorkCreate:
		return messaging("create", semconv.MessagingOperationTypeCreate)
	case core.WorkPublish:
		return messaging("send", semconv.MessagingOperationTypeSend)
	case core.WorkAttempt:
		return messaging("process", semconv.MessagingOperationTypeProcess)
	case core.WorkStep:
		return []attribute.KeyValue{keyStep.String(w.Name)}
	case core.WorkFlow:
		return []attribute.KeyValue{keyFlow.String(w.Name)}
	case core.WorkInvocation:
		return []attribute.KeyValue{triggerOf(w.Name)}
	default:
		return nil
	}
}

// triggerOf is what invokes a function of package functions.
func triggerOf(role string) attribute.KeyValue {
	switch role {
	case "bridge":
		return semconv.FaaSTriggerPubSub
	case "relay":
		return semconv.FaaSTriggerDatasource
	case "server":
		return semconv.FaaSTriggerHTTP
	case "tick":
		return semconv.FaaSTriggerTimer
	default:
		return semconv.FaaSTriggerOther
	}
}

func end(span trace.Span, kind core.WorkKind, e core.WorkEnd) {
	defer span.End()
	if !span.IsRecording() {
		return
	}
	if e.Ignored != "" {
		span.SetAttributes(keyIgnored.String(string(e.Ignored)))
	}
	if e.Failed > 0 {
		span.SetAttributes(keyFailed.Int(e.Failed))
	}
	if e.Run != nil {
		endRun(span, kind, e)
	}
	if e.Err != nil && kind != core.WorkPublish || e.Failed > 0 {
		failed(span, errorType(e.Err), "")
	}
}

func endRun(span trace.Span, kind core.WorkKind, e core.WorkEnd) {
	span.SetAttributes(keyStatus.String(string(e.Run.Status)))
	switch kind {
	case core.WorkCreate:
		span.SetAttributes(semconv.MessagingMessageID(string(e.Run.ID)))
		if e.Existing {
			span.SetAttributes(keyOutcome.String(string(runlane.TriggerReturnedExisting)))
		}
	case core.WorkAttempt:
		if e.Run.Status == runlane.StatusFailed || e.Run.Status == runlane.StatusRetrying {
			failed(span, string(e.Run.Failure.Code), e.Run.Failure.Message)
		}
	default:
	}
}

func failed(span trace.Span, kind, text string) {
	span.SetStatus(codes.Error, text)
	span.SetAttributes(semconv.ErrorTypeKey.String(kind))
}

// errorType never has an error's text, which may quote a payload.
func errorType(err error) string {
	if code := runlane.CodeOf(err); code != "" {
		return string(code)
	}
	if err == nil {
		return semconv.ErrorTypeOther.Value.AsString()
	}
	return fmt.Sprintf("%T", err)
}
