package reducer_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core/internal/reducer"
)

func TestProject_AMomentIsReachedAtItsMillisecond(t *testing.T) {
	t.Parallel()
	for _, state := range []string{"queued, due later", "scheduled, due later", "retrying, due later", "released, due later", "running"} {
		run := stateNamed(t, state) // its moment is noon and a millisecond
		claim := claimed(noon.Add(time.Minute))
		// Less than a millisecond is as good as nothing.
		early := at(noon.Add(999*time.Microsecond), claim)
		if _, err := reducer.Project(run, run.EventSequence, early); !errors.Is(err, runlane.ErrInvariantViolation) {
			t.Errorf("%s: claimed early: %v", state, err)
		}
		if got := project(t, run, at(noon.Add(time.Millisecond), claim)); got.Status != runlane.StatusRunning {
			t.Errorf("%s: %s", state, got.Status)
		}
		if state == "queued, due later" {
			continue // wakes at any time
		}
		if _, err := reducer.Project(run, run.EventSequence, at(noon, delivery(noon))); !errors.Is(err, runlane.ErrInvariantViolation) {
			t.Errorf("%s: delivered early: %v", state, err)
		}
		if got := project(t, run, at(noon.Add(time.Millisecond), delivery(noon))); got.Status != runlane.StatusQueued {
			t.Errorf("%s: %s", state, got.Status)
		}
	}

	// A queued run without runAt is runnable from its last event on.
	queued := stateNamed(t, "queued")
	refuse(t, "run.lease_claimed, event 2: the run is queued until 2026-03-01T11:59:00.000Z, and it is 2026-03-01T11:58:59.999Z",
		queued, at(queued.UpdatedAt.Add(-time.Millisecond), claimed(noon)))
	project(t, queued, at(queued.UpdatedAt, claimed(noon)))

	// An attempt starts under a lease that is not over.
	run := stateNamed(t, "running")
	project(t, run, at(noon.Add(999*time.Microsecond), started(4)))
	refuse(t, `run.started, event 13: at 2026-03-01T12:00:00.001Z the lease of worker "worker-1" is over since 2026-03-01T12:00:00.001Z`,
		run, at(noon.Add(time.Millisecond), started(4)))
}

func TestProject_KeepsTimesInUTCMilliseconds(t *testing.T) {
	t.Parallel()
	zone := time.FixedZone("far", 3*60*60)
	given := noon.Add(1234567 * time.Nanosecond).In(zone)
	want := noon.Add(time.Millisecond)
	begin := created()
	begin.RunAt, begin.Source.FireTime = given, given
	wake := delivery(given)
	wake.Delivery.DispatchExpiresAt = given
	run := project(t, nil, at(given, begin))
	if run.RunAt != want {
		t.Errorf("created to run at %v", run.RunAt)
	}
	run = project(t, run, at(given, wake))
	for name, got := range map[string]time.Time{
		"createdAt": run.CreatedAt, "updatedAt": run.UpdatedAt, "runAt": run.RunAt, "fireTime": run.Source.FireTime,
		"dispatchedAt": run.DispatchedAt, "dispatchExpiresAt": run.DispatchExpiresAt,
	} {
		if got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	if run.Status != runlane.StatusQueued {
		t.Errorf("available in its own millisecond, but %s", run.Status)
	}
	hardly := delivery(given)
	hardly.Delivery.DispatchExpiresAt = time.Time{}.Add(time.Microsecond) // nothing is left of it at rest
	if got := project(t, run, at(given, hardly)); !got.DispatchedAt.IsZero() || !got.DispatchExpiresAt.IsZero() {
		t.Errorf("a reservation from %v until %v", got.DispatchedAt, got.DispatchExpiresAt)
	}
	run = project(t, run, at(given, claimed(given.Add(time.Second))), at(given, started(1)))
	if run.StartedAt != want || run.Lease.ExpiresAt != want.Add(time.Second) {
		t.Errorf("started at %v, lease until %v", run.StartedAt, run.Lease.ExpiresAt)
	}
	if got := project(t, run, at(given, heartbeat(given.Add(time.Hour)))); got.Lease.ExpiresAt != want.Add(time.Hour) {
		t.Errorf("lease until %v", got.Lease.ExpiresAt)
	}
	if got := project(t, run, at(given, &runlane.RunFailed{Attempt: 1, Failure: boom})); got.FinishedAt != want {
		t.Errorf("finished at %v", got.FinishedAt)
	}
	if got := project(t, run, at(given, &runlane.RunRetryScheduled{Attempt: 1, Failure: boom, RetryAt: given})); got.RunAt != want {
		t.Errorf("retry at %v", got.RunAt)
	}
	if got := project(t, run, at(given, &runlane.RunReleased{Attempt: 1, ResumeAt: given})); got.RunAt != want {
		t.Errorf("resume at %v", got.RunAt)
	}
}

func TestProject_LeavesTheCallersBusinessToTheCaller(t *testing.T) {
	t.Parallel()
	run := stateNamed(t, "running")

	t.Run("clocks may run backwards", func(t *testing.T) {
		t.Parallel()
		past := run.UpdatedAt.Add(-time.Hour)
		got := project(t, run, at(past, heartbeat(noon)), at(past, &runlane.RunSucceeded{Attempt: 3}))
		if got.UpdatedAt != past || got.FinishedAt != past {
			t.Errorf("updated at %v, finished at %v", got.UpdatedAt, got.FinishedAt)
		}
	})
	t.Run("a heartbeat may shorten a lease, or come when it is over", func(t *testing.T) {
		t.Parallel()
		if got := project(t, run, at(noon.Add(time.Hour), heartbeat(noon.Add(-time.Hour)))); got.Lease.ExpiresAt != noon.Add(-time.Hour) {
			t.Errorf("lease until %v", got.Lease.ExpiresAt)
		}
	})
	t.Run("a cancellation may be requested when the lease is over", func(t *testing.T) {
		t.Parallel()
		got := project(t, run, at(noon.Add(time.Hour), &runlane.RunCancellationRequested{}))
		if got.Status != runlane.StatusCancellationRequested || got.Lease != run.Lease {
			t.Errorf("%s under %+v", got.Status, got.Lease)
		}
	})
	t.Run("a lease may be over at its beginning, and a reclaim may reuse the token", func(t *testing.T) {
		t.Parallel()
		late := noon.Add(time.Hour)
		if got := project(t, run, at(late, claimed(noon)), at(late, claimed(late.Add(time.Hour)))); got.Lease.Token != run.Lease.Token {
			t.Errorf("lease is %+v", got.Lease)
		}
	})
	t.Run("a retry, a release and a reservation may lie in the past", func(t *testing.T) {
		t.Parallel()
		past := noon.Add(-time.Hour)
		reserved := delivery(past)
		reserved.Delivery.DispatchExpiresAt = past
		got := project(t, run, at(noon, &runlane.RunRetryScheduled{Attempt: 3, Failure: boom, RetryAt: past}), at(noon, reserved))
		if got.RunAt != past || got.DispatchedAt != noon || got.DispatchExpiresAt != past || got.Status != runlane.StatusQueued {
			t.Errorf("got %+v", got)
		}
	})
	t.Run("an attempt may be started twice under one lease", func(t *testing.T) {
		t.Parallel()
		if got := project(t, run, at(noon, started(4)), at(noon, started(5))); got.Counters.Attempts != 5 {
			t.Errorf("attempts: %d", got.Counters.Attempts)
		}
	})
}

func TestProject_OnlyTheOwnerHeartbeats(t *testing.T) {
	t.Parallel()
	for _, state := range []string{"running", "cancellation_requested"} {
		run := stateNamed(t, state)
		beat := heartbeat(noon)
		beat.Lease.Token = "secret-token"
		prefix := fmt.Sprintf("run.lease_heartbeat, event %d: ", run.EventSequence+1)
		refuse(t, prefix+`worker "worker-1" owns the run under another lease token`, run, at(noon, beat))
		beat = heartbeat(noon)
		beat.Lease.WorkerID = "worker-2"
		refuse(t, prefix+`worker "worker-2" does not own the run, worker "worker-1" does`, run, at(noon, beat))
	}
}

func TestProject_AttemptsAreNamed(t *testing.T) {
	t.Parallel()
	for _, number := range []int{-1, 0, 1, 3, 5} { // 4 is the next
		refuse(t, fmt.Sprintf("run.started, event 13: attempt is %d, the next is 4", number), stateNamed(t, "running"), at(noon, started(number)))
	}
	for _, kind := range []runlane.EventType{runlane.EventSucceeded, runlane.EventFailed, runlane.EventRetryScheduled, runlane.EventReleased} {
		for _, state := range []string{"running", "cancellation_requested"} {
			for _, wrong := range []int{-1, 0, 2, 4} { // 3 is current
				run := stateNamed(t, state)
				named := run.Clone()
				named.Counters.Attempts = wrong
				e := eventFor(kind, named)
				refuse(t, fmt.Sprintf("%s, event %d: attempt is %d, the current one is 3", kind, run.EventSequence+1, wrong), run, e)
			}
		}
		refuse(t, fmt.Sprintf("%s, event 4: no attempt has started", kind), stateNamed(t, "running, not started"),
			eventFor(kind, stateNamed(t, "running, not started")))
	}
}

func TestProject_CancellationNeedsAnOwner(t *testing.T) {
	t.Parallel()
	run := stateNamed(t, "running")
	run.Lease = runlane.Lease{}
	refuse(t, "run.cancellation_requested, event 13: the run has no owner who could be asked", run,
		at(noon, &runlane.RunCancellationRequested{}))
}
