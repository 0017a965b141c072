package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
)

const (
	// loadActions are about how many times something is triggered in a short form; longer ones trigger once a second at least.
	loadActions  = 90
	mostInterval = time.Second
	// insistTime is how long a trigger is repeated after the faults, and insistEvery its distance.
	insistTime  = 3 * time.Minute
	insistEvery = 200 * time.Millisecond
	batchRuns   = 6
	farRuns     = 3
)

// load triggers runs, some of them twice, in batches, for later, or for the relay, as the seed says.
type triggers struct {
	world     *world
	rt        *core.Runtime
	random    *rand.Rand
	pending   sync.WaitGroup
	triggered int
}

// run triggers for as long as the plan lasts and returns when everything that was begun has succeeded. A trigger whose answer got lost
// is repeated with the same id or key, as an application does.
func (l *triggers) run(ctx context.Context) {
	until, stop := context.WithTimeout(ctx, l.world.plan.Duration)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, l.world.plan.Duration+insistTime)
	defer cancel()
	defer l.pending.Wait()
	for range farRuns {
		l.one(ctx, "far", Steady.With(Job{}), &runlane.TriggerOptions{Delay: 24 * time.Hour}, trait{far: true})
	}
	interval := min(l.world.plan.Duration/loadActions, mostInterval)
	for {
		l.next(ctx)
		if !pause(until, interval) {
			return
		}
	}
}

func (l *triggers) next(ctx context.Context) {
	job := Job{Milliseconds: 100 + l.random.IntN(600)}
	switch n := l.random.IntN(100); {
	case n < 35:
		l.one(ctx, "plain", Steady.With(job), nil, trait{})
	case n < 50:
		job.Failures = 1 + l.random.IntN(2)
		l.one(ctx, "flaky", Steady.With(job), nil, trait{})
	case n < 68:
		job.Key = fmt.Sprint("key-", l.random.IntN(3))
		l.one(ctx, "tight", Tight.With(job), nil, trait{})
	case n < 78:
		l.one(ctx, "later", Steady.With(job), &runlane.TriggerOptions{Delay: time.Duration(1+l.random.IntN(5)) * time.Second}, trait{})
	case n < 87:
		l.one(ctx, "relayed", Steady.With(job), &runlane.TriggerOptions{Deferred: true}, trait{})
	case n < 95:
		l.twice(ctx, Steady.With(job))
	default:
		l.batch(ctx, job)
	}
}

// name is a fresh one.
func (l *triggers) name(kind string) string {
	l.triggered++
	return fmt.Sprintf("%s-%d", kind, l.triggered)
}

// insistently repeats a trigger in the background until it has succeeded.
func (l *triggers) insistently(ctx context.Context, what string, trigger func() error) {
	l.pending.Go(func() { l.world.insist(ctx, what, trigger) })
}

// insist repeats a trigger until it has succeeded.
func (w *world) insist(ctx context.Context, what string, trigger func() error) {
	var last error
	done := poll(ctx, insistEvery, func() bool {
		last = trigger()
		return last == nil
	})
	if !done {
		w.t.Errorf("%s could not be triggered: %v", what, last)
	}
}

// one triggers a run under a given id.
func (l *triggers) one(ctx context.Context, kind string, call runlane.Call, options *runlane.TriggerOptions, of trait) {
	o := runlane.TriggerOptions{}
	if options != nil {
		o = *options
	}
	o.RunID = runlane.RunID(l.name(kind))
	l.insistently(ctx, kind, func() error {
		if _, err := l.rt.Trigger(ctx, call, &o); err != nil {
			return err
		}
		l.world.triggered(o.RunID, of)
		return nil
	})
}

// twice triggers two times with one key, at once: there is one run.
func (l *triggers) twice(ctx context.Context, call runlane.Call) {
	key := l.name("key")
	var mu sync.Mutex
	var first runlane.RunID
	for range 2 {
		l.insistently(ctx, key, func() error {
			result, err := l.rt.Trigger(ctx, call, &runlane.TriggerOptions{IdempotencyKey: key})
			if err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			if first != "" && first != result.Run.ID {
				l.world.t.Errorf("one key made two runs, %s and %s", first, result.Run.ID)
			}
			first = result.Run.ID
			l.world.triggered(first, trait{})
			return nil
		})
	}
}

// batch triggers several at once, and again those that failed.
func (l *triggers) batch(ctx context.Context, job Job) {
	var items []core.BatchItem
	for range batchRuns {
		options := &runlane.TriggerOptions{RunID: runlane.RunID(l.name("batch"))}
		items = append(items, core.BatchItem{Call: Steady.With(job), Options: options})
	}
	l.insistently(ctx, "a batch", func() error {
		results, err := l.rt.TriggerBatch(ctx, items)
		var left []core.BatchItem
		for i := range results {
			if results[i].Err == nil {
				l.world.triggered(items[i].Options.RunID, trait{})
				continue
			}
			left = append(left, items[i])
			err = results[i].Err
		}
		items = left
		return err
	})
}
