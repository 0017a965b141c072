package core

import (
	"context"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// transition projects events onto a run as it was read: what every command about an existing run carries.
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

// appendEvent commits one event of the runtime itself to a run without an owner, and offers the slot that it frees to
// the next run.
func (rt *Runtime) appendEvent(
	ctx context.Context, run *runlane.Run, at time.Time, body runlane.EventBody,
) (*runlane.Run, error) {
	events := []runlane.Event{
		{RunID: run.ID, Environment: rt.environment, OccurredAt: at, Actor: runlane.SystemActor, Body: body},
	}
	transition, err := rt.transition(run, events)
	if err != nil {
		return nil, err
	}
	commit, err := rt.storage().AppendRunEvents(ctx, &lane.AppendCommand{Transition: transition})
	if err != nil {
		return nil, err
	}
	projected := transition.Projected
	rt.committed(ctx, commit, projected)
	if lane.HoldsSlot(run) && !lane.HoldsSlot(projected) {
		rt.handOver(ctx, projected)
	}
	return projected, nil
}

// requestDelivery appends the durable intent to wake a worker at once.
func (rt *Runtime) requestDelivery(ctx context.Context, run *runlane.Run, at time.Time) (*lane.Commit, error) {
	events := []runlane.Event{{
		RunID:       run.ID,
		Environment: rt.environment,
		OccurredAt:  at,
		Actor:       runlane.SystemActor,
		Body: &runlane.RunDeliveryRequested{Delivery: runlane.Delivery{
			Environment: rt.environment,
			RunID:       run.ID,
			Queue:       run.Queue,
			AvailableAt: at,
			RequestedAt: at,
		}},
	}}
	transition, err := rt.transition(run, events)
	if err != nil {
		return nil, err
	}
	return rt.storage().AppendRunEvents(ctx, &lane.AppendCommand{
		Transition: transition, Outbox: lane.InitialOutbox{ClaimUntil: at.Add(outboxClaim)},
	})
}
