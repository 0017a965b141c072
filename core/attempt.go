package core

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/apart"
	"github.com/runlane/runlane-go/lane"
)

// unwindTime is how long a handler may take to return after the final end of its context. Then it is left behind with
// its goroutine, which Go cannot stop.
const unwindTime = 5 * time.Second

// execution is one attempt under its lease.
type execution struct {
	rt       *Runtime
	handler  runlane.Handler
	rules    rules
	set      *executionSet
	workerID string
	token    string
	started  *runlane.Run // as claimed; never changed
	spare    *runlane.Run // the run before the claim, whose memory the outcome reuses; nil: none
	cancel   context.CancelCauseFunc
	logs     lazyHandler
	kept     *attemptLog // nil: the task keeps no log
	logger   slog.Logger
	short    bool            // the deadline leaves less than rules.due
	cut      bool            // the deadline ended the attempt
	remote   bool            // a client executes it: no state is kept here between calls
	stopped  bool            // the runtime ended it: deadline, timeout or shutdown
	ending   detachedContext // for the commit of the outcome
	result   DeliveryResult

	ctx    context.Context // for heartbeats, which a timer starts
	beatAt time.Time       // next heartbeat, by the real clock; guarded by the set's lock
	mu     sync.Mutex      // held during a heartbeat
	run    *runlane.Run    // the latest state known here
	over   bool            // no more heartbeats

	lost atomic.Bool // the lease is lost: record no more

	wake     chan struct{} // buffers both signals: returned, and halted
	stateMu  sync.Mutex
	returned bool
	verdict  verdict // from the handler's return
	halted   bool    // the handler must end

	notes     notes
	suspended suspension

	handling    context.Context // the handler's context, parent of the contexts of steps
	steps       steps
	checkpoints checkpoints

	outputMu sync.Mutex
	output   json.RawMessage
	receipt  json.RawMessage
	closed   bool // the runtime no longer waits for the handler
}

// ownerCommand is pooled memory for the claim and the outcome of an attempt. Both can share it: storages retain no
// command.
type ownerCommand struct {
	claim  lane.ClaimCommand
	append lane.AppendCommand
	events [2]runlane.Event

	claimed   runlane.RunLeaseClaimed
	begun     runlane.RunStarted
	succeeded runlane.RunSucceeded
}

var ownerCommands = sync.Pool{New: func() any { return new(ownerCommand) }}

func newOwnerCommand() *ownerCommand { return ownerCommands.Get().(*ownerCommand) }

func (c *ownerCommand) done() {
	*c = ownerCommand{}
	ownerCommands.Put(c)
}

// claim takes the lease and starts the attempt, in one commit.
func (d *delivery) claim(
	ctx context.Context, run *runlane.Run, h runlane.Handler, at time.Time, r rules, token string,
) (*execution, lane.Outcome, error) {
	rt := d.rt
	if timeout := h.Task.Timeout; d.give != nil && timeout > 0 { // nothing else would end the attempt
		r.lease = min(r.lease, timeout+leaseAfterDeadline)
	}
	lease := runlane.Lease{Token: token, WorkerID: d.workerID, ExpiresAt: r.leaseEnd(at)}
	c := newOwnerCommand()
	defer c.done()
	c.claimed, c.begun = runlane.RunLeaseClaimed{Lease: lease}, runlane.RunStarted{Attempt: run.Counters.Attempts + 1}
	header := runlane.Event{
		RunID:       run.ID,
		Environment: rt.environment,
		OccurredAt:  at,
		Actor:       runlane.Actor{Type: runlane.ActorWorker, ID: d.workerID},
	}
	c.events[0], c.events[1] = header, header
	c.events[0].Body, c.events[1].Body = &c.claimed, &c.begun
	projected, err := ProjectRunEvents(run, run.EventSequence, c.events[:]...)
	if err != nil {
		return nil, "", err
	}
	policy := rt.policy(run.Queue)
	c.claim = lane.ClaimCommand{
		At:       at,
		ByWakeup: d.byWakeup && !r.shortLease(),
		Slot:     policy.Bounded(),
		Transition: lane.Transition{
			ExpectedSequence: run.EventSequence,
			Events:           c.events[:],
			Projected:        projected,
			Queue:            policy,
			WithoutRecords:   !rt.watched,
		},
	}
	got, err := rt.storage().ClaimRunLease(ctx, &c.claim)
	switch {
	case err != nil && !rt.claimedAfterAll(ctx, err, run.ID, token):
		return nil, "", err
	case err == nil && got.Outcome != lane.Acquired:
		d.pace = got.Pace
		return nil, got.Outcome, nil
	case err == nil && policy.Rated():
		d.pace = got.Pace
	}
	return &execution{
		rt:       rt,
		handler:  h,
		rules:    r,
		workerID: d.workerID,
		token:    token,
		started:  projected,
		run:      projected,
		spare:    run,
	}, "", nil
}

// claimedAfterAll reports whether a claim with a lost answer succeeded. Otherwise the run would wait for the end of an
// unused lease. It also passes on a cancellation requested meanwhile.
func (rt *Runtime) claimedAfterAll(ctx context.Context, err error, id runlane.RunID, token string) bool {
	e, ok := asError(err)
	if !ok || e.Code != runlane.ErrStorageUnavailable || e.Meta["outcome"] != "unknown" {
		return false
	}
	run, err := rt.storage().GetRun(apart.Leave(ctx), lane.RunKey{Environment: rt.environment, RunID: id})
	if err != nil || !run.Status.Owned() || run.Lease.Token != token {
		return false
	}
	if run.Status == runlane.StatusCancellationRequested {
		rt.executing.cancel(token)
	}
	return true
}

// perform runs the handler and records its outcome. The caller adds the token to rt.executing and removes it.
func (x *execution) perform(ctx context.Context, executions *executionSet) (*DeliveryResult, error) {
	limited, stop := x.limit(ctx)
	defer stop()
	handling, cancel := context.WithCancelCause(limited)
	x.cancel, x.handling = cancel, handling
	defer cancel(nil)
	x.wake = make(chan struct{}, 2)
	if x.handler.Task.KeepLogs && x.rt.storage().Capabilities().SuspendsRuns {
		x.kept = &attemptLog{x: x}
	}
	x.ctx, x.set = ctx, executions
	executions.add(x, x.nextBeat())
	defer executions.remove(x)
	x.rt.executing.add(x)

	for {
		result, again, err := x.once(ctx, limited, handling)
		if !again {
			return result, err
		}
		x.lookAgain()
	}
}

// once calls the handler and records its outcome. again asks for another call in this attempt.
func (x *execution) once(ctx, limited, handling context.Context) (result *DeliveryResult, again bool, err error) {
	v, returned := x.await(limited, handling)
	x.cut = x.short && limited.Err() != nil && ctx.Err() == nil
	x.flushNotes(ctx, true)
	x.flushCheckpoints(ctx, true)
	x.flushLog(ctx)
	x.keepReceipt(ctx)
	if !returned {
		result, err = x.abandon(ctx, handling)
		return result, false, err
	}
	v = x.suspensionOf(ctx, v)
	if x.cut && v.kind == verdictFailed && !v.final && !v.chosen && v.failure.Code != runlane.ErrTaskPanicked {
		// A result after the end is ignored: the end probably caused it.
		v = verdict{kind: verdictStopped, cause: runlane.ErrShutdown}
	}
	x.cut = x.cut && v.kind == verdictStopped
	result, err = x.finish(ctx, v)
	if isConflict(err, runlane.ConflictWait) { // a signal came between the wait's read and the suspension
		if handling.Err() == nil {
			return nil, true, nil
		}
		result, err = x.finish(ctx, verdict{kind: verdictStopped, cause: context.Cause(handling)})
	}
	return result, false, err
}

// limit ends the handler's context at the task's timeout, or early enough before the deadline to record the outcome. An
// attempt that the deadline gives less time than it is due is not at fault: it ends as on a shutdown.
func (x *execution) limit(ctx context.Context) (context.Context, context.CancelFunc) {
	limit, cause := x.handler.Task.Timeout, runlane.ErrTimeout
	if left, bounded := x.rules.handlerTime(x.rt.world.Now); bounded && (limit == 0 || left < limit) {
		limit = max(left, time.Nanosecond)
		if x.short = limit < x.rules.due(x.handler.Task); x.short {
			cause = runlane.ErrShutdown
		}
	}
	if limit == 0 {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, limit, cause)
}

// await starts the handler and waits for it, with a bound after its context has ended, except by a requested
// cancellation: a handler may refuse that and finish. returned is false for a handler that ignores the end of its
// context.
func (x *execution) await(limited, handling context.Context) (v verdict, returned bool) {
	go x.main(handling) // the attempt's goroutine: ends when the handler returns
	select {
	case <-x.wake:
	case <-limited.Done():
	}
	if v, returned = x.handlerVerdict(); returned {
		return v, true
	}
	timer := time.NewTimer(x.rules.unwind())
	defer timer.Stop()
	for {
		select {
		case <-x.wake:
			if v, returned = x.handlerVerdict(); returned {
				return v, true
			}
		case <-timer.C:
			return verdict{}, false
		}
	}
}

func (x *execution) handlerVerdict() (v verdict, returned bool) {
	x.stateMu.Lock()
	defer x.stateMu.Unlock()
	return x.verdict, x.returned
}

// setVerdict stores the handler's result and wakes await.
func (x *execution) setVerdict(v verdict) {
	x.stateMu.Lock()
	x.verdict, x.returned = v, true
	x.stateMu.Unlock()
	x.wake <- struct{}{}
}

// abandon goes on without a handler that ignores its context.
//
//   - Timeout or cancellation: record it.
//   - Deadline of the process: record it, at no cost to the run.
//   - Shutdown: release the run until the lease would have ended, since the handler may still work. In an ordered queue
//     the run keeps its place until then.
func (x *execution) abandon(ctx context.Context, handling context.Context) (*DeliveryResult, error) {
	x.outputMu.Lock()
	x.closed = true
	x.outputMu.Unlock()
	cause := context.Cause(handling)
	x.rt.logRun(ctx, x.started, "handler did not return when its context ended; its goroutine is left running", cause)
	if timedOut(cause) || errors.Is(cause, runlane.ErrCancelRequested) || x.cut {
		return x.finish(ctx, verdict{kind: verdictStopped, cause: cause})
	}
	return x.finish(ctx, verdict{kind: verdictStopped, cause: cause, lingers: true})
}

// main runs the handler inside the middleware, and judges its result in the same goroutine, because the methods of an
// error are application code too. It sets one verdict, even if the handler ends the goroutine.
func (x *execution) main(ctx context.Context) {
	v := brokenVerdict("The handler ended its goroutine (runtime.Goexit).", nil)
	defer func() { x.setVerdict(v) }()
	var err error
	fault := caught(func() {
		err = x.guarded(func() error {
			a := x.newAttempt()
			return x.layer(runlane.WithAttempt(ctx, a), a, 0)
		})
		v = verdictOf(ctx, err, x.texts())
	})
	if fault != nil {
		v = brokenVerdict(
			fmt.Sprintf("The error that the handler returned panicked (its type is %T).", err),
			fault.stack,
		)
	}
}

func (x *execution) newAttempt() *runlane.Attempt {
	x.logs.of = x
	given := *x.started // the handler may change its copy
	given.Payload, given.Failure = bytes.Clone(given.Payload), given.Failure.Clone()
	given.TraceCarrier, given.Meta = maps.Clone(given.TraceCarrier), maps.Clone(given.Meta)
	if given.Sealed != nil {
		given.Sealed = new(*given.Sealed)
	}
	x.logger = *slog.New(&x.logs)
	if x.kept != nil {
		x.logger = *slog.New(x.keeping(&x.logs))
	}
	return runlane.NewAttempt(given, x.started.Counters.Attempts, runlane.AttemptHost{
		Logger:   &x.logger,
		Reports:  x,
		Trigger:  x,
		Steps:    x,
		Receipts: x,
		Signal:   x,
		Waits:    x,
		Calls:    x,
		Nodes:    x,
	})
}

// layer calls the middleware from the outermost inwards, then the handler. It turns a handler's panic into an error
// inside the middleware, so that middleware rolls back its transaction.
func (x *execution) layer(ctx context.Context, a *runlane.Attempt, i int) error {
	if i == len(x.rt.middleware) {
		if i == 0 {
			return x.handler.Execute(ctx, a, a.Run.Payload)
		}
		return x.guarded(func() error { return x.handler.Execute(ctx, a, a.Run.Payload) })
	}
	called := false
	return x.rt.middleware[i](ctx, a, func(ctx context.Context) error {
		if called {
			return &runlane.Error{
				Code:    runlane.ErrConfigurationInvalid,
				Message: "middleware called next twice",
				Hint:    "call it at most once",
			}
		}
		called = true
		return x.layer(ctx, a, i+1)
	})
}

// guarded turns a panic into an error with its stack.
func (x *execution) guarded(call func() error) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = x.panicError(value, debug.Stack())
		}
	}()
	return call()
}

func (x *execution) actor() runlane.Actor {
	return runlane.Actor{Type: runlane.ActorWorker, ID: x.workerID}
}

// end ends the handler's context. Every cause except a requested cancellation is final.
func (x *execution) end(cause error) {
	x.cancel(cause)
	if errors.Is(cause, runlane.ErrCancelRequested) {
		return
	}
	x.stateMu.Lock()
	defer x.stateMu.Unlock()
	if !x.halted {
		x.halted = true
		x.wake <- struct{}{}
	}
}
