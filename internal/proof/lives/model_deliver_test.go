package lives

import (
	"context"
	"slices"
	"testing/synctest"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
)

func (s *modelSequence) drawAttempt() *modelAttempt {
	x := &modelAttempt{outcome: s.drawOutcome(), childOption: &runlane.TriggerOptions{}}
	if x.outcome.kind == triggers && s.chance("child's key", 2) {
		x.childOption.SingletonKey, x.childOption.ReturnActive = onlyKey, true
	}
	return x
}

// drawLimit is how much time the process has left, 0 for a long-lived one.
func (s *modelSequence) drawLimit() time.Duration {
	if !s.chance("limited", 4) {
		return 0
	}
	return pick(s, "limit", []time.Duration{time.Second, 6 * time.Second, 20 * time.Second, 40 * time.Second, 2 * time.Minute})
}

// stepDeliver delivers a message that the transport has; it may come early, or twice.
func (s *modelSequence) stepDeliver() bool {
	if len(s.mail) == 0 {
		return false
	}
	i := s.below("message", len(s.mail))
	message := s.mail[i]
	if early := message.arrives.Sub(s.m.now); early > 0 && !s.chance("early", 4) {
		return false
	}
	if !s.chance("twice", 6) {
		s.mail = slices.Delete(s.mail, i, i+1)
	}
	s.deliver(message.run, "", s.drawAttempt(), s.drawLimit())
	return true
}

// stepStray delivers what was never sent.
func (s *modelSequence) stepStray() bool {
	id, queue := runlane.RunID("absent"), runlane.QueueName("")
	if n := len(s.m.gone); n > 0 && s.chance("gone", 3) {
		id = s.m.gone[n-1]
	} else if run := s.someRun(func(run *modelRun) bool { return run.Status.Active() }); run != nil {
		id, queue = run.ID, pick(s, "queue", []runlane.QueueName{"", run.Queue, run.Queue, "elsewhere"})
	}
	s.deliver(id, queue, s.drawAttempt(), s.drawLimit())
	return true
}

func (s *modelSequence) stepLose() bool {
	if len(s.mail) == 0 {
		return false
	}
	i := s.below("message", len(s.mail))
	s.mail = slices.Delete(s.mail, i, i+1)
	return true
}

// stepBegin begins an attempt that lasts until another step, or its time, ends it.
func (s *modelSequence) stepBegin() bool {
	run := s.someRun(func(run *modelRun) bool {
		return run.Status.Active() && run.Status != runlane.StatusCancellationRequested && !run.dueAt().After(s.m.now)
	})
	if run == nil || len(s.inFlight) >= 3 {
		return false
	}
	if early := run.dueAt().Sub(s.m.now); early > 0 && early <= time.Second {
		return false // it would begin by itself, later
	}
	x := &modelAttempt{waits: true, childOption: &runlane.TriggerOptions{}}
	limit := s.drawLimit()
	x.stubborn = s.chance("stubborn", 3)
	x.muted = limit == 0 && s.chance("muted", 3)
	s.deliver(run.ID, "", x, limit)
	return true
}

func (s *modelSequence) stepEnd() bool {
	if len(s.inFlight) == 0 {
		return false
	}
	x := pick(s, "attempt", s.inFlight)
	outcome := s.drawAttempt()
	x.childOption = outcome.childOption
	s.note("  %s of %s", outcome.outcome.kind, x.run)
	x.decision <- outcome.outcome
	synctest.Wait()
	if !x.finished {
		s.fail("the attempt of run %s does not end", x.run)
	}
	s.settle()
	return true
}

// stepInterrupt stops a process in good order. A handler that does not care is left behind, and its run is released
// until its lease would have ended.
func (s *modelSequence) stepInterrupt() bool {
	if len(s.inFlight) == 0 {
		return false
	}
	x := pick(s, "attempt", s.inFlight)
	run := s.m.runs[x.run]
	if x.stubborn && (run == nil || run.owner != x || run.Status != runlane.StatusRunning || !x.model.ends.IsZero()) {
		return false // how it ends depends on what it has seen
	}
	s.note("  of %s", x.run)
	x.cancel()
	if !x.stubborn {
		synctest.Wait()
		s.settle()
		return true
	}
	s.inFlight = slices.DeleteFunc(s.inFlight, func(other *modelAttempt) bool { return other == x })
	s.advance(5 * time.Second)
	if !x.finished || x.err != nil {
		s.fail("a handler that ignores the end of its context holds up its process: %+v, %v", x.result, x.err)
	}
	x.outcome, x.cause, x.lingers = outcome{kind: stops}, context.Canceled, run.Lease.ExpiresAt
	if x.model.beats && x.result.Run != nil { // up to its end
		before := *x.result.Run
		before.EventSequence, before.UpdatedAt, before.Lease.ExpiresAt = before.EventSequence-1, s.m.now, before.RunAt
		s.adoptBeats(run, &before)
		x.lingers = before.RunAt
	}
	s.recorded(x, run)
	return true
}

// deliver executes one wakeup, as far as it goes.
func (s *modelSequence) deliver(id runlane.RunID, queue runlane.QueueName, x *modelAttempt, limit time.Duration) {
	s.note("  %s %s: %s, limit %s", id, queue, x, limit)
	options := &core.DeliveryOptions{WorkerID: modelOwner}
	leaseEnd, left := time.Time{}, time.Duration(0)
	if limit > 0 {
		options.Deadline = s.m.now.Add(limit)
		leaseEnd, left = options.Deadline.Add(5*time.Second), limit-max(2*time.Second, limit/20)
	}
	run := s.m.runs[id]
	v := s.m.judge(run, queue, left, limit > 0)
	s.w.execute(s.d, lane.Wakeup{RunKey: lane.RunKey{RunID: id}, Queue: queue}, options, x)
	if v.ignored != core.IgnoredNotDue && v.wait > 0 {
		if passed := time.Now().UTC().Sub(s.m.now); passed != v.wait {
			s.fail("a wakeup that is %s early waited for %s", v.wait, passed)
		}
		left -= v.wait
		s.settle()
	}
	if leaseEnd.IsZero() {
		leaseEnd = s.m.now.Add(modelLeased)
	}
	switch {
	case v.code != "":
		s.refused("delivery", x.err, v.code)
	case v.ignored == core.IgnoredNotDue && v.wait <= maxDelay && !s.m.sends(run, v.wait):
		if x.err == nil {
			s.fail("a wakeup that came early was lost: %+v", x.result)
		}
	case v.ignored != "":
		if v.fails {
			s.m.failAbandoned(s.d, run)
		}
		s.ignored(x, v.ignored)
	case !s.m.claim(s.d, run, x, leaseEnd, true):
		s.ignored(x, core.IgnoredNoCapacity)
	default:
		s.begun(x, run, limit, left)
	}
}

func (s *modelSequence) ignored(x *modelAttempt, want core.Ignored) {
	s.tally.add("ignored", string(want), 1)
	if x.err != nil || x.begun || !x.finished || x.result.Ignored != want {
		s.fail("the wakeup was not ignored as %s: %+v, %v", want, x.result, x.err)
	}
}

// begun is an attempt whose handler was called, and perhaps has returned.
func (s *modelSequence) begun(x *modelAttempt, run *modelRun, limit, left time.Duration) {
	if !x.begun || x.run != run.ID {
		s.fail("no attempt of run %s began: %+v, %v", run.ID, x.result, x.err)
	}
	ends := run.task.timeout
	unwind := 5 * time.Second
	if limit > 0 {
		unwind = max(2*time.Second, limit/20) / 2
		if ends == 0 || left < ends {
			ends = left
		}
	}
	x.model = modelLease{deployment: s.d, beats: limit == 0 && !x.muted, unwind: unwind}
	if ends > 0 {
		x.model.ends = s.m.now.Add(ends)
	}
	if !x.waits {
		x.model.beats = false // it took no time
		s.settleChild(x)
		s.recorded(x, run)
		return
	}
	s.inFlight = append(s.inFlight, x)
}
