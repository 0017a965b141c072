package main

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/dynamostore"
)

// eventsOfAnAttempt are claimed, started, and released or succeeded; those before the first are created and delivery requested.
const (
	eventsOfAnAttempt = 3
	eventsBefore      = 2
)

// One run is released again and again. What an attempt costs does not grow with the history, which is read whole, in both directions,
// and folds to the run.
func TestLoad_ManyEventsInOneRun_EachAttemptCostsTheSame(t *testing.T) {
	onEachLane(t, &loadCase{
		name: "10,000 events in one run", embedded: 10_000, dynamoDB: 10_000, short: 152, heap: perRun(8 << 10), requests: 2,
		play: func(w *load) {
			attempts := (w.runs - eventsBefore + eventsOfAnAttempt - 1) / eventsOfAnAttempt
			task := runlane.NewTask[struct{}]("load.released", nil)
			var last atomic.Int64
			prices := map[int]map[string]dynamostore.Usage{}
			w.open(&core.Options{Handlers: []runlane.Handler{task.Handle(func(_ context.Context, a *runlane.Attempt, _ struct{}) error {
				if w.store != nil && slices.Contains([]int{5, 15, attempts - 10, attempts}, a.Number) {
					prices[a.Number] = w.store.Stats().Operations
				}
				last.Store(int64(a.Number))
				if a.Number < attempts {
					return runlane.Release(time.Millisecond, "not yet")
				}
				return nil
			})}})
			id := w.triggerAll([]core.BatchItem{{Call: task.With(struct{}{})}})[0]
			w.work(runlane.DefaultQueue.Name, 1, func() bool { return last.Load() == int64(attempts) })
			w.ended()
			w.wholeHistory(id, attempts)
			w.checked()
			if w.store == nil {
				return
			}
			for _, operation := range []string{"read run", "run.started", "run.released"} {
				early := prices[15][operation].Minus(prices[5][operation])
				late := prices[attempts][operation].Minus(prices[attempts-10][operation])
				if early.Requests == 0 || late != early {
					w.Errorf("%s: ten attempts took %+v at first and %+v at last", operation, early, late)
				}
			}
		},
	})
}

// wholeHistory reads all there is of a run that was released until its last attempt succeeded.
func (w *load) wholeHistory(id runlane.RunID, attempts int) {
	w.Helper()
	run, err := w.rt.Runs().Get(w.Context(), id)
	w.must(err)
	want := int64(eventsBefore + eventsOfAnAttempt*attempts)
	if run.Status != runlane.StatusSucceeded || run.EventSequence != want || run.Counters.Attempts != attempts {
		w.Errorf("the run is %s after %d attempts and %d events, want succeeded after %d and %d", run.Status, run.Counters.Attempts,
			run.EventSequence, attempts, want)
	}
	var events []runlane.Event
	for record, err := range w.rt.Runs().Events(w.Context(), id, nil) {
		w.must(err)
		events = append(events, record.Event)
		if record.Sequence != int64(len(events)) {
			w.Fatalf("event %d comes as number %d", record.Sequence, len(events))
		}
	}
	next := want
	for record, err := range w.rt.Runs().Events(w.Context(), id, &core.EventOptions{Descending: true}) {
		w.must(err)
		if record.Sequence != next {
			w.Fatalf("backwards, event %d comes where %d is next", record.Sequence, next)
		}
		next--
	}
	if int64(len(events)) != want || next != 0 {
		w.Errorf("%d events forwards and %d backwards, want %d", len(events), want-next, want)
	}
	folded, err := core.ProjectRunEvents(nil, 0, events...)
	w.must(err)
	if folded.Status != run.Status || folded.EventSequence != run.EventSequence || folded.Counters != run.Counters {
		w.Errorf("the history folds to %s after %d events, %+v; the run is %s after %d, %+v", folded.Status, folded.EventSequence,
			folded.Counters, run.Status, run.EventSequence, run.Counters)
	}
	listed, err := w.rt.Runs().Attempts(w.Context(), id)
	w.must(err)
	if len(listed) != attempts || listed[0].Status != runlane.AttemptReleased || listed[attempts-1].Status != runlane.AttemptSucceeded {
		w.Errorf("%d attempts are listed, want %d, all released but the last", len(listed), attempts)
	}
}
