package reducer_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core/internal/reducer"
)

const maxSequence = 1<<53 - 1

func TestProject_ChecksInTheOrderOfTheContract(t *testing.T) {
	t.Parallel()
	queued := stateNamed(t, "queued")   // at sequence 1
	ended := stateNamed(t, "succeeded") // at sequence 13
	impossible := at(noon, started(7))  // fits neither
	bodyless := runlane.Event{RunID: "run_9"}
	malformed := &runlane.Run{ID: "run_1"} // a run at sequence 0
	conflict := func(runID runlane.RunID, message string) *runlane.Error {
		return &runlane.Error{
			Code: runlane.ErrStorageConflict, Conflict: runlane.ConflictEventSequence, Message: message,
			Hint: "read the run again and repeat", Retryable: true, RunID: runID,
		}
	}
	violation := func(runID runlane.RunID, message string) *runlane.Error {
		return &runlane.Error{Code: runlane.ErrInvariantViolation, Message: message, RunID: runID}
	}
	for name, row := range map[string]struct {
		current  *runlane.Run
		expected int64
		events   []runlane.Event
		want     *runlane.Error
	}{
		"form before match":        {queued, -1, nil, violation("run_1", "expected sequence is -1, not within 0 and 9007199254740991")},
		"form, of the event's run": {nil, maxSequence + 1, []runlane.Event{bodyless}, violation("run_9", "expected sequence is 9007199254740992, not within 0 and 9007199254740991")},
		"the largest form":         {queued, maxSequence, nil, conflict("run_1", "run is at sequence 1, not 9007199254740991")},
		"behind, before empty":     {queued, 0, nil, conflict("run_1", "run is at sequence 1, not 0")},
		"ahead, before the event":  {queued, 2, []runlane.Event{impossible}, conflict("run_1", "run is at sequence 1, not 2")},
		"stale on a terminal run":  {ended, 12, []runlane.Event{impossible}, conflict("run_1", "run is at sequence 13, not 12")},
		"no run, but expected":     {nil, 3, []runlane.Event{bodyless}, conflict("run_9", "run is at sequence 0, not 3")},
		"no run and nothing":       {nil, 3, nil, conflict("", "run is at sequence 0, not 3")},
		"empty":                    {queued, 1, nil, violation("run_1", "no events to project")},
		"empty without a run":      {nil, 0, []runlane.Event{}, violation("", "no events to project")},
		"empty on a terminal run":  {ended, 13, nil, violation("run_1", "no events to project")},
		"a run that never began":   {malformed, 0, []runlane.Event{at(noon, created())}, violation("run_1", "run exists but is at sequence 0")},
		"first event that is bad":  {queued, 1, []runlane.Event{impossible, bodyless}, violation("run_1", "run.started, event 2: the run is queued, not running")},
		"later event that is bad":  {queued, 1, []runlane.Event{at(noon, delivery(noon)), impossible}, violation("run_1", "run.started, event 3: the run is queued, not running")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run, err := reducer.Project(row.current, row.expected, row.events...)
			if run != nil {
				t.Error("a run comes with the error")
			}
			wantError(t, err, row.want)
		})
	}
}

func TestProject_SequenceEndsAtItsMaximum(t *testing.T) {
	t.Parallel()
	current := stateNamed(t, "queued")
	current.EventSequence = maxSequence - 2
	wake := at(noon, delivery(noon))
	if run := project(t, current, wake, wake); run.EventSequence != maxSequence {
		t.Errorf("sequence is %d", run.EventSequence)
	}
	refuse(t, "3 events after sequence 9007199254740989 go beyond 9007199254740991", current, wake, wake, wake)
	current.EventSequence = maxSequence
	refuse(t, "1 events after sequence 9007199254740991 go beyond 9007199254740991", current, wake)
}

func TestProject_MissingParts_AreViolations(t *testing.T) {
	t.Parallel()
	end := noon.Add(time.Minute)
	lease := func(change func(*runlane.Lease)) runlane.Lease {
		l := runlane.Lease{Token: "token-1", WorkerID: "worker-1", ExpiresAt: end}
		change(&l)
		return l
	}
	wake := func(change func(*runlane.Delivery)) *runlane.RunDeliveryRequested {
		b := delivery(noon)
		change(&b.Delivery)
		return b
	}
	almostZero := time.Time{}.Add(time.Microsecond) // nothing is left of it at rest
	noToken, noWorker := lease(func(l *runlane.Lease) { l.Token = "" }), lease(func(l *runlane.Lease) { l.WorkerID = "" })
	noEnd := lease(func(l *runlane.Lease) { l.ExpiresAt = almostZero })
	created := func(change func(*runlane.RunCreated)) *runlane.RunCreated {
		b := created()
		change(b)
		return b
	}
	for _, row := range []struct {
		state string
		body  runlane.EventBody
		want  string
	}{
		{noRun, created(func(b *runlane.RunCreated) { b.TaskID = "" }), "run.created, event 1: has no task id"},
		{noRun, created(func(b *runlane.RunCreated) { b.Priority = -9 }), "run.created, event 1: priority is -9"},
		{
			noRun, created(func(b *runlane.RunCreated) { b.Retention.UntilDue = true }),
			"run.created, event 1: a debounced run, and no other, has a key until it is due",
		},
		{noRun, created(func(b *runlane.RunCreated) { b.Queue = "" }), "run.created, event 1: has no queue"},
		{"queued", nil, "event, event 2: has no body"},
		{"queued", wake(func(d *runlane.Delivery) { d.AvailableAt = almostZero }), "run.delivery_requested, event 2: has no delivery time"},
		{"queued", wake(func(d *runlane.Delivery) { d.RequestedAt = time.Time{} }), "run.delivery_requested, event 2: has no request time"},
		{"queued", wake(func(d *runlane.Delivery) { d.RunID = "" }), `run.delivery_requested, event 2: delivery is for run ""`},
		{"queued", wake(func(d *runlane.Delivery) { d.Queue = "" }), `run.delivery_requested, event 2: delivery is for queue "", the run is of "hooks"`},
		{"queued", &runlane.RunLeaseClaimed{Lease: noToken}, "run.lease_claimed, event 2: has no lease token"},
		{"queued", &runlane.RunLeaseClaimed{Lease: noWorker}, "run.lease_claimed, event 2: has no worker id"},
		{"queued", &runlane.RunLeaseClaimed{Lease: noEnd}, "run.lease_claimed, event 2: has no lease end"},
		{"running", &runlane.RunLeaseHeartbeat{Lease: noToken}, "run.lease_heartbeat, event 13: has no lease token"},
		{"running", &runlane.RunLeaseHeartbeat{Lease: noWorker}, "run.lease_heartbeat, event 13: has no worker id"},
		{"running", &runlane.RunLeaseHeartbeat{Lease: noEnd}, "run.lease_heartbeat, event 13: has no lease end"},
		{"running", &runlane.RunStarted{}, "run.started, event 13: attempt is 0, the next is 4"},
		{"running", &runlane.RunSucceeded{}, "run.succeeded, event 13: attempt is 0, the current one is 3"},
		{"running", &runlane.RunFailed{Attempt: 3, Failure: runlane.Failure{Message: "m"}}, "run.failed, event 13: has no failure code"},
		{"running", &runlane.RunRetryScheduled{Attempt: 3, RetryAt: noon}, "run.retry_scheduled, event 13: has no failure code"},
		{"running", &runlane.RunRetryScheduled{Attempt: 3, Failure: boom, RetryAt: almostZero}, "run.retry_scheduled, event 13: has no retry time"},
		{"running", &runlane.RunReleased{Attempt: 3, ResumeAt: almostZero}, "run.released, event 13: has no resume time"},
	} {
		t.Run(row.want, func(t *testing.T) {
			t.Parallel()
			refuse(t, row.want, stateNamed(t, row.state), at(noon, row.body))
		})
	}

	t.Run("run id", func(t *testing.T) {
		t.Parallel()
		e := at(noon, created(func(*runlane.RunCreated) {}))
		e.RunID = ""
		_, err := reducer.Project(nil, 0, e)
		wantError(t, err, &runlane.Error{Code: runlane.ErrInvariantViolation, Message: "run.created, event 1: has no run id"})
	})
	t.Run("time", func(t *testing.T) {
		t.Parallel()
		for _, kind := range runlane.EventTypes() {
			state := allowed[kind][0]
			e := eventFor(kind, stateNamed(t, state))
			e.OccurredAt = almostZero
			run := stateNamed(t, state)
			sequence := int64(0)
			if run != nil {
				sequence = run.EventSequence
			}
			refuse(t, fmt.Sprintf("%s, event %d: has no time", kind, sequence+1), run, e)
		}
	})
	t.Run("nil body of every type", func(t *testing.T) {
		t.Parallel()
		for _, body := range []runlane.EventBody{
			(*runlane.RunCreated)(nil), (*runlane.RunDeliveryRequested)(nil), (*runlane.RunLeaseClaimed)(nil), (*runlane.RunLeaseHeartbeat)(nil),
			(*runlane.RunStarted)(nil), (*runlane.RunSucceeded)(nil), (*runlane.RunFailed)(nil), (*runlane.RunRetryScheduled)(nil),
			(*runlane.RunReleased)(nil), (*runlane.RunResumed)(nil), (*runlane.RunCancellationRequested)(nil), (*runlane.RunCancelled)(nil),
			(*runlane.RunDebounced)(nil), (*runlane.UnknownEvent)(nil),
		} {
			refuse(t, "event, event 1: has no body", nil, at(noon, body))
			refuse(t, "event, event 13: has no body", stateNamed(t, "running"), at(noon, body))
		}
	})
	t.Run("a payload is not missed", func(t *testing.T) {
		t.Parallel()
		run := project(t, nil, at(noon, created(func(b *runlane.RunCreated) { b.Payload = nil })))
		if run.Payload != nil {
			t.Errorf("payload is %q", run.Payload)
		}
	})
}

func TestProject_UnknownEventType_IsAViolation(t *testing.T) {
	t.Parallel()
	unknown := &runlane.UnknownEvent{Type: "run.paused", Data: []byte(`{}`)}
	refuse(t, "run.paused, event 1: the first event of a run is run.created", nil, at(noon, unknown))
	refuse(t, "run.paused, event 13: is of a type that this version does not know", stateNamed(t, "running"), at(noon, unknown))
	// Not even under the name of a known one: only its body's Go type says what is in it.
	disguised := &runlane.UnknownEvent{Type: runlane.EventCancellationRequested}
	refuse(t, "run.cancellation_requested, event 13: is of a type that this version does not know", stateNamed(t, "running"), at(noon, disguised))
}

func TestProject_TerminalRuns_NeverChange(t *testing.T) {
	t.Parallel()
	for _, status := range []string{"succeeded", "failed", "cancelled"} {
		for _, kind := range runlane.EventTypes() {
			run := stateNamed(t, status)
			_, err := reducer.Project(run, run.EventSequence, eventFor(kind, run))
			if !errors.Is(err, runlane.ErrInvariantViolation) {
				t.Errorf("%s on a %s run: %v", kind, status, err)
			}
		}
	}
	// Also within the command that ends the run.
	running := stateNamed(t, "running")
	end := at(noon, &runlane.RunSucceeded{Attempt: 3})
	refuse(t, "run.succeeded, event 14: the run is succeeded and never changes again", running, end, end)
}

func TestProject_MustBeOfTheRun(t *testing.T) {
	t.Parallel()
	for _, kind := range runlane.EventTypes() {
		if kind == runlane.EventCreated {
			continue
		}
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			run := stateNamed(t, allowed[kind][0])
			prefix := fmt.Sprintf("%s, event %d: ", kind, run.EventSequence+1)
			e := eventFor(kind, run)
			e.RunID = "run_2"
			refuse(t, prefix+`is of run "run_2"`, run, e)
			e = eventFor(kind, run)
			e.Environment = ""
			refuse(t, prefix+`is of environment "default", the run of "production"`, run, e)
		})
	}
	run := stateNamed(t, "queued")
	wake := delivery(noon)
	wake.Delivery.RunID = "run_2"
	refuse(t, `run.delivery_requested, event 2: delivery is for run "run_2"`, run, at(noon, wake))
	wake = delivery(noon)
	wake.Delivery.Environment = "staging"
	refuse(t, `run.delivery_requested, event 2: delivery is for environment "staging", the run is of "production"`, run, at(noon, wake))
}

func TestProject_TheDefaultEnvironmentHasTwoSpellings(t *testing.T) {
	t.Parallel()
	begin, wake := at(noon, created()), at(noon, delivery(noon))
	begin.Environment = ""
	wake.Environment = "default"
	wake.Body.(*runlane.RunDeliveryRequested).Delivery.Environment = ""
	if run := project(t, nil, begin, wake); run.Environment != "" {
		t.Errorf("the run's own spelling was changed to %q", run.Environment)
	}
}

// life is one whole history: two attempts, a heartbeat, a request to cancel, and an end.
func life() []runlane.Event {
	end := noon.Add(time.Minute)
	events := []runlane.Event{
		at(noon, created()), at(noon, delivery(noon)), at(noon, claimed(end)), at(noon, started(1)), at(noon, heartbeat(end)),
		at(noon, &runlane.RunRetryScheduled{Attempt: 1, Failure: boom, RetryAt: noon}), at(noon, delivery(noon)), at(noon, claimed(end)),
		at(noon, started(2)), at(noon, &runlane.RunCancellationRequested{}), at(noon, &runlane.RunCancelled{}),
	}
	for i := range events {
		events[i].OccurredAt = noon.Add(time.Duration(i) * time.Second)
	}
	return events
}

func TestProject_OneCommandOrMany_AreTheSame(t *testing.T) {
	t.Parallel()
	events := life()
	whole := project(t, nil, events...)
	if whole.Status != runlane.StatusCancelled || whole.EventSequence != int64(len(events)) {
		t.Fatalf("%s at %d", whole.Status, whole.EventSequence)
	}
	for cut := 1; cut < len(events); cut++ {
		first := project(t, nil, events[:cut]...)
		if diff := cmp.Diff(whole, project(t, first, events[cut:]...)); diff != "" {
			t.Errorf("cut after %d (-one command +two)\n%s", cut, diff)
		}
	}
	// One bad event anywhere refuses the whole command, and names its place.
	for i := 1; i < len(events); i++ {
		broken := life()
		broken[i].RunID = "run_2"
		refuse(t, fmt.Sprintf(`%s, event %d: is of run "run_2"`, broken[i].Type(), i+1), nil, broken...)
	}
}

func TestProject_ChangesNeitherRunNorEvents(t *testing.T) {
	t.Parallel()
	events := life()
	copies := make([]runlane.Event, len(events))
	for i, e := range events {
		copies[i] = e.Clone()
	}
	var current *runlane.Run
	for i := range events {
		before := current.Clone()
		next := project(t, current, events[i])
		if diff := cmp.Diff(before, current); diff != "" {
			t.Errorf("%s changed current: %s", events[i].Type(), diff)
		}
		current = next
	}
	if diff := cmp.Diff(copies, events); diff != "" {
		t.Errorf("events were changed: %s", diff)
	}
}

// Bytes are shared, not copied: storages clone on the way in and out, and a second copy would only cost.
func TestProject_SharesBytesAndMaps(t *testing.T) {
	t.Parallel()
	body := created()
	first := project(t, nil, at(noon, body))
	second := project(t, first, at(noon, delivery(noon)))
	if &first.Payload[0] != &body.Payload[0] || &second.Payload[0] != &body.Payload[0] {
		t.Error("the payload was copied")
	}
	if cap(first.Payload) != cap(body.Payload) || string(first.Payload) != "1" {
		t.Errorf("payload is %q", first.Payload)
	}
}

// What an error says may be logged anywhere.
func TestProject_ErrorsKeepSecrets(t *testing.T) {
	t.Parallel()
	const secret = "s3cr3t"
	run := stateNamed(t, "running")
	run.Payload, run.Lease.Token, run.Meta = []byte(`"`+secret+`"`), secret, map[string]string{"k": secret}
	failure := runlane.Failure{Code: "c", Message: secret, Meta: map[string]string{"k": secret}}
	for _, body := range []runlane.EventBody{
		&runlane.RunCreated{TaskID: "t", Queue: "q", Payload: []byte(secret), IdempotencyKey: secret, SingletonKey: secret},
		&runlane.RunLeaseClaimed{Lease: runlane.Lease{Token: secret, WorkerID: "w", ExpiresAt: noon}},
		&runlane.RunLeaseHeartbeat{Lease: runlane.Lease{Token: secret + "2", WorkerID: "worker-1", ExpiresAt: noon}},
		&runlane.RunSucceeded{Attempt: 9, Output: []byte(secret)},
		&runlane.RunFailed{Attempt: 9, Failure: failure},
		&runlane.RunRetryScheduled{Attempt: 9, Failure: failure, RetryAt: noon},
		&runlane.RunReleased{Attempt: 9, ResumeAt: noon, Reason: secret},
		&runlane.RunResumed{Reason: secret},
		&runlane.RunDebounced{RunAt: noon, Payload: []byte(secret)},
		&runlane.UnknownEvent{Type: "x", Data: []byte(secret)},
	} {
		e := at(noon, body)
		e.Meta, e.TraceCarrier = map[string]string{"k": secret}, map[string]string{"k": secret}
		_, err := reducer.Project(run, run.EventSequence, e)
		if err == nil || strings.Contains(fmt.Sprintf("%v %+v", err, err), secret) {
			t.Errorf("%s: %v", e.Type(), err)
		}
	}
}
