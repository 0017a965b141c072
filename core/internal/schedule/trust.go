package schedule

import (
	"context"
	"time"

	"github.com/runlane/runlane-go"
)

const (
	// markTolerance is how far times in a schedule's record may be ahead of this clock. Later ones come from a process
	// with a wrong clock and would block the schedule until then.
	markTolerance = 5 * time.Minute
	// occurrencesKept is a little less than storages keep occurrences.
	occurrencesKept = 39 * 24 * time.Hour
)

func (e *evaluation) trustUntil() time.Time { return e.now.Add(markTolerance) }

func (e *evaluation) trusts(mark time.Time) bool { return !mark.After(e.trustUntil()) }

// doubted returns the record's fields with untrusted times.
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

// dueAfter returns the instant after which occurrences are due. Nothing before the registration fires. The last
// evaluation settled everything before it, if it used the same times; for a record with other times it is the later of
// the program's opening and its own last evaluation.
func (e *evaluation) dueAfter(ctx context.Context) (time.Time, error) {
	r := e.record
	if !e.trusts(r.RegisteredAt) {
		return e.now, nil // from a wrong clock: register now
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
	// The last fire is untrusted. The occurrences recorded up to now show the true one, as long as they are kept.
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

// recorded passes the recorded occurrences to yield, newest first, until it returns false.
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

// skipBlocked moves LastFire past an occurrence that cannot be claimed because a process with a wrong clock completed
// it too early. Without this it would block the schedule. A recent occurrence is left to the process that works on it
// or has just completed it.
func (e *evaluation) skipBlocked(ctx context.Context, at time.Time) error {
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
