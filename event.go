package runlane

import (
	"bytes"
	"encoding/json"
	"maps"
	"time"
)

// EventType names a kind of event.
type EventType string

// The types of events.
const (
	// EventCreated is the first event of every run.
	EventCreated EventType = "run.created"
	// EventDeliveryRequested records the intent to wake a worker. The storage adds an outbox row for it.
	EventDeliveryRequested EventType = "run.delivery_requested"
	// EventDebounced replaces the payload of a run that waits for its first time, and moves that time.
	EventDebounced EventType = "run.debounced"
	// EventLeaseClaimed gives a worker the run.
	EventLeaseClaimed EventType = "run.lease_claimed"
	// EventLeaseHeartbeat extends the worker's lease.
	EventLeaseHeartbeat EventType = "run.lease_heartbeat"
	// EventStarted begins the next attempt.
	EventStarted EventType = "run.started"
	// EventSucceeded ends the run successfully.
	EventSucceeded EventType = "run.succeeded"
	EventFailed    EventType = "run.failed"
	// EventRetryScheduled ends the attempt with a failure and plans another.
	EventRetryScheduled EventType = "run.retry_scheduled"
	// EventReleased ends the attempt; the run waits and resumes.
	EventReleased EventType = "run.released"
	// EventResumed ends a wait early.
	EventResumed EventType = "run.resumed"
	// EventCancellationRequested asks the owner of a running run to stop.
	EventCancellationRequested EventType = "run.cancellation_requested"
	EventCancelled             EventType = "run.cancelled"
)

// eventKinds has a row for each type: its name and its body. A new type is a constant, a row, and a struct with its
// methods; its effect on a run is in core/internal/reducer/events.go.
var eventKinds = [...]struct {
	name EventType
	body func() EventBody // empty
}{
	{EventCreated, func() EventBody { return &RunCreated{} }},
	{EventDeliveryRequested, func() EventBody { return &RunDeliveryRequested{} }},
	{EventDebounced, func() EventBody { return &RunDebounced{} }},
	{EventLeaseClaimed, func() EventBody { return &RunLeaseClaimed{} }},
	{EventLeaseHeartbeat, func() EventBody { return &RunLeaseHeartbeat{} }},
	{EventStarted, func() EventBody { return &RunStarted{} }},
	{EventSucceeded, func() EventBody { return &RunSucceeded{} }},
	{EventFailed, func() EventBody { return &RunFailed{} }},
	{EventRetryScheduled, func() EventBody { return &RunRetryScheduled{} }},
	{EventReleased, func() EventBody { return &RunReleased{} }},
	{EventResumed, func() EventBody { return &RunResumed{} }},
	{EventCancellationRequested, func() EventBody { return &RunCancellationRequested{} }},
	{EventCancelled, func() EventBody { return &RunCancelled{} }},
}

// EventTypes lists the types known to this version.
func EventTypes() []EventType {
	names := make([]EventType, len(eventKinds))
	for i, kind := range eventKinds {
		names[i] = kind.name
	}
	return names
}

// newBody returns an empty body of type t. A body of an unknown type keeps its bytes.
func newBody(t EventType) EventBody {
	for i := range eventKinds {
		if eventKinds[i].name == t {
			return eventKinds[i].body()
		}
	}
	return &UnknownEvent{Type: t}
}

// Event is one step of a run's history: a common header and a Body of one of the types below. Its JSON has the header's
// fields, "type", and the body as "data", without payload and output bytes.
type Event struct {
	RunID        RunID
	Environment  Environment
	OccurredAt   time.Time
	Actor        Actor
	Meta         map[string]string // a release's meta, an operator's reason
	TraceCarrier map[string]string
	Body         EventBody
}

// EventRecord is a stored event: with an opaque ID and its place in the run's history, counted from 1.
type EventRecord struct {
	ID       string
	Sequence int64
	Event
}

// EventBody is a closed set: *RunCreated, *RunDeliveryRequested, … *RunCancelled, or *UnknownEvent for an event of a
// newer version. Only pointers are bodies, so a type switch needs one case for each.
type EventBody interface {
	eventType() EventType
	cloneBody() EventBody
}

type (
	// RunCreated holds the trigger's decisions. Payload is JSON, kept apart from the event's JSON so that its bytes
	// never change.
	RunCreated struct {
		TaskID         TaskID       `json:"taskId"`
		Queue          QueueName    `json:"queue"`
		Payload        []byte       `json:"-"`
		RunAt          time.Time    `json:"runAt,omitzero"`
		ConcurrencyKey string       `json:"concurrencyKey,omitempty"`
		IdempotencyKey string       `json:"idempotencyKey,omitempty"`
		Retention      KeyRetention `json:"idempotencyRetention,omitzero"`
		Debounced      *Debounced   `json:"debounced,omitempty"`
		SingletonKey   string       `json:"singletonKey,omitempty"`
		Priority       int          `json:"priority,omitempty"`
		Source         Source       `json:"source"`
	}
	// RunDeliveryRequested asks for a wakeup. Wait is set only on the second event of a creation: what the new run
	// waits for before its first attempt.
	RunDeliveryRequested struct {
		Delivery Delivery `json:"delivery"`
		Wait     *Waiting `json:"wait,omitempty"`
	}
	// RunDebounced is a later trigger of a debounced run. The run has its Payload from here on; histories do not keep it
	// here, but return the run's payload with run.created.
	RunDebounced struct {
		RunAt   time.Time `json:"runAt"`
		Payload []byte    `json:"-"`
	}
	// RunLeaseClaimed names the new owner.
	RunLeaseClaimed struct {
		Lease Lease `json:"lease"`
	}
	// RunLeaseHeartbeat carries the same token and worker with a later end.
	RunLeaseHeartbeat struct {
		Lease Lease `json:"lease"`
	}
	// RunStarted begins attempt number Attempt.
	RunStarted struct {
		Attempt int `json:"attempt"`
	}
	// RunSucceeded ends the attempt and the run. Output is JSON, nil for none, kept apart from the event's JSON.
	RunSucceeded struct {
		Attempt int    `json:"attempt"`
		Output  []byte `json:"-"`
	}
	// RunFailed ends the attempt and the run.
	RunFailed struct {
		Attempt int     `json:"attempt"`
		Failure Failure `json:"failure"`
	}
	// RunRetryScheduled ends the attempt; the run is due again at RetryAt.
	RunRetryScheduled struct {
		Attempt int       `json:"attempt"`
		Failure Failure   `json:"failure"`
		RetryAt time.Time `json:"retryAt"`
	}
	// RunReleased ends the attempt without a failure; the run is due again at ResumeAt. Wait may end the wait earlier;
	// if it is nil, only an operator can.
	RunReleased struct {
		Attempt  int       `json:"attempt"`
		ResumeAt time.Time `json:"resumeAt"`
		Reason   string    `json:"reason"`
		Wait     *Waiting  `json:"wait,omitempty"`
	}
	// RunResumed ends a wait; the run is due at the event's time. By is the kind of event that ended it, with the
	// signal's Name and ID. "" means an operator, with a Reason.
	RunResumed struct {
		By     WaitingFor `json:"by,omitempty"`
		Name   string     `json:"name,omitempty"`
		ID     string     `json:"id,omitempty"`
		Reason string     `json:"reason,omitempty"`
	}
	// RunCancellationRequested asks the owner to stop.
	RunCancellationRequested struct {
		Reason string `json:"reason,omitempty"`
	}
	// RunCancelled ends the run.
	RunCancelled struct {
		Reason string `json:"reason,omitempty"`
	}
	// UnknownEvent keeps the body of an unknown type: listing shows it, projecting refuses it.
	UnknownEvent struct {
		Type EventType
		Data json.RawMessage
	}
)

// Delivery is the durable intent to wake a worker. With DispatchExpiresAt it also reserves a slot of a bounded queue.
type Delivery struct {
	Environment       Environment       `json:"environment,omitempty"`
	RunID             RunID             `json:"runId,omitempty"`
	Queue             QueueName         `json:"queue,omitempty"`
	AvailableAt       time.Time         `json:"availableAt"`
	RequestedAt       time.Time         `json:"requestedAt"`
	DispatchExpiresAt time.Time         `json:"dispatchExpiresAt,omitzero"`
	TraceCarrier      map[string]string `json:"traceCarrier,omitzero"` // nil keeps the run's; an empty one replaces it
}

func (*RunCreated) eventType() EventType               { return EventCreated }
func (*RunDeliveryRequested) eventType() EventType     { return EventDeliveryRequested }
func (*RunDebounced) eventType() EventType             { return EventDebounced }
func (*RunLeaseClaimed) eventType() EventType          { return EventLeaseClaimed }
func (*RunLeaseHeartbeat) eventType() EventType        { return EventLeaseHeartbeat }
func (*RunStarted) eventType() EventType               { return EventStarted }
func (*RunSucceeded) eventType() EventType             { return EventSucceeded }
func (*RunFailed) eventType() EventType                { return EventFailed }
func (*RunRetryScheduled) eventType() EventType        { return EventRetryScheduled }
func (*RunReleased) eventType() EventType              { return EventReleased }
func (*RunResumed) eventType() EventType               { return EventResumed }
func (*RunCancellationRequested) eventType() EventType { return EventCancellationRequested }
func (*RunCancelled) eventType() EventType             { return EventCancelled }
func (u *UnknownEvent) eventType() EventType           { return u.Type }

func (b *RunCreated) cloneBody() EventBody {
	c := *b
	c.Payload = bytes.Clone(b.Payload)
	c.Debounced = b.Debounced.Clone()
	return &c
}

func (b *RunDebounced) cloneBody() EventBody {
	c := *b
	c.Payload = bytes.Clone(b.Payload)
	return &c
}

func (b *RunDeliveryRequested) cloneBody() EventBody {
	c := *b
	c.Delivery.TraceCarrier = maps.Clone(b.Delivery.TraceCarrier)
	c.Wait = b.Wait.Clone()
	return &c
}

func (b *RunLeaseClaimed) cloneBody() EventBody   { c := *b; return &c }
func (b *RunLeaseHeartbeat) cloneBody() EventBody { c := *b; return &c }
func (b *RunStarted) cloneBody() EventBody        { c := *b; return &c }

func (b *RunSucceeded) cloneBody() EventBody {
	c := *b
	c.Output = bytes.Clone(b.Output)
	return &c
}

func (b *RunFailed) cloneBody() EventBody {
	c := *b
	c.Failure = b.Failure.Clone()
	return &c
}

func (b *RunRetryScheduled) cloneBody() EventBody {
	c := *b
	c.Failure = b.Failure.Clone()
	return &c
}

func (b *RunReleased) cloneBody() EventBody {
	c := *b
	c.Wait = b.Wait.Clone()
	return &c
}

func (b *RunResumed) cloneBody() EventBody               { c := *b; return &c }
func (b *RunCancellationRequested) cloneBody() EventBody { c := *b; return &c }
func (b *RunCancelled) cloneBody() EventBody             { c := *b; return &c }

func (u *UnknownEvent) cloneBody() EventBody {
	c := *u
	c.Data = bytes.Clone(u.Data)
	return &c
}

// Type returns the body's type, or "" without a body.
func (e Event) Type() EventType {
	if e.Body == nil {
		return ""
	}
	return e.Body.eventType()
}

// Clone returns a deep copy. Storages use it on the way in and out.
func (e Event) Clone() Event {
	e.Meta = maps.Clone(e.Meta)
	e.TraceCarrier = maps.Clone(e.TraceCarrier)
	if e.Body != nil {
		e.Body = e.Body.cloneBody()
	}
	return e
}

// AtRest returns a deep copy in the form that every storage keeps and returns: times in UTC and whole milliseconds, the
// environment spelled out, no empty meta.
func (e Event) AtRest() Event {
	e = e.Clone()
	e.Environment = Environment(e.Environment.Name())
	if len(e.Meta) == 0 {
		e.Meta = nil
	}
	e.OccurredAt = UTCMillis(e.OccurredAt)
	if body, ok := e.Body.(interface{ restIn(e Environment) }); ok {
		body.restIn(e.Environment)
	}
	return e
}

// The bodies with times.

func (b *RunCreated) restIn(Environment) {
	b.RunAt, b.Source.FireTime = UTCMillis(b.RunAt), UTCMillis(b.Source.FireTime)
	b.Source.CreatedAt = UTCMillis(b.Source.CreatedAt)
	if b.Debounced != nil {
		b.Debounced.Latest = UTCMillis(b.Debounced.Latest)
	}
}

func (b *RunDebounced) restIn(Environment) { b.RunAt, b.Payload = UTCMillis(b.RunAt), nil }

func (b *RunDeliveryRequested) restIn(e Environment) {
	d := &b.Delivery
	d.Environment = e
	d.AvailableAt, d.RequestedAt = UTCMillis(d.AvailableAt), UTCMillis(d.RequestedAt)
	d.DispatchExpiresAt = UTCMillis(d.DispatchExpiresAt)
	b.Wait = b.Wait.AtRest()
}

func (b *RunLeaseClaimed) restIn(Environment)   { b.Lease.ExpiresAt = UTCMillis(b.Lease.ExpiresAt) }
func (b *RunLeaseHeartbeat) restIn(Environment) { b.Lease.ExpiresAt = UTCMillis(b.Lease.ExpiresAt) }
func (b *RunRetryScheduled) restIn(Environment) { b.RetryAt = UTCMillis(b.RetryAt) }
func (b *RunReleased) restIn(Environment) {
	b.ResumeAt, b.Wait = UTCMillis(b.ResumeAt), b.Wait.AtRest()
}

// Clone returns a deep copy.
func (r EventRecord) Clone() EventRecord {
	r.Event = r.Event.Clone()
	return r
}
