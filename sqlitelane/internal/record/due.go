package record

import (
	"slices"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/embedded"
	"github.com/runlane/runlane-go/lane"
)

// Places are where the indexes of the file hold a run. Kind 0 or an absent instant is nowhere.
type Places struct {
	// Kind says in which list the run is, and At its place there.
	Kind Kind
	At   embedded.Millis
	// Delivery is the list of outbox rows that has the live one, and DeliveryAt its place there.
	Delivery   embedded.DeliveryKind
	DeliveryAt embedded.Millis
	// Undelivered is from when a queued run that no delivery brings to a worker needs a slot or another delivery.
	Undelivered embedded.Millis
	// Wants is from when the run wants a slot, where its queue ever had a limit.
	Wants embedded.Millis
	// Rest is what a run of kind Waiting does meanwhile, see [Rest]; 0 for any other run.
	Rest int64
}

// Kind is a list of runs in the order of one instant.
type Kind int64

// The lists of runs. The numbers are stored.
const (
	Queued     Kind = 1 // by when it may be taken
	Waiting    Kind = 2 // scheduled, retrying, released: by when it is due
	Leased     Kind = 3 // by the end of the lease
	Cancelling Kind = 4 // cancellation requested: by the end of the lease
	Succeeded  Kind = 5 // the finished ones by when they ended
	Failed     Kind = 6
	Cancelled  Kind = 7
)

// The parts of a rest. The numbers of both are stored: a status is its place plus 1, and a kind of wait its bit.
var (
	resting = []runlane.Status{runlane.StatusScheduled, runlane.StatusRetrying, runlane.StatusReleased}
	waits   = []runlane.WaitingFor{
		runlane.WaitingSignal, runlane.WaitingInput, runlane.WaitingChildren, runlane.WaitingEnds, runlane.WaitingTime,
		runlane.WaitingBlocked, runlane.WaitingAnything,
	}
)

const restShift = 32 // what is below are the bits of the wait

// Rest says in which status a run of kind Waiting is, and for what it waits. It is 0 for any other run.
func Rest(status runlane.Status, waiting *runlane.Waiting) int64 {
	rest := int64(slices.Index(resting, status)+1) << restShift
	for bit, kind := range waits {
		if rest > 0 && waiting.Has(kind) {
			rest |= 1 << bit
		}
	}
	return rest
}

// RestIs reports a rest of one of the statuses, nil for any, with the kind of wait, "" for any.
func RestIs(rest int64, statuses []runlane.Status, waiting runlane.WaitingFor) bool {
	bit := slices.Index(waits, waiting)
	return (waiting == "" || bit >= 0 && rest>>bit&1 == 1) && (len(statuses) == 0 ||
		slices.ContainsFunc(statuses, func(s runlane.Status) bool { return rest>>restShift == Rest(s, nil)>>restShift }))
}

// Active are the lists of active runs that are not of kind Waiting, by status.
var Active = map[runlane.Status]Kind{
	runlane.StatusQueued: Queued, runlane.StatusRunning: Leased, runlane.StatusCancellationRequested: Cancelling,
}

// Finished are the lists of finished runs by status.
var Finished = map[runlane.Status]Kind{
	runlane.StatusSucceeded: Succeeded, runlane.StatusFailed: Failed, runlane.StatusCancelled: Cancelled,
}

// FinishedAs are the lists of some statuses.
func FinishedAs(statuses []runlane.Status) (kinds []Kind) {
	for _, status := range statuses {
		kinds = append(kinds, Finished[status])
	}
	return kinds
}

// Places says where the run belongs. limited tells that its queue ever had a limit.
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

// State is what the judgements and the indexes look at.
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

// Live is the only row that can be due, see [embedded.Outbox.Live].
func (r *Record) Live() *Delivery {
	return r.Outbox.Live(&embedded.State{Status: r.Run.Status})
}

// WantsSlot is from when on the run wants a slot, see [embedded.Outbox.WantsSlot].
func (r *Record) WantsSlot() (since embedded.Millis, ok bool) {
	s := r.State()
	return r.Outbox.WantsSlot(&s)
}

// Retains reports whether the run still owns its idempotency key at now, see [embedded.State.Retains].
func (r *Record) Retains(now embedded.Millis) bool {
	s := r.State()
	return s.Retains(r.Run.Retention, now)
}

// Underway reports whether a wakeup is on its way to the run, see [embedded.Outbox.Underway].
func (r *Record) Underway(now embedded.Millis, patience lane.Patience) bool {
	s := r.State()
	return r.Outbox.Underway(&s, r.Run.Queue, now, patience)
}

// Message is the row as callers get it.
func (r *Record) Message(d *Delivery) lane.OutboxMessage {
	p := &r.Run
	return d.Message(lane.RunKey{Environment: p.Environment, RunID: p.ID}, p.Queue, p.ConcurrencyKey, p.TraceCarrier,
		func(token string) string { return token })
}
