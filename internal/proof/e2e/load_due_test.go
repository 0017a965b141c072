package main

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
)

// dueTogether triggers as many runs as the case has, all of them due within the same second, and executes them.
func dueTogether(w *load, in time.Duration) (ticks int) {
	w.Helper()
	task := runlane.NewTask[struct{}]("load.due", nil)
	var started, early atomic.Int64
	w.open(&core.Options{Handlers: []runlane.Handler{task.Handle(func(_ context.Context, a *runlane.Attempt, _ struct{}) error {
		if w.now().Before(a.Run.RunAt) {
			early.Add(1)
		}
		started.Add(1)
		return nil
	})}})
	due := runlane.UTCMillis(w.now().Add(in)).Truncate(time.Second)
	items := make([]core.BatchItem, w.runs)
	for i := range items {
		at := due.Add(time.Duration(i%1000) * time.Millisecond)
		items[i] = core.BatchItem{Call: task.With(struct{}{}), Options: &runlane.TriggerOptions{RunAt: at}}
	}
	w.triggerAll(items)
	all := func() bool { return started.Load() == int64(w.runs) }
	if in > 15*time.Minute { // no wakeup is under way, so no worker has to be there
		w.pass(due.Add(time.Second).Sub(w.now()))
	}
	ticks = w.work(runlane.DefaultQueue.Name, 50, all)
	w.note("ticks", ticks)
	if n := early.Load(); n > 0 {
		w.Errorf("%d runs were started before their time", n)
	}
	w.settled(w.runs, once)
	return ticks
}

// Waits that are too long for the transport: ticks find what is due, a hundred a round.
func TestLoad_ManyDueInTheSameSecond_TicksWakeAllOfThem(t *testing.T) {
	onEachLane(t, &loadCase{
		name: "100,000 due in the same second", embedded: 100_000, dynamoDB: 5_000, short: 200,
		heap: perRun(6 << 10), requests: 14,
		play: func(w *load) {
			ticks := dueTogether(w, time.Hour)
			if rounds := w.runs / 100; ticks > rounds+10 {
				w.Errorf("%d ticks, want at most %d", ticks, rounds+10)
			}
			w.note("wakeups", w.wire.sent.Load())
			if sent := w.wire.sent.Load(); sent != int64(w.runs) {
				w.Errorf("%d wakeups were sent for %d runs", sent, w.runs)
			}
		},
	})
}

// Waits that the transport ends: each run has its delayed wakeup, and ticks leave them alone.
func TestLoad_ManyDelayedToTheSameSecond_StartThen(t *testing.T) {
	onEachLane(t, &loadCase{
		name: "100,000 delayed to the same second", embedded: 100_000, heap: perRun(6 << 10),
		play: func(w *load) {
			dueTogether(w, 10*time.Minute)
			if sent, delayed := w.wire.sent.Load(), w.wire.delayed.Load(); sent != 0 || delayed != int64(w.runs) {
				w.Errorf("%d delayed wakeups and %d others were sent for %d runs", delayed, sent, w.runs)
			}
		},
	})
}
