package core

import (
	"context"
	"errors"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

const (
	// dueRunsPage is how many due runs [Runtime.ExecuteNext] reads at a time.
	dueRunsPage = 20
	// nextPages is how many more pages it reads when no run so far could be executed here.
	nextPages = 10
)

// ExecuteNext asks the storage for due work and executes one attempt of what is due first, as [Runtime.ExecuteDelivery]
// does. A result without a run means that nothing is due which could be executed here. It is for programs that decide
// themselves when to work (a cron job, a test); [Runtime.Work] does it repeatedly. Concurrent calls are safe: each run
// goes to one of them.
//
// Runs without a handler here that accepts them, and those that another worker took first, are passed over; of a long list of such runs
// it reads 200. Errors are those of ExecuteDelivery, and runlane.ErrConfigurationInvalid for impossible options, a
// runtime without handlers, and ordered queues ([ErrOrdered]): name the others in DeliveryOptions.Queues.
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
	if err := rt.inAnyOrder("ExecuteNext", queues...); err != nil {
		return nil, err
	}
	return d.next(ctx, queues)
}

// next delivers what the storage says is due, until a run is taken.
func (d *delivery) next(ctx context.Context, queues []runlane.QueueName) (*DeliveryResult, error) {
	rt := d.rt
	q := lane.DueQuery{
		PageQuery: lane.PageQuery{Environment: rt.environment, Limit: dueRunsPage},
		At:        rt.now(),
		Queues:    queues,
		Bounded:   rt.bounded,
	}
	for range nextPages {
		page, err := rt.storage().ListRunnableRuns(ctx, &q)
		if err != nil {
			return nil, err
		}
		for i := range page.Items {
			ref := &page.Items[i]
			next := *d
			next.wakeup = lane.Wakeup{RunKey: ref.RunKey, Queue: ref.Queue, RequestedAt: rt.now()}
			result, err := next.deliver(ctx)
			switch {
			case errors.Is(err, runlane.ErrTaskNotFound):
			case err != nil:
				return nil, err
			case result.Ignored == "":
				return result, nil
			}
		}
		if q.After = page.Next; q.After == "" {
			break
		}
	}
	return &DeliveryResult{}, nil
}
