package memlane

import (
	"bytes"
	"maps"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/embedded"
	"github.com/runlane/runlane-go/lane"
)

// receipt is a copy of a commit for its caller.
type receipt struct {
	commit      lane.Commit
	acquisition lane.Acquisition
	records     *records // nil if the caller wants none
}

// outboxReceipt has room for a creation's row.
type outboxReceipt struct {
	receipt
	outboxRoom [1]lane.OutboxMessage
}

// recordReceipt allocates the records with the receipt.
type recordReceipt struct {
	outboxReceipt
	recordRoom records
}

// records is a commit's events and run. Nearly all commits have at most two events, of a simple run's types.
type records struct {
	run       runlane.Run
	room      bodyRoom
	eventRoom [2]runlane.EventRecord

	created   runlane.RunCreated
	delivery  runlane.RunDeliveryRequested
	claimed   runlane.RunLeaseClaimed
	started   runlane.RunStarted
	succeeded runlane.RunSucceeded
}

func newReceipt(t *lane.Transition) *receipt {
	switch {
	case !t.WithoutRecords:
		r := &recordReceipt{}
		r.records, r.commit.Outbox = &r.recordRoom, r.outboxRoom[:0]
		return &r.receipt
	case t.Creates():
		r := &outboxReceipt{}
		r.commit.Outbox = r.outboxRoom[:0]
		return &r.receipt
	default:
		return &receipt{}
	}
}

// record adds copies of the events and the projection. The run shares payload and output with the copied events.
func (r *receipt) record(t *lane.Transition) {
	if r.records == nil {
		return
	}
	p, run := t.Projected, &r.records.run
	*run = *p
	run.Environment = runlane.Environment(p.Environment.Name())
	run.Payload, run.Output = nil, nil
	if run.Debounced = p.Debounced.Clone(); run.Debounced != nil {
		round(&run.Debounced.Latest)
	}
	run.Failure = p.Failure.Clone()
	run.TraceCarrier, run.Meta = maps.Clone(p.TraceCarrier), maps.Clone(p.Meta)
	round(
		&run.RunAt, &run.StartedAt, &run.FinishedAt, &run.DispatchedAt, &run.DispatchExpiresAt, &run.CreatedAt,
		&run.UpdatedAt,
		&run.Lease.ExpiresAt, &run.Source.FireTime, &run.Source.CreatedAt,
	)

	s := r.records
	s.room = bodyRoom{
		created:   &s.created,
		delivery:  &s.delivery,
		claimed:   &s.claimed,
		started:   &s.started,
		succeeded: &s.succeeded,
	}
	r.commit.Run, r.commit.Events = run, s.eventRoom[:0]
	for i := range t.Events {
		e, sequence := &t.Events[i], t.ExpectedSequence+int64(i)+1
		record := runlane.EventRecord{ID: embedded.EventID(p.ID, sequence), Sequence: sequence, Event: runlane.Event{
			RunID:        e.RunID,
			Environment:  run.Environment,
			OccurredAt:   runlane.UTCMillis(e.OccurredAt),
			Actor:        e.Actor,
			Body:         s.room.copyBody(e.Body),
			Meta:         maps.Clone(e.Meta),
			TraceCarrier: maps.Clone(e.TraceCarrier),
		}}
		switch body := record.Body.(type) {
		case *runlane.RunCreated:
			run.Payload = body.Payload
		case *runlane.RunSucceeded:
			run.Output = body.Output
		default: // no bytes
		}
		r.commit.Events = append(r.commit.Events, record)
	}
	if run.Payload == nil {
		run.Payload = bytes.Clone(p.Payload)
	}
}
