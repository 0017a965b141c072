package memlane

import (
	"maps"
	"unique"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/embedded"
)

// event is one event of a history; its position implies the sequence. body and notes are never modified.
type event struct {
	at    embedded.Millis
	actor unique.Handle[runlane.Actor] // interned: few actors cause most events
	notes *notes
	body  runlane.EventBody
}

// notes are fields that few events have.
type notes struct{ meta, traceCarrier map[string]string }

// copyEvents appends copies of a command's events, in whole milliseconds.
func (l *unpacked) copyEvents(events []runlane.Event) {
	for i := range events {
		e := &events[i]
		ours := event{at: embedded.At(e.OccurredAt), actor: unique.Make(e.Actor), body: l.room.copyBody(e.Body)}
		if e.Meta != nil || e.TraceCarrier != nil {
			ours.notes = &notes{maps.Clone(e.Meta), maps.Clone(e.TraceCarrier)}
		}
		l.events = append(l.events, ours)
	}
}

// record returns a copy of the event for callers.
func (ev *event) record(e *entry, sequence int64) runlane.EventRecord {
	r := runlane.EventRecord{
		ID: embedded.EventID(e.id, sequence), Sequence: sequence,
		Event: runlane.Event{
			RunID:       e.id,
			Environment: e.environment,
			OccurredAt:  ev.at.Time(),
			Actor:       ev.actor.Value(),
			Body:        new(bodyRoom).copyBody(ev.body),
		},
	}
	if ev.notes != nil {
		r.Meta, r.TraceCarrier = maps.Clone(ev.notes.meta), maps.Clone(ev.notes.traceCarrier)
	}
	return r
}
