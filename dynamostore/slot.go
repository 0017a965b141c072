package dynamostore

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// claimMargin is how long before its end a claim treats its own reservation as over, so that its commit still falls into it.
const claimMargin = 5 * time.Second

// slotItem is one occupied place of a bounded queue's partition. Until stands only while it is a reservation: a held slot is
// freed by the commit that ends the running state, never by time.
type slotItem struct {
	PK    string        `dynamodbav:"pk"`
	SK    string        `dynamodbav:"sk"`
	Run   runlane.RunID `dynamodbav:"ru"`
	Until millis        `dynamodbav:"un,omitempty"`
}

// slotPartition is what a limit counts: the runs of one concurrency key, or of a queue where there are no keys.
type slotPartition struct {
	environment runlane.Environment
	queue       runlane.QueueName
	hash        string // of the concurrency key
}

func (r *runItem) partition() slotPartition {
	return slotPartition{r.key().Environment, runlane.QueueName(r.Queue), hashParts(r.ConcurrencyKey)}
}

func (p slotPartition) pk() string {
	return p.environment.Name() + ":slot:" + string(p.queue) + ":" + p.hash
}

func slotSK(number int) string { return fmt.Sprintf("%04d", number) }

func (i slotItem) number() int { return int(parseMillis(i.SK)) }

// slot is the item of the slot that the run item names.
func (r *runItem) slot() slotItem {
	return slotItem{PK: r.partition().pk(), SK: slotSK(r.Slot - 1), Run: r.key().RunID}
}

// occupied reports a slot that counts at an instant: held, or reserved until later.
func (i *slotItem) occupied(at millis) bool { return i.Until == 0 || i.Until > at }

// slotChange is what a commit does to slots.
type slotChange struct {
	put    *slotItem // taken or kept, as it is afterwards
	before *slotItem // what stands there; nil: nothing
	delete *slotItem // given up
	// optional: when only the slot's condition fails, the commit is repeated without it. A slot never stops an outcome, a
	// cancellation or a recovery.
	optional bool
	// yields: what refuses the slot, be it a throttle or another transaction, counts as a slot that is taken. No creation fails for it.
	yields bool
}

// outlasts reports a slot that is held, or reserved for longer than a commit that begins at an instant may take.
func (i *slotItem) outlasts(at millis) bool {
	return i.Until == 0 || i.Until-millis(claimMargin.Milliseconds()) > at
}

// takeSlot plans to take a slot at an instant: the run's own while it is held, or else a free one, at random. A reservation of its own
// that is about to end is no reason to have the same slot again: it may be over when the commit happens, and the limit lower than its
// number. until 0 holds the slot. windows bounds what is read of a large limit. ok is false when there is none.
func (s *Store) takeSlot(ctx context.Context, r *runItem, limit int, at, until millis, windows int) (change slotChange, ok bool, err error) {
	p := r.partition()
	mine := slotItem{PK: p.pk(), Run: r.key().RunID, Until: until}
	if offer, ok := s.offers.take(r.PK, p, limit, at); ok && r.Slot == 0 {
		mine.SK = slotSK(offer.number)
		return slotChange{put: &mine, before: offer.before}, true, nil
	}
	reading, err := s.readFree(ctx, &slotQuery{p, limit, at, r.key().RunID, r.Slot - 1, windows})
	if err != nil {
		return change, false, err
	}
	own := reading.own
	if own != nil && own.outlasts(at) {
		mine.SK = own.SK
		return slotChange{put: &mine, before: own}, true, nil
	}
	if len(reading.free) == 0 {
		return change, false, nil
	}
	n := reading.free[rand.IntN(len(reading.free))] //nolint:gosec // avoiding conflicts needs no secrecy
	mine.SK = slotSK(n)
	change = slotChange{put: &mine, delete: own}
	if own != nil && own.SK == mine.SK {
		change.before, change.delete = own, nil
	} else if old, there := reading.replaced[n]; there {
		change.before = &old
	}
	return change, true, nil
}

// members are the change's parts of the transaction.
func (c *slotChange) members() (members []member, err error) {
	if c.put != nil {
		after, err := marshalItem(c.put)
		if err != nil {
			return nil, err
		}
		m := member{after: after, condition: absent, yields: c.yields}
		if c.before != nil {
			if m.before, err = marshalItem(c.before); err != nil {
				return nil, err
			}
			m.condition = c.before.unchanged()
		}
		members = append(members, m)
	}
	if c.delete != nil {
		before, err := marshalItem(c.delete)
		if err != nil {
			return nil, err
		}
		members = append(members, member{before: before, condition: equal("ru", text(string(c.delete.Run)))})
	}
	return members, nil
}

// unchanged is the condition that the slot is as it was read.
func (i slotItem) unchanged() condition {
	held := equal("ru", text(string(i.Run)))
	if i.Until == 0 {
		return held.and(condition{text: "attribute_not_exists(#un)"})
	}
	return held.and(equal("un", num(int64(i.Until))))
}

// ReserveRunDispatch implements lane.Storage.
func (s *Store) ReserveRunDispatch(ctx context.Context, c *lane.ReserveCommand) (*lane.Acquisition, error) {
	if c.Projected == nil {
		return nil, c.Validate()
	}
	before, err := s.snapshot(ctx, c.Key(), c.ExpectedSequence)
	if err != nil {
		return nil, err
	}
	if before == nil || before.Sequence != c.ExpectedSequence {
		s.offers.declined(runPK(c.Key()))
		return &lane.Acquisition{Outcome: lane.LostSequence}, nil
	}
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if !c.Queue.Bounded() || !c.Reserves() {
		return nil, &runlane.Error{
			Code: runlane.ErrContractViolation, RunID: c.Projected.ID, Message: "a reservation needs a bounded queue and an end",
		}
	}
	if since, ok := before.dispatchable(); !ok || since > toMillis(c.At) {
		return &lane.Acquisition{Outcome: lane.LostEligibility}, nil
	}
	take := func() (slotChange, bool, error) {
		return s.takeSlot(ctx, before, c.Queue.Concurrency, toMillis(c.At), toMillis(c.Projected.DispatchExpiresAt), reservationWindows)
	}
	slot, ok, err := take()
	if err != nil {
		return nil, err
	}
	if !ok {
		return s.refuse(ctx, before, lane.LostCapacity)
	}
	return s.acquire(ctx, &change{Transition: &c.Transition, before: before, birth: c.Outbox, slot: slot}, take)
}

// slotTries is how often a commit tries for a slot when somebody else was faster to take the one it chose.
const slotTries = 4

// acquire commits a reservation or a claim; a race lost is an outcome. take chooses another slot in place of one that somebody else
// was faster to take; without it, the run's own reservation is lost.
func (s *Store) acquire(ctx context.Context, c *change, take func() (slotChange, bool, error)) (*lane.Acquisition, error) {
	for try := 1; ; try++ {
		commit, refused, err := s.commit(ctx, c)
		switch {
		case err != nil:
			return nil, err
		case refused == nil:
			return &lane.Acquisition{Outcome: lane.Acquired, Commit: commit}, nil
		case !refused.onlySlots():
			if c.slot.put != nil {
				s.offers.again(c.before.partition(), c.slot.put.number())
			}
			return &lane.Acquisition{Outcome: lane.LostSequence}, nil
		case take == nil:
			return &lane.Acquisition{Outcome: lane.LostReservation}, nil
		}
		slot, ok, err := take()
		if err != nil {
			return nil, err
		}
		if !ok || try == slotTries {
			return s.refuse(ctx, c.before, lane.LostCapacity)
		}
		c.slot = slot
	}
}

// refuse reports a slot that is not to be had. A run whose queue is full waits for one from here on: its wakeup is acknowledged, and
// the marker of what was on its way when the queue got its limit may lie hours ahead. A running run stays where the end of its
// lease is found, and one whose latest wakeup was given up among the dead letters: it waits for an operator, and this wakeup is an older one.
func (s *Store) refuse(ctx context.Context, r *runItem, lost lane.Outcome) (*lane.Acquisition, error) {
	since, ok := r.dispatchable()
	if ok && lost == lane.LostCapacity && r.status() != runlane.StatusRunning && r.marker().kind != deadLetter {
		if err := s.moveMarker(ctx, r, marker{slotless, since}); err != nil {
			return nil, err
		}
	}
	return &lane.Acquisition{Outcome: lost}, nil
}

// claimSlot plans what a claim does to slots. lost says why there is none to be had; "" means go on.
func (s *Store) claimSlot(ctx context.Context, c *lane.ClaimCommand, r *runItem) (slot slotChange, lost lane.Outcome, err error) {
	if r.Slot != 0 && r.status() == runlane.StatusRunning {
		return slot, "", nil // its own since the last claim; nothing changes
	}
	at := toMillis(c.At)
	if r.Slot != 0 && r.DispatchExpiresAt != 0 {
		reserved, held := r.slot(), r.slot()
		if reserved.Until = r.DispatchExpiresAt; reserved.outlasts(at) {
			return slotChange{put: &held, before: &reserved}, "", nil
		}
	}
	switch {
	case !c.Queue.Bounded():
		if r.Slot != 0 { // from when the queue had a limit; over, so perhaps somebody else's by now
			own := r.slot()
			return slotChange{delete: &own, optional: true}, "", nil
		}
		return slot, "", nil
	case !c.Slot:
		return slot, lane.LostReservation, nil
	}
	slot, ok, err := s.takeSlot(ctx, r, c.Queue.Concurrency, at, 0, claimWindows)
	if err == nil && !ok {
		lost = lane.LostCapacity
	}
	return slot, lost, err
}
