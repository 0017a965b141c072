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
