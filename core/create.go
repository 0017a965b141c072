package core

import (
	"bytes"
	"context"
	"maps"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// create commits run.created and its first delivery request. A run of a bounded queue gets its slot reserved in the
// same commit. When no slot is free, or the run is not due yet, it is created without one and waits.
func (rt *Runtime) create(ctx context.Context, p *plan) (*lane.Commit, error) {
	if !p.queue.Bounded() || p.wait != nil {
		return rt.commitCreation(ctx, p, true)
	}
	if p.runAt.IsZero() {
		commit, err := rt.commitCreation(ctx, p, true)
		if !isConflict(err, runlane.ConflictQueueCapacity) {
			return commit, err
		}
	}
	return rt.commitCreation(ctx, p, false)
}

func (rt *Runtime) commitCreation(ctx context.Context, p *plan, requests bool) (*lane.Commit, error) {
	c := &p.creation
	c.requested.Delivery = runlane.Delivery{
		Environment: rt.environment,
		RunID:       p.id,
		Queue:       p.queue.Name,
		AvailableAt: p.availableAt,
		RequestedAt: p.at,
	}
	c.events[0] = rt.createdEvent(p, &c.created)
	c.events[1] = runlane.Event{
		RunID:       p.id,
		Environment: rt.environment,
		OccurredAt:  p.at,
		Actor:       p.actor,
		Body:        &c.requested,
	}
	c.requested.Wait = p.wait
	if p.queue.Bounded() && p.wait == nil {
		c.requested.Delivery.DispatchExpiresAt = p.at.Add(dispatchTimeout(p.queue))
	}
	events := c.events[:]
	if !requests {
		events = events[:1]
	}

	projected, err := ProjectRunEvents(nil, 0, events...)
	if err != nil {
		return nil, err
	}
	c.command.Transition = lane.Transition{
		Events:         events,
		Projected:      projected,
		Queue:          p.queue,
		PayloadHash:    p.payloadHash,
		WithoutRecords: !rt.watched,
	}
	c.command.Flow = p.node
	if !p.options.Deferred {
		c.command.Outbox.ClaimUntil = p.at.Add(outboxClaim)
	}
	commit, err := rt.storage().AppendRunEvents(ctx, &c.command)
	if err == nil && commit.Run == nil {
		commit.Run = detach(projected)
	}
	return commit, err
}

// detach copies a new projection, so that it shares nothing with the call, as what storages return does.
func detach(run *runlane.Run) *runlane.Run {
	run.Payload = bytes.Clone(run.Payload)
	run.TraceCarrier, run.Meta = maps.Clone(run.TraceCarrier), maps.Clone(run.Meta)
	run.DispatchExpiresAt = runlane.UTCMillis(run.DispatchExpiresAt)
	return run
}

// createdEvent is the run.created that a plan asks for, with the given body to fill.
func (rt *Runtime) createdEvent(p *plan, body *runlane.RunCreated) runlane.Event {
	*body = runlane.RunCreated{
		TaskID:         p.task.ID,
		Queue:          p.queue.Name,
		Payload:        p.payload,
		RunAt:          p.runAt,
		ConcurrencyKey: p.concurrencyKey,
		IdempotencyKey: p.idempotencyKey,
		Retention:      p.retention,
		SingletonKey:   p.singletonKey,
		Source:         p.source,
	}
	return runlane.Event{
		RunID:        p.id,
		Environment:  rt.environment,
		OccurredAt:   p.at,
		Actor:        p.actor,
		Meta:         p.options.Meta,
		TraceCarrier: p.traceCarrier,
		Body:         body,
	}
}

// creation is everything that one creating commit needs, in one allocation.
type creation struct {
	command   lane.AppendCommand
	events    [2]runlane.Event
	created   runlane.RunCreated
	requested runlane.RunDeliveryRequested
}

// createStarted commits a run that executes already.
func (rt *Runtime) createStarted(ctx context.Context, p *plan, lease runlane.Lease) (*lane.Commit, error) {
	created := rt.createdEvent(p, &runlane.RunCreated{})
	worker := runlane.Event{
		RunID:       p.id,
		Environment: rt.environment,
		OccurredAt:  p.at,
		Actor:       runlane.Actor{Type: runlane.ActorWorker, ID: lease.WorkerID},
	}
	claimed, begun := worker, worker
	claimed.Body, begun.Body = &runlane.RunLeaseClaimed{Lease: lease}, &runlane.RunStarted{Attempt: 1}
	events := []runlane.Event{created, claimed, begun}
	projected, err := ProjectRunEvents(nil, 0, events...)
	if err != nil {
		return nil, err
	}
	commit, err := rt.storage().AppendRunEvents(ctx, &lane.AppendCommand{Transition: lane.Transition{
		Events:      events,
		Projected:   projected,
		Queue:       p.queue,
		PayloadHash: p.payloadHash,
	}})
	if err != nil && rt.claimedAfterAll(ctx, err, p.id, lease.Token) {
		return &lane.Commit{Run: projected}, nil // only the answer was lost, and the lease is ours
	}
	return commit, err
}
