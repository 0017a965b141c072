package dynamostore

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/dynamostore/internal/rows"
	"github.com/runlane/runlane-go/lane"
)

// Timelines about markers in which a layout like this goes wrong, with the interleaving forced.

// needingDelivery are the runs that a tick finds at this instant, without patience.
func (w *world) needingDelivery() []runlane.RunID {
	w.Helper()
	q := &lane.DueQuery{PageQuery: lane.PageQuery{Environment: "test", Limit: runlane.MaxPageLimit}, At: w.now}
	page, err := w.store.ListRunsNeedingDelivery(w.Context(), q)
	if err != nil || page.Next != "" {
		w.Fatal(page, err)
	}
	var ids []runlane.RunID
	for _, ref := range page.Items {
		ids = append(ids, ref.RunID)
	}
	return ids
}

// dies lets the worker of the run, which was just claimed for so long, die: the run is found at the end of its lease and not before.
func (w *world) dies(lease time.Duration) {
	w.Helper()
	if got := w.pass(lease - time.Millisecond).needingDelivery(); len(got) != 0 {
		w.Errorf("needing delivery while the lease lasts: %v", got)
	}
	if got := w.pass(time.Millisecond).needingDelivery(); !slices.Equal(got, []runlane.RunID{w.run.ID}) {
		w.Errorf("needing delivery when the lease is over: %v, want %s", got, w.run.ID)
	}
	w.checked()
}

// overtakenBy is the same process, whose next commit is overtaken.
func (w *world) overtakenBy(act func()) *world {
	slow := *w
	slow.store = New(interrupted(w.store.db.Client, act), w.store.db.Name, &Options{Now: func() time.Time { return w.now }})
	return &slow
}

// An inspection does not change the sequence, so nothing but the marker in a commit's condition tells that it came in between. For the
// caller it is no conflict.
func TestHazard02_LookWithinACommit_TheCommitIsRepeatedOnTheNewMarker(t *testing.T) {
	t.Parallel()
	const lease = 10 * time.Minute
	queued := func(w *world) *world { return w.create(eager, 0, nil).ack().pass(2 * time.Minute) }
	running := func(w *world) *world { return w.create(eager, 0, nil).ack().claim(lease, true).pass(2 * time.Minute) }
	for name, c := range map[string]struct {
		before func(w *world) *world
		commit func(w *world) *world
		moved  string // by the inspection
		want   string
	}{
		"claim":                {queued, func(w *world) *world { return w.claim(lease, true) }, "p+8m0s", "l+10m0s"},
		"heartbeat":            {running, func(w *world) *world { return w.heartbeat(lease) }, "l+8m0s", "l+8m0s"},
		"cancellation request": {running, func(w *world) *world { return w.other(&runlane.RunCancellationRequested{}) }, "l+8m0s", "l+8m0s"},
		"success":              {running, func(w *world) *world { return w.succeed() }, "l+8m0s", "done"},
		"redelivery":           {queued, func(w *world) *world { return w.other(w.request(w.now)) }, "p+8m0s", "q+0s"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w = c.before(w)
			looked := ""
			slow := w.overtakenBy(func() { w.another().inspect(); looked = w.marker() })
			c.commit(slow)
			if looked != c.moved {
				t.Fatalf("the inspection moved the marker to %q, want %q", looked, c.moved)
			}
			if got := slow.marker(); got != c.want {
				t.Errorf("marker %s, want %s", got, c.want)
			}
			slow.checked()
		})
	}
}

// The other way round: the commit overtakes the inspection between its read and its update, which then gives way.
func TestHazard02_CommitWithinALook_TheLookGivesWay(t *testing.T) {
	w := newWorld(t)
	w.create(eager, 0, nil).ack().pass(2 * time.Minute)
	claimed := false
	client := interrupted(w.store.db.Client, func() { w.claim(time.Minute, true); claimed = true })
	looking := New(client, w.store.db.Name, nil)
	q := &lane.DueQuery{PageQuery: lane.PageQuery{Environment: "test"}, At: w.now}
	if page, err := looking.ListRunsNeedingRedelivery(t.Context(), q); err != nil || len(page.Items) != 0 {
		t.Fatal(page, err)
	}
	if got := w.marker(); !claimed || got != "q-2m0s" {
		t.Errorf("claimed %t, marker %s, want it where the claim left it", claimed, got)
	}
	w.dies(time.Minute)
}

// A heartbeat writes run and log alone, 4 units, so the slot must not say until when it is held: the first reserver after the
// first lease would take it.
func TestHazard06_HeartbeatLeavesTheSlotAlone_WhichTimeNeverFrees(t *testing.T) {
	w := newWorld(t).bounded(1)
	run, competitor := w.must(w.enter(reservation)), w.must(w.enter(0))
	slot := func() rows.SlotItem {
		taken, err := w.store.slots(t.Context(), run.item().Partition())
		if err != nil || len(taken) != 1 {
			t.Fatal(taken, err)
		}
		return taken[0]
	}
	if got := slot(); got.Until != rows.ToMillis(w.now.Add(reservation)) || got.Run != run.run.ID {
		t.Errorf("reserved slot %+v", got)
	}
	run.wantOutcome(run.claimFor(time.Minute, false), lane.Acquired)
	held := slot()
	if held.Until != 0 || held.Run != run.run.ID {
		t.Errorf("slot %+v, want it held without an end", held)
	}
	run.pass(40 * time.Second).heartbeat(time.Minute)
	if got := run.meter.Stats().WriteUnits; got != 4 || slot() != held {
		t.Errorf("the heartbeat took %v units and left the slot %+v", got, slot())
	}
	for _, later := range []time.Duration{time.Minute, reservation, 24 * time.Hour} {
		competitor.now = run.now.Add(later)
		competitor.wantOutcome(competitor.reserve(reservation), lane.LostCapacity)
		if _, err := competitor.enter(reservation); !errors.Is(err, runlane.ConflictQueueCapacity) {
			t.Errorf("after %s: %v", later, err)
		}
	}
	competitor.now = run.succeed().now
	competitor.wantOutcome(competitor.reserve(reservation), lane.Acquired)
	run.checked()
}
