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
	// defaultTickTime and defaultTickLimit bound a tick that was given no bounds.
	defaultTickTime  = time.Minute
	defaultTickLimit = 100
	// queuedPatience leaves runs alone whose wakeup is surely on its way; shortWaitPatience does so for a delayed
	// wakeup.
	queuedPatience    = time.Minute
	shortWaitPatience = 30 * time.Second
	// aheadTime is how far before it is due a long wait gets its delayed wakeup: more than the distance of two ticks.
	aheadTime  = 70 * time.Second
	aheadPages = 10
	// failuresOfALimit, times the limit, bounds the runs of a stage that fail: the runs behind them get their turn, but
	// not for ever.
	failuresOfALimit = 10
	// backlogDepth is the depth of a queue above which a wakeup counts as late and not as lost, until maxBacklogWait.
	backlogDepth   = 100
	maxBacklogWait = 6 * time.Hour
	// tickParallel is how many runs a stage writes to at once.
	tickParallel = 8
	// minTickRound is what must be left before the deadline for one more round.
	minTickRound = 5 * time.Second
)

// Tick is one round of maintenance. It finds whatever a wakeup missed; call it about every minute. Two at once are
// harmless. A tick:
//
//   - finalizes cancellations
//   - tells the ends of called runs
//   - fails runs whose attempts were abandoned too often
//   - delivers due and recovered runs
//   - sends delayed wakeups ahead
//   - asks again for lost wakeups
//   - makes the runs of schedules
//   - reserves slots of bounded queues
//   - flushes the outbox
//
// The stages are bounded and share the time until the deadline. A stage that fails does not stop the next. The result
// counts what each did, also with an error. The error joins those of the stages, each text once, and a bounded number
// of them.
//
// With [TickOptions].Repeat it makes further rounds while there is work and time: whatever fails, the next round begins
// if this one did something or removed an obstacle. The result then counts all of them.
//
// The first tick of a runtime also stores the definitions of its handlers' tasks in the environment's catalog, as far
// as they are missing, and checks them again twice a day, see [Tasks].
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

// tick makes one round, or as many as are of use.
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
	aside := &queuesAside{}
	for {
		t := tick{rt: rt, limit: limit, deadline: deadline, result: &TickResult{}, aside: aside}
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

// stages are in the order in which a round has them.
func (r *TickResult) stages() []*StageResult {
	return []*StageResult{
		&r.Cancelled, &r.Abandoned, &r.Told, &r.Delivered, &r.Redelivered, &r.Scheduled, &r.Dispatched, &r.Flushed,
	}
}

// round works through the stages once. Stages that free resources for others come first and get the larger shares of
// the time. What a stage does not use goes to the stages after it.
func (t *tick) round(ctx context.Context) {
	stages := []struct {
		run   func(context.Context) StageResult
		share int
	}{
		{t.finalizeCancellations, 2}, {t.failAbandoned, 2}, {t.tellEnds, 1}, {t.deliver, 4}, {t.redeliver, 1},
		{t.fireSchedules, 2}, {t.dispatch, 2}, {t.flush, 3},
	}
	shares := 0
	for _, s := range stages {
		shares += s.share
	}
	for i, into := range t.result.stages() {
		*into = t.stage(ctx, stages[i].run, stages[i].share, shares)
		shares -= stages[i].share
		t.result.More = t.result.More || into.More
	}
}

// fireSchedules makes the runs of schedules whose time has come.
func (t *tick) fireSchedules(ctx context.Context) StageResult {
	r := t.rt.schedules.Fire(ctx)
	return StageResult{Done: r.Done, Skipped: r.Skipped, Failed: r.Failed, More: r.More, Err: r.Err}
}

// tick is the state of one round.
type tick struct {
	rt       *Runtime
	deadline time.Time
	limit    int
	result   *TickResult

	scanning *lane.DueQuery // of the scan for two stages; nil before it began
	scanned  bool           // that scan has enough, is at its end, or failed
	due      []lane.RunRef  // what it found and no stage has dealt with yet
	moreDue  bool

	aside *queuesAside // queues that take no wakeups; of all rounds of one call

	elsewhere int // runs of this stage that count in another one's result
}

// stage gives one stage its share of the time that is left.
func (t *tick) stage(ctx context.Context, run func(context.Context) StageResult, share, shares int) StageResult {
	left := t.deadline.Sub(t.rt.world.Now())
	if left <= 0 || ctx.Err() != nil {
		return StageResult{More: true}
	}
	ctx, cancel := context.WithTimeout(ctx, left*time.Duration(share)/time.Duration(shares))
	defer cancel()
	result := run(ctx)
	if ctx.Err() != nil {
		result.More = true // out of time, which is no fault of the stage
		if errors.Is(result.Err, ctx.Err()) || errors.Is(result.Err, runlane.ErrOperationCancelled) {
			result.Err = nil
		}
	}
	return result
}

func (t *tick) query(at time.Time) lane.DueQuery {
	q := lane.DueQuery{
		PageQuery: lane.PageQuery{Environment: t.rt.environment, Limit: t.limit},
		At:        at,
		Patience:  lane.Patience{Queued: queuedPatience},
		Bounded:   t.rt.bounded,
	}
	if t.rt.delayed != nil {
		q.Patience.ShortWait, q.Patience.Undelayed = shortWaitPatience, t.rt.undelayed
	}
	return q
}

// runs reads what a scan refers to, without payloads. A run that is gone is a stale row.
func (t *tick) runs(ctx context.Context, refs []lane.RunRef) ([]*runlane.Run, error) {
	if len(refs) == 0 {
		return nil, nil
	}
	ids := make([]runlane.RunID, len(refs))
	for i := range refs {
		ids[i] = refs[i].RunID
	}
	return t.rt.storage().GetRuns(ctx, &lane.RunsQuery{Environment: t.rt.environment, IDs: ids, WithoutPayload: true})
}

// scanner is one of the storage's scans for due runs.
type scanner func(context.Context, *lane.DueQuery) (*runlane.Page[lane.RunRef], error)

// paged hands the rows of a scan to act, page after page, until act has done something with Limit of them, or there are
// no more, or the stage's time is over. Earlier rows must not hide later ones, whether they are rows of other queues,
// rows that other processes handled first, or rows that fail. A page without rows but with a cursor is not the end.
func (t *tick) paged(
	ctx context.Context, list scanner, q lane.DueQuery, act func([]lane.RunRef) StageResult,
) (result StageResult) {
	left := false // rows that this stage does not come to
	t.elsewhere = 0
	for {
		page, err := list(ctx, &q)
		if err != nil {
			result.Err = errors.Join(result.Err, err)
			return result
		}
		refs := page.Items
		if room := t.limit - result.Done - t.elsewhere; len(refs) > room {
			refs, left = refs[:room], true
		}
		before := result
		if len(refs) > 0 {
			result.add(act(refs))
		}
		if page.Next == "" || result.Done+t.elsewhere >= t.limit || result.Failed >= failuresOfALimit*t.limit ||
			ctx.Err() != nil {
			result.More = (left || page.Next != "") && (result.Done > 0 || result.Passed > 0)
			return result
		}
		if result.passedSince(&before) {
			result.Passed++
		}
		q.After = page.Next
	}
}

// finalizeCancellations ends runs whose owner was asked to stop and is gone.
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

// scan finds as many due and recoverable runs as are enough for the two stages that deal with them. The second stage
// continues where the first had no more time. The stage that meets a failure reports it.
func (t *tick) scan(ctx context.Context, enough int) (passed int, err error) {
	if t.scanning == nil {
		q := t.query(t.rt.now())
		t.scanning = &q
		t.scanning.Without = t.aside.queues
	}
	for !t.scanned && ctx.Err() == nil {
		t.scanning.Limit = enough - len(t.due)
		page, err := t.rt.storage().ListRunsNeedingDelivery(ctx, t.scanning)
		if err != nil {
			t.scanned = ctx.Err() == nil
			return passed, err
		}
		refs := t.known(page.Items)
		t.due = append(t.due, refs...)
		t.moreDue = page.Next != ""
		t.scanned = len(t.due) >= enough || page.Next == ""
		t.scanning.After = page.Next
		if len(refs) == 0 && t.moreDue {
			passed++
		}
	}
	return passed, nil
}

// known drops runs of queues that are left to processes which know them, and notes these queues, so that the next scan
// leaves them out.
func (t *tick) known(refs []lane.RunRef) []lane.RunRef {
	return slices.DeleteFunc(refs, func(ref lane.RunRef) bool {
		if !t.rt.unknownHere(ref.Queue) {
			return false
		}
		if !slices.Contains(t.aside.queues, ref.Queue) {
			t.aside.queues = append(t.aside.queues, ref.Queue)
		}
		return true
	})
}

// scanOn reads further than the scan has: from the beginning, but without the queues that turned out to take nothing.
func (t *tick) scanOn() {
	t.scanned, t.due = false, nil
	if len(t.scanning.Without) != len(t.aside.queues) {
		t.scanning.Without, t.scanning.After = t.aside.queues, ""
	}
}

// failAbandoned ends runs at the bound and leaves the others to the next stage.
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
		n, err := t.rt.atBound(ctx, run, now)
		if err != nil {
			return StageResult{Passed: passed, Err: err} // the next stage reads each of them again
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
