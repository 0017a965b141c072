package main

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/internal/proof/crash"
	"github.com/runlane/runlane-go/lane"
)

const (
	settleEvery = 500 * time.Millisecond
	sayEvery    = 3 * time.Second
	// shortSettling is long enough where clocks are put forward: 20 s are usual. In real time a wakeup that got lost twice is asked for after 20 minutes.
	shortSettling = 3 * time.Minute
	longSettling  = 25 * time.Minute
	runsAtOnce    = 100
	// stillness is more than an attempt takes.
	stillness = 2 * attemptTime
)

// recovery is how far the world has come since the faults.
type recovery struct {
	world       *world
	began       time.Time
	open        map[runlane.RunID]int64 // the last event of runs that can end and have not
	deadWakeups int
	said        time.Time     // when the log was last told
	ahead       time.Duration // by how much the clocks were put forward
}

// settle waits until every run has ended that can, and every message that no program can read is a dead letter. It returns a runtime
// that looks, and whether that came to be. In a short form it puts the clocks of everything forward at once, and again whenever no run
// moves for a while: what is left then waits for the leases of processes that poison has taken along.
func (w *world) settle() (observer *core.Runtime, r *recovery, settled bool) {
	r = &recovery{world: w, began: time.Now(), open: map[runlane.RunID]int64{}}
	for id, of := range w.runs {
		if !of.far {
			r.open[id] = 0
		}
	}
	limit, short := longSettling, w.plan.Duration < realTime
	if short {
		limit = shortSettling
	}
	ctx, cancel := context.WithTimeout(w.t.Context(), limit)
	defer cancel()
	for {
		if short {
			r.ahead += forward
			w.fleet.deploy(0, r.ahead)
		}
		observer = w.open(w.clean, r.ahead)
		moved := time.Now()
		poll(ctx, settleEvery, func() bool {
			if r.look(ctx, observer) {
				moved = time.Now()
			}
			settled = len(r.open) == 0 && !slices.Contains(slices.Collect(maps.Values(w.messages)), false)
			return settled || short && len(r.open) > 0 && time.Since(moved) > stillness
		})
		if settled || ctx.Err() != nil {
			return observer, r, settled
		}
	}
}

// look reads what is open, and reports whether any of it has moved.
func (r *recovery) look(ctx context.Context, rt *core.Runtime) (moved bool) {
	w, before := r.world, len(r.open)
	r.deadWakeups += w.readDeadLetters(ctx)
	runs, err := w.read(ctx, rt, slices.Sorted(maps.Keys(r.open)))
	if err != nil && ctx.Err() == nil { // the emulator is slow beside other work: the next look finds what this one did not
		w.t.Log(err)
	}
	for _, run := range runs {
		moved = moved || r.open[run.ID] != run.EventSequence
		r.open[run.ID] = run.EventSequence
		if run.Status.Terminal() {
			delete(r.open, run.ID)
		}
	}
	if left := len(r.open); left != before && (left == 0 || time.Since(r.said) > sayEvery) {
		r.said = time.Now()
		w.t.Logf("%s after the faults %d runs have not ended, %v", time.Since(r.began).Round(time.Millisecond), left, some(r.open))
	}
	return moved
}

// some are a few ids, in order.
func some(ids map[runlane.RunID]int64) []runlane.RunID {
	sorted := slices.Sorted(maps.Keys(ids))
	return sorted[:min(len(sorted), 8)]
}

// read reads runs exactly; those that are gone are left out, and with an error those that were not read.
func (w *world) read(ctx context.Context, rt *core.Runtime, ids []runlane.RunID) (runs []*runlane.Run, err error) {
	for part := range slices.Chunk(ids, runsAtOnce) {
		got, failed := rt.Lane().Storage.GetRuns(ctx, &lane.RunsQuery{Environment: environment, IDs: part, WithoutPayload: true})
		runs, err = append(runs, got...), errors.Join(err, failed)
	}
	return runs, err
}

// readDeadLetters takes what is dead, and counts what is not poison.
func (w *world) readDeadLetters(ctx context.Context) (wakeups int) {
	for _, queue := range w.queues {
		out, err := w.sqs.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
			QueueUrl: &queue.DeadLetterURL, MaxNumberOfMessages: 10, VisibilityTimeout: 3600,
		})
		if err != nil {
			if ctx.Err() == nil {
				w.t.Error(err)
			}
			continue
		}
		for _, m := range out.Messages {
			if _, poison := w.messages[aws.ToString(m.Body)]; poison {
				w.messages[aws.ToString(m.Body)] = true
			} else {
				wakeups++
			}
		}
	}
	return wakeups
}

// endings reads the outcome of every run.
func (w *world) endings(rt *core.Runtime) []Ending {
	ctx := w.t.Context()
	found := map[runlane.RunID]*runlane.Run{}
	ids := slices.Sorted(maps.Keys(w.runs))
	runs, err := w.read(ctx, rt, ids)
	if err != nil {
		w.t.Error(err)
	}
	for _, run := range runs {
		found[run.ID] = run
	}
	var endings []Ending
	for _, id := range ids {
		e := Ending{ID: id, Poison: w.runs[id].poison, Far: w.runs[id].far, Missing: found[id] == nil}
		if run := found[id]; run != nil {
			e.Status, e.Failure, e.Attempts = run.Status, run.Failure.Code, run.Counters.Attempts
			if run.Status == runlane.StatusFailed {
				e.Abandoned = w.abandoned(rt, id)
			}
			if !run.Status.Terminal() {
				if explained, err := rt.Runs().Explain(ctx, id); err != nil {
					w.t.Errorf("%s cannot be explained: %v", id, err)
				} else {
					e.Wait = explained.Wait
				}
			}
		}
		endings = append(endings, e)
	}
	return endings
}

func (w *world) abandoned(rt *core.Runtime, id runlane.RunID) (n int) {
	attempts, err := rt.Runs().Attempts(w.t.Context(), id)
	if err != nil {
		w.t.Error(err)
	}
	for i := range attempts {
		if attempts[i].Status == runlane.AttemptAbandoned {
			n++
		}
	}
	return n
}

// complete wants exactly the triggered runs in the lists.
func (w *world) complete(rt *core.Runtime) {
	listed := map[runlane.RunID]int{}
	for run, err := range rt.Runs().All(w.t.Context(), &core.ListOptions{Limit: runsAtOnce}) {
		if err != nil {
			w.t.Fatal(err)
		}
		if _, ok := w.runs[run.ID]; !ok {
			w.t.Errorf("%s is in the lists, and was never triggered", run.ID)
		}
		listed[run.ID]++
	}
	for id := range w.runs {
		if listed[id] != 1 {
			w.t.Errorf("%s is in the lists %d times", id, listed[id])
		}
	}
}

// sound wants every invariant of the storage held.
func (w *world) sound(rt *core.Runtime) {
	found, err := crash.Violations(w.t.Context(), rt.Lane().Storage, environment)
	if err != nil || len(found) > 0 {
		w.t.Errorf("violations: %+v, %v", found, err)
	}
}
