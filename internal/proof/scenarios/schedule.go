package scenarios

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
)

func scheduleScenarios() []scenario {
	return append(manualScheduleScenarios(), []scenario{
		{"the first tick registers a schedule and fires nothing from before", needsSchedules, scheduleRegisters, false},
		{"an occurrence makes one run, however many ticks see it", needsSchedules, scheduleFiresOnce, false},
		{
			"a tick that dies with an occurrence is followed by one that makes the same run",
			needsSchedules,
			scheduleDies,
			false,
		},
		{
			"misfire latest runs the last occurrence and records the others as one skip",
			needsSchedules,
			scheduleLatest,
			false,
		},
		{"misfire skip runs what is late by its tolerance at most", needsSchedules, scheduleSkips, false},
		{"misfire catch up runs what is missed, within limit and window", needsSchedules, scheduleCatchesUp, false},
		{"overlap forbid skips while the last run is active", needsSchedules, scheduleForbids, false},
		{"overlap replace cancels the last run", needsSchedules, scheduleReplaces, false},
		{
			"overlap queue latest fires the last occurrence when the run before ends",
			needsSchedules,
			scheduleQueuesLatest,
			false,
		},
		{
			"overlap queue latest runs one at a time, however late it is by then",
			needsSchedules,
			scheduleQueuesOneOfMany,
			false,
		},
		{"a held singleton key is a recorded skip", needsSchedules, scheduleSingleton, false},
		{"the runs of a schedule take no idempotency key", needsSchedules, scheduleNoIdempotency, false},
		{
			"a paused schedule fires nothing, and what came due is one skip when it resumes",
			needsSchedules,
			schedulePauses,
			false,
		},
		{"trigger now makes a run beside the schedule's times", needsSchedules, scheduleTriggersNow, false},
		{"once fires once, and never when it was past already", needsSchedules, scheduleOnce, false},
		{"a changed definition applies from the opening of its program on", needsSchedules, scheduleChanges, false},
		{
			"changed times lose nothing while a program that has the old ones still ticks",
			needsSchedules,
			scheduleRollsOut,
			false,
		},
		{"a schedule on a bounded queue waits for its slot", needsSchedules, scheduleBounded, false},
		{"schedules are listed with their next time, known or not", needsSchedules, scheduleListed, false},
	}...)
}

func needsSchedules(c lane.StorageCapabilities) bool {
	return c.KeepsSchedules && c.ClaimsScheduleOccurrences && c.EnforcesSingleton && c.EnforcesIdempotency &&
		c.EnforcesQueueConcurrency
}

// every is a schedule of a minute.
func every(task *runlane.Task[jobPayload]) runlane.Schedule {
	return runlane.Schedule{ID: "minutely", When: runlane.Every(time.Minute), Call: task.With(jobPayload{N: 1})}
}

// scheduled opens a runtime with one schedule at a full hour, and registers it.
func scheduled(t *testing.T, h Harness, schedule runlane.Schedule, handlers ...runlane.Handler) *scene {
	t.Helper()
	s := openScene(t, h, core.Options{Handlers: handlers, Schedules: []runlane.Schedule{schedule}}, func(s *scene) {
		s.clock = NewClock(time.Now().UTC().Truncate(time.Hour))
	})
	s.wantScheduled(0, 0)
	return s
}

// wantScheduled ticks and compares what schedules made of it.
func (s *scene) wantScheduled(made, skipped int) {
	s.Helper()
	if result := s.tick(); result.Scheduled.Done != made || result.Scheduled.Skipped != skipped ||
		result.Scheduled.Failed != 0 {
		s.Fatalf("the tick scheduled %+v, want %d runs and %d skips", result.Scheduled, made, skipped)
	}
}

// occurrences are the schedule's occurrences, newest first.
func (s *scene) occurrences(skippedOnly bool) []runlane.Occurrence {
	s.Helper()
	var all []runlane.Occurrence
	for o, err := range s.rt.Schedules().Occurrences(s.Context(), "minutely", skippedOnly) {
		s.must(err)
		all = append(all, o)
	}
	if skippedOnly && len(all) == 0 {
		s.Fatal("no skip is recorded")
	}
	return all
}

// made are the runs of the schedule, oldest first.
func (s *scene) made() []*runlane.Run {
	s.Helper()
	var runs []*runlane.Run
	for _, o := range s.occurrences(false) {
		if o.RunID != "" {
			runs = append(runs, s.get(o.RunID))
		}
	}
	slices.Reverse(runs)
	if len(runs) == 0 {
		s.Fatalf("the schedule made no run: %+v", s.occurrences(false))
	}
	return runs
}

func (s *scene) wantSkip(o runlane.Occurrence, reason runlane.SkipReason, first, last time.Time, count int) {
	s.Helper()
	want := runlane.Occurrence{ScheduleID: "minutely", FireTime: last, Skipped: reason}
	if count > 1 {
		want.First, want.Count = first, count
	}
	if o != want {
		s.Fatalf("occurrence is %+v, want %+v", o, want)
	}
}

func scheduleRegisters(t *testing.T, h Harness) {
	task, handler := job("scenario.schedule", nil, succeed)
	s := scheduled(t, h, every(task), handler)
	hour := s.clock.Now()
	state, err := s.rt.Schedules().Get(t.Context(), "minutely")
	s.must(err)
	if !state.RegisteredAt.Equal(hour) || !state.Known || !state.Next.Equal(hour.Add(time.Minute)) ||
		!state.LastFire.IsZero() {
		t.Fatalf("state is %+v", state)
	}
	s.clock.Advance(59 * time.Second)
	s.wantScheduled(0, 0)
	if all := s.occurrences(false); len(all) != 0 {
		t.Fatalf("occurrences are %+v", all)
	}
}

func scheduleFiresOnce(t *testing.T, h Harness) {
	task, handler := job("scenario.schedule", nil, succeed)
	s := scheduled(t, h, every(task), handler)
	other, _ := s.second()
	fire := s.clock.Advance(time.Minute)
	done := make(chan error, 1)
	go func() { _, err := other.Tick(t.Context(), nil); done <- err }()
	s.tick()
	s.must(<-done)
	s.wantScheduled(0, 0)
	runs := s.made()
	if len(runs) != 1 {
		t.Fatalf("%d runs", len(runs))
	}
	run := runs[0]
	want := runlane.Source{Type: runlane.SourceSchedule, ScheduleID: "minutely", FireTime: fire}
	if run.Source != want || string(run.Payload) != `{"n":1}` || run.IdempotencyKey != "" {
		t.Fatalf("run is %+v", run)
	}
	s.wantStatus(s.execute(run), runlane.StatusSucceeded)
	state, err := s.rt.Schedules().Get(t.Context(), "minutely")
	s.must(err)
	if !state.LastFire.Equal(fire) || state.LastRunID != run.ID {
		t.Fatalf("state is %+v", state)
	}
}

func scheduleDies(t *testing.T, h Harness) {
	task, handler := job("scenario.schedule", nil, succeed)
	s := scheduled(t, h, every(task), handler)
	s.clock.Advance(time.Minute)
	s.storage.script(func() { // the process ends after the creation and does not complete the occurrence
		s.storage.onAppend = func(c *lane.AppendCommand, next func() (*lane.Commit, error)) (*lane.Commit, error) {
			_, err := next()
			return nil, errors.Join(err, &runlane.Error{
				Code:    runlane.ErrInternal,
				Message: "dead after " + string(c.Projected.ID),
			})
		}
	})
	if _, err := s.rt.Tick(t.Context(), nil); err == nil {
		t.Fatal("the tick lived on")
	}
	s.storage.script(func() { s.storage.onAppend = nil })
	s.wantScheduled(0, 1) // the claim still holds
	s.clock.Advance(59*time.Second + 999*time.Millisecond)
	s.wantScheduled(0, 1)
	s.clock.Advance(time.Millisecond)
	s.wantScheduled(2, 0) // the next occurrence is due as well, and the misfire policy would leave the first out
	runs := s.made()
	if len(runs) != 2 || !runs[0].CreatedAt.Before(runs[1].CreatedAt) {
		t.Fatalf("runs are %+v: the first was not the one that had been made", runs)
	}
	s.wantStatus(s.execute(runs[0]), runlane.StatusSucceeded)
}

func scheduleTriggersNow(t *testing.T, h Harness) {
	task, handler := job("scenario.schedule", nil, succeed)
	s := scheduled(t, h, every(task), handler)
	run, err := s.rt.Schedules().TriggerNow(t.Context(), "minutely", &core.ChangeOptions{Reason: "testing"})
	s.must(err)
	s.wantSent("at once", run)
	if run.Source.ScheduleID != "minutely" || !run.Source.FireTime.Equal(run.CreatedAt) || run.Meta["runlane.reason"] != "testing" {
		t.Fatalf("run is %+v", run)
	}
	s.wantStatus(s.execute(run), runlane.StatusSucceeded)
	if all := s.occurrences(false); len(all) != 0 {
		t.Fatalf("occurrences are %+v", all)
	}
	_, err = s.rt.Schedules().TriggerNow(t.Context(), "no.such", nil)
	s.wantCode(err, runlane.ErrScheduleNotFound)
	fires, err := s.rt.Schedules().Preview("minutely", 3)
	s.must(err)
	hour := s.clock.Now()
	if !slices.EqualFunc(
		fires,
		[]time.Time{hour.Add(time.Minute), hour.Add(2 * time.Minute), hour.Add(3 * time.Minute)},
		time.Time.Equal,
	) {
		t.Fatalf("preview is %v", fires)
	}
	_, err = s.rt.Schedules().Preview("minutely", 0)
	s.wantCode(err, runlane.ErrValidationFailed)
}

func scheduleOnce(t *testing.T, h Harness) {
	task, handler := job("scenario.schedule", nil, succeed)
	hour := time.Now().UTC().Truncate(time.Hour)
	past, soon := every(task), every(task)
	past.ID, past.When = "past", runlane.Once(hour.Add(-time.Minute))
	soon.When = runlane.Once(hour.Add(time.Minute))
	s := openScene(
		t,
		h,
		core.Options{Handlers: []runlane.Handler{handler}, Schedules: []runlane.Schedule{past, soon}},
		func(s *scene) {
			s.clock = NewClock(hour)
		},
	)
	s.wantScheduled(0, 0)
	s.clock.Advance(time.Minute)
	s.wantScheduled(1, 0)
	s.clock.Advance(time.Hour)
	s.wantScheduled(0, 0)
	state, err := s.rt.Schedules().Get(t.Context(), "minutely")
	s.must(err)
	if !state.Next.IsZero() {
		t.Fatalf("state is %+v", state)
	}
}

func scheduleChanges(t *testing.T, h Harness) {
	task, handler := job("scenario.schedule", nil, succeed)
	nightly := every(task)
	nightly.When = runlane.Every(time.Hour)
	s := scheduled(t, h, nightly, handler)
	hour := s.clock.Now()
	s.clock.Advance(time.Hour)
	s.wantScheduled(1, 0)
	s.clock.Advance(70 * time.Minute)
	s.wantScheduled(1, 0) // fires at 2:00, the tick is at 2:10
	before, err := s.rt.Schedules().Get(t.Context(), "minutely")
	s.must(err)

	// The new definition would have fired at 1:00, 1:35 and 2:10 too: it counts from 2:10 on, when its program opens.
	changed := every(task)
	changed.When = runlane.Every(35 * time.Minute).From(hour.Add(-10 * time.Minute)) // 0:25, 1:00, 1:35, 2:10, 2:45
	s.options.Schedules = []runlane.Schedule{changed}
	l, err := lane.New(s.lent(), s.faults.transport(s.transport), nil)
	s.must(err)
	s.rt = s.open(l)
	s.wantScheduled(0, 0)
	s.clock.Advance(35 * time.Minute)
	s.wantScheduled(1, 0)
	after, err := s.rt.Schedules().Get(t.Context(), "minutely")
	s.must(err)
	if !after.RegisteredAt.Equal(before.RegisteredAt) || after.DefinitionHash == before.DefinitionHash ||
		!after.LastFire.Equal(hour.Add(165*time.Minute)) {
		t.Fatalf("before %+v, after %+v", before, after)
	}
}

func scheduleRollsOut(t *testing.T, h Harness) {
	task, handler := job("scenario.schedule", nil, succeed)
	program := func(cron string) []runlane.Schedule {
		nightly := every(task)
		nightly.When = runlane.Cron(cron)
		return []runlane.Schedule{nightly}
	}
	s := openScene(t, h, core.Options{Handlers: []runlane.Handler{handler}, Schedules: program("10,20 * * * *")},
		func(s *scene) { s.clock = NewClock(time.Now().UTC().Truncate(time.Hour)) })
	hour := s.clock.Now()
	old := s.rt
	tick := func(rt *caller) {
		s.rt = rt
		s.tick()
		s.clock.Advance(30 * time.Second)
	}
	tick(old)
	tick(old)
	s.clock.Advance(14 * time.Minute) // the program opens at 0:15, and has another process from 0:25 on
	s.options.Schedules = program("5,19,25,30 * * * *")
	changed, _ := s.second()
	for s.clock.Now().Before(hour.Add(25 * time.Minute)) {
		tick(changed)
		tick(old)
	}
	s.clock.Advance(10 * time.Second)
	changed, _ = s.second()
	for s.clock.Now().Before(hour.Add(33 * time.Minute)) {
		tick(old)
		tick(changed)
	}
	var minutes []int
	for _, o := range s.occurrences(false) {
		minutes = append(minutes, o.FireTime.Minute())
	}
	if !slices.Equal(minutes, []int{30, 25, 20, 19, 10}) {
		t.Errorf("fired at %v", minutes)
	}
}

func scheduleBounded(t *testing.T, h Harness) {
	task, handler := limited(1, nil, succeed)
	s := scheduled(t, h, every(task), handler)
	holder := s.trigger(task.With(jobPayload{N: 2}), nil)
	s.wantSent("the holder", holder)
	s.clock.Advance(time.Minute)
	s.wantScheduled(1, 0)
	run := s.made()[0]
	s.wantHistory(run.ID, "created")
	s.settle()
	s.execute(holder)
	s.wantSent("its slot", run)
	s.wantStatus(s.execute(run), runlane.StatusSucceeded)
}

func scheduleListed(t *testing.T, h Harness) {
	task, handler := job("scenario.schedule", nil, succeed)
	s := scheduled(t, h, every(task), handler)
	other := every(task)
	other.ID = "another"
	s.options.Schedules = []runlane.Schedule{other}
	l, err := lane.New(s.lent(), s.faults.transport(s.transport), nil)
	s.must(err)
	s.rt = s.open(l)
	var ids []runlane.ScheduleID
	for state, err := range s.rt.Schedules().List(t.Context()) {
		s.must(err)
		ids = append(ids, state.ID)
		if state.Known != (state.ID == "another") || state.Next.IsZero() == state.Known {
			t.Errorf("state is %+v", state)
		}
	}
	if !slices.Equal(ids, []runlane.ScheduleID{"another", "minutely"}) {
		t.Fatalf("listed %v", ids)
	}
	for _, err := range s.rt.Schedules().Occurrences(context.Background(), "", false) {
		s.wantCode(err, runlane.ErrValidationFailed)
	}
}
