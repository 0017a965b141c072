package main

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
)

// For an hour no process executes, ticks or relays, while runs are triggered: most wait in the queue, a tenth became due, a tenth was left to
// the relay, a schedule missed three times, and behind all of them stand the runs of workers that died. The ticks that follow find all
// that is owed, the dead workers' runs in the first rounds, and ask for no wakeup again that waits in the queue.
func TestLoad_TickAfterAnHoursOutage_FindsAllThatIsOwed(t *testing.T) {
	onEachLane(t, &loadCase{
		name: "a tick after an hour's outage", embedded: 20_000, dynamoDB: 5_000, short: 240, divisible: 20,
		heap: perRun(8 << 10), requests: 14,
		play: func(w *load) {
			task := runlane.NewTask[string]("load.late", nil)
			var succeeded atomic.Int64
			w.open(&core.Options{
				Handlers: []runlane.Handler{task.Handle(func(context.Context, *runlane.Attempt, string) error {
					succeeded.Add(1)
					return nil
				})},
				Schedules: []runlane.Schedule{{ID: "late", When: runlane.Every(20 * time.Minute).From(w.now()), Call: task.With("scheduled")}},
			})
			var items []core.BatchItem
			for i := range w.runs {
				item := core.BatchItem{Call: task.With("triggered"), Options: &runlane.TriggerOptions{}}
				switch i % 10 {
				case 3:
					item.Options.Delay = 30 * time.Minute
				case 7:
					item.Options.Deferred = true
				}
				items = append(items, item)
			}
			w.triggerAll(items)
			dead := w.triggerAll([]core.BatchItem{{Call: task.With("dead")}, {Call: task.With("dead")}, {Call: task.With("cancelled")}})
			for _, id := range dead {
				w.dies(id)
			}
			_, err := w.rt.Runs().Cancel(w.Context(), dead[2], nil)
			w.must(err)
			w.pass(time.Hour)

			before, began := w.wire.sent.Load(), time.Now()
			ticks, found := 0, 0
			for more := true; more; {
				result := w.tick()
				ticks, more = ticks+1, result.More
				if found == 0 && w.recovered(dead) {
					found = ticks
					w.note("first_ticks_seconds", time.Since(began).Round(10*time.Millisecond).Seconds())
				}
			}
			w.note("ticks", ticks)
			w.note("dead_found_by_tick", found)
			if most := 1 + w.runs/4000; found == 0 || found > most {
				w.Errorf("the runs of dead workers were found by tick %d of %d, want within %d", found, ticks, most)
			}
			if rounds := w.runs / 10 / 100 * 2; ticks > rounds+10 {
				w.Errorf("%d ticks, want at most %d", ticks, rounds+10)
			}
			sent := w.wire.sent.Load() - before
			w.note("wakeups", sent)
			due, deferred := int64(w.runs/10), int64(w.runs/10)
			if want := due + deferred + 3; sent != want { // and two dead workers' runs, and one of the schedule
				w.Errorf("%d wakeups were sent, want %d: what waits in the queue is late, not lost", sent, want)
			}

			all := w.runs + 3
			w.work(runlane.DefaultQueue.Name, 50, func() bool { return succeeded.Load() == int64(all) })
			w.settled(all+1, func(run *runlane.RunSummary) (runlane.Status, int) {
				switch run.ID {
				case dead[0], dead[1]:
					return runlane.StatusSucceeded, 2
				case dead[2]:
					return runlane.StatusCancelled, 1
				default:
					return runlane.StatusSucceeded, 1
				}
			})
		},
	})
}

// recovered reports that the first two runs were given to another worker, and the third is cancelled.
func (w *load) recovered(dead []runlane.RunID) bool {
	w.Helper()
	for i, id := range dead {
		run, err := w.rt.Runs().Get(w.Context(), id)
		w.must(err)
		want := runlane.StatusQueued
		if i == 2 {
			want = runlane.StatusCancelled
		}
		if run.Status != want {
			return false
		}
	}
	return true
}
