package memlane

import (
	"bytes"
	"maps"
	"strconv"
	"strings"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// receipt is a commit as its caller gets it: their own copy. Nearly all commits have at most two events and one delivery; those
// are in one piece of memory, together with their bodies.
type receipt struct {
	commit      lane.Commit
	acquisition lane.Acquisition
	run         runlane.Run
	ids         []string // of the events, and so of their outbox rows
	room        bodyRoom

	idRoom    [2]string
	eventRoom [2]runlane.EventRecord
}

// creationReceipt has room for what creations have.
type creationReceipt struct {
	receipt
	created    runlane.RunCreated
	delivery   runlane.RunDeliveryRequested
	outboxRoom [1]lane.OutboxMessage
}

// attemptReceipt has room for what a claim or a success has.
type attemptReceipt struct {
	receipt
	claimed   runlane.RunLeaseClaimed
	started   runlane.RunStarted
	succeeded runlane.RunSucceeded
}

// newReceipt holds what is known before the commit: the projection, in whole milliseconds, and the ids.
func newReceipt(t *lane.Transition) *receipt {
	var r *receipt
	if t.Creates() {
		c := &creationReceipt{}
		r = &c.receipt
		r.room, r.commit.Outbox = bodyRoom{created: &c.created, delivery: &c.delivery}, c.outboxRoom[:0]
	} else {
		a := &attemptReceipt{}
		r = &a.receipt
		r.room = bodyRoom{claimed: &a.claimed, started: &a.started, succeeded: &a.succeeded}
	}
	p := t.Projected
	r.run = *p
	r.run.Environment = runlane.Environment(p.Environment.Name())
	r.run.Payload, r.run.Output = nil, nil // record copies them once
	r.run.Failure = p.Failure.Clone()
	r.run.TraceCarrier, r.run.Meta = maps.Clone(p.TraceCarrier), maps.Clone(p.Meta)
	round(&r.run.RunAt, &r.run.StartedAt, &r.run.FinishedAt, &r.run.DispatchedAt, &r.run.DispatchExpiresAt, &r.run.CreatedAt,
		&r.run.UpdatedAt, &r.run.Lease.ExpiresAt, &r.run.Source.FireTime)
	r.ids = appendIDs(r.idRoom[:0], p.ID, t.ExpectedSequence+1, len(t.Events))
	r.commit.Run, r.commit.Events = &r.run, r.eventRoom[:0]
	return r
}

// record adds the events as they were stored, and payload and output as the projection gave them. The run shares these with the
// event that brought them: both are the caller's.
func (r *receipt) record(e *entry, t *lane.Transition, events []event) {
	for i := range events {
		record := events[i].record(&r.room, e, t.ExpectedSequence+int64(i)+1, r.ids[i])
		switch body := record.Body.(type) {
		case *runlane.RunCreated:
			r.run.Payload = body.Payload
		case *runlane.RunSucceeded:
			r.run.Output = body.Output
		default: // brings no bytes
		}
		r.commit.Events = append(r.commit.Events, record)
	}
	if r.run.Payload == nil {
		r.run.Payload = bytes.Clone(t.Projected.Payload)
	}
}

// appendIDs makes the ids of n events, as parts of one string.
func appendIDs(ids []string, id runlane.RunID, first int64, n int) []string {
	var all strings.Builder
	all.Grow(n * (len(id) + 1 + 4))
	for i := range n {
		var number [20]byte
		start := all.Len()
		all.WriteString(string(id))
		all.WriteByte(':')
		all.Write(strconv.AppendInt(number[:0], first+int64(i), 10))
		ids = append(ids, all.String()[start:])
	}
	return ids
}
