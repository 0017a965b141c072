package dynamostore

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/dynamostore/internal/rows"
	"github.com/runlane/runlane-go/infra"
	"github.com/runlane/runlane-go/lane"
)

// Timelines in which two commits meet, with the interleaving forced.

// A time to live that begins at the creation would remove the owner of a run that is still active: owners have none, whatever their
// retention is.
func TestHazard17_OwnersHaveNoTimeToLive(t *testing.T) {
	w := newWorld(t)
	created := owned("key", []byte(`{}`))
	created.Retention = runlane.KeyRetention{TTL: time.Hour}
	w.create(eager, 0, created)
	key := lane.OwnerKey{Environment: "test", TaskID: "bench.noop", Key: "key"}
	for _, pk := range []string{rows.IdempotencyPK(key), rows.SingletonPK(key)} {
		owner := w.standing(pk, rows.OwnerSK)
		if owner == nil || owner[infra.TTLAttribute] != nil {
			t.Errorf("the owner is %v", owner)
		}
	}
	w.pass(24 * time.Hour) // and past its retention an active run holds its key still
	if run, err := w.store.GetRunByIdempotencyKey(t.Context(), key); err != nil || run.ID != w.run.ID {
		t.Errorf("%v %v", run, err)
	}
}

// Another run takes the slot of a reservation that is over between the cancellation's read and its commit: the run is cancelled, the
// slot stays with the other.
func TestHazard20_SlotTakenWithinACancellation_TheRunIsCancelled(t *testing.T) {
	w := newWorld(t).bounded(1)
	first, second := w.must(w.enter(reservation)), w.must(w.enter(0))
	w.pass(reservation)
	first.now, second.now = w.now, w.now
	slow := first.overtakenBy(func() { second.wantOutcome(second.reserve(reservation), lane.Acquired) })
	if slow.other(&runlane.RunCancelled{}); slow.run.Status != runlane.StatusCancelled {
		t.Errorf("status %s", slow.run.Status)
	}
	if got := slow.marker(); got != "done" {
		t.Errorf("marker %s", got)
	}
	second.wantOutcome(second.claimFor(time.Minute, false), lane.Acquired)
	second.checked()
}

// The slot that a creation chose is taken between its read and its commit: nothing is written, and without its reservation the run
// is created.
func TestHazard20_SlotTakenWithinACreation_WritesNothing(t *testing.T) {
	w := newWorld(t).bounded(1)
	var holder *world
	slow := w.overtakenBy(func() { holder = w.must(w.enter(reservation)) })
	before := len(w.remains())
	if _, err := slow.enter(reservation); !errors.Is(err, runlane.ConflictQueueCapacity) {
		t.Fatalf("%v", err)
	}
	if got := len(w.remains()) - before; got != 3 { // run, log and slot of the other
		t.Errorf("%d items were written", got)
	}
	waiting := w.must(w.enter(0))
	if got := waiting.marker(); got != "d+0s" {
		t.Errorf("marker %s", got)
	}
	holder.wantOutcome(holder.claimFor(time.Minute, false), lane.Acquired)
	waiting.checked()
}

// A limit of ten was lowered to five while the slots 5 to 8 are taken. Two reservers have read the same four slots. Of the numbers
// below the limit five are unused, and taking any two of them would make six.
func TestHazard21_TwoReserversWithOneReading_DoNotExceedALoweredLimit(t *testing.T) {
	t.Parallel()
	for name, second := range map[string]func(w *world) lane.Outcome{
		"reserving":           func(w *world) lane.Outcome { return w.reserve(reservation) },
		"claiming for a slot": func(w *world) lane.Outcome { return w.claimFor(time.Minute, true) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t).bounded(10)
			var held []*world
			for range 10 {
				run := w.must(w.enter(reservation))
				run.wantOutcome(run.claimFor(time.Hour, false), lane.Acquired)
				held = append(held, run)
			}
			for _, run := range held {
				if n := run.item().HeldSlot().Number(); n < 5 || n > 8 {
					run.succeed()
				}
			}
			w.bounded(5)
			a, b := w.must(w.enter(0)), w.must(w.enter(0))
			slow := b.overtakenBy(func() { a.wantOutcome(a.reserve(reservation), lane.Acquired) })
			slow.wantOutcome(second(slow), lane.LostCapacity)
			taken, err := w.store.slots(t.Context(), b.item().Partition())
			if err != nil {
				t.Fatal(err)
			}
			var numbers []int
			for _, slot := range taken {
				numbers = append(numbers, slot.Number())
			}
			if !slices.Equal(numbers, []int{0, 5, 6, 7, 8}) {
				t.Errorf("taken are %v", numbers)
			}
			w.checked()
		})
	}
}
