package rows

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/dynamostore/internal/item"
	"github.com/runlane/runlane-go/lane"
)

const maxLogBytes = 300 << 10

// Log is one commit: its events, which never change, and the states of its delivery rows.
type Log struct {
	PK         string     `dynamodbav:"pk"`
	SK         string     `dynamodbav:"sk"`
	Commit     string     `dynamodbav:"ci"`
	Events     []byte     `dynamodbav:"ev"` // JSON list of storedEvent, compressed where that saves a unit
	Deliveries []Delivery `dynamodbav:"dl,omitempty"`
	// "1" if a row starts pending and due, for the stream filter
	Relay string `dynamodbav:"relay,omitempty"`
}

// Delivery is the state of an outbox row. Event and run have the content of the wakeup.
type Delivery struct {
	Status      string            `dynamodbav:"st"`
	AvailableAt Millis            `dynamodbav:"av"` // as requested
	RequestedAt Millis            `dynamodbav:"rq"`
	NextAt      Millis            `dynamodbav:"nx,omitempty"` // next try, after a failure or a requeue
	Group       string            `dynamodbav:"gr,omitempty"` // concurrency key; none: the run ID
	Trace       map[string]string `dynamodbav:"tc,omitempty"`
	Token       string            `dynamodbav:"ct,omitempty"`
	ClaimUntil  Millis            `dynamodbav:"cu,omitempty"`
	Attempts    int               `dynamodbav:"at,omitempty"`
	Published   Millis            `dynamodbav:"pa,omitempty"`
	FirstSent   Millis            `dynamodbav:"pf,omitempty"` // first publication since the run was last claimed
	FailureCode string            `dynamodbav:"fc,omitempty"`
	Failure     string            `dynamodbav:"fm,omitempty"`
	FailureMeta map[string]string `dynamodbav:"fx,omitempty"`
	DeadAt      Millis            `dynamodbav:"dd,omitempty"`
	// ID of the last requeue, by which a repeated one recognizes itself
	Requeued string `dynamodbav:"rd,omitempty"`
}

// due is when a publisher may take the row.
func (d *Delivery) due() Millis {
	switch lane.OutboxStatus(d.Status) {
	case lane.OutboxClaimed:
		return max(d.ClaimUntil, d.AvailableAt)
	default:
		return max(d.NextAt, d.AvailableAt)
	}
}

func (d *Delivery) State() lane.OutboxStatus { return lane.OutboxStatus(d.Status) }

// Claimable reports whether the row may be claimed, if it is its run's latest.
func (d *Delivery) Claimable(at Millis) bool {
	switch d.State() {
	case lane.OutboxPending, lane.OutboxFailed, lane.OutboxClaimed:
		return d.due() <= at
	default:
		return false
	}
}

// Redelivery distances: 10 minutes after the first publication, then doubling, at most 6 hours.
const (
	RedeliverFirst = 10 * time.Minute
	redeliverMost  = 6 * time.Hour
)

// RedeliverAt is when an unclaimed published wakeup is sent again: 10 minutes after the first publication, 20 after the
// second, 40 after the third.
func (d *Delivery) RedeliverAt() Millis {
	published := max(d.Published, d.AvailableAt)
	first := d.FirstSent
	if first == 0 {
		first = published
	}
	distance := min(time.Duration(published-first)*time.Millisecond+RedeliverFirst, redeliverMost)
	return published + Millis(distance.Milliseconds())
}

func (d *Delivery) Message(key lane.RunKey, queue runlane.QueueName, id string) lane.OutboxMessage {
	m := lane.OutboxMessage{
		OutboxRef:   lane.OutboxRef{ID: id, ClaimToken: d.Token},
		Wakeup:      lane.Wakeup{RunKey: key, Queue: queue, RequestedAt: d.RequestedAt.Time(), TraceCarrier: d.Trace},
		GroupKey:    d.Group,
		Status:      d.State(),
		Attempts:    d.Attempts,
		ClaimUntil:  d.ClaimUntil.Time(),
		AvailableAt: max(d.AvailableAt, d.NextAt).Time(),
		Failure:     runlane.Failure{Code: runlane.ErrorCode(d.FailureCode), Message: d.Failure, Meta: d.FailureMeta},
	}
	if m.GroupKey == "" {
		m.GroupKey = string(key.RunID)
	}
	return m
}

// storedEvent is a stored event: the header without the fields that the key has, and the body as package runlane
// encodes it.
type storedEvent struct {
	Type  runlane.EventType `json:"t"`
	At    int64             `json:"o"`
	Actor *runlane.Actor    `json:"a,omitempty"` // absent: the system
	Meta  map[string]string `json:"m,omitempty"`
	Trace map[string]string `json:"c,omitzero"`
	Data  json.RawMessage   `json:"d"`
}

func encodeEvents(t *lane.Transition) ([]byte, error) {
	stored := make([]storedEvent, len(t.Events))
	for i, e := range t.Events {
		s := storedEvent{Type: e.Type(), At: e.OccurredAt.UnixMilli(), Meta: e.Meta, Trace: e.TraceCarrier}
		if e.Actor != runlane.SystemActor {
			s.Actor = &e.Actor
		}
		body := e.Body
		if b, ok := body.(*runlane.RunDeliveryRequested); ok {
			short := *b // environment, run and queue are the run's
			short.Delivery.Environment, short.Delivery.RunID, short.Delivery.Queue = "", "", ""
			body = &short
		}
		data, err := runlane.MarshalBody(body)
		if err != nil {
			return nil, err
		}
		s.Data = data
		stored[i] = s
	}
	b, err := json.Marshal(stored)
	if err != nil {
		return nil, &runlane.Error{Code: runlane.ErrInternal, Message: "events do not marshal", Cause: err}
	}
	const others = 256 // bytes of keys, commit ID and one delivery, roughly
	if len(b) <= maxOpenedBytes && item.Units(len(b)+others) > 1 {
		if small := compress(b); item.Units(len(small)+others) < item.Units(len(b)+others) {
			b = small
		}
	}
	if len(b) > maxLogBytes {
		return nil, &runlane.Error{
			Code:    runlane.ErrContractViolation,
			RunID:   t.Projected.ID,
			Message: fmt.Sprintf("events have %d bytes, more than %d", len(b), maxLogBytes),
		}
	}
	return b, nil
}

var zstdMagic = []byte{0x28, 0xB5, 0x2F, 0xFD} // no JSON list begins like this

func decodeEvents(b []byte) ([]storedEvent, error) {
	if bytes.HasPrefix(b, zstdMagic) {
		var err error
		if b, err = decompress(b); err != nil {
			return nil, err
		}
	}
	var stored []storedEvent
	if err := json.Unmarshal(b, &stored); err != nil {
		return nil, &runlane.Error{
			Code:    runlane.ErrInvariantViolation,
			Message: "stored events do not decode",
			Cause:   err,
		}
	}
	return stored, nil
}

// Records decodes the events as package lane defines them, without payload and output.
func (l *Log) Records(key lane.RunKey, queue runlane.QueueName, first int64) ([]runlane.EventRecord, error) {
	stored, err := decodeEvents(l.Events)
	if err != nil {
		return nil, err
	}
	records := make([]runlane.EventRecord, len(stored))
	for i, s := range stored {
		body, err := runlane.UnmarshalBody(s.Type, s.Data)
		if err != nil {
			return nil, err
		}
		if b, ok := body.(*runlane.RunDeliveryRequested); ok {
			b.Delivery.Environment, b.Delivery.RunID, b.Delivery.Queue = key.Environment, key.RunID, queue
		}
		sequence := first + int64(i)
		records[i] = runlane.EventRecord{ID: eventID(key.RunID, sequence), Sequence: sequence, Event: runlane.Event{
			RunID:        key.RunID,
			Environment:  key.Environment,
			OccurredAt:   time.UnixMilli(s.At).UTC(),
			Actor:        runlane.SystemActor,
			Meta:         s.Meta,
			TraceCarrier: s.Trace,
			Body:         body,
		}}
		if s.Actor != nil {
			records[i].Actor = *s.Actor
		}
	}
	return records, nil
}

// proof shows that this commit was made, even much later.
func (l *Log) proof() item.Proof {
	return item.Proof{Operation: "settle commit", Pk: l.PK, Sk: l.SK, Values: item.Item{"ci": item.Text(l.Commit)}}
}

func (l *Log) First() (int64, error) {
	n, err := strconv.ParseInt(strings.TrimPrefix(l.SK, LogPrefix), 10, 64)
	if err != nil {
		return 0, &runlane.Error{Code: runlane.ErrInvariantViolation, Message: "log item has a bad key", Cause: err}
	}
	return n, nil
}
