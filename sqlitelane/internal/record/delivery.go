package record

import (
	"slices"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/embedded"
	"github.com/runlane/runlane-go/lane"
)

// Delivery is one outbox row. Claim tokens are strings.
type Delivery = embedded.Delivery[string]

// outboxStatuses are stored by index. Only append.
var outboxStatuses = []lane.OutboxStatus{
	lane.OutboxPending, lane.OutboxClaimed, lane.OutboxPublished, lane.OutboxFailed, lane.OutboxDeadLettered, embedded.Withdrawn,
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

func encodeDelivery(d *Delivery, w *writer, base embedded.Millis) {
	w.number(fieldRowSequence, d.Sequence)
	w.number(fieldRowStatus, int64(slices.Index(outboxStatuses, d.Status)))
	w.number(fieldRowAttempts, int64(d.Attempts))
	w.text(fieldRowToken, d.Token)
	w.instant(fieldRowRequestedAt, base, d.RequestedAt)
	w.instant(fieldRowAvailableAt, base, d.AvailableAt)
	w.instant(fieldRowClaimUntil, base, d.ClaimUntil)
	w.instant(fieldRowSince, base, d.Since)
	if d.Failure != nil {
		w.text(fieldRowFailureCode, string(d.Failure.Code))
		w.text(fieldRowFailureMessage, d.Failure.Message)
		w.texts(fieldRowFailureMeta, d.Failure.Meta)
	}
}

func decodeDelivery(b []byte, base embedded.Millis) (Delivery, error) {
	d := Delivery{
		Status: lane.OutboxPending, RequestedAt: embedded.Absent, AvailableAt: embedded.Absent, ClaimUntil: embedded.Absent, Since: embedded.Absent,
	}
	failure := func() *runlane.Failure {
		if d.Failure == nil {
			d.Failure = &runlane.Failure{}
		}
		return d.Failure
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
			failure().Code = runlane.ErrorCode(f.bytes)
		case fieldRowFailureMessage:
			failure().Message = string(f.bytes)
		case fieldRowFailureMeta:
			failure().Meta = in.textsIn(f.bytes)
		}
	}
}
