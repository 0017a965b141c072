package memlane

import (
	"maps"
	"strconv"
	"strings"
	"unique"

	"github.com/runlane/runlane-go"
)

// event is one event of a history. Its run and sequence follow from its position there. Neither body nor notes ever
// change.
type event struct {
	at    millis
	actor unique.Handle[runlane.Actor] // few actors cause many events
	notes *notes
	body  runlane.EventBody
}

// notes are the fields that only few events have.
type notes struct{ meta, traceCarrier map[string]string }

// copyEvents adds our own copies of a command's events, in whole milliseconds.
func (l *unpacked) copyEvents(events []runlane.Event) {
	for i := range events {
		e := &events[i]
		ours := event{at: at(e.OccurredAt), actor: unique.Make(e.Actor), body: l.room.copyBody(e.Body)}
		if e.Meta != nil || e.TraceCarrier != nil {
			ours.notes = &notes{maps.Clone(e.Meta), maps.Clone(e.TraceCarrier)}
		}
		l.events = append(l.events, ours)
	}
}

// record is the event as callers get it: their own copy.
func (ev *event) record(e *entry, sequence int64) runlane.EventRecord {
	r := runlane.EventRecord{
		ID: eventID(e.id, sequence), Sequence: sequence,
		Event: runlane.Event{
			RunID:       e.id,
			Environment: e.environment,
			OccurredAt:  ev.at.time(),
			Actor:       ev.actor.Value(),
			Body:        new(bodyRoom).copyBody(ev.body),
		},
	}
	if ev.notes != nil {
		r.Meta, r.TraceCarrier = maps.Clone(ev.notes.meta), maps.Clone(ev.notes.traceCarrier)
	}
	return r
}

// eventID names an event, and the outbox row of a delivery request: ids of runs hold no colon.
func eventID(id runlane.RunID, sequence int64) string {
	return string(id) + ":" + strconv.FormatInt(sequence, 10)
}

// parseEventID is the inverse; ok is false for what was never an id of ours.
func parseEventID(text string) (id runlane.RunID, sequence int64, ok bool) {
	run, number, ok := strings.Cut(text, ":")
	if !ok {
		return "", 0, false
	}
	sequence, err := strconv.ParseInt(number, 10, 64)
	return runlane.RunID(run), sequence, err == nil
}
