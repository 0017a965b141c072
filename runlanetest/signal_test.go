package runlanetest_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/runlanetest"
)

var (
	asked    = runlane.NewTask[string]("asked", nil)
	approved = runlane.NewSignal[string]("approved")
)

// asking waits a day for an approval; token gets the one of its link.
func asking(token *string) runlane.Handler {
	return asked.Handle(func(ctx context.Context, a *runlane.Attempt, _ string) (err error) {
		if *token, err = approved.Token(ctx, a, nil); err != nil {
			return err
		}
		by, err := approved.Wait(ctx, a, &runlane.WaitOptions{Timeout: 24 * time.Hour})
		if errors.Is(err, runlane.ErrWaitTimedOut) {
			return a.SetOutput("no answer")
		}
		if err != nil {
			return err
		}
		return a.SetOutput(by)
	})
}

func TestMustSignal_InVirtualTime(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		end  func(rt *runlanetest.Runtime, id runlane.RunID, token string)
		want string
	}{
		"a signal": {func(rt *runlanetest.Runtime, id runlane.RunID, _ string) { rt.MustSignal(id, approved.With("ada")) }, `"ada"`},
		"an answer": {func(rt *runlanetest.Runtime, _ runlane.RunID, token string) {
			rt.MustAnswer(token, approved.With("bob"))
		}, `"bob"`},
		"nothing": {func(*runlanetest.Runtime, runlane.RunID, string) {}, `"no answer"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			token := ""
			rt := runlanetest.New(t, &runlanetest.Options{Handlers: []runlane.Handler{asking(&token)}})
			id := rt.MustTrigger(asked.With(""), nil).ID
			rt.Settle()
			runlanetest.RequireWaiting(t, rt.History(id), "approved")
			rt.Advance(time.Hour)
			c.end(rt, id, token)
			ended := rt.Finish(id)
			if string(ended.Output) != c.want {
				t.Errorf("output is %s, want %s", ended.Output, c.want)
			}
			runlanetest.RequireWaiting(t, ended)
		})
	}
}

func TestMustSignal_WhatIsRefused_EndsTheTest(t *testing.T) {
	t.Parallel()
	token := ""
	rt := runlanetest.New(t, &runlanetest.Options{Handlers: []runlane.Handler{asking(&token)}})
	id := rt.MustTrigger(asked.With(""), nil).ID
	rt.Settle()
	waiting := rt.History(id)
	for want, f := range map[string]func(t testing.TB){
		"waits for other signals": func(t testing.TB) { runlanetest.RequireWaiting(t, waiting, "withdrawn") },
		"was not sent to run absent": func(t testing.TB) {
			runlanetest.New(t, nil).MustSignal("absent", approved.With("ada"))
		},
		"was not taken": func(t testing.TB) { runlanetest.New(t, nil).MustAnswer("forged", approved.With("ada")) },
	} {
		if said := spyOn(t, f); !strings.Contains(said, want) {
			t.Errorf("it says %q, want %q", said, want)
		}
	}
}

// A signal answers one wait, as at a runtime: a wait's name is that of its inbox, and no other wait has it.
func TestAttempt_TwoWaitsForOneSignal_AreRefused(t *testing.T) {
	t.Parallel()
	a := runlanetest.NewAttempt(t, &runlanetest.AttemptOptions{
		Signals: []runlane.SignalValue{approved.With("ada"), approved.Named("round/1").With("bob")},
	})
	first, err := approved.Wait(t.Context(), a.Attempt, &runlane.WaitOptions{Name: "round/1"})
	if first != "bob" || err != nil {
		t.Errorf("the first round is answered by %q, %v", first, err)
	}
	if _, err := approved.Wait(t.Context(), a.Attempt, &runlane.WaitOptions{Name: "round/2"}); !runlane.Suspended(err) {
		t.Errorf("the second round: %v", err)
	}
	var by *string
	err = runlane.WaitAny(t.Context(), a.Attempt, &runlane.WaitOptions{Name: "other"}, approved.Named("round/1").Into(&by))
	if !errors.Is(err, runlane.ErrValidationFailed) || by != nil {
		t.Errorf("another wait for the first round's signal: %v, %v", by, err)
	}
}

// Of several signals the one that was sent first answers, as at a runtime, whichever the wait names first.
func TestAttempt_WaitAny_TakesTheSignalThatCameFirst(t *testing.T) {
	t.Parallel()
	a := runlanetest.NewAttempt(t, &runlanetest.AttemptOptions{
		Signals: []runlane.SignalValue{approved.Named("no").With("ada"), approved.Named("yes").With("bob")},
	})
	var yes, no *string
	err := runlane.WaitAny(t.Context(), a.Attempt, nil, approved.Named("yes").Into(&yes), approved.Named("no").Into(&no))
	if err != nil || yes != nil || no == nil || *no != "ada" {
		t.Errorf("it heard yes %v, no %v, %v", yes, no, err)
	}
}

// What a handler sends is kept once an ID, and what a runtime refuses is refused.
func TestRecorder_KeepsSignals(t *testing.T) {
	t.Parallel()
	a := runlanetest.NewAttempt(t, nil)
	node, once := runlane.Node{Flow: "release", Name: "deploy"}, &runlane.SignalOptions{ID: "m"}
	for _, err := range []error{
		a.Signal(t.Context(), "run_1", approved.With("ada"), nil),
		a.SignalNode(t.Context(), node, approved.With("bob"), once),
		a.SignalNode(t.Context(), node, approved.With("bob"), once),
	} {
		if err != nil {
			t.Error(err)
		}
	}
	if err := a.SignalNode(t.Context(), node, approved.With("eve"), once); !errors.Is(err, runlane.ConflictSignal) {
		t.Errorf("another body under an id: %v", err)
	}
	for _, err := range []error{
		a.Signal(t.Context(), "", approved.With("ada"), nil),
		a.Signal(t.Context(), "run_1", approved.Named("a:b").With("ada"), nil),
		a.SignalNode(t.Context(), runlane.Node{Name: "deploy"}, approved.With("ada"), nil),
		a.SignalNode(t.Context(), runlane.Node{Flow: "release"}, approved.With("ada"), nil),
	} {
		if !errors.Is(err, runlane.ErrValidationFailed) {
			t.Errorf("a bad signal: %v", err)
		}
	}
	sent := a.Recorder.Signals()
	if len(sent) != 2 || sent[0].RunID != "run_1" || string(sent[0].Body) != `"ada"` || sent[1].Node != node ||
		sent[1].Name != "approved" || sent[1].Options.ID != "m" {
		t.Errorf("sent %+v", sent)
	}
}
