// Package reducer folds events into a run. It imports package runlane and a few pure packages of the standard library:
// no context, no storage, no clock, no randomness. internal/projecttest and the linter enforce this.
//
// The rules for each type of event are in events.go, one function for each type.
package reducer

import (
	"fmt"
	"reflect"
	"time"

	"github.com/runlane/runlane-go"
)

// maxSequence is the last sequence of a run: programs that keep numbers as doubles cannot count further.
const maxSequence = 1<<53 - 1

// Project folds events onto current, nil for a new run. It is core.ProjectRunEvents under another name; the rules are
// there.
func Project(current *runlane.Run, expectedSequence int64, events ...runlane.Event) (*runlane.Run, error) {
	return ProjectInto(new(runlane.Run), current, expectedSequence, events)
}

// ProjectInto is [Project] with memory for the result, which must have no other use. After an error its content is
// undefined.
func ProjectInto(
	room, current *runlane.Run, expectedSequence int64, events []runlane.Event,
) (*runlane.Run, error) {
	if err := checkSequence(current, expectedSequence, events); err != nil {
		return nil, err
	}
	p := projection{run: room}
	if current != nil {
		*p.run = *current
	}
	for i := range events {
		if err := p.append(&events[i]); err != nil {
			return nil, err
		}
	}
	return p.run, nil
}

// checkSequence checks the call before any event: a stale call is a conflict even if it is invalid in other ways too.
func checkSequence(current *runlane.Run, expected int64, events []runlane.Event) error {
	sequence := int64(0)
	if current != nil {
		sequence = current.EventSequence
	}
	switch {
	case expected < 0 || expected > maxSequence:
		return invariant(
			callRunID(current, events),
			"expected sequence is %d, not within 0 and %d",
			expected,
			int64(maxSequence),
		)
	case expected != sequence:
		conflict := runlane.NewConflict(
			runlane.ConflictEventSequence,
			fmt.Sprintf("run is at sequence %d, not %d", sequence, expected),
		)
		conflict.Hint = "read the run again and repeat"
		conflict.RunID = callRunID(current, events)
		return conflict
	case current != nil && sequence == 0:
		return invariant(current.ID, "run exists but is at sequence 0")
	case len(events) == 0:
		return invariant(callRunID(current, events), "no events to project")
	case int64(len(events)) > maxSequence-expected:
		return invariant(
			callRunID(current, events),
			"%d events after sequence %d go beyond %d",
			len(events),
			expected,
			int64(maxSequence),
		)
	default:
		return nil
	}
}

// callRunID returns the run of a call, or "" if unknown.
func callRunID(current *runlane.Run, events []runlane.Event) runlane.RunID {
	switch {
	case current != nil:
		return current.ID
	case len(events) > 0:
		return events[0].RunID
	default:
		return ""
	}
}

// projection is a fold in progress. It owns run, which is discarded after an error.
type projection struct {
	run   *runlane.Run   // the fold so far; sequence 0 without events
	event *runlane.Event // the event being applied
	at    time.Time      // its time, in whole milliseconds
}

func (p *projection) append(e *runlane.Event) error {
	p.event, p.at = e, runlane.UTCMillis(e.OccurredAt)
	if err := p.checkEvent(); err != nil {
		return err
	}
	p.run.Waiting = nil // every event ends a wait; two types begin one
	if err := p.applyBody(); err != nil {
		return err
	}
	p.run.EventSequence++
	p.run.UpdatedAt = p.at
	return nil
}

// checkEvent applies the rules for events of every type.
func (p *projection) checkEvent() error {
	if !hasBody(p.event) {
		return p.violation("has no body")
	}
	_, creates := p.event.Body.(*runlane.RunCreated)
	exists := p.run.EventSequence > 0
	switch {
	case p.at.IsZero():
		return p.violation("has no time")
	case creates && exists:
		return p.violation("the run exists already and is %s", p.run.Status)
	case creates:
		return nil
	case !exists:
		return p.violation("the first event of a run is %s", runlane.EventCreated)
	case p.event.RunID != p.run.ID:
		return p.violation("is of run %q", p.event.RunID)
	case p.event.Environment.Name() != p.run.Environment.Name():
		return p.violation("is of environment %q, the run of %q", p.event.Environment.Name(), p.run.Environment.Name())
	case p.run.Status.Terminal():
		return p.violation("the run is %s and never changes again", p.run.Status)
	default:
		return nil
	}
}

// hasBody is also false for a nil pointer, which every type of body admits. (Only pointers are bodies.)
func hasBody(e *runlane.Event) bool {
	body := reflect.ValueOf(e.Body)
	return body.Kind() == reflect.Pointer && !body.IsNil()
}

// violation describes the fault of the current event. It quotes names, numbers and times, never payloads or lease
// tokens.
func (p *projection) violation(format string, args ...any) error {
	runID := p.run.ID
	if p.run.EventSequence == 0 {
		runID = p.event.RunID
	}
	return invariant(runID, "%s, event %d: %s", bodyName(p.event), p.run.EventSequence+1, fmt.Sprintf(format, args...))
}

// bodyName returns the event's type, or a text for an event without one.
func bodyName(e *runlane.Event) runlane.EventType {
	if !hasBody(e) {
		return "event"
	}
	return e.Type()
}

func invariant(runID runlane.RunID, format string, args ...any) error {
	return &runlane.Error{Code: runlane.ErrInvariantViolation, Message: fmt.Sprintf(format, args...), RunID: runID}
}
