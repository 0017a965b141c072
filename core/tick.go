package core

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

const (
	defaultTickTime  = time.Minute
	defaultTickLimit = 100
	// aheadPages limits the pages of long waits that a tick reads.
	aheadPages = 10
	// failuresOfALimit, times the limit, is how many runs of a stage may fail before it stops: later runs get their
	// turn.
	failuresOfALimit = 10
	// Above a queue depth of backlogDepth a wakeup counts as late and not as lost, until maxBacklogWait.
	backlogDepth   = 100
	maxBacklogWait = 6 * time.Hour
	// minTickRound is the minimum time for one more round.
	minTickRound = 5 * time.Second
)

// Tick is one round of maintenance. It finds the work that a wakeup missed; call it about every minute. Two at once are
// harmless. A tick:
//
//   - finalizes cancellations
//   - reports ended children to their callers
//   - fails runs with too many abandoned attempts
//   - delivers due and recovered runs
//   - sends delayed wakeups ahead
//   - requests lost wakeups again
//   - wakes the runs of ended pauses; it leaves paused queues alone
//   - creates the runs of schedules
//   - reserves slots of bounded queues
//   - flushes the outbox
//   - removes finished runs that are no longer kept ([Options].Keep)
//
// The stages share the time until the deadline. A failed stage does not stop the next. The result counts each stage,
// also with an error. The error joins a limited number of the stages' errors, each text once.
//
// With [TickOptions].Repeat it runs more rounds while time is left and the last round did something or removed an
// obstacle, even after failures. The result counts all rounds.
//
// The first tick of a runtime also stores missing definitions of its tasks in the environment's catalog; later ticks
// check them twice a day, see [Tasks].
func (rt *Runtime) Tick(ctx context.Context, options *TickOptions) (*TickResult, error) {
	if err := rt.gate.enter(); err != nil {
		return nil, err
	}
	defer rt.gate.leave()
	if options == nil {
		options = &TickOptions{}
	}
	if options.Limit < 0 || options.Limit > runlane.MaxPageLimit {
		return nil, invalidInput(
			"use 0 for 100",
			"TickOptions.Limit is %d, not within 0 and %d",
			options.Limit,
			runlane.MaxPageLimit,
		)
	}
	return rt.tick(ctx, options)
}

func (rt *Runtime) tick(ctx context.Context, options *TickOptions) (*TickResult, error) {
	limit, deadline := options.Limit, options.Deadline
	if limit == 0 {
		limit = defaultTickLimit
	}
	if deadline.IsZero() {
		deadline = rt.world.Now().Add(defaultTickTime)
	}
	total := &TickResult{}
	into := total.stages()
	var all faults
	ofStage := make([]faults, len(into))
	paused := rt.pausedQueues(ctx)
	aside := &queuesAside{queues: slices.Clone(paused)}
	for {
		t := tick{rt: rt, limit: limit, deadline: deadline, result: &TickResult{}, of: &lane.Round{}, paused: paused, aside: aside}
		t.round(ctx)
		progress := 0
		for i, of := range t.result.stages() {
			all.add(of.Err)
			ofStage[i].add(of.Err)
			progress += of.Done + of.Passed
			into[i].add(*of)
			into[i].More, into[i].Err = of.More, ofStage[i].join()
		}
		total.More = t.result.More
		rt.storeTasks(ctx, deadline)
		if !options.Repeat || !total.More || progress == 0 || ctx.Err() != nil ||
			deadline.Sub(rt.world.Now()) < minTickRound {
			return total, all.join()
		}
	}
}

// stages returns the stages in the order of a round.
func (r *TickResult) stages() []*StageResult {
	return []*StageResult{
		&r.Cancelled, &r.Abandoned, &r.Told, &r.Delivered, &r.Redelivered, &r.Woken, &r.Scheduled, &r.Dispatched,
		&r.Flushed, &r.Pruned,
	}
}

// round runs the stages once. Stages that free resources come first and get larger shares of the time. Unused time goes
// to later stages.
func (t *tick) round(ctx context.Context) {
	type timed struct {
		run   func(context.Context) StageResult
		share int
	}
	stages := []timed{
		{t.finalizeCancellations, 2}, {t.failAbandoned, 2}, {t.notifyEnds, 1}, {t.deliver, 4}, {t.redeliver, 1}, {t.wakePaused, 1},
		{t.fireSchedules, 2}, {t.dispatch, 2}, {t.flush, 3},
	}
	if t.rt.keep.active {
		stages = append(stages, timed{t.prune, 1})
	}
	shares := 0
	for _, s := range stages {
		shares += s.share
	}
	results := t.result.stages()
	for i, s := range stages {
		into := results[i]
		*into = t.stage(ctx, s.run, s.share, shares)
		shares -= s.share
		t.result.More = t.result.More || into.More
	}
}

func (t *tick) fireSchedules(ctx context.Context) StageResult {
	r := t.rt.schedules.Fire(ctx)
	return StageResult{Done: r.Done, Skipped: r.Skipped, Failed: r.Failed, More: r.More, Err: r.Err}
}

func (t *tick) stage(ctx context.Context, run func(context.Context) StageResult, share, shares int) StageResult {
	left := t.deadline.Sub(t.rt.world.Now())
	if left <= 0 || ctx.Err() != nil {
		return StageResult{More: true}
	}
	ctx, cancel := context.WithTimeout(ctx, left*time.Duration(share)/time.Duration(shares))
	defer cancel()
	result := run(ctx)
	if ctx.Err() != nil {
		result.More = true // out of time, not a fault of the stage
		if errors.Is(result.Err, ctx.Err()) || errors.Is(result.Err, runlane.ErrOperationCancelled) {
			result.Err = nil
		}
	}
	return result
}

// finalizeCancellations ends runs that were asked to stop and lost their owner.
func (t *tick) finalizeCancellations(ctx context.Context) StageResult {
	now := t.rt.now()
	list := func(ctx context.Context, q *lane.DueQuery) (*runlane.Page[lane.RunRef], error) {
		return t.rt.storage().ListRunsNeedingCancellationFinalization(ctx, q)
	}
	return t.paged(ctx, list, t.query(now), func(refs []lane.RunRef) StageResult {
		runs, err := t.runs(ctx, refs)
		if err != nil {
			return StageResult{Err: err}
		}
		return t.each(ctx, runs, func(ctx context.Context, run *runlane.Run) (bool, error) {
			if due, ok := lane.CancellationFinalizationAt(run); !ok || now.Before(due) {
				return false, nil
			}
			_, err := t.rt.appendEvent(ctx, run, now, &runlane.RunCancelled{})
			return err == nil, err
		})
	})
}

// failAbandoned ends runs at the limit and leaves the others to the next stage.
func (t *tick) failAbandoned(ctx context.Context) StageResult {
	if t.rt.maxAbandoned < 0 {
		return StageResult{}
	}
	passed, err := t.scan(ctx, t.limit)
	if err != nil {
		return StageResult{Passed: passed, Err: err}
	}
	var expired []lane.RunRef
	for _, ref := range t.due {
		if ref.Status == runlane.StatusRunning {
			expired = append(expired, ref)
		}
	}
	runs, err := t.runs(ctx, expired)
	if err != nil {
		return StageResult{Err: err}
	}
	now := t.rt.now()
	var atBound []*runlane.Run
	failing := make(map[runlane.RunID]int)
	for _, run := range runs {
		n, err := t.rt.abandonedTooOften(ctx, run, now)
		if err != nil {
			return StageResult{Passed: passed, Err: err} // the next stage reads them again
		}
		if n > 0 {
			atBound = append(atBound, run)
			failing[run.ID] = n
		}
	}
	t.due = slices.DeleteFunc(t.due, func(ref lane.RunRef) bool { return failing[ref.RunID] > 0 })
	result := t.each(ctx, atBound, func(ctx context.Context, run *runlane.Run) (bool, error) {
		failed, err := t.rt.failAbandoned(ctx, run, now, failing[run.ID])
		if err != nil {
			return false, err
		}
		t.rt.logRun(ctx, failed, "run failed: its attempts were abandoned too often", &runlane.Error{
			Code: failed.Failure.Code, Message: failed.Failure.Message,
		})
		return true, nil
	})
	result.Passed += passed
	return result
}

// notifyEnds notifies callers of ends that no process has reported.
func (t *tick) notifyEnds(ctx context.Context) StageResult {
	if !t.rt.storage().Capabilities().SuspendsRuns {
		return StageResult{}
	}
	list := func(ctx context.Context, q *lane.DueQuery) (*runlane.Page[lane.RunRef], error) {
		return t.rt.storage().ListRunsToNotify(ctx, q)
	}
	result := t.paged(ctx, list, t.query(t.rt.now()), func(refs []lane.RunRef) StageResult {
		runs, err := t.runs(ctx, refs)
		if err != nil {
			return StageResult{Err: err}
		}
		return t.each(ctx, runs, t.rt.notify)
	})
	flows := t.tendFlows(ctx)
	result.add(flows)
	return result
}

// tendEvery is how often a runtime looks for flows to tend: their creators and cancellers usually do the work.
const tendEvery = 10 * time.Minute

// tendFlows tends whole flows: in a runtime's first tick, then from time to time.
func (t *tick) tendFlows(ctx context.Context) (result StageResult) {
	now := t.rt.world.Now()
	last := t.rt.tended.Load()
	if last != nil && now.Sub(*last) < tendEvery {
		return result
	}
	defer func() {
		if result.Err == nil && !result.More && ctx.Err() == nil {
			t.rt.tended.Store(&now)
		}
	}()
	q := lane.FlowQuery{
		PageQuery: lane.PageQuery{Environment: t.rt.environment, Limit: t.limit},
		Before:    t.rt.now().Add(time.Millisecond),
	}
	for { // flows that fail or need no work must not hide later ones
		page, err := t.rt.storage().ListFlows(ctx, &q)
		if err != nil {
			result.Err = errors.Join(result.Err, err)
			return result
		}
		for i := range page.Items {
			done, err := t.rt.flows.Tend(ctx, page.Items[i].ID)
			switch {
			case err != nil:
				result.Failed++
				result.Err = errors.Join(result.Err, err)
			case done:
				result.Done++
			}
		}
		q.After = page.Next
		if page.Next == "" || result.Done >= t.limit || result.Failed >= failuresOfALimit*t.limit || ctx.Err() != nil {
			result.More = page.Next != "" && result.Done > 0
			return result
		}
	}
}
