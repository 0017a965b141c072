package core

import (
	"github.com/runlane/runlane-go"
)

// eventEffect is what a type of event means to everything that core derives from histories: metrics, the list of
// attempts, and the attempts that were abandoned in a row. What it means to the run is the reducer's
// (core/internal/reducer/events.go).
type eventEffect struct {
	metric  Metric // counts the events of the type; "" for none
	attempt attemptEffect
	outcome runlane.AttemptStatus // of an attempt that ends
	final   bool                  // the run ends too
}

// attemptEffect is what an event means to the latest attempt of a run.
type attemptEffect int

const (
	attemptStays attemptEffect = iota
	// attemptBegins: a new attempt begins.
	attemptBegins
	// attemptAbandoned: the run goes on without its owner, so an attempt without an outcome will have none.
	attemptAbandoned
	// attemptEnds: the attempt has an outcome.
	attemptEnds
)

// eventEffects has a row for each type. A type without a row would change nothing: a test wants one.
var eventEffects = map[runlane.EventType]eventEffect{
	runlane.EventCreated:               {metric: MetricRunsCreated},
	runlane.EventDeliveryRequested:     {metric: MetricDeliveriesRequested, attempt: attemptAbandoned},
	runlane.EventLeaseClaimed:          {attempt: attemptAbandoned}, // the start is counted
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

// startedAttempt is the number of the attempt that an event begins, 0 for any other.
func startedAttempt(record *runlane.EventRecord) int {
	if body, ok := record.Body.(*runlane.RunStarted); ok {
		return body.Attempt
	}
	return 0
}

// failureOf is what an event that ends an attempt says of its failure.
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
