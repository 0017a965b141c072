package core

import (
	"context"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// appendEvent commits one event of the runtime itself to a run that nobody owns, and offers the slot that it frees to the next.
func (rt *Runtime) appendEvent(ctx context.Context, run *runlane.Run, at time.Time, body runlane.EventBody) (*runlane.Run, error) {
	events := []runlane.Event{{RunID: run.ID, Environment: rt.environment, OccurredAt: at, Actor: runlane.SystemActor, Body: body}}
	projected, err := ProjectRunEvents(run, run.EventSequence, events...)
	if err != nil {
		return nil, err
	}
	_, err = rt.encoded().AppendRunEvents(ctx, &lane.AppendCommand{Transition: lane.Transition{
		ExpectedSequence: run.EventSequence, Events: events, Projected: projected, Queue: rt.policy(run.Queue),
	}})
	if err != nil {
		return nil, err
	}
	if lane.HoldsSlot(run) && !lane.HoldsSlot(projected) {
		rt.handOver(ctx, projected)
	}
	return projected, nil
}
