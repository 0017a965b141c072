package schedule

import (
	"context"
	"slices"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core/internal/fail"
	"github.com/runlane/runlane-go/core/internal/origin"
	"github.com/runlane/runlane-go/lane"
)

const (
	// maxManualRuns bounds the manual runs in a schedule's record.
	maxManualRuns = 10
	// noteRounds bounds the tries to note a manual run. In each round one of several callers succeeds.
	noteRounds = 50
)

// checksOverlap reports whether an occurrence depends on earlier runs.
func checksOverlap(o runlane.Overlap) bool { return o != "" && o != runlane.OverlapAllow }

// keepPending keeps the latest occurrence pending while an earlier run is active, for runlane.OverlapQueueLatest.
// Earlier occurrences are then skipped for overlap.
func (e *evaluation) keepPending(ctx context.Context, latest time.Time) (bool, error) {
	if e.own.Overlap != runlane.OverlapQueueLatest {
		return false, nil
	}
	active, err := e.predecessors(ctx)
	if err != nil || len(active) == 0 || e.record.PendingFire.Equal(latest) {
		return len(active) > 0, err
	}
	next := *e.record
	next.PendingFire = latest
	_, err = e.put(ctx, &next)
	return true, err
}

// keepPendingAgain is keepPending after this evaluation made or found a run.
func (e *evaluation) keepPendingAgain(ctx context.Context, latest time.Time) (wait bool, err error) {
	if e.own.Overlap != runlane.OverlapQueueLatest {
		return false, nil
	}
	if e.record, err = e.s.Host.Storage().GetSchedule(ctx, e.key()); err != nil {
		return false, err
	}
	return e.keepPending(ctx, latest)
}

func (e *evaluation) hasPending() bool {
	return e.own.Overlap == runlane.OverlapQueueLatest && e.record.PendingFire.After(e.record.LastFire)
}

// overlapping returns the active earlier runs of an occurrence, for the policies forbid and replace. It returns none if
// the occurrence's run exists, made by a tick that died before it could record it: that tick has applied the policy,
// and runs triggered since are later ones. If another run has the occurrence's run ID, the occurrence is skipped before
// it replaces anything.
//
// It reads before the claim, because a claim of a failing tick delays the occurrence. Nobody can claim and complete the
// occurrence in between: claims are judged by a time before this read.
func (e *evaluation) overlapping(ctx context.Context, f *firing, id runlane.RunID) ([]runlane.RunID, error) {
	if f.skipped != "" || e.own.Overlap != runlane.OverlapForbid && e.own.Overlap != runlane.OverlapReplace {
		return nil, nil
	}
	active, err := e.predecessors(ctx)
	if err != nil || len(active) == 0 {
		return nil, err
	}
	made, err := e.s.foundRun(ctx, id)
	switch {
	case err != nil:
		return nil, err
	case made == nil:
		return active, nil
	case !origin.Same(made.Source, e.source(f.at)):
		f.skipped = runlane.SkippedIDTaken
	}
	return nil, nil
}

// predecessors returns the active runs for the overlap policies: the run of the last occurrence that made one, and
// manual ones. A manual run is noted before it is created, so the record is read again: the tick's list may be older
// than the run. A noted ID without a run is not active: its trigger died, or comes later. It ignores runs of another
// origin, and a run that a wrong clock made too early.
func (e *evaluation) predecessors(ctx context.Context) ([]runlane.RunID, error) {
	now, err := e.s.Host.Storage().GetSchedule(ctx, e.key())
	if err != nil {
		return nil, err
	}
	ids := append([]runlane.RunID{e.record.LastRunID}, now.ManualRunIDs...)
	var active []runlane.RunID
	for i, id := range ids {
		if id == "" {
			continue
		}
		run, err := e.s.foundRun(ctx, id)
		if err != nil {
			return nil, err
		}
		if run != nil && run.Status.Active() && run.Source.Type == runlane.SourceSchedule &&
			run.Source.ScheduleID == e.own.ID && (i > 0 || e.trusts(run.Source.FireTime)) {
			active = append(active, id)
		}
	}
	return active, nil
}

func (e *evaluation) replace(ctx context.Context, active []runlane.RunID) error {
	for _, id := range active {
		err := e.s.Host.Cancel(ctx, id, e.actor(), "replaced by the next occurrence of its schedule")
		if err != nil {
			return err
		}
	}
	return nil
}

// foundRun returns a run, or nil if it does not exist.
func (s *Scheduler) foundRun(ctx context.Context, id runlane.RunID) (*runlane.Run, error) {
	run, err := s.Host.Storage().GetRun(ctx, lane.RunKey{Environment: s.Environment, RunID: id})
	if fail.IsNotFound(err) {
		return nil, nil
	}
	return run, err
}

// noteManual adds a run to the schedule's record before the run is created, so that no occurrence misses it. If the
// process dies in between, the ID without a run blocks no occurrence.
func (s *Scheduler) noteManual(ctx context.Context, own *Definition, id runlane.RunID) error {
	return s.write(ctx, own.ID, noteRounds, func(r *runlane.ScheduleRecord) {
		r.ManualRunIDs = append(s.manualRuns(ctx, r.ManualRunIDs), id)
	})
}

// manualRuns returns the noted runs to keep, with room for a new one. Ended ones are removed. If the list is still
// full, the oldest ID without a run goes first, then the oldest of all. Unreadable runs stay.
func (s *Scheduler) manualRuns(ctx context.Context, noted []runlane.RunID) []runlane.RunID {
	var kept, absent []runlane.RunID
	for _, id := range noted {
		run, err := s.foundRun(ctx, id)
		switch {
		case err == nil && run == nil:
			absent = append(absent, id)
		case err == nil && !run.Status.Active():
			continue
		}
		kept = append(kept, id)
	}
	for len(kept) >= maxManualRuns {
		drop := 0
		if len(absent) > 0 {
			drop, absent = slices.Index(kept, absent[0]), absent[1:]
		}
		kept = slices.Delete(kept, drop, drop+1)
	}
	return kept
}
