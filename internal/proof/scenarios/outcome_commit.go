package scenarios

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
)

func outcomeLostLease(t *testing.T, h Harness) {
	begun, goOn := make(chan struct{}), make(chan struct{})
	task, handler := job("scenario.takeover", nil, func(_ context.Context, a *runlane.Attempt) error {
		if a.Number == 1 {
			close(begun)
			select {
			case <-goOn:
			case <-t.Context().Done(): // the scenario has failed
			}
		}
		return a.SetOutput(a.Number)
	})
	s := newScene(t, h, handler)
	other, _ := s.second()
	run := s.trigger(task.With(jobPayload{}), nil)
	first := make(chan *core.DeliveryResult, 1)
	go func() { // the first owner: ends when it is told to go on
		result, err := s.rt.ExecuteDelivery(s.Context(), s.wakeup(run), nil)
		if err != nil {
			t.Errorf("first owner: %v", err)
		}
		first <- result
	}()
	select {
	case <-begun:
	case result := <-first:
		t.Fatalf("first owner ended before its handler began: %+v", result)
	}
	s.clock.Advance(2 * time.Minute) // its process was frozen; the lease is over
	second, err := other.ExecuteDelivery(s.Context(), s.wakeup(run), nil)
	s.must(err)
	s.wantStatus(second.Run, runlane.StatusSucceeded)
	close(goOn)
	if result := <-first; result == nil || result.Ignored != core.IgnoredAbandoned {
		t.Fatalf("first owner's result is %+v", result)
	}
	if stored := s.get(run.ID); string(stored.Output) != "2" || stored.Counters.Attempts != 2 {
		t.Fatalf("stored run is %+v", stored)
	}
	s.wantHistory(run.ID, "created delivery_requested lease_claimed started lease_claimed started succeeded")
}

func outcomeShutdown(t *testing.T, h Harness) {
	begun := make(chan struct{}, 1)
	var calls atomic.Int32
	task, handler := job("scenario.shutdown", nil, func(ctx context.Context, _ *runlane.Attempt) error {
		if calls.Add(1) > 1 {
			return nil
		}
		begun <- struct{}{}
		<-ctx.Done()
		return ctx.Err()
	})
	s := newScene(t, h, handler)
	run := s.trigger(task.With(jobPayload{}), nil)
	ctx, stop := context.WithCancel(s.Context())
	go func() { <-begun; stop() }()
	result, err := s.rt.ExecuteDelivery(ctx, s.wakeup(run), nil)
	s.must(err)
	s.wantStatus(result.Run, runlane.StatusReleased)
	if c := result.Run.Counters; c != (runlane.Counters{Attempts: 1, Releases: 1}) ||
		result.Run.RunAt.After(s.clock.Now()) {
		t.Fatalf("run is %+v, want released to resume at once", result.Run)
	}
	if released, ok := s.history(run.ID)[4].Body.(*runlane.RunReleased); !ok || released.Reason != "shutdown" {
		t.Fatalf("event is %+v", s.history(run.ID)[4])
	}
	if sent := s.transport.TakeDelayed(); len(sent) != 1 || sent[0].Delay != 0 {
		t.Fatalf("wakeups are %+v, want one at once", sent)
	}
	s.wantStatus(s.execute(run), runlane.StatusSucceeded)
}

func outcomeCancellation(t *testing.T, h Harness) {
	for name, c := range map[string]struct {
		result error
		want   runlane.Status
	}{
		"nil":           {nil, runlane.StatusSucceeded},
		"release":       {runlane.Release(time.Minute, "later"), runlane.StatusCancelled},
		"retry after":   {runlane.RetryAfter(time.Minute, errors.New("busy")), runlane.StatusCancelled},
		"another error": {errors.New("broken"), runlane.StatusFailed},
		"permanent":     {runlane.Permanent(errors.New("broken")), runlane.StatusFailed},
	} {
		var s *scene
		var run *runlane.Run
		task, handler := job("scenario.cancel", &runlane.TaskOptions[jobPayload]{Retry: runlane.Retry{MaxAttempts: 5}},
			func(context.Context, *runlane.Attempt) error {
				s.change(run.ID, &runlane.RunCancellationRequested{Reason: "enough"})
				return c.result
			})
		s = newScene(t, h, handler)
		run = s.trigger(task.With(jobPayload{}), nil)
		if after := s.execute(run); after.Status != c.want {
			t.Errorf("%s: run is %s, want %s", name, after.Status, c.want)
		}
	}
}

func outcomeWrittenAgain(t *testing.T, h Harness) {
	task, handler := job("scenario.storm", nil, succeed)
	s := newScene(t, h, handler)
	run := s.trigger(task.With(jobPayload{}), nil)
	failures := 0
	s.storage.script(func() {
		s.storage.onAppend = func(_ *lane.AppendCommand, next func() (*lane.Commit, error)) (*lane.Commit, error) {
			if failures++; failures <= 2 {
				return nil, unavailableStorage("")
			}
			return next()
		}
	})
	s.wantStatus(s.execute(run), runlane.StatusSucceeded)
	if failures != 3 {
		t.Fatalf("%d tries", failures)
	}
}

func outcomeUnknown(t *testing.T, h Harness) {
	task, handler := job("scenario.unknown-outcome", nil, succeed)
	s := newScene(t, h, handler)
	run := s.trigger(task.With(jobPayload{}), nil)
	tries := 0
	s.storage.script(func() {
		s.storage.onAppend = func(_ *lane.AppendCommand, next func() (*lane.Commit, error)) (*lane.Commit, error) {
			commit, err := next()
			if tries++; tries == 1 && err == nil {
				return nil, unavailableStorage("unknown")
			}
			return commit, err
		}
	})
	s.wantStatus(s.execute(run), runlane.StatusSucceeded)
	s.wantHistory(run.ID, "created delivery_requested lease_claimed started succeeded")
}

func outcomeTooLarge(t *testing.T, h Harness) {
	task, handler := job("scenario.large", nil, func(_ context.Context, a *runlane.Attempt) error {
		return a.SetOutput("large")
	})
	s := newScene(t, h, handler)
	run := s.trigger(task.With(jobPayload{}), nil)
	s.storage.script(func() {
		s.storage.onAppend = func(c *lane.AppendCommand, next func() (*lane.Commit, error)) (*lane.Commit, error) {
			if c.Projected.Output != nil {
				return nil, &runlane.Error{Code: runlane.ErrValidationFailed, Message: "output is too large"}
			}
			return next()
		}
	})
	final := s.execute(run)
	s.wantStatus(final, runlane.StatusFailed)
	if final.Failure.Code != runlane.ErrValidationFailed || final.Failure.Message != "output is too large" ||
		final.Output != nil {
		t.Fatalf("run is %+v", final)
	}
}

func outcomeNilPointer(t *testing.T, h Harness) {
	for what, err := range map[string]error{
		"*runlane.Error":           (*runlane.Error)(nil),
		"*runlane.ReleaseError":    (*runlane.ReleaseError)(nil),
		"*runlane.PermanentError":  (*runlane.PermanentError)(nil),
		"*runlane.RetryAfterError": (*runlane.RetryAfterError)(nil),
	} {
		task, handler := job("scenario.nilpointer", nil, func(context.Context, *runlane.Attempt) error { return err })
		s := newScene(t, h, handler)
		final := s.execute(s.trigger(task.With(jobPayload{}), nil))
		s.wantStatus(final, runlane.StatusFailed)
		if f := final.Failure; f.Code != runlane.ErrTaskFailed || !strings.Contains(f.Message, "nil "+what) {
			t.Errorf("a nil %s became %+v", what, f)
		}
	}
}

// brokenError is an error that cannot be read.
type brokenError struct{}

// Error implements error.
func (brokenError) Error() string { panic("text") }

// As is asked by errors.As.
func (brokenError) As(any) bool { panic("as") }

func outcomeUnreadable(t *testing.T, h Harness) {
	task, handler := job("scenario.unreadable", &runlane.TaskOptions[jobPayload]{Retry: runlane.Retry{MaxAttempts: 2}},
		func(_ context.Context, a *runlane.Attempt) error {
			if a.Number == 1 {
				return brokenError{}
			}
			return nil
		})
	s := newScene(t, h, handler)
	run := s.trigger(task.With(jobPayload{}), nil)
	first := s.execute(run)
	s.wantStatus(first, runlane.StatusRetrying)
	if f := first.Failure; f.Code != runlane.ErrTaskPanicked || !strings.Contains(f.Meta["stack"], "brokenError") {
		t.Fatalf("failure is %+v", f)
	}
	s.clock.Advance(time.Minute)
	s.wantStatus(s.execute(run), runlane.StatusSucceeded)
}

func outcomeTexts(t *testing.T, h Harness) {
	fail := func(_ context.Context, a *runlane.Attempt) error {
		if a.Number == 2 {
			panic("disk on fire")
		}
		return errors.New("disk is full")
	}
	task, handler := job("scenario.texts", &runlane.TaskOptions[jobPayload]{Retry: runlane.Retry{MaxAttempts: 2}}, fail)
	s := newScene(t, h, handler)
	run := s.trigger(task.With(jobPayload{}), nil)
	wants := []struct{ line, text, closed string }{
		{"attempt ended", "disk is full", "Task failed."},
		{"run failed", "The handler panicked: disk on fire", "The handler panicked."},
	}
	for _, want := range wants {
		f := s.execute(run).Failure
		kept := want.closed
		if s.lane.Storage.Capabilities().ProcessLocalState {
			kept = want.text
		}
		if f.Message != kept {
			t.Errorf("the run says %q, want %q", f.Message, kept)
		}
		if lines := s.logs.lines(t, want.line); len(lines) == 0 || lines[len(lines)-1]["error"] != want.text {
			t.Errorf("the log says %v, want %q", lines, want.text)
		}
		s.clock.Advance(time.Hour)
	}
}

// What SetOutput takes is committed, and comes back byte for byte; anything else is refused while the handler can do
// something about it.
func outcomeOutputRefused(t *testing.T, h Harness) {
	random := rand.NewChaCha8([32]byte{1})
	for _, size := range []int{64 << 10, 160 << 10, 300 << 10, 2 << 20} {
		raw := make([]byte, size) // about a third more as base64, which compresses to its size again
		_, _ = random.Read(raw)
		var refused error
		task, handler := job("scenario.bulky", nil, func(_ context.Context, a *runlane.Attempt) error {
			if refused = a.SetOutput(raw); refused != nil {
				return a.SetOutput("elsewhere")
			}
			return nil
		})
		s := newScene(t, h, handler)
		final := s.execute(s.trigger(task.With(jobPayload{}), nil))
		s.wantStatus(final, runlane.StatusSucceeded)
		var kept []byte
		switch err := json.Unmarshal(s.get(final.ID).Output, &kept); {
		case refused != nil && !errors.Is(refused, runlane.ErrValidationFailed):
			t.Errorf("an output of %d bytes: %v", size, refused)
		case refused == nil && (err != nil || !bytes.Equal(kept, raw)):
			t.Errorf("an output of %d bytes was taken, and is kept as %d bytes, %v", size, len(kept), err)
		case size == 64<<10 && refused != nil:
			t.Errorf("an output of %d bytes was refused: %v", size, refused)
		}
	}
}
