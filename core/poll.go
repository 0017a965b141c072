package core

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

const (
	// A worker that polls asks again after pollFirst, then at doubling distance up to pollLast while nothing is due.
	pollFirst = time.Second
	pollLast  = time.Minute
	// maxPassed bounds what a poll loop remembers.
	maxPassed = 10_000
)

// poll executes what the storage says is due, at most Concurrency attempts at once. It returns when ctx has ended and
// its attempts too. A drain also returns when nothing is due and nothing is executing.
func (w *worker) poll(ctx context.Context) error {
	p := poller{
		worker: w,
		free:   make(chan struct{}, w.options.Concurrency),
		busy:   make(map[runlane.RunID]struct{}),
		passed: make(map[runlane.RunID]passed),
	}
	defer p.attempts.Wait()
	wait, idle := pollFirst, time.Duration(0)
	for {
		found, err := p.round(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && w.options.Drain, errors.Is(err, runlane.ErrCapabilityUnsupported):
			return err
		case err != nil:
			attrs := append([]slog.Attr{slog.String(attrWorkerID, w.options.WorkerID)}, errorAttrs(err)...)
			w.rt.logger.LogAttrs(ctx, slog.LevelWarn, "due runs could not be listed", attrs...)
		case found > 0:
			wait = pollFirst
			continue
		}
		if w.options.Drain {
			p.attempts.Wait()
			if p.sawWork() {
				idle = 0
				continue
			}
			waited, err := p.awaitDue(ctx, w.options.DrainWait-idle)
			switch {
			case ctx.Err() != nil:
				return nil
			case err != nil:
				return err
			case waited > 0:
				idle += waited
				continue
			}
			w.drained.Store(true)
			return nil
		}
		if !pause(ctx, w.rt.world.around(wait)) {
			return nil
		}
		wait = min(2*wait, pollLast)
	}
}

// poller is the state of one poll loop.
type poller struct {
	worker   *worker
	free     chan struct{} // one token for each attempt in progress
	attempts sync.WaitGroup

	mu       sync.Mutex
	busy     map[runlane.RunID]struct{} // executing here
	passed   map[runlane.RunID]passed   // led to nothing here: left alone for a while
	finished int                        // since sawWork was asked
	ended    int                        // attempts that were executed here
}

// passed is why a run is left alone, and for how long. In a drain that is until the reason is gone. A run that has
// moved on since it was listed is another matter: the list was read before an attempt of it here ended, and it is due
// anew now.
type passed struct {
	of    int64 // the sequence of the run when it was listed
	until time.Time
	full  bool // its slot is taken, or another suspect executes: the end of an attempt here may free either
}

// holds reports that a run is still left alone that is listed at a sequence.
func (pass *passed) holds(sequence int64) bool { return pass.full || pass.of == sequence }

// round starts what one scan finds and returns how many that was.
func (p *poller) round(ctx context.Context) (int, error) {
	rt := p.worker.rt
	found := 0
	q := lane.DueQuery{
		PageQuery: lane.PageQuery{
			Environment: rt.environment,
			Limit:       min(2*p.worker.options.Concurrency, runlane.MaxPageLimit),
		},
		At:      rt.now(),
		Queues:  p.worker.options.Queues,
		Bounded: rt.bounded,
	}
	for {
		page, err := rt.storage().ListRunnableRuns(ctx, &q)
		if err != nil {
			return found, err
		}
		for i := range page.Items {
			started, err := p.start(ctx, &page.Items[i])
			if err != nil {
				return found, err
			}
			if started {
				found++
			}
		}
		if page.Next == "" || found > 0 {
			return found, nil
		}
		q.After = page.Next // only runs that are executing already, or cannot be executed: read the next page
	}
}

// start executes one run in a separate goroutine, once an attempt is free. The goroutine ends with the attempt.
func (p *poller) start(ctx context.Context, ref *lane.RunRef) (bool, error) {
	if !p.reserve(ref) {
		return false, nil
	}
	select {
	case p.free <- struct{}{}:
	case <-ctx.Done():
		p.release(ref.RunID, false)
		return false, ctx.Err()
	}
	wakeup := lane.Wakeup{RunKey: ref.RunKey, Queue: ref.Queue, RequestedAt: p.worker.rt.now()}
	p.attempts.Go(func() {
		executed, full, before := false, false, p.endedSoFar()
		defer func() { // the place becomes free whatever code of the application does
			p.release(ref.RunID, executed)
			if !executed {
				p.pass(ref, full, before)
			}
			<-p.free
		}()
		result, err := p.worker.deliver(context.WithoutCancel(ctx), wakeup, false)
		if err == nil {
			executed, full = result.Ignored == "", result.Ignored == IgnoredNoCapacity ||
				result.Ignored == IgnoredSuspect
		}
	})
	return true, nil
}

func (p *poller) reserve(ref *lane.RunRef) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if pass, ok := p.passed[ref.RunID]; ok {
		if pass.holds(ref.Sequence) && (p.worker.options.Drain || time.Now().Before(pass.until)) {
			return false
		}
		delete(p.passed, ref.RunID)
	}
	if _, executing := p.busy[ref.RunID]; executing {
		return false
	}
	p.busy[ref.RunID] = struct{}{}
	return true
}

func (p *poller) release(id runlane.RunID, executed bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.busy, id)
	if executed {
		p.finished++
		p.ended++
		maps.DeleteFunc(p.passed, func(_ runlane.RunID, pass passed) bool { return pass.full })
	}
}

// endedSoFar counts the attempts that were executed here.
func (p *poller) endedSoFar() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ended
}

// pass passes over a run that led to nothing: for a while, or for the whole of a drain. A run that is forgotten too
// early is only read once more. A run for which there was no room is not passed over when an attempt has ended since
// before: that may have made room after the run was judged.
func (p *poller) pass(ref *lane.RunRef, full bool, before int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if full && p.ended != before {
		return
	}
	if len(p.passed) >= maxPassed && !p.worker.options.Drain {
		clear(p.passed)
	}
	p.passed[ref.RunID] = passed{of: ref.Sequence, until: time.Now().Add(pollLast), full: full}
}

// sawWork reports whether attempts ended since it was asked last: they may have made more work.
func (p *poller) sawWork() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	saw := p.finished > 0
	p.finished = 0
	return saw
}
