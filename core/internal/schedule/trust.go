package schedule

import (
	"context"
	"time"

	"github.com/runlane/runlane-go"
)

const (
	// markTolerance is how far ahead of this clock the marks of a schedule count. Marks further ahead were set by a
	// process with a wrong clock: they would keep the schedule from firing until their time.
	markTolerance = 5 * time.Minute
	// occurrencesKept is a little less than storages keep occurrences.
	occurrencesKept = 39 * 24 * time.Hour
)

func (e *evaluation) trustUntil() time.Time { return e.now.Add(markTolerance) }

func (e *evaluation) trusts(mark time.Time) bool { return !mark.After(e.trustUntil()) }

// doubted are the marks of a schedule that do not count, by their names in the record.
func doubted(r *runlane.ScheduleRecord, now time.Time) (marks []string) {
	for _, mark := range [...]struct {
		name string
		at   time.Time
	}{
		{"registeredAt", r.RegisteredAt}, {"lastEvaluated", r.LastEvaluated}, {"lastFire", r.LastFire},
		{"pendingFire", r.PendingFire},
	} {
		if mark.at.After(now.Add(markTolerance)) {
			marks = append(marks, mark.name)
		}
	}
	return marks
}

// from is the moment after which occurrences count. A schedule fires nothing from before it was registered. The last
// evaluation left nothing open, so nothing from before it counts. That was an evaluation of the times in the record: at
// other times nothing counts from before the program opened that has them, or from before its own last evaluation.
func (e *evaluation) from(ctx context.Context) (time.Time, error) {
	r := e.record
	if !e.trusts(r.RegisteredAt) {
		return e.now, nil // by a wrong clock: it is registered now
	}
	from := r.RegisteredAt
	switch {
	case !e.own.sameTimes(r.DefinitionHash):
		settled := time.UnixMilli(e.own.settled.Load())
		from = latest(from, earliest(latest(e.s.OpenedAt, settled), e.now))
	case e.trusts(r.LastEvaluated):
		from = latest(from, r.LastEvaluated)
	}
	if e.trusts(r.LastFire) {
		return latest(from, r.LastFire), nil
	}
	// The last fire was overwritten. What was recorded up to now says it, as long as that is kept.
	from = latest(from, e.now.Add(-occurrencesKept))
	err := e.recorded(ctx, func(o *runlane.Occurrence) bool {
		if o.FireTime.After(e.now) {
			return true
		}
		from = latest(from, o.FireTime)
		return false
	})
	return from, err
}

// recorded walks the recorded occurrences, newest first, while yield says so.
func (e *evaluation) recorded(ctx context.Context, yield func(*runlane.Occurrence) bool) error {
	for o, err := range e.s.Occurrences(ctx, e.own.ID, false) {
		if err != nil {
			return err
		}
		if !yield(o) {
			return nil
		}
	}
	return nil
}

// pass goes on after an occurrence that cannot be claimed, because a process with a wrong clock completed it ahead of
// its time: the last fire does not cover it, and it would hold the schedule up. One that another process is at, or has
// just completed, is left to it.
func (e *evaluation) pass(ctx context.Context, at time.Time) error {
	if e.now.Sub(at) <= 2*occurrenceClaim || !e.trusts(e.record.LastFire) {
		return nil
	}
	next := *e.record
	err := e.recorded(ctx, func(o *runlane.Occurrence) bool {
		if o.FireTime.Equal(at) {
			next.LastFire = at
			if o.RunID != "" {
				next.LastRunID = o.RunID
			}
		}
		return o.FireTime.After(at)
	})
	if err != nil || !next.LastFire.Equal(at) {
		return err
	}
	_, err = e.put(ctx, &next)
	return err
}
