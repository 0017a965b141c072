package scenarios

import (
	"testing"

	"github.com/runlane/runlane-go"
)

// signalFirst sends answers whose ids and names are in another order than that in which they come.
func signalFirst(t *testing.T, h Harness) {
	send := func(s *scene, run *runlane.Run, signal *runlane.Signal[decision], by, id string) {
		s.signal(run.ID, signal.With(decision{By: by}), &runlane.SignalOptions{ID: id})
	}
	got := &heardOf{}
	task, handler := asking("scenario.signal-first", got, nil)
	s := newScene(t, h, handler)
	run := s.execute(s.trigger(task.With(jobPayload{}), nil))
	send(s, run, approved, "ada", "1")
	send(s, run, approved, "bob", "0") // before the attempt that the first one asked for
	s.wantStatus(s.execute(s.get(run.ID)), runlane.StatusSucceeded)
	early := s.trigger(task.With(jobPayload{}), nil)
	for _, id := range []string{"2", "1", "0"} { // before the wait
		send(s, early, approved, "eve "+id, id)
	}
	s.wantStatus(s.execute(s.get(early.ID)), runlane.StatusSucceeded)
	s.wantTold(got, "wait", "ada", "eve 2")

	either := &heardOf{}
	task, handler = several("scenario.signal-first-of", either, nil, runlane.WaitAny)
	s = newScene(t, h, handler)
	run = s.execute(s.trigger(task.With(jobPayload{}), nil))
	send(s, run, withdrawn, "ada", "1")
	send(s, run, approved, "bob", "0")
	send(s, run, withdrawn, "eve", "0")
	s.wantStatus(s.execute(s.get(run.ID)), runlane.StatusSucceeded)
	s.wantTold(either, "withdrawn ada")

	all := &heardOf{}
	task, handler = several("scenario.signal-first-of-all", all, nil, runlane.WaitAll)
	s = newScene(t, h, handler)
	run = s.execute(s.trigger(task.With(jobPayload{}), nil))
	send(s, run, withdrawn, "ada", "1")
	send(s, run, withdrawn, "bob", "0")
	send(s, run, approved, "eve", "1")
	send(s, run, approved, "bob", "0")
	s.wantStatus(s.execute(s.get(run.ID)), runlane.StatusSucceeded)
	s.wantTold(all, "approved eve", "withdrawn ada")
}

func signalAny(t *testing.T, h Harness) {
	got := &heardOf{}
	task, handler := several("scenario.signal-any", got, nil, runlane.WaitAny)
	s := newScene(t, h, handler)
	run := s.execute(s.trigger(task.With(jobPayload{}), nil))
	s.signal(run.ID, withdrawn.With(decision{By: "ada"}), nil)
	s.wantStatus(s.execute(s.get(run.ID)), runlane.StatusSucceeded)
	s.wantTold(got, "withdrawn ada")
}
