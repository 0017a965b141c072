package scenarios

import (
	"slices"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
)

func scheduleLatest(t *testing.T, h Harness) {
	task, handler := job("scenario.schedule", nil, succeed)
	s := scheduled(t, h, every(task), handler)
	hour := s.clock.Now()
	s.clock.Advance(10*time.Minute + time.Second)
	s.wantScheduled(1, 1)
	all := s.occurrences(false)
	if len(all) != 2 || !all[0].FireTime.Equal(hour.Add(10*time.Minute)) || all[0].RunID == "" {
		t.Fatalf("occurrences are %+v", all)
	}
	s.wantSkip(all[1], runlane.SkippedMisfire, hour.Add(time.Minute), hour.Add(9*time.Minute), 9)
}

func scheduleSkips(t *testing.T, h Harness) {
	task, handler := job("scenario.schedule", nil, succeed)
	schedule := every(task)
	schedule.Misfire = runlane.Misfire{Policy: runlane.MisfireSkip, Tolerance: 90 * time.Second}
	s := scheduled(t, h, schedule, handler)
	hour := s.clock.Now()
	s.clock.Advance(10*time.Minute + 30*time.Second)
	s.wantScheduled(2, 1) // late by 90 s, and by 30 s
	s.wantSkip(s.occurrences(true)[0], runlane.SkippedMisfire, hour.Add(time.Minute), hour.Add(8*time.Minute), 8)
}

func scheduleCatchesUp(t *testing.T, h Harness) {
	for name, row := range map[string]struct {
		misfire       runlane.Misfire
		made, skipped int
	}{
		"all":    {runlane.Misfire{Policy: runlane.MisfireCatchUp}, 10, 0},
		"limit":  {runlane.Misfire{Policy: runlane.MisfireCatchUp, Limit: 3}, 3, 1},
		"window": {runlane.Misfire{Policy: runlane.MisfireCatchUp, Window: 5 * time.Minute}, 6, 1},
	} {
		task, handler := job("scenario.schedule", nil, succeed)
		schedule := every(task)
		schedule.Misfire = row.misfire
		s := scheduled(t, h, schedule, handler)
		s.clock.Advance(10 * time.Minute)
		t.Log(name)
		s.wantScheduled(row.made, row.skipped)
		runs := s.made()
		if !slices.IsSortedFunc(runs, func(a, b *runlane.Run) int {
			return a.Source.FireTime.Compare(b.Source.FireTime)
		}) || len(runs) != row.made {
			t.Fatalf("%s: runs are %+v", name, runs)
		}
	}
}

func scheduleForbids(t *testing.T, h Harness) {
	task, handler := job("scenario.schedule", nil, succeed)
	schedule := every(task)
	schedule.Overlap = runlane.OverlapForbid
	s := scheduled(t, h, schedule, handler)
	hour := s.clock.Now()
	s.clock.Advance(time.Minute)
	s.wantScheduled(1, 0)
	s.clock.Advance(time.Minute)
	s.wantScheduled(0, 1)
	s.wantSkip(s.occurrences(true)[0], runlane.SkippedOverlap, time.Time{}, hour.Add(2*time.Minute), 1)
	s.execute(s.made()[0])
	s.clock.Advance(time.Minute)
	s.wantScheduled(1, 0)
}

func scheduleReplaces(t *testing.T, h Harness) {
	task, handler := job("scenario.schedule", nil, succeed)
	schedule := every(task)
	schedule.Overlap = runlane.OverlapReplace
	s := scheduled(t, h, schedule, handler)
	s.clock.Advance(time.Minute)
	s.wantScheduled(1, 0)
	s.clock.Advance(time.Minute)
	s.wantScheduled(1, 0)
	runs := s.made()
	s.wantStatus(runs[0], runlane.StatusCancelled)
	s.wantStatus(s.execute(runs[1]), runlane.StatusSucceeded)
}

func scheduleQueuesLatest(t *testing.T, h Harness) {
	task, handler := job("scenario.schedule", nil, succeed)
	schedule := every(task)
	schedule.Overlap = runlane.OverlapQueueLatest
	s := scheduled(t, h, schedule, handler)
	hour := s.clock.Now()
	s.clock.Advance(time.Minute)
	s.wantScheduled(1, 0)
	for minute := 2; minute <= 4; minute++ {
		s.clock.Advance(time.Minute)
		s.wantScheduled(0, 0)
		state, err := s.rt.Schedules().Get(t.Context(), "minutely")
		s.must(err)
		if want := hour.Add(time.Duration(minute) * time.Minute); !state.PendingFire.Equal(want) {
			t.Fatalf("pending is %v, want %v", state.PendingFire, want)
		}
	}
	s.execute(s.made()[0])
	s.wantScheduled(1, 1)
	all := s.occurrences(false)
	if !all[0].FireTime.Equal(hour.Add(4*time.Minute)) || all[0].RunID == "" {
		t.Fatalf("occurrences are %+v", all)
	}
	s.wantSkip(all[1], runlane.SkippedOverlap, hour.Add(2*time.Minute), hour.Add(3*time.Minute), 2)
}

// Two occurrences are on time at one tick. The second is too late when the run of the first has ended.
func scheduleQueuesOneOfMany(t *testing.T, h Harness) {
	task, handler := job("scenario.schedule", nil, succeed)
	schedule := every(task)
	schedule.When = runlane.Cron("2,3 * * * *")
	schedule.Overlap = runlane.OverlapQueueLatest
	schedule.Misfire = runlane.Misfire{Policy: runlane.MisfireSkip, Tolerance: 2 * time.Minute}
	s := scheduled(t, h, schedule, handler)
	s.clock.Advance(3 * time.Minute)
	s.wantScheduled(1, 0)
	s.clock.Advance(10 * time.Minute)
	s.wantScheduled(0, 0)
	s.execute(s.made()[0])
	s.wantScheduled(1, 0)
}

func scheduleSingleton(t *testing.T, h Harness) {
	task, handler := job(
		"scenario.schedule",
		&runlane.TaskOptions[jobPayload]{SingletonKey: func(jobPayload) string { return "only" }},
		succeed,
	)
	s := scheduled(t, h, every(task), handler)
	holder := s.trigger(task.With(jobPayload{N: 2}), nil)
	fire := s.clock.Advance(time.Minute)
	s.wantScheduled(0, 1)
	s.wantSkip(s.occurrences(true)[0], runlane.SkippedSingleton, time.Time{}, fire, 1)
	s.execute(holder)
	s.clock.Advance(time.Minute)
	s.wantScheduled(1, 0)
}

func scheduleNoIdempotency(t *testing.T, h Harness) {
	task, handler := job(
		"scenario.schedule",
		&runlane.TaskOptions[jobPayload]{IdempotencyKey: func(jobPayload) string { return "always the same" }},
		succeed,
	)
	s := scheduled(t, h, every(task), handler)
	for range 3 {
		s.clock.Advance(time.Minute)
		s.wantScheduled(1, 0)
	}
	if runs := s.made(); len(runs) != 3 {
		t.Fatalf("%d runs of three nights", len(runs))
	}
}

func schedulePauses(t *testing.T, h Harness) {
	task, handler := job("scenario.schedule", nil, succeed)
	s := scheduled(t, h, every(task), handler)
	hour := s.clock.Now()
	s.clock.Advance(time.Minute)
	s.wantScheduled(1, 0)
	s.must(s.rt.Schedules().Pause(t.Context(), "minutely", &core.ChangeOptions{Reason: "holiday"}))
	s.clock.Advance(3 * time.Minute)
	s.wantScheduled(0, 0)
	state, err := s.rt.Schedules().Get(t.Context(), "minutely")
	s.must(err)
	if !state.Paused || state.PauseReason != "holiday" {
		t.Fatalf("state is %+v", state)
	}
	s.must(s.rt.Schedules().Resume(t.Context(), "minutely", nil))
	s.wantSkip(s.occurrences(true)[0], runlane.SkippedPaused, hour.Add(2*time.Minute), hour.Add(4*time.Minute), 3)
	s.wantScheduled(0, 0)
	s.clock.Advance(time.Minute)
	s.wantScheduled(1, 0)
	s.must(s.rt.Schedules().Resume(t.Context(), "minutely", nil))
	s.wantCode(s.rt.Schedules().Pause(t.Context(), "no.such", nil), runlane.ErrScheduleNotFound)
}
