package core

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/apart"
	"github.com/runlane/runlane-go/lane"
)

const (
	// deliveryRounds is how often a delivery judges the run again after losing a race.
	deliveryRounds = 3
	// shortWait is how early a wakeup may arrive and still be waited for here, instead of being sent again.
	shortWait = time.Second
)

// ExecuteDelivery handles one wakeup: it reads the run, and if the run is due and free, executes one attempt and
// records the outcome. A wakeup without effect is Ignored with the reason. Acknowledge every result, whatever the
// handler returned.
//
// An error means that the wakeup has to be handed back, for redelivery:
//
//   - runlane.ErrTaskNotFound: no handler here, or none that accepts the run (runlane.Handler.Accepts); the run is not
//     failed. Work without a handler was still done: a run abandoned too often is failed, without this error.
//   - runlane.ErrPayloadUnreadable: this process lacks a codec's keys; the run is not failed.
//   - [ErrNoTime]: too little time before the deadline.
//   - runlane.ErrConfigurationInvalid: no such invocation has time for the task, see [Runtime.CheckInvocation]. Or the
//     run's queue shares its binding and is unknown here, with its limit, or missing in WorkOptions.Queues.
//   - runlane.ErrValidationFailed: the wakeup is of another environment.
//   - [ErrSuspect]: the run is a suspect, and other deliveries are being executed.
//   - [ErrOwned]: the queue is ordered, and another worker owns the run.
//   - runlane.ErrOperationCancelled: ctx ended the attempt, which was released, in a queue that cannot delay wakeups.
//     The redelivery replaces a new wakeup, and keeps its place before later ones.
//   - an error of the storage, which cannot be reached.
//
// An attempt that the deadline cuts off before its due time is released as on a shutdown, at no cost to the run. The
// due time is the task's timeout, or, without one, nine tenths of an invocation's time for handlers. It is known only
// with DeliveryOptions.Began.
//
// When ctx is cancelled, the attempt ends as on a shutdown: it is released, resumes at once and costs the run nothing.
// A deadline of ctx is the caller's time limit: the attempt counts as timed out. A handler that ignores its context is
// left behind with its goroutine after a few seconds, and its run resumes when the lease would have ended.
func (rt *Runtime) ExecuteDelivery(
	ctx context.Context, w lane.Wakeup, options *DeliveryOptions,
) (*DeliveryResult, error) {
	if err := rt.gate.enter(); err != nil {
		return nil, err
	}
	defer rt.gate.leave()
	d := delivery{rt: rt, wakeup: w, byWakeup: true, workerID: rt.workerID, executions: &rt.executions}
	if err := d.apply(options); err != nil {
		return nil, err
	}
	return d.deliver(ctx)
}

// delivery is one wakeup, or one polled run, on its way to an attempt.
type delivery struct {
	rt         *Runtime
	wakeup     lane.Wakeup
	byWakeup   bool
	time       DeliveryOptions // Deadline, Began, Follows and Beside
	lease      time.Duration   // of workers; 0 means runlane.DefaultLease
	workerID   string
	executions *executionSet
	only       []runlane.QueueName // of workers: the queues to take work from; nil: all known here
	pace       lane.Pace           // of the run's partition, after a claim in a queue with a rate
	pauses     int                 // for the rate, in this delivery
	suspects   chan struct{}       // of workers: has room for one suspect; nil: any number
	reading    apart.Context       // of read
	unread     bool                // the payload was not read, because the run is paused

	// Of a claim for a client:
	handlers map[runlane.TaskID]runlane.Handler // the client's tasks; nil: the runtime's
	token    string                             // the lease's; "": a new one
	give     func(x *execution)                 // receives the attempt instead of a handler; nil: a handler executes it
}

func (d *delivery) apply(options *DeliveryOptions) error {
	if options == nil {
		return nil
	}
	if err := runlane.ValidateKey("DeliveryOptions.WorkerID", options.WorkerID); err != nil {
		return err
	}
	if err := d.rt.checkQueues("DeliveryOptions.Queues", options.Queues); err != nil {
		return err
	}
	d.time = *options
	if options.WorkerID != "" {
		d.workerID = options.WorkerID
	}
	return nil
}

func (d *delivery) deliver(ctx context.Context) (*DeliveryResult, error) {
	if err := d.check(); err != nil {
		return nil, err
	}
	r := newRules(&d.time, d.lease, d.rt.world.Now)
	if left, bounded := r.handlerTime(d.rt.world.Now); bounded && left <= 0 {
		return nil, d.noTime(left)
	}
	waited := false
	var run *runlane.Run
	for range deliveryRounds + 1 {
		var err error
		run, err = d.read(ctx)
		if isNotFound(err) {
			return &DeliveryResult{Ignored: IgnoredNotFound}, nil
		}
		if err != nil {
			return nil, err
		}
		at := d.rt.now()
		j, err := d.judge(ctx, run, at, r)
		if j.ignored == IgnoredNotDue && j.wait <= shortWait && !waited {
			if !pause(ctx, j.wait) {
				return nil, cancelled(ctx, run.ID)
			}
			waited = true
			// The pause took real time, so the run is due even if the runtime's clock stands still.
			j, err = d.judge(ctx, run, at.Add(j.wait), r)
		}
		if err != nil {
			d.giveBackSlot(ctx, run, at, err)
			return nil, err
		}
		if j.ignored != "" {
			return d.ignore(ctx, run, j)
		}
		result, again, err := d.take(ctx, run, j, r)
		if !again {
			return result, err
		}
	}
	if d.byWakeup && d.rt.ordered(run.Queue) {
		return nil, owned(run.ID)
	}
	return &DeliveryResult{Run: run, Ignored: IgnoredClaimLost}, nil
}

func (d *delivery) check() error {
	if d.wakeup.Environment.Name() != d.rt.environment.Name() {
		return &runlane.Error{
			Code:  runlane.ErrValidationFailed,
			RunID: d.wakeup.RunID,
			Message: fmt.Sprintf(
				"wakeup of environment %q in a runtime of environment %q",
				d.wakeup.Environment.Name(),
				d.rt.environment,
			),
			Hint: "give each environment separate queues",
		}
	}
	d.wakeup.Environment = d.rt.environment
	return d.wakeup.RunID.Validate()
}

// ignore acknowledges a wakeup without effect. It sends an early wakeup again with the rest of its delay, or its run
// would wait for the tick; if that fails, the wakeup is handed back. It does not if something other than time may
// resume the run, unless the time is near: the end of the wait sends a wakeup, and a stray one would be sent again for
// each later wait.
func (d *delivery) ignore(ctx context.Context, run *runlane.Run, j judgement) (*DeliveryResult, error) {
	again := run.Waiting.Timed() || j.wait <= clockSkew
	if j.ignored == IgnoredNotDue && d.byWakeup && again && d.rt.canDelay(run.Queue, j.wait) {
		later := d.rt.delayedWakeup(run, j.wait)
		later.Early = d.rt.policy(run.Queue).Rated()
		if err := d.rt.sendDelayed(ctx, later); err != nil {
			return nil, err
		}
	}
	if j.ignored == IgnoredPaused && d.byWakeup {
		d.freePausedSlot(ctx, run)
	}
	return &DeliveryResult{Run: run, Ignored: j.ignored}, nil
}

// take claims the run and executes an attempt, or fails a run with too many abandoned attempts. again: a race was lost,
// so judge the run anew.
func (d *delivery) take(
	ctx context.Context, run *runlane.Run, j judgement, r rules,
) (result *DeliveryResult, again bool, err error) {
	if j.abandoned > 0 {
		failed, err := d.rt.failAbandoned(ctx, run, j.at, j.abandoned)
		switch {
		case isConflict(err, runlane.ConflictEventSequence):
			return nil, true, nil
		case err != nil:
			return nil, false, err
		}
		return &DeliveryResult{Run: failed, Ignored: IgnoredAbandoned}, false, nil
	}
	defer j.release()
	if orphaned, err := d.rt.orphaned(ctx, run); err != nil || orphaned {
		if err == nil {
			run, err = d.rt.appendEvent(ctx, run, j.at, &runlane.RunCancelled{Reason: reasonCaller})
		}
		if isConflict(err, runlane.ConflictEventSequence) {
			return nil, true, nil
		}
		return &DeliveryResult{Run: run, Ignored: IgnoredCancellation}, false, err
	}
	token := d.token
	if token == "" {
		token = d.rt.world.NewID("lease_")
	}
	d.rt.executing.expect(token)
	defer d.rt.executing.forget(token)
	n := run.Counters.Attempts + 1
	if d.give == nil {
		var t tracing
		ctx, t = d.rt.traceRun(ctx, WorkAttempt, run, n, d.workerID)
		defer func() { t.done(deliveredEnd(result, err)) }()
	}
	claiming, t := d.rt.traceRun(ctx, WorkClaim, run, n, d.workerID)
	x, lost, err := d.claim(claiming, run, j.handler, j.at, r, token)
	t.done(claimEnd(x, lost, err))
	switch {
	case err != nil:
		return nil, false, err
	case lost == lane.LostCapacity:
		d.wantSlot(ctx, run, j.at)
		return &DeliveryResult{Run: run, Ignored: IgnoredNoCapacity}, false, nil
	case lost == lane.LostRate:
		if d.pauseForRate(ctx, run, j.at) {
			return nil, true, nil
		}
		return &DeliveryResult{Run: run, Ignored: IgnoredNoRate}, false, d.late(ctx, run, j.at)
	case x == nil:
		return nil, true, nil
	}
	defer d.offerTicket(ctx, run, j.at)()
	switch {
	case d.give != nil:
		result = &DeliveryResult{Run: x.run}
		d.give(x) // x belongs to the client from here on
		return result, false, nil
	}
	if result, err = x.perform(ctx, d.executions); err == nil {
		err = d.redeliverIfUnsettled(x, result)
	}
	if err != nil {
		return nil, false, err
	}
	return result, false, nil
}

// clockSkew is how far the clocks of two processes may differ. A run that was due when written counts as due within it.
const clockSkew = 5 * time.Second

type judgement struct {
	ignored Ignored       // why nothing is executed; "": go on
	wait    time.Duration // until the run is due, if it is not

	at        time.Time // now, or later if the writer's clock is ahead
	abandoned int       // not 0: fail the run after this many abandoned attempts in a row
	handler   runlane.Handler
	release   func() // call it after the attempt
}

// judge decides about every delivery, by the run and then by this process. The first matching row decides. Reasons, and
// the delay of each redelivery, are in docs/internals/design.md, What a wakeup leads to:
//
//	the run                                        the wakeup
//	is finished                                    is ignored: terminal
//	was asked to stop                              is ignored: its owner ends it, or a tick; as below
//	is of another queue than the wakeup            is ignored: wrong queue
//	has a status of a newer version                is ignored: this version may not touch it
//	is owned                                       is ignored: leased; is handed back in an ordered queue
//	was released by a shutdown, and is not due     is ignored; is handed back in an ordered queue
//	is not due, and something may end its wait     is ignored: a tick sends another ahead
//	is not due                                     is ignored, and sent again with a delay
//	is of a paused queue or task                   is ignored: resuming sends another
//	was abandoned too often                        is acknowledged, and the run is failed
//	is of a queue that this process leaves alone   is handed back
//	has a task without a handler here              is handed back
//	has a payload that cannot be read here         is handed back
//	is not accepted by its handler here            is handed back
//	is a suspect, and others execute               is sent again, or handed back
//	may need more time than is left                is handed back
//	anything else                                  leads to a claim
//
// An error hands the wakeup back, without a claim or a write: the transport redelivers later. A polled run is skipped
// for a while.
func (d *delivery) judge(ctx context.Context, run *runlane.Run, now time.Time, r rules) (judgement, error) {
	j := d.judgeRun(run, now)
	if j.ignored != "" {
		return j, d.redeliverIfOwned(ctx, run, j)
	}
	var err error
	if j.ignored, err = d.judgePauses(ctx, run, j.at); err != nil || j.ignored != "" {
		return j, err
	}
	if j.abandoned, err = d.rt.abandonedTooOften(ctx, run, j.at); err != nil || j.abandoned > 0 {
		return j, err
	}
	if err := d.checkServed(run); err != nil {
		return judgement{}, err
	}
	var ok bool
	if j.handler, ok = d.handlersHere()[run.TaskID]; !ok {
		return judgement{}, taskNotFound(run.TaskID, run.ID)
	}
	if err := run.PayloadError(); err != nil {
		return judgement{}, err // the run waits for a process with the key
	}
	if err := checkAccepts(j.handler, run.ID, run.Payload); err != nil {
		return judgement{}, err
	}
	if j.release, j.ignored, err = d.suspect(ctx, run, j.at); err != nil || j.ignored != "" {
		return j, err
	}
	if err := d.checkTimeLeft(ctx, run, j.handler.Task, r); err != nil {
		j.release()
		return judgement{}, err
	}
	return j, nil
}

// read reads the run. A large payload is read only for a run that may be executed: most wakeups of others are late.
func (d *delivery) read(ctx context.Context) (*runlane.Run, error) {
	d.reading = apart.Context{Context: ctx}
	run, err := d.rt.storage().GetRun(&d.reading, d.wakeup.RunKey)
	if err != nil || run.Sealed == nil || run.Sealed.PayloadApart == (runlane.BodyApart{}) {
		return run, err
	}
	if why := d.judgeRun(run, d.rt.now()).ignored; why != "" && why != IgnoredNotDue { // it may wait and execute
		return run, nil
	}
	if d.unread, err = d.paused(ctx, run); err != nil || d.unread {
		return run, err
	}
	return run, d.rt.codec.fill(ctx, run)
}

// handlersHere returns the runtime's handlers, or the stand-ins of a claiming client.
func (d *delivery) handlersHere() map[runlane.TaskID]runlane.Handler {
	if d.handlers != nil {
		return d.handlers
	}
	return d.rt.handlers
}

// checkAccepts rejects a run that its handler leaves to other processes.
func checkAccepts(h runlane.Handler, id runlane.RunID, payload []byte) error {
	if h.Accepts == nil {
		return nil
	}
	ok := false
	if fault := caught(func() { ok = h.Accepts(payload) }); ok && fault == nil {
		return nil
	}
	return &runlane.Error{
		Code:      runlane.ErrTaskNotFound,
		Message:   fmt.Sprintf("the handler of task %q in this process does not accept the run", h.Task.ID),
		RunID:     id,
		Hint:      "start a process whose handler accepts it",
		Retryable: true,
	}
}

// checkServed rejects runs of queues that this process leaves alone. Their wakeups arrive when queues share a binding.
func (d *delivery) checkServed(run *runlane.Run) error {
	switch {
	case d.rt.unknownHere(run.Queue):
		return &runlane.Error{
			Code: runlane.ErrConfigurationInvalid, RunID: run.ID, Retryable: true,
			Message: fmt.Sprintf("queue %q is not known here, so neither is its limit", run.Queue),
			Hint: "let every process that reads the queue's binding know the queue, by a task's Queue or " +
				"Options.Queues, or give the queue a separate binding",
		}
	case d.only != nil && !slices.Contains(d.only, run.Queue):
		return &runlane.Error{
			Code: runlane.ErrConfigurationInvalid, RunID: run.ID, Retryable: true,
			Message: fmt.Sprintf("this worker takes no work from queue %q", run.Queue),
			Hint: "add the queue to WorkOptions.Queues, or give it a separate binding, which this worker does " +
				"not read",
		}
	default:
		return nil
	}
}

// judgeRun judges by the run alone: the rows up to "not due".
func (d *delivery) judgeRun(run *runlane.Run, now time.Time) judgement {
	switch {
	case run.Status.Terminal():
		return judgement{ignored: IgnoredTerminal}
	case run.Status == runlane.StatusCancellationRequested:
		return judgement{ignored: IgnoredCancellation}
	case d.wakeup.Queue != "" && d.wakeup.Queue != run.Queue:
		return judgement{ignored: IgnoredWrongQueue}
	}
	due, ok := run.RunnableAt()
	switch {
	case !ok:
		return judgement{ignored: IgnoredClaimLost}
	case run.Status == runlane.StatusRunning && now.Before(due):
		return judgement{ignored: IgnoredLeased}
	case d.byWakeup && now.Before(d.rt.ticketOf(run, now)):
		return judgement{ignored: IgnoredNotDue, wait: d.rt.ticketOf(run, now).Sub(now)}
	case !now.Before(due):
		return judgement{at: now}
	case atOnce(run) && due.Sub(now) <= clockSkew:
		return judgement{at: due}
	default:
		return judgement{ignored: IgnoredNotDue, wait: due.Sub(now)}
	}
}

// atOnce reports a run that was due when it was queued, or when a shutdown released it: neither created for later
// nor waiting.
func atOnce(run *runlane.Run) bool {
	now := run.Status == runlane.StatusQueued || run.Status == runlane.StatusReleased
	return now && !run.RunAt.After(run.UpdatedAt)
}
