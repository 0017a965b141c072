package sqlitelane_test

import (
	"context"
	"slices"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
)

// crashScenario is one thing that a process does until it dies.
type crashScenario struct {
	// options of both processes. nil: two tasks.
	options func(*core.Options)
	// prepare is done by the process that takes over later.
	prepare func(s *site)
	// act is done by the process that dies.
	act func(ctx context.Context, s *site) error
	// repeat is done after two ticks, by the caller of the process that died, which got no answer.
	repeat func(s *site)
	// atOnce is how many attempts the process that dies may be in the middle of. 0 means as many as a worker has.
	atOnce int
	// judge finds faults beside those that every file may have.
	judge func(s *site, runs map[runlane.RunID]*runlane.Run)
}

// ends wants every run to have ended so. Those with a count want so many.
func ends(status runlane.Status, count ...int) func(*site, map[runlane.RunID]*runlane.Run) {
	return func(s *site, runs map[runlane.RunID]*runlane.Run) {
		for id, run := range runs {
			if run.Status != status {
				s.fault("%s is %s, not %s", id, run.Status, status)
			}
		}
		if len(count) > 0 && len(runs) != count[0] {
			s.fault("there are %d runs, not %d", len(runs), count[0])
		}
	}
}

var succeed = ends(runlane.StatusSucceeded)

// inOrder wants every run to have succeeded, and none to have begun before those that were triggered earlier had ended.
func inOrder(s *site, runs map[runlane.RunID]*runlane.Run) {
	succeed(s, runs)
	order := s.effects()
	place := func(e effect) int {
		if at := slices.Index(s.runs, e.run); at >= 0 {
			return at
		}
		return len(s.runs) // its trigger did not return
	}
	for n := 1; n < len(order); n++ {
		if place(order[n]) < place(order[n-1]) {
			s.fault("not in the order of their triggers: %v, triggered %v", order, s.runs)
		}
	}
}

// crashScenarios by name.
func crashScenarios() map[string]crashScenario {
	all := map[string]crashScenario{}
	for _, some := range []map[string]crashScenario{triggering(), delivering(), ticking(), scheduling(), operating(), moving(), waits()} {
		for name, c := range some {
			all[name] = c
		}
	}
	return all
}

func triggering() map[string]crashScenario {
	trigger := func(call runlane.Call, o *runlane.TriggerOptions) func(context.Context, *site) error {
		return func(_ context.Context, s *site) error {
			s.trigger(call, o)
			return nil
		}
	}
	plain, line := play.With(act{}), lined.With(act{})
	keyed := func() *runlane.TriggerOptions {
		return &runlane.TriggerOptions{IdempotencyKey: "order", SingletonKey: "customer"}
	}
	big := play.With(act{Bulk: noise(3000)})
	return map[string]crashScenario{
		"trigger":          {act: trigger(plain, nil), judge: succeed},
		"trigger delayed":  {act: trigger(plain, &runlane.TriggerOptions{Delay: 30 * time.Second}), judge: succeed},
		"trigger deferred": {act: trigger(plain, &runlane.TriggerOptions{Deferred: true}), judge: succeed},
		"trigger with keys": {act: trigger(big, keyed()), judge: ends(runlane.StatusSucceeded, 2), repeat: func(s *site) {
			s.trigger(big, keyed())
			s.deliver()
			s.fresh(plain, &runlane.TriggerOptions{SingletonKey: "customer"})
		}},
		"trigger with a slot": {act: trigger(line, nil), judge: succeed, repeat: slotIsFree},
		"trigger on a full queue": {
			prepare: func(s *site) { s.trigger(line, nil) },
			act:     trigger(line, nil), judge: succeed, repeat: slotIsFree,
		},
		"trigger a batch": {judge: succeed, repeat: slotIsFree, act: func(ctx context.Context, s *site) error {
			results, err := s.rt.TriggerBatch(ctx, []core.BatchItem{{Call: plain}, {Call: line}, {Call: line}, {Call: plain}})
			for _, r := range results {
				if r.Err == nil {
					s.promise(r.Result.Run.ID)
				}
			}
			return err
		}},
		"trigger in order": {judge: inOrder, act: func(_ context.Context, s *site) error {
			for range 3 {
				s.trigger(queued.With(act{}), nil)
			}
			return nil
		}},
		"run now": {judge: succeed, act: func(ctx context.Context, s *site) error {
			result, err := s.rt.RunNow(ctx, plain, nil)
			if err == nil {
				s.promise(result.Run.ID)
			}
			return err
		}},
	}
}

// unordered are the queues whose runs can be taken from the storage.
var unordered = []runlane.QueueName{runlane.DefaultQueue.Name, narrow.Name}

// delivered is a worker until no wakeup can be taken.
func delivered(ctx context.Context, s *site) error { return s.workUntil(ctx, s.idle) }

// prepared triggers runs.
func prepared(calls ...runlane.Call) func(*site) {
	return func(s *site) {
		for _, call := range calls {
			s.trigger(call, nil)
		}
	}
}

func delivering() map[string]crashScenario {
	plain, line := play.With(act{}), lined.With(act{})
	fails := func(o *core.Options) { o.MaxAbandoned = 1 }
	one := func(do string, judge func(*site, map[runlane.RunID]*runlane.Run)) crashScenario {
		return crashScenario{prepare: prepared(play.With(act{Do: do})), act: delivered, judge: judge}
	}
	return map[string]crashScenario{
		"delivery":                   one("", succeed),
		"delivery with an output":    one(report, succeed),
		"delivery that is retried":   one(fail, succeed),
		"delivery that fails":        one(refuse, ends(runlane.StatusFailed)),
		"delivery that triggers":     one(follow, ends(runlane.StatusSucceeded, 2)),
		"delivery that is cancelled": one(cancel, ends(runlane.StatusCancelled)),
		"delivery with a successor": {
			prepare: prepared(line, line), act: delivered, judge: succeed, repeat: slotIsFree,
		},
		"delivery of an abandoned run": {prepare: func(s *site) {
			s.trigger(plain, nil)
			s.abandon()
			s.trigger(plain, nil)
		}, act: delivered, judge: succeed},
		"delivery of a run that was abandoned too often": {options: fails, prepare: func(s *site) {
			s.trigger(plain, nil)
			s.abandon()
		}, act: delivered, judge: ends(runlane.StatusFailed)},
		"delivery in order": {
			prepare: prepared(queued.With(act{}), queued.With(act{}), queued.With(act{})), act: delivered, judge: inOrder,
		},
		"delivery in order that is retried": {
			prepare: prepared(queued.With(act{Do: fail}), queued.With(act{})), act: delivered, judge: succeed,
		},
		"execute next": {prepare: prepared(plain), judge: succeed, act: func(ctx context.Context, s *site) error {
			_, err := s.rt.ExecuteNext(ctx, &core.DeliveryOptions{Queues: unordered})
			return err
		}},
		"drain": {prepare: prepared(line, line, plain), judge: succeed, repeat: slotIsFree, act: func(ctx context.Context, s *site) error {
			return s.rt.Work(ctx, &core.WorkOptions{Drain: true, NoTick: true, Concurrency: 1, Queues: unordered})
		}},
	}
}

func ticking() map[string]crashScenario {
	plain, line := play.With(act{}), lined.With(act{})
	tick := func(ctx context.Context, s *site) error { _, err := s.rt.Tick(ctx, nil); return err }
	after := func(wait time.Duration, do func(*site)) crashScenario {
		return crashScenario{act: tick, judge: succeed, prepare: func(s *site) {
			s.tick() // for the catalog of tasks
			do(s)
			s.advance(wait)
		}}
	}
	abandoned := after(time.Minute, func(s *site) {
		s.trigger(plain, nil)
		s.abandon()
		s.must(s.storage.Lose())
	})
	failing := abandoned
	failing.options, failing.judge = func(o *core.Options) { o.MaxAbandoned = 1 }, ends(runlane.StatusFailed)
	full := after(130*time.Second, func(s *site) {
		s.trigger(line, nil)
		s.trigger(line, nil)
		s.must(s.storage.Lose())
	})
	full.repeat = slotIsFree
	return map[string]crashScenario{
		"tick, the first":                    {act: tick, judge: succeed},
		"tick, an abandoned run":             abandoned,
		"tick, a run abandoned too often":    failing,
		"tick, two runs of a full queue":     full,
		"tick, a wakeup that was never sent": after(130*time.Second, func(s *site) { s.trigger(plain, &runlane.TriggerOptions{Deferred: true}) }),
		"tick, a long wait that ends soon":   after(19*time.Minute+30*time.Second, func(s *site) { s.trigger(plain, &runlane.TriggerOptions{Delay: 20 * time.Minute}) }),
		"tick, a lost wakeup": after(11*time.Minute, func(s *site) {
			s.trigger(plain, nil)
			s.must(s.storage.Lose())
		}),
		"tick, a retry that is due": after(130*time.Second, func(s *site) {
			s.trigger(play.With(act{Do: fail}), nil)
			s.deliver()
			s.must(s.storage.Lose())
		}),
	}
}

func scheduling() map[string]crashScenario {
	with := func(overlap runlane.Overlap) func(*core.Options) {
		return func(o *core.Options) {
			o.Schedules = []runlane.Schedule{{
				ID: "hourly", When: runlane.Every(time.Hour), Call: play.With(act{}), Overlap: overlap,
			}}
		}
	}
	tick := func(ctx context.Context, s *site) error { _, err := s.rt.Tick(ctx, nil); return err }
	fired := func(s *site) {
		s.tick()
		s.advance(time.Hour)
	}
	twice := func(s *site) {
		fired(s)
		s.tick()
		s.must(s.storage.Lose())
		s.advance(time.Hour)
	}
	whatever := func(*site, map[runlane.RunID]*runlane.Run) {}
	return map[string]crashScenario{
		"schedule, registered": {options: with(""), act: tick, judge: whatever},
		"schedule, fired":      {options: with(""), prepare: fired, act: tick, judge: succeed, repeat: oneOccurrenceOneRun},
		"schedule, replacing": {
			options: with(runlane.OverlapReplace), prepare: twice, act: tick, judge: whatever, repeat: oneOccurrenceOneRun,
		},
		"schedule, queueing the latest": {
			options: with(runlane.OverlapQueueLatest), prepare: twice, act: tick, judge: succeed, repeat: oneOccurrenceOneRun,
		},
		"schedule, paused": {options: with(""), prepare: fired, judge: whatever, act: func(ctx context.Context, s *site) error {
			return s.rt.Schedules().Pause(ctx, "hourly", nil)
		}},
		"schedule, triggered": {
			options: with(""), prepare: func(s *site) { s.tick() }, judge: succeed,
			act: func(ctx context.Context, s *site) error {
				run, err := s.rt.Schedules().TriggerNow(ctx, "hourly", nil)
				if err == nil {
					s.promise(run.ID)
				}
				return err
			},
		},
	}
}

// oneOccurrenceOneRun wants a run of each occurrence, and an occurrence of each run.
func oneOccurrenceOneRun(s *site) {
	runs := map[runlane.RunID]bool{}
	for occurrence, err := range s.rt.Schedules().Occurrences(context.Background(), "hourly", false) {
		s.must(err)
		if occurrence.RunID != "" {
			runs[occurrence.RunID] = true
		} else if occurrence.Skipped == "" {
			s.fault("the occurrence of %s is not completed: %+v", occurrence.FireTime, occurrence)
		}
	}
	if made := s.all(); len(made) != len(runs) || len(runs) == 0 {
		s.fault("there are %d runs, and occurrences of %d", len(made), len(runs))
	}
}

func operating() map[string]crashScenario {
	plain, line := play.With(act{}), lined.With(act{})
	everything := &core.BulkOptions{AllRuns: true}
	// repeated is a call that its caller makes again when there was no answer.
	repeated := func(
		prepare func(*site), call func(context.Context, *site) error, judge func(*site, map[runlane.RunID]*runlane.Run),
	) crashScenario {
		return crashScenario{prepare: prepare, act: call, judge: judge, repeat: func(s *site) {
			s.must(call(context.Background(), s))
			s.deliver()
		}}
	}
	argued := func(call runlane.Call) func(*site) {
		return func(s *site) {
			s.Arguments["run"] = string(s.trigger(call, nil))
			s.deliver()
		}
	}
	return map[string]crashScenario{
		"requeue a dead letter": repeated(
			func(s *site) { s.giveUp(s.trigger(plain, &runlane.TriggerOptions{Deferred: true})) },
			func(ctx context.Context, s *site) error {
				_, err := s.rt.DeadLetters().RequeueAll(ctx, everything)
				return err
			},
			succeed),
		"cancel all": repeated(
			func(s *site) {
				for range 2 {
					s.trigger(plain, &runlane.TriggerOptions{Delay: time.Hour})
				}
			},
			func(ctx context.Context, s *site) error { _, err := s.rt.Runs().CancelAll(ctx, everything); return err },
			ends(runlane.StatusCancelled, 2)),
		"cancel a run with a slot": {
			prepare: func(s *site) {
				s.Arguments["run"] = string(s.trigger(line, nil))
				s.trigger(line, nil)
			},
			act: func(ctx context.Context, s *site) error {
				_, err := s.rt.Runs().Cancel(ctx, runlane.RunID(s.Arguments["run"]), nil)
				return err
			},
			judge: func(s *site, runs map[runlane.RunID]*runlane.Run) {
				delete(runs, runlane.RunID(s.Arguments["run"])) // a worker may have been faster
				succeed(s, runs)
			},
			repeat: slotIsFree,
		},
		"rerun": repeated(argued(plain), func(ctx context.Context, s *site) error {
			_, err := s.rt.Runs().Rerun(ctx, runlane.RunID(s.Arguments["run"]), nil)
			return err
		}, ends(runlane.StatusSucceeded, 2)),
		"retry": repeated(argued(play.With(act{Do: refuse})), func(ctx context.Context, s *site) error {
			_, err := s.rt.Runs().Retry(ctx, runlane.RunID(s.Arguments["run"]), nil)
			return err
		}, ends(runlane.StatusFailed, 2)),
		"prune": repeated(func(s *site) {
			s.gone[s.trigger(play.With(act{Do: report, Bulk: noise(3000)}), &runlane.TriggerOptions{IdempotencyKey: "k"})] = true
			s.deliver()
			s.advance(time.Hour)
		}, func(ctx context.Context, s *site) error {
			_, err := s.rt.Runs().Prune(ctx, &core.PruneOptions{OlderThan: time.Minute, ReleaseOwners: true})
			return err
		}, ends(runlane.StatusSucceeded, 0)),
		"reset a key": {
			prepare: func(s *site) {
				s.trigger(plain, &runlane.TriggerOptions{IdempotencyKey: "k"})
				s.deliver()
			},
			act: func(ctx context.Context, s *site) error { return s.rt.IdempotencyKeys().Reset(ctx, "play", "k") },
			repeat: func(s *site) {
				err := s.rt.IdempotencyKeys().Reset(context.Background(), "play", "k")
				if runlane.CodeOf(err) != runlane.ErrRunNotFound { // that is what the first call did
					s.must(err)
				}
				s.fresh(plain, &runlane.TriggerOptions{IdempotencyKey: "k"})
			},
			judge: ends(runlane.StatusSucceeded, 2),
		},
	}
}
