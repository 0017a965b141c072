package core

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

const (
	// leaseAfterDeadline is how long a lease lasts after the process is stopped.
	leaseAfterDeadline = 5 * time.Second
	// minCommitReserve and commitReserveShare keep time free before a deadline, for the outcome.
	minCommitReserve   = 2 * time.Second
	commitReserveShare = 20 // one part in
	// minHandlerTime is the time that a task without a timeout needs to begin.
	minHandlerTime = 5 * time.Second
	// followerShare: a task without a timeout may begin behind others of its group if they used at most this part of the
	// invocation.
	followerShare = 10 // one part in
	// clockDifference is how far clocks may differ, in whole seconds, so that an invocation seems shorter.
	clockDifference = 3 * time.Second
	// beginTime is what an invocation needs before its first handler: its event, the run, the claim.
	beginTime = time.Second
)

// LongestTimeout is the longest task timeout that fits into an invocation: its length without the time for the outcome
// (the larger of 2 s and 5 %) and without one second to begin in.
func LongestTimeout(invocation time.Duration) time.Duration {
	return max(invocation-commitReserve(invocation)-beginTime, 0)
}

func commitReserve(left time.Duration) time.Duration {
	return max(minCommitReserve, left/commitReserveShare)
}

// CheckInvocation returns runlane.ErrConfigurationInvalid if this runtime has tasks with a timeout beyond
// [LongestTimeout] of an invocation. The error names each with both numbers. Programs that execute in invocations call
// it once they know their length, because [Runtime.ExecuteDelivery] hands wakeups of such tasks back. With bindings of
// the transport it checks only tasks of these: other functions may have longer invocations.
func (rt *Runtime) CheckInvocation(invocation time.Duration, bindings ...runlane.QueueName) error {
	var faults []error
	for _, d := range rt.definitions {
		binding, _ := lane.CarrierOf(rt.lane.Transport, d.Queue.Name)
		if len(bindings) > 0 && !slices.Contains(bindings, binding) {
			continue
		}
		if err := checkTimeout(d, invocation); err != nil {
			faults = append(faults, err)
		}
	}
	if len(faults) < 2 {
		return firstError(faults...)
	}
	return &runlane.Error{
		Code:    runlane.ErrConfigurationInvalid,
		Message: "tasks cannot execute here: " + joinMessages(faults),
		Hint:    hintOf(faults[0]),
		Cause:   errors.Join(faults...),
	}
}

func checkTimeout(task *runlane.Definition, invocation time.Duration) error {
	longest := LongestTimeout(invocation)
	if handlerNeed(task) <= longest {
		return nil
	}
	what := "has a timeout of " + runlane.FormatDuration(task.Timeout)
	if task.Timeout == 0 {
		what = "needs " + runlane.FormatDuration(minHandlerTime)
	}
	message := fmt.Sprintf("task %q %s, and an invocation of %s has %s for a handler",
		task.ID, what, runlane.FormatDuration(invocation), runlane.FormatDuration(longest.Truncate(time.Millisecond)))
	return &runlane.Error{
		Code: runlane.ErrConfigurationInvalid, Message: message,
		Hint: "shorten the task's timeout, lengthen the function's (BridgeTimeout of the template, or the added " +
			"function's parameter), or execute it in a long-lived worker",
	}
}

func handlerNeed(task *runlane.Definition) time.Duration {
	if task.Timeout == 0 {
		return minHandlerTime
	}
	return task.Timeout
}

type rules struct {
	lease      time.Duration // renewed; 0 with a deadline
	deadline   time.Time     // when the process is stopped; zero: never
	reserve    time.Duration // kept free before the deadline
	invocation time.Duration // from begin to deadline; 0: not known
	follows    bool          // others of its group have used some of the time
}

// newRules returns the rules of a renewed lease, or of a fixed one with a deadline.
func newRules(o *DeliveryOptions, lease time.Duration, now func() time.Time) rules {
	if o.Deadline.IsZero() {
		return rules{lease: cmp.Or(lease, runlane.DefaultLease)}
	}
	r := rules{deadline: o.Deadline, reserve: commitReserve(o.Deadline.Sub(now())), follows: o.Follows}
	if !o.Began.IsZero() {
		r.invocation = max(o.Deadline.Sub(o.Began), 0)
	}
	return r
}

// shortLease reports a worker's or client's lease that may end while ticks still wait for its wakeup. Then only the
// lease counts: there may be no redelivery.
func (r rules) shortLease() bool { return !r.bounded() && r.lease < queuedPatience }

func (r rules) bounded() bool { return !r.deadline.IsZero() }

// handlerTime is the time left for the handler; bounded is false if only its timeout limits it.
func (r rules) handlerTime(now func() time.Time) (left time.Duration, bounded bool) {
	if !r.bounded() {
		return 0, false
	}
	return r.deadline.Sub(now()) - r.reserve, true
}

// nearlyWhole is the handler's time in an invocation that others have hardly used.
func (r rules) nearlyWhole() time.Duration {
	whole := r.invocation - commitReserve(r.invocation)
	return whole - whole/followerShare
}

// need is the time that a task needs to begin. A task without a timeout may use all the time, so behind others of its
// group it begins only if nearly all is left.
func (r rules) need(task *runlane.Definition) time.Duration {
	if task.Timeout == 0 && r.follows && r.invocation > 0 {
		return max(minHandlerTime, r.nearlyWhole())
	}
	return handlerNeed(task)
}

// due is how much time an attempt must have had before it may fail for lack of time. 0 if not known.
func (r rules) due(task *runlane.Definition) time.Duration {
	switch {
	case r.invocation == 0:
		return 0
	case task.Timeout > 0:
		return task.Timeout
	default:
		return r.nearlyWhole()
	}
}

// unwind is how long a handler may take to return once its context has ended. Before a deadline it is half of the time
// left; the outcome has the other half.
func (r rules) unwind() time.Duration {
	if r.bounded() {
		return r.reserve / 2
	}
	return unwindTime
}

func (r rules) leaseEnd(at time.Time) time.Time {
	if r.bounded() {
		return ceilMillis(r.deadline.Add(leaseAfterDeadline))
	}
	return at.Add(r.lease)
}

// checkTimeLeft checks that the task may begin in the time left here.
func (d *delivery) checkTimeLeft(ctx context.Context, run *runlane.Run, task *runlane.Definition, r rules) error {
	left, bounded := r.handlerTime(d.rt.world.Now)
	if !bounded || left >= r.need(task) {
		return nil
	}
	if r.invocation > 0 {
		measured := r.invocation.Round(time.Second)
		if err := checkTimeout(task, measured); err != nil && checkTimeout(task, measured+clockDifference) != nil {
			e, _ := errors.AsType[*runlane.Error](err)
			e.RunID = run.ID
			d.rt.logger.LogAttrs(
				ctx,
				slog.LevelError,
				"task fits into no invocation here",
				append(runAttrs(run), errorAttrs(err)...)...,
			)
			return err
		}
	}
	return d.noTime(left)
}

func (d *delivery) noTime(left time.Duration) error {
	return &runlane.Error{
		Code:      runlane.ErrOperationCancelled,
		Message:   fmt.Sprintf("too little time left to begin: %s", left.Round(time.Millisecond)),
		RunID:     d.wakeup.RunID,
		Hint:      "hand the wakeup back, without a delay if earlier wakeups used the time",
		Retryable: true,
		Cause:     ErrNoTime,
	}
}
