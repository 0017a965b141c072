package scenarios

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
)

func outcomeScenarios() []scenario {
	return []scenario{
		{"success keeps the output", nil, outcomeSuccess, false},
		{"an attempt that fails keeps no output", nil, outcomeNoOutput, false},
		{"a failure is retried after its backoff, then succeeds", nil, outcomeRetry, false},
		{"an exhausted budget fails the run", nil, outcomeExhausted, false},
		{"a permanent error fails the run at once", nil, outcomePermanent, false},
		{"a panic is recovered, keeps its stack and is retried", nil, outcomePanic, false},
		{"a handler that ends its goroutine has failed", nil, outcomeGoexit, false},
		{"a nil pointer returned as an error is a failure that says so", nil, outcomeNilPointer, false},
		{"an error that cannot be read fails its attempt alone", nil, outcomeUnreadable, false},
		{"a release waits without failing", nil, outcomeRelease, false},
		{"a release outside its limits is a failure", nil, outcomeBadRelease, false},
		{"retry after chooses the delay and counts as a failure", nil, outcomeRetryAfter, false},
		{"a timeout is a failure under the budget", nil, outcomeTimeout, false},
		{"a payload that does not decode is a failure under the budget", nil, outcomeUndecodable, false},
		{"only texts that cannot quote user data are kept", nil, outcomeMessages, false},
		{"the text of an error is logged, and kept where the process alone has the state", nil, outcomeTexts, false},
		{"a lost lease records nothing", nil, outcomeLostLease, false},
		{"a shutdown burns no attempt", nil, outcomeShutdown, false},
		{"a requested cancellation decides what follows", nil, outcomeCancellation, false},
		{"a cancellation reaches the handler at once in the runtime that executes it", nil, outcomeCancelHere, false},
		{"an outcome that cannot be written is tried again", nil, outcomeWrittenAgain, false},
		{"an outcome whose answer was lost is recognized", nil, outcomeUnknown, false},
		{"an output that the storage cannot hold fails the attempt", nil, outcomeTooLarge, false},
		{"an output that the storage cannot hold is refused by SetOutput", nil, outcomeOutputRefused, false},
		{"a heartbeat that fails has no effect while the lease can be kept", nil, outcomeBeatFails, true},
		{"heartbeats keep a long run", needsHistory, outcomeHeartbeats, true},
		{"a requested cancellation reaches the handler with the next heartbeat", nil, outcomeCancelNoticed, true},
		{"a takeover reaches the handler with the next heartbeat", nil, outcomeTakeoverNoticed, true},
		{"before a deadline a requested cancellation is read within seconds", nil, outcomeCancelRead, true},
		{"a handler that ignores its timeout is left behind", nil, outcomeUnresponsive, true},
	}
}

func outcomeSuccess(t *testing.T, h Harness) {
	task, handler := job("scenario.output", nil, func(_ context.Context, a *runlane.Attempt) error {
		if err := a.SetOutput("first"); err != nil {
			return err
		}
		return a.SetOutput(map[string]any{"html": "<b>", "n": json.Number("1.0e2")})
	})
	s := newScene(t, h, handler)
	run := s.execute(s.trigger(task.With(jobPayload{}), nil))
	s.wantStatus(run, runlane.StatusSucceeded)
	if got := string(s.get(run.ID).Output); got != `{"html":"<b>","n":1.0e2}` {
		t.Fatalf("output is %s", got)
	}
}

func outcomeNoOutput(t *testing.T, h Harness) {
	task, handler := job("scenario.nooutput", &runlane.TaskOptions[jobPayload]{Retry: runlane.Retry{MaxAttempts: 2}},
		func(_ context.Context, a *runlane.Attempt) error {
			if a.Number == 2 {
				return nil
			}
			if err := a.SetOutput("half"); err != nil {
				return err
			}
			return errors.New("no")
		})
	s := newScene(t, h, handler)
	run := s.trigger(task.With(jobPayload{}), nil)
	s.execute(run)
	s.clock.Advance(time.Minute)
	if final := s.execute(run); final.Status != runlane.StatusSucceeded || final.Output != nil {
		t.Fatalf("run is %s with output %s", final.Status, final.Output)
	}
}

func outcomeRetry(t *testing.T, h Harness) {
	task, handler := job("scenario.retry", &runlane.TaskOptions[jobPayload]{
		Retry: runlane.Retry{MaxAttempts: 3, Backoff: runlane.Exponential{Base: 10 * time.Second}},
	}, func(_ context.Context, a *runlane.Attempt) error {
		if a.Number < 3 {
			return &runlane.Error{Code: runlane.ErrStorageUnavailable, Message: "not yet"}
		}
		return nil
	})
	s := newScene(t, h, handler)
	run := s.trigger(task.With(jobPayload{}), nil)
	for n, around := range []time.Duration{10 * time.Second, 20 * time.Second} {
		s.transport.TakeDelayed()
		after := s.execute(run)
		s.wantStatus(after, runlane.StatusRetrying)
		wait := after.RunAt.Sub(runlane.UTCMillis(s.clock.Now()))
		if wait < around*8/10 || wait > around*12/10+time.Millisecond {
			t.Fatalf("failure %d waits %s, want %s ± 20 %%", n+1, wait, around)
		}
		if after.Failure.Code != runlane.ErrStorageUnavailable || after.Failure.Message != "not yet" ||
			after.Counters.Retries != n+1 {
			t.Fatalf("run is %+v", after)
		}
		if sent := s.transport.TakeDelayed(); len(sent) != 1 || sent[0].Delay != wait {
			t.Fatalf("delayed wakeups are %+v, want one after %s", sent, wait)
		}
		s.ignored(run, core.IgnoredNotDue)
		s.clock.Advance(wait)
	}
	final := s.execute(run)
	s.wantStatus(final, runlane.StatusSucceeded)
	if final.Counters != (runlane.Counters{Attempts: 3, Failures: 2, Retries: 2}) || !final.Failure.IsZero() {
		t.Fatalf("run is %+v", final)
	}
}

func outcomeExhausted(t *testing.T, h Harness) {
	task, handler := job("scenario.exhausted", &runlane.TaskOptions[jobPayload]{
		Retry: runlane.Retry{MaxAttempts: 2, Backoff: runlane.Fixed(time.Second), NoJitter: true},
	}, func(context.Context, *runlane.Attempt) error { return runlane.ErrTransportUnavailable })
	s := newScene(t, h, handler)
	run := s.trigger(task.With(jobPayload{}), nil)
	s.wantStatus(s.execute(run), runlane.StatusRetrying)
	s.clock.Advance(time.Second)
	final := s.execute(run)
	s.wantStatus(final, runlane.StatusFailed)
	if final.Counters != (runlane.Counters{Attempts: 2, Failures: 2, Retries: 1}) ||
		final.Failure.Code != runlane.ErrTransportUnavailable {
		t.Fatalf("run is %+v", final)
	}
	attempts, err := s.rt.Runs().Attempts(s.Context(), run.ID)
	s.must(err)
	if len(attempts) != 2 || attempts[0].Status != runlane.AttemptRetrying ||
		attempts[1].Status != runlane.AttemptFailed {
		t.Fatalf("attempts are %+v", attempts)
	}
}

func outcomePermanent(t *testing.T, h Harness) {
	task, handler := job("scenario.permanent", &runlane.TaskOptions[jobPayload]{Retry: runlane.Retry{MaxAttempts: 9}},
		func(context.Context, *runlane.Attempt) error {
			return fmt.Errorf(
				"wrapped: %w",
				runlane.Permanent(&runlane.Error{Code: "card_declined", Message: "declined"}),
			)
		})
	s := newScene(t, h, handler)
	final := s.execute(s.trigger(task.With(jobPayload{}), nil))
	s.wantStatus(final, runlane.StatusFailed)
	if final.Failure.Code != "card_declined" || final.Failure.Message != "declined" {
		t.Fatalf("failure is %+v", final.Failure)
	}
}

func outcomePanic(t *testing.T, h Harness) {
	task, handler := job("scenario.panic", &runlane.TaskOptions[jobPayload]{Retry: runlane.Retry{MaxAttempts: 2}},
		func(_ context.Context, a *runlane.Attempt) error {
			if a.Number == 1 {
				panic("secret value")
			}
			var nothing map[string]int
			nothing["x"] = 1 //nolint:govet,staticcheck // a fault of the Go runtime, whose text is kept
			return nil
		})
	s := openScene(t, h, core.Options{Handlers: []runlane.Handler{handler}, HideErrorTexts: true}, nil)
	run := s.trigger(task.With(jobPayload{}), nil)
	first := s.execute(run)
	s.wantStatus(first, runlane.StatusRetrying)
	f := first.Failure
	if f.Code != runlane.ErrTaskPanicked || strings.Contains(f.Message, "secret") ||
		!strings.Contains(f.Meta["stack"], "outcomePanic") {
		t.Fatalf("failure is %+v", f)
	}
	s.clock.Advance(time.Minute)
	if f := s.execute(run).Failure; !strings.Contains(f.Message, "nil map") {
		t.Fatalf("failure is %+v, want the Go runtime's own words", f)
	}
}

func outcomeGoexit(t *testing.T, h Harness) {
	task, handler := job("scenario.goexit", nil, func(context.Context, *runlane.Attempt) error {
		runtime.Goexit()
		return nil
	})
	s := newScene(t, h, handler)
	if final := s.execute(s.trigger(task.With(jobPayload{}), nil)); final.Failure.Code != runlane.ErrTaskPanicked {
		t.Fatalf("run is %+v", final)
	}
}

func outcomeRelease(t *testing.T, h Harness) {
	task, handler := job("scenario.release", nil, func(_ context.Context, a *runlane.Attempt) error {
		if a.Number == 1 {
			return errors.Join(errors.New("cleanup failed"), fmt.Errorf("wrapped: %w", &runlane.ReleaseError{
				Delay:  time.Minute,
				Reason: strings.Repeat("é", runlane.MaxReasonBytes),
				Meta:   map[string]string{"mailbox": "u_1"},
			}))
		}
		return nil
	})
	s := newScene(t, h, handler)
	run := s.trigger(task.With(jobPayload{}), nil)
	after := s.execute(run)
	s.wantStatus(after, runlane.StatusReleased)
	if wait := after.RunAt.Sub(runlane.UTCMillis(s.clock.Now())); wait != time.Minute {
		t.Fatalf("resumes after %s", wait)
	}
	records := s.history(run.ID)
	released, ok := records[4].Body.(*runlane.RunReleased)
	if !ok || len(released.Reason) > runlane.MaxReasonBytes || records[4].Meta["mailbox"] != "u_1" {
		t.Fatalf("event is %+v", records[4])
	}
	if sent := s.transport.TakeDelayed(); len(sent) != 1 || sent[0].Delay != time.Minute {
		t.Fatalf("delayed wakeups are %+v", sent)
	}
	s.clock.Advance(time.Minute)
	final := s.execute(run)
	s.wantStatus(final, runlane.StatusSucceeded)
	if final.Counters != (runlane.Counters{Attempts: 2, Releases: 1}) {
		t.Fatalf("counters are %+v, want no failure", final.Counters)
	}
}

func outcomeBadRelease(t *testing.T, h Harness) {
	for _, delay := range []time.Duration{0, -time.Second, runlane.MaxReleaseDelay + 1} {
		task, handler := job("scenario.badrelease", nil, func(context.Context, *runlane.Attempt) error {
			return runlane.Release(delay, "why")
		})
		s := newScene(t, h, handler)
		if final := s.execute(
			s.trigger(task.With(jobPayload{}), nil),
		); final.Failure.Code != runlane.ErrValidationFailed {
			t.Errorf("release for %s: %+v", delay, final.Failure)
		}
	}
}

func outcomeRetryAfter(t *testing.T, h Harness) {
	task, handler := job("scenario.retryafter", &runlane.TaskOptions[jobPayload]{Retry: runlane.Retry{MaxAttempts: 2}},
		func(context.Context, *runlane.Attempt) error {
			return runlane.RetryAfter(7*time.Minute, &runlane.Error{Code: "rate_limited", Message: "429"})
		})
	s := newScene(t, h, handler)
	run := s.trigger(task.With(jobPayload{}), nil)
	after := s.execute(run)
	s.wantStatus(after, runlane.StatusRetrying)
	if wait := after.RunAt.Sub(
		runlane.UTCMillis(s.clock.Now()),
	); wait != 7*time.Minute || after.Failure.Code != "rate_limited" {
		t.Fatalf("waits %s after %+v, want exactly what the handler said", wait, after.Failure)
	}
	s.clock.Advance(7 * time.Minute)
	s.wantStatus(s.execute(run), runlane.StatusFailed)
}

func outcomeTimeout(t *testing.T, h Harness) {
	task, handler := job("scenario.timeout", &runlane.TaskOptions[jobPayload]{
		Timeout: 10 * time.Millisecond, Retry: runlane.Retry{MaxAttempts: 2},
	}, func(ctx context.Context, _ *runlane.Attempt) error {
		<-ctx.Done()
		if !errors.Is(context.Cause(ctx), runlane.ErrTimeout) {
			return runlane.Permanent(context.Cause(ctx))
		}
		return fmt.Errorf("client: %w", ctx.Err())
	})
	s := newScene(t, h, handler)
	after := s.execute(s.trigger(task.With(jobPayload{}), nil))
	s.wantStatus(after, runlane.StatusRetrying)
	if after.Failure.Code != runlane.ErrTaskTimedOut {
		t.Fatalf("failure is %+v", after.Failure)
	}
}

func outcomeUndecodable(t *testing.T, h Harness) {
	task, handler := job(
		"scenario.decode",
		&runlane.TaskOptions[jobPayload]{Retry: runlane.Retry{MaxAttempts: 2}},
		succeed,
	)
	s := newScene(t, h, handler)
	run := s.trigger(runlane.NewRawCall(task.Definition(), json.RawMessage(`{"n":"text"}`)), nil)
	after := s.execute(run)
	s.wantStatus(after, runlane.StatusRetrying)
	if after.Failure.Code != runlane.ErrValidationFailed {
		t.Fatalf("failure is %+v", after.Failure)
	}
}

func outcomeMessages(t *testing.T, h Harness) {
	fail := func(context.Context, *runlane.Attempt) error { return errors.New("password is 1234") }
	closed, closedHandler := job("scenario.closed", nil, fail)
	open, openHandler := job("scenario.open", &runlane.TaskOptions[jobPayload]{ErrorMessages: true}, fail)
	s := openScene(
		t,
		h,
		core.Options{Handlers: []runlane.Handler{closedHandler, openHandler}, HideErrorTexts: true},
		nil,
	)
	if f := s.execute(
		s.trigger(closed.With(jobPayload{}), nil),
	).Failure; f.Code != runlane.ErrTaskFailed || f.Message != "Task failed." {
		t.Fatalf("failure is %+v", f)
	}
	if f := s.execute(s.trigger(open.With(jobPayload{}), nil)).Failure; f.Message != "password is 1234" {
		t.Fatalf("failure is %+v", f)
	}
}
