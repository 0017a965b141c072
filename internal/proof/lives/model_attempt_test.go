package lives

import (
	"errors"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
)

var modelOutcomes = []string{
	succeeds, succeeds, outputs, triggers, fails, fails, failsCode, failsFinal, retryAfter,
	releases, releases, panics, stops, kills, kills,
}

const (
	modelCode   = "card_declined"
	modelOutput = `{"done": "<yes>" }`
	modelLeased = time.Minute
	// modelBeat is the longest time between two heartbeats: a third of the lease and a fifth more, seen at the next whole second.
	modelBeat = 25 * time.Second
	// modelLook is the longest time between two looks of an attempt that sends none.
	modelLook = 7 * time.Second
)

// modelLease is what the model knows of an execution.
type modelLease struct {
	deployment *modelDeployment
	beats      bool      // extends its lease
	ends       time.Time // its context, by itself; zero: never
	unwind     time.Duration
	status     runlane.Status // that its outcome left
	told       time.Time      // its handler was told of a requested cancellation, by its own runtime; zero: it learns with a heartbeat
}

// modelVerdict is what a delivery must lead to before any handler is called.
type modelVerdict struct {
	ignored core.Ignored
	code    runlane.ErrorCode // handed back
	wait    time.Duration     // for a run that is due in a moment
	fails   bool              // the run was abandoned too often
}

// judge says how a wakeup for a run ends. queue is the one that the wakeup names, if any.
func (m *model) judge(run *modelRun, queue runlane.QueueName, left time.Duration, limited bool) modelVerdict {
	switch {
	case limited && left <= 0:
		return modelVerdict{code: runlane.ErrOperationCancelled}
	case run == nil:
		return modelVerdict{ignored: core.IgnoredNotFound}
	case run.Status.Terminal():
		return modelVerdict{ignored: core.IgnoredTerminal}
	case run.Status == runlane.StatusCancellationRequested:
		return modelVerdict{ignored: core.IgnoredCancellation}
	case queue != "" && queue != run.Queue:
		return modelVerdict{ignored: core.IgnoredWrongQueue}
	}
	early := run.dueAt().Sub(m.now)
	switch {
	case run.Status == runlane.StatusRunning && early > 0:
		return modelVerdict{ignored: core.IgnoredLeased}
	case early > time.Second:
		return modelVerdict{ignored: core.IgnoredNotDue, wait: early}
	}
	need := run.task.timeout
	if need == 0 {
		need = 5 * time.Second
	}
	v := modelVerdict{wait: max(early, 0)}
	switch {
	case m.atBound(run):
		v.ignored, v.fails = core.IgnoredAbandoned, true
	case run.task.strange:
		v.code = runlane.ErrTaskNotFound
	case limited && left < need:
		v.code = runlane.ErrOperationCancelled
	}
	return v
}

// claim gives the run to an owner, with its own slot or a free one. It returns false without one.
func (m *model) claim(d *modelDeployment, run *modelRun, x *modelAttempt, leaseEnd time.Time, byWakeup bool) bool {
	limit := d.bound(run.Queue)
	slot := run.occupies(m.now)
	if !slot && limit > 0 {
		if m.occupied(run.Queue, run.ConcurrencyKey) >= limit {
			return false
		}
		slot = true
	}
	woken := modelWait{}
	if byWakeup {
		woken = run.awaited()
		if woken.due.After(leaseEnd) {
			woken = modelWait{}
		}
	}
	m.changed(run, 2)
	run.leave()
	run.Status, run.slot, run.woken, run.owner, run.first = runlane.StatusRunning, slot, woken, x, time.Time{}
	run.Lease = runlane.Lease{WorkerID: modelOwner, ExpiresAt: leaseEnd}
	run.Counters.Attempts++
	run.StartedAt, run.Failure = m.now, runlane.Failure{}
	return true
}

// spread is how far the runtime may move a delay.
func (t *task) backoff(failure int) (delay, spread time.Duration) {
	if t.fixed > 0 {
		return t.fixed, 0
	}
	delay = min(time.Second<<(failure-1), 5*time.Minute)
	return delay, delay / 5
}

// end applies what the handler of x returned. It returns false when the run is not the attempt's any more, and nothing is recorded.
func (m *model) end(run *modelRun, x *modelAttempt) bool {
	if run == nil || run.owner != x {
		return false
	}
	run.beaten = run.beaten || x.model.beats
	asked := run.Status == runlane.StatusCancellationRequested
	switch kind := x.outcome.kind; kind {
	case kills:
		return true // the lease ends by itself
	case succeeds, outputs, triggers:
		m.finish(run, runlane.StatusSucceeded, "")
		if kind == outputs {
			run.Output = []byte(modelOutput)
		}
	case releases:
		if x.outcome.delay <= 0 || x.outcome.delay > runlane.MaxReleaseDelay {
			m.fail(run, runlane.ErrValidationFailed, asked)
			break
		}
		m.release(run, x.outcome.delay, asked)
	case stops:
		switch {
		case x.cause == nil:
			m.fail(run, runlane.ErrTaskFailed, asked)
		case asked:
			m.finish(run, runlane.StatusCancelled, "")
		case errors.Is(x.cause, runlane.ErrTimeout):
			m.fail(run, runlane.ErrTaskTimedOut, false)
		default:
			m.release(run, max(x.lingers.Sub(m.now), 0), false)
		}
	case retryAfter:
		if asked {
			m.finish(run, runlane.StatusCancelled, "")
		} else if !m.retry(run, runlane.ErrTaskFailed, x.outcome.delay, 0) {
			m.fail(run, runlane.ErrTaskFailed, true)
		}
	case failsFinal:
		m.fail(run, runlane.ErrTaskFailed, true)
	case fails:
		m.fail(run, runlane.ErrTaskFailed, asked)
	case failsCode:
		m.fail(run, modelCode, asked)
	case panics:
		m.fail(run, runlane.ErrTaskPanicked, asked)
	}
	x.model.status = run.Status
	waits, wait := run.Status == runlane.StatusRetrying || run.Status == runlane.StatusReleased, run.RunAt.Sub(m.now)
	m.handOver(x.model.deployment, run) // to the run itself, if it is its turn
	if waits && run.jitter == 0 {       // else how long it waits is not known before the comparison
		m.wakeLater(run, wait)
	}
	return true
}

func (m *model) release(run *modelRun, delay time.Duration, asked bool) {
	if asked {
		m.finish(run, runlane.StatusCancelled, "")
		return
	}
	m.changed(run, 1)
	run.leave()
	run.Counters.Releases++
	run.settled = run.Counters.Attempts
	run.Status, run.RunAt = runlane.StatusReleased, m.now.Add(delay)
}

// fail schedules another attempt while there is budget, unless the failure is final.
func (m *model) fail(run *modelRun, code runlane.ErrorCode, final bool) {
	delay, spread := run.task.backoff(run.Counters.Failures + 1)
	if final || !m.retry(run, code, delay, spread) {
		run.Counters.Failures++
		m.finish(run, runlane.StatusFailed, code)
	}
}

// retry reports whether the budget has another attempt: failure number n leads to one while n is less than the attempts allowed.
func (m *model) retry(run *modelRun, code runlane.ErrorCode, delay, spread time.Duration) bool {
	if run.Counters.Failures+1 >= run.task.attempts {
		return false
	}
	m.changed(run, 1)
	run.leave()
	run.Counters.Failures++
	run.Counters.Retries++
	run.settled = run.Counters.Attempts
	run.Status, run.RunAt, run.Failure, run.jitter = runlane.StatusRetrying, m.now.Add(delay), runlane.Failure{Code: code}, spread
	return true
}

// cancel is an operator's request. It returns what refuses it.
func (m *model) cancel(d *modelDeployment, run *modelRun) runlane.ErrorCode {
	switch {
	case run == nil:
		return runlane.ErrRunNotFound
	case run.Status.Terminal():
		return runlane.ErrValidationFailed
	case run.Status == runlane.StatusCancellationRequested:
		m.tell(d, run)
		return ""
	case run.Status == runlane.StatusRunning:
		m.changed(run, 1)
		run.Status, run.requested = runlane.StatusCancellationRequested, m.now
		m.tell(d, run)
		return ""
	}
	slot := run.Status == runlane.StatusQueued && !run.DispatchExpiresAt.IsZero()
	m.finish(run, runlane.StatusCancelled, "")
	if slot {
		m.handOver(d, run)
	}
	return ""
}

// resume ends a wait. It returns what refuses it.
func (m *model) resume(d *modelDeployment, run *modelRun) runlane.ErrorCode {
	switch {
	case run == nil:
		return runlane.ErrRunNotFound
	case !run.Status.Waiting() && !(run.Status == runlane.StatusQueued && m.now.Before(run.RunAt)):
		return runlane.ErrValidationFailed
	}
	run.EventSequence++
	if m.now.Before(run.RunAt) {
		run.RunAt = m.now
	}
	if d.bound(run.Queue) == 0 {
		m.request(run, 0, true)
		return ""
	}
	m.changed(run, 0)
	run.row = nil // it was for the time that the run waited for
	m.handOver(d, run)
	return ""
}

// tell ends the context of the run's handler at once, where the runtime that was asked executes it. Another one's learns of it with its
// next heartbeat.
func (m *model) tell(d *modelDeployment, run *modelRun) {
	if x := run.owner; x != nil && x.model.deployment == d && x.model.told.IsZero() {
		x.model.told = m.now
	}
}
