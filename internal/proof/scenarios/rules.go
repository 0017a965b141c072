package scenarios

import (
	"context"
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
)

// ruleScenarios are the rules about what events and runs say of where they come from.
func ruleScenarios() []scenario {
	return []scenario{
		{name: "every event names who did it", needs: needsSchedules, prove: ruleActors},
		{name: "every way to make a run names its source", needs: needsSchedules, prove: ruleSources},
	}
}

func ruleActors(t *testing.T, h Harness) {
	task, handler := job("scenario.actors", nil, succeed)
	s := scheduled(t, h, every(task), handler)
	system, operator := runlane.SystemActor, runlane.OperatorActor

	executed := s.trigger(task.With(jobPayload{}), nil)
	s.execute(executed)
	s.wantActors(executed.ID, map[runlane.EventType]runlane.Actor{
		runlane.EventCreated:           system,
		runlane.EventDeliveryRequested: system,
		runlane.EventLeaseClaimed:      s.worker(executed.ID),
		runlane.EventStarted:           s.worker(executed.ID),
		runlane.EventSucceeded:         s.worker(executed.ID),
	})

	stopped := s.trigger(task.With(jobPayload{}), nil)
	s.die(stopped.ID)
	_, err := s.rt.Runs().Cancel(t.Context(), stopped.ID, nil)
	s.must(err)
	s.clock.Advance(2 * time.Minute)
	s.tick() // its worker is gone, and the schedule has come due
	s.wantStatus(s.get(stopped.ID), runlane.StatusCancelled)
	s.wantActors(stopped.ID, map[runlane.EventType]runlane.Actor{
		runlane.EventCreated:               system,
		runlane.EventDeliveryRequested:     system,
		runlane.EventLeaseClaimed:          {Type: runlane.ActorWorker, ID: "dead"},
		runlane.EventStarted:               {Type: runlane.ActorWorker, ID: "dead"},
		runlane.EventCancellationRequested: operator,
		runlane.EventCancelled:             system,
	})

	made, _ := s.firstMade()
	byItself := runlane.Actor{Type: runlane.ActorSchedule, ID: "minutely"}
	s.wantActors(made.ID, map[runlane.EventType]runlane.Actor{
		runlane.EventCreated: byItself, runlane.EventDeliveryRequested: byItself,
	})
}

// firstMade is the schedule's first run and its fire time. Without faults, the last tick made it. A tick that lost the
// answer of its claim delays the occurrence until the claim is over, after a minute.
func (s *scene) firstMade() (*runlane.Run, time.Time) {
	s.Helper()
	for range repeats {
		for _, o := range s.occurrences(false) {
			if o.RunID != "" {
				return s.get(o.RunID), o.FireTime
			}
		}
		if s.faults == nil {
			break
		}
		s.clock.Advance(2 * time.Minute)
		s.tick()
	}
	s.Fatalf("the schedule made no run: %+v", s.occurrences(false))
	return nil, time.Time{}
}

// worker is the owner of the run's lease, as its claim says.
func (s *scene) worker(id runlane.RunID) runlane.Actor {
	s.Helper()
	for _, record := range s.history(id) {
		if claim, ok := record.Body.(*runlane.RunLeaseClaimed); ok {
			return runlane.Actor{Type: runlane.ActorWorker, ID: claim.Lease.WorkerID}
		}
	}
	s.Fatalf("no worker claimed %s", id)
	return runlane.Actor{}
}

func (s *scene) wantActors(id runlane.RunID, want map[runlane.EventType]runlane.Actor) {
	s.Helper()
	seen := map[runlane.EventType]bool{}
	for _, record := range s.history(id) {
		if wanted, ok := want[record.Type()]; !ok || record.Actor != wanted {
			s.Errorf("%s is of %+v, want %+v", record.Type(), record.Actor, wanted)
		}
		seen[record.Type()] = true
	}
	if len(seen) != len(want) {
		s.Errorf("the run has events of the types %v", seen)
	}
}

func ruleSources(t *testing.T, h Harness) {
	outcome := error(nil)
	task, handler := job("scenario.sources", nil, func(context.Context, *runlane.Attempt) error { return outcome })
	s := scheduled(t, h, every(task), handler)
	triggered := s.execute(s.trigger(task.With(jobPayload{}), nil))
	trace := map[string]string{"traceparent": "00-1"}
	outcome = runlane.Permanent(errors.New("no"))
	broken := s.execute(s.trigger(task.With(jobPayload{}), &runlane.TriggerOptions{TraceCarrier: trace}))
	rerun, err := s.rt.Runs().Rerun(t.Context(), triggered.ID, nil)
	s.must(err)
	retried, err := s.rt.Runs().Retry(t.Context(), broken.ID, &core.ChangeOptions{Reason: "again"})
	s.must(err)
	s.clock.Advance(time.Minute)
	s.tick()
	made, fire := s.firstMade()
	for _, c := range []struct {
		run  *runlane.Run
		want runlane.Source
	}{
		{triggered, runlane.Source{Type: runlane.SourceTrigger}},
		{rerun, runlane.Source{Type: runlane.SourceRerun, RunID: triggered.ID, CreatedAt: triggered.CreatedAt}},
		{retried, runlane.Source{
			Type: runlane.SourceManualRetry, RunID: broken.ID, CreatedAt: broken.CreatedAt, OriginID: broken.ID,
		}},
		{made, runlane.Source{Type: runlane.SourceSchedule, ScheduleID: "minutely", FireTime: fire}},
	} {
		if stored := s.get(c.run.ID); stored.Source != c.want {
			t.Errorf("source is %+v, want %+v", stored.Source, c.want)
		}
	}
	if stored := s.get(retried.ID); !maps.Equal(stored.TraceCarrier, trace) {
		t.Errorf("a retried run has the trace %v", stored.TraceCarrier)
	}
}
