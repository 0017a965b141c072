package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
)

// Runs that were triggered into a full queue and get their slots from those that end. Both create all of them before the first one ends.
func TestSmallWorlds_FullQueue_SendWhatTheEngineSends(t *testing.T) {
	t.Parallel()
	for limit, waiting := range map[int]int{1: 6, 10: 24, 60: 8} {
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			t.Parallel()
			queue := runlane.Queue{Name: "bounded", Concurrency: limit}
			e := openEngine(t, runlane.TaskOptions[int]{Queue: queue}, func(int) error { return nil }, time.Now)
			runs := limit + waiting
			for range runs {
				e.trigger(nil)
			}
			e.workers(queue.Name, 1, "run.succeeded", int64(runs))

			w := newWorld(1, sizedFor(100), load{Limit: limit, Weight: 1, Attempts: 1, Handler: time.Millisecond})
			for range runs {
				w.trigger(1)
				w.run(w.now+time.Second, nil)
			}
			for ended := true; ended; {
				ended = w.one()
			}
			if w.outcome.succeeded != float64(runs) {
				t.Fatalf("%+v", w.outcome)
			}
			compare(t, e.store.Stats().Operations, w.requests)
		})
	}
}

// one lets a worker execute one wakeup; false: there is none.
func (w *world) one() bool {
	batch, _ := w.queue.receive(1)
	for _, m := range batch {
		w.deliver(m, w.now+bridgeTimeout, func(bool, time.Duration) { w.queue.delete(m) })
		w.run(w.now+time.Second, nil)
	}
	return len(batch) > 0
}

// budgetReads is the column of read units of a row of docs/internals/layout.md, Budget.
func budgetReads(t *testing.T, step string) string {
	t.Helper()
	for _, line := range strings.Split(source(t, "docs/internals/layout.md"), "\n") {
		if cells := strings.Split(line, "|"); len(cells) > 6 && strings.HasPrefix(strings.TrimSpace(cells[1]), step+":") {
			return strings.TrimSpace(cells[5])
		}
	}
	t.Fatalf("docs/internals/layout.md has no row %q", step)
	return ""
}

// occupied is a world in which all slots of a limit are held, of which one waits for its wakeup.
func occupied(limit int) (w *world, first *cohort) {
	w = newWorld(1, sizedFor(100), load{Limit: limit, Weight: 1, Attempts: 1, Handler: time.Millisecond})
	for n := range limit {
		c := w.newCohort(1)
		w.made(c)
		w.index.move(c, &move{to: deliverable})
		w.slots.put(c, n)
		c.status = running
		first = c
	}
	first.status = queued
	return w, first
}

// What the largest limit reads is the budget's, which the engine is held to.
func TestFullKey_LargestLimit_ReadsWhatTheLayoutSays(t *testing.T) {
	t.Parallel()
	w, first := occupied(maxLimit)
	w.trigger(1)
	w.run(time.Second, nil)
	if got, want := fmt.Sprint(w.total.Reads), budgetReads(t, "trigger into a full queue of limit 1,000"); got != want {
		t.Errorf("a trigger into a full queue reads %s units, in docs/internals/layout.md %s", got, want)
	}
	before := w.total.Reads
	w.queue.send(first, 0)
	batch, _ := w.queue.receive(1)
	w.deliver(batch[0], time.Minute, func(bool, time.Duration) {})
	w.run(2*time.Second, nil)
	before += readRun.reads // before the claim
	if got, want := fmt.Sprint(w.total.Reads-before), budgetReads(t, "success that hands its slot over at limit 1,000"); got != want {
		t.Errorf("handing a slot over reads %s units, in docs/internals/layout.md %s", got, want)
	}
}

// No key has more slots than there are, and no slot has two runs.
func TestFullKey_OfAnyLimit_StaysWithinIt(t *testing.T) {
	t.Parallel()
	for _, limit := range []int{1, 10, 100} {
		w := simulate(3, sizedFor(2000), load{Limit: limit, Waiting: 50, Handler: handlerTime, During: 30 * time.Second, Weight: 1, Attempts: 1})
		seen := map[*cohort]bool{}
		for n, c := range w.slots.holders {
			if c != nil && (seen[c] || !c.holds || c.number != n) {
				t.Errorf("limit %d: slot %d is that of %+v", limit, n, c)
			}
			seen[c] = true
		}
		if ended := w.outcome.succeeded; ended < 20 || w.outcome.handedOver == 0 {
			t.Errorf("limit %d: %v ended, %v slots handed over", limit, ended, w.outcome.handedOver)
		}
	}
}
