package core

import (
	"context"
	"slices"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// Explanation is why a run is where it is. It has exactly one wait; the fields that do not belong to it are zero.
type Explanation struct {
	RunID  runlane.RunID  `json:"runId"`
	Status runlane.Status `json:"status"`
	// Wait is what the run waits for.
	Wait Wait `json:"wait"`
	// Until is when the wait ends by itself, or when maintenance next checks the run. Zero for WaitNone, WaitOperator
	// and WaitQueue, for a WaitWakeup that this storage cannot find again, and for waits of suspended runs without a
	// time limit.
	Until time.Time `json:"until,omitzero"`
	// Waiting is what a suspended run waits for.
	Waiting *runlane.Waiting `json:"waiting,omitempty"`
	// Holders are the runs that have the slots, of WaitSlot.
	Holders []runlane.RunID `json:"holders,omitempty"`
	// Owner is the worker's lease, of WaitLease and WaitCancellation. Its token is left out.
	Owner runlane.Lease `json:"owner,omitzero"`
	// Failure depends on the wait. For WaitPublish and WaitOperator it is why publishing failed, for WaitTime the
	// failure that the wait follows, and for a finished run the failure that ended it.
	Failure runlane.Failure `json:"failure,omitzero"`
	// Next tells people what will happen then, and what they can do.
	Next string `json:"next"`
}

// Wait is what a run waits for. There is no "unknown". What to do about each: docs/operating.md, Why a run waits.
type Wait string

// The waits.
const (
	// WaitNone: the run is finished.
	WaitNone Wait = "none"
	// WaitTime: scheduled, retrying or released, and not due before Until.
	WaitTime Wait = "time"
	// WaitSignal: suspended, until a signal comes or its time limit, Until, is over.
	WaitSignal Wait = "signal"
	// WaitInput: as WaitSignal, and a person is asked.
	WaitInput Wait = "input"
	// WaitRuns: suspended, until other runs have ended.
	WaitRuns Wait = "runs"
	// WaitBlocked: suspended, until an operator resumes it.
	WaitBlocked Wait = "blocked"
	// WaitSlot: its bounded queue is full.
	WaitSlot Wait = "slot"
	// WaitPublish: its wakeup has not been handed to the transport yet, or was refused and is tried again.
	WaitPublish Wait = "publish"
	// WaitWakeup: the transport has its wakeup, and no worker has received it yet. It is asked for again at Until.
	WaitWakeup Wait = "wakeup"
	// WaitReservation: as WaitWakeup, with a slot of its bounded queue kept until Until.
	WaitReservation Wait = "reservation"
	// WaitLease: a worker has it.
	WaitLease Wait = "lease"
	// WaitCancellation: its cancellation was requested; the worker ends it, else maintenance at Until.
	WaitCancellation Wait = "cancellation"
	// WaitTick: it is due, or its worker is gone: the next tick takes it.
	WaitTick Wait = "tick"
	// WaitQueue: it needs a runtime that knows its queue, and neither this runtime does nor a stored task.
	WaitQueue Wait = "queue"
	// WaitOperator: its wakeup was given up. Requeue it, or cancel the run.
	WaitOperator Wait = "operator"
)

// Waits are all there are.
func Waits() []Wait {
	return []Wait{
		WaitNone, WaitTime, WaitSignal, WaitInput, WaitRuns, WaitBlocked, WaitSlot, WaitPublish, WaitWakeup,
		WaitReservation, WaitLease, WaitCancellation, WaitTick, WaitQueue, WaitOperator,
	}
}

// Explain says why a run is where it is: what it waits for, until when, and what happens next. It reads the run itself
// and not lists, and always gives an explanation. The answer is of the moment: the run may move on while it is made. A
// run that does not exist is runlane.ErrRunNotFound.
//
// Explain uses the queues of [Queues.InUse]: those that this runtime knows, and those of the tasks that other programs'
// ticks store. For a run of a queue that is not among them (Options.Queues) it says WaitQueue.
func (r *Runs) Explain(ctx context.Context, id runlane.RunID) (*Explanation, error) {
	if err := r.rt.gate.enterLate(); err != nil {
		return nil, err
	}
	defer r.rt.gate.leave()
	if err := id.Validate(); err != nil {
		return nil, err
	}
	s, err := r.rt.inspect(ctx, id)
	if err != nil {
		return nil, err
	}
	e := s.explain()
	s.suspected(e)
	s.unreadable(e)
	s.inTurn(e)
	e.Next += s.executor.text(s.run)
	return e, nil
}

// situation is everything that explaining a wait takes.
type situation struct {
	run      *runlane.Run
	delivery *lane.OutboxMessage // the latest, nil when there is none
	now      time.Time

	queue   runlane.Queue
	known   bool       // the queue's policy is known here, or stored by another program's ticks
	ordered bool       // the queue is an ordered one
	holders []slotHeld // that count at now, the run itself left out
	holds   bool       // the run itself has a slot

	executor executor

	redelivered  bool      // the storage finds lost wakeups
	redeliverAt  time.Time // when a published, unclaimed wakeup counts as lost
	maxAbandoned int
	abandoned    int // attempts in a row, up to the last one
}

// slotHeld is a slot that is taken.
type slotHeld struct {
	run   runlane.RunID
	until time.Time // the end of the lease or of the reservation; a lease may be extended
}

// inspect reads the situation of a run. The slots can be read only once the name of its queue is known, so a bounded
// queue costs a second read.
func (rt *Runtime) inspect(ctx context.Context, id runlane.RunID) (*situation, error) {
	q := lane.InspectQuery{RunKey: lane.RunKey{Environment: rt.environment, RunID: id}}
	seen, err := rt.storage().InspectRun(ctx, &q)
	if err != nil {
		return nil, err
	}
	queue, known := rt.knownQueue(seen.Run.Queue)
	if !known && seen.Run.Status.Active() {
		queue, known = rt.queueInUse(ctx, seen.Run.Queue)
	}
	if known && queue.Bounded() && seen.Run.Status.Active() {
		q.Queue = queue
		if seen, err = rt.storage().InspectRun(ctx, &q); err != nil {
			return nil, err
		}
	}
	s := &situation{
		run:          seen.Run,
		delivery:     seen.Delivery,
		now:          rt.now(),
		redelivered:  rt.storage().Capabilities().FindsLostWakeups,
		redeliverAt:  seen.RedeliverAt,
		maxAbandoned: rt.maxAbandoned,
		queue:        queue,
		known:        known,
		ordered:      rt.ordered(seen.Run.Queue),
		holds:        slices.Contains(seen.Holders, seen.Run.ID),
	}
	if s.run.Status.Active() {
		if s.abandoned, err = rt.abandonedInARow(ctx, s.run, s.now); err != nil {
			return nil, err
		}
	}
	s.executor = rt.executorOf(ctx, seen.Run)
	s.holders, err = rt.slotsHeld(ctx, seen, s.now)
	return s, err
}

// slotsHeld leaves out reservations that are over: they count for nothing, though their slots have not been freed yet.
func (rt *Runtime) slotsHeld(ctx context.Context, seen *lane.Inspection, now time.Time) ([]slotHeld, error) {
	if len(seen.Holders) == 0 {
		return nil, nil
	}
	runs, err := rt.storage().GetRuns(ctx, &lane.RunsQuery{
		Environment:    rt.environment,
		IDs:            seen.Holders,
		WithoutPayload: true,
	})
	if err != nil {
		return nil, err
	}
	var held []slotHeld
	for _, run := range runs {
		switch {
		case run.ID == seen.Run.ID:
		case run.Status.Owned():
			held = append(held, slotHeld{run.ID, run.Lease.ExpiresAt})
		case lane.ReservationActive(run, now):
			held = append(held, slotHeld{run.ID, run.DispatchExpiresAt})
		}
	}
	return held, nil
}
