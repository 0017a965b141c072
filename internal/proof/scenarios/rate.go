package scenarios

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
)

func rateScenarios() []scenario {
	return []scenario{
		{"runs beyond the rate get their wakeups one interval apart", needsRates, rateSpreads, false},
		{"beyond two minutes runs wait in line, and each start gives out the next ticket", needsRates, rateHandsOn, false},
		{"a tick gives out tickets where no run starts", needsRates, rateTicked, false},
		{"wakeups that come late together start one interval apart", needsRates, rateLate, false},
		{"a worker holds each key's rate, and is not behind it", needsRates, rateWorks, true},
	}
}

func needsRates(c lane.StorageCapabilities) bool { return needsSlots(c) && c.EnforcesQueueRate }

func paced(t *testing.T, h Harness, rate runlane.Rate) (*scene, *runlane.Task[jobPayload]) {
	task, handler := job("scenario.rated", &runlane.TaskOptions[jobPayload]{
		Queue: runlane.Queue{Name: "rated", Rate: rate},
	}, succeed)
	return newScene(t, h, handler), task
}

// wantDelayed demands the delayed wakeup of one run, and moves the clock to its time.
func (s *scene) wantDelayed(run *runlane.Run, wait time.Duration) {
	s.Helper()
	sent := s.transport.TakeDelayed()
	if len(sent) != 1 || sent[0].RunID != run.ID || sent[0].Delay != wait {
		s.Fatalf("delayed wakeups: %+v, want one of %s in %s", sent, run.ID, wait)
	}
}

func rateSpreads(t *testing.T, h Harness) {
	s, task := paced(t, h, runlane.PerMinute(6))
	first := s.trigger(task.With(jobPayload{}), nil)
	s.wantSent("the first starts at once", first)
	second := s.trigger(task.With(jobPayload{}), nil)
	s.wantDelayed(second, 10*time.Second)
	third := s.trigger(task.With(jobPayload{}), nil)
	s.wantDelayed(third, 20*time.Second)
	s.wantStatus(s.execute(first), runlane.StatusSucceeded)
	s.clock.Advance(10 * time.Second)
	s.ignored(third, core.IgnoredNotDue)
	s.wantDelayed(third, 10*time.Second)
	s.wantStatus(s.execute(second), runlane.StatusSucceeded)
	s.clock.Advance(10 * time.Second)
	s.wantStatus(s.execute(third), runlane.StatusSucceeded)
	s.wantSent("nothing else")
}

func rateHandsOn(t *testing.T, h Harness) {
	s, task := paced(t, h, runlane.PerMinute(1))
	var runs []*runlane.Run
	for range 5 {
		runs = append(runs, s.trigger(task.With(jobPayload{}), nil))
		s.clock.Advance(time.Millisecond)
	}
	if n := len(s.transport.TakeDelayed()); n != 2 {
		t.Fatalf("%d delayed wakeups, want two within two minutes", n)
	}
	s.wantSent("the first", runs[0])
	s.wantHistory(runs[3].ID, "created")
	s.wantUntil("in line", s.explains("in line", s.rt, runs[3].ID, core.WaitRate), runs[0].CreatedAt.Add(3*time.Minute))
	ticketed := s.explains("with a ticket", s.rt, runs[2].ID, core.WaitRate)
	s.wantUntil("with a ticket", ticketed, runs[0].CreatedAt.Add(2*time.Minute))
	s.settle()
	s.execute(runs[0])
	s.clock.Advance(time.Minute)
	s.execute(runs[1])
	s.wantDelayed(s.get(runs[3].ID), 2*time.Minute-5*time.Millisecond)
	s.wantHistory(runs[3].ID, "created delivery_requested")
	s.wantHistory(runs[4].ID, "created")
	s.clock.Advance(time.Minute)
	s.execute(runs[2])
	s.clock.Advance(time.Minute)
	s.wantStatus(s.execute(runs[3]), runlane.StatusSucceeded)
}

func rateTicked(t *testing.T, h Harness) {
	s, task := paced(t, h, runlane.PerMinute(1))
	s.execute(s.trigger(task.With(jobPayload{}), nil))
	for range 3 {
		s.trigger(task.With(jobPayload{}), nil)
		s.clock.Advance(time.Millisecond)
	}
	last := s.trigger(task.With(jobPayload{}), nil)
	s.transport.TakeDelayed()
	s.tick()
	if sent := s.transport.TakeDelayed(); len(sent) != 0 {
		t.Fatalf("a tick gave out tickets that are too far ahead: %+v", sent)
	}
	s.clock.Advance(130 * time.Second) // no wakeup came: no run started since
	s.settle()
	s.tick()
	if sent := s.transport.TakeDelayed(); len(sent) != 2 {
		t.Fatalf("%d tickets of a tick, want those of the two runs in line", len(sent))
	}
	s.wantHistory(last.ID, "created delivery_requested")
}

func rateLate(t *testing.T, h Harness) {
	s, task := paced(t, h, runlane.PerMinute(6))
	first, second := s.trigger(task.With(jobPayload{}), nil), s.trigger(task.With(jobPayload{}), nil)
	s.transport.TakeDelayed()
	s.clock.Advance(time.Minute)
	s.wantStatus(s.execute(first), runlane.StatusSucceeded)
	s.ignored(second, core.IgnoredNoRate)
	s.wantDelayed(second, 10*time.Second)
	s.clock.Advance(10 * time.Second)
	s.wantStatus(s.execute(second), runlane.StatusSucceeded)
}

func rateWorks(t *testing.T, h Harness) {
	const keys, each = 5, 20
	var mu sync.Mutex
	starts := map[string][]time.Time{}
	task, handler := job("scenario.rated", &runlane.TaskOptions[jobPayload]{
		Queue: runlane.Queue{Name: "rated", Rate: runlane.PerMinute(10)},
	}, func(_ context.Context, a *runlane.Attempt) error {
		mu.Lock()
		defer mu.Unlock()
		starts[a.Run.ConcurrencyKey] = append(starts[a.Run.ConcurrencyKey], a.Run.StartedAt)
		return nil
	})
	s := ownTransportWith(t, h, core.Options{Handlers: []runlane.Handler{handler}, World: &core.World{}})
	began := time.Now()
	for i := range keys * each {
		key := string(rune('a' + i%keys))
		s.trigger(task.With(jobPayload{N: i}), &runlane.TriggerOptions{ConcurrencyKey: key})
	}
	stop := s.work(&core.WorkOptions{Concurrency: 4})
	s.must(wait(s.Context(), 3*time.Minute))
	s.must(stop())
	for key, at := range starts {
		for i := range at {
			if i > 0 && at[i].Sub(at[i-1]) < 6*time.Second {
				t.Errorf("key %s: start %d is only %s after the one before", key, i, at[i].Sub(at[i-1]))
			}
			if late := at[i].Sub(began) - time.Duration(i)*6*time.Second; late > time.Second {
				t.Errorf("key %s: start %d is %s late", key, i, late)
			}
		}
		if len(at) != each {
			t.Errorf("key %s: %d starts, want %d", key, len(at), each)
		}
	}
}
