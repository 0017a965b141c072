package core

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

const (
	// publishBatch is how many rows are claimed, sent and marked together, well within outboxClaim.
	publishBatch = 100
	// rowTime extends afterCommitTime for each further row: a slow storage takes longer for a hundred marks.
	rowTime = 100 * time.Millisecond
	// maxPublishFailures is the number of refusals that dead-letters a message.
	maxPublishFailures = 10
	// The time between two tries to publish grows from publishBackoffBase to publishBackoffMax.
	publishBackoffMax  = 5 * time.Minute
	publishBackoffBase = time.Second
	// queuedPatience skips runs while their wakeup is surely on its way; shortWaitPatience does so for delayed wakeups.
	queuedPatience    = time.Minute
	shortWaitPatience = 30 * time.Second
	// aheadTime is how early a long wait gets its delayed wakeup: more than the time between two ticks.
	aheadTime = 70 * time.Second
)

// PublishWakeups claims and publishes the due ones of these outbox rows, for a relay. Rows that are not due, superseded
// or claimed by another publisher are Skipped. The error is the result's Err: rows that could not be claimed, sent or
// marked. No row is lost: the tick publishes the rest.
func (rt *Runtime) PublishWakeups(ctx context.Context, outboxIDs []string) (StageResult, error) {
	var total StageResult
	if err := rt.gate.enter(); err != nil {
		return total, err
	}
	defer rt.gate.leave()
	ids := slices.Clone(outboxIDs)
	slices.Sort(ids)
	for batch := range slices.Chunk(slices.Compact(ids), publishBatch) {
		total.add(rt.publishRows(ctx, batch, nil))
	}
	return total, total.Err
}

func (rt *Runtime) publishRows(ctx context.Context, ids []string, aside *queuesAside) StageResult {
	now := rt.now()
	rows, err := rt.storage().ClaimOutboxMessages(ctx, &lane.ClaimOutboxCommand{
		Environment: rt.environment,
		IDs:         ids,
		At:          now,
		ClaimUntil:  now.Add(outboxClaim),
		Limit:       len(ids),
	})
	if err != nil {
		return StageResult{Failed: len(ids), Err: err}
	}
	result := rt.publish(ctx, rows, aside)
	result.Skipped += max(len(ids)-len(rows), 0)
	return result
}

// publishCommitted publishes rows that this process claimed in their commit. It survives the caller's context.
func (rt *Runtime) publishCommitted(ctx context.Context, outbox []lane.OutboxMessage) StageResult {
	return rt.publish(ctx, withoutUnclaimed(outbox), nil)
}

func withoutUnclaimed(outbox []lane.OutboxMessage) []lane.OutboxMessage {
	if slices.ContainsFunc(outbox, unclaimed) {
		return slices.DeleteFunc(slices.Clone(outbox), unclaimed)
	}
	return outbox
}

func unclaimed(row lane.OutboxMessage) bool {
	return row.Status != lane.OutboxClaimed || row.ClaimToken == ""
}

// shipment is reusable memory for the commands that publish and mark, with room for the usual single row.
type shipment struct {
	command lane.PublishCommand
	mark    lane.MarkPublishedCommand
	attempt [1]lane.PublishAttempt
	ref     [1]lane.OutboxRef
}

var shipments = sync.Pool{New: func() any { return new(shipment) }}

func (s *shipment) done() {
	*s = shipment{}
	shipments.Put(s)
}

// publish sends claimed rows and records each outcome. Every row ends up marked, or its claim expires and the tick
// takes it. Queues that refuse all wakeups are noted in aside, unless it is nil.
func (rt *Runtime) publish(ctx context.Context, rows []lane.OutboxMessage, aside *queuesAside) StageResult {
	if len(rows) == 0 {
		return StageResult{}
	}
	limited := new(detachedContext).start(ctx, afterCommitTime+time.Duration(len(rows)-1)*rowTime)
	defer limited.stop()
	s := shipments.Get().(*shipment)
	defer s.done()
	inside, t := rt.tracePublish(limited, len(rows), func(i int) *lane.Wakeup { return &rows[i].Wakeup })
	outcomes, err := rt.send(inside, s, rows)
	marks := rt.judgeOutcomes(rows, outcomes, err, s.ref[:0])
	aside.note(rows, outcomes, err)
	t.done(WorkEnd{Failed: len(rows) - len(marks.published), Err: marks.err})
	result := StageResult{Done: len(marks.published), Failed: len(rows) - len(marks.published), Err: marks.err}
	rt.metrics.count(inside, MetricWakeupsPublished, int64(result.Done), Labels{Environment: rt.environment})
	rt.metrics.count(inside, MetricWakeupsRefused, int64(result.Failed), Labels{Environment: rt.environment})
	if err := rt.mark(limited, s, marks); err != nil {
		result.Err = errors.Join(result.Err, err)
	}
	return result
}

func (rt *Runtime) send(ctx context.Context, s *shipment, rows []lane.OutboxMessage) ([]lane.PublishOutcome, error) {
	s.command.Attempts = s.attempt[:0]
	if rt.delays && slices.ContainsFunc(rows, func(row lane.OutboxMessage) bool { return !row.NotBefore.IsZero() }) {
		return rt.sendTicketed(ctx, s, rows)
	}
	for i := range rows {
		s.command.Attempts = append(s.command.Attempts, lane.PublishAttempt{
			OutboxRef: rows[i].OutboxRef, Wakeup: rows[i].Wakeup, GroupKey: rows[i].GroupKey,
		})
	}
	outcomes, err := rt.lane.Transport.PublishWakeups(ctx, &s.command)
	if err != nil {
		return nil, err
	}
	return outcomes, checkOutcomes(outcomes, len(rows))
}

// sendTicketed sends rows of which some have tickets for later: their wakeups are delayed until then.
func (rt *Runtime) sendTicketed(
	ctx context.Context, s *shipment, rows []lane.OutboxMessage,
) ([]lane.PublishOutcome, error) {
	now := rt.now()
	var later []lane.DelayedWakeup
	var places []int // of the delayed rows, then of the others
	var others []lane.OutboxMessage
	for i := range rows {
		wait := rows[i].NotBefore.Sub(now)
		if !rows[i].NotBefore.After(now) || !rt.canDelay(rows[i].Wakeup.Queue, wait) {
			rows[i].NotBefore = time.Time{}
			others = append(others, rows[i])
			continue
		}
		later = append(later, lane.DelayedWakeup{Wakeup: rows[i].Wakeup, Delay: wait, Early: true})
		places = append(places, i)
	}
	outcomes := make([]lane.PublishOutcome, len(rows))
	for i := range rows {
		if rows[i].NotBefore.IsZero() {
			places = append(places, i)
		}
	}
	got, err := []lane.PublishOutcome(nil), error(nil)
	if len(later) > 0 {
		if got, err = rt.lane.Transport.SendWakeups(ctx, later); err == nil {
			err = checkOutcomes(got, len(later))
		}
	}
	if err == nil && len(others) > 0 {
		var rest []lane.PublishOutcome
		rest, err = rt.send(ctx, s, others)
		got = append(got, rest...)
	}
	for i := range got {
		outcomes[places[i]] = got[i]
	}
	return outcomes, err
}

// checkOutcomes detects a transport that breaks its contract: then none of its outcomes can be trusted.
func checkOutcomes(outcomes []lane.PublishOutcome, want int) error {
	if len(outcomes) != want {
		return &runlane.Error{
			Code:    runlane.ErrContractViolation,
			Message: fmt.Sprintf("the transport returned %d outcomes for %d wakeups", len(outcomes), want),
		}
	}
	for i := range outcomes {
		if t := outcomes[i].Type; t != lane.Published && t != lane.PublishFailed {
			return &runlane.Error{
				Code:    runlane.ErrContractViolation,
				Message: fmt.Sprintf("publish outcome %d has the unknown type %q", i, t),
			}
		}
	}
	return nil
}

type publishMarks struct {
	published []lane.OutboxRef
	failed    []lane.OutboxFailure
	dead      []lane.OutboxFailure
	err       error
}

// judgeOutcomes decides the mark of each row. An operation-level error applies to every row but counts against none: an
// outage never dead-letters a wakeup.
func (rt *Runtime) judgeOutcomes(
	rows []lane.OutboxMessage, outcomes []lane.PublishOutcome, operation error, room []lane.OutboxRef,
) publishMarks {
	now := rt.now()
	if operation != nil {
		m := publishMarks{err: operation}
		failure := publishFailure(operation)
		for i := range rows {
			m.failed = append(m.failed, lane.OutboxFailure{
				OutboxRef:       rows[i].OutboxRef,
				Attempts:        rows[i].Attempts,
				Failure:         failure,
				NextAvailableAt: now.Add(outageBackoff(&rows[i], now)),
			})
		}
		return m
	}
	m := publishMarks{published: room}
	var faults []error
	for i := range rows {
		row, outcome := &rows[i], &outcomes[i]
		if outcome.Type == lane.Published {
			m.published = append(m.published, row.OutboxRef)
			continue
		}
		f := lane.OutboxFailure{OutboxRef: row.OutboxRef, Attempts: row.Attempts, Failure: ensureCode(outcome.Failure)}
		own := outcome.Permanent || f.Failure.Code != runlane.ErrTransportUnavailable
		if own {
			f.Attempts++
		}
		switch {
		case outcome.Permanent, own && f.Attempts >= maxPublishFailures:
			m.dead = append(m.dead, f)
		case own:
			f.NextAvailableAt = now.Add(publishBackoff(f.Attempts))
			m.failed = append(m.failed, f)
		default:
			f.NextAvailableAt = now.Add(outageBackoff(row, now))
			m.failed = append(m.failed, f)
		}
		faults = append(faults, &runlane.Error{
			Code:      f.Failure.Code,
			Message:   "wakeup refused: " + f.Failure.Message,
			RunID:     row.Wakeup.RunID,
			Retryable: !outcome.Permanent,
		})
	}
	m.err = errors.Join(faults...)
	return m
}

// mark records the marks, even if sending took all the time: an outage is worth recording. A row that was superseded or
// taken over meanwhile needs no mark.
func (rt *Runtime) mark(ctx context.Context, s *shipment, m publishMarks) error {
	if ctx.Err() != nil {
		late := afterCommit(context.WithoutCancel(ctx))
		defer late.stop()
		ctx = late
	}
	storage, now := rt.storage(), rt.now()
	var published, failed, dead error
	if len(m.published) > 0 {
		s.mark = lane.MarkPublishedCommand{Environment: rt.environment, At: now, Messages: m.published}
		published = storage.MarkOutboxMessagesPublished(ctx, &s.mark)
	}
	if len(m.failed) > 0 {
		failed = storage.MarkOutboxMessagesFailed(ctx, &lane.MarkFailedCommand{
			Environment: rt.environment,
			At:          now,
			Messages:    m.failed,
		})
	}
	if len(m.dead) > 0 {
		dead = storage.MarkOutboxMessagesDeadLettered(ctx, &lane.MarkDeadLetteredCommand{
			Environment: rt.environment,
			At:          now,
			Messages:    m.dead,
		})
	}
	return errors.Join(unlessClaimLost(published), unlessClaimLost(failed), unlessClaimLost(dead))
}

func unlessClaimLost(err error) error {
	if isConflict(err, runlane.ConflictOutboxClaim) {
		return nil
	}
	return err
}

func publishBackoff(n int) time.Duration {
	return runlane.Exponential{Base: publishBackoffBase, Max: publishBackoffMax}.Delay(n)
}

// outageBackoff waits as long as the wakeup has waited already, so the interval doubles without a count.
func outageBackoff(row *lane.OutboxMessage, now time.Time) time.Duration {
	return min(max(now.Sub(row.Wakeup.RequestedAt), publishBackoffBase), publishBackoffMax)
}

// publishFailure is an operation-level error for the rows: the code and our own text, never the driver's.
func publishFailure(err error) runlane.Failure {
	code, message := runlane.CodeOf(err), "the transport could not be reached"
	if e, ok := asError(err); ok {
		message = e.Message
	}
	if code == "" {
		code = runlane.ErrTransportUnavailable
	}
	return runlane.NewFailure(code, message, nil)
}

func ensureCode(f runlane.Failure) runlane.Failure {
	if f.Code == "" {
		f.Code = runlane.ErrTransportPublishFailed
	}
	return f
}

// wakeLater sends a wakeup without an outbox row, if the transport can delay it that long. Best effort: the tick finds
// the run if the wakeup is lost.
func (rt *Runtime) wakeLater(ctx context.Context, run *runlane.Run, wait time.Duration) {
	if !rt.canDelay(run.Queue, wait) {
		return
	}
	if err := rt.sendDelayed(ctx, rt.delayedWakeup(run, wait)); err != nil {
		rt.logRun(ctx, run, "delayed wakeup was not sent; the tick finds the run when it is due", err)
	}
}

func (rt *Runtime) canDelay(queue runlane.QueueName, wait time.Duration) bool {
	if !rt.delays {
		return false
	}
	longest := rt.lane.Transport.MaxDelay(queue)
	return longest > 0 && wait <= longest
}

func (rt *Runtime) delayedWakeup(run *runlane.Run, wait time.Duration) lane.DelayedWakeup {
	return lane.DelayedWakeup{
		Wakeup: lane.Wakeup{
			RunKey:       lane.RunKey{Environment: rt.environment, RunID: run.ID},
			Queue:        run.Queue,
			RequestedAt:  rt.now(),
			TraceCarrier: run.TraceCarrier,
		},
		Delay: max(wait, 0),
	}
}

// sendDelayed returns the first refusal.
func (rt *Runtime) sendDelayed(ctx context.Context, wakeups ...lane.DelayedWakeup) error {
	limited := afterCommit(ctx)
	defer limited.stop()
	inside, t := rt.tracePublish(limited, len(wakeups), func(i int) *lane.Wakeup { return &wakeups[i].Wakeup })
	outcomes, err := rt.lane.Transport.SendWakeups(inside, wakeups)
	if err == nil {
		err = checkOutcomes(outcomes, len(wakeups))
	}
	t.done(WorkEnd{Err: err})
	if err != nil {
		return err
	}
	for i := range outcomes {
		if outcomes[i].Type == lane.PublishFailed {
			f := ensureCode(outcomes[i].Failure)
			return &runlane.Error{
				Code:      f.Code,
				Message:   "wakeup refused: " + f.Message,
				RunID:     wakeups[i].RunID,
				Retryable: !outcomes[i].Permanent,
			}
		}
	}
	return nil
}

func (r *StageResult) add(other StageResult) {
	r.Done += other.Done
	r.Skipped += other.Skipped
	r.Failed += other.Failed
	r.Passed += other.Passed
	r.More = r.More || other.More
	r.Err = errors.Join(r.Err, other.Err)
}
