package core

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

const (
	// occurrenceClaim is how long the right to make an occurrence's run lasts. If a tick dies with it, a later tick
	// takes over.
	occurrenceClaim = time.Minute
	// clockTolerance is how far the clocks of two ticks may be apart.
	clockTolerance = 2500 * time.Millisecond
	// evaluationNoted is how often a tick records that it evaluated a schedule and nothing fired.
	evaluationNoted = time.Hour
)

var errClaimOver = errors.New("the claim of the occurrence is over")

// occurrenceIDs are the same for every process that materializes the occurrence, so that doing it twice is harmless.
func occurrenceIDs(
	e runlane.Environment, id runlane.ScheduleID, fire time.Time,
) (occurrence string, run runlane.RunID) {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00schedule\x00%s\x00%d", e.Name(), id, fire.UnixMilli()))
	text := hex.EncodeToString(sum[:16])
	return "occ_" + text, runlane.RunID("run_" + text)
}

// materialize makes the runs of schedules whose time has come.
func (t *tick) materialize(ctx context.Context) StageResult {
	if len(t.rt.schedules) == 0 {
		return StageResult{}
	}
	records, err := t.rt.scheduleRecords(ctx)
	if err != nil {
		return StageResult{Err: err}
	}
	var result StageResult
	for _, s := range t.rt.schedules {
		if ctx.Err() != nil {
			result.More = true
			break
		}
		e := evaluation{rt: t.rt, schedule: s, record: records[s.ID], now: t.rt.now()}
		if err := e.evaluate(ctx); err != nil {
			e.result.Failed++
			e.result.Err = &runlane.Error{
				Code:      runlane.CodeOf(err),
				Message:   fmt.Sprintf("schedule %q: %s", s.ID, messageOf(err)),
				Retryable: true,
				Cause:     err,
			}
		}
		result.add(e.result)
	}
	return result
}

// scheduleRecords reads all records at once, so that a schedule with nothing due costs no separate request.
func (rt *Runtime) scheduleRecords(ctx context.Context) (map[runlane.ScheduleID]*runlane.ScheduleRecord, error) {
	records := map[runlane.ScheduleID]*runlane.ScheduleRecord{}
	q := lane.PageQuery{Environment: rt.environment, Limit: runlane.MaxPageLimit}
	for {
		page, err := rt.storage().ListSchedules(ctx, &q)
		if err != nil {
			return nil, err
		}
		for i := range page.Items {
			records[page.Items[i].ID] = &page.Items[i]
		}
		if q.After = page.Next; q.After == "" {
			return records, nil
		}
	}
}

// evaluation is one reading of one schedule.
type evaluation struct {
	rt       *Runtime
	schedule *schedule
	record   *runlane.ScheduleRecord // as it was read; nil: there is none yet
	now      time.Time
	result   StageResult
}

// evaluate registers a schedule that is new, else it makes runs of what is due, and records what is left out.
func (e *evaluation) evaluate(ctx context.Context) error {
	if e.record == nil {
		_, err := e.put(ctx, &runlane.ScheduleRecord{
			ID:             e.schedule.ID,
			DefinitionHash: e.schedule.hash,
			RegisteredAt:   e.now,
			LastEvaluated:  e.now,
		})
		return err
	}
	// The schedule is not evaluated: what becomes due meanwhile is one skip, from the last evaluation before the pause
	// on.
	if e.record.Paused {
		e.settle(e.now)
		return nil
	}
	from, err := e.from(ctx)
	if err != nil {
		return err
	}
	if ours, err := e.takeOver(ctx, from); err != nil || !ours {
		return err
	}
	until := e.until()
	fires, more := occurrences(e.schedule.When, from, until)
	e.result.More = more
	plan := judgeMisfires(e.schedule.Misfire, fires, more, e.now)
	if len(plan) == 0 {
		e.settle(until)
		return e.note(ctx)
	}
	plan, err = e.salvage(ctx, plan)
	if err != nil {
		return err
	}
	wait, err := e.waits(ctx, plan)
	if err != nil || wait {
		return err
	}
	if ours, err := e.claimFirst(ctx, plan[0]); err != nil || !ours {
		return err
	}
	for _, f := range plan {
		if done, err := e.fire(ctx, f); err != nil || !done {
			return err
		}
	}
	if !more {
		e.settle(until)
	}
	return nil
}

// salvage finds a run that a tick made and could no longer record. Occurrences are completed in order, so it can only
// be the run of the first one that is due. It is recorded as that run, whatever the misfire policy says now.
func (e *evaluation) salvage(ctx context.Context, plan []firing) ([]firing, error) {
	skip := plan[0]
	if skip.skipped == "" {
		return plan, nil
	}
	_, id := occurrenceIDs(e.rt.environment, e.schedule.ID, skip.first)
	runs, err := e.rt.storage().GetRuns(ctx, &lane.RunsQuery{
		Environment:    e.rt.environment,
		IDs:            []runlane.RunID{id},
		WithoutPayload: true,
	})
	if err != nil || len(runs) == 0 || !sameSource(runs[0].Source, e.source(skip.first)) {
		return plan, err
	}
	salvaged := []firing{{at: skip.first, first: skip.first, count: 1}}
	if skip.count > 1 {
		second, _ := e.schedule.When.Next(skip.first)
		salvaged = append(salvaged, firing{at: skip.at, first: second, count: skip.count - 1, skipped: skip.skipped})
	}
	return append(salvaged, plan[1:]...), nil
}

// claimFirst claims the first of several occurrences that are skipped as one; fire claims the last. Occurrences are
// completed in order, so another tick may be making a run only of the first. ours is false while that tick has it.
func (e *evaluation) claimFirst(ctx context.Context, skip firing) (ours bool, err error) {
	if skip.skipped == "" || skip.count < 2 {
		return true, nil
	}
	claim, err := e.claim(ctx, skip.first)
	if err != nil || claim.Outcome != lane.Acquired {
		return false, errors.Join(err, e.pass(ctx, skip.first))
	}
	return true, nil
}

// claim claims an occurrence for this tick; another one that has it is counted.
func (e *evaluation) claim(ctx context.Context, at time.Time) (*lane.OccurrenceClaim, error) {
	occurrence, _ := occurrenceIDs(e.rt.environment, e.schedule.ID, at)
	claim, err := e.rt.storage().ClaimScheduleOccurrence(ctx, &lane.ClaimOccurrenceCommand{
		ScheduleKey:  e.key(),
		OccurrenceID: occurrence,
		FireTime:     at,
		At:           e.now,
		ClaimUntil:   e.now.Add(occurrenceClaim),
		TrustUntil:   e.trustUntil(),
	})
	if err == nil && claim.Outcome != lane.Acquired {
		e.result.Skipped++
	}
	return claim, err
}

func (e *evaluation) key() lane.ScheduleKey {
	return lane.ScheduleKey{Environment: e.rt.environment, ScheduleID: e.schedule.ID}
}

// fire claims an occurrence, makes its run or not, and completes it. done is false when another process has it.
func (e *evaluation) fire(ctx context.Context, f firing) (done bool, err error) {
	occurrence, runID := occurrenceIDs(e.rt.environment, e.schedule.ID, f.at)
	before, err := e.overlapping(ctx, &f, runID)
	if err != nil {
		return false, err
	}
	claim, err := e.claim(ctx, f.at)
	if err != nil || claim.Outcome != lane.Acquired {
		return false, errors.Join(err, e.pass(ctx, f.at))
	}
	c := &lane.CompleteOccurrenceCommand{
		ScheduleKey:  e.key(),
		OccurrenceID: occurrence,
		FireTime:     f.at,
		Token:        claim.Token,
		Skipped:      f.skipped,
		TrustUntil:   e.trustUntil(),
	}
	if c.Skipped == "" {
		// After errClaimOver the tick that claims it next finds the run.
		if c.Skipped, err = e.make(ctx, f.at, runID, before); errors.Is(err, errClaimOver) {
			e.result.Skipped++
			return false, nil
		} else if err != nil {
			return false, err
		}
	}
	switch {
	case c.Skipped == "":
		c.RunIDs = []runlane.RunID{runID}
	case f.count > 1:
		c.First, c.Count = f.first, f.count
	}
	err = e.rt.storage().CompleteScheduleOccurrence(ctx, c)
	// The claim of a slow process ended, and the process that has it now made the same run.
	if isConflict(err, runlane.ConflictScheduleOccurrence) {
		e.result.Skipped++
		return false, nil
	}
	if err != nil {
		return false, err
	}
	e.record.LastFire = f.at
	if c.Skipped != "" {
		e.result.Skipped++
		return true, nil
	}
	e.record.LastRunID = runID
	e.result.Done++
	return true, nil
}

// make makes the occurrence's run, or says why there is to be none. before are the active runs that its overlap policy
// considers.
func (e *evaluation) make(
	ctx context.Context, fire time.Time, id runlane.RunID, before []runlane.RunID,
) (runlane.SkipReason, error) {
	if len(before) > 0 && e.schedule.Overlap == runlane.OverlapForbid {
		return runlane.SkippedOverlap, nil
	}
	if err := e.replace(ctx, before); err != nil {
		return "", err
	}
	p := e.rt.planScheduled(e.schedule, e.actor(), id, fire)
	claimed, stop := e.whileClaimed(ctx)
	defer stop()
	commit, err := e.rt.create(claimed, p)
	switch {
	case err != nil && context.Cause(claimed) == errClaimOver: //nolint:errorlint // our own, never wrapped
		return "", errClaimOver
	case err == nil:
		e.rt.announce(ctx, p, commit)
		return "", nil
	case isConflict(err, runlane.ConflictEventSequence): // a run has the computed id
		made, readErr := e.rt.foundRun(ctx, id)
		switch {
		case readErr != nil:
			return "", readErr
		case made == nil: // pruned since: the next tick makes it
			return "", err
		case !sameSource(made.Source, p.source):
			return runlane.SkippedIDTaken, nil
		}
		return "", nil
	case isConflict(err, runlane.ConflictSingletonKey):
		return runlane.SkippedSingleton, nil
	default:
		return "", err
	}
}

// whileClaimed ends with the evaluation's claims, before a tick whose clock is ahead takes one over. From then on that
// tick decides about the occurrence, and it may have skipped it, so that a late run would be wrong.
func (e *evaluation) whileClaimed(ctx context.Context) (context.Context, context.CancelFunc) {
	left := e.now.Add(occurrenceClaim - clockTolerance).Sub(e.rt.now())
	return context.WithTimeoutCause(ctx, left, errClaimOver)
}

// source is where the run of an occurrence comes from.
func (e *evaluation) source(fire time.Time) runlane.Source {
	return runlane.Source{Type: runlane.SourceSchedule, ScheduleID: e.schedule.ID, FireTime: fire}
}

func (e *evaluation) actor() runlane.Actor {
	return runlane.Actor{Type: runlane.ActorSchedule, ID: string(e.schedule.ID)}
}

// planScheduled is the trigger of a schedule's run. It has no idempotency key: the occurrence is its identity.
func (rt *Runtime) planScheduled(s *schedule, actor runlane.Actor, id runlane.RunID, fire time.Time) *plan {
	at := rt.now()
	return &plan{
		options:        &noOptions,
		task:           s.Call.Task,
		queue:          s.Call.Task.Queue,
		id:             id,
		actor:          actor,
		source:         runlane.Source{Type: runlane.SourceSchedule, ScheduleID: s.ID, FireTime: fire},
		at:             at,
		availableAt:    at,
		payload:        s.prepared.Payload,
		concurrencyKey: s.prepared.ConcurrencyKey,
		singletonKey:   s.prepared.SingletonKey,
	}
}

// note records that the schedule was evaluated: at once with a changed definition, otherwise now and then.
func (e *evaluation) note(ctx context.Context) error {
	if e.outdated() || e.record.DefinitionHash == e.schedule.hash && e.now.Sub(e.record.LastEvaluated).Abs() < evaluationNoted &&
		e.trusts(e.record.RegisteredAt) {
		return nil
	}
	next := *e.record
	if !e.trusts(next.RegisteredAt) {
		next.RegisteredAt = e.now
	}
	if !e.trusts(next.PendingFire) {
		next.PendingFire = time.Time{}
	}
	next.DefinitionHash, next.LastEvaluated = e.schedule.hash, e.now
	_, err := e.put(ctx, &next)
	return err
}

// put writes the record and reads it back, unless another process wrote it first: that process knew as much.
func (e *evaluation) put(ctx context.Context, r *runlane.ScheduleRecord) (done bool, err error) {
	written, err := e.rt.storage().PutSchedule(ctx, &lane.PutScheduleCommand{Environment: e.rt.environment, Record: *r})
	if isConflict(err, runlane.ConflictScheduleOccurrence) {
		e.rt.logger.LogAttrs(
			ctx,
			slog.LevelDebug,
			"schedule was changed by another process",
			slog.String("schedule", string(r.ID)),
		)
		return false, nil
	}
	if err != nil {
		return false, err
	}
	e.record = written
	return true, nil
}
