package scenarios

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

func needsMail(c lane.StorageCapabilities) bool { return c.SuspendsRuns }

func signalScenarios() []scenario {
	return []scenario{
		{"a signal ends the wait of a run, and its handler gets the body", needsMail, signalResumes, false},
		{"a signal before the wait is there", needsMail, signalEarly, false},
		{"a signal sent again changes nothing, and with another body is refused", needsMail, signalRepeated, false},
		{"a signal to a run that ended, or that is unknown, says so", needsMail, signalRefused, false},
		{"a wait for any of several goes on with the first", needsMail, signalAny, false},
		{"of several answers the one that came first counts", needsMail, signalFirst, false},
		{"a wait for all of several goes on with the last", needsMail, signalAll, false},
		{"a time limit is remembered, and a late answer changes nothing", needsMail, signalLimited, false},
		{"an answer to one round is not the next round's", needsMail, signalRounds, false},
		{"a signal answers one wait, whose name is that of its inbox", needsMail, signalOneWait, false},
		{"what answered a wait is the same in every attempt", needsMail, signalRemembered, false},
		{"answers that fit into no record together are the same in every attempt", needsMail, signalLarge, false},
		{"a signal between look and suspension calls the handler again", needsMail, signalBetween, false},
		{"a suspension that a handler swallows is one, with a warning", needsMail, signalSwallowed, false},
		{"two goroutines wait at once, and either signal resumes", needsMail, signalBranches, false},
		{"a run that asks several questions shows each", needsMail, signalQuestions, false},
		{"many names are waited for as anything", needsMail, signalAnything, false},
		{"a signal resumes a run of a bounded queue with a slot", needsBoth(needsMail, needsSlots), signalBounded, false},
		{"bad waits and signals are refused before anything is written", needsMail, signalInvalid, false},
		{"the signals beside a run are bounded", needsMail, signalBound, true},
		{"what a run waits for, and an answer by a token, is taken when its mail is full", needsMail, signalAwaited, true},
		{"a token answers once, and no forged one does", needsMail, signalToken, false},
		{"a body that does not fit the schema of its wait is refused, and nothing is stored", needsMail, signalSchema, false},
	}
}

type decision struct {
	By string `json:"by"`
}

var (
	approved  = runlane.NewSignal[decision]("approved")
	withdrawn = runlane.NewSignal[decision]("withdrawn")
)

// heardOf is what a handler of these scenarios was told, in order.
type heardOf struct{ answers []string }

func (s *heardOf) add(format string, args ...any) {
	s.answers = append(s.answers, fmt.Sprintf(format, args...))
}

func (s *scene) wantTold(got *heardOf, want ...string) {
	s.Helper()
	if strings.Join(got.answers, "; ") != strings.Join(want, "; ") {
		s.Errorf("the handler was told %q, want %q", got.answers, want)
	}
}

// asking is a task that waits for an approval.
func asking(
	id runlane.TaskID, got *heardOf, options *runlane.WaitOptions,
) (*runlane.Task[jobPayload], runlane.Handler) {
	return job(id, nil, func(ctx context.Context, a *runlane.Attempt) error {
		d, err := approved.Wait(ctx, a, options)
		switch {
		case runlane.Suspended(err):
			got.add("wait")
		case err != nil:
			got.add("%s", runlane.CodeOf(err))
		default:
			got.add("%s", d.By)
		}
		return err
	})
}

func (s *scene) signal(id runlane.RunID, value runlane.SignalValue, options *runlane.SignalOptions) {
	s.Helper()
	s.must(s.rt.Signal(s.Context(), id, value, options))
}

func signalResumes(t *testing.T, h Harness) {
	got := &heardOf{}
	task, handler := asking("scenario.signal", got, &runlane.WaitOptions{Prompt: "Approve?"})
	s := newScene(t, h, handler)
	run := s.execute(s.trigger(task.With(jobPayload{}), nil))
	s.wantStatus(run, runlane.StatusReleased)
	if !run.Waiting.Has(runlane.WaitingInput) || run.Waiting.Prompt != "Approve?" {
		t.Errorf("it waits for %+v", run.Waiting)
	}
	s.signal(run.ID, withdrawn.With(decision{By: "another"}), nil)
	s.wantStatus(s.get(run.ID), runlane.StatusReleased)
	s.signal(run.ID, approved.With(decision{By: "ada"}), &runlane.SignalOptions{
		ID: "hook 1", Actor: runlane.Actor{Type: runlane.ActorOperator, ID: "ada"},
	})
	resumed := s.get(run.ID)
	s.wantStatus(resumed, runlane.StatusQueued)
	s.wantStatus(s.execute(resumed), runlane.StatusSucceeded)
	s.wantTold(got, "wait", "ada")
	s.wantHistory(run.ID, "created delivery_requested lease_claimed started released resumed delivery_requested "+
		"lease_claimed started succeeded")
	event := s.history(run.ID)[5]
	if body := event.Body.(*runlane.RunResumed); body.By != runlane.WaitingInput || body.Name != "approved" ||
		body.ID != "hook 1" || event.Actor.ID != "ada" {
		t.Errorf("resumed by %+v, %+v", event.Actor, body)
	}
}

func signalEarly(t *testing.T, h Harness) {
	got := &heardOf{}
	task, handler := asking("scenario.signal-early", got, nil)
	s := newScene(t, h, handler)
	run := s.trigger(task.With(jobPayload{}), nil)
	s.signal(run.ID, approved.With(decision{By: "ada"}), nil)
	s.wantStatus(s.execute(run), runlane.StatusSucceeded)
	s.wantTold(got, "ada")
}

func signalRepeated(t *testing.T, h Harness) {
	got := &heardOf{}
	task, handler := asking("scenario.signal-again", got, nil)
	s := newScene(t, h, handler)
	run := s.execute(s.trigger(task.With(jobPayload{}), nil))
	once := &runlane.SignalOptions{ID: "1"}
	for range 3 {
		s.signal(run.ID, approved.With(decision{By: "ada"}), once)
	}
	err := s.rt.Signal(t.Context(), run.ID, approved.With(decision{By: "bob"}), once)
	if !errors.Is(err, runlane.ConflictSignal) {
		t.Errorf("another body: %v", err)
	}
	s.wantStatus(s.execute(s.get(run.ID)), runlane.StatusSucceeded)
	s.signal(run.ID, approved.With(decision{By: "ada"}), once) // also after the end: its first sending was heard
	s.wantTold(got, "wait", "ada")
}

func signalRefused(t *testing.T, h Harness) {
	task, handler := job("scenario.signal-late", nil, succeed)
	s := newScene(t, h, handler)
	run := s.execute(s.trigger(task.With(jobPayload{}), nil))
	e := s.wantCode(s.rt.Signal(t.Context(), run.ID, approved.With(decision{}), nil), runlane.ErrRunEnded)
	if !errors.Is(e, runlane.ErrValidationFailed) || e.RunID != run.ID {
		t.Errorf("%v", e)
	}
	s.wantCode(s.rt.Signal(t.Context(), "run_absent", approved.With(decision{}), nil), runlane.ErrRunNotFound)
}

// several is a task that waits for two signals, of which ending one or all end the wait.
func several(
	id runlane.TaskID, got *heardOf, options *runlane.WaitOptions,
	wait func(context.Context, *runlane.Attempt, *runlane.WaitOptions, ...runlane.Case) error,
) (*runlane.Task[jobPayload], runlane.Handler) {
	return job(id, nil, func(ctx context.Context, a *runlane.Attempt) error {
		var yes, no *decision
		err := wait(ctx, a, options, approved.Into(&yes), withdrawn.Into(&no))
		if yes != nil {
			got.add("approved %s", yes.By)
		}
		if no != nil {
			got.add("withdrawn %s", no.By)
		}
		if err != nil && !runlane.Suspended(err) {
			got.add("%s", runlane.CodeOf(err))
		}
		return err
	})
}

func signalAll(t *testing.T, h Harness) {
	got := &heardOf{}
	task, handler := several("scenario.signal-all", got, nil, runlane.WaitAll)
	s := newScene(t, h, handler)
	run := s.execute(s.trigger(task.With(jobPayload{}), nil))
	s.signal(run.ID, withdrawn.With(decision{By: "ada"}), nil)
	s.signal(run.ID, withdrawn.With(decision{By: "bob"}), nil)
	s.wantStatus(s.get(run.ID), runlane.StatusReleased)
	s.signal(run.ID, approved.With(decision{By: "eve"}), nil)
	s.wantStatus(s.execute(s.get(run.ID)), runlane.StatusSucceeded)
	if len(got.answers) != 2 || got.answers[0] != "approved eve" {
		t.Errorf("told %q", got.answers)
	}

	partly := &heardOf{}
	limited := &runlane.WaitOptions{Timeout: time.Minute}
	task, handler = several("scenario.signal-partly", partly, limited, runlane.WaitAll)
	s = newScene(t, h, handler)
	run = s.trigger(task.With(jobPayload{}), nil)
	s.signal(run.ID, withdrawn.With(decision{By: "ada"}), nil)
	s.execute(run)
	s.clock.Advance(time.Minute)
	s.tick()
	s.wantStatus(s.execute(s.get(run.ID)), runlane.StatusFailed)
	s.wantTold(partly, "withdrawn ada", string(runlane.ErrWaitTimedOut))
}

func signalLimited(t *testing.T, h Harness) {
	got := &heardOf{}
	task, handler := job("scenario.signal-limited", nil, func(ctx context.Context, a *runlane.Attempt) error {
		d, err := approved.Wait(ctx, a, &runlane.WaitOptions{Timeout: time.Hour})
		if runlane.Suspended(err) {
			got.add("wait")
			return err
		}
		got.add("%s%s", d.By, runlane.CodeOf(err))
		if _, second := withdrawn.Wait(ctx, a, nil); second != nil {
			return second // so that there is another attempt
		}
		return err
	})
	s := newScene(t, h, handler)
	run := s.execute(s.trigger(task.With(jobPayload{}), nil))
	latest := runlane.UTCMillis(run.UpdatedAt.Add(time.Hour))
	if run.RunAt.After(latest) || run.Waiting.Until != run.RunAt {
		t.Errorf("it waits until %s, %+v", run.RunAt, run.Waiting)
	}
	resumed, err := s.rt.Runs().Resume(t.Context(), run.ID, nil) // looks again, and the limit does not begin anew
	s.must(err)
	s.clock.Advance(time.Minute)
	if again := s.execute(resumed); !again.RunAt.Equal(run.RunAt) {
		t.Errorf("the limit was %s, and is %s", run.RunAt, again.RunAt)
	}
	s.clock.Advance(time.Hour)
	s.signal(run.ID, approved.With(decision{By: "late"}), nil) // before any worker has looked
	s.tick()
	s.execute(s.get(run.ID))
	s.signal(run.ID, withdrawn.With(decision{By: "ada"}), nil)
	s.wantStatus(s.execute(s.get(run.ID)), runlane.StatusFailed)
	s.wantTold(got, "wait", "wait", string(runlane.ErrWaitTimedOut), string(runlane.ErrWaitTimedOut))
	if failure := s.get(run.ID).Failure; failure.Code != runlane.ErrWaitTimedOut {
		t.Errorf("it failed with %+v", failure)
	}
}

func signalRounds(t *testing.T, h Harness) {
	got := &heardOf{}
	task, handler := job("scenario.signal-rounds", nil, func(ctx context.Context, a *runlane.Attempt) error {
		for round := 1; ; round++ {
			d, err := approved.Named(fmt.Sprintf("approved/%d", round)).Wait(ctx, a, nil)
			if err != nil {
				return err
			}
			got.add("%d %s", round, d.By)
			if d.By == "ada" {
				return nil
			}
		}
	})
	s := newScene(t, h, handler)
	run := s.execute(s.trigger(task.With(jobPayload{}), nil))
	s.signal(run.ID, approved.Named("approved/1").With(decision{By: "bob"}), nil)
	s.signal(run.ID, approved.Named("approved/1").With(decision{By: "ada"}), nil) // too late for its round
	s.wantStatus(s.execute(s.get(run.ID)), runlane.StatusReleased)
	s.signal(run.ID, approved.Named("approved/2").With(decision{By: "ada"}), nil)
	s.wantStatus(s.execute(s.get(run.ID)), runlane.StatusSucceeded)
	s.wantTold(got, "1 bob", "1 bob", "2 ada")
}

func signalRemembered(t *testing.T, h Harness) {
	got := &heardOf{}
	options := &runlane.TaskOptions[jobPayload]{
		Retry: runlane.Retry{MaxAttempts: 3, Backoff: runlane.Fixed(time.Second)},
	}
	task, handler := job("scenario.signal-same", options, func(ctx context.Context, a *runlane.Attempt) error {
		d, err := approved.Wait(ctx, a, nil)
		if err != nil {
			return err
		}
		got.add("%s", d.By)
		if a.Number < 3 {
			return errors.New("once more")
		}
		return nil
	})
	s := newScene(t, h, handler)
	run := s.trigger(task.With(jobPayload{}), nil)
	s.signal(run.ID, approved.With(decision{By: "ada"}), &runlane.SignalOptions{ID: "m"})
	s.execute(run)
	s.signal(run.ID, approved.With(decision{By: "eve"}), &runlane.SignalOptions{ID: "a"}) // before it, by its id
	for range 2 {
		s.clock.Advance(time.Second)
		s.tick()
		run = s.execute(s.get(run.ID))
	}
	s.wantStatus(run, runlane.StatusSucceeded)
	s.wantTold(got, "ada", "ada", "ada")
}

func signalBetween(t *testing.T, h Harness) {
	got, s := &heardOf{}, (*scene)(nil)
	task, handler := job("scenario.signal-between", nil, func(ctx context.Context, a *runlane.Attempt) error {
		d, err := approved.Wait(ctx, a, nil)
		if err == nil {
			got.add("%s", d.By)
			return nil
		}
		got.add("wait")
		if len(got.answers) == 1 {
			s.signal(a.Run.ID, approved.With(decision{By: "ada"}), nil)
		}
		return err
	})
	s = newScene(t, h, handler)
	run := s.execute(s.trigger(task.With(jobPayload{}), nil))
	s.wantStatus(run, runlane.StatusSucceeded)
	s.wantTold(got, "wait", "ada")
	s.wantHistory(run.ID, "created delivery_requested lease_claimed started succeeded")
}

func signalSwallowed(t *testing.T, h Harness) {
	task, handler := job("scenario.signal-swallowed", nil, func(ctx context.Context, a *runlane.Attempt) error {
		_, _ = approved.Wait(ctx, a, nil)
		return nil
	})
	s := newScene(t, h, handler)
	run := s.execute(s.trigger(task.With(jobPayload{}), nil))
	s.wantStatus(run, runlane.StatusReleased)
	if !run.Waiting.Has(runlane.WaitingSignal) || !s.logs.contains("it was suspended") {
		t.Errorf("it waits for %+v; nothing was logged, or something else", run.Waiting)
	}
	s.signal(run.ID, approved.With(decision{}), nil)
	s.wantStatus(s.execute(s.get(run.ID)), runlane.StatusSucceeded)

	lost, handler := job("scenario.signal-lost", nil, func(ctx context.Context, a *runlane.Attempt) error {
		_, err := approved.Wait(ctx, a, nil)
		return fmt.Errorf("not approved: %v", err) //nolint:errorlint // which is the fault
	})
	s = newScene(t, h, handler)
	s.wantStatus(s.execute(s.trigger(lost.With(jobPayload{}), nil)), runlane.StatusFailed)
	if !s.logs.contains("another error than that of a wait") {
		t.Error("what was lost is not logged")
	}
}

func signalBranches(t *testing.T, h Harness) {
	task, handler := job("scenario.signal-branches", nil, func(ctx context.Context, a *runlane.Attempt) error {
		faults := make(chan error, 2)
		for _, signal := range []*runlane.Signal[decision]{approved, withdrawn} {
			go func() {
				_, err := signal.Wait(ctx, a, nil)
				faults <- err
			}()
		}
		return errors.Join(<-faults, <-faults)
	})
	s := newScene(t, h, handler)
	run := s.execute(s.trigger(task.With(jobPayload{}), nil))
	if strings.Join(run.Waiting.Names, " ") != "approved withdrawn" || run.Waiting.All {
		t.Errorf("it waits for %+v", run.Waiting)
	}
	s.signal(run.ID, withdrawn.With(decision{}), nil)
	run = s.execute(s.get(run.ID))
	s.wantStatus(run, runlane.StatusReleased)
	s.signal(run.ID, approved.With(decision{}), nil)
	s.wantStatus(s.execute(s.get(run.ID)), runlane.StatusSucceeded)
}

func signalAnything(t *testing.T, h Harness) {
	calls := 0
	task, handler := job("scenario.signal-anything", nil, func(ctx context.Context, a *runlane.Attempt) error {
		calls++
		var bodies [runlane.MaxWaitNames]*decision
		var cases []runlane.Case
		for i := range bodies {
			cases = append(cases, approved.Named(fmt.Sprintf("approved/%d", i)).Into(&bodies[i]))
		}
		return runlane.WaitAll(ctx, a, nil, cases...)
	})
	s := newScene(t, h, handler)
	run := s.execute(s.trigger(task.With(jobPayload{}), nil))
	if !run.Waiting.Has(runlane.WaitingAnything) || len(run.Waiting.Names) > 0 {
		t.Errorf("it waits for %+v", run.Waiting)
	}
	for i := range runlane.MaxWaitNames {
		s.signal(run.ID, approved.Named(fmt.Sprintf("approved/%d", i)).With(decision{}), nil)
		if i == 0 || i == runlane.MaxWaitNames-1 {
			run = s.execute(s.get(run.ID))
		} else if i == 1 {
			run = s.execute(s.get(run.ID))
		}
	}
	s.wantStatus(s.get(run.ID), runlane.StatusSucceeded)
}

func signalBounded(t *testing.T, h Harness) {
	got := &heardOf{}
	queue := runlane.Queue{Name: "scenario-signal-bounded", Concurrency: 1}
	task, handler := job("scenario.signal-bounded", &runlane.TaskOptions[jobPayload]{Queue: queue},
		func(ctx context.Context, a *runlane.Attempt) error {
			d, err := approved.Wait(ctx, a, nil)
			got.add("%s", d.By)
			return err
		})
	s := newScene(t, h, handler)
	run := s.execute(s.trigger(task.With(jobPayload{}), nil))
	s.wantStatus(run, runlane.StatusReleased)
	other := s.execute(s.trigger(task.With(jobPayload{}), nil)) // the suspension gave the slot up
	s.wantStatus(other, runlane.StatusReleased)
	s.signal(run.ID, approved.With(decision{By: "ada"}), nil)
	s.tickLate()
	s.wantStatus(s.execute(s.get(run.ID)), runlane.StatusSucceeded)
	s.wantTold(got, "", "", "ada")
}
