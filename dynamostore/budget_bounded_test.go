package dynamostore

import (
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/dynamostore/internal/rows"
	"github.com/runlane/runlane-go/lane"
)

// addBoundedCases adds the steps of a queue with a limit of one.
func addBoundedCases(cases map[string]budgetCase) {
	bounded := func(w *world) *world { return w.bounded(1) }
	entered := func(w *world) *world { return w.must(w.enter(reservation)) }
	waiting := func(w *world) *world { return w.must(w.bounded(1).enter(0)) }
	reserved := func(w *world) *world { w.wantOutcome(w.reserve(reservation), lane.Acquired); return w }
	claimed := func(w *world) *world { w.wantOutcome(w.claimFor(budgetLease, false), lane.Acquired); return w }
	executing := func(w *world) *world { return claimed(entered(bounded(w)).ack()) }
	for name, c := range map[string]budgetCase{
		"trigger that takes a slot": {bounded, entered, nil},
		"trigger into a full queue of limit 1,000": {func(w *world) *world {
			return w.bounded(runlane.MaxQueueConcurrency).occupy(0, runlane.MaxQueueConcurrency)
		}, func(w *world) *world { return w.turnedAway() }, nil},
		"success that hands its slot over at limit 1,000": {func(w *world) *world {
			w = claimed(entered(w.bounded(runlane.MaxQueueConcurrency)).ack())
			own := w.item().Slot - 1
			w.occupy(0, own).occupy(own+1, runlane.MaxQueueConcurrency)
			w.must(w.enter(0))
			return w
		}, func(w *world) *world { return w.succeed().handOver() }, nil},
		"slot reserved":            {waiting, reserved, nil},
		"claim with a reservation": {func(w *world) *world { return entered(bounded(w)) }, claimed, nil},
		"slot given back": {func(w *world) *world { return entered(bounded(w)) }, func(w *world) *world {
			if !w.giveBack(w.store) {
				w.Fatal("not given back")
			}
			return w
		}, nil},
		"success that frees a slot":           {executing, func(w *world) *world { return w.succeed() }, nil},
		"bounded queue with room":             {bounded, func(w *world) *world { return claimed(entered(w).ack()).succeed() }, nil},
		"bounded queue, saturated":            {bounded, func(w *world) *world { return claimed(reserved(w.must(w.enter(0))).ack()).succeed() }, nil},
		"retry in a bounded queue":            {executing, func(w *world) *world { return w.retry(time.Second).pass(time.Second).claimSlot() }, nil},
		"retry through a reservation":         {executing, func(w *world) *world { return claimed(reserved(w.retry(time.Second).pass(time.Second)).ack()) }, nil},
		"cancelling a run with a reservation": {func(w *world) *world { return entered(bounded(w)) }, cancelledNow, nil},
		"a run at a rate": {func(w *world) *world { return w.paced().ticket() }, func(w *world) *world {
			w = claimed(w.must(w.ticket().enter(reservation)).ack())
			return w.succeed()
		}, nil},
		"a run in line for a rate": {func(w *world) *world {
			return w.paced().ticket()
		}, func(w *world) *world {
			w.must(w.enter(0))
			return claimed(w.ticket().handOver().ack()).succeed()
		}, nil},
		"start refused by the rate": {func(w *world) *world {
			claimed(w.must(w.paced().ticket().enter(reservation)).ack())
			return w.must(w.enter(reservation))
		}, func(w *world) *world { w.wantOutcome(w.claimFor(budgetLease, false), lane.LostRate); return w }, nil},
	} {
		cases[name] = c
	}
}

// paced gives the queue a rate.
func (w *world) paced() *world { w.queue.Rate = runlane.PerMinute(10); return w }

// ticket takes the next one.
func (w *world) ticket() *world {
	w.Helper()
	_, ok, err := w.store.TakeTicket(w.step(), &lane.TicketCommand{
		Environment: "test", Queue: w.queue, ConcurrencyKey: w.group, At: w.now, Until: w.now.Add(lane.TicketsAhead),
	})
	if err != nil || !ok {
		w.Fatal(ok, err)
	}
	return w
}

// claimSlot claims by a wakeup that takes a free slot with it.
func (w *world) claimSlot() *world {
	w.Helper()
	w.wantOutcome(w.claimFor(budgetLease, true), lane.Acquired)
	return w
}

// giveBack releases the run's reservation.
func (w *world) giveBack(s *Store) bool {
	w.Helper()
	released, err := s.ReleaseRunDispatch(w.step(), &lane.ReleaseDispatchCommand{
		RunKey: w.key(), ExpiresAt: w.run.DispatchExpiresAt, At: w.now,
	})
	if err != nil {
		w.Fatal(err)
	}
	return released
}

// handOver offers the slot that was just freed as core does.
func (w *world) handOver() *world {
	w.Helper()
	q := &lane.DueQuery{
		PageQuery: lane.PageQuery{Environment: "test", Limit: 1}, At: w.now, Bounded: []runlane.Queue{w.queue}, ConcurrencyKey: &w.group,
	}
	page, err := w.store.ListRunsNeedingDispatch(w.step(), q)
	if err != nil || len(page.Items) != 1 {
		w.Fatal(page, err)
	}
	runs, err := w.store.GetRuns(w.step(), &lane.RunsQuery{
		Environment: "test", IDs: []runlane.RunID{page.Items[0].RunID}, WithoutPayload: true,
	})
	if err != nil || len(runs) != 1 {
		w.Fatal(runs, err)
	}
	next := *w
	next.run = runs[0]
	next.wantOutcome(next.reserve(reservation), lane.Acquired)
	return &next
}

// docs/internals/layout.md, Budget: what a tick reads of a partition with the largest limit.
func TestBudget_SlotsOfTheLargestLimit_AreReadForTwentyFiveUnits(t *testing.T) {
	w := newWorld(t).occupy(0, runlane.MaxQueueConcurrency)
	p := rows.Partition{Environment: "test", Queue: "default", Hash: rows.Hash("")}
	counting := consuming(w.store.db.Client)
	w.store.db.Client = counting
	taken, err := w.store.slots(w.step(), p)
	if err != nil || len(taken) != runlane.MaxQueueConcurrency {
		t.Fatal(len(taken), err)
	}
	if got := w.meter.Stats().ReadUnits; got > 25 || got < 20 || got != counting.reads() {
		t.Errorf("reading them took %v units, by the emulator %v", got, counting.reads())
	}
	if numbers, _ := rows.FreeNumbers(taken, runlane.MaxQueueConcurrency, rows.ToMillis(w.now)); len(numbers) != 0 {
		t.Errorf("%d are free", len(numbers))
	}
}
