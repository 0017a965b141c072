package dynamostore

import (
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// Timelines about runs that stand in o but are due for a stage that does not read o. The protocol model found them.

// noticed reports that a tick at this instant, or the one after, has something to do about the run.
func (w *world) noticed() bool {
	w.Helper()
	q := &lane.DueQuery{PageQuery: lane.PageQuery{Environment: "test"}, At: w.now}
	if w.queue.Bounded() {
		q.Bounded = []runlane.Queue{w.queue}
	}
	for range 2 {
		rows, err := w.store.ClaimOutboxMessages(w.step(), &lane.ClaimOutboxCommand{Environment: "test", At: w.now, ClaimUntil: w.now.Add(30 * time.Second)})
		if err != nil {
			w.Fatal(err)
		}
		due, err := w.store.ListRunsNeedingDelivery(w.step(), q)
		if err != nil {
			w.Fatal(err)
		}
		again, err := w.store.ListRunsNeedingRedelivery(w.step(), q)
		if err != nil {
			w.Fatal(err)
		}
		if len(rows)+len(due.Items)+len(again.Items) > 0 {
			return true
		}
	}
	return false
}

func TestHazard_ScheduledRowPublishedAfterALook_IsFoundWhenItsWakeupIsLost(t *testing.T) {
	w := newWorld(t)
	w.create(deferred, time.Minute, nil).pass(time.Minute).flush()
	none, err := w.store.ClaimOutboxMessages(w.step(), &lane.ClaimOutboxCommand{Environment: "test", At: w.now, ClaimUntil: w.now.Add(30 * time.Second)})
	if err != nil || len(none) != 0 {
		t.Fatal(none, err)
	}
	if got := w.marker(); got != "o+30s" {
		t.Fatalf("a second tick left the marker at %s", got)
	}
	w.pass(time.Second).ack() // the wakeup was sent; it is lost
	if w.pass(24 * time.Hour); !w.noticed() {
		t.Errorf("no scan finds the run a day later; its marker is %s", w.marker())
	}
	w.checked()
}

func TestHazard_RefusedReservation_IsFoundWhenTheQueueLosesItsLimit(t *testing.T) {
	w := newWorld(t).bounded(1)
	r := w.must(w.enter(reservation))
	r.fail(5 * time.Second)
	r.bounded(0)
	if r.pass(24 * time.Hour); !r.noticed() {
		t.Errorf("no scan finds the run a day later; its marker is %s", r.marker())
	}
	r.checked()
}

// A run whose wakeup was never handed over waited for a slot while its queue had a limit. Without one, no stage that hands wakeups over looks
// among those that wait for a slot.
func TestHazard_DeferredRunThatWaitedForASlot_IsPublishedWhenItsQueueLosesItsLimit(t *testing.T) {
	w := newWorld(t).create(deferred, 0, nil).bounded(1)
	w.must(w.enter(0)).claimFor(time.Hour, true) // has the only slot
	w.pass(time.Minute)
	if got := w.dispatch(); len(got) != 0 || w.marker() != "d-1m0s" {
		t.Fatalf("dispatched %v, its marker is %s", got, w.marker())
	}
	if w.bounded(0); !w.noticed() {
		t.Errorf("no scan finds the run; its marker is %s", w.marker())
	}
	w.checked()
}

// A tick looks ahead for waits that end before the next one. A reservation that will be over by then, of a queue that has no limit any
// more, is not over yet: the process that was to publish its wakeup died, and the tick's last stage has to find the row.
func TestScanAhead_OfAReservationThatWillBeOver_LeavesItsRowToBePublished(t *testing.T) {
	w := newWorld(t).bounded(1)
	run := w.must(w.enter(2 * time.Minute)) // its publisher has the row for 30 s, and dies
	run.pass(110 * time.Second)
	q := &lane.DueQuery{PageQuery: lane.PageQuery{Environment: "test", Limit: runlane.MaxPageLimit}, At: run.now.Add(70 * time.Second)}
	if _, err := w.store.ListRunsNeedingDelivery(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	run.checked()
	run.flush()
	run.ack().checked()
}
