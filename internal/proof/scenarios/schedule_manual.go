package scenarios

import (
	"slices"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

func manualScheduleScenarios() []scenario {
	return []scenario{
		{"overlap forbid skips while a run triggered by hand is active", needsSchedules, scheduleForbidsManual, false},
		{"overlap replace cancels every run triggered by hand", needsSchedules, scheduleReplacesManual, false},
		{"overlap queue latest waits for runs triggered by hand", needsSchedules, scheduleQueuesBehindManual, false},
		{
			"an occurrence sees a run that was triggered after its tick began",
			needsSchedules,
			scheduleSeesLateManual,
			false,
		},
		{
			"a trigger by hand that dies before its run is there holds nothing up",
			needsSchedules,
			scheduleManualDies,
			false,
		},
		{
			"a run triggered by hand after the occurrence's own is not before it",
			needsSchedules,
			scheduleManualAfterOwn,
			false,
		},
	}
}

// overlapping opens a runtime with a schedule of that policy.
func overlapping(t *testing.T, h Harness, overlap runlane.Overlap) *scene {
	t.Helper()
	task, handler := job("scenario.schedule", nil, succeed)
	schedule := every(task)
	schedule.Overlap = overlap
	return scheduled(t, h, schedule, handler)
}

func (s *scene) byHand() *runlane.Run {
	s.Helper()
	run, err := s.rt.Schedules().TriggerNow(s.Context(), "minutely", nil)
	s.must(err)
	return run
}

// endManual executes what was triggered by hand, also what a caller made without an answer.
func (s *scene) endManual() {
	s.Helper()
	state, err := s.rt.Schedules().Get(s.Context(), "minutely")
	s.must(err)
	for _, id := range state.ManualRunIDs {
		run, err := s.rt.Runs().Get(s.Context(), id)
		if runlane.CodeOf(err) == runlane.ErrRunNotFound {
			continue
		}
		s.must(err)
		if run.Status.Active() {
			s.wantStatus(s.execute(run), runlane.StatusSucceeded)
		}
	}
}

func scheduleForbidsManual(t *testing.T, h Harness) {
	s := overlapping(t, h, runlane.OverlapForbid)
	hour := s.clock.Now()
	s.byHand()
	last := s.byHand()
	s.clock.Advance(time.Minute)
	s.wantScheduled(0, 1)
	s.wantSkip(s.occurrences(true)[0], runlane.SkippedOverlap, time.Time{}, hour.Add(time.Minute), 1)
	s.wantStatus(s.execute(last), runlane.StatusSucceeded)
	s.clock.Advance(time.Minute)
	s.wantScheduled(0, 1) // the first is active still
	s.endManual()
	s.clock.Advance(time.Minute)
	s.wantScheduled(1, 0)

	// A run triggered by hand does not hide the occurrence's, which goes on when it has ended.
	s.byHand()
	s.endManual()
	s.clock.Advance(time.Minute)
	s.wantScheduled(0, 1)
	s.execute(s.made()[0])
	s.clock.Advance(time.Minute)
	s.wantScheduled(1, 0)
}

func scheduleReplacesManual(t *testing.T, h Harness) {
	s := overlapping(t, h, runlane.OverlapReplace)
	first := s.byHand()
	s.clock.Advance(time.Minute)
	s.wantScheduled(1, 0)
	s.wantStatus(s.get(first.ID), runlane.StatusCancelled)
	before := []*runlane.Run{s.made()[0], s.byHand(), s.byHand()}
	s.clock.Advance(time.Minute)
	s.wantScheduled(1, 0)
	for _, run := range before {
		s.wantStatus(s.get(run.ID), runlane.StatusCancelled)
	}
	s.wantStatus(s.execute(s.made()[1]), runlane.StatusSucceeded)
}

func scheduleQueuesBehindManual(t *testing.T, h Harness) {
	s := overlapping(t, h, runlane.OverlapQueueLatest)
	hour := s.clock.Now()
	s.byHand()
	for minute := 1; minute <= 2; minute++ {
		s.clock.Advance(time.Minute)
		s.wantScheduled(0, 0)
		state, err := s.rt.Schedules().Get(t.Context(), "minutely")
		s.must(err)
		if want := hour.Add(
			time.Duration(minute) * time.Minute,
		); !state.PendingFire.Equal(want) || len(state.ManualRunIDs) == 0 {
			t.Fatalf("state is %+v, want pending %v", state, want)
		}
	}
	s.endManual()
	s.wantScheduled(1, 1)
	s.wantSkip(s.occurrences(true)[0], runlane.SkippedOverlap, time.Time{}, hour.Add(time.Minute), 1)
}

// The tick has listed all records when the schedule is triggered by hand.
func scheduleSeesLateManual(t *testing.T, h Harness) {
	s := overlapping(t, h, runlane.OverlapForbid)
	other, _ := s.second()
	fire := s.clock.Advance(time.Minute)
	var manual *runlane.Run
	s.storage.script(func() {
		s.storage.onListed = func() {
			if manual != nil {
				return
			}
			var err error
			if manual, err = other.Schedules().TriggerNow(t.Context(), "minutely", nil); err != nil {
				t.Error(err)
			}
		}
	})
	s.wantScheduled(0, 1)
	s.storage.script(func() { s.storage.onListed = nil })
	s.wantSkip(s.occurrences(true)[0], runlane.SkippedOverlap, time.Time{}, fire, 1)
	s.wantStatus(s.get(manual.ID), runlane.StatusQueued)
}

func scheduleManualDies(t *testing.T, h Harness) {
	s := overlapping(t, h, runlane.OverlapForbid)
	s.storage.script(func() {
		s.storage.onAppend = func(*lane.AppendCommand, func() (*lane.Commit, error)) (*lane.Commit, error) {
			return nil, &runlane.Error{Code: runlane.ErrInternal, Message: "dead before the creation"}
		}
	})
	if run, err := s.rt.Schedules().TriggerNow(t.Context(), "minutely", nil); err == nil {
		t.Fatalf("the trigger lived on: %+v", run)
	}
	s.storage.script(func() { s.storage.onAppend = nil })
	state, err := s.rt.Schedules().Get(t.Context(), "minutely")
	s.must(err)
	if len(state.ManualRunIDs) == 0 {
		t.Fatalf("the run was to be created before it was noted: %+v", state)
	}
	s.clock.Advance(time.Minute)
	s.wantScheduled(1, 0)

	// The id without a run is kept in the record with the next one, whose creation may be under way.
	run := s.byHand()
	after, err := s.rt.Schedules().Get(t.Context(), "minutely")
	s.must(err)
	if !slices.Contains(after.ManualRunIDs, state.ManualRunIDs[0]) || !slices.Contains(after.ManualRunIDs, run.ID) {
		t.Fatalf("noted are %v, before %v", after.ManualRunIDs, state.ManualRunIDs)
	}
}

// A tick makes the occurrence's run and dies; then the schedule is triggered by hand, and the next tick completes the
// occurrence.
func scheduleManualAfterOwn(t *testing.T, h Harness) {
	for _, overlap := range []runlane.Overlap{runlane.OverlapForbid, runlane.OverlapReplace} {
		s := overlapping(t, h, overlap)
		fire := s.clock.Advance(time.Minute)
		s.storage.script(func() {
			s.storage.onAppend = func(_ *lane.AppendCommand, next func() (*lane.Commit, error)) (*lane.Commit, error) {
				if _, err := next(); err != nil {
					return nil, err
				}
				return nil, &runlane.Error{Code: runlane.ErrInternal, Message: "dead after the creation"}
			}
		})
		if _, err := s.rt.Tick(t.Context(), nil); err == nil {
			t.Fatal("the tick lived on")
		}
		s.storage.script(func() { s.storage.onAppend = nil })
		manual := s.byHand()
		s.clock.Advance(59 * time.Second)
		s.wantScheduled(0, 1) // the claim still holds
		s.clock.Advance(time.Second)
		s.tick()
		all := s.occurrences(false)
		if len(all) == 0 {
			t.Fatalf("%s: no occurrence was completed", overlap)
		}
		if own := all[len(all)-1]; !own.FireTime.Equal(fire) || own.RunID == "" {
			t.Fatalf("%s: the occurrence whose run was there is %+v", overlap, own)
		}
		if overlap == runlane.OverlapForbid {
			s.wantStatus(s.get(manual.ID), runlane.StatusQueued)
		}
	}
}
