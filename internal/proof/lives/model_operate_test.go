package lives

import (
	"cmp"
	"slices"
	"testing/synctest"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
)

func (s *modelSequence) stepCancel() bool {
	id := runlane.RunID("absent")
	run := s.someRun(func(run *modelRun) bool { return run.Status.Active() })
	if run != nil {
		id = run.ID
	}
	s.note("  %s", id)
	got, err := s.d.rt.Runs().Cancel(s.ctx, id, nil)
	code := s.m.cancel(s.d, run)
	s.refused("cancel", err, code)
	if err == nil && got.Status != run.Status {
		s.fail("cancel returned a run that is %s, not %s", got.Status, run.Status)
	}
	synctest.Wait() // for the handler that was told of it
	s.settle()
	return true
}

func (s *modelSequence) stepGoOn() bool {
	id := runlane.RunID("absent")
	run := s.someRun(func(run *modelRun) bool {
		return run.Status.Waiting() || run.Status == runlane.StatusQueued && s.m.now.Before(run.RunAt)
	})
	if run != nil {
		id = run.ID
	}
	s.note("  %s", id)
	_, err := s.d.rt.Runs().Resume(s.ctx, id, nil)
	s.refused("resume", err, s.m.resume(s.d, run))
	return true
}

func (s *modelSequence) stepRerun() bool {
	return s.repeat(runlane.SourceRerun, s.d.rt.Runs().Rerun, func(run *modelRun) bool { return run.Status.Terminal() })
}

func (s *modelSequence) stepRetry() bool {
	return s.repeat(runlane.SourceManualRetry, s.d.rt.Runs().Retry, func(run *modelRun) bool { return run.Status == runlane.StatusFailed })
}

// repeat makes one new run of a finished one, however often it is asked.
func (s *modelSequence) repeat(kind runlane.SourceType, call modelRepeatCall, allowed func(*modelRun) bool) bool {
	source := s.someRun(allowed)
	if source == nil || len(s.m.runs) >= 14 {
		return false
	}
	s.note("  %s", source.ID)
	got, err := call(s.ctx, source.ID, nil)
	if !allowed(source) {
		s.refused("repeat", err, runlane.ErrValidationFailed)
		return true
	}
	made := modelRepeat{source.ID, source.CreatedAt, kind}
	if known := s.m.runs[s.repeats[made]]; known != nil {
		s.tally.add("seen", "repeated before", 1)
		if err != nil || got.ID != known.ID {
			s.fail("%s of %s is %+v, %v, not %s", kind, source.ID, got, err, known.ID)
		}
		return true
	}
	c := &modelCall{d: s.d, task: source.task, source: runlane.Source{Type: kind, RunID: source.ID, CreatedAt: source.CreatedAt}}
	c.options.SingletonKey, c.options.ConcurrencyKey, c.options.Meta = source.SingletonKey, source.ConcurrencyKey, source.Meta
	if kind == runlane.SourceManualRetry {
		c.source.OriginID = cmp.Or(source.Source.OriginID, source.ID)
	}
	if kind == runlane.SourceManualRetry && source.IdempotencyKey != "" {
		if owner := s.m.ownerOf(source.TaskID, source.IdempotencyKey); owner != nil {
			s.tally.add("seen", "key of a retry taken", 1)
			s.refusal(err, modelAnswer{code: runlane.ErrStorageConflict, conflict: runlane.ConflictIdempotencyKey, about: owner.ID})
			return true
		}
		s.tally.add("seen", "key of a retry taken over", 1)
		c.options.IdempotencyKey, c.options.IdempotencyTTL = source.IdempotencyKey, source.Retention.TTL
		if source.Retention.WhileActive {
			c.options.IdempotencyTTL = runlane.WhileActive
		}
	}
	if want, created := s.m.resolve(c); !created {
		s.refusal(err, want)
		return true
	}
	if err != nil {
		s.fail("%s of %s: %v", kind, source.ID, err)
	}
	s.m.create(c, got.ID).Payload = source.Payload
	s.repeats[made] = got.ID
	return true
}

func (s *modelSequence) stepPrune() bool {
	o := &core.PruneOptions{OlderThan: pick(s, "age", []time.Duration{time.Millisecond, time.Minute, 25 * time.Hour}), ReleaseOwners: s.chance("owners", 3)}
	if s.chance("few", 3) {
		o.Limit = 1
	}
	if s.chance("some", 3) {
		o.Statuses = []runlane.Status{runlane.StatusFailed, runlane.StatusCancelled}
	}
	s.note("  %+v", o)
	result, err := s.d.rt.Runs().Prune(s.ctx, o)
	if err != nil {
		s.fail("prune: %v", err)
	}
	var old []modelDue
	for _, run := range s.m.runs {
		wanted := o.Statuses == nil || slices.Contains(o.Statuses, run.Status)
		retains := s.m.ownerOf(run.TaskID, run.IdempotencyKey) == run && !o.ReleaseOwners
		if run.Status.Terminal() && wanted && run.FinishedAt.Before(s.m.now.Add(-o.OlderThan)) && !retains {
			old = append(old, modelDue{run.FinishedAt, run})
		}
	}
	sortDue(old)
	goes := map[*modelRun]bool{}
	old = slices.DeleteFunc(old, func(due modelDue) bool {
		origin := s.m.runs[due.run.Source.RunID]
		stays := lane.Repeats(&due.run.Source) && origin != nil && origin.CreatedAt.Equal(due.run.Source.CreatedAt) && !goes[origin] ||
			s.remembered(due.run, s.m.now.Add(-o.OlderThan))
		goes[due.run] = !stays
		return stays
	})
	old = old[:min(cmp.Or(o.Limit, 100), len(old))]
	if result.Changed != len(old) {
		s.fail("prune removed %d runs, not %d: %+v", result.Changed, len(old), result)
	}
	for _, due := range old {
		s.m.remove(due.run)
		s.tally.add("seen", "pruned run", 1)
	}
	return true
}

// remembered reports whether the line of retries of a failed run has one that is active or young.
func (s *modelSequence) remembered(run *modelRun, cutoff time.Time) bool {
	for run != nil && run.Status == runlane.StatusFailed {
		run = s.m.runs[s.repeats[modelRepeat{run.ID, run.CreatedAt, runlane.SourceManualRetry}]]
		if run != nil && (!run.Status.Terminal() || !run.FinishedAt.Before(cutoff)) {
			return true
		}
	}
	return false
}

func (s *modelSequence) stepReset() bool {
	if len(s.idempotencyKeys) == 0 {
		return false
	}
	var keys []modelKey
	for key := range s.idempotencyKeys {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b modelKey) int { return cmp.Or(cmp.Compare(a.task, b.task), cmp.Compare(a.key, b.key)) })
	key := pick(s, "key", keys)
	err := s.d.rt.IdempotencyKeys().Reset(s.ctx, key.task, key.key)
	switch owner := s.m.ownerOf(key.task, key.key); {
	case owner == nil:
		s.refused("reset", err, runlane.ErrRunNotFound)
	case owner.Status.Active():
		s.refusal(err, modelAnswer{code: runlane.ErrStorageConflict, conflict: runlane.ConflictIdempotencyKey, about: owner.ID})
	default:
		s.refused("reset", err, "")
		delete(s.m.owners, key)
		s.tally.add("seen", "key reset", 1)
	}
	return true
}

func (s *modelSequence) stepRequeue() bool {
	run := s.someRun((*modelRun).dead)
	if run == nil {
		return false
	}
	s.note("  %s", run.ID)
	err := s.d.rt.DeadLetters().Requeue(s.ctx, run.ID, nil)
	if !run.dead() {
		s.refused("requeue", err, runlane.ErrValidationFailed)
		return true
	}
	s.refused("requeue", err, "")
	s.tally.add("seen", "requeued dead letter", 1)
	s.m.request(run, 0, s.d.bound(run.Queue) == 0)
	s.m.handOver(s.d, run)
	return true
}

// stepRelay publishes the wakeup of one run, if it is due.
func (s *modelSequence) stepRelay() bool {
	run := s.someRun(func(run *modelRun) bool { return run.row != nil && run.row.status != lane.OutboxPublished })
	if run == nil {
		return false
	}
	seen, err := s.w.storage.InspectRun(s.ctx, &lane.InspectQuery{RunKey: lane.RunKey{RunID: run.ID}})
	if err != nil || (seen.Delivery == nil) != (run.row == nil) {
		s.fail("inspect %s: %+v, %v", run.ID, seen, err)
	}
	if run.row == nil {
		return false
	}
	s.note("  %s", run.ID)
	if _, err := s.d.rt.PublishWakeups(s.ctx, []string{seen.Delivery.ID}); err != nil && s.m.fault == modeSound {
		s.fail("relay: %v", err)
	}
	if run.row.status != lane.OutboxPublished && !run.dead() && !run.row.dueAt().After(s.m.now) && !s.m.reservationOver(run) {
		s.m.publish(run)
	}
	return true
}

// stepDeploy brings another limit, or another definition of the schedule. Attempts in progress keep to the old one.
func (s *modelSequence) stepDeploy() bool {
	limit := s.below("limit", mostSlots+1)
	changed := s.chance("changed", 2)
	s.note("  limit %d, changed %t", limit, changed)
	s.deploy(limit, changed)
	if s.chance("ticks", 2) { // as workers do when they begin
		return s.stepTick()
	}
	return true
}

func (s *modelSequence) stepBreak() bool {
	s.breakTransport(pick(s, "fault", modelFaults))
	return true
}

func (s *modelSequence) stepMend() bool {
	if s.m.fault == modeSound {
		return false
	}
	s.breakTransport(modeSound)
	return true
}

func (s *modelSequence) breakTransport(fault string) {
	s.note("  %s", fault)
	s.tally.add("transport", fault, 1)
	s.m.fault = fault
	s.w.transport.set(fault)
}

// stepRefuse lets the transport refuse a message until it is given up.
func (s *modelSequence) stepRefuse() bool {
	refused := func(run *modelRun) bool { return run.row != nil && run.row.status == lane.OutboxFailed }
	if s.m.fault != modeRefuses || len(s.inFlight) > 0 || s.m.schedule != nil || s.someRun(refused) == nil {
		return false
	}
	for range 10 {
		s.jump(6 * time.Minute)
		if s.m.contended(s.d) {
			return true // that is for a single tick
		}
		s.tick(100)
		s.compare()
	}
	return true
}

func (s *modelSequence) stepPause() bool {
	if s.m.schedule == nil {
		return false
	}
	s.refused("pause", s.d.rt.Schedules().Pause(s.ctx, modelScheduleID, &core.ChangeOptions{Reason: "why"}), "")
	s.m.schedule.pause(s.m, s.d, "why")
	return true
}

func (s *modelSequence) stepResume() bool {
	if s.m.schedule == nil {
		return false
	}
	s.refused("resume", s.d.rt.Schedules().Resume(s.ctx, modelScheduleID, nil), "")
	s.m.schedule.resume(s.m, s.d)
	return true
}

func (s *modelSequence) stepFire() bool {
	if s.m.schedule == nil || len(s.m.runs) >= 12 {
		return false
	}
	c := s.m.schedule.call(s.d)
	c.source.FireTime = s.m.now
	run, err := s.d.rt.Schedules().TriggerNow(s.ctx, modelScheduleID, nil)
	if want, created := s.m.resolve(c); !created {
		s.refusal(err, want)
		return true
	}
	s.refused("trigger now", err, "")
	s.m.schedule.byHand(s.m, s.d, run.ID)
	s.m.create(c, run.ID)
	return true
}

// stepStranger asks a program that knows none of the queues why runs wait.
func (s *modelSequence) stepStranger() bool {
	if s.stranger == nil {
		s.stranger = s.w.open(s.w.options())
	}
	for _, run := range s.m.all() {
		s.compareExplanation(run, s.stranger, nil)
	}
	return true
}
