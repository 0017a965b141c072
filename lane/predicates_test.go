package lane_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

var (
	noon    = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	updated = noon.Add(-time.Hour)
	runAt   = noon.Add(time.Minute)
	leased  = noon.Add(2 * time.Minute)
)

// TestPredicates_InEveryStatus is the whole table: when a run is runnable, needs a delivery, and needs its cancellation finished.
// The zero time stands for never.
func TestPredicates_InEveryStatus(t *testing.T) {
	t.Parallel()
	never := time.Time{}
	table := map[runlane.Status]struct{ runnable, delivery, cancellation time.Time }{
		runlane.StatusQueued:                {runAt, never, never},
		runlane.StatusScheduled:             {runAt, runAt, never},
		runlane.StatusRetrying:              {runAt, runAt, never},
		runlane.StatusReleased:              {runAt, runAt, never},
		runlane.StatusRunning:               {leased, leased, never},
		runlane.StatusCancellationRequested: {never, never, leased},
		runlane.StatusSucceeded:             {never, never, never},
		runlane.StatusFailed:                {never, never, never},
		runlane.StatusCancelled:             {never, never, never},
		"of a newer writer":                 {never, never, never},
	}
	check := func(status runlane.Status, name string, want, got time.Time, ok bool) {
		t.Helper()
		if ok != !want.IsZero() || ok && !got.Equal(want) {
			t.Errorf("%s: %s at %v, %t, want %v", status, name, got, ok, want)
		}
	}
	for _, status := range append(runlane.Statuses(), "of a newer writer") {
		want, listed := table[status]
		if !listed {
			t.Errorf("%s is not in the table", status)
		}
		run := &runlane.Run{
			Status: status, RunAt: runAt, UpdatedAt: updated, Lease: runlane.Lease{Token: "t", WorkerID: "w", ExpiresAt: leased},
		}
		at, ok := lane.RunnableAt(run)
		check(status, "runnable", want.runnable, at, ok)
		at, ok = lane.DeliveryRecoveryAt(run)
		check(status, "needs a delivery", want.delivery, at, ok)
		at, ok = lane.CancellationFinalizationAt(run)
		check(status, "needs its cancellation finished", want.cancellation, at, ok)
	}
}

func TestRunnableAt_QueuedWithoutRunAt_IsRunnableSinceItsLastEvent(t *testing.T) {
	t.Parallel()
	at, ok := lane.RunnableAt(&runlane.Run{Status: runlane.StatusQueued, UpdatedAt: updated})
	if !ok || !at.Equal(updated) {
		t.Errorf("got %v, %t", at, ok)
	}
}

func TestReservation_EndsAtItsVeryMillisecond(t *testing.T) {
	t.Parallel()
	type answer struct{ Active, Expired bool }
	before, after := noon.Add(-time.Millisecond), noon.Add(time.Millisecond)
	for _, c := range []struct {
		name    string
		expires time.Time
		want    map[time.Time]answer
	}{
		{"reserved until noon", noon, map[time.Time]answer{
			before: {Active: true}, noon.Add(-time.Nanosecond): {Active: true}, noon: {Expired: true}, after: {Expired: true},
		}},
		{"never reserved", time.Time{}, map[time.Time]answer{before: {}, noon: {}, after: {}}},
	} {
		for _, status := range append(runlane.Statuses(), "of a newer writer") {
			run := &runlane.Run{Status: status, DispatchExpiresAt: c.expires}
			for at, want := range c.want {
				if status != runlane.StatusQueued {
					want = answer{} // only a queued run owns a slot by reservation
				}
				if got := (answer{lane.ReservationActive(run, at), lane.ReservationExpired(run, at)}); got != want {
					t.Errorf("%s, %s at %v: got %+v, want %+v", c.name, status, at, got, want)
				}
			}
		}
	}
}

// The statuses of which each scan may return runs: those to which its predicate may say yes.
func TestScans_StatusesAreTheContracts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		predicate func(*runlane.Run) (time.Time, bool)
		want      []runlane.Status
	}{
		"runnable":                  {lane.RunnableAt, []runlane.Status{"queued", "released", "retrying", "running", "scheduled"}},
		"delivery recovery":         {lane.DeliveryRecoveryAt, []runlane.Status{"released", "retrying", "running", "scheduled"}},
		"cancellation finalization": {lane.CancellationFinalizationAt, []runlane.Status{"cancellation_requested"}},
	} {
		var got []runlane.Status
		for _, status := range runlane.Statuses() {
			if _, ok := c.predicate(&runlane.Run{Status: status}); ok {
				got = append(got, status)
			}
		}
		if diff := cmp.Diff(c.want, slices.Sorted(slices.Values(got))); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestPageLimit(t *testing.T) {
	t.Parallel()
	for given, want := range map[int]int{0: runlane.DefaultPageLimit, 1: 1, 50: 50, runlane.MaxPageLimit: runlane.MaxPageLimit} {
		if got, err := (&lane.PageQuery{Limit: given}).PageLimit(); err != nil || got != want {
			t.Errorf("%d: got %d, %v, want %d", given, got, err, want)
		}
	}
	for _, given := range []int{-1, runlane.MaxPageLimit + 1} {
		got, err := (&lane.PageQuery{Limit: given}).PageLimit()
		if runlane.CodeOf(err) != runlane.ErrValidationFailed || got != 0 {
			t.Errorf("%d: got %d, %v", given, got, err)
		}
	}
}
