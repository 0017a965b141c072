package crashtest

import (
	"context"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
)

// ticking is a scenario of one tick.
func ticking(name string, prepare func(w *world)) scenario {
	return scenario{
		name: name,
		prepare: func(w *world) {
			w.tick() // for the catalog of tasks
			prepare(w)
		},
		act:   tickOnce,
		judge: func(a *account) { a.all(runlane.StatusSucceeded) },
	}
}

func tickScenarios() []scenario {
	simple := play.With(act{Name: "a"})
	inLine := lined.With(act{Name: "a"})

	first := ticking("tick, the first", nil)
	first.prepare = nil

	abandoned := ticking("tick, an abandoned run", func(w *world) {
		w.abandon(w.trigger(simple, nil))
		w.lose()
		w.advance(between)
	})
	failing := ticking("tick, a run abandoned too often", func(w *world) {
		w.abandon(w.trigger(simple, nil))
		w.advance(between)
	})
	failing.options, failing.judge = fails, func(a *account) { a.all(runlane.StatusFailed) }

	failingSlot := ticking("tick, a run with a slot abandoned too often", func(w *world) {
		w.abandon(w.trigger(inLine, nil))
		w.trigger(inLine, nil)
		w.advance(between)
	})
	failingSlot.options, failingSlot.repeat = fails, slotIsFree
	failingSlot.judge = func(a *account) { a.count(3) }

	cancelled := ticking("tick, a cancellation", func(w *world) {
		id := w.trigger(inLine, nil)
		w.trigger(inLine, nil)
		w.abandon(id)
		_, err := w.rt.Runs().Cancel(w.t.Context(), id, nil)
		w.must(err)
		w.arguments["cancelled"] = string(id)
		w.advance(between)
	})
	cancelled.repeat = slotIsFree
	cancelled.judge = func(a *account) {
		id := runlane.RunID(a.w.arguments["cancelled"])
		if run := a.runs[id]; run == nil || run.Status != runlane.StatusCancelled {
			a.fault("%s is not cancelled", id)
		}
		delete(a.runs, id)
		a.all(runlane.StatusSucceeded)
	}

	dispatched := ticking("tick, two runs of a full queue", func(w *world) {
		w.trigger(inLine, nil)
		w.trigger(inLine, nil)
		w.lose()
		w.advance(between)
	})
	dispatched.repeat = slotIsFree

	slotless := ticking("tick, an abandoned run of a bounded queue", func(w *world) {
		w.abandon(w.trigger(inLine, nil))
		w.lose()
		w.advance(between)
	})
	slotless.repeat = slotIsFree

	unbounded := ticking("tick, a run that began without a slot", func(w *world) {
		first, second := w.trigger(inLine, nil), w.trigger(inLine, nil)
		w.occupy(first)
		run, err := w.rt.Runs().Get(w.t.Context(), second)
		w.must(err)
		w.claim(run, runlane.Queue{Name: narrow.Name}, time.Second)
		w.advance(between)
	})
	unbounded.repeat = slotIsFree

	crowded := ticking("tick, a retry in a full queue", func(w *world) {
		w.trigger(lined.With(act{Name: "a", Do: fail}), nil)
		w.deliver()
		w.lose()
		w.occupy(w.trigger(inLine, nil))
		w.advance(between)
	})
	crowded.repeat = slotIsFree

	endless := ticking("tick, a run that is looked at", func(w *world) {
		w.trigger(simple, nil)
		w.advance(between)
	})
	endless.options = func(p *program) *core.Options {
		o := p.options()
		o.MaxAbandoned = -1
		return o
	}

	return []scenario{
		first, abandoned, failing, unbounded, crowded, endless, failingSlot, cancelled, dispatched, slotless,
		ticking("tick, a wakeup that was never sent", func(w *world) {
			w.trigger(simple, &runlane.TriggerOptions{Deferred: true})
			w.advance(between)
		}),
		ticking("tick, a delayed run that was never announced", func(w *world) {
			w.trigger(simple, &runlane.TriggerOptions{Deferred: true, Delay: time.Minute})
			w.advance(between)
		}),
		ticking("tick, a retry that is due", func(w *world) {
			w.trigger(play.With(act{Name: "a", Do: fail}), nil)
			w.deliver()
			w.lose()
			w.advance(between)
		}),
		ticking("tick, a long wait that ends soon", func(w *world) {
			w.trigger(simple, &runlane.TriggerOptions{Delay: 20 * time.Minute})
			w.advance(19*time.Minute + 30*time.Second)
		}),
		ticking("tick, a reservation that is looked at", func(w *world) {
			w.trigger(inLine, nil)
			w.advance(70 * time.Second)
		}),
		ticking("tick, a wakeup in the hands of another", func(w *world) {
			w.hold(w.trigger(simple, &runlane.TriggerOptions{Deferred: true}), 30*time.Second)
		}),
		ticking("tick, a lost wakeup", func(w *world) {
			w.trigger(simple, nil)
			w.lose()
			w.advance(11 * time.Minute)
		}),
	}
}

// occupy lets a run have its slot until after the next tick: it runs, and its worker dies.
func (w *world) occupy(id runlane.RunID) {
	w.t.Helper()
	run, err := w.rt.Runs().Get(w.t.Context(), id)
	w.must(err)
	w.claim(run, narrow, between+time.Minute)
}

// scheduled has one schedule, of a run every hour.
func scheduled(name string, overlap runlane.Overlap) scenario {
	return scenario{
		name: name,
		options: func(p *program) *core.Options {
			o := p.options()
			o.Schedules = []runlane.Schedule{{
				ID: "hourly", When: runlane.Every(time.Hour), Call: play.With(act{Name: "scheduled"}), Overlap: overlap,
			}}
			return o
		},
		prepare: func(w *world) {
			w.tick()
			w.advance(time.Hour)
		},
		act:    tickOnce,
		repeat: oneOccurrenceOneRun,
		judge:  func(a *account) { a.all(runlane.StatusSucceeded) },
	}
}

// oneOccurrenceOneRun wants a run of each occurrence, and an occurrence of each run.
func oneOccurrenceOneRun(w *world) {
	w.t.Helper()
	runs := map[runlane.RunID]bool{}
	for occurrence, err := range w.rt.Schedules().Occurrences(w.t.Context(), "hourly", false) {
		w.must(err)
		if occurrence.RunID != "" {
			runs[occurrence.RunID] = true
		} else if occurrence.Skipped == "" {
			w.fault("the occurrence of %s is not completed: %+v", occurrence.FireTime, occurrence)
		}
	}
	page, err := w.rt.Runs().List(w.t.Context(), &core.ListOptions{RunFilter: core.RunFilter{ScheduleID: "hourly"}})
	w.must(err)
	if len(page.Items) != len(runs) || len(runs) == 0 {
		w.fault("there are %d runs, and occurrences of %d", len(page.Items), len(runs))
	}
}

func scheduleScenarios() []scenario {
	fresh := scheduled("schedule, registered", "")
	fresh.prepare, fresh.repeat = nil, nil
	fresh.judge = nil

	replacing := scheduled("schedule, replacing", runlane.OverlapReplace)
	replacing.prepare = func(w *world) {
		w.tick()
		w.advance(time.Hour)
		w.tick()
		w.lose()
		w.advance(time.Hour)
	}
	replacing.judge = func(a *account) {
		if len(a.runs) < 2 {
			a.fault("there are %d runs of two occurrences", len(a.runs))
		}
	}

	latest := scheduled("schedule, queueing the latest", runlane.OverlapQueueLatest)
	latest.prepare = replacing.prepare
	latest.judge = func(a *account) { a.all(runlane.StatusSucceeded) }

	skipping := scheduled("schedule, missed", "")
	skipping.prepare = func(w *world) {
		w.tick()
		w.advance(3 * time.Hour)
	}

	noted := scheduled("schedule, noted", "")
	noted.options = func(p *program) *core.Options {
		o := p.options()
		o.Schedules = []runlane.Schedule{{
			ID: "hourly", When: runlane.Once(time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)), Call: play.With(act{Name: "scheduled"}),
		}}
		return o
	}
	noted.prepare = func(w *world) {
		w.tick()
		w.advance(2 * time.Hour)
	}
	noted.repeat, noted.judge = nil, nil

	paused := scheduled("schedule, paused", "")
	paused.act = func(ctx context.Context, c *child) error { return c.rt.Schedules().Pause(ctx, "hourly", nil) }
	paused.repeat, paused.judge = nil, func(a *account) { a.all(runlane.StatusSucceeded) }

	resumed := scheduled("schedule, resumed", "")
	resumed.prepare = func(w *world) {
		w.tick()
		w.must(w.rt.Schedules().Pause(w.t.Context(), "hourly", nil))
		w.advance(2 * time.Hour)
	}
	resumed.act = func(ctx context.Context, c *child) error { return c.rt.Schedules().Resume(ctx, "hourly", nil) }
	resumed.repeat = func(w *world) {
		w.must(w.rt.Schedules().Resume(w.t.Context(), "hourly", nil))
		w.advance(time.Hour)
		w.tick()
		w.deliver()
		oneOccurrenceOneRun(w)
	}

	now := scheduled("schedule, triggered", "")
	now.prepare = func(w *world) { w.tick() }
	now.act = func(ctx context.Context, c *child) error {
		run, err := c.rt.Schedules().TriggerNow(ctx, "hourly", nil)
		if err == nil {
			c.promise(run.ID)
		}
		return err
	}
	now.repeat = nil

	alone := scheduled("schedule, triggered, forbidding overlaps", runlane.OverlapForbid)
	alone.prepare, alone.act = now.prepare, now.act
	alone.repeat = nothingHeldUp
	alone.judge = func(a *account) { a.all(runlane.StatusSucceeded) }

	return fromTenPast([]scenario{
		fresh, scheduled("schedule, fired", ""), replacing, latest, skipping, noted, paused, resumed, now, alone,
	})
}

// fromTenPast lets the worlds of the scenarios begin at ten minutes past the next hour.
func fromTenPast(all []scenario) []scenario {
	for i := range all {
		prepare := all[i].prepare
		all[i].prepare = func(w *world) {
			w.toTenPast()
			if prepare != nil {
				prepare(w)
			}
		}
	}
	return all
}

// nothingHeldUp wants the next occurrence to make its run, whatever the record says of runs that were never made.
func nothingHeldUp(w *world) {
	w.t.Helper()
	w.deliver()
	w.advance(time.Hour)
	w.tick()
	w.deliver()
	for occurrence, err := range w.rt.Schedules().Occurrences(w.t.Context(), "hourly", false) {
		w.must(err)
		if occurrence.RunID != "" {
			return
		}
	}
	w.fault("no occurrence made a run")
}
