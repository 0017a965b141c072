package crash

import (
	"context"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
)

// changes are made by operators and programs to runs that are there.
func changes() []Scenario {
	plain, line := Play.With(doing("")), Lined.With(doing(""))
	big := Play.With(Act{Name: "a", Do: doReport, Bulk: noise(3000)})

	inLine := operating("requeue a dead letter of a bounded queue", func(p *Process) {
		triggered(line, &runlane.TriggerOptions{Deferred: true})(p)
		p.giveUp(p.argument())
		p.Advance(Between)
	}, nil, Succeed)
	inLine.Act = func(ctx context.Context, p *Process) error {
		return p.Runtime.DeadLetters().Requeue(ctx, p.argument(), nil)
	}
	requeue := func(ctx context.Context, p *Process) error {
		_, err := p.Runtime.DeadLetters().RequeueAll(ctx, everything())
		return err
	}
	inLine.Repeat = func(p *Process) {
		p.Must(requeue(context.Background(), p))
		p.Deliver()
	}

	cancel := operating("cancel a run with a slot", func(p *Process) {
		triggered(line, nil)(p)
		p.Trigger(line, nil)
	}, func(ctx context.Context, p *Process) error {
		_, err := p.Runtime.Runs().Cancel(ctx, p.argument(), nil)
		return err
	}, func(e *End) {
		delete(e.Runs, e.argument()) // a tick may have been faster than the operator who calls again
		Succeed(e)
	})
	cancel.Repeat = SlotIsFree

	prune := operating("prune", func(p *Process) {
		p.Gone[p.Trigger(big, keyed())] = true
		p.Deliver()
		p.Advance(time.Hour)
	}, func(ctx context.Context, p *Process) error {
		_, err := p.Runtime.Runs().Prune(ctx, &core.PruneOptions{OlderThan: time.Minute, ReleaseOwners: true})
		return err
	}, func(e *End) {
		if len(e.Runs) > 0 {
			e.Fault("%d runs are left", len(e.Runs))
		}
	})

	reset := operating("reset a key", func(p *Process) {
		p.Trigger(big, keyed())
		p.Deliver()
	}, func(ctx context.Context, p *Process) error {
		return p.Runtime.IdempotencyKeys().Reset(ctx, "play", "order")
	}, succeeded(2))
	reset.Repeat = func(p *Process) {
		err := reset.Act(context.Background(), p)
		if err != nil && runlane.CodeOf(err) != runlane.ErrRunNotFound { // that is what the first call did
			p.Must(err)
		}
		p.fresh(big, keyed())
	}

	return []Scenario{
		operating("requeue a dead letter", func(p *Process) {
			p.giveUp(p.Trigger(plain, &runlane.TriggerOptions{Deferred: true}))
		}, requeue, Succeed),
		inLine, cancel, prune, reset,
		operating("cancel all", func(p *Process) {
			for range 2 {
				p.Trigger(plain, &runlane.TriggerOptions{Delay: time.Hour})
			}
		}, func(ctx context.Context, p *Process) error {
			_, err := p.Runtime.Runs().CancelAll(ctx, everything())
			return err
		}, All(runlane.StatusCancelled, 2)),
		repeating("rerun all", "", runlane.StatusSucceeded,
			func(ctx context.Context, runs *core.Runs, id runlane.RunID) error {
				_, err := runs.Rerun(ctx, id, nil)
				return err
			}, (*core.Runs).RerunAll),
		repeating("retry all", doRefuse, runlane.StatusFailed,
			func(ctx context.Context, runs *core.Runs, id runlane.RunID) error {
				_, err := runs.Retry(ctx, id, nil)
				return err
			}, (*core.Runs).RetryAll),
	}
}

// repeating has two finished runs: the first is repeated alone, and then all are. The caller calls again for those two and
// no more, as the repetitions have finished by then and could be repeated too.
func repeating(
	name, do string, end runlane.Status, one func(context.Context, *core.Runs, runlane.RunID) error,
	all func(*core.Runs, context.Context, *core.BulkOptions) (*core.BulkResult, error),
) Scenario {
	both := []string{"first", "second"}
	return Scenario{
		Name: name,
		Prepare: func(p *Process) {
			for _, argument := range both {
				p.Arguments[argument] = string(p.Trigger(Play.With(doing(do)), nil))
			}
			p.Deliver()
		},
		Act: func(ctx context.Context, p *Process) error {
			if err := one(ctx, p.Runtime.Runs(), runlane.RunID(p.Arguments["first"])); err != nil {
				return err
			}
			_, err := all(p.Runtime.Runs(), ctx, &core.BulkOptions{RunFilter: core.RunFilter{TaskID: "play"}})
			return err
		},
		Repeat: func(p *Process) {
			for _, argument := range both {
				p.Must(one(context.Background(), p.Runtime.Runs(), runlane.RunID(p.Arguments[argument])))
			}
			p.Deliver()
		},
		Judge: func(e *End) {
			All(end, 0)(e)
			made := map[runlane.RunID]int{}
			for _, run := range e.Runs {
				made[run.Source.RunID]++
			}
			for _, argument := range both {
				if n := made[runlane.RunID(e.Arguments[argument])]; n != 1 {
					e.Fault("the %s run was repeated %d times", argument, n)
				}
			}
		},
	}
}
