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

// Settle executes all due runs, and the runs that become due by that, without moving the clock.
func (rt *Runtime) Settle() {
	rt.t.Helper()
	defer rt.begin()()
	s := steps{rt: rt}
	s.settle()
}

// Advance moves the clock by d. It stops at each due time on the way (a retry, a released run, a fire of a schedule)
// and executes the due runs at that instant. Runs due now and at the end execute too.
func (rt *Runtime) Advance(d time.Duration) {
	rt.t.Helper()
	if d < 0 {
		rt.t.Fatalf("runlanetest: Advance by %s: the clock does not go back", d)
	}
	defer rt.begin()()
	end := rt.Now().Add(d)
	for {
		s := steps{rt: rt} // each instant has its own limit, because the caller chose d
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

// Finish moves the clock until a run has ended, and returns its history. Other due runs execute too. A run that does
// not end fails the test, with the reason.
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

// FinishAll moves the clock until no run with a handler here is active. Schedules fire on the way. A run that does not
// end fails the test, with the reason.
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

type steps struct {
	rt   *Runtime
	done int
}

// spent counts a step and reports whether the limit is exceeded.
func (s *steps) spent() bool {
	s.done++
	return s.done > s.rt.maxSteps
}

// settle alternates attempts and maintenance until the instant has no more work. It returns the active runs with a
// handler here, most urgent first.
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
				"runlanetest: the work at one instant does not end (Options.MaxSteps is %d)",
				rt.maxSteps,
			)
		}
	}
}

// execute makes attempts while any is due, and returns their number.
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

// executeNext makes one attempt, or returns nil if none is due.
func (rt *Runtime) executeNext() *runlane.Run {
	rt.t.Helper()
	return rt.attempt(func(ctx context.Context) (*core.DeliveryResult, error) {
		return rt.ExecuteNext(ctx, &rt.delivery)
	}).Run
}

// hiddenFrom is how many runs ExecuteNext examines: with more runs of other tasks it may not find a due run.
const hiddenFrom = 200

// executeHidden makes an attempt of a due run that ExecuteNext did not find, and reports whether there was one.
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

func (rt *Runtime) releasedFor(id runlane.RunID) (reason string) {
	rt.t.Helper()
	for _, event := range rt.History(id).Events {
		if released, ok := event.Body.(*runlane.RunReleased); ok {
			reason = released.Reason
		}
	}
	return reason
}

// owned reports whether a run of this status has a worker.
func owned(status runlane.Status) bool {
	return status == runlane.StatusRunning || status == runlane.StatusCancellationRequested
}

// active returns the active runs with a handler here, most urgent first, and the number of others.
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

// nextInstant returns the earliest time after now at which a run is due or checked again, or a schedule fires.
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
			continue // waits without a time limit, for an action of the test
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

// shownTransitions bounds the transitions in a failure.
const shownTransitions = 12

// fail ends the test and describes a run that does not end.
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
