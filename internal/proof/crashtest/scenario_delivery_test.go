package crashtest

import (
	"context"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
)

// delivering is a scenario of one message. Whatever the process dies of, its run succeeds in the end.
func delivering(name string, call runlane.Call) scenario {
	return scenario{
		name:    name,
		prepare: func(w *world) { w.trigger(call, nil) },
		act:     invoke,
		judge: func(a *account) {
			a.all(runlane.StatusSucceeded)
			a.tries(3)
		},
	}
}

func deliveryScenarios() []scenario {
	refusing := delivering("delivery that fails", play.With(act{Name: "a", Do: refuse}))
	refusing.judge = func(a *account) { a.all(runlane.StatusFailed) }

	following := delivering("delivery that triggers", play.With(act{Name: "a", Do: follow}))
	following.judge = func(a *account) {
		a.all(runlane.StatusSucceeded)
		a.count(2)
	}

	cancelling := delivering("delivery that is cancelled", play.With(act{Name: "a", Do: cancels}))
	cancelling.judge = func(a *account) { a.all(runlane.StatusCancelled) }

	succession := delivering("delivery with a successor", lined.With(act{Name: "a"}))
	succession.prepare = func(w *world) {
		w.trigger(lined.With(act{Name: "a"}), nil)
		w.trigger(lined.With(act{Name: "b"}), nil)
	}
	succession.options, succession.repeat = hooked, slotIsFree

	takeOver := delivering("delivery of an abandoned run", play.With(act{Name: "a"}))
	takeOver.prepare = func(w *world) {
		w.abandon(w.trigger(play.With(act{Name: "a"}), nil))
		w.advance(5 * time.Second)
	}

	suspect := delivering("delivery of an abandoned run among others", play.With(act{Name: "a"}))
	suspect.prepare = func(w *world) {
		w.abandon(w.trigger(play.With(act{Name: "a"}), nil))
		w.advance(5 * time.Second)
		w.trigger(play.With(act{Name: "b"}), nil)
	}

	last := delivering("delivery of a run that was abandoned too often", play.With(act{Name: "a"}))
	last.options, last.prepare = fails, takeOver.prepare
	last.judge = func(a *account) { a.all(runlane.StatusFailed) }

	early := delivering("delivery before its time", play.With(act{Name: "a"}))
	early.prepare = func(w *world) {
		w.trigger(play.With(act{Name: "a"}), &runlane.TriggerOptions{Delay: time.Minute})
		w.reveal()
	}

	foreign := delivering("delivery without a handler", play.With(act{Name: "a"}))
	foreign.without = true

	slotless := delivering("delivery whose reservation is over", lined.With(act{Name: "a"}))
	slotless.prepare = func(w *world) {
		w.trigger(lined.With(act{Name: "a"}), nil)
		w.advance(between)
	}
	slotless.repeat = slotIsFree

	refusedSlot := delivering("delivery without a free slot", lined.With(act{Name: "a"}))
	refusedSlot.prepare = func(w *world) {
		first := w.trigger(lined.With(act{Name: "a"}), nil)
		w.advance(between)
		w.trigger(lined.With(act{Name: "b"}), nil) // takes the slot
		w.hideAllBut(first)
	}
	refusedSlot.repeat = slotIsFree

	ignoring := delivering("delivery to a handler that ignores its context", timed.With(act{Name: "a", Do: ignore}))

	next := delivering("execute next", play.With(act{Name: "a"}))
	next.act = func(ctx context.Context, c *child) error {
		_, err := c.rt.ExecuteNext(ctx, nil)
		return err
	}

	working := delivering("worker", play.With(act{Name: "a", Do: fail}))
	working.act = func(ctx context.Context, c *child) error {
		return c.work(ctx, &core.WorkOptions{NoTick: true}, func(ctx context.Context) (bool, error) {
			page, err := c.rt.Runs().List(ctx, nil)
			return err == nil && len(page.Items) == 1 && page.Items[0].Status == runlane.StatusRetrying, err
		})
	}

	unknowing := delivering("worker without the handler", play.With(act{Name: "a"}))
	unknowing.options = func(p *program) *core.Options {
		o := p.options()
		if p.dies {
			o.Handlers, o.Queues = o.Handlers[1:], []runlane.Queue{runlane.DefaultQueue}
		}
		return o
	}
	unknowing.act = func(ctx context.Context, c *child) error {
		options := &core.WorkOptions{NoTick: true, Queues: []runlane.QueueName{runlane.DefaultQueue.Name}}
		return c.work(ctx, options, func(context.Context) (bool, error) { return c.trap.saw("ChangeMessageVisibilityBatch"), nil })
	}

	draining := delivering("drain", lined.With(act{Name: "a"}))
	draining.prepare = func(w *world) {
		w.trigger(lined.With(act{Name: "a"}), nil)
		w.trigger(lined.With(act{Name: "b"}), nil)
		w.trigger(play.With(act{Name: "c"}), nil)
	}
	draining.act = func(ctx context.Context, c *child) error {
		return c.rt.Work(ctx, &core.WorkOptions{Drain: true, NoTick: true, Concurrency: 1})
	}
	draining.repeat = slotIsFree

	ticking := delivering("worker that ticks", play.With(act{Name: "a"}))
	ticking.prepare = func(w *world) {
		w.tick()
		w.trigger(play.With(act{Name: "a"}), &runlane.TriggerOptions{Deferred: true})
		w.advance(between)
	}
	ticking.act = func(ctx context.Context, c *child) error {
		return c.work(ctx, nil, func(ctx context.Context) (bool, error) {
			page, err := c.rt.Runs().List(ctx, nil)
			return err == nil && len(page.Items) == 1 && page.Items[0].Status.Terminal(), err
		})
	}

	return []scenario{
		delivering("delivery", play.With(act{Name: "a", Do: report})),
		delivering("delivery that is retried", play.With(act{Name: "a", Do: fail})),
		refusing, following, cancelling, succession, takeOver, suspect, last, early, foreign, slotless, refusedSlot, ignoring, next,
		working, unknowing, draining, ticking,
	}
}
