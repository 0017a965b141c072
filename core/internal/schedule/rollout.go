package schedule

import (
	"context"
	"time"
)

const (
	// abandonedAfter is when an outdated program takes the record back: the one that has it notes its evaluations more
	// often.
	abandonedAfter = evaluationNoted + markTolerance
	// outdatedLag is how long an outdated program waits with an occurrence. Nothing is claimed at or before the last
	// fire, so this keeps it behind what the newer program has not made yet: in this time that one ticks, and a tick of
	// it that died is followed by another.
	outdatedLag = 2 * occurrenceClaim
)

// While versions of a program with other times of a schedule tick side by side, the record belongs to the one that came
// last. It takes it over once, with its own opening as the last evaluation. The outdated one knows that it had the
// record before. It leaves it alone and makes its own occurrences from what it remembers, a little late.

// outdated reports that the record has other times than this schedule, whose program had it before and is to leave it
// to the other one. It does not while that one seems to be gone.
func (e *evaluation) outdated() bool {
	r := e.record
	return e.own.recorded.Load() && !e.own.sameTimes(r.DefinitionHash) && e.trusts(r.LastEvaluated) &&
		e.now.Sub(r.LastEvaluated) < abandonedAfter
}

// until is the moment up to which occurrences are due.
func (e *evaluation) until() time.Time {
	if e.outdated() {
		return e.now.Add(-outdatedLag)
	}
	return e.now
}

// takeOver makes the record that of this schedule's times, of which nothing is open at from or before it. ours is false
// when another process changed the record meanwhile.
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

// settle remembers that nothing is open at an instant or before it.
func (e *evaluation) settle(at time.Time) {
	e.own.settled.Store(max(e.own.settled.Load(), at.UnixMilli()))
}
