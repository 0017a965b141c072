package record

import (
	"slices"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/embedded"
	"github.com/runlane/runlane-go/lane"
)

// Delivery is one row of the outbox: a wakeup to publish.
type Delivery struct {
	// Sequence is that of its run.delivery_requested, which names it.
	Sequence int64
	Status   lane.OutboxStatus
	Attempts int
	// Token is of the latest claim.
	Token       string
	RequestedAt embedded.Millis
	AvailableAt embedded.Millis
	ClaimUntil  embedded.Millis
	// Since is when it was published or given up.
	Since   embedded.Millis
	Failure runlane.Failure
}

// Withdrawn is the status of a delivery for which nothing is sent: the run waits for a slot. No caller sees one.
const Withdrawn lane.OutboxStatus = "withdrawn"

// outboxStatuses are stored as their places in this list. It only grows at its end.
var outboxStatuses = []lane.OutboxStatus{
	lane.OutboxPending, lane.OutboxClaimed, lane.OutboxPublished, lane.OutboxFailed, lane.OutboxDeadLettered, Withdrawn,
}

const (
	fieldRowSequence = iota + 1
	fieldRowStatus
	fieldRowAttempts
	fieldRowToken
	fieldRowRequestedAt
	fieldRowAvailableAt
	fieldRowClaimUntil
	fieldRowSince
	fieldRowFailureCode
	fieldRowFailureMessage
	fieldRowFailureMeta
)

func (d *Delivery) encode(w *writer, base embedded.Millis) {
	w.number(fieldRowSequence, d.Sequence)
	w.number(fieldRowStatus, int64(slices.Index(outboxStatuses, d.Status)))
	w.number(fieldRowAttempts, int64(d.Attempts))
	w.text(fieldRowToken, d.Token)
	w.instant(fieldRowRequestedAt, base, d.RequestedAt)
	w.instant(fieldRowAvailableAt, base, d.AvailableAt)
	w.instant(fieldRowClaimUntil, base, d.ClaimUntil)
	w.instant(fieldRowSince, base, d.Since)
	w.text(fieldRowFailureCode, string(d.Failure.Code))
	w.text(fieldRowFailureMessage, d.Failure.Message)
	w.texts(fieldRowFailureMeta, d.Failure.Meta)
}

func decodeDelivery(b []byte, base embedded.Millis) (Delivery, error) {
	d := Delivery{
		Status: lane.OutboxPending, RequestedAt: embedded.Absent, AvailableAt: embedded.Absent, ClaimUntil: embedded.Absent, Since: embedded.Absent,
	}
	in := reader{b: b}
	for {
		f, ok := in.next()
		if !ok {
			return d, in.err
		}
		switch f.number {
		case fieldRowSequence:
			d.Sequence = f.n
		case fieldRowStatus:
			if f.n < 0 || f.n >= int64(len(outboxStatuses)) {
				return d, errCut
			}
			d.Status = outboxStatuses[f.n]
		case fieldRowAttempts:
			d.Attempts = int(f.n)
		case fieldRowToken:
			d.Token = string(f.bytes)
		case fieldRowRequestedAt:
			d.RequestedAt = instantFrom(base, f.n)
		case fieldRowAvailableAt:
			d.AvailableAt = instantFrom(base, f.n)
		case fieldRowClaimUntil:
			d.ClaimUntil = instantFrom(base, f.n)
		case fieldRowSince:
			d.Since = instantFrom(base, f.n)
		case fieldRowFailureCode:
			d.Failure.Code = runlane.ErrorCode(f.bytes)
		case fieldRowFailureMessage:
			d.Failure.Message = string(f.bytes)
		case fieldRowFailureMeta:
			d.Failure.Meta = in.textsIn(f.bytes)
		}
	}
}

// Request makes the row of a delivery request, which supersedes every earlier one. Those stay only while a publisher
// holds them and may still mark them. token is for the writer's own claim.
func (r *Record) Request(
	sequence int64, d *runlane.Delivery, occurred embedded.Millis, initial lane.InitialOutbox, token string,
) *Delivery {
	row := Delivery{
		Sequence: sequence, Status: lane.OutboxPending, RequestedAt: embedded.At(d.RequestedAt), AvailableAt: embedded.At(d.AvailableAt),
		ClaimUntil: embedded.Absent, Since: embedded.Absent,
	}
	switch {
	case row.AvailableAt > occurred: // for later: always pending
	case initial.Published:
		row.Status = lane.OutboxPublished
		row.Since = occurred
		r.noteFirst(occurred)
	case !initial.ClaimUntil.IsZero():
		row.Status, row.ClaimUntil, row.Token = lane.OutboxClaimed, embedded.At(initial.ClaimUntil), token
	}
	return r.supersede(row)
}

// Withdraw supersedes every row and makes none that could be due.
func (r *Record) Withdraw(sequence int64) {
	r.supersede(Delivery{
		Sequence: sequence, Status: Withdrawn,
		RequestedAt: embedded.Absent, AvailableAt: embedded.Absent, ClaimUntil: embedded.Absent, Since: embedded.Absent,
	})
}

func (r *Record) supersede(row Delivery) *Delivery {
	r.Deliveries = slices.DeleteFunc(r.Deliveries, func(d Delivery) bool { return d.Status != lane.OutboxClaimed })
	r.Deliveries = append(r.Deliveries, row)
	return &r.Deliveries[len(r.Deliveries)-1]
}

// Live is the only row that can be due: the latest one, while the run is queued or scheduled.
func (r *Record) Live() *Delivery {
	status := r.Run.Status
	if len(r.Deliveries) == 0 || status != runlane.StatusQueued && status != runlane.StatusScheduled {
		return nil
	}
	if latest := &r.Deliveries[len(r.Deliveries)-1]; latest.Status != Withdrawn {
		return latest
	}
	return nil
}

// Delivery finds a row by its sequence, nil when it is gone.
func (r *Record) Delivery(sequence int64) *Delivery {
	for i := range r.Deliveries {
		if r.Deliveries[i].Sequence == sequence {
			return &r.Deliveries[i]
		}
	}
	return nil
}

// Settle forgets superseded rows that no publisher holds. Only a queued or scheduled run has one that is not: every way
// into these two statuses makes another.
func (r *Record) Settle() {
	live := int64(0)
	if status := r.Run.Status; len(r.Deliveries) > 0 &&
		(status == runlane.StatusQueued || status == runlane.StatusScheduled) {
		live = r.Deliveries[len(r.Deliveries)-1].Sequence
	}
	r.Deliveries = slices.DeleteFunc(r.Deliveries, func(d Delivery) bool {
		return d.Sequence != live && d.Status != lane.OutboxClaimed
	})
}

// Publish marks a row as published.
func (r *Record) Publish(d *Delivery, at embedded.Millis) {
	d.Status, d.Since, d.Failure = lane.OutboxPublished, at, runlane.Failure{}
	if d == r.Live() {
		r.noteFirst(at)
	}
}

func (r *Record) noteFirst(at embedded.Millis) {
	if r.FirstPublished == embedded.Absent {
		r.FirstPublished = at
	}
}

// The times after which a published wakeup without a claim counts as lost.
const (
	firstRedelivery   = 10 * time.Minute
	longestRedelivery = 6 * time.Hour
)

// RedeliverAt is 10 minutes after the first publication, then at doubling distance, 6 hours at most: the time since the
// first publication tells how many there were.
func (r *Record) RedeliverAt(d *Delivery) embedded.Millis {
	return d.Since.Add(min(d.Since.Since(r.FirstPublished)+firstRedelivery, longestRedelivery))
}

// Message is the row as callers get it.
func (r *Record) Message(d *Delivery) lane.OutboxMessage {
	m := lane.OutboxMessage{
		OutboxRef: lane.OutboxRef{ID: embedded.EventID(r.Run.ID, d.Sequence)},
		Wakeup: lane.Wakeup{
			RunKey:       lane.RunKey{Environment: r.Run.Environment, RunID: r.Run.ID},
			Queue:        r.Run.Queue,
			RequestedAt:  d.RequestedAt.Time(),
			TraceCarrier: cloneTexts(r.Run.TraceCarrier),
		},
		GroupKey:    r.Run.ConcurrencyKey,
		Status:      d.Status,
		Attempts:    d.Attempts,
		AvailableAt: d.AvailableAt.Time(),
		Failure:     d.Failure.Clone(),
	}
	if m.GroupKey == "" {
		m.GroupKey = string(r.Run.ID)
	}
	if d.Status == lane.OutboxClaimed {
		m.ClaimToken, m.ClaimUntil = d.Token, d.ClaimUntil.Time()
	}
	return m
}
