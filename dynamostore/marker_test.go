package dynamostore

import (
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// TestMarkerTable is about the marker table of docs/internals/layout.md on a real table: the marker after each commit or inspection, and
// what the index costs. Its rows are kept by hand; TestMarkerAfter and TestNextMarker of package rows read the table itself. The steps before the last one only lead there.
func TestMarkerTable(t *testing.T) {
	t.Parallel()
	const lease = time.Minute
	running := func(w *world) *world { return w.create(eager, 0, nil).ack().claim(lease, true) }
	retry := func(w *world, d time.Duration) *world {
		return w.end(&runlane.RunRetryScheduled{Attempt: 1, Failure: runlane.Failure{Code: runlane.ErrTaskFailed, Message: "no"}, RetryAt: w.now.Add(d)})
	}
	for name, row := range map[string]struct {
		steps  func(w *world)
		marker string
		units  float64 // of the last step, all told
	}{
		"create queued, eager":    {func(w *world) { w.create(eager, 0, nil) }, "q+0s", 5},
		"create queued, deferred": {func(w *world) { w.create(deferred, 0, nil) }, "o+0s", 5},
		"create scheduled":        {func(w *world) { w.create(eager, time.Hour, nil) }, "w+1h0m0s", 5},
		"retry":                   {func(w *world) { retry(running(w), time.Second) }, "w+1s", 6},
		"release":                 {func(w *world) { running(w).end(&runlane.RunReleased{Attempt: 1, ResumeAt: w.now.Add(time.Hour)}) }, "w+1h0m0s", 6},
		"resumed, with a delivery": {func(w *world) {
			w.create(eager, time.Hour, nil)
			w.other(&runlane.RunResumed{}, w.request(w.now))
		}, "q+0s", 6},
		"resumed in a bounded queue": {func(w *world) {
			*w = *w.must(w.bounded(1).enter(reservation)).ack()
			w.wantOutcome(w.claimFor(lease, false), lane.Acquired)
			retry(w, time.Hour).other(&runlane.RunResumed{})
		}, "d+0s", 6},
		"claim by delivery from q":            {func(w *world) { running(w) }, "q+0s", 4},
		"claim by delivery from w":            {func(w *world) { retry(running(w), time.Second).pass(time.Second).claim(lease, true) }, "w+0s", 4},
		"claim by delivery from o":            {func(w *world) { w.create(deferred, 0, nil).claim(lease, true) }, "l+1m0s", 6},
		"claim by delivery from p":            {func(w *world) { w.create(eager, 0, nil).ack().pass(2*time.Minute).inspect().claim(lease, true) }, "l+1m0s", 6},
		"claim by a poll worker":              {func(w *world) { w.create(eager, 0, nil).ack().claim(lease, false) }, "l+1m0s", 6},
		"heartbeat":                           {func(w *world) { running(w).pass(20 * time.Second).heartbeat(lease) }, "q-20s", 4},
		"cancellation request":                {func(w *world) { running(w).other(&runlane.RunCancellationRequested{}) }, "q+0s", 4},
		"recovery delivery requested":         {func(w *world) { running(w).pass(lease); w.other(w.request(w.now)) }, "q+0s", 6},
		"publish acknowledged from q":         {func(w *world) { w.create(eager, 0, nil).ack() }, "q+0s", 1},
		"publish acknowledged from w":         {func(w *world) { w.create(eager, time.Minute, nil).pass(time.Minute).flush().ack() }, "w+0s", 1},
		"publish acknowledged from o":         {func(w *world) { w.create(deferred, 0, nil).pass(time.Second).flush().ack() }, "q-1s", 4},
		"publish failed":                      {func(w *world) { w.create(eager, 0, nil).fail(time.Second) }, "o+1s", 4},
		"dead-lettered":                       {func(w *world) { w.create(eager, 0, nil).bury() }, "x+0s", 4},
		"acknowledged, superseded by a claim": {func(w *world) { w.create(eager, 0, nil); rows := w.rows; w.claim(lease, true).rows = rows; w.ack() }, "q+0s", 1},
		"failed, superseded by a claim": {func(w *world) {
			w.create(eager, 0, nil)
			rows := w.rows
			w.claim(lease, true).rows = rows
			w.fail(time.Second)
		}, "q+0s", 2},
		"dead-lettered, finished meanwhile": {func(w *world) {
			w.create(eager, 0, nil)
			rows := w.rows
			w.claim(lease, true).succeed().rows = rows
			w.bury()
		}, "done", 2},
		"inspection finds a live claim":           {func(w *world) { w.create(eager, 0, nil).pass(61 * time.Second).flush().inspect() }, "o+30s", 3},
		"inspection finds a failed row, not due":  {func(w *world) { w.create(eager, 0, nil).fail(time.Hour).item(); w.pass(time.Minute).inspect() }, "o+59m0s", 0},
		"inspection finds a dead row":             {func(w *world) { w.create(eager, 0, nil).bury().pass(time.Hour).inspect() }, "x-1h0m0s", 0},
		"inspection finds a live lease":           {func(w *world) { running(w).pass(50 * time.Second).heartbeat(lease).pass(11 * time.Second).inspect() }, "l+49s", 3},
		"inspection finds a published queued run": {func(w *world) { w.create(eager, 0, nil).ack().pass(61 * time.Second).inspect() }, "p+8m59s", 3},
		"inspection with patience leaves q alone": {func(w *world) { w.create(eager, 0, nil).ack().pass(59 * time.Second).inspect() }, "q-59s", 0},
		"requeue of a dead letter":                {func(w *world) { w.create(eager, 0, nil).bury().pass(time.Second).requeue() }, "o+0s", 4},
		"terminal":                                {func(w *world) { running(w).succeed() }, "done", 6},
		"terminal of a run that was called":       {func(w *world) { *w = *running(w).call(1).ended() }, "e+0s", 7},
		"cancelled, of a run that calls":          {func(w *world) { running(w).call(1).waits().other(&runlane.RunCancelled{}) }, "e+0s", 7},
		"told":                                    {func(w *world) { running(w).call(2); w.tell(w.ended(), 0, 2) }, "q+0s", 5},
		"cancelled while it waits":                {func(w *world) { w.create(eager, time.Hour, nil).other(&runlane.RunCancelled{}) }, "done", 6},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			row.steps(w)
			if got := w.marker(); got != row.marker {
				t.Errorf("marker %s, want %s", got, row.marker)
			}
			w.checked()
			if got := w.meter.Stats(); got.WriteUnits != row.units {
				t.Errorf("%v write units, want %v: %v", got.WriteUnits, row.units, got.Operations)
			}
		})
	}
}

// another is a second process on the same table.
func (w *world) another() *world {
	other := *w
	other.store = New(w.store.db.Client, w.store.db.Name, &Options{Now: func() time.Time { return w.now }})
	return &other
}

// A publisher marks its row after an inspection has moved the marker: the row is marked, the marker stays, too early but never too late.
func TestMarkerRace_LookBetweenClaimAndMark(t *testing.T) {
	w := newWorld(t)
	w.create(eager, 0, nil).pass(61 * time.Second).flush()
	w.another().inspect() // q to o, at the end of the claim
	w.fail(time.Hour)
	if got := w.marker(); got != "o+30s" {
		t.Errorf("marker %s, want where the inspection put it", got)
	}
	w.pass(30 * time.Second)
	rows, err := w.store.ClaimOutboxMessages(t.Context(), &lane.ClaimOutboxCommand{Environment: "test", At: w.now, ClaimUntil: w.now.Add(time.Minute)})
	if err != nil || len(rows) != 0 {
		t.Fatalf("claimed %d rows: %v", len(rows), err)
	}
	if got := w.marker(); got != "o+59m30s" {
		t.Errorf("marker %s, want the next attempt", got)
	}
	w.checked()
}

// A scan has moved the marker of a delayed run to the end of a publisher's claim, and then the publisher marks the row
// published. The marker stays: the run is inspected at the end of the claim, long before a reader would ask for its
// wakeup again.
func TestMarkerRace_LookBetweenClaimAndAcknowledgement(t *testing.T) {
	w := newWorld(t)
	w.create(deferred, 40*time.Minute, nil).pass(41 * time.Minute).flush()
	w.another().inspect() // o, at the end of the claim
	w.ack()
	if got := w.marker(); got != "o+30s" {
		t.Errorf("marker %s, want where the inspection put it", got)
	}
	w.checked()
	w.pass(time.Minute)
	page, err := w.store.ListRunsNeedingDelivery(t.Context(), &lane.DueQuery{
		PageQuery: lane.PageQuery{Environment: "test", Limit: 10},
		At:        w.now,
	})
	if err != nil || len(page.Items) != 0 {
		t.Fatalf("needing delivery: %+v %v", page, err)
	}
	rows, err := w.store.ClaimOutboxMessages(t.Context(), &lane.ClaimOutboxCommand{
		Environment: "test",
		At:          w.now,
		ClaimUntil:  w.now.Add(time.Minute),
	})
	if err != nil || len(rows) != 0 {
		t.Fatalf("claimed %d rows: %v", len(rows), err)
	}
	if got := w.marker(); got != "w-2m0s" {
		t.Errorf("marker %s, want the time from which the run is due", got)
	}
	w.checked()
}
