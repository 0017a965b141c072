package sqlitelane

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"maps"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/embedded"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/sqlitelane/internal/record"
)

// prepared is a transition in the file's format. Callers prepare in parallel, before the single writer's transaction.
type prepared struct {
	*lane.Transition

	malformed error // by Transition.Validate; reported after the sequence check
	run       *runlane.Run
	events    [][]byte
	replaced  []byte // the payload that takes the place of the run's; nil: none does
	payload   shelved
	output    shelved
}

// shelved is a payload or output as stored.
type shelved struct {
	place record.Place
	bytes []byte
	sum   int64
}

func shelve(b []byte) shelved {
	s := shelved{}
	s.place, s.bytes = record.Shelve(b)
	return s
}

// shelvePayload adds the checksum that later commands' payloads are compared with.
func shelvePayload(b []byte) shelved {
	s := shelve(b)
	if b != nil {
		sum := sha256.Sum256(b)
		s.sum = int64(binary.BigEndian.Uint64(sum[:])) // the bits
	}
	return s
}

// prepare returns an error only for a command that cannot be compared with the stored run.
func prepare(t *lane.Transition) (*prepared, error) {
	if t.Projected == nil {
		return nil, t.Validate()
	}
	p := &prepared{Transition: t}
	if p.malformed = t.Validate(); p.malformed != nil {
		return p, nil //nolint:nilerr // it is reported after the sequence
	}
	p.run = lane.RunAtRest(t.Projected)
	base := embedded.At(t.Projected.CreatedAt)
	for i := range t.Events {
		encoded, err := record.AppendEvent(nil, &t.Events[i], base)
		if err != nil {
			return nil, err
		}
		p.events = append(p.events, encoded)
	}
	p.replaced, _ = lane.ReplacedPayload(t)
	p.payload, p.output = shelvePayload(t.Projected.Payload), shelve(t.Projected.Output)
	return p, nil
}

// judgeCommand refuses a command that contradicts itself or the run.
func judgeCommand(e *entry, p *prepared) error {
	if e == nil {
		return embedded.JudgeCommand(p.Transition, p.malformed, nil, "")
	}
	payload, sum := "", e.PayloadSum
	if p.replaced != nil {
		sum = shelvePayload(p.replaced).sum
	}
	if p.Projected.Payload != nil && p.payload.sum != sum { // maintenance reads runs without
		payload = "payload"
	}
	return embedded.JudgeCommand(p.Transition, p.malformed, &runlane.RunCreated{
		TaskID: e.Run.TaskID, Queue: e.Run.Queue, ConcurrencyKey: e.Run.ConcurrencyKey,
		IdempotencyKey: e.Run.IdempotencyKey, Retention: e.Run.Retention, SingletonKey: e.Run.SingletonKey,
		Debounced: e.Run.Debounced, Priority: e.Run.Priority, Source: e.Run.Source,
	}, payload)
}

// records returns the events as stored, for the caller.
func (p *prepared) records() []runlane.EventRecord {
	records := make([]runlane.EventRecord, len(p.Events))
	for i := range p.Events {
		sequence := p.ExpectedSequence + int64(i) + 1
		records[i] = runlane.EventRecord{
			ID: embedded.EventID(p.Projected.ID, sequence), Sequence: sequence, Event: lane.EventAtRest(p.Events[i]),
		}
	}
	return records
}

// keep stores a copy of the projection. The caller gets another copy.
func (e *entry) keep(p *prepared) {
	run := *p.run
	run.Payload, run.Output = e.Run.Payload, nil
	run.TraceCarrier, run.Meta = maps.Clone(run.TraceCarrier), maps.Clone(run.Meta)
	run.Failure, run.Waiting, run.Debounced = run.Failure.Clone(), run.Waiting.Clone(), run.Debounced.Clone()
	e.Run = run
	if e.n == 0 {
		created := p.Events[0].Body.(*runlane.RunCreated)
		payload := p.payload
		if p.Projected.Payload == nil {
			payload = shelvePayload(created.Payload)
		}
		e.Payload, e.PayloadSum, e.Run.Payload = payload.place, payload.sum, payload.inline()
	} else if p.replaced != nil {
		p.payload = shelvePayload(p.replaced)
		e.Payload, e.PayloadSum, e.Run.Payload = p.payload.place, p.payload.sum, p.payload.inline()
	}
	e.Output, e.Run.Output = p.output.place, p.output.inline()
}

// inline returns a copy of bytes stored in the record. Uncompressed bytes still belong to the caller.
func (s *shelved) inline() []byte {
	if s.place.Apart() {
		return nil
	}
	return bytes.Clone(s.bytes)
}
