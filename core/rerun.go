package core

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core/internal/origin"
	"github.com/runlane/runlane-go/lane"
)

// Rerun repeats a finished run, with any outcome, as a new run that is due at once. The new run takes over queue,
// concurrency key, singleton key, meta and payload. It has no idempotency key: its source is its identity. A second
// call, for example after a lost answer, returns the existing run; to repeat again, rerun that one. The reason is kept
// in the new run's meta, as "runlane.reason".
//
// After any of these errors nothing was written:
//
//   - runlane.ErrValidationFailed: the run is still active.
//   - runlane.ErrRunNotFound: there is no such run.
//   - runlane.ErrStorageConflict with runlane.ConflictSingletonKey: the active run in Error.RunID holds the singleton
//     key.
//   - runlane.ErrConfigurationInvalid: the queue has no binding.
//   - runlane.ErrPayloadUnreadable: this process cannot open the payload.
func (r *Runs) Rerun(ctx context.Context, id runlane.RunID, options *ChangeOptions) (*runlane.Run, error) {
	return repeated(r.Repeat(ctx, id, runlane.SourceRerun, options))
}

// Retry replaces a failed run by a new run. Unlike a rerun it goes on from what the failed run remembers: steps,
// checkpoints, snapshots, answers, calls whose runs all succeeded, and signals that no wait took. It takes over the
// idempotency key with its retention, so that a trigger with the key returns the new run, and has the same
// [runlane.Run.EffectID]. The new run has the task's whole retry budget. Otherwise it equals [Runs.Rerun]. A run that did not fail is runlane.ErrValidationFailed. If the run in Error.RunID has the key by now,
// the error is runlane.ErrStorageConflict with runlane.ConflictIdempotencyKey.
func (r *Runs) Retry(ctx context.Context, id runlane.RunID, options *ChangeOptions) (*runlane.Run, error) {
	return repeated(r.Repeat(ctx, id, runlane.SourceManualRetry, options))
}

func repeated(result *runlane.TriggerResult, err error) (*runlane.Run, error) {
	if err != nil {
		return nil, err
	}
	return result.Run, nil
}

// Repeat is [Runs.Rerun] for runlane.SourceRerun and [Runs.Retry] for runlane.SourceManualRetry, and reports whether it
// created the run. The outcome is runlane.TriggerReturnedExisting if an earlier call created it, even if that call's
// answer was lost. Another kind is runlane.ErrValidationFailed.
func (r *Runs) Repeat(
	ctx context.Context, id runlane.RunID, kind runlane.SourceType, options *ChangeOptions,
) (*runlane.TriggerResult, error) {
	if err := r.rt.gate.enterLate(); err != nil {
		return nil, err
	}
	defer r.rt.gate.leave()
	if kind != runlane.SourceRerun && kind != runlane.SourceManualRetry {
		return nil, invalidInput("use runlane.SourceRerun or runlane.SourceManualRetry", "the kind is %q", kind)
	}
	c, err := r.rt.newChange(options, "ChangeOptions")
	if err != nil {
		return nil, err
	}
	run, made, err := c.repeat(ctx, id, kind)
	if err != nil {
		return nil, err
	}
	result := &runlane.TriggerResult{Run: run, Outcome: runlane.TriggerReturnedExisting}
	if made {
		result.Outcome = runlane.TriggerCreated
	}
	return result, nil
}

// repeat reports whether it created the run.
func (c change) repeat(
	ctx context.Context, id runlane.RunID, kind runlane.SourceType,
) (run *runlane.Run, made bool, err error) {
	source, err := c.rt.get(ctx, id)
	if err != nil {
		return nil, false, err
	}
	p, err := c.planRepeat(source, kind)
	if err != nil {
		return nil, false, err
	}
	ctx, t := c.rt.traceCreation(ctx, p)
	commit, err := c.rt.createRepeat(ctx, p)
	defer func() { t.done(WorkEnd{Run: run, Existing: !made, Err: err}) }()
	if err == nil {
		c.rt.announce(ctx, p, commit)
		return commit.Run, true, nil
	}
	if !errors.Is(err, runlane.ErrStorageConflict) {
		return nil, false, err
	}
	// The id derives from the source: if the run exists, an earlier call created it, whoever has its keys by now.
	run, readErr := c.rt.get(ctx, p.id)
	switch {
	case isNotFound(readErr):
		return nil, false, err
	case readErr != nil:
		return nil, false, readErr
	case !origin.Same(run.Source, p.source):
		return run, false, origin.Stranger(run, p.source)
	default:
		return run, false, nil
	}
}

// Retries returns the runs that go on with failed ones among the runs ([Runs.Retry]), without payloads and outputs, by
// the ID of the failed one. It takes one read for each failed run and none for others.
func (r *Runs) Retries(ctx context.Context, runs []runlane.RunSummary) (map[runlane.RunID]*runlane.Run, error) {
	if err := r.rt.gate.enterLate(); err != nil {
		return nil, err
	}
	defer r.rt.gate.leave()
	return r.rt.retries(ctx, runs)
}

func (rt *Runtime) retries(ctx context.Context, runs []runlane.RunSummary) (map[runlane.RunID]*runlane.Run, error) {
	var ids []runlane.RunID
	for i := range runs {
		if run := &runs[i]; run.Status == runlane.StatusFailed {
			ids = append(ids, lane.RetryID(rt.environment, run.ID, run.CreatedAt))
		}
	}
	retries := map[runlane.RunID]*runlane.Run{}
	for chunk := range slices.Chunk(ids, runlane.MaxPageLimit) {
		found, err := rt.storage().GetRuns(ctx, &lane.RunsQuery{
			Environment: rt.environment, IDs: chunk, WithoutPayload: true,
		})
		if err != nil {
			return nil, err
		}
		for _, run := range found {
			if run.Source.Type == runlane.SourceManualRetry { // else someone else's run under that ID
				retries[run.Source.RunID] = run
			}
		}
	}
	return retries, nil
}

// createRepeat commits the new run unless another run has the idempotency key. Reading the owner costs less than a
// failed commit, and a storage may keep the failed source as the owner.
func (rt *Runtime) createRepeat(ctx context.Context, p *plan) (*lane.Commit, error) {
	if p.idempotencyKey != "" {
		owner := lane.OwnerKey{Environment: rt.environment, TaskID: p.task.ID, Key: p.idempotencyKey}
		holder, err := rt.storage().GetRunByIdempotencyKey(ctx, owner)
		if err == nil {
			return nil, keyTaken(holder.ID, nil)
		}
		if !isNotFound(err) {
			return nil, err
		}
	}
	commit, err := rt.create(ctx, p)
	if e, ok := asError(err); ok && e.Conflict == runlane.ConflictIdempotencyKey {
		err = keyTaken(e.RunID, err)
	}
	return commit, err
}

func keyTaken(holder runlane.RunID, cause error) error {
	e := runlane.NewConflict(runlane.ConflictIdempotencyKey, "another run has the idempotency key by now")
	e.RunID, e.Cause = holder, cause
	e.Hint = "look at that run; to execute this one all the same rerun it, which takes no idempotency key"
	return e
}

func (c change) planRepeat(source *runlane.Run, kind runlane.SourceType) (*plan, error) {
	if err := firstError(checkRepeatable(source, kind), source.PayloadError()); err != nil {
		return nil, err
	}
	at := c.rt.now()
	p := &plan{
		task:           &runlane.Definition{ID: source.TaskID},
		queue:          c.rt.policy(source.Queue),
		actor:          c.actor,
		id:             repeatID(source, kind),
		source:         runlane.Source{Type: kind, RunID: source.ID, CreatedAt: source.CreatedAt},
		at:             at,
		availableAt:    at,
		payload:        source.Payload,
		concurrencyKey: source.ConcurrencyKey,
		singletonKey:   source.SingletonKey,
		priority:       source.Priority,
		traceLink:      source.TraceCarrier,
		options:        &runlane.TriggerOptions{Meta: c.repeatMeta(source.Meta)},
	}
	if kind == runlane.SourceManualRetry { // it goes on with the failed work; a rerun is work of its own
		p.source.OriginID = runlane.RunID(source.EffectID())
		p.traceCarrier, p.traceLink = source.TraceCarrier, nil
	}
	window := lane.PassesOn(source.Retention) // it is about triggers
	if kind == runlane.SourceManualRetry && source.IdempotencyKey != "" && !window {
		p.idempotencyKey, p.retention = source.IdempotencyKey, source.Retention
		p.payloadHash = payloadHash(p.payload)
	}
	if err := c.rt.checkQueue(p.queue); err != nil {
		return nil, err
	}
	if err := checkMeta(p); err != nil {
		return nil, &runlane.Error{
			Code:    runlane.ErrValidationFailed,
			Message: "the reason does not fit into the run's meta",
			RunID:   source.ID,
			Hint:    fmt.Sprintf("meta has at most %d bytes: give a shorter reason, or none", runlane.MaxMetaBytes),
			Cause:   err,
		}
	}
	return p, nil
}

func checkRepeatable(source *runlane.Run, kind runlane.SourceType) error {
	hint := ""
	switch {
	case source.Status.Active():
		hint = "wait for its end, or cancel it first"
	case kind == runlane.SourceManualRetry && source.Status != runlane.StatusFailed:
		hint = "rerun it instead"
	default:
		return nil
	}
	verb, wants := "rerun", "a finished run"
	if kind == runlane.SourceManualRetry {
		verb, wants = "retry", "a failed run"
	}
	return &runlane.Error{
		Code:    runlane.ErrValidationFailed,
		Message: fmt.Sprintf("the run is %s, and %s takes %s", source.Status, verb, wants),
		RunID:   source.ID,
		Hint:    hint,
		Cause:   errMovedOn,
	}
}

// repeatMeta copies the source's meta and sets this call's reason.
func (c change) repeatMeta(source map[string]string) map[string]string {
	meta := maps.Clone(source)
	delete(meta, metaReason)
	if c.reason == "" {
		return meta
	}
	if meta == nil {
		meta = map[string]string{}
	}
	meta[metaReason] = c.reason
	return meta
}

// repeatID is the same in every process, so a second call is harmless.
func repeatID(source *runlane.Run, kind runlane.SourceType) runlane.RunID {
	return lane.RepeatID(kind, source.Environment, source.ID, source.CreatedAt)
}
