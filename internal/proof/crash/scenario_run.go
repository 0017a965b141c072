package crash

import (
	"context"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
)

func triggers() []Scenario {
	plain, line := Play.With(doing("")), Lined.With(doing(""))
	big := Play.With(Act{Name: "big", Bulk: noise(3000)})

	simple := Triggering("trigger", plain, nil)
	simple.Options = hooked

	keys := Triggering("trigger with keys", big, keyed())
	keys.Judge, keys.Repeat = succeeded(2), func(p *Process) {
		p.Trigger(big, keyed())
		p.Deliver()
		p.fresh(plain, &runlane.TriggerOptions{SingletonKey: "customer"})
	}

	slot := Triggering("trigger with a slot", line, nil)
	slot.Repeat = SlotIsFree

	full := Triggering("trigger on a full queue", line, nil)
	full.Prepare, full.Judge, full.Repeat = triggered(line, nil), Succeed, SlotIsFree

	ticketed := Triggering("trigger with a ticket", Rated.With(doing("")), nil)
	ticketed.Prepare, ticketed.Judge = triggered(Rated.With(doing("")), nil), Succeed

	return []Scenario{
		simple, keys, slot, full, ticketed,
		Triggering("trigger delayed", plain, &runlane.TriggerOptions{Delay: 30 * time.Second}),
		Triggering("trigger deferred", plain, &runlane.TriggerOptions{Deferred: true}),
		{
			Name: "trigger a batch", Judge: Succeed, Repeat: SlotIsFree,
			Act: func(ctx context.Context, p *Process) error {
				results, err := p.Runtime.TriggerBatch(ctx, []core.BatchItem{
					{Call: plain}, {Call: line}, {Call: line},
					{Call: plain, Options: &runlane.TriggerOptions{Delay: 10 * time.Second}},
				})
				for _, r := range results {
					if r.Result != nil {
						p.Promise(r.Result.Run.ID)
					}
				}
				return err
			},
		},
		{Name: "run now", Judge: Succeed, Act: func(ctx context.Context, p *Process) error {
			result, err := p.Runtime.RunNow(ctx, plain, nil)
			if err == nil {
				p.Promise(result.Run.ID)
			}
			return err
		}},
	}
}

func deliveries() []Scenario {
	plain, line := Play.With(doing("")), Lined.With(doing(""))

	refusing := Delivering("delivery that fails", Play.With(doing(doRefuse)))
	refusing.Judge = All(runlane.StatusFailed, 1)

	following := Delivering("delivery that triggers", Play.With(doing(doFollow)))
	following.Judge = succeeded(2)

	cancelling := Delivering("delivery that is cancelled", Play.With(doing(doCancel)))
	cancelling.Judge = All(runlane.StatusCancelled, 1)

	succession := Delivering("delivery with a successor", line, line)
	succession.Options, succession.Repeat = hooked, SlotIsFree

	abandoned := func(p *Process) {
		p.abandon(p.Trigger(plain, nil))
		p.Advance(5 * time.Second)
	}
	takeOver := Delivering("delivery of an abandoned run")
	takeOver.Prepare = abandoned

	suspect := Delivering("delivery of an abandoned run among others")
	suspect.Prepare = func(p *Process) {
		abandoned(p)
		p.Trigger(plain, nil)
	}

	last := Delivering("delivery of a run that was abandoned too often")
	last.Options, last.Prepare, last.Judge = fails, abandoned, All(runlane.StatusFailed, 1)

	slotless := Delivering("delivery whose reservation is over")
	slotless.Repeat, slotless.Prepare = SlotIsFree, func(p *Process) {
		p.Trigger(line, nil)
		p.Advance(Between)
	}

	paced := Delivering("delivery at a rate", Rated.With(doing("")), Rated.With(doing("")))

	next := Delivering("execute next", plain)
	next.Act = func(ctx context.Context, p *Process) error {
		_, err := p.Runtime.ExecuteNext(ctx, nil)
		return err
	}

	working := Delivering("worker", Play.With(doing(doFail)))
	working.Act = func(ctx context.Context, p *Process) error {
		return p.Work(ctx, &core.WorkOptions{NoTick: true}, pace, is(func(s runlane.Status) bool {
			return s == runlane.StatusRetrying
		}))
	}

	ignoring := Delivering("delivery to a handler that ignores its context", Timed.With(doing(doIgnore)))

	stopping := Delivering("worker that stops before its handler", Play.With(doing(doIgnore)))
	stopping.Act = func(ctx context.Context, p *Process) error {
		return p.Work(ctx, &core.WorkOptions{NoTick: true, Grace: -1}, pace, is(func(s runlane.Status) bool {
			return s == runlane.StatusRunning || s.Terminal()
		}))
	}

	ignoring.Slow, stopping.Slow = true, true

	draining := Delivering("drain", line, line, plain)
	draining.Repeat, draining.Act = SlotIsFree, func(ctx context.Context, p *Process) error {
		return p.Runtime.Work(ctx, &core.WorkOptions{Drain: true, NoTick: true, Concurrency: 1})
	}

	maintaining := Delivering("worker that ticks")
	maintaining.Prepare = func(p *Process) {
		p.Tick()
		p.Trigger(plain, &runlane.TriggerOptions{Deferred: true})
		p.Advance(Between)
	}
	maintaining.Act = func(ctx context.Context, p *Process) error {
		return p.Work(ctx, nil, pace, is(runlane.Status.Terminal))
	}

	return []Scenario{
		Delivering("delivery", plain),
		Delivering("delivery with an output", Play.With(doing(doReport))),
		Delivering("delivery that is retried", Play.With(doing(doFail))),
		refusing, following, cancelling, succession, takeOver, suspect, last, slotless, paced, next, working, ignoring, stopping,
		draining, maintaining,
	}
}

// pace is how often a worker of these scenarios is looked at.
const pace = 50 * time.Millisecond

// is asks whether the only run has a status.
func is(status func(runlane.Status) bool) func(context.Context, *Process) (bool, error) {
	return func(ctx context.Context, p *Process) (bool, error) {
		page, err := p.Runtime.Runs().List(ctx, nil)
		return err == nil && len(page.Items) == 1 && status(page.Items[0].Status), err
	}
}
