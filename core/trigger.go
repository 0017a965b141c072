package core

import (
	"bytes"
	"context"
	"errors"
	"maps"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core/internal/origin"
	"github.com/runlane/runlane-go/internal/blind"
	"github.com/runlane/runlane-go/lane"
)

// triggerRounds limits how often a trigger resolves the owners of its keys again.
const triggerRounds = 3

// Trigger makes a run durable and wakes a worker. Once it returns without an error the run will execute, even if this
// process dies. A failed wakeup never fails the trigger: the outbox keeps it. The task needs no handler here.
//
// After any of these errors nothing was written:
//
//   - runlane.ErrValidationFailed: the call is wrong.
//   - runlane.ErrConfigurationInvalid: the definition is bad, or the queue has no binding.
//   - runlane.ConflictSingletonKey: the run in Error.RunID holds the singleton key, and ReturnActive is not set.
//   - runlane.ErrOverloaded: the storage is near its limit. Try again after Error.RetryAfter.
//
// runlane.ErrStorageUnavailable may leave the outcome unknown: trigger again with an idempotency key or your own run
// id.
//
// Work after the commit (publishing, acknowledging) survives the end of ctx and takes a few seconds at most.
func (rt *Runtime) Trigger(
	ctx context.Context, call runlane.Call, options *runlane.TriggerOptions,
) (*runlane.TriggerResult, error) {
	if err := rt.gate.enterLate(); err != nil {
		return nil, err
	}
	defer rt.gate.leave()
	return rt.trigger(ctx, call, options, caller{})
}

// noOptions replaces nil and is never written.
var noOptions runlane.TriggerOptions

// trigger serves applications (by zero) and attempts.
func (rt *Runtime) trigger(
	ctx context.Context, call runlane.Call, options *runlane.TriggerOptions, by caller,
) (*runlane.TriggerResult, error) {
	if options == nil {
		options = &noOptions
	}
	p := plans.Get().(*plan)
	defer p.done()
	p.options, p.caller = options, by
	if err := rt.prepare(p, call); err != nil {
		return nil, err
	}
	if by.parent == nil {
		if err := rt.admit(ctx, 1, Labels{TaskID: p.task.ID, Queue: p.queue.Name}); err != nil {
			return nil, err
		}
	}
	ctx, t := rt.traceCreation(ctx, p)
	result, commit, err := rt.resolve(ctx, p, rt.create)
	if commit != nil {
		rt.announce(ctx, p, commit)
	}
	t.done(createdEnd(result, err))
	return result, err
}

// resolve creates the run, or returns the existing one with a nil commit.
func (rt *Runtime) resolve(
	ctx context.Context, p *plan, create creator,
) (result *runlane.TriggerResult, commit *lane.Commit, err error) {
	if p.debounced != nil {
		return rt.resolveDebounced(ctx, p, create)
	}
	for range triggerRounds {
		if result, commit, err = rt.attemptTrigger(ctx, p, create); result != nil || !errors.Is(err, errRepeat) {
			return result, commit, err
		}
	}
	return nil, nil, errors.Unwrap(err)
}

type creator func(ctx context.Context, p *plan) (*lane.Commit, error)

// errRepeat wraps a race that attemptTrigger lost to an owner that has gone meanwhile.
var errRepeat = errors.New("resolve the owners again")

type repeatError struct{ cause error }

func (e *repeatError) Error() string        { return e.cause.Error() }
func (e *repeatError) Unwrap() error        { return e.cause }
func (e *repeatError) Is(target error) bool { return target == errRepeat }

// attemptTrigger reads the owner of the idempotency key, which costs less than a failed commit, and commits if it is
// free.
func (rt *Runtime) attemptTrigger(
	ctx context.Context, p *plan, create creator,
) (*runlane.TriggerResult, *lane.Commit, error) {
	if p.idempotencyKey != "" {
		owner := lane.OwnerKey{Environment: rt.environment, TaskID: p.task.ID, Key: p.idempotencyKey}
		existing, err := rt.storage().GetRunByIdempotencyKey(ctx, owner)
		switch {
		case isNotFound(err):
		case err != nil:
			return nil, nil, err
		case p.debounced == nil:
			result, err := p.duplicate(existing)
			return result, nil, err
		case existing.Debounced == nil || rt.now().Before(existing.RunAt):
			result, err := rt.putOff(ctx, p, existing)
			return result, nil, err
		}
	}
	commit, err := create(ctx, p)
	if err == nil {
		return &runlane.TriggerResult{Run: commit.Run, Outcome: runlane.TriggerCreated}, commit, nil
	}
	var result *runlane.TriggerResult
	switch {
	case isConflict(err, runlane.ConflictIdempotencyKey):
		err = &repeatError{err}
	case isConflict(err, runlane.ConflictSingletonKey) && p.options.ReturnActive:
		result, err = rt.holder(ctx, p, err)
	case isConflict(err, runlane.ConflictEventSequence) && p.options.RunID != "":
		result, err = rt.sameRun(ctx, p, err)
	}
	return result, nil, err
}

// duplicate returns the owner of the idempotency key.
func (p *plan) duplicate(existing *runlane.Run) (*runlane.TriggerResult, error) {
	differs := !bytes.Equal(existing.Payload, p.payload)
	if differs && p.options.StrictPayload {
		if err := existing.PayloadError(); err != nil {
			return nil, err
		}
		return nil, &runlane.Error{
			Code:    runlane.ErrValidationFailed,
			Message: "a run with this idempotency key has another payload",
			RunID:   existing.ID,
			Hint:    "use another key, or clear StrictPayload to get the existing run",
		}
	}
	return &runlane.TriggerResult{Run: existing, Outcome: runlane.TriggerReturnedExisting, PayloadDiffers: differs}, nil
}

// holder returns the run that holds the singleton key, unless it is the parent: that would wait for itself.
func (rt *Runtime) holder(ctx context.Context, p *plan, conflict error) (*runlane.TriggerResult, error) {
	var holder runlane.RunID
	if e, ok := asError(conflict); ok {
		holder = e.RunID
	}
	if holder == "" || p.parent != nil && holder == p.parent.ID {
		return nil, conflict
	}
	run, err := rt.storage().GetRun(ctx, lane.RunKey{Environment: rt.environment, RunID: holder})
	switch {
	case isNotFound(err), err == nil && run.Status.Terminal():
		return nil, &repeatError{conflict}
	case err != nil:
		return nil, err
	}
	return &runlane.TriggerResult{
		Run: run, Outcome: runlane.TriggerReturnedExisting, PayloadDiffers: !bytes.Equal(run.Payload, p.payload),
	}, nil
}

// sameRun handles an existing run id: repeating the same call succeeds, a different call under the id fails. Callers
// that may not read payloads get the run even for another payload.
func (rt *Runtime) sameRun(ctx context.Context, p *plan, conflict error) (*runlane.TriggerResult, error) {
	run, err := rt.storage().GetRun(ctx, lane.RunKey{Environment: rt.environment, RunID: p.id})
	switch {
	case isNotFound(err):
		return nil, &repeatError{conflict}
	case err != nil:
		return nil, err
	case (p.parentCall != "" || p.node != nil) && !origin.Same(run.Source, p.source):
		return nil, origin.Stranger(run, p.source)
	case run.PayloadError() != nil:
		return nil, run.PayloadError()
	}
	differs := !bytes.Equal(run.Payload, p.payload)
	if run.TaskID != p.task.ID || differs && (p.parentCall != "" || p.node != nil || !blind.Is(ctx)) {
		return nil, &runlane.Error{
			Code:    runlane.ErrValidationFailed,
			Message: "a run with this id has another task or payload",
			RunID:   p.id,
			Hint:    "ids name one run for ever: leave RunID empty, or derive it from task and payload",
		}
	}
	return &runlane.TriggerResult{Run: run, Outcome: runlane.TriggerReturnedExisting, PayloadDiffers: differs}, nil
}

// announce sends the commit's wakeup now, or a delayed one if the transport can hold it until the run is due. Failures
// are recorded with the outbox row and logged.
func (rt *Runtime) announce(ctx context.Context, p *plan, commit *lane.Commit) {
	if p.options.Deferred || p.wait != nil {
		return
	}
	run := commit.Run
	if wait := p.availableAt.Sub(p.at); wait > 0 {
		rt.wakeLater(ctx, run, wait)
		return
	}
	if len(commit.Outbox) == 0 { // it waits for a slot; one may have been freed meanwhile
		if p.queue.Concurrency > 0 {
			rt.reserveFreed(ctx, run)
		}
		return
	}
	if result := rt.publishCommitted(ctx, commit.Outbox); result.Err != nil {
		rt.logRun(ctx, run, "wakeup was not published; the outbox keeps it", result.Err)
	}
}

// create commits run.created and its first delivery request. In a bounded queue the commit also reserves the slot. If
// no slot is free, or the run is not due yet, it is created without one and waits. In a queue with only a rate, a ticket
// takes the place of the slot.
func (rt *Runtime) create(ctx context.Context, p *plan) (*lane.Commit, error) {
	if !p.queue.Bounded() || p.wait != nil || p.debounced != nil {
		return rt.commitCreation(ctx, p, true)
	}
	if !p.runAt.IsZero() {
		return rt.commitCreation(ctx, p, false)
	}
	if p.queue.Concurrency == 0 {
		var ok bool
		var err error
		if p.ticket, ok, err = rt.takeTicket(ctx, p.queue, p.concurrencyKey, p.at); err != nil {
			return nil, err
		}
		if !ok {
			return rt.commitCreation(ctx, p, false)
		}
	}
	commit, err := rt.commitCreation(ctx, p, true)
	if !isConflict(err, runlane.ConflictQueueCapacity) {
		return commit, err
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
	if p.queue.Bounded() && p.wait == nil && p.debounced == nil {
		c.requested.Delivery.DispatchExpiresAt = latest(p.at, p.ticket).Add(lane.DispatchTimeout(p.queue))
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
	c.command.Writes = p.options.Writes
	if !p.options.Deferred {
		c.command.Outbox.ClaimUntil = p.at.Add(outboxClaim)
	}
	commit, err := rt.storage().AppendRunEvents(ctx, &c.command)
	if err == nil && commit.Run == nil {
		commit.Run = detach(projected)
	}
	if err == nil {
		holdUntil(commit.Outbox, p.ticket)
	}
	return commit, err
}

// detach copies a new projection so that it shares no memory with the call, like runs from storages.
func detach(run *runlane.Run) *runlane.Run {
	run.Payload = bytes.Clone(run.Payload)
	run.TraceCarrier, run.Meta = maps.Clone(run.TraceCarrier), maps.Clone(run.Meta)
	run.DispatchExpiresAt = runlane.UTCMillis(run.DispatchExpiresAt)
	return run
}

// createdEvent fills body and returns the plan's run.created.
func (rt *Runtime) createdEvent(p *plan, body *runlane.RunCreated) runlane.Event {
	*body = runlane.RunCreated{
		TaskID:         p.task.ID,
		Queue:          p.queue.Name,
		Payload:        p.payload,
		RunAt:          p.runAt,
		ConcurrencyKey: p.concurrencyKey,
		IdempotencyKey: p.idempotencyKey,
		Retention:      p.retention,
		Debounced:      p.debounced,
		SingletonKey:   p.singletonKey,
		Priority:       p.priority,
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
	commit, err := rt.storage().AppendRunEvents(ctx, &lane.AppendCommand{
		Transition: lane.Transition{
			Events:      events,
			Projected:   projected,
			Queue:       p.queue,
			PayloadHash: p.payloadHash,
		},
		Writes: p.options.Writes,
	})
	if err != nil && rt.claimedAfterAll(ctx, err, p.id, lease.Token) {
		return &lane.Commit{Run: projected}, nil // only the answer was lost, and the lease is ours
	}
	return commit, err
}

// Trigger starts a run with this run as its source.
func (x *execution) Trigger(
	ctx context.Context, call runlane.Call, options *runlane.TriggerOptions,
) (*runlane.TriggerResult, error) {
	if err := x.rt.gate.enterLate(); err != nil {
		return nil, err
	}
	defer x.rt.gate.leave()
	return x.rt.trigger(ctx, call, options, caller{parent: x.started})
}
