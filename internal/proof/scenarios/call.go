package scenarios

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
)

func callScenarios() []scenario {
	return []scenario{
		{"a run calls another and is called again when that has ended", needsMail, callResumes, false},
		{"a run that calls many is resumed once, by the last", needsMail, callMany, false},
		{"a called run that did not succeed is a permanent error of its kind", needsMail, callFails, false},
		{"an end between look and suspension calls the handler again", needsMail, callBetween, false},
		{"a cancellation ends the runs that were called, and those that they called", needsMail, callCancelled, false},
		{"a called run that was made after the cancellation is cancelled by its claim", needsMail, callLate, false},
		{"a tick tells the end that a process died with", needsMail, callTicked, false},
		{"a call and a signal are waited for at once", needsMail, callAndSignal, false},
		{"other payloads under the name of a call are refused", needsMail, callChanged, false},
		{"bad calls are refused before anything is written", needsMail, callInvalid, false},
		{"a task that calls itself ends at the bound of depth", needsMail, callItself, false},
		{"a runtime calls, waits and decodes", needsMail, callOutside, false},
		{"a call resumes a run of a bounded queue with a slot", needsBoth(needsMail, needsSlots), callBounded, false},
	}
}

var (
	double = runlane.NewFunc[int, int]("scenario.double", nil)
	errOdd = errors.New("odd")
)

func doubling() runlane.Handler {
	return double.Handle(func(_ context.Context, _ *runlane.Attempt, n int) (int, error) {
		if n < 0 {
			return 0, runlane.Permanent(&runlane.Error{Code: "negative", Message: "it is negative", Cause: errOdd})
		}
		return 2 * n, nil
	})
}

// summing is a run that calls double for each number and keeps the sum.
func summing(id runlane.TaskID, o *runlane.TaskOptions[jobPayload], got *heardOf, numbers ...int) (
	*runlane.Task[jobPayload], runlane.Handler,
) {
	return job(id, o, func(ctx context.Context, a *runlane.Attempt) error {
		results, err := runlane.CallAll(ctx, a, double, numbers, &runlane.CallOptions{Name: "numbers"})
		if err != nil {
			got.add("wait")
			return err
		}
		for _, r := range results {
			if r.Err != nil {
				got.add("%s", runlane.CodeOf(r.Err))
				return r.Err
			}
			got.add("%d", r.Value)
		}
		return nil
	})
}

// children are the runs that a run has called.
func (s *scene) children(of runlane.RunID, n int) (found []*runlane.Run) {
	s.Helper()
	s.until(fmt.Sprintf("%d children are listed", n), func() bool {
		page, err := s.rt.Runs().List(s.Context(), &core.ListOptions{RunFilter: core.RunFilter{SourceRunID: of}})
		if err != nil || len(page.Items) != n {
			return false
		}
		found = nil
		for _, summary := range page.Items {
			found = append(found, s.get(summary.ID))
		}
		return true
	})
	return found
}

func callResumes(t *testing.T, h Harness) {
	got := &heardOf{}
	task, handler := summing("scenario.call", nil, got, 4)
	s := newScene(t, h, handler, doubling())
	run := s.execute(s.trigger(task.With(jobPayload{}), &runlane.TriggerOptions{Priority: 5}))
	s.wantStatus(run, runlane.StatusReleased)
	if !run.Waiting.Has(runlane.WaitingChildren) || run.Waiting.Need != 1 {
		t.Errorf("it waits for %+v", run.Waiting)
	}
	child := s.children(run.ID, 1)[0]
	if child.Source.Type != runlane.SourceCall || child.Source.Call != "numbers" || child.IdempotencyKey != "" ||
		child.Priority != run.Priority {
		t.Errorf("its source is %+v, its priority %d", child.Source, child.Priority)
	}
	s.wantStatus(s.execute(child), runlane.StatusSucceeded)
	s.wantStatus(s.get(run.ID), runlane.StatusQueued)
	s.wantStatus(s.execute(s.get(run.ID)), runlane.StatusSucceeded)
	s.wantTold(got, "wait", "8")
	s.wantHistory(run.ID, "created delivery_requested lease_claimed started released resumed delivery_requested "+
		"lease_claimed started succeeded")
	body := s.history(run.ID)[5].Body.(*runlane.RunResumed)
	if body.By != runlane.WaitingChildren || body.Name != "numbers" || body.ID != string(child.ID) {
		t.Errorf("resumed by %+v", body)
	}
}

func callMany(t *testing.T, h Harness) {
	got := &heardOf{}
	task, handler := summing("scenario.call-many", nil, got, 1, 2, 3)
	s := newScene(t, h, handler, doubling())
	run := s.execute(s.trigger(task.With(jobPayload{}), nil))
	for _, child := range s.children(run.ID, 3) {
		s.wantStatus(s.get(run.ID), runlane.StatusReleased)
		s.execute(child)
	}
	s.wantStatus(s.execute(s.get(run.ID)), runlane.StatusSucceeded)
	s.wantTold(got, "wait", "2", "4", "6")
	if n := s.get(run.ID).Counters.Attempts; n != 2 {
		t.Errorf("%d attempts", n)
	}
}

func callFails(t *testing.T, h Harness) {
	var told error
	task, handler := job("scenario.call-fails", nil, func(ctx context.Context, a *runlane.Attempt) error {
		_, err := double.Call(ctx, a, -1, nil)
		told = err
		return err
	})
	cancelled, other := summing("scenario.call-cancelled", nil, &heardOf{}, 1)
	s := newScene(t, h, handler, other, doubling())
	run := s.execute(s.trigger(task.With(jobPayload{}), nil))
	child := s.children(run.ID, 1)[0]
	s.wantStatus(s.execute(child), runlane.StatusFailed)
	run = s.execute(s.get(run.ID))
	s.wantStatus(run, runlane.StatusFailed)
	if !errors.Is(told, runlane.ErrRunFailed) || !errors.Is(told, runlane.ErrorCode("negative")) ||
		run.Failure.Code != runlane.ErrRunFailed {
		t.Errorf("told %v; failed with %+v", told, run.Failure)
	}
	retry, err := s.rt.Runs().Retry(s.Context(), run.ID, nil)
	s.must(err)
	if again := s.children(s.execute(retry).ID, 1)[0]; again.ID == child.ID || again.EffectID() != string(child.ID) {
		t.Errorf("the call of a retry made %+v", again.Source)
	}
	run = s.execute(s.trigger(cancelled.With(jobPayload{}), nil))
	_, err = s.rt.Runs().Cancel(s.Context(), s.children(run.ID, 1)[0].ID, nil)
	s.must(err)
	run = s.execute(s.get(run.ID))
	if run.Status != runlane.StatusFailed || run.Failure.Code != runlane.ErrRunCancelled {
		t.Errorf("%s: %+v", run.Status, run.Failure)
	}
}

func callBetween(t *testing.T, h Harness) {
	got, s := &heardOf{}, (*scene)(nil)
	task, handler := job("scenario.call-between", nil, func(ctx context.Context, a *runlane.Attempt) error {
		n, err := double.Call(ctx, a, 4, nil)
		if err == nil {
			got.add("%d", n)
			return nil
		}
		got.add("wait")
		if len(got.answers) == 1 {
			s.wantStatus(s.execute(s.children(a.Run.ID, 1)[0]), runlane.StatusSucceeded)
		}
		return err
	})
	s = newScene(t, h, handler, doubling())
	run := s.execute(s.trigger(task.With(jobPayload{}), nil))
	s.wantStatus(run, runlane.StatusSucceeded)
	s.wantTold(got, "wait", "8")
	s.wantHistory(run.ID, "created delivery_requested lease_claimed started succeeded")
}

func callCancelled(t *testing.T, h Harness) {
	got := &heardOf{}
	inner := runlane.NewFunc[jobPayload, struct{}]("scenario.call-inner", nil)
	innerHandler := inner.Handle(func(ctx context.Context, a *runlane.Attempt, _ jobPayload) (struct{}, error) {
		_, err := double.Call(ctx, a, 1, nil)
		return struct{}{}, err
	})
	task, handler := job("scenario.call-outer", nil, func(ctx context.Context, a *runlane.Attempt) error {
		_, err := inner.Call(ctx, a, jobPayload{}, nil)
		return err
	})
	s := newScene(t, h, handler, innerHandler, doubling())
	run := s.execute(s.trigger(task.With(jobPayload{}), nil))
	child := s.execute(s.children(run.ID, 1)[0])
	grandchild := s.children(child.ID, 1)[0]
	_, err := s.rt.Runs().Cancel(s.Context(), run.ID, nil)
	s.must(err)
	for _, id := range []runlane.RunID{run.ID, child.ID, grandchild.ID} {
		s.wantStatus(s.get(id), runlane.StatusCancelled)
	}
	if told := s.tick().Told; told.Done != 0 || told.Failed != 0 {
		t.Errorf("something was left to the tick: %+v", told)
	}
	s.wantTold(got)
}

func callLate(t *testing.T, h Harness) {
	task, handler := summing("scenario.call-late", nil, &heardOf{}, 1)
	s := newScene(t, h, handler, doubling())
	run := s.execute(s.trigger(task.With(jobPayload{}), nil))
	child := s.children(run.ID, 1)[0]
	s.change(run.ID, &runlane.RunCancelled{}) // and its process died
	s.ignored(child, core.IgnoredCancellation)
	s.wantStatus(s.get(child.ID), runlane.StatusCancelled)
}

func callTicked(t *testing.T, h Harness) {
	got := &heardOf{}
	task, handler := summing("scenario.call-ticked", nil, got, 1)
	cancelled, other := summing("scenario.call-ticked-down", nil, got, 2)
	s := newScene(t, h, handler, other, doubling())
	run := s.execute(s.trigger(task.With(jobPayload{}), nil))
	child := s.children(run.ID, 1)[0]
	s.change(child.ID, &runlane.RunCancelled{})
	s.wantStatus(s.get(run.ID), runlane.StatusReleased)
	down := s.execute(s.trigger(cancelled.With(jobPayload{}), nil))
	below := s.children(down.ID, 1)[0]
	s.change(down.ID, &runlane.RunCancelled{})
	s.clock.Advance(2 * time.Minute)
	s.until("the ends are told", func() bool {
		s.tick()
		return s.get(run.ID).Status == runlane.StatusQueued && s.get(below.ID).Status == runlane.StatusCancelled
	})
	s.execute(s.get(run.ID))
	s.wantTold(got, "wait", "wait", string(runlane.ErrRunCancelled))
	s.until("no end is untold", func() bool {
		for _, id := range []runlane.RunID{child.ID, down.ID, below.ID} {
			read, err := s.storage.Storage.ReadCalls(s.Context(), &lane.CallQuery{RunKey: s.key(id)})
			if err != nil || read.NotificationPending {
				return false
			}
		}
		return true
	})
}

func callAndSignal(t *testing.T, h Harness) {
	got := &heardOf{}
	task, handler := job("scenario.call-and-signal", nil, func(ctx context.Context, a *runlane.Attempt) error {
		n, err := double.Call(ctx, a, 4, nil)
		d, other := approved.Wait(ctx, a, nil)
		got.add("%d %s", n, d.By)
		return errors.Join(err, other)
	})
	s := newScene(t, h, handler, doubling())
	run := s.execute(s.trigger(task.With(jobPayload{}), nil))
	if !run.Waiting.Has(runlane.WaitingChildren) || !run.Waiting.Has(runlane.WaitingSignal) {
		t.Errorf("it waits for %+v", run.Waiting)
	}
	s.signal(run.ID, approved.With(decision{By: "ada"}), nil)
	s.wantStatus(s.execute(s.get(run.ID)), runlane.StatusReleased)
	s.execute(s.children(run.ID, 1)[0])
	s.wantStatus(s.execute(s.get(run.ID)), runlane.StatusSucceeded)
	s.wantTold(got, "0 ", "0 ada", "8 ada")
}

func callChanged(t *testing.T, h Harness) {
	n := 1
	task, handler := job("scenario.call-changed", nil, func(ctx context.Context, a *runlane.Attempt) error {
		_, err := double.Call(ctx, a, n, nil)
		n++
		return err
	})
	s := newScene(t, h, handler, doubling())
	run := s.execute(s.trigger(task.With(jobPayload{}), nil))
	s.execute(s.children(run.ID, 1)[0])
	run = s.execute(s.get(run.ID))
	if run.Failure.Code != runlane.ErrValidationFailed || !strings.Contains(run.Failure.Message, "other payloads") {
		t.Errorf("%s: %+v", run.Status, run.Failure)
	}
}

func callInvalid(t *testing.T, h Harness) {
	refused := map[string]error{}
	text := runlane.NewFunc[string, int]("scenario.call-text", nil)
	texts := []string{"a", strings.Repeat("x", runlane.MaxPayloadBytes)}
	single := runlane.NewFunc[int, int]("scenario.call-single", &runlane.TaskOptions[int]{
		SingletonKey: func(int) string { return "one" }, // another run may hold it
	})
	var s *scene
	task, handler := job("scenario.call-invalid", nil, func(ctx context.Context, a *runlane.Attempt) error {
		call := func(what, name string, numbers ...int) {
			_, err := runlane.CallAll(ctx, a, double, numbers, &runlane.CallOptions{Name: name})
			refused[what] = err
		}
		if results, err := runlane.CallAll(ctx, a, double, nil, nil); len(results) != 0 || err != nil {
			t.Errorf("no runs: %v, %v", results, err)
		}
		call("too many runs", "a", make([]int, runlane.MaxCalled+1)...)
		call("a bad name", "a:b", 1)
		call("a long name", strings.Repeat("a", 65), 1)
		_, refused["two tasks"] = a.CallRuns(ctx, runlane.CallRequest{
			CallOptions: runlane.CallOptions{Name: "a"},
			Calls:       []runlane.Call{double.With(1), summed.With(2)},
		})
		_, refused["a payload that is too large"] = runlane.CallAll(ctx, a, text, texts, nil)
		_, refused["a singleton key"] = single.Call(ctx, a, 1, nil)
		_, refused["a runtime within a handler"] = double.Call(ctx, s.rt.Runtime, 1, nil)
		_ = a.Do(ctx, "step", func(ctx context.Context) error {
			_, refused["within a step"] = double.Call(ctx, a, 1, nil)
			return nil
		})
		_ = a.Do(ctx, "taken", func(context.Context) error { return nil })
		call("a step's name", "taken", 1)
		return nil
	})
	s = newScene(t, h, handler, doubling())
	run := s.execute(s.trigger(task.With(jobPayload{}), nil))
	s.wantStatus(run, runlane.StatusSucceeded)
	_, refused["by the runtime"] = runlane.CallAll(s.Context(), s.rt.Runtime, text, texts, nil)
	made, err := s.rt.Runs().List(s.Context(), &core.ListOptions{
		RunFilter: core.RunFilter{TaskID: "scenario.call-text"},
	})
	s.must(err)
	if len(made.Items) != 0 {
		t.Errorf("made %+v", made.Items)
	}
	for what, err := range refused {
		if runlane.CodeOf(err) != runlane.ErrValidationFailed {
			t.Errorf("%s: %v", what, err)
		}
	}
	read, err := s.storage.Storage.ReadCalls(s.Context(), &lane.CallQuery{RunKey: s.key(run.ID)})
	s.must(err)
	if len(read.Calls) != 0 || len(refused) != 10 {
		t.Errorf("%d calls were begun, %d refused", len(read.Calls), len(refused))
	}
}

var summed = runlane.NewTask[int]("scenario.summed", nil)

func callOutside(t *testing.T, h Harness) {
	s := newScene(t, h, doubling())
	stop := s.work(nil)
	n, err := double.Call(s.Context(), s.rt.Runtime, 21, nil)
	if n != 42 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	_, err = double.Call(s.Context(), s.rt.Runtime, -1, nil)
	if !errors.Is(err, runlane.ErrorCode("negative")) {
		t.Error(err)
	}
	s.must(stop())
}

func callBounded(t *testing.T, h Harness) {
	got := &heardOf{}
	options := &runlane.TaskOptions[jobPayload]{Queue: runlane.Queue{Name: "scenario-calls", Concurrency: 1}}
	task, handler := summing("scenario.call-bounded", options, got, 3)
	s := newScene(t, h, handler, doubling())
	run := s.execute(s.trigger(task.With(jobPayload{}), nil))
	s.execute(s.children(run.ID, 1)[0])
	s.until("it has a slot", func() bool {
		if s.get(run.ID).Status == runlane.StatusQueued {
			return true
		}
		s.tick()
		return false
	})
	s.wantStatus(s.execute(s.get(run.ID)), runlane.StatusSucceeded)
	s.wantTold(got, "wait", "6")
}
