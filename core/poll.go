package core

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
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

// drainProbe is how long a drain waits before it checks whether the clock moves at all.
const drainProbe = 5 * time.Millisecond

// drainAgain is the pause before a drain asks again for due runs that it could not take.
const drainAgain = 50 * time.Millisecond

// reportTime bounds the reading of what a drain leaves, also after an interrupt.
const reportTime = 2 * time.Second

// awaitDue waits until a run becomes due that this drain has not passed over, if there is one within the bound, and
// returns how long it waited. It does not wait under a clock that stands still.
func (p *poller) awaitDue(ctx context.Context, bound time.Duration) (time.Duration, error) {
	if bound <= 0 {
		return 0, nil
	}
	rt := p.worker.rt
	due, ok, err := p.nextDue(ctx, rt.now().Add(bound))
	if err != nil || !ok {
		return 0, err
	}
	began := rt.world.Now()
	left := due.Sub(began)
	if left <= 0 {
		left = min(drainAgain, bound) // a moment ago the run was not there or could not be taken
	}
	probe := min(left, drainProbe)
	if !pause(ctx, probe) || !rt.world.Now().After(began) {
		return 0, nil
	}
	if left > probe && !pause(ctx, left-probe) {
		return 0, nil
	}
	return left, nil
}

// nextDue is the earliest instant, up to the given one, at which a run becomes due that is neither executing here nor
// passed over.
func (p *poller) nextDue(ctx context.Context, until time.Time) (due time.Time, ok bool, err error) {
	rt := p.worker.rt
	q := lane.DueQuery{
		PageQuery: lane.PageQuery{Environment: rt.environment},
		At:        until,
		Queues:    p.worker.options.Queues,
		Bounded:   rt.bounded,
	}
	for {
		page, err := rt.storage().ListRunnableRuns(ctx, &q)
		if err != nil {
			return due, false, err
		}
		for i := range page.Items {
			if ref := &page.Items[i]; !p.knows(ref) {
				due, ok = earliest(due, ref.AvailableAt), true
			}
		}
		if q.After = page.Next; ok || q.After == "" {
			return due, ok, nil
		}
	}
}

func (p *poller) knows(ref *lane.RunRef) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	pass, passed := p.passed[ref.RunID]
	_, busy := p.busy[ref.RunID]
	return passed && pass.holds(ref.Sequence) || busy
}

// leave reports what a drain leaves, also one that was interrupted. Best effort: what cannot be read in time is not the
// drain's fault, but it is never reported as nothing.
func (w *worker) leave(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reportTime)
	defer cancel()
	report := DrainReport{Interrupted: !w.drained.Load(), More: true}
	page, err := w.active(ctx)
	if err != nil {
		w.rt.logger.LogAttrs(ctx, slog.LevelDebug, "what a drain leaves could not be listed", errorAttrs(err)...)
	} else {
		report.add(w, page)
	}
	if w.options.DrainReport != nil {
		*w.options.DrainReport = report
	}
	w.logLeft(ctx, &report)
}

// active lists the first of the environment's active runs.
func (w *worker) active(ctx context.Context) (*runlane.Page[runlane.RunSummary], error) {
	q := lane.RunQuery{PageQuery: lane.PageQuery{Environment: w.rt.environment, Limit: runlane.DefaultPageLimit}}
	for _, status := range runlane.Statuses() {
		if status.Active() {
			q.Statuses = append(q.Statuses, status)
		}
	}
	return w.rt.storage().ListRuns(ctx, &q)
}

func (r *DrainReport) add(w *worker, page *runlane.Page[runlane.RunSummary]) {
	r.More = page.Next != ""
	for i := range page.Items {
		run := &page.Items[i]
		if !slices.Contains(w.options.Queues, run.Queue) {
			continue
		}
		r.Left++
		if run.Status.Waiting() || w.delayed(run) {
			r.NextDue = earliest(r.NextDue, run.RunAt)
		}
	}
}

// delayed finds a run of a bounded queue that waits for its time: such a run is queued from its creation on.
func (w *worker) delayed(run *runlane.RunSummary) bool {
	queue, known := w.rt.knownQueue(run.Queue)
	return run.Status == runlane.StatusQueued && known && queue.Bounded() && run.RunAt.After(w.rt.now())
}

func (w *worker) logLeft(ctx context.Context, report *DrainReport) {
	attrs := []slog.Attr{
		slog.Int("left", report.Left), slog.Bool("more", report.More), slog.String(attrWorkerID, w.options.WorkerID),
	}
	if !report.NextDue.IsZero() {
		attrs = append(attrs, slog.Time("next_due", report.NextDue))
	}
	switch {
	case report.Interrupted:
		w.rt.logger.LogAttrs(ctx, slog.LevelInfo, "drain interrupted; what was due may be left", attrs...)
	case report.Left > 0:
		w.rt.logger.LogAttrs(
			ctx,
			slog.LevelInfo,
			"drained; the runs that are left are not due, have a worker's lease, or no handler here",
			attrs...,
		)
	}
}
