package core

import (
	"context"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/host"
)

// Metrics receives counts and durations from this process. Calls come from many goroutines at once, between commits,
// and must not block. A panic is recovered, and that value is lost.
type Metrics interface {
	// Count adds n, which is at least 1.
	Count(name Metric, n int64, labels Labels)
	// Observe records one duration.
	Observe(name Metric, d time.Duration, labels Labels)
}

// ContextMetrics is an optional ability of [Metrics]: values come with the context of their work, which has its trace.
// Its methods replace those of Metrics.
type ContextMetrics interface {
	CountIn(ctx context.Context, name Metric, n int64, labels Labels)
	ObserveIn(ctx context.Context, name Metric, d time.Duration, labels Labels)
}

func withHostMetrics(ctx context.Context, own Metrics) Metrics {
	given, ok := host.Of(ctx).Metrics.(Metrics)
	switch {
	case !ok:
		return own
	case own == nil:
		return given
	default:
		return bothMetrics{own, given}
	}
}

// bothMetrics passes values to two receivers. If one panics, the other still gets them.
type bothMetrics [2]Metrics

func (b bothMetrics) Count(name Metric, n int64, labels Labels) {
	b.CountIn(context.Background(), name, n, labels)
}

func (b bothMetrics) Observe(name Metric, d time.Duration, labels Labels) {
	b.ObserveIn(context.Background(), name, d, labels)
}

func (b bothMetrics) CountIn(ctx context.Context, name Metric, n int64, labels Labels) {
	for _, m := range b {
		gauges{m}.count(ctx, name, n, labels)
	}
}

func (b bothMetrics) ObserveIn(ctx context.Context, name Metric, d time.Duration, labels Labels) {
	for _, m := range b {
		gauges{m}.observe(ctx, name, d, labels)
	}
}

// Labels describe the source of a value. They never contain a run id. Fields that do not apply are "".
type Labels struct {
	Environment runlane.Environment
	TaskID      runlane.TaskID
	Queue       runlane.QueueName
}

// Metric names a value.
type Metric string

// The counts.
const (
	MetricRunsCreated            Metric = "runs_created"
	MetricRunsSucceeded          Metric = "runs_succeeded"
	MetricRunsFailed             Metric = "runs_failed"
	MetricRunsCancelled          Metric = "runs_cancelled"
	MetricAttemptsStarted        Metric = "attempts_started"
	MetricRetriesScheduled       Metric = "retries_scheduled"
	MetricRunsReleased           Metric = "runs_released"
	MetricRunsResumed            Metric = "runs_resumed"
	MetricCancellationsRequested Metric = "cancellations_requested"
	MetricDeliveriesRequested    Metric = "deliveries_requested"
	MetricHeartbeats             Metric = "heartbeats"
	// MetricWakeupsPublished and MetricWakeupsRefused count outbox rows that the transport took or refused.
	MetricWakeupsPublished Metric = "wakeups_published"
	MetricWakeupsRefused   Metric = "wakeups_refused"
	// MetricTriggersRefused counts triggers refused with runlane.ErrOverloaded.
	MetricTriggersRefused Metric = "triggers_refused"
	// MetricChangesDropped counts changes that a hook had no room for.
	MetricChangesDropped Metric = "changes_dropped"
)

// The durations.
const (
	// MetricStartDelay is the time from an attempt's due time (its run's creation, or later) to its start.
	MetricStartDelay Metric = "start_delay"
	// MetricAttemptTime is the time from an attempt's start to its outcome.
	MetricAttemptTime Metric = "attempt_time"
	// MetricRunTime is the time from a run's creation to its end.
	MetricRunTime Metric = "run_time"
)

// gauges guards an application's metrics. The zero value drops everything.
type gauges struct{ metrics Metrics }

func (g gauges) count(ctx context.Context, name Metric, n int64, labels Labels) {
	if g.metrics == nil || n == 0 {
		return
	}
	defer func() { _ = recover() }() // a metric is never worth a run
	if m, ok := g.metrics.(ContextMetrics); ok {
		m.CountIn(ctx, name, n, labels)
		return
	}
	g.metrics.Count(name, n, labels)
}

func (g gauges) observe(ctx context.Context, name Metric, d time.Duration, labels Labels) {
	if g.metrics == nil {
		return
	}
	defer func() { _ = recover() }() // a metric is never worth a run
	if m, ok := g.metrics.(ContextMetrics); ok {
		m.ObserveIn(ctx, name, max(d, 0), labels)
		return
	}
	g.metrics.Observe(name, max(d, 0), labels)
}

func (g gauges) committed(ctx context.Context, run *runlane.Run, events []runlane.EventRecord) {
	if g.metrics == nil {
		return
	}
	labels := Labels{Environment: run.Environment, TaskID: run.TaskID, Queue: run.Queue}
	for i := range events {
		effect := effectOf(&events[i])
		if effect.metric != "" {
			g.count(ctx, effect.metric, 1, labels)
		}
		switch {
		case startedAttempt(&events[i]) == 1:
			due := run.CreatedAt
			if run.RunAt.After(due) {
				due = run.RunAt
			}
			g.observe(ctx, MetricStartDelay, events[i].OccurredAt.Sub(due), labels)
		case effect.final:
			g.ended(ctx, run, &events[i], labels)
		case effect.attempt == attemptEnds:
			g.attempt(ctx, run, &events[i], labels)
		}
	}
}

func (g gauges) ended(ctx context.Context, run *runlane.Run, event *runlane.EventRecord, labels Labels) {
	g.observe(ctx, MetricRunTime, event.OccurredAt.Sub(run.CreatedAt), labels)
	if run.Counters.Attempts > 0 && event.Actor.Type == runlane.ActorWorker {
		g.attempt(ctx, run, event, labels)
	}
}

func (g gauges) attempt(ctx context.Context, run *runlane.Run, event *runlane.EventRecord, labels Labels) {
	if !run.StartedAt.IsZero() {
		g.observe(ctx, MetricAttemptTime, event.OccurredAt.Sub(run.StartedAt), labels)
	}
}

// eventEffect is the meaning of an event type for everything that core derives from histories: metrics, the list of
// attempts, and attempts abandoned in a row. The reducer defines its meaning for the run
// (core/internal/reducer/events.go).
type eventEffect struct {
	metric  Metric // counts events of this type; "" for none
	attempt attemptEffect
	outcome runlane.AttemptStatus // of the attempt that ends
	final   bool                  // the run ends too
}

type attemptEffect int

const (
	attemptStays attemptEffect = iota
	// attemptBegins: a new attempt begins.
	attemptBegins
	// attemptAbandoned: the run goes on without its owner, so an attempt without an outcome gets none.
	attemptAbandoned
	// attemptEnds: the attempt has an outcome.
	attemptEnds
)

// eventEffects needs a row for each type; a test checks it.
var eventEffects = map[runlane.EventType]eventEffect{
	runlane.EventCreated:               {metric: MetricRunsCreated},
	runlane.EventDeliveryRequested:     {metric: MetricDeliveriesRequested, attempt: attemptAbandoned},
	runlane.EventDebounced:             {},
	runlane.EventLeaseClaimed:          {attempt: attemptAbandoned}, // EventStarted is counted
	runlane.EventLeaseHeartbeat:        {metric: MetricHeartbeats},
	runlane.EventStarted:               {metric: MetricAttemptsStarted, attempt: attemptBegins},
	runlane.EventSucceeded:             {MetricRunsSucceeded, attemptEnds, runlane.AttemptSucceeded, true},
	runlane.EventFailed:                {MetricRunsFailed, attemptEnds, runlane.AttemptFailed, true},
	runlane.EventRetryScheduled:        {MetricRetriesScheduled, attemptEnds, runlane.AttemptRetrying, false},
	runlane.EventReleased:              {MetricRunsReleased, attemptEnds, runlane.AttemptReleased, false},
	runlane.EventResumed:               {metric: MetricRunsResumed},
	runlane.EventCancellationRequested: {metric: MetricCancellationsRequested},
	runlane.EventCancelled:             {MetricRunsCancelled, attemptEnds, runlane.AttemptCancelled, true},
}

func effectOf(record *runlane.EventRecord) eventEffect { return eventEffects[record.Type()] }

// startedAttempt returns the number of the attempt that starts, else 0.
func startedAttempt(record *runlane.EventRecord) int {
	if body, ok := record.Body.(*runlane.RunStarted); ok {
		return body.Attempt
	}
	return 0
}

func failureOf(record *runlane.EventRecord) runlane.Failure {
	switch body := record.Body.(type) {
	case *runlane.RunFailed:
		return body.Failure
	case *runlane.RunRetryScheduled:
		return body.Failure
	default:
		return runlane.Failure{}
	}
}
