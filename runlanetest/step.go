package runlanetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
)

// Settle executes what is due now, and what that makes due, and leaves the clock alone.
func (rt *Runtime) Settle() {
	rt.t.Helper()
	defer rt.begin()()
	s := steps{rt: rt}
	s.settle()
}

// Advance moves the clock by d. On the way it stops wherever something is due (a retry, a released run, a schedule's
// time) and executes it at that very instant. What is due now and at the end is executed too.
func (rt *Runtime) Advance(d time.Duration) {
	rt.t.Helper()
	if d < 0 {
		rt.t.Fatalf("runlanetest: Advance by %s: the clock does not go back", d)
	}
	defer rt.begin()()
	end := rt.Now().Add(d)
	for {
		s := steps{rt: rt} // an instant has its own limit: how many there are is for the caller to say
		next, ok := rt.nextInstant(s.settle())
		if !ok || next.After(end) {
			next = end
		}
		if !rt.Now().Before(end) {
			return
		}
		rt.clock.moveTo(next)
	}
}

// Finish moves the clock on until a run has ended, and returns its history. What else is due until then is executed
// too. A run that does not end fails the test, and the message says what it waits for.
func (rt *Runtime) Finish(id runlane.RunID) *History {
	rt.t.Helper()
	defer rt.begin()()
	s := steps{rt: rt}
	for {
		waiting := s.settle()
		run, err := rt.Runs().Get(rt.t.Context(), id)
		switch {
		case err != nil:
			rt.t.Fatalf("runlanetest: run %s cannot be read: %v", id, err)
		case run.Status.Terminal():
			return rt.History(id)
		case !rt.tasks[run.TaskID]:
			rt.fail(id, fmt.Sprintf("there is no handler for task %q: pass it in Options.Handlers", run.TaskID))
		case !rt.queues[run.Queue]:
			rt.fail(id, fmt.Sprintf("no worker receives from queue %q: pass it in Options.Queues", run.Queue))
		}
		next, ok := rt.nextInstant(waiting)
		if !ok {
			rt.fail(id, "nothing will ever be due again")
		}
		if s.spent() {
			rt.fail(id, fmt.Sprintf("%d attempts and jumps of the clock led to no end (Options.MaxSteps)", rt.maxSteps))
		}
		rt.clock.moveTo(next)
	}
}

// FinishAll moves the clock on until no run of a task that executes here is active. Schedules fire on the way. Runs
// that do not end fail the test, and the message says what one of them waits for.
func (rt *Runtime) FinishAll() {
	rt.t.Helper()
	defer rt.begin()()
	s := steps{rt: rt}
	for {
		waiting := s.settle()
		if len(waiting) == 0 {
			return
		}
		next, ok := rt.nextInstant(waiting)
		if !ok {
			rt.fail(waiting[0].ID, "nothing will ever be due again")
		}
		if s.spent() {
			rt.fail(
				waiting[0].ID,
				fmt.Sprintf("%d attempts and jumps of the clock led to no end (Options.MaxSteps)", rt.maxSteps),
			)
		}
		rt.clock.moveTo(next)
	}
}

// begin fails a call while another one moves the clock. The returned function ends the call.
func (rt *Runtime) begin() (end func()) {
	if !rt.moving.TryLock() {
		const text = "runlanetest: the clock is moved while another call moves it: a handler, or a second goroutine, " +
			"may trigger and read only"
		rt.t.Error(text)
		panic(text)
	}
	return rt.moving.Unlock
}

// steps counts what one call does.
type steps struct {
	rt   *Runtime
	done int
}

// spent counts a step and reports that there may be no more.
func (s *steps) spent() bool {
	s.done++
	return s.done > s.rt.maxSteps
}

// settle works at one instant until nothing is left: attempts, then maintenance, and again. It returns the active runs
// that execute here, the most urgent first.
func (s *steps) settle() (waiting []runlane.RunSummary) {
	rt := s.rt
	rt.t.Helper()
	for {
		s.execute()
		result, err := rt.Tick(rt.t.Context(), nil)
		if err != nil {
			rt.t.Fatalf("runlanetest: maintenance failed: %v", err)
		}
		moved := result.Cancelled.Done + result.Abandoned.Done + result.Scheduled.Done + result.Dispatched.Done
		if moved == 0 && !result.Scheduled.More {
			waiting, others := rt.active()
			if others < hiddenFrom || !rt.executeHidden(waiting) {
				return waiting
			}
		}
		if s.spent() {
			rt.t.Fatalf(
				"runlanetest: there is more to do at one instant for ever (Options.MaxSteps is %d)",
				rt.maxSteps,
			)
		}
	}
}

// execute makes attempts while any is due, and returns how many.
func (s *steps) execute() (attempts int) {
	rt := s.rt
	rt.t.Helper()
	if len(rt.tasks) == 0 {
		return 0
	}
	for {
		run := rt.executeNext()
		if run == nil {
			return attempts
		}
		attempts++
		if s.spent() {
			rt.fail(
				run.ID,
				fmt.Sprintf("%d attempts and jumps of the clock led to no end (Options.MaxSteps)", rt.maxSteps),
			)
		}
	}
}

// executeNext makes one attempt. It returns nil when none is due.
func (rt *Runtime) executeNext() *runlane.Run {
	rt.t.Helper()
	return rt.attempt(func(ctx context.Context) (*core.DeliveryResult, error) {
		return rt.ExecuteNext(ctx, &rt.delivery)
	}).Run
}

// hiddenFrom is how many runs without a handler here can hide a due run with one: ExecuteNext examines as many.
const hiddenFrom = 200

// executeHidden makes an attempt of a run that ExecuteNext does not find behind runs without a handler here, and
// reports whether there was one.
func (rt *Runtime) executeHidden(waiting []runlane.RunSummary) bool {
	rt.t.Helper()
	for _, run := range waiting {
		if run.RunAt.After(rt.Now()) || owned(run.Status) {
			continue
		}
		wakeup := lane.Wakeup{RunKey: lane.RunKey{Environment: rt.Environment(), RunID: run.ID}, Queue: run.Queue}
		result := rt.attempt(func(ctx context.Context) (*core.DeliveryResult, error) {
			return rt.ExecuteDelivery(ctx, wakeup, &rt.delivery)
		})
		if result.Ignored == "" {
			return true
		}
	}
	return false
}

// attempt executes at most one, within its limit.
func (rt *Runtime) attempt(execute func(context.Context) (*core.DeliveryResult, error)) *core.DeliveryResult {
	rt.t.Helper()
	ctx, cancel := context.WithCancelCause(rt.t.Context())
	defer cancel(nil)
	rt.mu.Lock()
	rt.interrupt, rt.executing, rt.swallows = cancel, "", false
	rt.mu.Unlock()
	limit := time.AfterFunc(rt.limit, func() { cancel(errAttemptLimit) })
	defer limit.Stop()

	result, err := execute(ctx)
	rt.mu.Lock()
	id, swallows := rt.executing, rt.swallows
	rt.interrupt, rt.executing = nil, ""
	rt.mu.Unlock()
	switch {
	case errors.Is(context.Cause(ctx), errAttemptLimit) && id != "":
		rt.fail(
			id,
			fmt.Sprintf(
				"its attempt took longer than %s (Options.AttemptLimit). Attempts are executed one after the other: "+
					"a handler that waits for another run waits for ever, and has to release instead",
				rt.limit,
			),
		)
	case err != nil:
		rt.t.Fatalf("runlanetest: executing failed: %v", err)
	case swallows && !rt.lenient && result.Run != nil && result.Run.Status == runlane.StatusReleased:
		rt.t.Errorf("runlanetest: the handler of run %s of task %q returned no error although it was suspended: it "+
			"%s. Return the errors of waits, sleeps and calls as they are (Options.AllowSwallowed)",
			id, result.Run.TaskID, rt.releasedFor(id))
	}
	return result
}

// releasedFor is why a run was released last.
func (rt *Runtime) releasedFor(id runlane.RunID) (reason string) {
	rt.t.Helper()
	for _, event := range rt.History(id).Events {
		if released, ok := event.Body.(*runlane.RunReleased); ok {
			reason = released.Reason
		}
	}
	return reason
}

// owned reports the statuses of runs that have a worker.
func owned(status runlane.Status) bool {
	return status == runlane.StatusRunning || status == runlane.StatusCancellationRequested
}

// active are the active runs that execute here, the most urgent first, and how many others there are.
func (rt *Runtime) active() (waiting []runlane.RunSummary, others int) {
	rt.t.Helper()
	filter := core.RunFilter{Statuses: activeStatuses()}
	for run, err := range rt.Runs().All(rt.t.Context(), &core.ListOptions{
		RunFilter: filter,
		Limit:     runlane.MaxPageLimit,
	}) {
		if err != nil {
			rt.t.Fatalf("runlanetest: the active runs cannot be listed: %v", err)
		}
		if rt.tasks[run.TaskID] && rt.queues[run.Queue] {
			waiting = append(waiting, run)
		} else {
			others++
		}
	}
	return waiting, others
}

func activeStatuses() (active []runlane.Status) {
	for _, status := range runlane.Statuses() {
		if status.Active() {
			active = append(active, status)
		}
	}
	return active
}

// nextInstant is the earliest time after now at which a run is due or is checked again, or a schedule fires.
func (rt *Runtime) nextInstant(waiting []runlane.RunSummary) (next time.Time, ok bool) {
	rt.t.Helper()
	now := rt.Now()
	consider := func(at time.Time) {
		if at.After(now) && (!ok || at.Before(next)) {
			next, ok = at, true
		}
	}
	for _, run := range waiting {
		if run.RunAt.Equal(runlane.FarMoment()) && !owned(run.Status) {
			continue // it waits without a time limit, for what the test sends
		}
		if run.RunAt.After(now) && !owned(run.Status) {
			consider(run.RunAt)
			continue
		}
		explanation, err := rt.Runs().Explain(rt.t.Context(), run.ID)
		if err != nil {
			rt.t.Fatalf("runlanetest: run %s cannot be explained: %v", run.ID, err)
		}
		consider(explanation.Until)
	}
	for _, schedule := range rt.schedules {
		if at, fires := schedule.When.Next(now); fires {
			consider(at)
		}
	}
	return next, ok
}

// shownTransitions is how many of the latest a failure shows.
const shownTransitions = 12

// fail ends the test with all there is to know about a run that does not end.
func (rt *Runtime) fail(id runlane.RunID, why string) {
	rt.t.Helper()
	h := rt.History(id)
	var text strings.Builder
	fmt.Fprintf(&text, "run %s of task %q does not end: %s\n", id, h.TaskID, why)
	fmt.Fprintf(&text, "it is %s, %s after its trigger", h.Status, runlane.FormatDuration(rt.Now().Sub(h.CreatedAt)))
	if explanation, err := rt.Runs().Explain(rt.t.Context(), id); err == nil && explanation.Wait != core.WaitNone {
		fmt.Fprintf(&text, ", and waits for: %s", explanation.Wait)
		if !explanation.Until.IsZero() {
			fmt.Fprintf(&text, ", until %s", since(h.CreatedAt, explanation.Until))
		}
		fmt.Fprintf(&text, ". %s", explanation.Next)
	}
	text.WriteString("\nits transitions:\n")
	lines := h.timeline()
	if left := len(lines) - shownTransitions; left > 0 {
		fmt.Fprintf(&text, "    … %d more\n", left)
		lines = lines[left:]
	}
	for _, line := range lines {
		text.WriteString("    " + line + "\n")
	}
	rt.t.Fatalf("runlanetest: %s", strings.TrimSuffix(text.String(), "\n"))
}
