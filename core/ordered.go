package core

import (
	"context"
	"errors"
	"fmt"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// In an ordered queue the acknowledgement of a wakeup lets the next one of its group come. Never acknowledge a wakeup
// while its run may still execute. The wakeup of an interrupted attempt keeps its place. A run that waits gives up its
// place and comes back at the end (docs/internals/design.md, Ordered queues).

// ErrOwned: another worker may still execute the run, and its queue is ordered. [Runtime.ExecuteDelivery] returns it in
// its error's chain if a lease on the run stands, if the attempt lost its lease, if the run was asked to stop and has
// not ended, or if a shutdown left its handler running. No further write was made. Redeliver the wakeup later: the
// wakeups behind it wait until the run has ended or waits.
var ErrOwned = errors.New("runlane: the run is owned, and its queue is ordered")

// ErrOrdered: the queue is ordered, and only wakeups have the order. [Runtime.ExecuteNext], [Runtime.RunNow] and a
// polling [Runtime.Work], such as with WorkOptions.Drain, return it in their error's chain: they ask the storage, so
// runs of one key would execute at the same time.
var ErrOrdered = errors.New("runlane: the queue is ordered")

// errReleased marks the wakeup of an attempt that a shutdown ended, if no other wakeup follows for its run.
var errReleased = errors.New("runlane: released by a shutdown")

func (rt *Runtime) ordered(queue runlane.QueueName) bool {
	return rt.lane.Transport.Ordered(queue)
}

// redeliverIfOwned refuses to acknowledge a wakeup of an ordered queue while its run is owned. A run that was asked to
// stop is owned until it has ended, even with an expired lease: its paused owner may go on and extend it. A run
// released with its handler still running is owned until it is due, when its lease would have ended.
func (d *delivery) redeliverIfOwned(ctx context.Context, run *runlane.Run, j judgement) error {
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

// leftBehind reports whether a shutdown released the run. If the run is not due yet, its handler had not returned.
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

// redeliverIfUnsettled hands the wakeup back if its run is not settled: no other wakeup was sent for the rest, or
// another worker may execute the run.
func (d *delivery) redeliverIfUnsettled(x *execution, result *DeliveryResult) error {
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
		Hint:      "redeliver the wakeup: it keeps its place in the queue",
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
		Hint:      "redeliver the wakeup after a delay: the next ones wait for this run",
		Retryable: true,
		Cause:     ErrOwned,
	}
}

// refuseOrdered refuses ordered queues to callers that take runs from the storage.
func (rt *Runtime) refuseOrdered(what string, queues ...runlane.QueueName) error {
	for _, name := range queues {
		if rt.ordered(name) {
			return &runlane.Error{
				Code:    runlane.ErrConfigurationInvalid,
				Message: fmt.Sprintf("%s reads the storage, and only wakeups have the order of queue %q", what, name),
				Hint:    "use a worker that receives wakeups, or name other queues",
				Cause:   ErrOrdered,
			}
		}
	}
	return nil
}
