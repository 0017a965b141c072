package record

import (
	"maps"
	"slices"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/embedded"
	"github.com/runlane/runlane-go/lane"
)

func cloneTexts(m map[string]string) map[string]string { return maps.Clone(m) }

// Places are where the indexes of the file hold a run. Kind 0 or an absent instant is nowhere.
type Places struct {
	// Kind says in which list the run is, and At its place there.
	Kind Kind
	At   embedded.Millis
	// Delivery is the list of outbox rows that has the live one, and DeliveryAt its place there.
	Delivery   DeliveryKind
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

// DeliveryKind is a list of outbox rows.
type DeliveryKind int64

// The lists of outbox rows. The numbers are stored.
const (
	Unpublished DeliveryKind = 1 // by when it may be published
	Published   DeliveryKind = 2 // by when it counts as lost
	Dead        DeliveryKind = 3 // since when it is given up
)

// Places says where the run belongs. limited tells that its queue ever had a limit.
func (r *Record) Places(limited bool) Places {
	p := Places{DeliveryAt: embedded.Absent, Undelivered: embedded.Absent, Wants: embedded.Absent}
	p.Kind, p.At = r.due()
	p.Rest = Rest(r.Run.Status, r.Run.Waiting)
	p.Delivery, p.DeliveryAt = r.delivery()
	if since, ok := r.undelivered(); ok {
		p.Undelivered = since
	}
	if since, ok := r.WantsSlot(); ok && limited {
		p.Wants = since
	}
	return p
}

func (r *Record) due() (Kind, embedded.Millis) {
	p := &r.Run
	switch {
	case p.Status.Waiting():
		return Waiting, embedded.At(p.RunAt)
	case p.Status == runlane.StatusQueued:
		return Queued, r.queuedSince()
	case p.Status == runlane.StatusRunning:
		return Leased, embedded.At(p.Lease.ExpiresAt)
	case p.Status == runlane.StatusCancellationRequested:
		return Cancelling, embedded.At(p.Lease.ExpiresAt)
	default:
		return Finished[p.Status], embedded.At(p.FinishedAt)
	}
}

func (r *Record) delivery() (DeliveryKind, embedded.Millis) {
	d := r.Live()
	if d == nil {
		return 0, embedded.Absent
	}
	switch d.Status {
	case lane.OutboxPending, lane.OutboxFailed:
		return Unpublished, d.AvailableAt
	case lane.OutboxClaimed:
		return Unpublished, d.ClaimUntil
	case lane.OutboxDeadLettered:
		return Dead, d.Since
	default: // published
		if r.Run.Status != runlane.StatusQueued || !r.Run.DispatchExpiresAt.IsZero() {
			return 0, embedded.Absent // the scan of due waits finds a scheduled run, the end of its reservation a reserved one
		}
		return Published, r.RedeliverAt(d)
	}
}

func (r *Record) undelivered() (since embedded.Millis, ok bool) {
	if r.Run.Status != runlane.StatusQueued {
		return 0, false
	}
	switch d := r.Live(); {
	case d == nil:
		return r.queuedSince(), true
	case !r.Run.DispatchExpiresAt.IsZero() && d.Status != lane.OutboxDeadLettered:
		return embedded.At(r.Run.DispatchExpiresAt), true
	default:
		return 0, false
	}
}

// RunnableAt is when a worker may take the run; ok is false while no time alone makes it runnable.
func (r *Record) RunnableAt() (at embedded.Millis, ok bool) {
	t, ok := lane.RunnableAt(&r.Run)
	return embedded.At(t), ok
}

func (r *Record) queuedSince() embedded.Millis {
	at, _ := r.RunnableAt()
	return at
}

// WantsSlot is from when on the run wants a slot: queued without a live reservation, waiting and due, or running with
// an expired lease. A run whose wakeup was given up waits for an operator instead.
func (r *Record) WantsSlot() (since embedded.Millis, ok bool) {
	if d := r.Live(); d != nil && d.Status == lane.OutboxDeadLettered {
		return 0, false
	}
	since, ok = r.RunnableAt()
	if r.Run.Status == runlane.StatusQueued {
		since = max(since, embedded.At(r.Run.DispatchExpiresAt))
	}
	return since, ok
}

// DispatchableSince is WantsSlot for a reservation: an operator may bring back a queued run whose wakeup was given up.
func (r *Record) DispatchableSince() (since embedded.Millis, ok bool) {
	since, ok = r.WantsSlot()
	if !ok && r.Run.Status == runlane.StatusQueued {
		return max(r.queuedSince(), embedded.At(r.Run.DispatchExpiresAt)), true
	}
	return since, ok
}

// Retains reports whether the run still owns its idempotency key at now. An active run always does. A failed one never;
// a successful or cancelled one until its time to live, counted from creation, is over.
func (r *Record) Retains(now embedded.Millis) bool {
	switch policy := r.Run.Retention; {
	case r.Run.Status.Active():
		return true
	case r.Run.Status == runlane.StatusFailed, policy.WhileActive, policy.TTL <= 0:
		return false
	default:
		return now < embedded.At(r.Run.CreatedAt).Add(policy.TTL)
	}
}

// Wait is what a wakeup on its way is for: since when, and whether a timer of the transport sends it.
type Wait struct {
	Kind WaitKind
	Due  embedded.Millis
}

// WaitKind tells whether a wakeup is on its way. The numbers are stored.
type WaitKind int64

// The kinds of waits.
const (
	NoWakeup WaitKind = iota
	WakeupUnderway
	DelayedWakeup
)

// longestDelay is the longest wait that a transport's own delay covers.
const longestDelay = 15 * time.Minute

// awaited tells which wakeup is on its way to the run, if any:
//
//	queued                         the wakeup that a publisher has claimed or published
//	waiting, wakeup published      that one
//	waiting for up to 15 minutes   the delayed wakeup that the transport's timer sends, unless something else may end
//	                               the wait
//	owned by a worker              the wakeup that its claim answered
func (r *Record) awaited() Wait {
	p, d := &r.Run, r.Live()
	switch {
	case p.Status.Owned():
		return r.Woken
	case p.Status == runlane.StatusQueued:
		if d != nil && (d.Status == lane.OutboxClaimed || d.Status == lane.OutboxPublished) {
			return Wait{WakeupUnderway, r.queuedSince()}
		}
	case p.Status.Waiting():
		if d != nil && d.Status == lane.OutboxPublished {
			return Wait{WakeupUnderway, d.Since}
		}
		if p.Waiting.Timed() && embedded.At(p.RunAt).Since(embedded.At(p.UpdatedAt)) <= longestDelay {
			return Wait{DelayedWakeup, embedded.At(p.RunAt)}
		}
	}
	return Wait{}
}

// Answers is the wakeup that a claim answers. There is none for the claim of a poll worker, and none if the lease ends
// before the wakeup's due time.
func (r *Record) Answers(c *lane.ClaimCommand) Wait {
	awaited := r.awaited()
	if !c.ByWakeup || awaited.Due > embedded.At(c.Projected.Lease.ExpiresAt) {
		return Wait{}
	}
	return awaited
}

// Underway reports whether, within the patience, a wakeup is on its way to the run or a worker answered one.
func (r *Record) Underway(now embedded.Millis, patience lane.Patience) bool {
	switch awaited := r.awaited(); awaited.Kind {
	case WakeupUnderway:
		return awaited.Due > now.Add(-patience.Queued)
	case DelayedWakeup:
		return !slices.Contains(patience.Undelayed, r.Run.Queue) && awaited.Due > now.Add(-patience.ShortWait)
	default:
		return false
	}
}
