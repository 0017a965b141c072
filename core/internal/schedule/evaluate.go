package schedule

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core/internal/fail"
	"github.com/runlane/runlane-go/core/internal/origin"
	"github.com/runlane/runlane-go/lane"
)

const (
	// occurrenceClaim is how long the right to make an occurrence's run lasts. If a tick dies with it, a later tick
	// takes over.
	occurrenceClaim = time.Minute
	// clockTolerance is the allowed difference between the clocks of two ticks.
	clockTolerance = 2500 * time.Millisecond
	// evaluationNoted is how often a tick records an evaluation without a fire.
	evaluationNoted = time.Hour
)

var errClaimOver = errors.New("the claim of the occurrence is over")

// OccurrenceIDs returns the same IDs in every process, so that making an occurrence twice is harmless.
func OccurrenceIDs(
	e runlane.Environment, id runlane.ScheduleID, fire time.Time,
) (occurrence string, run runlane.RunID) {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00schedule\x00%s\x00%d", e.Name(), id, fire.UnixMilli()))
	text := hex.EncodeToString(sum[:16])
	return "occ_" + text, runlane.RunID("run_" + text)
}

// Result counts the occurrences of one round.
type Result struct {
	Done, Skipped, Failed int
	More                  bool // another round has work
	Err                   error
}

func (r *Result) add(other Result) {
	r.Done += other.Done
	r.Skipped += other.Skipped
	r.Failed += other.Failed
	r.More = r.More || other.More
	r.Err = errors.Join(r.Err, other.Err)
}

// Fire makes the runs of due schedules. It reads all records at once, so a schedule with no due occurrence costs no
// separate request.
func (s *Scheduler) Fire(ctx context.Context) Result {
	if len(s.definitions) == 0 {
		return Result{}
	}
	records := map[runlane.ScheduleID]*runlane.ScheduleRecord{}
	for record, err := range s.records(ctx, runlane.MaxPageLimit) {
		if err != nil {
			return Result{Err: err}
		}
		records[record.ID] = record
	}
	var result Result
	for _, own := range s.definitions {
		if ctx.Err() != nil {
			result.More = true
			break
		}
		e := evaluation{s: s, own: own, record: records[own.ID], now: s.Host.Now()}
		if err := e.evaluate(ctx); err != nil {
			e.result.Failed++
			e.result.Err = &runlane.Error{
				Code:      runlane.CodeOf(err),
				Message:   fmt.Sprintf("schedule %q: %s", own.ID, fail.Message(err)),
				Retryable: true,
				Cause:     err,
			}
		}
		result.add(e.result)
	}
	return result
}

type evaluation struct {
	s      *Scheduler
	own    *Definition
	record *runlane.ScheduleRecord // as read; nil for a new schedule
	now    time.Time
	result Result
	taken  bool // another process has an occurrence
}

// evaluate registers a new schedule; otherwise it makes runs for due occurrences and records the skipped ones.
func (e *evaluation) evaluate(ctx context.Context) error {
	if e.record == nil {
		_, err := e.put(ctx, &runlane.ScheduleRecord{
			ID:             e.own.ID,
			DefinitionHash: e.own.hash,
			RegisteredAt:   e.now,
			LastEvaluated:  e.now,
		})
		return err
	}
	// A paused schedule is not evaluated: everything due in the pause becomes one skip, from the last evaluation before
	// it.
	if e.record.Paused {
		e.settle(e.now)
		return nil
	}
	from, err := e.dueAfter(ctx)
	if err != nil {
		return err
	}
	if ours, err := e.takeOver(ctx, from); err != nil || !ours {
		return err
	}
	until := e.dueUntil()
	fires, more := occurrences(e.own.When, from, until)
	e.result.More = more
	plan := judgeMisfires(e.own.Misfire, fires, more, e.now)
	if len(plan) == 0 {
		e.settle(until)
		return e.noteEvaluation(ctx)
	}
	latest := fires[len(fires)-1]
	if wait, err := e.keepPending(ctx, latest); err != nil || wait {
		return err
	}
	if e.hasPending() {
		plan = judgePending(plan, fires, e.record.PendingFire)
	}
	plan, err = e.salvage(ctx, plan)
	if err != nil {
		return err
	}
	if ours, err := e.claimFirst(ctx, plan[0]); err != nil || !ours {
		return err
	}
	for i, f := range plan {
		if i > 0 && plan[i-1].skipped == "" {
			if wait, err := e.keepPendingAgain(ctx, latest); err != nil || wait {
				return err
			}
		}
		if done, err := e.fire(ctx, f); err != nil || !done {
			return err
		}
	}
	if !more {
		e.settle(until)
	}
	return nil
}

// salvage finds a run that a tick made but could not record. Occurrences are completed in order, so it can only be the
// run of the first due one. It is recorded as that run, regardless of the current misfire policy.
func (e *evaluation) salvage(ctx context.Context, plan []firing) ([]firing, error) {
	skip := plan[0]
	if skip.skipped == "" {
		return plan, nil
	}
	_, id := OccurrenceIDs(e.s.Environment, e.own.ID, skip.first)
	runs, err := e.s.Host.Storage().GetRuns(ctx, &lane.RunsQuery{
		Environment:    e.s.Environment,
		IDs:            []runlane.RunID{id},
		WithoutPayload: true,
	})
	if err != nil || len(runs) == 0 || !origin.Same(runs[0].Source, e.source(skip.first)) {
		return plan, err
	}
	salvaged := []firing{{at: skip.first, first: skip.first, count: 1}}
	if skip.count > 1 {
		second, _ := e.own.When.Next(skip.first)
		salvaged = append(salvaged, firing{at: skip.at, first: second, count: skip.count - 1, skipped: skip.skipped})
	}
	return append(salvaged, plan[1:]...), nil
}

// claimFirst claims the first of several merged skips; fire claims the last. Occurrences are completed in order, so
// another tick can be making only the first one's run. ours is false while that tick has it.
func (e *evaluation) claimFirst(ctx context.Context, skip firing) (ours bool, err error) {
	if skip.skipped == "" || skip.count < 2 {
		return true, nil
	}
	claim, err := e.claim(ctx, skip.first)
	if err != nil || claim.Outcome != lane.Acquired {
		return false, errors.Join(err, e.skipBlocked(ctx, skip.first))
	}
	return true, nil
}

// claim claims an occurrence for this tick and counts one that another tick has.
func (e *evaluation) claim(ctx context.Context, at time.Time) (*lane.OccurrenceClaim, error) {
	occurrence, _ := OccurrenceIDs(e.s.Environment, e.own.ID, at)
	claim, err := e.s.Host.Storage().ClaimScheduleOccurrence(ctx, &lane.ClaimOccurrenceCommand{
		ScheduleKey:  e.key(),
		OccurrenceID: occurrence,
		FireTime:     at,
		At:           e.now,
		ClaimUntil:   e.now.Add(occurrenceClaim),
		TrustUntil:   e.trustUntil(),
	})
	if err == nil && claim.Outcome != lane.Acquired {
		e.taken = true
		e.result.Skipped++
	}
	return claim, err
}

func (e *evaluation) key() lane.ScheduleKey { return e.s.key(e.own.ID) }

// fire claims an occurrence, makes its run or skips it, and completes it. done is false if another process has it.
func (e *evaluation) fire(ctx context.Context, f firing) (done bool, err error) {
	occurrence, runID := OccurrenceIDs(e.s.Environment, e.own.ID, f.at)
	before, err := e.overlapping(ctx, &f, runID)
	if err != nil {
		return false, err
	}
	claim, err := e.claim(ctx, f.at)
	if err != nil || claim.Outcome != lane.Acquired {
		return false, errors.Join(err, e.skipBlocked(ctx, f.at))
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
		// After errClaimOver the next tick that claims it finds the run.
		if c.Skipped, err = e.makeRun(ctx, f.at, runID, before); errors.Is(err, errClaimOver) {
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
	err = e.s.Host.Storage().CompleteScheduleOccurrence(ctx, c)
	// The claim of this slow process ended, and its new owner has made the same run.
	if fail.IsConflict(err, runlane.ConflictScheduleOccurrence) {
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

// makeRun makes the occurrence's run, or returns the reason to skip it. before holds the active runs for the overlap
// policy.
func (e *evaluation) makeRun(
	ctx context.Context, fire time.Time, id runlane.RunID, before []runlane.RunID,
) (runlane.SkipReason, error) {
	if len(before) > 0 && e.own.Overlap == runlane.OverlapForbid {
		return runlane.SkippedOverlap, nil
	}
	if err := e.replace(ctx, before); err != nil {
		return "", err
	}
	claimed, stop := e.whileClaimed(ctx)
	defer stop()
	_, announce, err := e.s.Host.Create(claimed, e.own, &Run{ID: id, Actor: e.actor(), FireTime: fire})
	switch {
	case err != nil && context.Cause(claimed) == errClaimOver: //nolint:errorlint // our own, never wrapped
		return "", errClaimOver
	case err == nil:
		announce(ctx)
		return "", nil
	case fail.IsConflict(err, runlane.ConflictEventSequence): // the computed id exists
		made, readErr := e.s.foundRun(ctx, id)
		switch {
		case readErr != nil:
			return "", readErr
		case made == nil: // pruned meanwhile: the next tick makes it
			return "", err
		case !origin.Same(made.Source, e.source(fire)):
			return runlane.SkippedIDTaken, nil
		}
		return "", nil
	case fail.IsConflict(err, runlane.ConflictSingletonKey):
		return runlane.SkippedSingleton, nil
	default:
		return "", err
	}
}

// whileClaimed returns a context that ends with the evaluation's claims, before a tick with a fast clock takes one
// over. That tick may then skip the occurrence, so a late run would be wrong.
func (e *evaluation) whileClaimed(ctx context.Context) (context.Context, context.CancelFunc) {
	left := e.now.Add(occurrenceClaim - clockTolerance).Sub(e.s.Host.Now())
	return context.WithTimeoutCause(ctx, left, errClaimOver)
}

func (e *evaluation) source(fire time.Time) runlane.Source {
	return runlane.Source{Type: runlane.SourceSchedule, ScheduleID: e.own.ID, FireTime: fire}
}

func (e *evaluation) actor() runlane.Actor {
	return runlane.Actor{Type: runlane.ActorSchedule, ID: string(e.own.ID)}
}

// noteEvaluation records an evaluation: at once with a changed definition, otherwise every evaluationNoted.
func (e *evaluation) noteEvaluation(ctx context.Context) error {
	if e.outdated() || e.record.DefinitionHash == e.own.hash && e.now.Sub(e.record.LastEvaluated).Abs() < evaluationNoted &&
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
	next.DefinitionHash, next.LastEvaluated = e.own.hash, e.now
	_, err := e.put(ctx, &next)
	return err
}

// put writes the record and keeps the new version. It is not an error if another process wrote first, because that
// process knew as much.
func (e *evaluation) put(ctx context.Context, r *runlane.ScheduleRecord) (done bool, err error) {
	written, err := e.s.Host.Storage().PutSchedule(ctx, &lane.PutScheduleCommand{Environment: e.s.Environment, Record: *r})
	if fail.IsConflict(err, runlane.ConflictScheduleOccurrence) {
		e.s.Logger.LogAttrs(
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
