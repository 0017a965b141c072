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
	// maxManualRuns bounds how many runs that were triggered by hand a schedule's record names.
	maxManualRuns = 10
	// noteRounds is how often noting such a run is tried when the record changes. In each round one of several callers
	// succeeds.
	noteRounds = 50
)

// checksOverlap reports whether an occurrence of the schedule depends on the runs before it.
func checksOverlap(o runlane.Overlap) bool { return o != "" && o != runlane.OverlapAllow }

// waits keeps the latest occurrence pending while a run before it is active, if the schedule says so. The occurrences
// before it are then skipped because of that run.
func (e *evaluation) waits(ctx context.Context, latest time.Time) (bool, error) {
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

// waitsAgain is waits behind a run that this evaluation made or found.
func (e *evaluation) waitsAgain(ctx context.Context, latest time.Time) (wait bool, err error) {
	if e.own.Overlap != runlane.OverlapQueueLatest {
		return false, nil
	}
	if e.record, err = e.s.Host.Storage().GetSchedule(ctx, e.key()); err != nil {
		return false, err
	}
	return e.waits(ctx, latest)
}

// pended reports that an occurrence was kept pending and has not been dealt with.
func (e *evaluation) pended() bool {
	return e.own.Overlap == runlane.OverlapQueueLatest && e.record.PendingFire.After(e.record.LastFire)
}

// overlapping are the active runs before an occurrence that is to make a run, when its overlap policy is forbid or
// replace. There are none when the occurrence's run exists already, made by a tick that died before it could record
// that. That tick has judged, and runs triggered since then are not before the occurrence. An occurrence whose run id
// another run has is skipped here, before it replaces anything.
//
// It is read before the occurrence is claimed, because a claim whose tick fails delays the occurrence. No claim of
// another tick can have been made and have ended meanwhile: claims are judged by a time before this reading.
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

// predecessors are the active runs among those that overlap policies consider: the run of the last occurrence that made
// one, and those triggered by hand. A run is noted before it is created, so the record is read again: the list from the
// tick's beginning may be older than a run that exists now. An id that is noted and has no run is not active: its
// trigger died, or comes after this reading. A run of another origin under a noted id is none of the schedule's, and the
// run of an occurrence that a wrong clock made ahead of its time is not before it.
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

// replace cancels the runs before.
func (e *evaluation) replace(ctx context.Context, active []runlane.RunID) error {
	for _, id := range active {
		err := e.s.Host.Cancel(ctx, id, e.actor(), "replaced by the next occurrence of its schedule")
		if err != nil {
			return err
		}
	}
	return nil
}

// foundRun reads a run; nil: there is none.
func (s *Scheduler) foundRun(ctx context.Context, id runlane.RunID) (*runlane.Run, error) {
	run, err := s.Host.Storage().GetRun(ctx, lane.RunKey{Environment: s.Environment, RunID: id})
	if fail.IsNotFound(err) {
		return nil, nil // said above
	}
	return run, err
}

// noteManual names a run in the schedule's record before it is created, so that no occurrence misses it. A process that
// dies in between leaves an id without a run, which blocks nothing.
func (s *Scheduler) noteManual(ctx context.Context, own *Definition, id runlane.RunID) error {
	return s.write(ctx, own.ID, noteRounds, func(r *runlane.ScheduleRecord) {
		r.ManualRunIDs = append(s.manualRuns(ctx, r.ManualRunIDs), id)
	})
}

// manualRuns are the noted runs that stay noted beside a new one. Those that ended are removed. If there is still no
// room, the oldest id without a run is removed first, then the oldest of all. What cannot be read stays.
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
		goes := 0
		if len(absent) > 0 {
			goes, absent = slices.Index(kept, absent[0]), absent[1:]
		}
		kept = slices.Delete(kept, goes, goes+1)
	}
	return kept
}
