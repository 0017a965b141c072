package record

import (
	"encoding/binary"
	"slices"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/embedded"
)

// eventTypes are stored by index, other types as text. Only append.
var eventTypes = []runlane.EventType{
	runlane.EventCreated, runlane.EventDeliveryRequested, runlane.EventLeaseClaimed, runlane.EventLeaseHeartbeat,
	runlane.EventStarted, runlane.EventSucceeded, runlane.EventFailed, runlane.EventRetryScheduled,
	runlane.EventReleased, runlane.EventCancellationRequested, runlane.EventCancelled,
}

const (
	fieldEventType = iota + 1
	fieldEventTypeName
	fieldEventAt
	fieldEventActorType
	fieldEventActorID
	fieldEventMeta
	fieldEventTrace
	fieldEventBody // JSON, for types without a shorter form
	fieldEventRunAt
	fieldEventAvailableAt
	fieldEventRequestedAt
	fieldEventExpiresAt
	fieldEventToken
	fieldEventWorker
	fieldEventAttempt
	fieldEventBodyTrace
	fieldEventWait // JSON
)

// AppendEvent appends an encoded event. Of run.created it writes only RunAt: the run keeps the other fields unchanged.
// base is the run's creation time.
func AppendEvent(events []byte, e *runlane.Event, base embedded.Millis) ([]byte, error) {
	w := writer{b: make([]byte, 0, 96)}
	if n := slices.Index(eventTypes, e.Type()); n >= 0 {
		w.number(fieldEventType, int64(n+1))
	} else {
		w.text(fieldEventTypeName, string(e.Type()))
	}
	w.instant(fieldEventAt, base, embedded.At(e.OccurredAt))
	if e.Actor != runlane.SystemActor {
		w.bytes(fieldEventActorType, []byte(e.Actor.Type)) // even if empty
		w.text(fieldEventActorID, e.Actor.ID)
	}
	w.texts(fieldEventMeta, e.Meta)
	w.texts(fieldEventTrace, e.TraceCarrier)
	switch body := e.Body.(type) {
	case *runlane.RunCreated:
		w.instant(fieldEventRunAt, base, embedded.At(body.RunAt))
	case *runlane.RunDeliveryRequested:
		w.instant(fieldEventAvailableAt, base, embedded.At(body.Delivery.AvailableAt))
		w.instant(fieldEventRequestedAt, base, embedded.At(body.Delivery.RequestedAt))
		w.instant(fieldEventExpiresAt, base, embedded.At(body.Delivery.DispatchExpiresAt))
		w.texts(fieldEventBodyTrace, body.Delivery.TraceCarrier)
		w.json(fieldEventWait, body.Wait.AtRest())
	case *runlane.RunLeaseClaimed:
		w.lease(body.Lease, base)
	case *runlane.RunLeaseHeartbeat:
		w.lease(body.Lease, base)
	case *runlane.RunStarted:
		w.number(fieldEventAttempt, int64(body.Attempt))
	case *runlane.RunSucceeded:
		w.number(fieldEventAttempt, int64(body.Attempt))
	default:
		data, err := runlane.MarshalBody(e.AtRest().Body)
		if err != nil {
			return nil, err
		}
		w.bytes(fieldEventBody, data)
	}
	events = binary.AppendUvarint(events, uint64(len(w.b)))
	return append(events, w.b...), nil
}

func (w *writer) lease(l runlane.Lease, base embedded.Millis) {
	w.text(fieldEventToken, l.Token)
	w.text(fieldEventWorker, l.WorkerID)
	w.instant(fieldEventExpiresAt, base, embedded.At(l.ExpiresAt))
}

// stored is an event with the fields of all bodies.
type stored struct {
	kind                                 runlane.EventType
	event                                runlane.Event
	body                                 []byte
	runAt, available, requested, expires embedded.Millis
	token, worker                        string
	attempt                              int
	trace                                map[string]string
	wait                                 *runlane.Waiting
}

// Events decodes consecutive events of a run, starting at sequence first. run has the payload and output of the
// events.
func Events(run *runlane.Run, b []byte, first int64) ([]runlane.EventRecord, error) {
	base := embedded.At(run.CreatedAt)
	var records []runlane.EventRecord
	in := reader{b: b}
	for len(in.b) > 0 {
		piece := in.piece()
		if in.err != nil {
			return nil, damaged(run.ID, in.err)
		}
		s, err := decodeEvent(piece, base)
		if err != nil {
			return nil, damaged(run.ID, err)
		}
		s.event.RunID, s.event.Environment = run.ID, run.Environment
		if s.event.Body, err = s.content(run); err != nil {
			return nil, err
		}
		sequence := first + int64(len(records))
		id := embedded.EventID(run.ID, sequence)
		records = append(records, runlane.EventRecord{ID: id, Sequence: sequence, Event: s.event})
	}
	return records, nil
}

func decodeEvent(b []byte, base embedded.Millis) (*stored, error) {
	s := &stored{runAt: embedded.Absent, available: embedded.Absent, requested: embedded.Absent, expires: embedded.Absent}
	s.event.Actor = runlane.SystemActor
	in := reader{b: b}
	for {
		f, ok := in.next()
		if !ok {
			return s, in.err
		}
		switch f.number {
		case fieldEventType:
			if f.n < 1 || f.n > int64(len(eventTypes)) {
				return nil, errCut
			}
			s.kind = eventTypes[f.n-1]
		case fieldEventTypeName:
			s.kind = runlane.EventType(f.bytes)
		case fieldEventAt:
			s.event.OccurredAt = instantFrom(base, f.n).Time()
		case fieldEventActorType:
			s.event.Actor = runlane.Actor{Type: runlane.ActorType(f.bytes)}
		case fieldEventActorID:
			s.event.Actor.ID = string(f.bytes)
		case fieldEventMeta:
			s.event.Meta = in.textsIn(f.bytes)
		case fieldEventTrace:
			s.event.TraceCarrier = in.textsIn(f.bytes)
		case fieldEventBody:
			s.body = f.bytes
		case fieldEventRunAt:
			s.runAt = instantFrom(base, f.n)
		case fieldEventAvailableAt:
			s.available = instantFrom(base, f.n)
		case fieldEventRequestedAt:
			s.requested = instantFrom(base, f.n)
		case fieldEventExpiresAt:
			s.expires = instantFrom(base, f.n)
		case fieldEventToken:
			s.token = string(f.bytes)
		case fieldEventWorker:
			s.worker = string(f.bytes)
		case fieldEventAttempt:
			s.attempt = int(f.n)
		case fieldEventBodyTrace:
			s.trace = in.textsIn(f.bytes)
		case fieldEventWait:
			s.wait = in.waiting(f.bytes)
		}
	}
}

func (s *stored) content(run *runlane.Run) (runlane.EventBody, error) {
	lease := runlane.Lease{Token: s.token, WorkerID: s.worker, ExpiresAt: s.expires.Time()}
	switch s.kind {
	case runlane.EventCreated:
		return &runlane.RunCreated{
			TaskID: run.TaskID, Queue: run.Queue, Payload: slices.Clone(run.Payload), RunAt: s.runAt.Time(),
			ConcurrencyKey: run.ConcurrencyKey, IdempotencyKey: run.IdempotencyKey, Retention: run.Retention,
			Debounced: debouncedAtFirst(run.Debounced), SingletonKey: run.SingletonKey, Priority: run.Priority, Source: run.Source,
		}, nil
	case runlane.EventDeliveryRequested:
		return &runlane.RunDeliveryRequested{Delivery: runlane.Delivery{
			Environment: run.Environment, RunID: run.ID, Queue: run.Queue, AvailableAt: s.available.Time(),
			RequestedAt: s.requested.Time(), DispatchExpiresAt: s.expires.Time(), TraceCarrier: s.trace,
		}, Wait: s.wait}, nil
	case runlane.EventLeaseClaimed:
		return &runlane.RunLeaseClaimed{Lease: lease}, nil
	case runlane.EventLeaseHeartbeat:
		return &runlane.RunLeaseHeartbeat{Lease: lease}, nil
	case runlane.EventStarted:
		return &runlane.RunStarted{Attempt: s.attempt}, nil
	case runlane.EventSucceeded:
		return &runlane.RunSucceeded{Attempt: s.attempt, Output: slices.Clone(run.Output)}, nil
	default:
		return runlane.UnmarshalBody(s.kind, s.body)
	}
}

// debouncedAtFirst is what a debounced run knew when it was created.
func debouncedAtFirst(d *runlane.Debounced) *runlane.Debounced {
	if d = d.Clone(); d != nil {
		d.Triggers = 1
	}
	return d
}
