package core

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

const (
	// Keys of debounced and throttled runs are idempotency keys with these beginnings.
	debounceKey = "debounce:"
	throttleKey = "throttle:"
	// debounceRounds is how often a trigger tries again when others of its key were faster.
	debounceRounds = 16
	// debouncePause is the longest pause before the second of these rounds; it grows with each.
	debouncePause = 10 * time.Millisecond
)

// prepareWindow settles the owner of a key of Debounce or Throttle, in place of the task's idempotency key.
func (rt *Runtime) prepareWindow(p *plan) error {
	o := p.options
	debounced, throttled := o.Debounce != (runlane.Debounce{}), o.Throttle != (runlane.Throttle{})
	if !debounced && !throttled {
		return nil
	}
	what, key, window := "Debounce", debounceKey+o.Debounce.Key, o.Debounce.Window
	if throttled {
		what, key, window = "Throttle", throttleKey+o.Throttle.Key, o.Throttle.Window
	}
	switch {
	case debounced && throttled:
		return invalidInput("give one of them", "both Debounce and Throttle are set")
	case window <= 0:
		return invalidInput("use a duration above 0", "%s.Window is %s", what, window)
	case o.Debounce.Max < 0 || o.Debounce.Max > 0 && o.Debounce.Max < window:
		return invalidInput("use 0 for no limit, or at least Window", "Debounce.Max is %s", o.Debounce.Max)
	case o.IdempotencyKey != "" || o.IdempotencyTTL != 0 || o.StrictPayload:
		return invalidInput("give one of them",
			"%s is set beside IdempotencyKey, IdempotencyTTL or StrictPayload", what)
	case p.node != nil || p.parentCall != "":
		return invalidInput("trigger the run, or leave the option out", "%s is set for a run that another waits for", what)
	case !rt.storage().Capabilities().EnforcesIdempotency:
		return unsupported("the storage does not enforce idempotency keys")
	}
	if err := runlane.ValidateKey("the key of "+what, key); err != nil {
		return err
	}
	p.idempotencyKey = key
	window = ceilMillis(time.UnixMilli(0).Add(window)).Sub(time.UnixMilli(0))
	if throttled {
		p.retention = runlane.KeyRetention{TTL: window, Window: true}
		return nil
	}
	if o.Delay != 0 || !o.RunAt.IsZero() || o.Writes != nil {
		return invalidInput("leave them out: the window decides when the run starts, and later triggers make no run",
			"Debounce is set beside Delay, RunAt or Writes")
	}
	p.retention, p.debounced = runlane.KeyRetention{UntilDue: true}, &runlane.Debounced{Triggers: 1}
	p.runAt = p.at.Add(window)
	if o.Debounce.Max > 0 {
		p.debounced.Latest = p.at.Add(o.Debounce.Max)
	}
	if p.runAt.After(latestTime) || p.debounced.Latest.After(latestTime) {
		return invalidInput("use a shorter window", "by Debounce the run would be due in the year %d", p.runAt.Year())
	}
	p.availableAt = p.runAt
	return nil
}

// putOff gives the payload to the run that waits for the last trigger of its key, and lets it wait for longer.
func (rt *Runtime) putOff(ctx context.Context, p *plan, waiting *runlane.Run) (*runlane.TriggerResult, error) {
	if waiting.Debounced == nil {
		return nil, &runlane.Error{
			Code: runlane.ErrValidationFailed, RunID: waiting.ID,
			Message: "the key of Debounce is the idempotency key of a run that is not debounced",
			Hint:    "use idempotency keys that do not begin with " + debounceKey,
		}
	}
	at := rt.now()
	if !at.Before(waiting.RunAt) {
		return nil, &repeatError{changing(waiting.ID)} // it may start since a moment ago
	}
	runAt := latest(waiting.RunAt, at.Add(p.runAt.Sub(p.at)))
	if end := waiting.Debounced.Latest; !end.IsZero() && runAt.After(end) {
		runAt = end
	}
	transition, err := rt.transition(waiting, []runlane.Event{{
		RunID: waiting.ID, Environment: rt.environment, OccurredAt: at, Actor: p.actor, Meta: p.options.Meta,
		TraceCarrier: p.traceCarrier,
		Body:         &runlane.RunDebounced{RunAt: runAt, Payload: p.payload},
	}})
	if err != nil {
		return nil, err
	}
	commit, err := rt.storage().AppendRunEvents(ctx, &lane.AppendCommand{Transition: transition})
	if isConflict(err, runlane.ConflictEventSequence) {
		return nil, &repeatError{changing(waiting.ID)}
	}
	if err != nil {
		return nil, err
	}
	return &runlane.TriggerResult{
		Run: commit.Run, Outcome: runlane.TriggerDebounced,
		PayloadDiffers: !bytes.Equal(waiting.Payload, p.payload),
	}, nil
}

func changing(run runlane.RunID) error {
	return &runlane.Error{
		Code: runlane.ErrStorageUnavailable, RunID: run, Retryable: true,
		Message: "other triggers changed the run of this key at each try; nothing was written",
		Hint:    "trigger again; if it happens often, let fewer processes trigger the key",
	}
}

// resolveDebounced is resolve for a key that others may trigger at the same time.
func (rt *Runtime) resolveDebounced(
	ctx context.Context, p *plan, create creator,
) (result *runlane.TriggerResult, commit *lane.Commit, err error) {
	for round := range debounceRounds {
		result, commit, err = rt.attemptTrigger(ctx, p, create)
		if result != nil || !errors.Is(err, errRepeat) {
			return result, commit, err
		}
		longest := uint64(debouncePause) * uint64(round)
		if round > 0 && !pause(ctx, time.Duration(rt.world.Rand()%longest)) {
			return nil, nil, cancelled(ctx, "")
		}
	}
	return nil, nil, errors.Unwrap(err)
}
