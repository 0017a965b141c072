package dynamostore

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

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

// A claim leaves its marker only where it is looked at before the lease is over: in q or w, and not later than that. Anywhere else
// no reader would find the run of a worker that died for hours, in d for ever.
func TestHazard01_ClaimedFromAnywhere_RunIsFoundAtItsLeaseEnd(t *testing.T) {
	t.Parallel()
	const lease = time.Minute
	for name, before := range map[string]struct {
		kind rows.MarkerKind
		in   time.Duration
		want string
	}{
		"q, due":                   {rows.Deliverable, 0, "q+0s"},
		"q, before the lease ends": {rows.Deliverable, lease, "q+1m0s"},
		"q, after the lease ends":  {rows.Deliverable, lease + time.Millisecond, "l+1m0s"},
		"w, due":                   {rows.Waiting, 0, "w+0s"},
		"w, after the lease ends":  {rows.Waiting, lease + time.Millisecond, "l+1m0s"},
		"p, due":                   {rows.Parked, 0, "l+1m0s"},
		"p, hours away":            {rows.Parked, 6 * time.Hour, "l+1m0s"},
		"o, at the next attempt":   {rows.Unpublished, 5 * time.Minute, "l+1m0s"},
		"x, given up":              {rows.DeadLetter, 0, "l+1m0s"},
		"l, of another owner":      {rows.Leased, time.Hour, "l+1m0s"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.create(eager, 0, nil).ack()
			if err := w.store.moveMarker(t.Context(), w.item(), rows.Marker{Kind: before.kind, At: rows.ToMillis(w.now.Add(before.in))}); err != nil {
				t.Fatal(err)
			}
			if got := w.claim(lease, true).marker(); got != before.want {
				t.Errorf("marker %s, want %s", got, before.want)
			}
			w.dies(lease)
		})
	}
	t.Run("by a poll worker, from q", func(t *testing.T) {
		w := newWorld(t)
		if got := w.create(eager, 0, nil).claim(lease, false).marker(); got != "l+1m0s" {
			t.Errorf("marker %s, want the end of the lease", got)
		}
		w.dies(lease)
	})
	t.Run("run now", func(t *testing.T) {
		w := newWorld(t)
		w.run = &runlane.Run{ID: "run_now"}
		created := w.transition(&runlane.RunCreated{
			TaskID: "bench.noop", Queue: "default", Payload: []byte(`{}`), Source: runlane.Source{Type: runlane.SourceTrigger},
		}, &runlane.RunLeaseClaimed{Lease: runlane.Lease{Token: "token", WorkerID: "worker", ExpiresAt: w.now.Add(lease)}}, &runlane.RunStarted{Attempt: 1})
		if got := w.append(&lane.AppendCommand{Transition: created}).marker(); got != "l+1m0s" {
			t.Errorf("marker %s, want the end of the lease", got)
		}
		w.dies(lease)
	})
}

// The same in a full partition of a bounded queue, which scans jump over: the run that fills it is not among those that wait.
func TestHazard01_ClaimedFromD_MarkerLeavesTheFullPartition(t *testing.T) {
	w := newWorld(t).bounded(1)
	run := w.must(w.enter(0))
	behind := w.must(w.pass(time.Second).enter(0)).run.ID
	run.pass(time.Second).wantOutcome(run.claimFor(time.Minute, true), lane.Acquired)
	if got := run.marker(); got != "l+1m0s" {
		t.Errorf("marker %s, want the end of the lease", got)
	}
	run.pass(time.Minute)
	if got := run.dispatch(); !slices.Equal(got, []runlane.RunID{run.run.ID}) {
		t.Fatalf("needing dispatch when the worker died: %v", got)
	}
	run.wantOutcome(run.claimFor(time.Minute, false), lane.Acquired)
	if got := run.succeed().dispatch(); !slices.Equal(got, []runlane.RunID{behind}) {
		t.Errorf("needing dispatch when the slot is free: %v", got)
	}
	run.checked()
}

// overtaken lets another process act between a commit's reads and the commit.
type overtaken struct {
	API
	before func()
}

func (c *overtaken) TransactWriteItems(
	ctx context.Context, in *dynamodb.TransactWriteItemsInput, o ...func(*dynamodb.Options),
) (*dynamodb.TransactWriteItemsOutput, error) {
	if act := c.before; act != nil {
		c.before = nil
		act()
	}
	return c.API.TransactWriteItems(ctx, in, o...)
}

// overtakenBy is the same process, whose next commit is overtaken.
func (w *world) overtakenBy(act func()) *world {
	slow := *w
	slow.store = New(&overtaken{w.store.db.Client, act}, w.store.db.Name, &Options{Now: func() time.Time { return w.now }})
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
	client := &interrupted{API: w.store.db.Client, before: func() { w.claim(time.Minute, true); claimed = true }}
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

// A tick with patience, a worker that polls without, and an outbox row whose claim ends: one marker serves them all, because it
// holds the moment of the creation and not that of the first inspection.
func TestHazard03_MarkerHoldsTheTrueMoment_PatienceIsTheReaders(t *testing.T) {
	w := newWorld(t)
	w.create(eager, 0, nil)
	if got := w.marker(); got != "q+0s" {
		t.Fatalf("marker %s, want the creation", got)
	}
	page, err := w.store.ListRunnableRuns(t.Context(), &lane.DueQuery{PageQuery: lane.PageQuery{Environment: "test"}, At: w.now})
	if err != nil || len(page.Items) != 1 || !page.Items[0].AvailableAt.Equal(w.now) {
		t.Errorf("a worker that polls finds %+v, %v", page, err)
	}
	claim := func(patience time.Duration) int {
		rows, err := w.store.ClaimOutboxMessages(t.Context(), &lane.ClaimOutboxCommand{
			Environment: "test", At: w.now, ClaimUntil: w.now.Add(time.Millisecond), Patience: lane.Patience{Queued: patience},
		})
		if err != nil {
			t.Fatal(err)
		}
		return len(rows)
	}
	w.pass(30 * time.Second)
	if got := claim(time.Minute); got != 0 || w.marker() != "q-30s" {
		t.Errorf("a patient reader claimed %d rows; marker %s", got, w.marker())
	}
	if got := claim(0); got != 1 {
		t.Errorf("a reader without patience claimed %d rows when their claim was over", got)
	}
	if got := w.pass(30 * time.Second).marker(); claim(time.Minute) != 1 || got != "q-1m0s" {
		t.Errorf("when patience is over: marker %s", got)
	}
	w.checked()
}

// Rows that are to be handed over have a separate marker, which is read without patience: a failed row at its next attempt, a
// deferred one at once, and a dead one is the list of dead letters.
func TestHazard04_RowsNotHandedOver_AreFoundWithoutPatience(t *testing.T) {
	t.Parallel()
	patient := func(w *world) *lane.ClaimOutboxCommand {
		return &lane.ClaimOutboxCommand{
			Environment: "test", At: w.now, ClaimUntil: w.now.Add(30 * time.Second), Patience: lane.Patience{Queued: time.Hour, ShortWait: time.Hour},
		}
	}
	wantRows := func(w *world, want int) {
		w.Helper()
		rows, err := w.store.ClaimOutboxMessages(w.Context(), patient(w))
		if err != nil || len(rows) != want {
			w.Errorf("%d rows are due, want %d: %v", len(rows), want, err)
		}
	}
	t.Run("failed", func(t *testing.T) {
		w := newWorld(t)
		w.create(eager, 0, nil).fail(time.Second)
		wantRows(w.pass(time.Second-time.Millisecond), 0)
		wantRows(w.pass(time.Millisecond), 1)
		w.checked()
	})
	t.Run("deferred", func(t *testing.T) {
		w := newWorld(t)
		wantRows(w.create(deferred, 0, nil), 1)
		w.checked()
	})
	t.Run("given up", func(t *testing.T) {
		w := newWorld(t)
		w.create(eager, 0, nil).bury()
		wantRows(w.pass(time.Hour), 0)
		wantRows(w.requeue(), 1)
		w.checked()
	})
	t.Run("superseded while its publisher held it", func(t *testing.T) {
		w := newWorld(t)
		w.create(deferred, 0, nil).flush()
		held := w.rows
		w.other(w.request(w.now)).ack().rows = held
		wantRows(w.fail(time.Second).pass(2*time.Second), 0) // it may mark the row, and nothing becomes due
		w.checked()
	})
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
