package embedded

import (
	"slices"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// HoldsSlot is [lane.HoldsSlot] of the run.
func (s *State) HoldsSlot() bool {
	return s.Status.Owned() || s.Status == runlane.StatusQueued && s.DispatchExpiresAt != Absent
}

// JudgeSlots refuses a reservation that its queue or the run's status does not allow.
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

// NeedsSlot reports whether a creation needs a free slot: it has a reservation or executes at once.
func NeedsSlot(t *lane.Transition) bool {
	return t.Queue.Concurrency > 0 && (t.Reserves() || t.Projected.Status == runlane.StatusRunning)
}

// NeedsStart reports whether a creation is a start by the queue's rate: it executes at once.
func NeedsStart(t *lane.Transition) bool {
	return t.Queue.Rated() && t.Projected.Status == runlane.StatusRunning
}

// LateStart is the outcome of a claim that the queue's rate does not allow yet, until [Lost] converts it.
type LateStart struct{ Pace lane.Pace }

func (l LateStart) Error() string { return string(lane.LostRate) }

// RoomFor is how many runs of a partition may get a slot and a ticket, or start now, by its used slots and its pace.
func RoomFor(q runlane.Queue, taken int, pace lane.Pace, at time.Time, starts bool) int {
	left := runlane.MaxPageLimit
	if q.Concurrency > 0 {
		left = q.Concurrency - taken
	}
	switch {
	case !q.Rated():
	case starts:
		left = min(left, pace.Starts(q, at))
	default:
		left = min(left, pace.Tickets(q, at, at.Add(lane.TicketsAhead)))
	}
	return left
}

// SlotUse is the effect of a claim on its run's slot.
type SlotUse int

const (
	// KeepSlot changes nothing: the run has a slot from its reservation or from an earlier claim.
	KeepSlot SlotUse = iota
	// FreeSlot drops an expired reservation of a queue that no longer limits concurrency.
	FreeSlot
	// TakeSlot takes a free slot. Without one the claim ends as lane.LostCapacity.
	TakeSlot
)

// JudgeSlotOfClaim decides about the slot of a claim. occupies is as of exactly c.At; a storage with slow commits must
// end reservations earlier.
func JudgeSlotOfClaim(c *lane.ClaimCommand, occupies bool) (SlotUse, error) {
	switch {
	case occupies:
		return KeepSlot, nil
	case c.Queue.Concurrency == 0:
		return FreeSlot, nil
	case !c.Slot:
		return KeepSlot, LostRace(lane.LostReservation)
	default:
		return TakeSlot, nil
	}
}

// Room limits a scan to as many runs of a partition as it has free slots. K identifies a partition in the lane.
type Room[K comparable] struct{ left map[K]int }

// Allows decides about a runnable run without a slot. room is the partition's, see [RoomFor].
func (r *Room[K]) Allows(of K, room func() (int, error)) (bool, error) {
	left, known := r.left[of]
	if !known {
		n, err := room()
		if err != nil {
			return false, err
		}
		left = n
		if r.left == nil {
			r.left = map[K]int{}
		}
	}
	r.left[of] = left - 1
	return left > 0, nil
}

// Precedence is [lane.Precedence].
func Precedence(priority int) Millis { return Millis(lane.Precedence(priority) / time.Millisecond) }

// OffersAtOnce is the number of runs that Offer spreads over callers freeing slots at the same time.
const OffersAtOnce = 64

// Offer chooses a run for one free slot: the longest waiting one that was not just offered to another caller, who may
// not have reserved it yet. If all were, it starts over. waiting is not empty; now replaces given.
func Offer[T comparable](given, waiting []T) (next int, now []T) {
	given = slices.DeleteFunc(given, func(t T) bool { return !slices.Contains(waiting, t) })
	next = slices.IndexFunc(waiting, func(t T) bool { return !slices.Contains(given, t) })
	if next < 0 {
		given, next = given[:0], 0
	}
	return next, append(given, waiting[next])
}
