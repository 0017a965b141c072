package dynamostore

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/dynamostore/internal/ddb"
	"github.com/runlane/runlane-go/dynamostore/internal/rows"
	"github.com/runlane/runlane-go/lane"
)

// meeting holds plain updates back until so many are under way together, and notes how many there were at most. Those that never
// meet end with their request's time.
type meeting struct {
	API
	wanted int
	met    chan struct{}

	mu           sync.Mutex
	now, at, all int // under way, most at once, in all
}

func (m *meeting) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, o ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	m.mu.Lock()
	m.now++
	m.all++
	m.at = max(m.at, m.now)
	if m.all == m.wanted {
		close(m.met)
	}
	m.mu.Unlock()
	defer func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.now--
	}()
	select {
	case <-m.met:
		return m.API.UpdateItem(ctx, in, o...)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// A backlog at which no stage has anything to do: its markers are moved several at a time, each once and for the price of one, and the
// run of a worker that died behind it is found by the same inspection.
func TestScan_IdleMarkers_AreMovedAtOnceAndWhatLiesBehindIsFound(t *testing.T) {
	w := newWorld(t)
	const idle = 60
	w.create(eager, 0, nil).ack().load(w.template(), "published", idle)
	dead := w.pass(time.Second).create(eager, 0, nil).ack().claim(time.Minute, true).run.ID
	w.pass(2 * time.Minute)

	at := &meeting{API: w.store.db.Client, wanted: ddb.MaxParallel, met: make(chan struct{})}
	w.store.db.Client = at
	q := &lane.DueQuery{PageQuery: lane.PageQuery{Environment: "test"}, At: w.now, Patience: lane.Patience{Queued: time.Minute}}
	page, err := w.store.ListRunsNeedingDelivery(w.step(), q)
	if err != nil {
		t.Fatal(err)
	}
	if len(page.Items) != 1 || page.Items[0].RunID != dead || page.Next != "" {
		t.Errorf("found %+v, want the run of the worker that died alone", page)
	}
	if at.at != ddb.MaxParallel || at.all != idle+1 {
		t.Errorf("%d markers were moved, %d at once, want %d, %d at once", at.all, at.at, idle+1, ddb.MaxParallel)
	}
	if used := w.meter.Stats().Operations["move marker"]; used.Requests != idle+1 || used.WriteUnits != 3*(idle+1) {
		t.Errorf("moving took %+v, want 3 write units each", used)
	}
	if _, err := w.store.ListRunsNeedingDelivery(w.step(), q); err != nil {
		t.Fatal(err)
	}
	if used := w.meter.Stats().Operations["move marker"]; used.Requests != 0 {
		t.Errorf("a second inspection moved markers again: %+v", used)
	}
	w.run = &runlane.Run{ID: "run_published00000000000000000000"}
	if r := w.item(); r.Marker().Kind != rows.Parked {
		t.Errorf("a run whose wakeup was published stands at %s", w.marker())
	}
	w.checked()
}

// A long wait has no delayed wakeup: the tick that finds it due hands its row over. Until a worker has claimed the run, that wakeup is on its
// way, as a queued run's is, and is not asked for again.
func TestScan_ScheduledRunWhoseRowWasJustPublished_IsLeftToItsWakeup(t *testing.T) {
	w := newWorld(t)
	w.create(eager, time.Hour, nil).pass(time.Hour).flush().ack()
	for _, c := range []struct {
		passed   time.Duration
		patience time.Duration
		found    int
	}{{0, time.Minute, 0}, {0, 0, 1}, {time.Minute - time.Millisecond, time.Minute, 0}, {time.Minute, time.Minute, 1}} {
		q := &lane.DueQuery{PageQuery: lane.PageQuery{Environment: "test"}, At: w.now.Add(c.passed), Patience: lane.Patience{Queued: c.patience}}
		page, err := w.store.ListRunsNeedingDelivery(w.step(), q)
		if err != nil || len(page.Items) != c.found {
			t.Errorf("%s later, with a patience of %s: %d runs need a delivery, want %d: %v", c.passed, c.patience, len(page.Items), c.found, err)
		}
	}
	w.checked()
}

// After a time without ticks the wakeups of a backlog are due again, which the tick puts off while they wait in their queue. Such rows
// are the concern of one stage alone: the others have to get past them, or what lies behind more than a scan examines is never found.
func TestScan_RowsOfPutOffRedelivery_LeaveTheWayOfOtherStages(t *testing.T) {
	w := newWorld(t)
	const late = 20
	w.create(eager, 0, nil).ack().load(w.template(), "late", late).pass(time.Hour)
	q := &lane.DueQuery{PageQuery: lane.PageQuery{Environment: "test"}, At: w.now, Patience: lane.Patience{Queued: time.Minute}}
	claim := &lane.ClaimOutboxCommand{Environment: "test", At: w.now, Patience: q.Patience, ClaimUntil: w.now.Add(time.Minute)}
	if rows, err := w.store.ClaimOutboxMessages(w.step(), claim); err != nil || len(rows) != 0 {
		t.Fatal(rows, err)
	}
	if used := w.meter.Stats().Operations["move marker"]; used.Requests != 0 {
		t.Errorf("who publishes knows of no limits, and moved %d markers", used.Requests)
	}
	for _, moved := range []int64{late + 1, 0} {
		page, err := w.store.ListRunsNeedingDelivery(w.step(), q)
		if err != nil || len(page.Items) != 0 {
			t.Fatal(page, err)
		}
		if used := w.meter.Stats().Operations["move marker"]; used.Requests != moved {
			t.Errorf("the inspection moved %d markers, want %d", used.Requests, moved)
		}
	}
	if got := w.marker(); got != "p-50m0s" {
		t.Errorf("a run whose wakeup is due again stands at %s", got)
	}
	page, err := w.store.ListRunsNeedingRedelivery(w.step(), q)
	if err != nil || len(page.Items) != late+1 {
		t.Errorf("%d runs need redelivery, want %d: %v", len(page.Items), late+1, err)
	}
	if used := w.meter.Stats().Operations["move marker"]; used.Requests != 0 {
		t.Errorf("the stage whose concern they are moved %d markers", used.Requests)
	}
	w.checked()
}

// A later scan of a round reads a span again only if a row may be due by then, or if this process wrote one.
func TestScan_OfARound_ReadsEmptySpansOnce(t *testing.T) {
	w := newWorld(t)
	w.create(eager, time.Hour, nil)
	round := &lane.Round{}
	requests := func(after time.Duration) (found int, reads int64) {
		page, err := w.store.ListRunsNeedingDelivery(w.step(), &lane.DueQuery{
			PageQuery: lane.PageQuery{Environment: "test"}, At: w.now.Add(after), Round: round,
		})
		if err != nil {
			t.Fatal(err)
		}
		return len(page.Items), w.meter.Stats().Operations["scan"].Requests
	}
	for i, c := range []struct {
		after time.Duration
		found int
		reads int64
	}{{0, 0, 32}, {time.Minute, 0, 0}, {2 * time.Hour, 1, 1}, {2 * time.Hour, 2, 2}} {
		if i == 3 {
			w.create(eager, time.Hour, nil)
		}
		if found, reads := requests(c.after); found != c.found || reads != c.reads {
			t.Errorf("scan %d found %d runs with %d reads, want %d and %d", i+1, found, reads, c.found, c.reads)
		}
	}
}
