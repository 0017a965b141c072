package crashtest

import (
	"context"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
)

// operating is a scenario of one call that may be repeated: a caller that got no answer calls again.
func operating(name string, prepare func(w *world), call func(context.Context, *core.Runtime) error, judge func(a *account)) scenario {
	return scenario{
		name: name, prepare: prepare, judge: judge,
		act: func(ctx context.Context, c *child) error { return call(ctx, c.rt) },
		repeat: func(w *world) {
			w.t.Helper()
			w.must(call(w.t.Context(), w.rt))
			w.deliver()
		},
	}
}

func everything() *core.BulkOptions { return &core.BulkOptions{AllRuns: true} }

func operatorScenarios() []scenario {
	plain, refused, inLine := play.With(act{Name: "a"}), play.With(act{Name: "a", Do: refuse}), lined.With(act{Name: "a"})

	deadLetter := operating("requeue a dead letter",
		func(w *world) { w.giveUp(w.trigger(plain, &runlane.TriggerOptions{Deferred: true})) },
		func(ctx context.Context, rt *core.Runtime) error {
			_, err := rt.DeadLetters().RequeueAll(ctx, everything())
			return err
		}, func(a *account) { a.all(runlane.StatusSucceeded) })

	deadLetterInLine := deadLetter
	deadLetterInLine.name = "requeue a dead letter of a bounded queue"
	deadLetterInLine.prepare = func(w *world) {
		id := w.trigger(inLine, &runlane.TriggerOptions{Deferred: true})
		w.arguments["run"] = string(id)
		w.giveUp(id)
		w.advance(between)
	}
	deadLetterInLine.act = func(ctx context.Context, c *child) error {
		return c.rt.DeadLetters().Requeue(ctx, runlane.RunID(c.Arguments["run"]), nil)
	}

	cancelInLine := operating("cancel a run with a slot",
		func(w *world) {
			w.arguments["run"] = string(w.trigger(inLine, nil))
			w.trigger(inLine, nil)
		}, nil, func(a *account) {
			delete(a.runs, runlane.RunID(a.w.arguments["run"])) // a tick may have been faster than the operator who calls again
			a.all(runlane.StatusSucceeded)
		})
	cancelInLine.act = func(ctx context.Context, c *child) error {
		_, err := c.rt.Runs().Cancel(ctx, runlane.RunID(c.Arguments["run"]), nil)
		return err
	}
	cancelInLine.repeat = slotIsFree

	return []scenario{
		deadLetter, deadLetterInLine, cancelInLine,
		operating("cancel all", func(w *world) {
			for range 2 {
				w.trigger(plain, &runlane.TriggerOptions{Delay: time.Hour})
			}
		}, func(ctx context.Context, rt *core.Runtime) error {
			_, err := rt.Runs().CancelAll(ctx, everything())
			return err
		}, func(a *account) { a.all(runlane.StatusCancelled) }),
		repeating("rerun all", plain, runlane.StatusSucceeded,
			func(ctx context.Context, runs *core.Runs, id runlane.RunID) error {
				_, err := runs.Rerun(ctx, id, nil)
				return err
			},
			func(ctx context.Context, runs *core.Runs) (*core.BulkResult, error) {
				return runs.RerunAll(ctx, &core.BulkOptions{RunFilter: core.RunFilter{TaskID: "play"}})
			}),
		repeating("retry all", refused, runlane.StatusFailed,
			func(ctx context.Context, runs *core.Runs, id runlane.RunID) error {
				_, err := runs.Retry(ctx, id, nil)
				return err
			},
			func(ctx context.Context, runs *core.Runs) (*core.BulkResult, error) {
				return runs.RetryAll(ctx, &core.BulkOptions{RunFilter: core.RunFilter{TaskID: "play"}})
			}),
	}
}

// repeating has two finished runs: the first is repeated alone, and then all are. The caller calls again for those two and no more, as
// the repetitions have finished by then and could be repeated too.
func repeating(
	name string, call runlane.Call, end runlane.Status, one func(context.Context, *core.Runs, runlane.RunID) error,
	all func(context.Context, *core.Runs) (*core.BulkResult, error),
) scenario {
	return scenario{
		name: name,
		prepare: func(w *world) {
			ids := w.finish(call, call)
			w.arguments["first"], w.arguments["second"] = string(ids[0]), string(ids[1])
		},
		act: func(ctx context.Context, c *child) error {
			if err := one(ctx, c.rt.Runs(), runlane.RunID(c.Arguments["first"])); err != nil {
				return err
			}
			_, err := all(ctx, c.rt.Runs())
			return err
		},
		repeat: func(w *world) {
			for _, argument := range []string{"first", "second"} {
				w.must(one(w.t.Context(), w.rt.Runs(), runlane.RunID(w.arguments[argument])))
			}
			w.deliver()
		},
		judge: func(a *account) {
			a.all(end)
			made := map[runlane.RunID]int{}
			for _, run := range a.runs {
				made[run.Source.RunID]++
			}
			for _, argument := range []string{"first", "second"} {
				if n := made[runlane.RunID(a.w.arguments[argument])]; n != 1 {
					a.fault("the %s run was repeated %d times", argument, n)
				}
			}
		},
	}
}

func pruneScenarios() []scenario {
	call := play.With(act{Name: "a", Do: report, Bulk: noise(3000)})
	prune := operating("prune",
		func(w *world) {
			w.gone[w.trigger(call, keyed())] = true
			w.deliver()
			w.advance(time.Hour)
		}, func(ctx context.Context, rt *core.Runtime) error {
			_, err := rt.Runs().Prune(ctx, &core.PruneOptions{OlderThan: time.Minute, ReleaseOwners: true})
			return err
		}, func(a *account) {
			a.noItems("run:")
			a.noItems("idem:")
			a.noItems("single:")
		})

	reset := operating("reset a key",
		func(w *world) {
			w.trigger(call, keyed())
			w.deliver()
		}, nil, func(a *account) {
			a.all(runlane.StatusSucceeded)
			a.count(2)
		})
	reset.act = func(ctx context.Context, c *child) error { return c.rt.IdempotencyKeys().Reset(ctx, "play", "order") }
	reset.repeat = func(w *world) {
		err := w.rt.IdempotencyKeys().Reset(w.t.Context(), "play", "order")
		if err != nil && runlane.CodeOf(err) != runlane.ErrRunNotFound { // that is what the first call did
			w.must(err)
		}
		w.fresh(call, keyed())
	}
	return []scenario{prune, reset}
}
