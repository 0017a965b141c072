package core

import (
	"context"
	"slices"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// Explanation is why a run is where it is. Fields that do not apply to its wait are zero.
type Explanation struct {
	RunID  runlane.RunID  `json:"runId"`
	Status runlane.Status `json:"status"`
	// Wait is the reason.
	Wait Wait `json:"wait"`
	// Until is when the wait ends by itself, or when maintenance next checks the run. Zero for WaitNone, WaitOperator,
	// WaitQueue, for a WaitPaused until someone resumes, for a WaitWakeup that this storage cannot find again, and for suspended runs without a time limit.
	Until time.Time `json:"until,omitzero"`
	// Waiting is the wait of a suspended run.
	Waiting *runlane.Waiting `json:"waiting,omitempty"`
	// Holders are the runs with the slots, for WaitSlot.
	Holders []runlane.RunID `json:"holders,omitempty"`
	// Owner is the worker's lease without its token, for WaitLease and WaitCancellation.
	Owner runlane.Lease `json:"owner,omitzero"`
	// Failure depends on the wait: why publishing failed for WaitPublish and WaitOperator, the failure before a WaitTime,
	// the final failure of a finished run.
	Failure runlane.Failure `json:"failure,omitzero"`
	// Next explains what happens next, and what people can do.
	Next string `json:"next"`
}

// Wait is the reason why a run waits. There is no "unknown". What to do about each: docs/operating.md, Why a run waits.
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
	// WaitRate: its queue's rate allows no start yet.
	WaitRate Wait = "rate"
	// WaitPublish: its wakeup has not reached the transport yet, or was refused and is tried again.
	WaitPublish Wait = "publish"
	// WaitWakeup: the transport has its wakeup, and no worker has received it yet. Another is sent at Until.
	WaitWakeup Wait = "wakeup"
	// WaitReservation: as WaitWakeup, with a slot of its bounded queue kept until Until.
	WaitReservation Wait = "reservation"
	// WaitLease: a worker executes it.
	WaitLease Wait = "lease"
	// WaitCancellation: its cancellation was requested; the worker ends it, else maintenance at Until.
	WaitCancellation Wait = "cancellation"
	// WaitTick: it is due, or its worker is gone: the next tick handles it.
	WaitTick Wait = "tick"
	// WaitQueue: it needs a runtime that knows its queue; neither this runtime nor a stored task does.
	WaitQueue Wait = "queue"
	// WaitPaused: its queue or task is paused, until Until or until someone resumes.
	WaitPaused Wait = "paused"
	// WaitOperator: its wakeup was given up. Requeue it, or cancel the run.
	WaitOperator Wait = "operator"
)

// Waits returns all waits.
func Waits() []Wait {
	return []Wait{
		WaitNone, WaitTime, WaitSignal, WaitInput, WaitRuns, WaitBlocked, WaitSlot, WaitRate, WaitPublish, WaitWakeup,
		WaitReservation, WaitLease, WaitCancellation, WaitTick, WaitQueue, WaitPaused, WaitOperator,
	}
}

// Explain explains why a run is where it is: its wait, until when, and what happens next. It reads the run itself
// rather than lists, and always has an explanation, though the run may move on meanwhile. An unknown run is
// runlane.ErrRunNotFound.
//
// Explain uses the queues of [Queues.InUse]: those known here (Options.Queues), and those of tasks stored by other
// programs' ticks. A run of any other queue has WaitQueue.
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
	s.prioritized(e)
	s.paused(e)
	e.Next += s.executor.text(s.run)
	return e, nil
}

type situation struct {
	run      *runlane.Run
	delivery *lane.OutboxMessage // the latest; nil: none
	now      time.Time

	queue   runlane.Queue
	known   bool       // queue is known here, or stored by another program's ticks
	ordered bool       // the queue is ordered
	holders []slotHeld // live at now, without the run itself
	holds   bool       // the run itself has a slot
	pace    lane.Pace  // of a queue with a rate

	pauses   []lane.Pause // that hold the run back: of its queue, its task, or both
	executor executor
	retry    *runlane.Run // of a failed run; nil: not retried

	redelivered  bool      // the storage finds lost wakeups
	redeliverAt  time.Time // when a published, unclaimed wakeup counts as lost
	maxAbandoned int
	abandoned    int // attempts in a row, up to the last one
}

type slotHeld struct {
	run   runlane.RunID
	until time.Time // end of the lease, which may be extended, or of the reservation
}

// inspect reads the situation of a run, twice in a bounded queue: slots are read by queue.
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
		pace:         seen.Pace,
	}
	if s.run.Status.Active() {
		if s.abandoned, err = rt.abandonedInARow(ctx, s.run, s.now); err != nil {
			return nil, err
		}
		p, err := rt.readPauses(ctx, false)
		if err != nil {
			return nil, err
		}
		s.pauses = slices.DeleteFunc(slices.Clone(p.Entries), func(e lane.Pause) bool {
			return !e.Covers(s.run.Queue, s.run.TaskID) || !e.Active(s.now)
		})
	}
	retries, err := rt.retries(ctx, []runlane.RunSummary{s.run.Summary()})
	if err != nil {
		return nil, err
	}
	s.retry = retries[s.run.ID]
	s.executor = rt.executorOf(ctx, seen.Run)
	s.holders, err = rt.slotsHeld(ctx, seen, s.now)
	return s, err
}

// slotsHeld leaves out expired reservations: they do not count, even before their slots are freed.
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
