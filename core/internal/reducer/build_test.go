package reducer_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core/internal/reducer"
)

// What the reducer's tests are built from.

// project folds and demands success.
func project(t *testing.T, current *runlane.Run, events ...runlane.Event) *runlane.Run {
	t.Helper()
	sequence := int64(0)
	if current != nil {
		sequence = current.EventSequence
	}
	run, err := reducer.Project(current, sequence, events...)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// refuse folds and demands an invariant violation about run_1 with this message.
func refuse(t *testing.T, message string, current *runlane.Run, events ...runlane.Event) {
	t.Helper()
	sequence := int64(0)
	if current != nil {
		sequence = current.EventSequence
	}
	run, err := reducer.Project(current, sequence, events...)
	if run != nil {
		t.Errorf("a run comes with the error: %+v", run)
	}
	wantError(t, err, &runlane.Error{Code: runlane.ErrInvariantViolation, Message: message, RunID: "run_1"})
}

func wantError(t *testing.T, err error, want *runlane.Error) {
	t.Helper()
	got, ok := errors.AsType[*runlane.Error](err)
	if !ok {
		t.Errorf("got %v, want %v", err, want)
		return
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// at is an event of run_1 at a time.
func at(occurredAt time.Time, body runlane.EventBody) runlane.Event {
	return runlane.Event{RunID: "run_1", Environment: "production", OccurredAt: occurredAt, Actor: runlane.SystemActor, Body: body}
}

func created() *runlane.RunCreated {
	return &runlane.RunCreated{TaskID: "hooks.deliver", Queue: "hooks", Payload: []byte(`1`), Source: runlane.Source{Type: runlane.SourceTrigger}}
}

func delivery(available time.Time) *runlane.RunDeliveryRequested {
	return &runlane.RunDeliveryRequested{Delivery: runlane.Delivery{
		Environment: "production", RunID: "run_1", Queue: "hooks", AvailableAt: available, RequestedAt: available,
	}}
}

func claimed(end time.Time) *runlane.RunLeaseClaimed {
	return &runlane.RunLeaseClaimed{Lease: runlane.Lease{Token: "token-1", WorkerID: "worker-1", ExpiresAt: end}}
}

func heartbeat(end time.Time) *runlane.RunLeaseHeartbeat {
	return &runlane.RunLeaseHeartbeat{Lease: claimed(end).Lease}
}

func started(attempt int) *runlane.RunStarted { return &runlane.RunStarted{Attempt: attempt} }

var boom = runlane.Failure{Code: "boom", Message: "it broke"}

// running is run_1 in its first attempt at noon, under a lease of a minute; it holds a reservation that no event could have
// left, so that clearing it shows.
func running(t *testing.T) *runlane.Run {
	t.Helper()
	run := project(t, nil, at(noon, created()), at(noon, delivery(noon)), at(noon, claimed(noon.Add(time.Minute))), at(noon, started(1)))
	run.DispatchedAt, run.DispatchExpiresAt = noon, noon.Add(time.Hour)
	return run
}
