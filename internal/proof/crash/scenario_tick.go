package crash

import (
	"context"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
)

func ticks() []Scenario {
	plain, line := Play.With(doing("")), Lined.With(doing(""))
	deferred := &runlane.TriggerOptions{Deferred: true}

	first := Ticking("tick, the first", nil)
	first.Prepare = nil

	failing := Ticking("tick, a run abandoned too often", func(p *Process) {
		p.abandon(p.Trigger(plain, nil))
		p.Advance(Between)
	})
	failing.Options, failing.Judge = fails, All(runlane.StatusFailed, 1)

	failingSlot := Ticking("tick, a run with a slot abandoned too often", func(p *Process) {
		p.abandon(p.Trigger(line, nil))
		p.Trigger(line, nil)
		p.Advance(Between)
	})
	failingSlot.Options, failingSlot.Judge = fails, func(e *End) {
		if len(e.Runs) != 3 {
			e.Fault("there are %d runs, not 3", len(e.Runs))
		}
	}

	cancelled := Ticking("tick, a cancellation", func(p *Process) {
		triggered(line, nil)(p)
		p.Trigger(line, nil)
		p.abandon(p.argument())
		_, err := p.Runtime.Runs().Cancel(context.Background(), p.argument(), nil)
		p.Must(err)
		p.Advance(Between)
	})
	cancelled.Judge = func(e *End) {
		if run := e.Runs[e.argument()]; run == nil || run.Status != runlane.StatusCancelled {
			e.Fault("%s is not cancelled", e.argument())
		}
		delete(e.Runs, e.argument())
		Succeed(e)
	}

	dispatched := Ticking("tick, two runs of a full queue", func(p *Process) {
		p.Trigger(line, nil)
		p.Trigger(line, nil)
		p.Lose()
		p.Advance(Between)
	})

	slotless := Ticking("tick, an abandoned run of a bounded queue", func(p *Process) {
		p.abandon(p.Trigger(line, nil))
		p.Lose()
		p.Advance(Between)
	})

	unbounded := Ticking("tick, a run that began without a slot", func(p *Process) {
		first, second := p.Trigger(line, nil), p.Trigger(line, nil)
		p.occupy(first)
		p.claim(second, runlane.Queue{Name: Narrow.Name}, time.Second)
		p.Advance(Between)
	})

	crowded := Ticking("tick, a retry in a full queue", func(p *Process) {
		p.Trigger(Lined.With(doing(doFail)), nil)
		p.Deliver()
		p.Lose()
		p.occupy(p.Trigger(line, nil))
		p.Advance(Between)
	})
	bounded := []Scenario{failingSlot, cancelled, dispatched, slotless, unbounded, crowded}
	for i := range bounded {
		bounded[i].Repeat = SlotIsFree
	}

	endless := Ticking("tick, a run that is looked at", func(p *Process) {
		p.Trigger(plain, nil)
		p.Advance(Between)
	})
	endless.Options = func(_ *Process, o *core.Options) { o.MaxAbandoned = -1 }

	return append(bounded, first, failing, endless,
		Ticking("tick, an abandoned run", func(p *Process) {
			p.abandon(p.Trigger(plain, nil))
			p.Lose()
			p.Advance(Between)
		}),
		Ticking("tick, a wakeup that was never sent", func(p *Process) {
			p.Trigger(plain, deferred)
			p.Advance(Between)
		}),
		Ticking("tick, a delayed run that was never announced", func(p *Process) {
			p.Trigger(plain, &runlane.TriggerOptions{Deferred: true, Delay: time.Minute})
			p.Advance(Between)
		}),
		Ticking("tick, a retry that is due", func(p *Process) {
			p.Trigger(Play.With(doing(doFail)), nil)
			p.Deliver()
			p.Lose()
			p.Advance(Between)
		}),
		Ticking("tick, a long wait that ends soon", func(p *Process) {
			p.Trigger(plain, &runlane.TriggerOptions{Delay: 20 * time.Minute})
			p.Advance(19*time.Minute + 30*time.Second)
		}),
		Ticking("tick, a reservation that is looked at", func(p *Process) {
			p.Trigger(line, nil)
			p.Advance(70 * time.Second)
		}),
		Ticking("tick, a wakeup in the hands of another", func(p *Process) {
			p.hold(p.Trigger(plain, deferred), 30*time.Second)
		}),
		Ticking("tick, a lost wakeup", func(p *Process) {
			p.Trigger(plain, nil)
			p.Lose()
			p.Advance(11 * time.Minute)
		}),
	)
}

// hourly is the schedule of the scenarios.
const hourly = "hourly"

// scheduled is a scenario of a tick with one schedule, of a run every hour, after so many hours.
func scheduled(name string, overlap runlane.Overlap, hours int) Scenario {
	return Scenario{
		Name: "schedule, " + name, Act: tick, Judge: Succeed, Repeat: oneOccurrenceOneRun,
		Options: func(_ *Process, o *core.Options) {
			o.Schedules = []runlane.Schedule{{
				ID: hourly, When: runlane.Every(time.Hour), Call: Play.With(Act{Name: "scheduled"}), Overlap: overlap,
			}}
		},
		Prepare: func(p *Process) {
			p.Tick()
			p.Advance(time.Duration(hours) * time.Hour)
		},
	}
}

func occurrences(p *Process) (all []runlane.Occurrence) {
	p.TB.Helper()
	for occurrence, err := range p.Runtime.Schedules().Occurrences(context.Background(), hourly, false) {
		p.Must(err)
		all = append(all, occurrence)
	}
	return all
}

// oneOccurrenceOneRun wants a run of each occurrence, and an occurrence of each run.
func oneOccurrenceOneRun(p *Process) {
	p.TB.Helper()
	runs := map[runlane.RunID]bool{}
	for _, occurrence := range occurrences(p) {
		if occurrence.RunID != "" {
			runs[occurrence.RunID] = true
		} else if occurrence.Skipped == "" {
			p.Fault("the occurrence of %s is not completed: %+v", occurrence.FireTime, occurrence)
		}
	}
	page, err := p.Runtime.Runs().List(context.Background(), &core.ListOptions{RunFilter: core.RunFilter{ScheduleID: hourly}})
	p.Must(err)
	if len(page.Items) != len(runs) || len(runs) == 0 {
		p.Fault("there are %d runs, and occurrences of %d", len(page.Items), len(runs))
	}
}

func schedules() []Scenario {
	registered := scheduled("registered", "", 0)
	registered.Prepare, registered.Repeat, registered.Judge = nil, nil, nil

	twice := func(p *Process) {
		for range 2 {
			p.Tick()
			p.Lose()
			p.Advance(time.Hour)
		}
	}
	replacing := scheduled("replacing", runlane.OverlapReplace, 0)
	replacing.Prepare, replacing.Judge = twice, func(e *End) {
		if len(e.Runs) < 2 {
			e.Fault("there are %d runs of two occurrences", len(e.Runs))
		}
	}
	latest := scheduled("queueing the latest", runlane.OverlapQueueLatest, 0)
	latest.Prepare = twice

	noted := scheduled("noted", "", 2)
	noted.Repeat, noted.Judge = nil, nil
	noted.Options = func(_ *Process, o *core.Options) {
		at := time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)
		o.Schedules = []runlane.Schedule{{ID: hourly, When: runlane.Once(at), Call: Play.With(Act{Name: "scheduled"})}}
	}

	pause := func(ctx context.Context, p *Process) error { return p.Runtime.Schedules().Pause(ctx, hourly, nil) }
	resume := func(ctx context.Context, p *Process) error { return p.Runtime.Schedules().Resume(ctx, hourly, nil) }
	paused := scheduled("paused", "", 1)
	paused.Act, paused.Repeat = pause, nil

	resumed := scheduled("resumed", "", 0)
	resumed.Prepare = func(p *Process) {
		p.Tick()
		p.Must(pause(context.Background(), p))
		p.Advance(2 * time.Hour)
	}
	resumed.Act, resumed.Repeat = resume, func(p *Process) {
		p.Must(resume(context.Background(), p))
		anHourLater(p)
		oneOccurrenceOneRun(p)
	}

	now := scheduled("triggered", "", 0)
	now.Repeat, now.Act = nil, func(ctx context.Context, p *Process) error {
		run, err := p.Runtime.Schedules().TriggerNow(ctx, hourly, nil)
		if err == nil {
			p.Promise(run.ID)
		}
		return err
	}

	alone := scheduled("triggered, forbidding overlaps", runlane.OverlapForbid, 0)
	alone.Act, alone.Repeat = now.Act, nothingHeldUp

	all := []Scenario{
		registered, scheduled("fired", "", 1), replacing, latest, scheduled("missed", "", 3), noted, paused, resumed, now, alone,
	}
	for i := range all {
		prepare := all[i].Prepare
		all[i].Prepare = func(p *Process) {
			toTenPast(p)
			if prepare != nil {
				prepare(p)
			}
		}
	}
	return all
}

// toTenPast moves the clock to ten minutes past the next hour. Schedules fire at whole hours: of two processes that began
// shortly before one by the wall clock, the later could see another time of its schedule while it settles. It moves by
// ten minutes at least, so that every child ticks in the same way.
func toTenPast(p *Process) {
	const past = 10 * time.Minute
	now := p.Now()
	p.Advance(past + time.Hour - now.Sub(now.Truncate(time.Hour)))
}

func anHourLater(p *Process) {
	p.Advance(time.Hour)
	p.Tick()
	p.Deliver()
}

// nothingHeldUp wants the next occurrence to make its run, whatever the record says of runs that were never made.
func nothingHeldUp(p *Process) {
	p.TB.Helper()
	p.Deliver()
	anHourLater(p)
	for _, occurrence := range occurrences(p) {
		if occurrence.RunID != "" {
			return
		}
	}
	p.Fault("no occurrence made a run")
}
