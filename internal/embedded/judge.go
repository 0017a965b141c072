package embedded

import (
	"bytes"
	"cmp"
	"errors"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// State holds the fields of a run that commands are judged by and indexes are built from. nil is a missing run.
type State struct {
	Status   runlane.Status
	Sequence int64

	CreatedAt, UpdatedAt              Millis
	RunAt, FinishedAt                 Millis
	LeaseExpiresAt, DispatchExpiresAt Millis

	LeaseToken string
	Waiting    *runlane.Waiting // nil if the run is not waiting; never modified
}

// LostRace is the outcome of a claim or reservation that lost a race, until [Lost] converts it.
type LostRace lane.Outcome

func (l LostRace) Error() string { return string(l) }

// Lost converts the error of a commit into the result of a claim or reservation.
func Lost(err error) (*lane.Acquisition, error) {
	if late, ok := errors.AsType[LateStart](err); ok {
		return &lane.Acquisition{Outcome: lane.LostRate, Pace: late.Pace}, nil
	}
	if lost, ok := errors.AsType[LostRace](err); ok {
		return &lane.Acquisition{Outcome: lane.Outcome(lost)}, nil
	}
	if errors.Is(err, runlane.ConflictEventSequence) {
		return &lane.Acquisition{Outcome: lane.LostSequence}, nil
	}
	return nil, err
}

// Judge makes all checks of a command in the order of the contract:
//
//  1. the sequence;
//  2. the ownership of the lease;
//  3. the command itself, see [JudgeCommand];
//  4. whether the run is eligible for the command, a slot included;
//  5. for a creation, the owners of its keys and the slot.
//
// known is nil for a run that does not exist. ownership may be nil.
func Judge(
	known *State, t *lane.Transition, ownership func(*State) error, command, eligibility, creation func() error,
) error {
	if err := judgeSequence(known, t); err != nil {
		return err
	}
	if ownership != nil {
		if err := ownership(known); err != nil {
			return err
		}
	}
	if err := command(); err != nil {
		return err
	}
	if err := eligibility(); err != nil {
		return err
	}
	if known != nil {
		return nil
	}
	return creation()
}

// judgeSequence comes first: a stale command is a lost race, whatever else is wrong with it. A run with a reused ID
// differs in CreatedAt.
func judgeSequence(known *State, t *lane.Transition) error {
	sequence := int64(0)
	if known != nil {
		sequence = known.Sequence
	}
	switch {
	case sequence != t.ExpectedSequence:
		return Conflict(runlane.ConflictEventSequence, t.Projected.ID, "the run has moved on")
	case known != nil && known.CreatedAt != At(t.Projected.CreatedAt):
		return Conflict(runlane.ConflictEventSequence, t.Projected.ID, "the id belongs to another run by now")
	default:
		return nil
	}
}

// JudgeLease refuses a command from a worker that lost its lease. An empty token always passes.
func JudgeLease(known *State, id runlane.RunID, token string) error {
	if token != "" && (known == nil || known.LeaseToken != token) {
		return LeaseLost(id)
	}
	return nil
}

// JudgeAppend refuses to start or reserve an existing run of a bounded queue: only claims and reservations may.
func JudgeAppend(known *State, t *lane.Transition) error {
	p := t.Projected
	if known == nil || !t.Queue.Bounded() {
		return nil
	}
	if t.Reserves() || p.Status == runlane.StatusRunning && known.Status != runlane.StatusRunning {
		return Violation(p.ID, "a run of a bounded queue takes its slot through a reservation or a claim")
	}
	return nil
}

// JudgeClaim checks the form of a claim, then whether the run is runnable.
func JudgeClaim(known *State, c *lane.ClaimCommand) error {
	p := c.Projected
	lease, ok := c.Events[0].Body.(*runlane.RunLeaseClaimed)
	switch {
	case known == nil || !ok || p.Status != runlane.StatusRunning:
		return Violation(p.ID, "a claim begins with run.lease_claimed and leaves the run running")
	case lease.Lease.Token == "" || lease.Lease.Token != p.Lease.Token || lease.Lease.WorkerID != p.Lease.WorkerID:
		return Violation(p.ID, "the claimed lease is not that of the projected run")
	case c.Slot && !c.Queue.Bounded():
		return Violation(p.ID, "a slot of queue %q, which is not bounded", p.Queue)
	}
	for _, ev := range c.Events[1:] {
		if ev.Type() != runlane.EventStarted {
			return Violation(p.ID, "a claim carries %s besides run.lease_claimed", ev.Type())
		}
	}
	if since, ok := known.RunnableAt(); !ok || since > At(c.At) {
		return LostRace(lane.LostEligibility)
	}
	return nil
}

// JudgeHeartbeat refuses a heartbeat that is malformed or does not come from the lease's owner.
func JudgeHeartbeat(known *State, c *lane.HeartbeatCommand) error {
	if len(c.Events) != 1 || known == nil {
		return malformedHeartbeat(c)
	}
	beat, ok := c.Events[0].Body.(*runlane.RunLeaseHeartbeat)
	switch {
	case !ok:
		return malformedHeartbeat(c)
	case beat.Lease.Token == "" || beat.Lease.Token != known.LeaseToken:
		return LeaseLost(c.Projected.ID)
	case beat.Lease.Token != c.Projected.Lease.Token:
		return Violation(c.Projected.ID, "the heartbeat's lease is not that of the projected run")
	default:
		return nil
	}
}

func malformedHeartbeat(c *lane.HeartbeatCommand) error {
	return Violation(c.Projected.ID, "a heartbeat is one run.lease_heartbeat of an existing run")
}

// JudgeRelease refuses a token that still owns the run. The run must exist.
func JudgeRelease(known *State, c *lane.ReleaseCommand) error {
	switch {
	case c.LeaseToken == "":
		return Violation(c.RunID, "a release names the lease's token")
	case known == nil:
		return NotFound(c.RunID)
	case known.LeaseToken == c.LeaseToken:
		return Conflict(runlane.ConflictLeaseOwnership, c.RunID,
			"the lease is still held: append the attempt's outcome first")
	default:
		return nil
	}
}

// JudgeReservation checks the form of a reservation, then whether the run wants a slot. wants is
// [Outbox.DispatchableSince].
func JudgeReservation(known *State, c *lane.ReserveCommand, wants func() (since Millis, ok bool)) error {
	p, last := c.Projected, c.Events[len(c.Events)-1]
	if known == nil || last.Type() != runlane.EventDeliveryRequested || p.Status != runlane.StatusQueued ||
		!c.Reserves() {
		return Violation(p.ID,
			"a reservation is a run.delivery_requested of an existing run, for now and with the reservation's end")
	}
	if since, ok := wants(); !ok || since > At(c.At) {
		return LostRace(lane.LostEligibility)
	}
	return nil
}

// Reserved reports whether the run is queued with a reservation that ends at until.
func (s *State) Reserved(until Millis) bool {
	return s.Status == runlane.StatusQueued && until != Absent && s.DispatchExpiresAt == until
}

// Is reports whether the run exists and was created at that time. IDs can be reused after pruning.
func (s *State) Is(created Millis) bool { return s != nil && s.CreatedAt == created }

// JudgeSignal returns why an existing run cannot get a signal. there reports that it has this signal already, count is
// the number of its signals.
func JudgeSignal(known *State, c *lane.SignalCommand, there bool, count int64) error {
	switch {
	case there:
		return c.Exists()
	case known.Status.Terminal(), count != c.Count, c.Resume == nil && known.beganAnother(c.Wait):
		return lane.Moved(c.RunID)
	default:
		return nil
	}
}

// JudgeNotification returns why a caller cannot be notified of a child's end. known is the caller, kept its call, or
// nil.
func JudgeNotification(known *State, c *lane.NotifyCommand, kept *lane.RunCall) error {
	began := c.To.Last() && c.Resume == nil && known.beganAnother(c.To.Wait)
	if kept == nil || kept.Ended != c.To.Ended || kept.Count != c.To.Count || began {
		return c.AlreadyNotified()
	}
	return nil
}

// JudgeCall refuses a call if the run is gone or the worker lost its lease.
func JudgeCall(known *State, c *lane.CallCommand) error {
	switch {
	case !known.Is(At(c.CreatedAt)):
		return NotFound(c.RunID)
	case known.LeaseToken != c.LeaseToken:
		return LeaseLost(c.RunID)
	default:
		return nil
	}
}

// JudgeProgress refuses a note that does not come from the lease's owner.
func JudgeProgress(known *State, id runlane.RunID, token string) error {
	switch {
	case known == nil:
		return NotFound(id)
	case !known.Status.Owned() || known.LeaseToken != token:
		return LeaseLost(id)
	default:
		return nil
	}
}

// beganAnother reports whether the run is waiting, but not since the event with sequence wait.
func (s *State) beganAnother(wait int64) bool { return s.Waiting != nil && s.Sequence != wait }

// JudgeFlow returns why a record cannot replace known, which is nil if there is none.
func JudgeFlow(known *lane.FlowRecord, c *lane.FlowCommand) error {
	version := int64(0)
	if known != nil {
		version = known.Version
	}
	if version != c.Flow.Version || known != nil && At(known.CreatedAt) != At(c.Flow.CreatedAt) {
		return c.Changed()
	}
	return nil
}

// JudgeOutboxClaim returns the limit of a claim on outbox rows. It refuses a claim that expires at once.
func JudgeOutboxClaim(c *lane.ClaimOutboxCommand) (limit int, err error) {
	page := lane.PageQuery{Limit: c.Limit}
	if limit, err = page.PageLimit(); err != nil {
		return 0, err
	}
	if !c.ClaimUntil.After(c.At) {
		return 0, Violation("", "a claim until %s, made at %s, expires at once", c.ClaimUntil, c.At)
	}
	return limit, nil
}

// JudgePayload returns "payload" if the transition's projection has another than the stored one, or than the one that
// it puts in its place, else "". Maintenance omits payloads.
func JudgePayload(t *lane.Transition, stored []byte) string {
	if replaced, ok := lane.ReplacedPayload(t); ok {
		stored = replaced
	}
	if p := t.Projected; p.Payload != nil && !bytes.Equal(p.Payload, stored) {
		return "payload"
	}
	return ""
}

// JudgeCommand refuses a command that contradicts itself or the run. malformed is the result of t.Validate. created is
// nil for a missing run. payload is as from [JudgePayload].
func JudgeCommand(t *lane.Transition, malformed error, created *runlane.RunCreated, payload string) error {
	if malformed != nil {
		return malformed
	}
	if err := JudgeSlots(t); err != nil {
		return err
	}
	p := t.Projected
	if created == nil {
		created = t.Events[0].Body.(*runlane.RunCreated) // checked by Validate
		if field := cmp.Or(contradiction(p, created), JudgePayload(t, created.Payload)); field != "" {
			return Violation(p.ID, "projected run and run.created differ in %s", field)
		}
		return nil
	}
	if field := cmp.Or(contradiction(p, created), payload); field != "" {
		return Violation(p.ID, "projected run has another %s than the stored one", field)
	}
	return nil
}

// contradiction names the first field, other than the payload, that differs from the run's creation, or returns "".
func contradiction(p *runlane.Run, c *runlane.RunCreated) string {
	switch {
	case p.TaskID != c.TaskID:
		return "task"
	case p.Queue != c.Queue:
		return "queue"
	case p.ConcurrencyKey != c.ConcurrencyKey:
		return "concurrency key"
	case p.IdempotencyKey != c.IdempotencyKey || p.Retention != c.Retention:
		return "idempotency key or its retention"
	case (p.Debounced == nil) != (c.Debounced == nil):
		return "debounce"
	case p.SingletonKey != c.SingletonKey:
		return "singleton key"
	case p.Priority != c.Priority:
		return "priority"
	case !sameSource(&p.Source, &c.Source):
		return "source"
	default:
		return ""
	}
}

func sameSource(a, b *runlane.Source) bool {
	return a.Type == b.Type && a.RunID == b.RunID && a.ScheduleID == b.ScheduleID && a.Call == b.Call &&
		a.FlowID == b.FlowID && a.Node == b.Node && a.Round == b.Round && a.Depth == b.Depth &&
		At(a.CreatedAt) == At(b.CreatedAt) && At(a.FireTime) == At(b.FireTime)
}
