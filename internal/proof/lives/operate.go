package lives

import (
	"context"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
)

var (
	shortJumps = []time.Duration{
		time.Millisecond,
		2 * time.Second,
		5 * time.Second,
		10 * time.Second,
		30 * time.Second,
		time.Minute,
		90 * time.Second,
	}
	jumps = append(
		append([]time.Duration(nil), shortJumps...),
		2*time.Minute,
		5*time.Minute,
		10*time.Minute,
		20*time.Minute,
		time.Hour,
		7*time.Hour,
		26*time.Hour,
	)
)

func (l *life) stepAdvance() bool {
	list := jumps
	if len(l.flying) > 0 && !l.chance("long", 4) {
		list = shortJumps
	}
	d := pick(l, "time", list)
	l.note("  by %s", d)
	l.clock.Advance(d)
	return true
}

// stepAdvanceTo goes to the moment that a run waits for, or to just before it.
func (l *life) stepAdvanceTo() bool {
	run := l.someRun(func(run *runlane.Run) bool { return run.Status.Active() })
	if run == nil || run.Status.Terminal() {
		return false
	}
	got := l.explain(run)
	if got.Until.IsZero() {
		return false
	}
	d := got.Until.Sub(l.clock.Now())
	if d -= time.Duration(l.below("before", 3)) * time.Millisecond; d <= 0 {
		return false
	}
	l.note("  by %s, %s: %s", d, run.ID, got.Wait)
	l.clock.Advance(d)
	return true
}

func (l *life) stepTick() bool {
	limit := 100
	if l.chance("small", 4) {
		limit = 1
	}
	p := l.process()
	l.note("  %s: limit %d", p.name, limit)
	_, err := p.rt.Tick(l.ctx, &core.TickOptions{Limit: limit})
	l.allows(p, "tick", err)
	return true
}

// stepRelay publishes what a commit of one run, or of several, has left to the relay.
func (l *life) stepRelay() bool {
	run := l.someRun(func(run *runlane.Run) bool { return run.Status.Active() })
	if run == nil {
		return false
	}
	seen, err := l.truth.InspectRun(
		l.ctx,
		&lane.InspectQuery{RunKey: lane.RunKey{Environment: l.world.Environment, RunID: run.ID}},
	)
	if err != nil {
		l.fail("inspect %s: %v", run.ID, err)
	}
	if seen.Delivery == nil {
		return false
	}
	p := l.process()
	l.note("  %s: %s", p.name, run.ID)
	_, err = p.rt.PublishWakeups(l.ctx, []string{seen.Delivery.ID})
	l.allows(p, "relay", err)
	return true
}

func (l *life) stepCancel() bool {
	id := runlane.RunID("absent")
	if run := l.someRun(func(run *runlane.Run) bool { return run.Status.Active() }); run != nil {
		id = run.ID
	}
	p := l.process()
	l.note("  %s: %s", p.name, id)
	got, err := p.rt.Runs().Cancel(l.ctx, id, nil)
	l.allows(p, "cancel", err, runlane.ErrRunNotFound, runlane.ErrValidationFailed)
	if err == nil && got.Status == runlane.StatusCancellationRequested {
		l.mustBeTold(p, got)
	}
	return true
}

func (l *life) stepGoOn() bool {
	id := runlane.RunID("absent")
	if run := l.someRun(func(run *runlane.Run) bool { return run.Status.Active() }); run != nil {
		id = run.ID
	}
	p := l.process()
	l.note("  %s: %s", p.name, id)
	l.book.hurries(id)
	_, err := p.rt.Runs().Resume(l.ctx, id, nil)
	l.allows(p, "resume", err, runlane.ErrRunNotFound, runlane.ErrValidationFailed)
	return true
}

func (l *life) stepGoOnAll() bool {
	l.book.hurries("")
	return l.bulk("resume all", (*core.Runs).ResumeAll)
}

// mustBeTold asks whether the handler of a run knows that the runtime which executes it was asked to cancel it.
func (l *life) mustBeTold(p *process, run *runlane.Run) {
	for _, v := range l.flying {
		if v.p == p && v.token == run.Lease.Token && v.ctx.Err() == nil {
			l.fail("the cancellation of run %s was requested where it executes, and its handler does not know", run.ID)
		}
	}
}

func (l *life) stepRerun() bool {
	return l.repeat("rerun", (*core.Runs).Rerun, func(run *runlane.Run) bool { return run.Status.Terminal() })
}

func (l *life) stepRetry() bool {
	return l.repeat(
		"retry",
		(*core.Runs).Retry,
		func(run *runlane.Run) bool { return run.Status == runlane.StatusFailed },
	)
}

type repeatCall = func(*core.Runs, context.Context, runlane.RunID, *core.ChangeOptions) (*runlane.Run, error)

// repeat makes one new run of a finished one.
func (l *life) repeat(what string, call repeatCall, wanted func(*runlane.Run) bool) bool {
	source := l.someRun(wanted)
	if source == nil || len(l.book.runs()) >= mostRuns {
		return false
	}
	p := l.process()
	l.note("  %s: %s", p.name, source.ID)
	made, err := call(p.rt.Runs(), l.ctx, source.ID, nil)
	l.allows(p, what, err, runlane.ErrStorageConflict, runlane.ErrValidationFailed)
	if err == nil && !p.dead.Load() {
		l.note("  made %s", made.ID)
		l.book.answers(made.ID)
	}
	return true
}

type bulkCall = func(*core.Runs, context.Context, *core.BulkOptions) (*core.BulkResult, error)

func (l *life) stepCancelAll() bool { return l.bulk("cancel all", (*core.Runs).CancelAll) }

func (l *life) stepRerunAll() bool { return l.bulk("rerun all", (*core.Runs).RerunAll) }

func (l *life) stepRetryAll() bool { return l.bulk("retry all", (*core.Runs).RetryAll) }

// bulk does the same to the runs of a task.
func (l *life) bulk(what string, call bulkCall) bool {
	if len(l.book.runs()) >= mostRuns {
		return false
	}
	p := l.process()
	options := &core.BulkOptions{Cap: 1 + l.below("cap", 4)}
	options.TaskID = pick(l, "task", tasks).id
	l.note("  %s: %s, at most %d", p.name, options.TaskID, options.Cap)
	_, err := call(p.rt.Runs(), l.ctx, options)
	l.allows(p, what, err)
	return true
}

func (l *life) stepPrune() bool {
	p := l.process()
	o := &core.PruneOptions{
		OlderThan:     pick(l, "age", []time.Duration{time.Millisecond, time.Minute, 25 * time.Hour}),
		ReleaseOwners: l.chance("owners", 3),
	}
	if l.habit.reuses {
		o.OlderThan = time.Millisecond
		l.clock.Advance(2 * time.Millisecond)
	} else if l.chance("few", 3) {
		o.Limit = 1
	}
	l.note("  %s: %+v", p.name, *o)
	l.pruning = true
	for _, g := range l.graphs {
		l.flowState(g) // it may be gone
	}
	for _, run := range l.book.runs() {
		if run.Status.Terminal() {
			l.book.touch(run.ID)
		}
	}
	_, err := p.rt.Runs().Prune(l.ctx, o)
	l.allows(p, "prune", err)
	return true
}

func (l *life) stepReset() bool {
	if len(l.keys) == 0 {
		return false
	}
	p, key := l.process(), pick(l, "key", l.keys)
	l.note("  %s: %+v", p.name, key)
	err := p.rt.IdempotencyKeys().Reset(l.ctx, key.task, key.key)
	l.allows(p, "reset", err, runlane.ErrRunNotFound, runlane.ErrStorageConflict)
	return true
}

func (l *life) stepRequeue() bool {
	run := l.someRun(
		func(run *runlane.Run) bool { return run.Status.Active() && l.explain(run).Wait == core.WaitOperator },
	)
	if run == nil {
		return false
	}
	p := l.process()
	l.note("  %s: %s", p.name, run.ID)
	err := p.rt.DeadLetters().Requeue(l.ctx, run.ID, nil)
	l.allows(p, "requeue", err, runlane.ErrValidationFailed)
	return true
}

// stepDeploy replaces a process by one with another limit. What the old one has under way goes on.
func (l *life) stepDeploy() bool {
	i := l.below("process", len(l.processes))
	limit := l.below("limit", mostSlots+1)
	if l.limit > 0 {
		l.limit = max(l.limit, limit)
	}
	if limit == 0 {
		l.limit = 0
	}
	l.processes[i] = l.open(limit, false)
	l.observer = l.open(limit, true)
	l.note("  %s: limit %d", l.processes[i].name, limit)
	return true
}

// scheduleKind is a definition of the one schedule that a life may have.
type scheduleKind struct {
	name    string
	when    runlane.When
	misfire runlane.Misfire
	overlap runlane.Overlap
}

const scheduleID = runlane.ScheduleID("schedule")

var scheduleKinds = []*scheduleKind{
	{name: "interval, latest", when: runlane.Every(10 * time.Minute)},
	{
		name:    "interval, skip, forbid",
		when:    runlane.Every(time.Hour),
		misfire: runlane.Misfire{Policy: runlane.MisfireSkip},
		overlap: runlane.OverlapForbid,
	},
	{
		name: "cron, catch up, replace",
		when: runlane.Cron("30 2,14 * * *"),
		misfire: runlane.Misfire{
			Policy: runlane.MisfireCatchUp,
			Limit:  2,
			Window: 30 * time.Hour,
		},
		overlap: runlane.OverlapReplace,
	},
	{name: "cron, queue latest", when: runlane.Cron("*/5 * * * *"), overlap: runlane.OverlapQueueLatest},
	{name: "once", when: runlane.Once(beginning.Add(25 * time.Minute))},
}

func (k *scheduleKind) define(p *process) runlane.Schedule {
	return runlane.Schedule{
		ID:      scheduleID,
		When:    k.when,
		Call:    p.tasks["once"].With(payload{}),
		Misfire: k.misfire,
		Overlap: k.overlap,
	}
}

func (l *life) stepPause() bool {
	if l.schedule == nil {
		return false
	}
	p := l.process()
	err := p.rt.Schedules().Pause(l.ctx, scheduleID, &core.ChangeOptions{Reason: "why"})
	l.allows(p, "pause", err)
	return true
}

func (l *life) stepResume() bool {
	if l.schedule == nil {
		return false
	}
	p := l.process()
	err := p.rt.Schedules().Resume(l.ctx, scheduleID, nil)
	l.allows(p, "resume", err)
	return true
}

func (l *life) stepFire() bool {
	if l.schedule == nil || len(l.book.runs()) >= mostRuns {
		return false
	}
	p := l.process()
	run, err := p.rt.Schedules().TriggerNow(l.ctx, scheduleID, nil)
	l.allows(p, "fire", err, runlane.ErrStorageConflict)
	if err == nil && !p.dead.Load() {
		l.book.answers(run.ID)
	}
	return true
}
