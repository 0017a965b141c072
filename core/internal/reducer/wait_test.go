package reducer_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core/internal/reducer"
)

// waitFor is what a run of these tests waits for.
func waitFor(until time.Time) *runlane.Waiting {
	return &runlane.Waiting{
		For: []runlane.WaitingFor{runlane.WaitingSignal, runlane.WaitingTime}, Names: []string{"approval"}, Until: until,
	}
}

// A wait is that of the last event: whatever comes next ends it.
func TestProject_EveryLaterEventEndsAWait(t *testing.T) {
	t.Parallel()
	until := noon.Add(time.Hour)
	running := stateNamed(t, "running")
	wait := waitFor(until.Add(300 * time.Microsecond)) // which is brought to whole milliseconds
	released := project(t, running, at(noon, &runlane.RunReleased{Attempt: 3, ResumeAt: until, Wait: wait}))
	if d := cmp.Diff(waitFor(until), released.Waiting); d != "" {
		t.Fatalf("(-want +got)\n%s", d)
	}
	if released.Waiting == wait {
		t.Error("the projection shares the event's wait")
	}
	if again := project(t, running, at(noon, &runlane.RunReleased{Attempt: 3, ResumeAt: until})); again.Waiting != nil {
		t.Errorf("a release waits for %+v", again.Waiting)
	}
	for _, next := range []runlane.Event{
		at(noon.Add(time.Minute), &runlane.RunResumed{By: runlane.WaitingSignal, Name: "approval", ID: "1"}),
		at(until, delivery(until)),
		at(until, claimed(until.Add(time.Minute))),
		at(noon, &runlane.RunCancelled{}),
	} {
		if after := project(t, released, next); after.Waiting != nil {
			t.Errorf("%s leaves the wait for %+v", next.Type(), after.Waiting)
		}
	}
	if released.Waiting == nil {
		t.Error("a later event changed the run that it was folded onto")
	}
	early := project(t, released, at(noon.Add(time.Minute), &runlane.RunResumed{By: runlane.WaitingSignal}))
	if !early.RunAt.Equal(noon.Add(time.Minute)) || early.Status != runlane.StatusReleased || early.Counters != released.Counters {
		t.Errorf("resumed: %+v", early)
	}
}

func TestProject_ARunMayBeMadeWithAWait(t *testing.T) {
	t.Parallel()
	wait := &runlane.Waiting{For: []runlane.WaitingFor{runlane.WaitingEnds}, Need: 2}
	made := delivery(runlane.FarMoment())
	made.Wait = wait
	run := project(t, nil, at(noon, created()), at(noon, made))
	if d := cmp.Diff(wait, run.Waiting); d != "" || run.Status != runlane.StatusScheduled || !run.RunAt.Equal(runlane.FarMoment()) {
		t.Fatalf("%s until %s, waits (-want +got)\n%s", run.Status, run.RunAt, d)
	}
}

func TestProject_WaitsThatDoNotFit_AreViolations(t *testing.T) {
	t.Parallel()
	begun := project(t, nil, at(noon, created()))
	at3 := stateNamed(t, "running")
	timed := delivery(noon.Add(time.Hour))
	timed.Wait = waitFor(noon.Add(time.Hour))
	now := delivery(noon)
	now.Wait = waitFor(noon)
	misdated := delivery(noon.Add(time.Hour))
	misdated.Wait = waitFor(noon.Add(time.Minute))
	for _, c := range []struct {
		name  string
		run   *runlane.Run
		event runlane.EventBody
		want  string
	}{
		{"no kind", at3, &runlane.RunReleased{Attempt: 3, ResumeAt: noon.Add(time.Hour), Wait: &runlane.Waiting{Until: noon.Add(time.Hour)}},
			"run.released, event 13: has no kind of wait"},
		{"another moment", at3, &runlane.RunReleased{Attempt: 3, ResumeAt: noon.Add(time.Hour), Wait: waitFor(noon.Add(time.Minute))},
			"run.released, event 13: waits until 2026-03-01T12:01:00.000Z and is due at 2026-03-01T13:00:00.000Z"},
		{"no limit and a moment", at3, &runlane.RunReleased{Attempt: 3, ResumeAt: noon.Add(time.Hour), Wait: waitFor(time.Time{})},
			"run.released, event 13: waits until 2286-11-20T17:46:39.999Z and is due at 2026-03-01T13:00:00.000Z"},
		{"a later request", stateNamed(t, "queued, due now"), timed,
			"run.delivery_requested, event 9: only the second event of a run that is made for later has a wait"},
		{"a creation for now", begun, now,
			"run.delivery_requested, event 2: only the second event of a run that is made for later has a wait"},
		{"a creation for another moment", begun, misdated,
			"run.delivery_requested, event 2: waits until 2026-03-01T12:01:00.000Z and is due at 2026-03-01T13:00:00.000Z"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			refuse(t, c.want, c.run, at(noon, c.event))
		})
	}
	if _, err := reducer.Project(begun, 1, at(noon, timed)); err != nil {
		t.Errorf("a creation for later: %v", err)
	}
}
