package lives

import (
	"slices"
	"time"

	"github.com/runlane/runlane-go"
)

// modelScheduleKind is a definition, and a second one that a deployment may bring.
type modelScheduleKind struct {
	name      string
	every     time.Duration // of the first definition
	then      time.Duration // of the second
	offset    time.Duration // of all fires, from midnight UTC
	cron      string        // how the first definition says it, if it does so by cron
	once      time.Duration // after the beginning, instead of the above
	singleton bool
	misfire   runlane.Misfire
	overlap   runlane.Overlap
}

const (
	modelScheduleID = runlane.ScheduleID("schedule")
	modelScheduled  = "once"
)

var (
	// modelBeginning is when time begins in every bubble.
	modelBeginning     = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	modelScheduleKinds = []*modelScheduleKind{
		{name: "interval, latest", every: 10 * time.Minute, then: 4 * time.Hour},
		{name: "interval, skip, forbid", every: time.Hour, then: 7 * time.Minute, offset: 3 * time.Minute,
			misfire: runlane.Misfire{Policy: runlane.MisfireSkip}, overlap: runlane.OverlapForbid},
		{name: "cron, catch up, replace", every: 12 * time.Hour, then: 24 * time.Hour, offset: 150 * time.Minute, cron: "30 2,14 * * *",
			misfire: runlane.Misfire{Policy: runlane.MisfireCatchUp, Limit: 2, Window: 30 * time.Hour}, overlap: runlane.OverlapReplace},
		{name: "cron, queue latest", every: 5 * time.Minute, then: 15 * time.Minute, cron: "*/5 * * * *", overlap: runlane.OverlapQueueLatest},
		{name: "interval, singleton", every: 20 * time.Minute, then: 30 * time.Minute, singleton: true},
		{name: "once", once: 25 * time.Minute},
	}
)

func (k *modelScheduleKind) define(d *modelDeployment) runlane.Schedule {
	every := k.every
	if d.changed {
		every = k.then
	}
	when := runlane.Every(every)
	if k.offset > 0 {
		when = when.From(k.anchor(every))
	}
	switch {
	case k.once > 0:
		when = runlane.Once(modelBeginning.Add(k.once))
	case k.cron != "" && !d.changed:
		when = runlane.Cron(k.cron)
	}
	s := runlane.Schedule{ID: modelScheduleID, When: when, Misfire: k.misfire, Overlap: k.overlap}
	s.Call = d.tasks[modelScheduled].With(payload{})
	if k.singleton {
		s.Call = modelSingleton.With(payload{})
	}
	return s
}

// modelSingleton is a second definition of the task, with a key.
var modelSingleton = runlane.NewTask(modelScheduled, &runlane.TaskOptions[payload]{
	SingletonKey: func(payload) string { return onlyKey }, IdempotencyTTL: time.Hour,
})

// next is the first fire after an instant, zero for none.
func (k *modelScheduleKind) next(after time.Time, changed bool) time.Time {
	if k.once > 0 {
		if at := modelBeginning.Add(k.once); at.After(after) {
			return at
		}
		return time.Time{}
	}
	every := k.every
	if changed {
		every = k.then
	}
	return after.Add(every - after.Sub(k.anchor(every))%every)
}

// anchor is a fire at or before the beginning.
func (k *modelScheduleKind) anchor(every time.Duration) time.Time {
	return modelBeginning.Add(k.offset - every)
}

// modelSchedule is the record as it must be, and the outcomes of the occurrences.
type modelSchedule struct {
	kind     *modelScheduleKind
	record   runlane.ScheduleRecord
	known    bool // there is a record
	changed  bool // the definition that the record was evaluated with
	became   []modelOccurrence
	active   *modelRun // of the last occurrence that made one
	touched  bool      // since the last comparison
	sequence int
}

// modelOccurrence is a fire time, and its run if it has one: its id is computed, and not known before it is listed.
type modelOccurrence struct {
	runlane.Occurrence

	run *modelRun
}

// due are the fires that have come since the last one, and since the last look at these times, which found nothing left to do. Other
// times than the record's count from the opening of their program on, or the last pause that it saw.
func (s *modelSchedule) due(m *model, d *modelDeployment) (from time.Time, fires []time.Time) {
	marks := []time.Time{s.record.RegisteredAt, s.record.LastFire, s.record.LastEvaluated}
	if s.changed != d.changed && s.kind.once == 0 {
		marks = []time.Time{s.record.RegisteredAt, s.record.LastFire, d.opened, d.sawPause}
	}
	from = slices.MaxFunc(marks, time.Time.Compare)
	for at := s.kind.next(from, d.changed); !at.IsZero() && !at.After(m.now); at = s.kind.next(at, d.changed) {
		fires = append(fires, at)
	}
	return from, fires
}

func (s *modelSchedule) register(m *model, d *modelDeployment) {
	s.known, s.changed = true, d.changed
	s.record = runlane.ScheduleRecord{ID: modelScheduleID, RegisteredAt: m.now, LastEvaluated: m.now}
}

// note writes that nothing was due, now and then.
func (s *modelSchedule) note(m *model) {
	if m.now.Sub(s.record.LastEvaluated) >= time.Hour {
		s.record.LastEvaluated = m.now
	}
}

func (s *modelSchedule) evaluate(m *model, d *modelDeployment) {
	s.touched = true
	if !s.known {
		s.register(m, d)
		return
	}
	if s.record.Paused {
		d.sawPause = m.now
		return
	}
	from, fires := s.due(m, d)
	if s.changed != d.changed && s.kind.once == 0 {
		s.changed, s.record.LastEvaluated = d.changed, from
	}
	if len(fires) == 0 {
		s.note(m)
		return
	}
	active := len(s.before(m)) > 0
	missed := runlane.SkippedMisfire
	if s.kind.overlap == runlane.OverlapQueueLatest {
		if active {
			s.record.PendingFire = fires[len(fires)-1]
			return
		}
		if s.record.PendingFire.After(s.record.LastFire) {
			missed = runlane.SkippedOverlap
		}
	}
	var skipped []time.Time
	for i, at := range fires {
		if !s.onTime(m, fires, i) {
			skipped = append(skipped, at)
			continue
		}
		s.skip(skipped, missed)
		skipped = nil
		s.fire(m, d, at)
	}
	s.skip(skipped, missed)
}

// onTime applies the policy for missed occurrences.
func (s *modelSchedule) onTime(m *model, fires []time.Time, i int) bool {
	late, newer := m.now.Sub(fires[i]), len(fires)-1-i
	switch misfire := s.kind.misfire; misfire.Policy {
	case runlane.MisfireSkip:
		return late <= 5*time.Minute
	case runlane.MisfireCatchUp:
		return newer < misfire.Limit && late <= misfire.Window
	default:
		return newer == 0
	}
}

// skip records occurrences in a row as one.
func (s *modelSchedule) skip(fires []time.Time, reason runlane.SkipReason) {
	if len(fires) == 0 {
		return
	}
	o := runlane.Occurrence{ScheduleID: modelScheduleID, FireTime: fires[len(fires)-1], Skipped: reason}
	if len(fires) > 1 {
		o.First, o.Count = fires[0], len(fires)
	}
	s.became = append(s.became, modelOccurrence{Occurrence: o})
	s.record.LastFire = o.FireTime
}

// fire makes the run of an occurrence, unless something stands in its way.
func (s *modelSchedule) fire(m *model, d *modelDeployment, at time.Time) {
	for _, run := range s.before(m) {
		switch s.kind.overlap {
		case runlane.OverlapForbid:
			s.skip([]time.Time{at}, runlane.SkippedOverlap)
			return
		case runlane.OverlapReplace:
			_ = m.cancel(d, run) // it is active
		default:
		}
	}
	c := s.call(d)
	c.source.FireTime = at
	if m.holderOf(c.task.id, c.options.SingletonKey) != nil {
		s.skip([]time.Time{at}, runlane.SkippedSingleton)
		return
	}
	s.sequence++
	run := m.create(c, runlane.RunID("unnamed"+time.Duration(s.sequence).String()))
	s.became = append(s.became, modelOccurrence{runlane.Occurrence{ScheduleID: modelScheduleID, FireTime: at}, run})
	s.active, s.record.LastFire = run, at
}

// before are the active runs that an overlap policy minds: the last occurrence's, and those triggered by hand.
func (s *modelSchedule) before(m *model) (active []*modelRun) {
	if s.active != nil && s.active.Status.Active() {
		active = append(active, s.active)
	}
	for _, id := range s.record.ManualRunIDs {
		if run := m.runs[id]; run != nil && run.Status.Active() {
			active = append(active, run)
		}
	}
	return active
}

// byHand notes a run that is triggered by hand, where a policy minds such runs. Ended ones go; of ten, one that was pruned goes first,
// then the oldest.
func (s *modelSchedule) byHand(m *model, d *modelDeployment, id runlane.RunID) {
	if s.kind.overlap == "" {
		return
	}
	s.touched = true
	if !s.known {
		s.register(m, d)
	}
	kept := slices.DeleteFunc(slices.Clone(s.record.ManualRunIDs), func(id runlane.RunID) bool {
		return m.runs[id] != nil && !m.runs[id].Status.Active()
	})
	for len(kept) >= 10 {
		goes := max(0, slices.IndexFunc(kept, func(id runlane.RunID) bool { return m.runs[id] == nil }))
		kept = slices.Delete(kept, goes, goes+1)
	}
	kept = append(kept, id)
	s.record.ManualRunIDs = kept
}

// call is what the schedule triggers.
func (s *modelSchedule) call(d *modelDeployment) *modelCall {
	c := &modelCall{d: d, task: taskOf(modelScheduled)}
	c.source = runlane.Source{Type: runlane.SourceSchedule, ScheduleID: modelScheduleID}
	if s.kind.singleton {
		c.options.SingletonKey = onlyKey
	}
	return c
}

// resume records what came due during a pause as one skip.
func (s *modelSchedule) resume(m *model, d *modelDeployment) {
	if !s.known || !s.record.Paused {
		return
	}
	s.touched = true
	_, fires := s.due(m, d)
	s.skip(fires, runlane.SkippedPaused)
	s.changed = d.changed
	s.record.Paused, s.record.PauseReason, s.record.LastEvaluated = false, "", m.now
}

// pause registers a schedule that no tick has registered yet.
func (s *modelSchedule) pause(m *model, d *modelDeployment, reason string) {
	s.touched = true
	if !s.known {
		s.register(m, d)
	}
	s.record.Paused, s.record.PauseReason = true, reason
}
