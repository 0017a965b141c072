package core

import (
	"context"
	"errors"
	"fmt"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// In an ordered queue a wakeup has a place in its group, and those behind it come when it is acknowledged. So no wakeup
// is acknowledged whose run may be executing, and one whose attempt was cut off keeps its place. A run that waits gives
// its place up, and comes back at the end (docs/internals/design.md, Ordered queues).

// ErrOwned is in the chain of the error with which [Runtime.ExecuteDelivery] hands a wakeup of an ordered queue
// back because a lease on its run stands, or was lost by the attempt, because the run was asked to
// stop and has not ended, or because a shutdown left its handler behind, which may still work. Nothing more was
// written. Let it come again after a delay: the wakeups behind it wait until the run has ended, or waits.
var ErrOwned = errors.New("runlane: the run is owned, and its queue is ordered")

// ErrOrdered is in the chain of the error with which [Runtime.ExecuteNext], [Runtime.RunNow] and [Runtime.Work] where
// it polls, as with WorkOptions.Drain, refuse an ordered queue: the storage does not know the order of
// wakeups, so runs of one key would execute beside each other.
var ErrOrdered = errors.New("runlane: the queue is ordered")

// errReleased is of a wakeup whose attempt was ended by a shutdown, and whose run waits for no other wakeup.
var errReleased = errors.New("runlane: released by a shutdown")

func (rt *Runtime) ordered(queue runlane.QueueName) bool {
	return rt.lane.Transport.Ordered(queue)
}

// holdsPlace refuses to acknowledge a wakeup whose run is owned, in an ordered queue. A run that was asked to stop is
// owned until it has ended, whatever its lease says: its owner may be suspended, and extend the lease when it goes on.
// One whose handler a shutdown left behind is owned until it is due: until its lease would have ended.
func (d *delivery) holdsPlace(ctx context.Context, run *runlane.Run, j judgement) error {
	switch {
	case !d.byWakeup, d.wakeup.Queue != "" && d.wakeup.Queue != run.Queue, !d.rt.ordered(run.Queue):
		return nil
	case j.ignored == IgnoredLeased, j.ignored == IgnoredCancellation:
		return owned(run.ID)
	case j.ignored != IgnoredNotDue, run.Status != runlane.StatusReleased:
		return nil
	}
	if left, err := d.rt.leftBehind(ctx, run); err != nil || !left {
		return err
	}
	return owned(run.ID)
}

// leftBehind reports a released run that a shutdown released: its last event says so, and that it is not due yet says
// that its handler did not return.
func (rt *Runtime) leftBehind(ctx context.Context, run *runlane.Run) (bool, error) {
	page, err := rt.storage().ListRunEvents(ctx, &lane.EventQuery{
		PageQuery: lane.PageQuery{Environment: rt.environment, Limit: 1}, RunID: run.ID, Descending: true,
	})
	if err != nil || len(page.Items) == 0 {
		return false, err
	}
	released, is := page.Items[0].Event.Body.(*runlane.RunReleased)
	return is && released.Reason == reasonShutdown, nil
}

// comesAgain hands the wakeup of an attempt back after which its run is not settled: where no other wakeup was sent for
// the rest, and where another worker may execute the run by now.
func (d *delivery) comesAgain(x *execution, result *DeliveryResult) error {
	switch {
	case !d.byWakeup:
		return nil
	case result.Ignored == IgnoredAbandoned && d.rt.ordered(x.started.Queue):
		return owned(x.started.ID)
	case !x.stopped || result.Run.Status != runlane.StatusReleased || d.rt.canDelay(x.started.Queue, 0):
		return nil
	case x.cut:
		return d.noTime(0)
	}
	return &runlane.Error{
		Code:      runlane.ErrOperationCancelled,
		Message:   "the attempt was ended by a shutdown, and its run is released",
		RunID:     x.started.ID,
		Hint:      "hand the wakeup back: it keeps its place before those behind it",
		Retryable: true,
		Cause:     errReleased,
	}
}

func owned(id runlane.RunID) error {
	return &runlane.Error{
		Code:      runlane.ErrStorageConflict,
		Conflict:  runlane.ConflictLeaseOwnership,
		Message:   "another worker owns the run, and its queue is ordered",
		RunID:     id,
		Hint:      "hand the wakeup back with a delay: those behind it wait for the run",
		Retryable: true,
		Cause:     ErrOwned,
	}
}

// inAnyOrder refuses ordered queues to those who ask the storage for runs.
func (rt *Runtime) inAnyOrder(what string, queues ...runlane.QueueName) error {
	for _, name := range queues {
		if rt.ordered(name) {
			return &runlane.Error{
				Code:    runlane.ErrConfigurationInvalid,
				Message: fmt.Sprintf("%s waits for no wakeups, and queue %q is ordered by them", what, name),
				Hint:    "let a worker receive, or name other queues",
				Cause:   ErrOrdered,
			}
		}
	}
	return nil
}
