package core

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

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
