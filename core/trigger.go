package core

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"maps"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

const (
	// triggerRounds bounds how often a trigger resolves the owners of its keys anew.
	triggerRounds = 3
)

// Storages order instants from the epoch up to the last one that has 13 digits of milliseconds.
var (
	earliestTime = time.UnixMilli(0)
	latestTime   = time.UnixMilli(9_999_999_999_999)
)

// Trigger makes a run durable and wakes a worker. When it returns without an error the run will execute, whatever happens to
// this process: a wakeup that fails never fails the trigger, the outbox keeps it. The task needs no handler here.
//
// What is wrong with the call is runlane.ErrValidationFailed (or runlane.ErrConfigurationInvalid for a bad definition or a queue
// without a binding), and nothing was written. A held singleton key is runlane.ConflictSingletonKey with the holder in
// Error.RunID, unless ReturnActive is set. runlane.ErrStorageUnavailable may leave the outcome unknown: trigger again with an
// idempotency key or a run id of your own.
//
// What follows the commit (publishing, acknowledging) survives the end of ctx and takes a few seconds at most.
func (rt *Runtime) Trigger(ctx context.Context, call runlane.Call, options *runlane.TriggerOptions) (*runlane.TriggerResult, error) {
	if err := rt.gate.enterLate(); err != nil {
		return nil, err
	}
	defer rt.gate.leave()
	return rt.trigger(ctx, call, options, nil)
}

// noOptions stand for nil; nobody writes to them.
var noOptions runlane.TriggerOptions

// trigger serves applications (parent nil) and attempts, whose run is the parent.
func (rt *Runtime) trigger(
	ctx context.Context, call runlane.Call, options *runlane.TriggerOptions, parent *runlane.Run,
) (*runlane.TriggerResult, error) {
	if options == nil {
		options = &noOptions
	}
	p := plans.Get().(*plan)
	defer p.done()
	p.options, p.parent = options, parent
	if err := rt.prepare(p, call); err != nil {
		return nil, err
	}
	result, commit, err := rt.resolve(ctx, p, rt.create)
	if commit != nil {
		rt.announce(ctx, p, commit)
	}
	return result, err
}

// plans are used again: storages keep nothing of a command.
var plans = sync.Pool{New: func() any { return new(plan) }}

func (p *plan) done() {
	*p = plan{}
	plans.Put(p)
}

// resolve makes the run, or answers with the one that is there already; commit is nil then.
func (rt *Runtime) resolve(ctx context.Context, p *plan, create creator) (result *runlane.TriggerResult, commit *lane.Commit, err error) {
	for range triggerRounds {
		if result, commit, err = rt.attemptTrigger(ctx, p, create); result != nil || !errors.Is(err, errRepeat) {
			return result, commit, err
		}
	}
	return nil, nil, errors.Unwrap(err)
}

// creator commits the creation that a plan asks for.
type creator func(ctx context.Context, p *plan) (*lane.Commit, error)

// errRepeat wraps the race that attemptTrigger lost to somebody who is gone again.
var errRepeat = errors.New("resolve the owners again")

type repeatError struct{ cause error }

func (e *repeatError) Error() string        { return e.cause.Error() }
func (e *repeatError) Unwrap() error        { return e.cause }
func (e *repeatError) Is(target error) bool { return target == errRepeat }

// attemptTrigger reads the owner of the idempotency key, which costs less than a commit that fails, and commits when it is free.
func (rt *Runtime) attemptTrigger(ctx context.Context, p *plan, create creator) (*runlane.TriggerResult, *lane.Commit, error) {
	if p.idempotencyKey != "" {
		owner := lane.OwnerKey{Environment: rt.environment, TaskID: p.task.ID, Key: p.idempotencyKey}
		existing, err := rt.lane.Storage.GetRunByIdempotencyKey(ctx, owner)
		if err == nil {
			result, err := p.duplicate(existing)
			return result, nil, err
		}
		if !isNotFound(err) {
			return nil, nil, err
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

// duplicate answers with the owner of the idempotency key.
func (p *plan) duplicate(existing *runlane.Run) (*runlane.TriggerResult, error) {
	differs := !bytes.Equal(existing.Payload, p.payload)
	if differs && p.options.StrictPayload {
		if err := existing.PayloadError(); err != nil {
			return nil, err
		}
		return nil, &runlane.Error{
			Code: runlane.ErrValidationFailed, Message: "a run with this idempotency key has another payload", RunID: existing.ID,
			Hint: "use another key, or clear StrictPayload to get the existing run",
		}
	}
	return &runlane.TriggerResult{Run: existing, Outcome: runlane.TriggerReturnedExisting, PayloadDiffers: differs}, nil
}

// holder answers with the run that holds the singleton key, unless that is the one which is triggering: it would wait for itself.
func (rt *Runtime) holder(ctx context.Context, p *plan, conflict error) (*runlane.TriggerResult, error) {
	var holder runlane.RunID
	if e, ok := asError(conflict); ok {
		holder = e.RunID
	}
	if holder == "" || p.parent != nil && holder == p.parent.ID {
		return nil, conflict
	}
	run, err := rt.lane.Storage.GetRun(ctx, lane.RunKey{Environment: rt.environment, RunID: holder})
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

// sameRun answers a run id that exists: the same call made twice is no fault, another one under its id is.
func (rt *Runtime) sameRun(ctx context.Context, p *plan, conflict error) (*runlane.TriggerResult, error) {
	run, err := rt.lane.Storage.GetRun(ctx, lane.RunKey{Environment: rt.environment, RunID: p.id})
	switch {
	case isNotFound(err):
		return nil, &repeatError{conflict}
	case err != nil:
		return nil, err
	case run.PayloadError() != nil:
		return nil, run.PayloadError()
	case run.TaskID != p.task.ID || !bytes.Equal(run.Payload, p.payload):
		return nil, &runlane.Error{
			Code: runlane.ErrValidationFailed, Message: "a run with this id has another task or payload", RunID: p.id,
			Hint: "ids name one run for ever: leave RunID empty, or derive it from task and payload",
		}
	}
	return &runlane.TriggerResult{Run: run, Outcome: runlane.TriggerReturnedExisting}, nil
}

// create commits run.created and its first delivery request. A run of a bounded queue has a slot reserved with it; without a free
// one, and before it is due, it is created alone and waits.
func (rt *Runtime) create(ctx context.Context, p *plan) (*lane.Commit, error) {
	if !p.queue.Bounded() {
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
		Environment: rt.environment, RunID: p.id, Queue: p.queue.Name, AvailableAt: p.availableAt, RequestedAt: p.at,
	}
	c.events[0] = rt.createdEvent(p, &c.created)
	c.events[1] = runlane.Event{RunID: p.id, Environment: rt.environment, OccurredAt: p.at, Actor: p.actor, Body: &c.requested}
	if p.queue.Bounded() {
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
		Events: events, Projected: projected, Queue: p.queue, PayloadHash: p.payloadHash, WithoutRecords: !rt.watched,
	}
	if !p.options.Deferred {
		c.command.Outbox.ClaimUntil = p.at.Add(outboxClaim)
	}
	commit, err := rt.lane.Storage.AppendRunEvents(ctx, &c.command)
	if err == nil && commit.Run == nil {
		commit.Run = kept(projected)
	}
	return commit, err
}

// kept makes a new projection what storages return of it: it shares nothing with the call.
func kept(run *runlane.Run) *runlane.Run {
	run.Payload = bytes.Clone(run.Payload)
	run.TraceCarrier, run.Meta = maps.Clone(run.TraceCarrier), maps.Clone(run.Meta)
	run.DispatchExpiresAt = runlane.UTCMillis(run.DispatchExpiresAt)
	return run
}

// createdEvent is the run.created that a plan asks for, with the given body to fill.
func (rt *Runtime) createdEvent(p *plan, body *runlane.RunCreated) runlane.Event {
	*body = runlane.RunCreated{
		TaskID: p.task.ID, Queue: p.queue.Name, Payload: p.payload, RunAt: p.runAt, ConcurrencyKey: p.concurrencyKey,
		IdempotencyKey: p.idempotencyKey, Retention: p.retention, SingletonKey: p.singletonKey, Source: p.source,
	}
	return runlane.Event{
		RunID: p.id, Environment: rt.environment, OccurredAt: p.at, Actor: p.actor, Meta: p.options.Meta, TraceCarrier: p.traceCarrier, Body: body,
	}
}

// creation is everything that one creating commit needs, in one piece of memory.
type creation struct {
	command   lane.AppendCommand
	events    [2]runlane.Event
	created   runlane.RunCreated
	requested runlane.RunDeliveryRequested
}

// announce sends what the commit asks for: its wakeup at once, or a delayed one where the transport can hold it until the run is
// due. Failures are recorded with the outbox row and logged.
func (rt *Runtime) announce(ctx context.Context, p *plan, commit *lane.Commit) {
	if p.options.Deferred {
		return
	}
	run := commit.Run
	if wait := p.availableAt.Sub(p.at); wait > 0 {
		rt.wakeLater(ctx, run, wait)
		return
	}
	if len(commit.Outbox) == 0 { // it waits for a slot; one may have been freed since there was none
		rt.reserveFreed(ctx, run)
		return
	}
	if result := rt.publishBorn(ctx, commit.Outbox); result.Err != nil {
		rt.logRun(ctx, run, "wakeup was not published; the outbox keeps it", result.Err)
	}
}

// plan is a validated trigger.
type plan struct {
	options *runlane.TriggerOptions
	parent  *runlane.Run // the run whose handler triggers; nil for applications

	task           *runlane.Definition
	queue          runlane.Queue
	id             runlane.RunID
	actor          runlane.Actor
	source         runlane.Source
	at             time.Time // now
	runAt          time.Time // zero: at once
	availableAt    time.Time
	payload        []byte
	payloadHash    string // only with an idempotency key
	concurrencyKey string
	idempotencyKey string
	retention      runlane.KeyRetention
	singletonKey   string
	traceCarrier   map[string]string

	creation creation
}

// prepare validates the whole call; nothing is written before it has passed.
func (rt *Runtime) prepare(p *plan, call runlane.Call) error {
	prepared, err := call.Prepare()
	if err != nil {
		return tame(err)
	}
	o := p.options
	p.task, p.payload = call.Task, prepared.Payload
	p.concurrencyKey = override(o.ConcurrencyKey, prepared.ConcurrencyKey)
	p.idempotencyKey = override(o.IdempotencyKey, prepared.IdempotencyKey)
	p.singletonKey = override(o.SingletonKey, prepared.SingletonKey)
	p.source = runlane.Source{Type: runlane.SourceTrigger}
	p.traceCarrier = o.TraceCarrier
	if p.parent != nil {
		p.source.RunID = p.parent.ID
		if p.traceCarrier == nil {
			p.traceCarrier = p.parent.TraceCarrier
		}
	}
	if err := firstError(
		rt.prepareQueue(p), prepareKeys(p), rt.checkOwners(p), prepareActor(p), checkMeta(p), rt.prepareTime(p),
	); err != nil {
		return err
	}
	p.settleRetention(prepared.IdempotencyTTL)
	if p.id = o.RunID; p.id == "" {
		p.id = runlane.RunID(rt.world.NewID("run_"))
		return nil
	}
	return p.id.Validate()
}

func (rt *Runtime) prepareQueue(p *plan) error {
	if p.queue = p.options.Queue; p.queue == (runlane.Queue{}) {
		p.queue = p.task.Queue
	}
	return rt.checkQueue(p.queue)
}

func prepareKeys(p *plan) error {
	o := p.options
	for _, key := range [...]struct{ what, value string }{
		{"concurrency key", o.ConcurrencyKey}, {"idempotency key", o.IdempotencyKey}, {"singleton key", o.SingletonKey},
	} {
		if key.value == "" {
			continue
		}
		if err := runlane.ValidateKey(key.what, key.value); err != nil {
			return err
		}
	}
	return nil
}

func (rt *Runtime) checkOwners(p *plan) error {
	if p.singletonKey != "" && !rt.lane.Storage.Capabilities().EnforcesSingleton {
		return unsupported("the storage does not enforce singleton keys")
	}
	ttl := p.options.IdempotencyTTL
	if ttl < 0 && ttl != runlane.WhileActive {
		return invalidInput("use runlane.WhileActive, 0 for the task's, or a duration", "IdempotencyTTL is %s", ttl)
	}
	if p.idempotencyKey == "" {
		return nil
	}
	if !rt.lane.Storage.Capabilities().EnforcesIdempotency {
		return unsupported("the storage does not enforce idempotency keys")
	}
	return nil
}

// settleRetention needs the task's own TTL, which only the prepared call knows.
func (p *plan) settleRetention(taskTTL time.Duration) {
	if p.idempotencyKey == "" {
		return
	}
	ttl := p.options.IdempotencyTTL
	if ttl == 0 {
		ttl = taskTTL
	}
	if ttl == runlane.WhileActive {
		p.retention = runlane.KeyRetention{WhileActive: true}
	} else {
		p.retention = runlane.KeyRetention{TTL: ttl}
	}
	sum := sha256.Sum256(p.payload)
	p.payloadHash = hex.EncodeToString(sum[:16])
}

func prepareActor(p *plan) error {
	p.actor = p.options.Actor
	switch p.actor.Type {
	case runlane.ActorSystem, runlane.ActorOperator, runlane.ActorSchedule, runlane.ActorWorker:
		return runlane.ValidateKey("actor id", p.actor.ID)
	case "":
		if p.actor.ID == "" {
			p.actor = runlane.SystemActor
			return nil
		}
	}
	return invalidInput("use one of the runlane.Actor… types", "actor has the unknown type %q", p.actor.Type)
}

func checkMeta(p *plan) error {
	if len(p.options.Meta) == 0 && len(p.traceCarrier) == 0 {
		return nil
	}
	size := 0
	for _, option := range [...]struct {
		name   string
		values map[string]string
	}{{"Meta", p.options.Meta}, {"TraceCarrier", p.traceCarrier}} {
		for k, v := range option.values {
			size += len(k) + len(v)
			if !utf8.ValidString(k) || !utf8.ValidString(v) { // storages keep text, and would change it
				return invalidInput("use text, or encode the bytes", "%s is not valid UTF-8", option.name)
			}
		}
	}
	if size > runlane.MaxMetaBytes {
		return invalidInput("keep bulk in the payload", "Meta and TraceCarrier have %d bytes together, more than %d", size, runlane.MaxMetaBytes)
	}
	return nil
}

// prepareTime keeps the promise "not before this instant" in whole milliseconds, so it rounds up.
func (rt *Runtime) prepareTime(p *plan) error {
	o, now := p.options, rt.world.Now()
	p.at = runlane.UTCMillis(now)
	p.availableAt = p.at
	switch {
	case o.Delay < 0:
		return invalidInput("use 0 or more", "Delay is %s", o.Delay)
	case o.Delay > 0 && !o.RunAt.IsZero():
		return invalidInput("give one of them", "both Delay and RunAt are set")
	case o.Delay == 0 && o.RunAt.IsZero():
		return nil
	}
	runAt := o.RunAt
	if o.Delay > 0 {
		runAt = now.Add(o.Delay)
	}
	// Compared as instants: the milliseconds of one that is far away do not fit into 64 bits, and would lie anywhere.
	if runAt.Before(earliestTime) || runAt.After(latestTime) {
		return invalidInput("use an instant from 1970 to 2286; were nanoseconds or milliseconds taken for seconds?",
			"by Delay or RunAt the run would be due in the year %d", runAt.Year())
	}
	runAt = ceilMillis(runAt)
	if runAt.After(p.at) {
		p.runAt, p.availableAt = runAt, runAt
	}
	return nil
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// ceilMillis is t in whole milliseconds, rounded up.
func ceilMillis(t time.Time) time.Time {
	down := runlane.UTCMillis(t)
	if down.Before(t) {
		return down.Add(time.Millisecond)
	}
	return down
}

func override(given, computed string) string {
	if given != "" {
		return given
	}
	return computed
}
