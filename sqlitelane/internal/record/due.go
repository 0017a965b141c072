package record

import (
	"slices"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/embedded"
	"github.com/runlane/runlane-go/lane"
)

// Places are the run's places in the file's indexes. Kind 0 or an absent time is none.
type Places struct {
	// Kind is the run's list and At its place there.
	Kind Kind
	At   embedded.Millis
	// Delivery is the list of the live outbox row and DeliveryAt its place there.
	Delivery   embedded.DeliveryKind
	DeliveryAt embedded.Millis
	// Undelivered is from when a queued run that may never get a wakeup needs a slot or another delivery.
	Undelivered embedded.Millis
	// Wants is from when the run wants a slot, if its queue was ever limited.
	Wants embedded.Millis
	// Rest is the status and wait of a run of kind Waiting, see [Rest]; 0 for other runs.
	Rest int64
}

// Kind is a list of runs ordered by a time.
type Kind int64

// The lists of runs. The numbers are stored.
const (
	Queued     Kind = 1 // by when they are runnable
	Waiting    Kind = 2 // scheduled, retrying, released: by when they are due
	Leased     Kind = 3 // by the end of the lease
	Cancelling Kind = 4 // cancellation requested: by the end of the lease
	Succeeded  Kind = 5 // finished runs by when they ended
	Failed     Kind = 6
	Cancelled  Kind = 7
)

// The parts of a rest. Both are stored: a status as its index plus 1, a wait as its bit. Only append.
var (
	resting = []runlane.Status{runlane.StatusScheduled, runlane.StatusRetrying, runlane.StatusReleased}
	waits   = []runlane.WaitingFor{
		runlane.WaitingSignal, runlane.WaitingInput, runlane.WaitingChildren, runlane.WaitingEnds, runlane.WaitingTime,
		runlane.WaitingBlocked, runlane.WaitingAnything,
	}
)

const restShift = 32 // the wait's bits are below

// Rest encodes the status of a run of kind Waiting and its wait. It is 0 for other runs.
func Rest(status runlane.Status, waiting *runlane.Waiting) int64 {
	rest := int64(slices.Index(resting, status)+1) << restShift
	for bit, kind := range waits {
		if rest > 0 && waiting.Has(kind) {
			rest |= 1 << bit
		}
	}
	return rest
}

// RestIs reports whether the rest has one of the statuses, nil for any, and the wait, "" for any.
func RestIs(rest int64, statuses []runlane.Status, waiting runlane.WaitingFor) bool {
	bit := slices.Index(waits, waiting)
	return (waiting == "" || bit >= 0 && rest>>bit&1 == 1) && (len(statuses) == 0 ||
		slices.ContainsFunc(statuses, func(s runlane.Status) bool { return rest>>restShift == Rest(s, nil)>>restShift }))
}

// Active maps other active statuses than those of kind Waiting to their lists.
var Active = map[runlane.Status]Kind{
	runlane.StatusQueued: Queued, runlane.StatusRunning: Leased, runlane.StatusCancellationRequested: Cancelling,
}

// Finished maps terminal statuses to their lists.
var Finished = map[runlane.Status]Kind{
	runlane.StatusSucceeded: Succeeded, runlane.StatusFailed: Failed, runlane.StatusCancelled: Cancelled,
}

// FinishedAs returns the lists of terminal statuses.
func FinishedAs(statuses []runlane.Status) (kinds []Kind) {
	for _, status := range statuses {
		kinds = append(kinds, Finished[status])
	}
	return kinds
}

// Places returns the run's places. limited reports that its queue was ever limited.
func (r *Record) Places(limited bool) Places {
	s := r.State()
	p := Places{
		Kind: r.kind(), At: s.Due(), Rest: Rest(s.Status, s.Waiting),
		DeliveryAt: embedded.Absent, Undelivered: embedded.Absent, Wants: embedded.Absent,
	}
	p.Delivery, p.DeliveryAt = r.Place(&s)
	if since, ok := r.Outbox.Undelivered(&s); ok {
		p.Undelivered = since
	}
	if since, ok := r.Outbox.WantsSlot(&s); ok && limited {
		p.Wants = since
	}
	return p
}

func (r *Record) kind() Kind {
	switch status := r.Run.Status; {
	case status.Waiting():
		return Waiting
	case status == runlane.StatusQueued:
		return Queued
	case status == runlane.StatusRunning:
		return Leased
	case status == runlane.StatusCancellationRequested:
		return Cancelling
	default:
		return Finished[status]
	}
}

// State returns the state that commands are judged by.
func (r *Record) State() embedded.State {
	p := &r.Run
	return embedded.State{
		Status:            p.Status,
		Sequence:          p.EventSequence,
		CreatedAt:         embedded.At(p.CreatedAt),
		UpdatedAt:         embedded.At(p.UpdatedAt),
		RunAt:             embedded.At(p.RunAt),
		FinishedAt:        embedded.At(p.FinishedAt),
		LeaseExpiresAt:    embedded.At(p.Lease.ExpiresAt),
		DispatchExpiresAt: embedded.At(p.DispatchExpiresAt),
		LeaseToken:        p.Lease.Token,
		Waiting:           p.Waiting,
	}
}

// Live is [embedded.Outbox.Live].
func (r *Record) Live() *Delivery {
	return r.Outbox.Live(&embedded.State{Status: r.Run.Status})
}

// WantsSlot is [embedded.Outbox.WantsSlot].
func (r *Record) WantsSlot() (since embedded.Millis, ok bool) {
	s := r.State()
	return r.Outbox.WantsSlot(&s)
}

// Retains is [embedded.State.Retains].
func (r *Record) Retains(now embedded.Millis) bool {
	s := r.State()
	return s.Retains(r.Run.Retention, now)
}

// Underway is [embedded.Outbox.Underway].
func (r *Record) Underway(now embedded.Millis, patience lane.Patience) bool {
	s := r.State()
	return r.Outbox.Underway(&s, r.Run.Queue, now, patience)
}

// Message returns a copy of the row for callers.
func (r *Record) Message(d *Delivery) lane.OutboxMessage {
	p := &r.Run
	return d.Message(lane.RunKey{Environment: p.Environment, RunID: p.ID}, p.Queue, p.ConcurrencyKey, p.TraceCarrier,
		func(token string) string { return token })
}
