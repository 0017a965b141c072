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

// book is a flow: written, rendered after it, and put back if rendering fails.
func book(id runlane.FlowID) *runlane.Flow {
	f := runlane.NewFlow(id)
	write := f.Add("write", asked.With(""), nil)
	page := f.Add("render", render.With(1), &runlane.NodeOptions{After: []runlane.Node{write}})
	f.Add("put back", asked.With("again"), &runlane.NodeOptions{After: []runlane.Node{page}, If: runlane.IfFailed})
	return f
}

// sleeping sleeps a day in each run.
func sleeping() runlane.Handler {
	return asked.Handle(func(ctx context.Context, a *runlane.Attempt, _ string) error {
		return a.Sleep(ctx, "night", 24*time.Hour)
	})
}

func TestFinishFlow_InVirtualTime(t *testing.T) {
	t.Parallel()
	rt := runlanetest.New(t, &runlanetest.Options{Handlers: []runlane.Handler{
		sleeping(),
		render.Handle(func(context.Context, *runlane.Attempt, int) (string, error) {
			return "", runlane.Permanent(errors.New("no ink"))
		}),
	}})
	started := rt.Now()
	runlanetest.RequireNodes(t, rt.MustStartFlow(book("book-1")), "write queued", "render waits", "put back waits")
	rt.Advance(time.Hour)
	runlanetest.RequireNodes(t, rt.Flow("book-1"), "write released", "render waits", "put back waits")
	ended := rt.FinishFlow("book-1")
	runlanetest.RequireNodes(t, ended, "write succeeded", "render failed", "put back succeeded")
	if took := rt.Now().Sub(started); ended.Status != runlane.FlowFailed || took < 48*time.Hour || took > 49*time.Hour {
		t.Errorf("it is %s after %s", ended.Status, took)
	}
}

func TestFinishFlow_NodesOfOtherPrograms_AreEndedByTheTest(t *testing.T) {
	t.Parallel()
	rt := runlanetest.New(t, &runlanetest.Options{Handlers: []runlane.Handler{sleeping()}})
	rt.MustStartFlow(book("book-1"))
	rt.Advance(25 * time.Hour)
	node, _ := rt.Flow("book-1").Node("render")
	rt.Complete(node.RunID, "p1")
	runlanetest.RequireNodes(t, rt.FinishFlow("book-1"), "write succeeded", "render succeeded", "put back cancelled")
}

func TestFlow_WhatIsWrong_EndsTheTest(t *testing.T) {
	t.Parallel()
	token := ""
	for want, f := range map[string]func(t testing.TB){
		"the flow was not started":   func(t testing.TB) { runlanetest.New(t, nil).MustStartFlow(runlane.NewFlow("empty")) },
		"flow absent cannot be read": func(t testing.TB) { runlanetest.New(t, nil).Flow("absent") },
		`node "render" of flow book-1 executes elsewhere`: func(t testing.TB) {
			rt := runlanetest.New(t, &runlanetest.Options{Handlers: []runlane.Handler{sleeping()}})
			rt.MustStartFlow(book("book-1"))
			rt.FinishFlow("book-1")
		},
		`node "write" of flow book-1 will never be due`: func(t testing.TB) {
			rt := runlanetest.New(t, &runlanetest.Options{Handlers: []runlane.Handler{asked.Handle(
				func(ctx context.Context, a *runlane.Attempt, _ string) error {
					_, err := approved.Wait(ctx, a, nil)
					return err
				},
			)}})
			rt.MustStartFlow(book("book-1"))
			rt.FinishFlow("book-1")
		},
		"led to no end (Options.MaxSteps)": func(t testing.TB) {
			rt := runlanetest.New(t, &runlanetest.Options{MaxSteps: 1, Handlers: []runlane.Handler{asking(&token)}})
			rt.MustStartFlow(book("book-1"))
			rt.FinishFlow("book-1")
		},
		"has other nodes": func(t testing.TB) {
			runlanetest.RequireNodes(t, runlanetest.New(t, nil).MustStartFlow(book("book-1")), "write queued")
		},
	} {
		if said := spyOn(t, f); !strings.Contains(said, want) {
			t.Errorf("it says %q, want %q", said, want)
		}
	}
}
