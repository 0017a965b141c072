package core

import (
	"context"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core/internal/reducer"
	"github.com/runlane/runlane-go/lane"
)

// outboxClaim is how long this process owns the rows that it publishes.
const outboxClaim = runlane.DefaultOutboxClaim

// transition projects events onto a run as it was read. Every command on an existing run carries it.
func (rt *Runtime) transition(run *runlane.Run, events []runlane.Event) (lane.Transition, error) {
	projected, err := ProjectRunEvents(run, run.EventSequence, events...)
	if err != nil {
		return lane.Transition{}, err
	}
	return lane.Transition{
		ExpectedSequence: run.EventSequence,
		Events:           events,
		Projected:        projected,
		Queue:            rt.policy(run.Queue),
	}, nil
}

// systemEvent projects an event of the runtime itself onto a run.
func (rt *Runtime) systemEvent(run *runlane.Run, at time.Time, body runlane.EventBody) (lane.Transition, error) {
	return rt.transition(run, []runlane.Event{
		{RunID: run.ID, Environment: rt.environment, OccurredAt: at, Actor: runlane.SystemActor, Body: body},
	})
}

func (rt *Runtime) deliveryNow(run *runlane.Run, at time.Time) *runlane.RunDeliveryRequested {
	return &runlane.RunDeliveryRequested{Delivery: runlane.Delivery{
		Environment: rt.environment,
		RunID:       run.ID,
		Queue:       run.Queue,
		AvailableAt: at,
		RequestedAt: at,
	}}
}

// appendEvent commits an event of the runtime itself to a run without an owner. It offers a freed slot to the next run.
func (rt *Runtime) appendEvent(
	ctx context.Context, run *runlane.Run, at time.Time, body runlane.EventBody,
) (*runlane.Run, error) {
	transition, err := rt.systemEvent(run, at, body)
	if err != nil {
		return nil, err
	}
	commit, err := rt.storage().AppendRunEvents(ctx, &lane.AppendCommand{Transition: transition})
	if err != nil {
		return nil, err
	}
	projected := transition.Projected
	rt.notifyIfPending(ctx, commit, projected)
	if lane.HoldsSlot(run) && !lane.HoldsSlot(projected) {
		rt.handOver(ctx, projected)
	}
	return projected, nil
}

// requestDelivery commits the request to wake a worker now.
func (rt *Runtime) requestDelivery(ctx context.Context, run *runlane.Run, at time.Time) (*lane.Commit, error) {
	transition, err := rt.systemEvent(run, at, rt.deliveryNow(run, at))
	if err != nil {
		return nil, err
	}
	return rt.storage().AppendRunEvents(ctx, &lane.AppendCommand{
		Transition: transition, Outbox: lane.InitialOutbox{ClaimUntil: at.Add(outboxClaim)},
	})
}

// ProjectRunEvents applies events to current, nil for a new run, and returns the resulting run. It alone defines the
// meaning of events: runtimes call it before each write, storages persist its result and never recompute it. It uses no
// clock, no I/O and no randomness: a history always gives the same run, in one call or in many. The rules:
// docs/internals/contract.md, Runs and events; docs/internals/design.md, Reducer edge cases.
//
// expectedSequence is the sequence of the run as the caller read it, 0 for a new one. The events get the next numbers.
// Times are projected as [runlane.UTCMillis]. A lease or a due time is reached at its exact millisecond.
//
// There are two classes of errors, each with the run's id:
//
//   - [runlane.ErrStorageConflict] with [runlane.ConflictEventSequence]: the sequence is not current's. The caller lost
//     a race, even if more is wrong with the call: read the run again and repeat.
//   - [runlane.ErrInvariantViolation], for everything else: the caller, the storage or its history is inconsistent.
//     Repeating does not help.
//
// current and events are not changed. The result shares their maps and byte slices: treat all three as read-only, or
// Clone them.
func ProjectRunEvents(current *runlane.Run, expectedSequence int64, events ...runlane.Event) (*runlane.Run, error) {
	return reducer.Project(current, expectedSequence, events...)
}
