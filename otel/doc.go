// Package runlaneotel tells OpenTelemetry of a runtime's work: traces, metrics with exemplars, and the ids of the trace
// in log lines. It is a separate module, on the API alone: the program brings the SDK, its exporters and samplers.
//
//	rt, err := core.Open(ctx, l, &core.Options{
//		Logger:  slog.New(runlaneotel.Logs(slog.Default().Handler())),
//		Metrics: runlaneotel.Metrics(nil),
//		Tracer:  runlaneotel.Tracer(nil),
//	})
//
// One trace has the caller's span, the creation of the run ("create", a producer), what sends its wakeups ("send", a
// client), and each of its attempts ("process", a consumer) with its claim, its steps, and the creations of children
// and flows. An operator's retry, and the retry of a flow's node, go on with the trace; a rerun has one of its own, with
// a link. Work that serves runs of several traces, such as a request with ten wakeups or an invocation of the bridge,
// has a link to each.
//
// The trace travels in the run's TraceCarrier, in the table and in the messages: some 60 bytes of W3C trace context, in
// the clear, also with a codec. With the propagator of X-Ray beside it, SQS gets the X-Ray header, too.
//
// Names are those of the semantic conventions for messaging, version 1.43, which are still in development. No span,
// label or log line has a payload. The text of a failure is in a span if it is in the run.
package runlaneotel
