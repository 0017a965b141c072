package runlane

import (
	"bytes"
	"encoding/json"
	"time"
)

// eventJSON is a stored event. The body has its own key, so its field names cannot collide with the header.
type eventJSON struct {
	ID           string            `json:"id,omitempty"`
	Sequence     int64             `json:"sequence,omitempty"`
	RunID        RunID             `json:"runId,omitempty"`
	Environment  Environment       `json:"environment,omitempty"`
	OccurredAt   time.Time         `json:"occurredAt"`
	Actor        Actor             `json:"actor"`
	Meta         map[string]string `json:"meta,omitempty"`
	TraceCarrier map[string]string `json:"traceCarrier,omitzero"`
	Type         EventType         `json:"type"`
	Data         json.RawMessage   `json:"data"`
}

// MarshalBody writes the body alone, without payload and output, for storages that keep the header in another form.
func MarshalBody(body EventBody) (json.RawMessage, error) {
	if u, ok := body.(*UnknownEvent); ok {
		return bytes.Clone(u.Data), nil
	}
	if body == nil {
		return nil, &Error{Code: ErrInvariantViolation, Message: "event has no body"}
	}
	return encode(body)
}

// UnmarshalBody reads the output of [MarshalBody]. An unknown type becomes an [UnknownEvent].
func UnmarshalBody(t EventType, data []byte) (EventBody, error) {
	body := newBody(t)
	if u, ok := body.(*UnknownEvent); ok {
		u.Data = bytes.Clone(data)
		return u, nil
	}
	if err := json.Unmarshal(data, body); err != nil {
		return nil, &Error{Code: ErrInvariantViolation, Message: "event " + string(t) + " does not decode", Cause: err}
	}
	return body, nil
}

// MarshalJSON writes the header with "type" and "data".
func (e Event) MarshalJSON() ([]byte, error) { return marshalEvent(EventRecord{Event: e}) }

// MarshalJSON writes the event's JSON with "id" and "sequence", which the embedded Event's method would lose.
func (r EventRecord) MarshalJSON() ([]byte, error) { return marshalEvent(r) }

func marshalEvent(r EventRecord) ([]byte, error) {
	data, err := MarshalBody(r.Body)
	if err != nil {
		return nil, err
	}
	return encode(eventJSON{
		ID:           r.ID,
		Sequence:     r.Sequence,
		RunID:        r.RunID,
		Environment:  r.Environment,
		OccurredAt:   r.OccurredAt,
		Actor:        r.Actor,
		Meta:         r.Meta,
		TraceCarrier: r.TraceCarrier,
		Type:         r.Type(),
		Data:         data,
	})
}

// UnmarshalJSON reads the output of MarshalJSON; the bytes of an unknown body are kept.
func (e *Event) UnmarshalJSON(b []byte) error {
	var r EventRecord
	if err := r.UnmarshalJSON(b); err != nil {
		return err
	}
	*e = r.Event
	return nil
}

// UnmarshalJSON reads the output of MarshalJSON; the bytes of an unknown body are kept.
func (r *EventRecord) UnmarshalJSON(b []byte) error {
	var in eventJSON
	if err := json.Unmarshal(b, &in); err != nil {
		return err
	}
	body, err := UnmarshalBody(in.Type, in.Data)
	if err != nil {
		return err
	}
	*r = EventRecord{ID: in.ID, Sequence: in.Sequence, Event: Event{
		RunID:        in.RunID,
		Environment:  in.Environment,
		OccurredAt:   in.OccurredAt,
		Actor:        in.Actor,
		Meta:         in.Meta,
		TraceCarrier: in.TraceCarrier,
		Body:         body,
	}}
	return nil
}

// encode is json.Marshal without HTML escapes, so text stays readable.
func encode(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
