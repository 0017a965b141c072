package reducer_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core/internal/reducer"
)

// The tests of this file are the three tables of the reducer's contract, row by row, each under the row's name.

func TestProject_FailureTable(t *testing.T) {
	t.Parallel()
	current := &runlane.Run{ID: "run_1", Environment: "production", Status: runlane.StatusQueued, Queue: "hooks", EventSequence: 3}

	t.Run("expectedSequence is stale against currentRun.eventSequence", func(t *testing.T) {
		t.Parallel()
		for _, stale := range []int64{0, 2, 4} {
			_, err := reducer.Project(current, stale, at(noon, delivery(noon)))
			got, ok := errors.AsType[*runlane.Error](err)
			if !ok || got.Code != runlane.ErrStorageConflict || got.Conflict != runlane.ConflictEventSequence || !got.Retryable || got.RunID != "run_1" {
				t.Errorf("%d: got %#v", stale, err)
			}
		}
	})
	t.Run("expectedSequence is negative, non-integer, or unsafe", func(t *testing.T) {
		t.Parallel() // its type allows no fractions
		for _, malformed := range []int64{-1, -1 << 63, 1 << 53, 1<<63 - 1} {
			_, err := reducer.Project(current, malformed, at(noon, delivery(noon)))
			got, ok := errors.AsType[*runlane.Error](err)
			if !ok || got.Code != runlane.ErrInvariantViolation || got.Retryable || got.RunID != "run_1" {
				t.Errorf("%d: got %#v", malformed, err)
			}
		}
	})
	t.Run("events is empty", func(t *testing.T) {
		t.Parallel()
		refuse(t, "no events to project", current)
	})
	t.Run("event order, status, lease, attempt, queue, run id, or environment is impossible", func(t *testing.T) {
		t.Parallel()
		other := func(change func(*runlane.Event)) runlane.Event {
			e := at(noon, delivery(noon))
			change(&e)
			return e
		}
		for name, row := range map[string]struct {
			message string
			events  []runlane.Event
		}{
			"order":       {"run.created, event 4: the run exists already and is queued", []runlane.Event{at(noon, created())}},
			"status":      {"run.started, event 4: the run is queued, not running", []runlane.Event{at(noon, started(1))}},
			"lease":       {`run.lease_heartbeat, event 5: worker "worker-1" does not own the run, worker "other" does`, []runlane.Event{at(noon, &runlane.RunLeaseClaimed{Lease: runlane.Lease{Token: "t", WorkerID: "other", ExpiresAt: noon.Add(1e9)}}), at(noon, heartbeat(noon.Add(1e9)))}},
			"attempt":     {"run.started, event 5: attempt is 2, the next is 1", []runlane.Event{at(noon, claimed(noon.Add(1e9))), at(noon, started(2))}},
			"queue":       {`run.delivery_requested, event 4: delivery is for queue "other", the run is of "hooks"`, []runlane.Event{other(func(e *runlane.Event) { e.Body.(*runlane.RunDeliveryRequested).Delivery.Queue = "other" })}},
			"run id":      {`run.delivery_requested, event 4: is of run "run_2"`, []runlane.Event{other(func(e *runlane.Event) { e.RunID = "run_2" })}},
			"environment": {`run.delivery_requested, event 4: is of environment "staging", the run of "production"`, []runlane.Event{other(func(e *runlane.Event) { e.Environment = "staging" })}},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				refuse(t, row.message, current, row.events...)
			})
		}
	})
}

func TestProject_EventTable(t *testing.T) {
	t.Parallel()
	later := noon.Add(10 * time.Second)
	afterwards := func(run *runlane.Run, status runlane.Status, change func(*runlane.Run)) *runlane.Run {
		want := run.Clone()
		want.Status, want.UpdatedAt = status, later
		want.EventSequence++
		change(want)
		return want
	}
	noOwner := func(r *runlane.Run) {
		r.Lease, r.DispatchedAt, r.DispatchExpiresAt = runlane.Lease{}, time.Time{}, time.Time{}
	}
	check := func(t *testing.T, want, got *runlane.Run) {
		t.Helper()
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	}

	t.Run("run.created", func(t *testing.T) {
		t.Parallel()
		e := at(noon, &runlane.RunCreated{
			TaskID: "hooks.deliver", Queue: "hooks", Payload: []byte(`{"a": 1}`), RunAt: later, ConcurrencyKey: "c", IdempotencyKey: "i",
			Retention: runlane.KeyRetention{TTL: time.Hour}, SingletonKey: "s", Source: runlane.Source{Type: runlane.SourceRerun, RunID: "run_0"},
		})
		e.Meta, e.TraceCarrier = map[string]string{"m": "1"}, map[string]string{"traceparent": "t"}
		check(t, &runlane.Run{
			ID: "run_1", Environment: "production", TaskID: "hooks.deliver", Queue: "hooks", Status: runlane.StatusQueued, EventSequence: 1,
			Payload: []byte(`{"a": 1}`), RunAt: later, ConcurrencyKey: "c", IdempotencyKey: "i",
			Retention: runlane.KeyRetention{TTL: time.Hour}, SingletonKey: "s", Source: runlane.Source{Type: runlane.SourceRerun, RunID: "run_0"},
			Meta: map[string]string{"m": "1"}, TraceCarrier: map[string]string{"traceparent": "t"}, CreatedAt: noon, UpdatedAt: noon,
		}, project(t, nil, e))
	})
	t.Run("run.delivery_requested", func(t *testing.T) {
		t.Parallel()
		queued := project(t, nil, at(noon, created()))
		check(t, afterwards(queued, runlane.StatusQueued, func(r *runlane.Run) { r.RunAt = later }),
			project(t, queued, at(later, delivery(later))))
		check(t, afterwards(queued, runlane.StatusScheduled, func(r *runlane.Run) { r.RunAt = later.Add(time.Millisecond) }),
			project(t, queued, at(later, delivery(later.Add(time.Millisecond)))))

		abandoned := running(t)
		abandoned.Lease.ExpiresAt = later
		check(t, afterwards(abandoned, runlane.StatusQueued, func(r *runlane.Run) { noOwner(r); r.RunAt = noon }),
			project(t, abandoned, at(later, delivery(noon))))
	})
	t.Run("run.lease_claimed", func(t *testing.T) {
		t.Parallel()
		queued := project(t, nil, at(noon, created()))
		queued.DispatchedAt, queued.DispatchExpiresAt = noon, noon.Add(time.Hour)
		want := afterwards(queued, runlane.StatusRunning, noOwner)
		want.Lease = runlane.Lease{Token: "token-1", WorkerID: "worker-1", ExpiresAt: noon.Add(time.Minute)}
		check(t, want, project(t, queued, at(later, claimed(noon.Add(time.Minute)))))
	})
	t.Run("run.lease_heartbeat", func(t *testing.T) {
		t.Parallel()
		run := running(t)
		check(t, afterwards(run, runlane.StatusRunning, func(r *runlane.Run) { r.Lease.ExpiresAt = noon.Add(time.Hour) }),
			project(t, run, at(later, heartbeat(noon.Add(time.Hour)))))
	})
	t.Run("run.started", func(t *testing.T) {
		t.Parallel()
		run := running(t)
		run.Failure = boom
		check(t, afterwards(run, runlane.StatusRunning, func(r *runlane.Run) {
			r.Counters.Attempts, r.Failure, r.StartedAt = 2, runlane.Failure{}, later
		}), project(t, run, at(later, started(2))))
	})
	t.Run("run.succeeded", func(t *testing.T) {
		t.Parallel()
		run := running(t)
		run.Failure = boom
		check(t, afterwards(run, runlane.StatusSucceeded, func(r *runlane.Run) {
			noOwner(r)
			r.Failure, r.FinishedAt, r.Output = runlane.Failure{}, later, []byte(`{"ok": true}`)
		}), project(t, run, at(later, &runlane.RunSucceeded{Attempt: 1, Output: []byte(`{"ok": true}`)})))
	})
	t.Run("run.failed", func(t *testing.T) {
		t.Parallel()
		run := running(t)
		check(t, afterwards(run, runlane.StatusFailed, func(r *runlane.Run) {
			noOwner(r)
			r.Failure, r.FinishedAt, r.Counters.Failures = boom, later, 1
		}), project(t, run, at(later, &runlane.RunFailed{Attempt: 1, Failure: boom})))
	})
	t.Run("run.retry_scheduled", func(t *testing.T) {
		t.Parallel()
		run := running(t)
		check(t, afterwards(run, runlane.StatusRetrying, func(r *runlane.Run) {
			noOwner(r)
			r.Failure, r.Counters.Failures, r.Counters.Retries, r.RunAt = boom, 1, 1, later.Add(time.Second)
		}), project(t, run, at(later, &runlane.RunRetryScheduled{Attempt: 1, Failure: boom, RetryAt: later.Add(time.Second)})))
	})
	t.Run("run.released", func(t *testing.T) {
		t.Parallel()
		run := running(t)
		check(t, afterwards(run, runlane.StatusReleased, func(r *runlane.Run) {
			noOwner(r)
			r.Counters.Releases, r.RunAt = 1, later.Add(time.Second)
		}), project(t, run, at(later, &runlane.RunReleased{Attempt: 1, ResumeAt: later.Add(time.Second), Reason: "waits"})))
	})
	t.Run("run.resumed", func(t *testing.T) {
		t.Parallel()
		for _, status := range []runlane.Status{runlane.StatusScheduled, runlane.StatusRetrying, runlane.StatusReleased} {
			run := running(t)
			run.Status, run.Lease, run.RunAt, run.Failure = status, runlane.Lease{}, later.Add(time.Hour), boom
			check(t, afterwards(run, status, func(r *runlane.Run) { r.RunAt = later }), project(t, run, at(later, &runlane.RunResumed{Reason: "operator"})))
			run.RunAt = noon // its time came before
			check(t, afterwards(run, status, func(*runlane.Run) {}), project(t, run, at(later, &runlane.RunResumed{})))
		}
	})
	t.Run("run.debounced", func(t *testing.T) {
		t.Parallel()
		run := stateNamed(t, "scheduled, due later")
		moved := func(by time.Duration, payload []byte) runlane.Event {
			return at(noon, &runlane.RunDebounced{RunAt: noon.Add(by), Payload: payload})
		}
		want := run.Clone()
		want.RunAt, want.Debounced.Triggers, want.EventSequence, want.UpdatedAt = noon.Add(time.Minute), 3, 3, noon
		check(t, want, project(t, run, moved(time.Minute, nil))) // a copied history: run.created has the payload
		want.Payload = []byte(`2`)
		check(t, want, project(t, run, moved(time.Minute, []byte(`2`))))
		refuse(t, "run.debounced, event 3: the run would be due at 2026-03-01T12:00:00.000Z, and it is 2026-03-01T12:00:00.000Z",
			run, moved(0, nil))
		refuse(t, "run.debounced, event 3: the run would be due at 2026-03-01T13:00:00.001Z, and 2026-03-01T13:00:00.000Z is the latest",
			run, moved(time.Hour+time.Millisecond, nil))
		refuse(t, "run.debounced, event 3: at 2026-03-01T12:00:00.001Z the run is due since 2026-03-01T12:00:00.001Z",
			run, at(run.RunAt, &runlane.RunDebounced{RunAt: noon.Add(time.Minute)}))
		created := created()
		created.Retention.UntilDue, created.Debounced = true, &runlane.Debounced{Latest: noon.Add(time.Hour + time.Microsecond), Triggers: 1}
		if d := project(t, nil, at(noon, created)).Debounced; !d.Latest.Equal(noon.Add(time.Hour)) {
			t.Errorf("the latest time is %s", d.Latest)
		}
		run.Debounced = nil
		refuse(t, "run.debounced, event 3: the run is not debounced", run, moved(time.Minute, nil))
	})
	t.Run("run.cancellation_requested", func(t *testing.T) {
		t.Parallel()
		run := running(t)
		check(t, afterwards(run, runlane.StatusCancellationRequested, func(*runlane.Run) {}),
			project(t, run, at(later, &runlane.RunCancellationRequested{Reason: "operator"})))
	})
	t.Run("run.cancelled", func(t *testing.T) {
		t.Parallel()
		run := running(t)
		run.Status, run.Failure = runlane.StatusCancellationRequested, boom
		check(t, afterwards(run, runlane.StatusCancelled, func(r *runlane.Run) {
			noOwner(r)
			r.Failure, r.FinishedAt = runlane.Failure{}, later
		}), project(t, run, at(later, &runlane.RunCancelled{Reason: "operator"})))
	})
}

func TestProject_FieldTable(t *testing.T) {
	t.Parallel()
	var (
		end   = noon.Add(time.Minute)
		retry = func(n int) *runlane.RunRetryScheduled {
			return &runlane.RunRetryScheduled{Attempt: n, Failure: boom, RetryAt: noon}
		}
		release = func(n int) *runlane.RunReleased { return &runlane.RunReleased{Attempt: n, ResumeAt: noon} }
	)
	// history plays bodies one by one, each a second after the one before, and returns what field read after each.
	history := func(t *testing.T, field func(*runlane.Run) any, bodies ...runlane.EventBody) []any {
		t.Helper()
		var run *runlane.Run
		var values []any
		for i, body := range bodies {
			run = project(t, run, at(noon.Add(time.Duration(i)*time.Second), body))
			values = append(values, field(run))
		}
		return values
	}
	// attempts: one retried, one released, one that fails.
	long := []runlane.EventBody{
		created(), delivery(noon), claimed(end), started(1), heartbeat(end), retry(1), delivery(noon), claimed(end), started(2), release(2),
		claimed(end), started(3), &runlane.RunFailed{Attempt: 3, Failure: boom},
	}
	second := func(i int) time.Time { return noon.Add(time.Duration(i) * time.Second) }
	var zero time.Time

	for _, row := range []struct {
		name   string
		field  func(*runlane.Run) any
		bodies []runlane.EventBody
		want   []any
	}{
		{
			"eventSequence", func(r *runlane.Run) any { return r.EventSequence }, long,
			[]any{int64(1), int64(2), int64(3), int64(4), int64(5), int64(6), int64(7), int64(8), int64(9), int64(10), int64(11), int64(12), int64(13)},
		},
		{
			"status", func(r *runlane.Run) any { return string(r.Status) }, long,
			[]any{"queued", "queued", "running", "running", "running", "retrying", "queued", "running", "running", "released", "running", "running", "failed"},
		},
		{
			"counters.attempts", func(r *runlane.Run) any { return r.Counters.Attempts }, long,
			[]any{0, 0, 0, 1, 1, 1, 1, 1, 2, 2, 2, 3, 3},
		},
		{
			"counters.failures", func(r *runlane.Run) any { return r.Counters.Failures }, long,
			[]any{0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 2},
		},
		{
			"counters.retries", func(r *runlane.Run) any { return r.Counters.Retries }, long,
			[]any{0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1},
		},
		{
			"counters.releases", func(r *runlane.Run) any { return r.Counters.Releases }, long,
			[]any{0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1},
		},
		{
			"runAt", func(r *runlane.Run) any { return r.RunAt },
			[]runlane.EventBody{
				&runlane.RunCreated{TaskID: "t", Queue: "hooks", RunAt: end}, delivery(noon), claimed(end), started(1),
				&runlane.RunRetryScheduled{Attempt: 1, Failure: boom, RetryAt: second(5)}, claimed(end), started(2),
				&runlane.RunReleased{Attempt: 2, ResumeAt: second(8)}, delivery(second(9)),
			},
			[]any{end, noon, noon, noon, second(5), second(5), second(5), second(8), second(9)},
		},
		{
			"startedAt", func(r *runlane.Run) any { return r.StartedAt }, long,
			[]any{
				zero, zero, zero, second(3), second(3), second(3), second(3), second(3), second(8), second(8), second(8), second(11), second(11),
			},
		},
		{
			"finishedAt", func(r *runlane.Run) any { return r.FinishedAt }, long,
			[]any{zero, zero, zero, zero, zero, zero, zero, zero, zero, zero, zero, zero, second(12)},
		},
		{
			"failure", func(r *runlane.Run) any { return string(r.Failure.Code) }, long,
			[]any{"", "", "", "", "", "boom", "boom", "boom", "", "", "", "", "boom"},
		},
		{
			"lease", func(r *runlane.Run) any { return r.Lease.Token }, long,
			[]any{"", "", "token-1", "token-1", "token-1", "", "", "token-1", "token-1", "", "token-1", "token-1", ""},
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(row.want, history(t, row.field, row.bodies...)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}

	t.Run("dispatchedAt / dispatchExpiresAt", func(t *testing.T) {
		t.Parallel()
		reserved := delivery(noon)
		reserved.Delivery.DispatchExpiresAt = end
		field := func(r *runlane.Run) any { return [2]time.Time{r.DispatchedAt, r.DispatchExpiresAt} }
		none := [2]time.Time{}
		for name, next := range map[string]runlane.EventBody{
			"unbounded delivery": delivery(noon), "claim": claimed(end), "cancel": &runlane.RunCancelled{},
		} {
			got := history(t, field, created(), reserved, next)
			if diff := cmp.Diff([]any{none, [2]time.Time{second(1), end}, none}, got); diff != "" {
				t.Errorf("%s: (-want +got)\n%s", name, diff)
			}
		}
	})
	t.Run("source", func(t *testing.T) {
		t.Parallel()
		source := runlane.Source{Type: runlane.SourceSchedule, ScheduleID: "nightly", FireTime: noon}
		begin := created()
		begin.Source = source
		for i, got := range history(t, func(r *runlane.Run) any { return r.Source }, append([]runlane.EventBody{begin}, long[1:]...)...) {
			if diff := cmp.Diff(any(source), got); diff != "" {
				t.Errorf("after event %d: %s", i+1, diff)
			}
		}
	})
	t.Run("traceCarrier", func(t *testing.T) {
		t.Parallel()
		carrier := func(name string) map[string]string { return map[string]string{"traceparent": name} }
		empty := map[string]string{}
		for _, c := range []struct {
			name                     string
			current, event, delivery map[string]string
			want                     map[string]string
		}{
			{"delivery's first", carrier("current"), carrier("event"), carrier("delivery"), carrier("delivery")},
			{"then the event's", carrier("current"), carrier("event"), nil, carrier("event")},
			{"then what there was", carrier("current"), nil, nil, carrier("current")},
			{"an empty delivery's replaces", carrier("current"), carrier("event"), empty, empty},
			{"an empty event's replaces", carrier("current"), empty, nil, empty},
			{"absent everywhere stays absent", nil, nil, nil, nil},
		} {
			begin := at(noon, created())
			begin.TraceCarrier = c.current
			body := delivery(noon)
			body.Delivery.TraceCarrier = c.delivery
			wake := at(noon, body)
			wake.TraceCarrier = c.event
			run := project(t, nil, begin, wake)
			if diff := cmp.Diff(c.want, run.TraceCarrier); diff != "" {
				t.Errorf("%s: (-want +got)\n%s", c.name, diff)
			}
		}
		// No other event touches it.
		claim := at(noon, claimed(end))
		claim.TraceCarrier = carrier("claim")
		begin := at(noon, created())
		begin.TraceCarrier = carrier("creation")
		if diff := cmp.Diff(carrier("creation"), project(t, nil, begin, claim).TraceCarrier); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("meta", func(t *testing.T) {
		t.Parallel()
		begin, release := at(noon, created()), at(noon, release(1))
		begin.Meta, release.Meta = map[string]string{"of": "creation"}, map[string]string{"of": "release"}
		run := project(t, nil, begin, at(noon, claimed(end)), at(noon, started(1)), release)
		if diff := cmp.Diff(map[string]string{"of": "creation"}, run.Meta); diff != "" {
			t.Error(diff)
		}
	})
}
