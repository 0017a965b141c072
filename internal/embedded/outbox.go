package embedded

import (
	"maps"
	"slices"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// Delivery is one outbox row: a wakeup to publish. T is the lane's type of claim tokens.
type Delivery[T comparable] struct {
	// Sequence of the run.delivery_requested event. It identifies the row.
	Sequence int64
	Status   lane.OutboxStatus
	Attempts int
	// Token of the latest claim.
	Token       T
	RequestedAt Millis
	AvailableAt Millis
	ClaimUntil  Millis
	// Since is the time of publication or of giving up.
	Since   Millis
	Failure *runlane.Failure // or nil; never modified
}

// Withdrawn is the status of a delivery without a wakeup: the run waits for a slot. Callers never see it.
const Withdrawn lane.OutboxStatus = "withdrawn"

// Outbox is a run's state about wakeups.
type Outbox[T comparable] struct {
	// Deliveries has the latest row last. Superseded rows stay before it while a publisher has claimed them.
	Deliveries []Delivery[T]
	// FirstPublished is the first publication in this wait for a worker. A claim clears it.
	FirstPublished Millis
	// Woken is the wakeup that the current owner's claim answered.
	Woken Wait
}

// Commit creates the rows that the command's events request and passes each to made. s is the run after the command.
func (o *Outbox[T]) Commit(
	s *State, t *lane.Transition, initial lane.InitialOutbox, token func() T, made func(*Delivery[T]),
) {
	for i := range t.Events {
		sequence := t.ExpectedSequence + int64(i) + 1
		switch body := t.Events[i].Body.(type) {
		case *runlane.RunLeaseClaimed:
			o.FirstPublished = Absent // later publications belong to another wait
		case *runlane.RunDebounced:
			if d := o.Live(s); d != nil && d.Status == lane.OutboxPending {
				d.AvailableAt = At(body.RunAt)
			}
		case *runlane.RunResumed:
			if o.Live(s) != nil { // it was for the end of the wait
				o.withdraw(sequence)
			}
		case *runlane.RunDeliveryRequested:
			if t.Queue.Bounded() && body.Delivery.DispatchExpiresAt.IsZero() {
				o.withdraw(sequence) // the run waits for a slot; the reservation requests its delivery
				continue
			}
			made(o.request(sequence, &body.Delivery, At(t.Events[i].OccurredAt), initial, token))
		}
	}
}

// request creates the row of a delivery request. It supersedes earlier rows; claimed ones stay, as their publishers
// may still mark them. token is called if the writer itself claims the row.
func (o *Outbox[T]) request(
	sequence int64, d *runlane.Delivery, occurred Millis, initial lane.InitialOutbox, token func() T,
) *Delivery[T] {
	row := Delivery[T]{
		Sequence: sequence, Status: lane.OutboxPending, RequestedAt: At(d.RequestedAt), AvailableAt: At(d.AvailableAt),
		ClaimUntil: Absent, Since: Absent,
	}
	switch {
	case row.AvailableAt > occurred: // delayed: always pending
	case initial.Published:
		row.Status, row.Since = lane.OutboxPublished, occurred
		o.noteFirst(occurred)
	case !initial.ClaimUntil.IsZero():
		row.Status, row.ClaimUntil, row.Token = lane.OutboxClaimed, At(initial.ClaimUntil), token()
	}
	return o.supersede(row)
}

// withdraw supersedes all rows. The new row is never due.
func (o *Outbox[T]) withdraw(sequence int64) {
	o.supersede(Delivery[T]{
		Sequence: sequence, Status: Withdrawn,
		RequestedAt: Absent, AvailableAt: Absent, ClaimUntil: Absent, Since: Absent,
	})
}

func (o *Outbox[T]) supersede(row Delivery[T]) *Delivery[T] {
	o.Deliveries = slices.DeleteFunc(o.Deliveries, func(d Delivery[T]) bool { return d.Status != lane.OutboxClaimed })
	o.Deliveries = append(o.Deliveries, row)
	return &o.Deliveries[len(o.Deliveries)-1]
}

// Live returns the only row that can be due: the latest one of a queued or scheduled run, or nil. Leaving these
// statuses supersedes it, entering them creates or withdraws a row.
func (o *Outbox[T]) Live(s *State) *Delivery[T] {
	if len(o.Deliveries) == 0 || s.Status != runlane.StatusQueued && s.Status != runlane.StatusScheduled {
		return nil
	}
	if latest := &o.Deliveries[len(o.Deliveries)-1]; latest.Status != Withdrawn {
		return latest
	}
	return nil
}

// Delivery returns the row with that sequence, or nil.
func (o *Outbox[T]) Delivery(sequence int64) *Delivery[T] {
	for i := range o.Deliveries {
		if o.Deliveries[i].Sequence == sequence {
			return &o.Deliveries[i]
		}
	}
	return nil
}

// Settle removes superseded rows without a claim. Only a queued or scheduled run has a row that is not superseded.
func (o *Outbox[T]) Settle(s *State) {
	live := int64(0)
	if len(o.Deliveries) > 0 && (s.Status == runlane.StatusQueued || s.Status == runlane.StatusScheduled) {
		live = o.Deliveries[len(o.Deliveries)-1].Sequence
	}
	o.Deliveries = slices.DeleteFunc(o.Deliveries, func(d Delivery[T]) bool {
		return d.Sequence != live && d.Status != lane.OutboxClaimed
	})
}

// Publish marks a row as published.
func (o *Outbox[T]) Publish(s *State, d *Delivery[T], at Millis) {
	d.Status, d.Since, d.Failure = lane.OutboxPublished, at, nil
	if d == o.Live(s) {
		o.noteFirst(at)
	}
}

// Claim gives the row to a publisher.
func (d *Delivery[T]) Claim(token T, until Millis) {
	d.Status, d.Token, d.ClaimUntil = lane.OutboxClaimed, token, until
}

// ClaimedBy reports whether the row is under the claim of that token.
func (d *Delivery[T]) ClaimedBy(token T) bool {
	return d.Status == lane.OutboxClaimed && d.Token == token
}

// Fail marks a row for another try.
func (d *Delivery[T]) Fail(f *lane.OutboxFailure) {
	d.Status, d.Attempts, d.AvailableAt = lane.OutboxFailed, f.Attempts, At(f.NextAvailableAt)
	d.Failure = new(f.Failure.Clone())
}

// GiveUp marks a row as a dead letter.
func (d *Delivery[T]) GiveUp(f *lane.OutboxFailure, at Millis) {
	d.Status, d.Attempts, d.Since = lane.OutboxDeadLettered, f.Attempts, at
	d.Failure = new(f.Failure.Clone())
}

// Requeue makes a dead letter pending again, due at that time and with no attempts. It returns false if d is
// superseded or no dead letter.
func (o *Outbox[T]) Requeue(s *State, d *Delivery[T], at Millis) bool {
	if d != o.Live(s) || d.Status != lane.OutboxDeadLettered {
		return false
	}
	d.Status, d.Attempts, d.Failure, d.AvailableAt = lane.OutboxPending, 0, nil, at
	return true
}

// DeadLetter returns a given-up row as lists show it.
func (d *Delivery[T]) DeadLetter(id runlane.RunID, queue runlane.QueueName) runlane.DeadLetter {
	letter := runlane.DeadLetter{
		RunID: id, OutboxID: EventID(id, d.Sequence), Queue: queue, Attempts: d.Attempts, Since: d.Since.Time(),
	}
	if d.Failure != nil {
		letter.Failure = d.Failure.Clone()
	}
	return letter
}

// Message returns a copy of the row for callers. token formats the token of its claim.
func (d *Delivery[T]) Message(
	run lane.RunKey, queue runlane.QueueName, concurrencyKey string, carrier map[string]string, token func(T) string,
) lane.OutboxMessage {
	m := lane.OutboxMessage{
		OutboxRef: lane.OutboxRef{ID: EventID(run.RunID, d.Sequence)},
		Wakeup: lane.Wakeup{
			RunKey:       run,
			Queue:        queue,
			RequestedAt:  d.RequestedAt.Time(),
			TraceCarrier: maps.Clone(carrier),
		},
		GroupKey:    concurrencyKey,
		Status:      d.Status,
		Attempts:    d.Attempts,
		AvailableAt: d.AvailableAt.Time(),
	}
	if m.GroupKey == "" {
		m.GroupKey = string(run.RunID)
	}
	if d.Status == lane.OutboxClaimed {
		m.ClaimToken, m.ClaimUntil = token(d.Token), d.ClaimUntil.Time()
	}
	if d.Failure != nil {
		m.Failure = d.Failure.Clone()
	}
	return m
}

func (o *Outbox[T]) noteFirst(at Millis) {
	if o.FirstPublished == Absent {
		o.FirstPublished = at
	}
}

// A published wakeup without a claim counts as lost after these times, see docs/internals/design.md, Delivery.
const (
	firstRedelivery   = 10 * time.Minute
	longestRedelivery = 6 * time.Hour
)

// Redelivery is when the published wakeup of a queued run counts as lost, or [Absent].
func (o *Outbox[T]) Redelivery(s *State) Millis {
	if d := o.Live(s); d != nil && d.Status == lane.OutboxPublished && s.Status == runlane.StatusQueued {
		return o.redeliverAt(d)
	}
	return Absent
}

// redeliverAt is 10 minutes after the first publication, 20 after the second, 40 after the third, at most 6 hours. The
// time since the first publication implies their number.
func (o *Outbox[T]) redeliverAt(d *Delivery[T]) Millis {
	return d.Since.Add(min(d.Since.Since(o.FirstPublished)+firstRedelivery, longestRedelivery))
}

// Wait is a wakeup on its way and when it is due.
type Wait struct {
	Kind WaitKind
	Due  Millis
}

// WaitKind is the kind of a wakeup on its way. The numbers are stored.
type WaitKind int64

// A DelayedWakeup is sent by a timer of the transport.
const (
	NoWakeup WaitKind = iota
	WakeupUnderway
	DelayedWakeup
)

// longestDelay is the longest wait that a transport's native delay covers.
const longestDelay = 15 * time.Minute

// awaited returns the wakeup on its way to the run, if any:
//
//	queued                         the wakeup that a publisher has claimed or published
//	waiting, wakeup published      that wakeup
//	waiting for up to 15 minutes   the transport's delayed wakeup, if only time ends the wait
//	owned by a worker              the wakeup that its claim answered
func (o *Outbox[T]) awaited(s *State) Wait {
	switch {
	case s.Status.Owned():
		return o.Woken
	case s.Status == runlane.StatusQueued:
		if d := o.Live(s); d != nil && (d.Status == lane.OutboxClaimed || d.Status == lane.OutboxPublished) {
			return Wait{WakeupUnderway, s.queuedSince()}
		}
	case s.Status.Waiting():
		if d := o.Live(s); d != nil && d.Status == lane.OutboxPublished {
			return Wait{WakeupUnderway, d.Since}
		}
		if s.Waiting.Timed() && s.RunAt.Since(s.UpdatedAt) <= longestDelay {
			return Wait{DelayedWakeup, s.RunAt}
		}
	}
	return Wait{}
}

// Answers returns the wakeup that a claim answers. It is redelivered if the owner dies, so patience with it covers the
// lease too. Claims by polling answer none, nor do leases that end before the wakeup is due.
func (o *Outbox[T]) Answers(s *State, c *lane.ClaimCommand) Wait {
	awaited := o.awaited(s)
	if !c.ByWakeup || awaited.Due > At(c.Projected.Lease.ExpiresAt) {
		return Wait{}
	}
	return awaited
}

// Underway reports whether, within the patience, a wakeup is on its way to the run or its owner's claim answered one.
func (o *Outbox[T]) Underway(s *State, queue runlane.QueueName, now Millis, patience lane.Patience) bool {
	switch awaited := o.awaited(s); awaited.Kind {
	case WakeupUnderway:
		return awaited.Due > now.Add(-patience.Queued)
	case DelayedWakeup:
		return !slices.Contains(patience.Undelayed, queue) && awaited.Due > now.Add(-patience.ShortWait)
	default:
		return false
	}
}
