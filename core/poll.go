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
	// An idle worker polls again after pollFirst, then at doubling intervals up to pollLast.
	pollFirst = time.Second
	pollLast  = time.Minute
	// maxPassed limits the memory of a poll loop.
	maxPassed = 10_000
)

// poll executes due runs from the storage, at most Concurrency attempts at once. It returns once ctx and its attempts
// have ended. A drain also returns when no run is due or executing.
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

type poller struct {
	worker   *worker
	free     chan struct{} // one token per attempt in progress
	attempts sync.WaitGroup

	mu       sync.Mutex
	busy     map[runlane.RunID]struct{} // executing here
	passed   map[runlane.RunID]passed   // could not be executed here: skip for a while
	finished int                        // since the last call of sawWork
	ended    int                        // attempts executed here
}

// passed is why a run is skipped. A drain skips it until the reason is gone. A changed sequence means that the list was
// read before an attempt of the run ended here; the run is due again now.
type passed struct {
	of    int64 // the run's sequence in the list
	until time.Time
	full  bool // no slot, or another suspect executes: the end of any attempt here may change that
}

// holds reports whether to skip a run that is listed at sequence.
func (pass *passed) holds(sequence int64) bool { return pass.full || pass.of == sequence }

// round starts the runs of one scan and returns their number.
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
		Without: rt.pausedQueues(ctx),
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
		q.After = page.Next // all are executing or skipped: read the next page
	}
}

// start executes one run in a goroutine once an attempt is free. The goroutine ends with the attempt.
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
		defer func() { // frees the place even after a panic in application code
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

func (p *poller) endedSoFar() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ended
}

// pass skips a run for a while, or for the rest of a drain. Forgetting one too early costs one read. A run without room
// is not skipped if an attempt has ended since before: that may have made room.
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

// sawWork reports whether attempts ended since its last call: they may have created runs.
func (p *poller) sawWork() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	saw := p.finished > 0
	p.finished = 0
	return saw
}

// drainProbe is how long a drain waits before it checks whether the clock moves.
const drainProbe = 5 * time.Millisecond

// drainAgain is the pause before a drain lists due runs again.
const drainAgain = 50 * time.Millisecond

// reportTime limits the reading for a DrainReport.
const reportTime = 2 * time.Second

// awaitDue waits for the next run that this drain has not skipped, if one becomes due within bound, and returns the
// time waited. It does not wait if the clock stands still.
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
		left = min(drainAgain, bound) // a moment ago it was not there or could not be taken
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

// nextDue is the earliest time, up to until, at which a run becomes due that is neither executing here nor skipped.
func (p *poller) nextDue(ctx context.Context, until time.Time) (due time.Time, ok bool, err error) {
	rt := p.worker.rt
	q := lane.DueQuery{
		PageQuery: lane.PageQuery{Environment: rt.environment},
		At:        until,
		Queues:    p.worker.options.Queues,
		Without:   rt.pausedQueues(ctx),
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

// reportLeft reports the runs that a drain leaves, even an interrupted one. Best effort: if they cannot be read in
// time, the drain still succeeds, but More is set.
func (w *worker) reportLeft(ctx context.Context) {
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

// delayed reports whether a run of a bounded queue waits for its time: such a run is queued from its creation on.
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
			"drained; the runs that are left are not due, wait for a slot, have a worker's lease, or no handler here",
			attrs...,
		)
	}
}
