package dynamostore

import (
	"testing"
	"time"

	"github.com/runlane/runlane-go"
)

// TestMarkerTable goes through docs/layout.md, Indexes, row by row: the marker after each commit or look, and what the index
// costs. The steps before the last one only lead there.
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
		"create queued, eager":                {func(w *world) { w.create(eager, 0, nil) }, "q+0s", 5},
		"create queued, deferred":             {func(w *world) { w.create(deferred, 0, nil) }, "o+0s", 5},
		"create scheduled":                    {func(w *world) { w.create(eager, time.Hour, nil) }, "w+1h0m0s", 5},
		"retry":                               {func(w *world) { retry(running(w), time.Second) }, "w+1s", 6},
		"release":                             {func(w *world) { running(w).end(&runlane.RunReleased{Attempt: 1, ResumeAt: w.now.Add(time.Hour)}) }, "w+1h0m0s", 6},
		"claim by delivery from q":            {func(w *world) { running(w) }, "q+0s", 4},
		"claim by delivery from w":            {func(w *world) { retry(running(w), time.Second).pass(time.Second).claim(lease, true) }, "w+0s", 4},
		"claim by delivery from o":            {func(w *world) { w.create(deferred, 0, nil).claim(lease, true) }, "l+1m0s", 6},
		"claim by delivery from p":            {func(w *world) { w.create(eager, 0, nil).ack().pass(2*time.Minute).look().claim(lease, true) }, "l+1m0s", 6},
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
		"look finds a live claim":           {func(w *world) { w.create(eager, 0, nil).pass(61 * time.Second).flush().look() }, "o+30s", 3},
		"look finds a failed row, not due":  {func(w *world) { w.create(eager, 0, nil).fail(time.Hour).item(); w.pass(time.Minute).look() }, "o+59m0s", 0},
		"look finds a dead row":             {func(w *world) { w.create(eager, 0, nil).bury().pass(time.Hour).look() }, "x-1h0m0s", 0},
		"look finds a live lease":           {func(w *world) { running(w).pass(50 * time.Second).heartbeat(lease).pass(11 * time.Second).look() }, "l+49s", 3},
		"look finds a published queued run": {func(w *world) { w.create(eager, 0, nil).ack().pass(61 * time.Second).look() }, "p+8m59s", 3},
		"look with patience leaves q alone": {func(w *world) { w.create(eager, 0, nil).ack().pass(59 * time.Second).look() }, "q-59s", 0},
		"requeue of a dead letter":          {func(w *world) { w.create(eager, 0, nil).bury().pass(time.Second).requeue() }, "o+0s", 4},
		"terminal":                          {func(w *world) { running(w).succeed() }, "done", 6},
		"cancelled while it waits":          {func(w *world) { w.create(eager, time.Hour, nil).other(&runlane.RunCancelled{}) }, "done", 6},
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
