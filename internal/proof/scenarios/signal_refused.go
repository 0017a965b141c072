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
	"github.com/runlane/runlane-go/internal/proof/scenarios/patience"
)

func signalInvalid(t *testing.T, h Harness) {
	long := strings.Repeat("n", 65)
	var faults []error
	task, handler := job("scenario.signal-invalid", nil, func(ctx context.Context, a *runlane.Attempt) error {
		var bodies [33]*decision
		var cases []runlane.Case
		for i := range bodies {
			cases = append(cases, approved.Named(fmt.Sprint(i)).Into(&bodies[i]))
		}
		wait := func(signal *runlane.Signal[decision], options *runlane.WaitOptions) error {
			_, err := signal.Wait(ctx, a, options)
			return err
		}
		faults = []error{
			runlane.WaitAny(ctx, a, nil, cases...),
			runlane.WaitAny(ctx, a, nil),
			runlane.WaitAny(ctx, a, nil, cases[0], cases[0]),
			wait(approved.Named(""), nil), wait(approved.Named("a:b"), nil), wait(approved.Named(long), nil),
			wait(approved, &runlane.WaitOptions{Prompt: strings.Repeat("p", runlane.MaxPromptBytes+1)}),
			wait(approved, &runlane.WaitOptions{Timeout: runlane.MaxReleaseDelay + 1}),
			wait(approved, &runlane.WaitOptions{Name: strings.Repeat("w", runlane.MaxStepNameBytes)}),
		}
		_, _ = approved.Wait(ctx, a, &runlane.WaitOptions{Timeout: runlane.NoWait})
		faults = append(faults, wait(approved, nil))
		return nil
	})
	s := newScene(t, h, handler)
	run := s.trigger(task.With(jobPayload{}), nil)
	s.wantStatus(s.execute(run), runlane.StatusSucceeded)
	for i, err := range faults {
		if !errors.Is(err, runlane.ErrValidationFailed) {
			t.Errorf("wait %d: %v", i, err)
		}
	}
	run = s.trigger(task.With(jobPayload{}), nil)
	for what, err := range map[string]error{
		"no name":         s.rt.Signal(t.Context(), run.ID, approved.Named("").With(decision{}), nil),
		"a long name":     s.rt.Signal(t.Context(), run.ID, approved.Named(long).With(decision{}), nil),
		"an empty signal": s.rt.Signal(t.Context(), run.ID, runlane.SignalValue{}, nil),
		"no JSON":         s.rt.Signal(t.Context(), run.ID, runlane.NewRawSignal("approved", []byte("{")), nil),
		"a long body": s.rt.Signal(t.Context(), run.ID, runlane.NewSignal[string]("approved").With(
			strings.Repeat("b", runlane.MaxPayloadBytes)), nil),
		"a long id": s.rt.Signal(t.Context(), run.ID, approved.With(decision{}), &runlane.SignalOptions{
			ID: strings.Repeat("i", runlane.MaxSignalIDBytes+1),
		}),
		"an unprintable id": s.rt.Signal(t.Context(), run.ID, approved.With(decision{}), &runlane.SignalOptions{
			ID: "a\x00",
		}),
		"an unknown actor": s.rt.Signal(t.Context(), run.ID, approved.With(decision{}), &runlane.SignalOptions{
			Actor: runlane.Actor{Type: "robot"},
		}),
		"a bad run": s.rt.Signal(t.Context(), "a:b", approved.With(decision{}), nil),
	} {
		if !errors.Is(err, runlane.ErrValidationFailed) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func signalBound(t *testing.T, h Harness) {
	task, handler := job("scenario.signal-bound", nil, succeed)
	s := newScene(t, h, handler)
	run := s.trigger(task.With(jobPayload{}), nil)
	refused, all := 0, 2*runlane.MaxRunSignals
	if h.faults == nil && !patience.Race && !testing.Short() {
		all = 100_000 // scripts/test.sh has that in memory
	}
	for range all {
		if err := s.rt.Signal(t.Context(), run.ID, approved.With(decision{}), nil); err != nil {
			if !errors.Is(err, runlane.ErrValidationFailed) {
				t.Fatal(err)
			}
			refused++
		}
	}
	if refused != all-runlane.MaxRunSignals {
		t.Errorf("%d of %d were refused", refused, all)
	}
	s.wantStatus(s.execute(run), runlane.StatusSucceeded)
}

// signalAwaited fills the mail of runs that wait for one signal, for all of two, and for an answer by a token.
func signalAwaited(t *testing.T, h Harness) {
	tokens := map[string]string{}
	task, handler := job("scenario.signal-awaited", nil, func(ctx context.Context, a *runlane.Attempt) (err error) {
		if tokens["later"], err = approved.Named("later").Token(ctx, a, nil); err != nil {
			return err
		}
		if _, err := approved.Wait(ctx, a, nil); err != nil {
			return err
		}
		var one, two, later *decision
		err = runlane.WaitAll(ctx, a, &runlane.WaitOptions{Name: "all"},
			approved.Named("one").Into(&one), approved.Named("two").Into(&two), approved.Named("later").Into(&later))
		return err
	})
	s := openScene(t, h, core.Options{Handlers: []runlane.Handler{handler}, TokenKeys: [][]byte{make([]byte, 32)}}, nil)
	run := s.execute(s.trigger(task.With(jobPayload{}), nil))
	for range runlane.MaxRunSignals {
		s.signal(run.ID, approved.Named("noise").With(decision{}), nil)
	}
	refused := func(name string) {
		t.Helper()
		s.wantCode(s.rt.Signal(t.Context(), run.ID, approved.Named(name).With(decision{}), nil), runlane.ErrValidationFailed)
	}
	refused("noise")
	s.must(s.rt.Answer(t.Context(), tokens["later"], approved.Named("later").With(decision{}), nil))
	s.signal(run.ID, approved.With(decision{}), nil)
	refused("one") // it is queued, and waits for nothing
	run = s.execute(s.get(run.ID))
	s.signal(run.ID, approved.Named("one").With(decision{}), nil)
	refused("one")
	s.signal(run.ID, approved.Named("two").With(decision{}), nil)
	s.wantStatus(s.execute(s.get(run.ID)), runlane.StatusSucceeded)
}

func signalToken(t *testing.T, h Harness) {
	key := func(b byte) []byte { return []byte(strings.Repeat(string(rune(b)), 32)) }
	got, token := &heardOf{}, ""
	task, handler := job("scenario.signal-token", nil, func(ctx context.Context, a *runlane.Attempt) (err error) {
		if token, err = approved.Token(ctx, a, &runlane.TokenOptions{TTL: time.Hour}); err != nil {
			return err
		}
		d, err := approved.Wait(ctx, a, nil)
		got.add("%s", d.By)
		return err
	})
	s := openScene(t, h, core.Options{Handlers: []runlane.Handler{handler}, TokenKeys: [][]byte{key('a')}}, nil)
	run := s.execute(s.trigger(task.With(jobPayload{}), nil))
	first := token
	answer := func(token string, value runlane.SignalValue) error {
		return s.rt.Answer(t.Context(), token, value, nil)
	}
	yes := approved.With(decision{By: "ada"})
	end := "AA"
	if strings.HasSuffix(first, end) { // one signature in a thousand
		end = "BA"
	}
	for _, forged := range []string{
		"", "rlt1.", first + "x", first[:len(first)-2] + end, "rlt1.e30." + strings.SplitN(first, ".", 3)[2],
		strings.Repeat("a", 1<<16), strings.Replace(first, "rlt1", "rlt2", 1),
	} {
		s.wantCode(answer(forged, yes), runlane.ErrTokenInvalid)
	}
	s.wantCode(answer(first, withdrawn.With(decision{})), runlane.ErrTokenInvalid)
	s.must(answer(first, yes))
	s.must(answer(first, yes)) // the same again
	if err := answer(first, approved.With(decision{By: "eve"})); !errors.Is(err, runlane.ConflictSignal) {
		t.Errorf("another answer: %v", err)
	}
	s.wantStatus(s.execute(s.get(run.ID)), runlane.StatusSucceeded)
	s.wantTold(got, "", "ada")
	if err := answer(token, approved.With(decision{By: "eve"})); !errors.Is(err, runlane.ConflictSignal) {
		t.Errorf("a token of a later attempt: %v", err)
	}
	s.clock.Advance(2 * time.Hour)
	s.wantCode(answer(first, yes), runlane.ErrTokenInvalid)

	none, handler := job("scenario.signal-no-token", &runlane.TaskOptions[jobPayload]{Retry: runlane.Retry{MaxAttempts: 4}}, func(ctx context.Context, a *runlane.Attempt) error {
		_, err := approved.Token(ctx, a, nil)
		return err
	})
	s = newScene(t, h, handler)
	run = s.execute(s.trigger(none.With(jobPayload{}), nil))
	if run.Failure.Code != runlane.ErrCapabilityUnsupported || run.Status != runlane.StatusFailed { // no try is left to burn
		t.Errorf("without keys it failed with %+v", run.Failure)
	}
	s.wantCode(s.rt.Answer(t.Context(), first, yes, nil), runlane.ErrCapabilityUnsupported)
}
