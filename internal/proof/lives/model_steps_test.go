package lives

import (
	"slices"
	"testing/synctest"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
)

var modelSteps = []step[*modelSequence]{
	{"trigger", 14, (*modelSequence).stepTrigger},
	{"deliver", 12, (*modelSequence).stepDeliver},
	{"deliver astray", 4, (*modelSequence).stepStray},
	{"lose a wakeup", 2, (*modelSequence).stepLose},
	{"begin an attempt", 5, (*modelSequence).stepBegin},
	{"end an attempt", 5, (*modelSequence).stepEnd},
	{"interrupt an attempt", 1, (*modelSequence).stepInterrupt},
	{"advance", 12, (*modelSequence).stepAdvance},
	{"advance to", 6, (*modelSequence).stepAdvanceTo},
	{"tick", 12, (*modelSequence).stepTick},
	{"run now", 3, (*modelSequence).stepRunNow},
	{"batch", 2, (*modelSequence).stepBatch},
	{"drain", 1, (*modelSequence).stepDrain},
	{"cancel", 5, (*modelSequence).stepCancel},
	{"resume a run", 3, (*modelSequence).stepGoOn},
	{"rerun", 2, (*modelSequence).stepRerun},
	{"retry", 2, (*modelSequence).stepRetry},
	{"prune", 2, (*modelSequence).stepPrune},
	{"reset a key", 1, (*modelSequence).stepReset},
	{"requeue", 2, (*modelSequence).stepRequeue},
	{"relay", 2, (*modelSequence).stepRelay},
	{"deploy", 3, (*modelSequence).stepDeploy},
	{"break the transport", 2, (*modelSequence).stepBreak},
	{"mend the transport", 2, (*modelSequence).stepMend},
	{"refuse for long", 1, (*modelSequence).stepRefuse},
	{"pause a schedule", 1, (*modelSequence).stepPause},
	{"resume a schedule", 1, (*modelSequence).stepResume},
	{"fire a schedule", 1, (*modelSequence).stepFire},
	{"ask a stranger", 1, (*modelSequence).stepStranger},
}

// drawCall draws a call, which may contradict itself.
func (s *modelSequence) drawCall(list []*task) *modelCall {
	c := &modelCall{d: s.d}
	c.task, c.payload, c.options = s.drawOptions(list)
	return c
}

// putOff puts the run of a call off, or not.
func (s *modelSequence) putOff(c *modelCall) {
	s.drawDelay(&c.options)
	if s.chance("illegal", 30) {
		c.options.Delay, c.options.RunAt, c.illegal = time.Minute, s.m.now.Add(time.Minute), true
	}
}

var modelDelays = []time.Duration{
	time.Millisecond, time.Second, 3 * time.Second, time.Minute, 15 * time.Minute, 15*time.Minute + time.Millisecond, 40 * time.Minute, 30 * time.Hour,
}

func (s *modelSequence) stepTrigger() bool {
	if len(s.m.runs) >= 12 {
		return false
	}
	c := s.drawCall(s.habit.tasks)
	s.putOff(c)
	s.note("  %s", c)
	result, err := s.d.rt.Trigger(s.ctx, s.d.tasks[c.task.id].With(c.payload), &c.options)
	s.answered(c, result, err)
	return true
}

// stepBatch: items commit side by side, so no two of them want the same.
func (s *modelSequence) stepBatch() bool {
	if len(s.m.runs) >= 10 {
		return false
	}
	var calls []*modelCall
	var items []core.BatchItem
	for i := range 2 + s.below("items", 3) {
		c := s.drawCall(tasks[i : i+1])
		s.putOff(c)
		c.options.RunID = runlane.RunID(s.w.newID("batch_"))
		calls = append(calls, c)
		items = append(items, core.BatchItem{Call: s.d.tasks[c.task.id].With(c.payload), Options: &c.options})
		s.note("  %s", c)
	}
	results, err := s.d.rt.TriggerBatch(s.ctx, items)
	if err != nil || len(results) != len(items) {
		s.fail("batch: %+v, %v", results, err)
	}
	for i, c := range calls {
		s.answered(c, results[i].Result, results[i].Err)
	}
	return true
}

func (s *modelSequence) stepRunNow() bool {
	if len(s.m.runs) >= 12 {
		return false
	}
	c := s.drawCall(s.habit.tasks)
	c.now = true
	x := s.drawAttempt()
	s.note("  %s: %s", c, x.outcome)
	s.w.prepare(x)
	result, err := s.d.rt.RunNow(s.ctx, s.d.tasks[c.task.id].With(c.payload), &c.options)
	s.w.prepare(nil)
	if !x.begun {
		s.answered(c, result, err)
		return true
	}
	x.err, x.finished = err, true
	x.model.deployment = s.d
	run := s.answered(c, &runlane.TriggerResult{Run: &runlane.Run{ID: x.run}, Outcome: runlane.TriggerCreated}, nil)
	if run == nil {
		s.fail("run now executed %s, which was not to be made", x.run)
	}
	s.m.claim(s.d, run, x, s.m.now.Add(modelLeased), false)
	run.Lease.WorkerID = modelOtherWorker
	s.settleChild(x)
	s.recorded(x, run)
	if err == nil && (result.Outcome != runlane.TriggerCreated || result.Run.Status != x.model.status) {
		s.fail("run now returned %+v of a run that is %s", result, x.model.status)
	}
	return true
}

func (s *modelSequence) stepAdvance() bool {
	list := modelJumps
	switch {
	case len(s.inFlight) > 0:
		list = modelShortJumps
	case s.habit.scheduled:
		list = modelLongJumps
	}
	s.jump(pick(s, "time", list))
	return true
}

var (
	modelShortJumps = []time.Duration{time.Millisecond, time.Second, 5 * time.Second, 10 * time.Second, 25 * time.Second, 30 * time.Second, time.Minute, 90 * time.Second}
	modelJumps      = append(slices.Clone(modelShortJumps), 2*time.Minute, 5*time.Minute, 10*time.Minute, 20*time.Minute, time.Hour, 7*time.Hour, 26*time.Hour, 72*time.Hour)
	modelLongJumps  = modelJumps[len(modelShortJumps)+1:]
)

// stepAdvanceTo goes to the very millisecond of something, or to just before it.
func (s *modelSequence) stepAdvanceTo() bool {
	wanted := func(run *modelRun) bool { return s.m.explain(run, s.d).until.After(s.m.now) }
	run := s.someRun(wanted)
	if run == nil || !wanted(run) {
		return false
	}
	d := s.m.explain(run, s.d).until.Sub(s.m.now)
	d -= time.Duration(s.below("before", 3)) * time.Millisecond
	if d <= 0 || len(s.inFlight) > 0 && d > 90*time.Second {
		return false
	}
	s.jump(d.Truncate(time.Millisecond))
	return true
}

func (s *modelSequence) jump(d time.Duration) {
	s.note("  by %s", d)
	if d > 2*month {
		s.fail("nothing waits for %s", d)
	}
	s.advance(d)
}

func (s *modelSequence) stepTick() bool {
	limit := 100
	if s.m.contended(s.d) || s.chance("small", 5) {
		limit = 1
	}
	s.tick(limit)
	return true
}

func (s *modelSequence) tick(limit int) {
	s.note("  limit %d", limit)
	over := s.w.begin()
	_, err := s.d.rt.Tick(s.ctx, &core.TickOptions{Limit: limit})
	if err != nil && s.m.fault == modeSound {
		s.fail("tick: %v", err)
	}
	s.m.tick(s.d, limit)
	over()
	synctest.Wait() // for the handler of a run that was replaced
	s.settle()
}

// stepDrain lets a worker do what is due, whatever there are of wakeups.
func (s *modelSequence) stepDrain() bool {
	if err := s.d.rt.Work(s.ctx, &core.WorkOptions{
		Drain: true, DrainWait: -1, NoTick: true, Concurrency: 1, WorkerID: modelOwner,
	}); err != nil {
		s.fail("drain: %v", err)
	}
	s.m.drain(s.d)
	return true
}

// drain: every run that is due and can have a slot succeeds; in which order, cannot be told afterwards.
func (m *model) drain(d *modelDeployment) {
	m.anySent = true
	for again := true; again; {
		again = false
		for _, run := range m.all() {
			if !run.Status.Active() || run.Status == runlane.StatusCancellationRequested || run.dueAt().After(m.now) {
				continue
			}
			x := &modelAttempt{outcome: outcome{kind: succeeds}, model: modelLease{deployment: d}}
			switch {
			case m.atBound(run):
				m.failAbandoned(d, run)
			case run.task.strange || !m.claim(d, run, x, m.now.Add(modelLeased), false):
				continue
			default:
				m.end(run, x)
			}
			run.drained = run.Queue == slotQueue
			again = true
		}
	}
}
