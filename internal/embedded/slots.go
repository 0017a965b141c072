package embedded

import (
	"slices"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// HoldsSlot is [lane.HoldsSlot] of the run.
func (s *State) HoldsSlot() bool {
	return s.Status.Owned() || s.Status == runlane.StatusQueued && s.DispatchExpiresAt != Absent
}

// JudgeSlots finds a command that would get round the limit of its queue.
func JudgeSlots(t *lane.Transition) error {
	switch p := t.Projected; {
	case t.Reserves() && !t.Queue.Bounded():
		return Violation(p.ID, "a reservation for queue %q, which is not bounded", p.Queue)
	case t.Reserves() && p.Status != runlane.StatusQueued:
		return Violation(p.ID, "a reservation for a run that is %s", p.Status)
	default:
		return nil
	}
}

// NeedsSlot reports a creation that needs a free slot: with a reservation, or of a run that executes at once. Any other
// run of a bounded queue waits for its turn.
func NeedsSlot(t *lane.Transition) bool {
	return t.Queue.Bounded() && (t.Reserves() || t.Projected.Status == runlane.StatusRunning)
}

// SlotUse is what a claim does with slots.
type SlotUse int

const (
	// KeepSlot changes nothing: the run occupies a slot since its reservation, or since the claim of a worker that died.
	KeepSlot SlotUse = iota
	// FreeSlot drops an expired reservation: the queue has no limit any more.
	FreeSlot
	// TakeSlot takes a free slot. If there is none, the claim is lane.LostCapacity.
	TakeSlot
)

// JudgeSlotOfClaim decides what a claim does with slots. occupies reports that the run occupies a slot at c.At. Lanes
// compare the end of a reservation with exactly c.At; a storage whose commit takes time has to end it earlier.
func JudgeSlotOfClaim(c *lane.ClaimCommand, occupies bool) (SlotUse, error) {
	switch {
	case occupies:
		return KeepSlot, nil
	case !c.Queue.Bounded():
		return FreeSlot, nil
	case !c.Slot:
		return KeepSlot, LostRace(lane.LostReservation)
	default:
		return TakeSlot, nil
	}
}

// Room keeps a scan from returning more runs of a partition than have slots. K is how a lane names partitions.
type Room[K comparable] struct{ left map[K]int }

// Allows judges a run without a slot that could start now. taken counts the slots of its partition.
func (r *Room[K]) Allows(policy runlane.Queue, of K, taken func() (int, error)) (bool, error) {
	left, known := r.left[of]
	if !known {
		n, err := taken()
		if err != nil {
			return false, err
		}
		left = policy.Concurrency - n
		if r.left == nil {
			r.left = map[K]int{}
		}
	}
	r.left[of] = left - 1
	return left > 0, nil
}

// OffersAtOnce is the number of runs among which callers that free slots at the same time are spread.
const OffersAtOnce = 64

// Offer chooses a run for one free slot: of those that wait, of which there are some, the one that has waited longest and
// was not just given to another caller, which has not reserved for it yet. When all were given, it begins again with the
// first. now is what was given by then.
func Offer[T comparable](given, waiting []T) (next int, now []T) {
	given = slices.DeleteFunc(given, func(t T) bool { return !slices.Contains(waiting, t) })
	next = slices.IndexFunc(waiting, func(t T) bool { return !slices.Contains(given, t) })
	if next < 0 {
		given, next = given[:0], 0
	}
	return next, append(given, waiting[next])
}
