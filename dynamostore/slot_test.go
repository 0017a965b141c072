package dynamostore

import (
	"slices"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/dynamostore/internal/rows"
	"github.com/runlane/runlane-go/lane"
)

const reservation = 2 * time.Minute

// bounded limits the world's queue from here on; 0 lifts the limit.
func (w *world) bounded(limit int) *world { w.queue.Concurrency = limit; return w }

func (w *world) requestSlot(d time.Duration) runlane.EventBody {
	body := &runlane.RunDeliveryRequested{Delivery: runlane.Delivery{
		Environment: "test", RunID: w.run.ID, Queue: "default", AvailableAt: w.now, RequestedAt: w.now,
	}}
	if d > 0 {
		body.Delivery.DispatchExpiresAt = w.now.Add(d)
	}
	return body
}

// enter creates another run in the queue, with a reservation where d is set, and returns it.
func (w *world) enter(d time.Duration) (*world, error) {
	w.Helper()
	other := *w
	other.run = &runlane.Run{ID: runlane.RunID("run_" + time.Duration(runNumber.Add(1)).String())}
	created := &runlane.RunCreated{
		TaskID: "bench.noop", Queue: "default", Payload: []byte(`{}`), ConcurrencyKey: w.group, Source: runlane.Source{Type: runlane.SourceTrigger},
	}
	bodies := []runlane.EventBody{created}
	if d > 0 {
		bodies = append(bodies, other.requestSlot(d))
	}
	commit, err := w.store.AppendRunEvents(other.step(), &lane.AppendCommand{Transition: other.transition(bodies...), Outbox: eager(w.now)})
	if err != nil {
		return nil, err
	}
	other.run, other.rows = commit.Run, commit.Outbox
	return &other, nil
}

func (w *world) must(other *world, err error) *world {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
	return other
}

func (w *world) reserve(d time.Duration) lane.Outcome {
	w.Helper()
	got, err := w.store.ReserveRunDispatch(w.step(), &lane.ReserveCommand{Transition: w.transition(w.requestSlot(d)), At: w.now, Outbox: eager(w.now)})
	if err != nil {
		w.Fatal(err)
	}
	if got.Outcome == lane.Acquired {
		w.run, w.rows = got.Commit.Run, got.Commit.Outbox
	}
	return got.Outcome
}

func (w *world) claimFor(lease time.Duration, slot bool) lane.Outcome {
	w.Helper()
	t := w.transition(
		&runlane.RunLeaseClaimed{Lease: runlane.Lease{Token: randomID(), WorkerID: "host-1-worker", ExpiresAt: w.now.Add(lease)}},
		&runlane.RunStarted{Attempt: w.run.Counters.Attempts + 1})
	got, err := w.store.ClaimRunLease(w.step(), &lane.ClaimCommand{Transition: t, At: w.now, ByWakeup: true, Slot: slot})
	if err != nil {
		w.Fatal(err)
	}
	if got.Outcome == lane.Acquired {
		w.run = got.Commit.Run
	}
	return got.Outcome
}

func (w *world) wantOutcome(got, want lane.Outcome) {
	w.Helper()
	if got != want {
		w.Fatalf("outcome %s, want %s", got, want)
	}
}

// dispatch lists what needs a slot, with the world's policy.
func (w *world) dispatch() []runlane.RunID {
	w.Helper()
	var ids []runlane.RunID
	q := &lane.DueQuery{PageQuery: lane.PageQuery{Environment: "test"}, At: w.now, Bounded: []runlane.Queue{w.queue}}
	for {
		page, err := w.store.ListRunsNeedingDispatch(w.Context(), q)
		if err != nil {
			w.Fatal(err)
		}
		for _, ref := range page.Items {
			ids = append(ids, ref.RunID)
		}
		if q.After = page.Next; page.Next == "" {
			return ids
		}
	}
}

func TestSlotMarkers(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		steps  func(w *world) *world
		marker string
	}{
		"created without a slot":          {func(w *world) *world { return w.must(w.enter(0)) }, "d+0s"},
		"created with a slot":             {func(w *world) *world { return w.must(w.enter(reservation)) }, "q+0s"},
		"reserved":                        {func(w *world) *world { r := w.must(w.enter(0)); r.pass(time.Second).reserve(reservation); return r }, "q+0s"},
		"claimed from its reservation":    {func(w *world) *world { r := w.must(w.enter(reservation)); r.claimFor(time.Minute, false); return r }, "q+0s"},
		"claimed from d with a free slot": {func(w *world) *world { r := w.must(w.enter(0)); r.claimFor(time.Minute, true); return r }, "l+1m0s"},
		"inspection finds a live reservation": {func(w *world) *world {
			r := w.must(w.enter(reservation)).ack().pass(61 * time.Second)
			r.dispatch()
			return r
		}, "l+59s"},
		"inspection of a full partition": {func(w *world) *world {
			r := w.must(w.enter(reservation))
			r.claimFor(time.Minute, false)
			r.end(&runlane.RunRetryScheduled{Attempt: 1, Failure: runlane.Failure{Code: runlane.ErrTaskFailed}, RetryAt: w.now.Add(time.Second)})
			w.must(w.enter(0)).claimFor(time.Hour, true)
			r.pass(time.Second).dispatch()
			return r
		}, "d+0s"},
		"retry": {func(w *world) *world {
			r := w.must(w.enter(reservation))
			r.claimFor(time.Minute, false)
			return r.end(&runlane.RunRetryScheduled{Attempt: 1, Failure: runlane.Failure{Code: runlane.ErrTaskFailed}, RetryAt: w.now.Add(time.Second)})
		}, "w+1s"},
		"expired without a slot, made waiting": {func(w *world) *world {
			r := w.must(w.enter(0)).bounded(0)
			r.claimFor(time.Minute, false)
			return r.pass(time.Minute).bounded(1).other(r.requestSlot(0))
		}, "d+0s"},
	} {
		t.Run(name, func(t *testing.T) {
			w := row.steps(newWorld(t).bounded(1))
			if got := w.marker(); got != row.marker {
				t.Errorf("marker %s, want %s", got, row.marker)
			}
			w.checked()
		})
	}
}

// Lowering a limit, at every moment, with readings that are old: choosing among the lowest (limit - occupied) numbers never
// exceeds it; any free number would.
func TestHazard21_FreeNumbers_NeverExceedALoweredLimit(t *testing.T) {
	t.Parallel()
	held := func(numbers ...int) (taken []rows.SlotItem) {
		for _, n := range numbers {
			taken = append(taken, rows.SlotItem{SK: rows.SlotSK(n), Run: runlane.RunID("run_" + rows.SlotSK(n))})
		}
		return taken
	}
	for limit := 2; limit <= 5; limit++ {
		for set := range 1 << 8 { // every set of occupied numbers below 8, from when the limit was larger
			var numbers []int
			for n := range 8 {
				if set&(1<<n) != 0 {
					numbers = append(numbers, n)
				}
			}
			choices, _ := rows.FreeNumbers(held(numbers...), limit, 0)
			room := max(limit-len(numbers), 0)
			if len(choices) > room {
				t.Fatalf("limit %d with %v taken leaves %v", limit, numbers, choices)
			}
			// Any number of reservers with this same reading can take at most these numbers, one each.
			for _, n := range choices {
				if n >= limit || slices.Contains(numbers, n) {
					t.Fatalf("limit %d with %v taken offers %d", limit, numbers, n)
				}
			}
		}
	}
}

// A claim commits within its reservation: in the last seconds before its end it no longer begins.
func TestSlot_ClaimKeepsItsMargin(t *testing.T) {
	w := newWorld(t).bounded(1)
	run := w.must(w.enter(reservation)).pass(reservation - rows.ClaimMargin)
	run.wantOutcome(run.claimFor(time.Minute, false), lane.LostReservation)
	run.wantOutcome(run.claimFor(time.Minute, true), lane.Acquired)
	run.checked()
}

// In the last moments of its reservation a run takes a slot like any other: by the limit as it is now, and with as much time as it needs.
func TestSlot_ClaimForASlotAtTheEndOfItsReservation_TakesOneAnew(t *testing.T) {
	w := newWorld(t).bounded(2)
	first, second := w.must(w.enter(reservation)), w.must(w.enter(reservation))
	first.bounded(1).pass(reservation - time.Millisecond)
	first.wantOutcome(first.claimFor(time.Minute, true), lane.LostCapacity)
	second.bounded(2).pass(reservation - time.Millisecond)
	second.wantOutcome(second.claimFor(time.Minute, true), lane.Acquired)
	second.checked()
}

// An older wakeup of a dead-lettered run comes while its queue is full: that is no reason to hide the run from operators.
func TestClaim_OfADeadLetterInAFullQueue_LeavesItAmongTheDeadLetters(t *testing.T) {
	w := newWorld(t).bounded(1)
	run := w.must(w.enter(2 * time.Minute)).bury()
	w.pass(3 * time.Minute)
	w.must(w.enter(2 * time.Minute)) // has the slot now
	run.pass(3*time.Minute).wantOutcome(run.claimFor(time.Minute, true), lane.LostCapacity)
	q := &lane.DeadLetterQuery{PageQuery: lane.PageQuery{Environment: "test", Limit: runlane.MaxPageLimit}}
	page, err := w.store.ListDeadLetters(t.Context(), q)
	if err != nil || len(page.Items) != 1 || page.Items[0].RunID != run.run.ID {
		t.Errorf("dead letters: %+v, %v", page, err)
	}
	run.checked()
}

// The next attempt to publish a wakeup lies behind the end of its run's reservation: the run is looked at when that ends.
func TestMarkFailed_BehindAReservation_IsLookedAtWhenThatEnds(t *testing.T) {
	w := newWorld(t).bounded(1)
	run := w.must(w.enter(2 * time.Minute))
	run.pass(119 * time.Second).fail(5 * time.Minute)
	if got := run.marker(); got != "l+1s" {
		t.Errorf("marker %s, want the end of the reservation", got)
	}
	run.checked()
	run.pass(time.Second)
	if got := run.dispatch(); len(got) != 1 || got[0] != run.run.ID {
		t.Errorf("needing dispatch when the reservation is over: %v", got)
	}
}

// A reservation writes four times at most, so it chooses another slot three times: what it would choose after the last one is not read.
func TestSlot_TakenAtEachTry_IsChosenAgainOnlyForAnotherTry(t *testing.T) {
	w := newWorld(t).bounded(2)
	holder := w.must(w.enter(reservation)).item()
	run := w.must(w.enter(0))
	change := &rows.Change{Before: run.item(), Initial: eager(run.now)}
	wanted := run.transition(run.requestSlot(reservation))
	change.Transition = &wanted
	change.Slot.Put = &rows.SlotItem{ // another run has it
		PK:    holder.Partition().PK(),
		SK:    rows.SlotSK(holder.Slot - 1),
		Run:   run.run.ID,
		Until: rows.ToMillis(wanted.Projected.DispatchExpiresAt),
	}
	chosen, taken := 0, change.Slot
	got, err := run.store.acquire(run.step(), change, func() (rows.SlotChange, bool, error) {
		chosen++
		return taken, true, nil
	})
	if err != nil || got.Outcome != lane.LostCapacity || chosen != slotTries-1 {
		t.Errorf("%+v, %v, after choosing %d times", got, err, chosen)
	}
}
