package core

import (
	"context"
	"errors"
	"log/slog"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

const (
	// dueRunsPage is how many due runs [Runtime.ExecuteNext] reads at a time.
	dueRunsPage = 20
	// nextPages limits the pages that it reads to find a run that it can execute.
	nextPages = 10
)

// ExecuteNext executes one attempt of the first due run in the storage, like [Runtime.ExecuteDelivery]. A result
// without a run means that no due run can be executed here. It is for programs that choose themselves when to work (a
// cron job, a test); [Runtime.Work] repeats it. Concurrent calls are safe: each run goes to one of them.
//
// It passes over the runs of paused tasks, and over at most 200 that have no handler here, that another worker took first, or that this process
// cannot execute, for example because it cannot read the payload. If it executed no run, it returns the first such
// error; all are logged. Other errors are those of ExecuteDelivery, and runlane.ErrConfigurationInvalid for impossible
// options, a runtime without handlers, and ordered queues ([ErrOrdered]): name the other queues in
// DeliveryOptions.Queues.
func (rt *Runtime) ExecuteNext(ctx context.Context, options *DeliveryOptions) (*DeliveryResult, error) {
	if err := rt.gate.enter(); err != nil {
		return nil, err
	}
	defer rt.gate.leave()
	d := delivery{rt: rt, workerID: rt.workerID, executions: &rt.executions}
	if err := d.apply(options); err != nil {
		return nil, err
	}
	if len(rt.handlers) == 0 {
		return nil, invalidOption("pass them to core.Open", "this runtime has no handlers to work with")
	}
	queues := rt.handlerQueues()
	if options != nil && options.Queues != nil {
		queues = options.Queues
	}
	if err := rt.refuseOrdered("ExecuteNext", queues...); err != nil {
		return nil, err
	}
	return d.next(ctx, queues)
}

func (d *delivery) next(ctx context.Context, queues []runlane.QueueName) (*DeliveryResult, error) {
	rt := d.rt
	q := lane.DueQuery{
		PageQuery: lane.PageQuery{Environment: rt.environment, Limit: dueRunsPage},
		At:        rt.now(),
		Queues:    queues,
		Without:   rt.pausedQueues(ctx),
		Bounded:   rt.bounded,
	}
	var passed error
	for pages := 0; pages < nextPages; {
		page, err := rt.storage().ListRunnableRuns(ctx, &q)
		if err != nil {
			return nil, err
		}
		paused := 0
		for i := range page.Items {
			ref := &page.Items[i]
			next := *d
			next.wakeup = lane.Wakeup{RunKey: ref.RunKey, Queue: ref.Queue, RequestedAt: rt.now()}
			result, err := next.deliver(ctx)
			switch {
			case errors.Is(err, runlane.ErrTaskNotFound):
			case err != nil && concernsOneRun(ctx, err):
				rt.logger.LogAttrs(ctx, slog.LevelWarn, passedOver, untakenAttrs(&next.wakeup, d.workerID, err)...)
				passed = firstError(passed, err)
			case err != nil:
				return nil, err
			case result.Ignored == "":
				return result, nil
			case result.Ignored == IgnoredPaused:
				paused++
			}
		}
		if q.After = page.Next; q.After == "" {
			break
		}
		if paused < len(page.Items) || paused == 0 {
			pages++ // runs of a paused task, however many, do not hide those of others
		}
	}
	if passed != nil {
		return nil, passed
	}
	return &DeliveryResult{}, nil
}

// concernsOneRun reports whether the next run may still be executed.
func concernsOneRun(ctx context.Context, err error) bool {
	return ctx.Err() == nil && !errors.Is(err, runlane.ErrStorageUnavailable) &&
		!errors.Is(err, runlane.ErrOperationCancelled)
}
