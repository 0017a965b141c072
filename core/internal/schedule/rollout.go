package schedule

import (
	"context"
	"time"
)

const (
	// abandonedAfter is when an outdated program takes the record back: a living owner notes its evaluations more
	// often.
	abandonedAfter = evaluationNoted + markTolerance
	// outdatedLag is the delay of an outdated program. Occurrences up to the last fire cannot be claimed, so the delay
	// keeps it behind the newer program: within it that program ticks, and a failed tick is followed by another.
	outdatedLag = 2 * occurrenceClaim
)

// While program versions with different times of a schedule run side by side, the newest owns the record. It takes it
// over once, with its own opening as the last evaluation. An outdated program remembers that it had the record before;
// it leaves the record alone and makes its own occurrences from memory, a little late.

// outdated reports whether the record has other times and this program had it before: another program owns it. If that
// one seems to be gone, the result is false.
func (e *evaluation) outdated() bool {
	r := e.record
	return e.own.recorded.Load() && !e.own.sameTimes(r.DefinitionHash) && e.trusts(r.LastEvaluated) &&
		e.now.Sub(r.LastEvaluated) < abandonedAfter
}

// dueUntil returns the instant up to which occurrences are due.
func (e *evaluation) dueUntil() time.Time {
	if e.outdated() {
		return e.now.Add(-outdatedLag)
	}
	return e.now
}

// takeOver writes this schedule's times into the record, with everything up to from settled. ours is false if another
// process changed the record meanwhile.
func (e *evaluation) takeOver(ctx context.Context, from time.Time) (ours bool, err error) {
	if e.outdated() {
		return true, nil
	}
	if !e.own.sameTimes(e.record.DefinitionHash) {
		next := *e.record
		next.DefinitionHash, next.LastEvaluated = e.own.hash, from
		if ours, err := e.put(ctx, &next); err != nil || !ours {
			return false, err
		}
	}
	e.own.recorded.Store(true)
	return true, nil
}

// settle remembers that everything up to an instant is settled.
func (e *evaluation) settle(at time.Time) {
	e.own.settled.Store(max(e.own.settled.Load(), at.UnixMilli()))
}
