package core_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/memlane"
)

// What a handler joins to a wait ends it, too, in whatever order: nothing that was asked for is missed.
func TestJoined_WhateverComesFirst_EndsTheWait(t *testing.T) {
	t.Parallel()
	later := func() error {
		return &runlane.ReleaseError{Delay: time.Hour, Reason: "later", Meta: map[string]string{"why": "poll"}}
	}
	block := func() error { return runlane.Block("look at it") }
	for name, c := range map[string]struct {
		join    func(wait error) error
		kinds   string
		resumes bool // by an operator's resumption; else by the time
	}{
		"blocked, a signal":   {func(w error) error { return errors.Join(block(), w) }, "signal blocked", true},
		"a signal, blocked":   {func(w error) error { return errors.Join(w, block()) }, "signal blocked", true},
		"released, a signal":  {func(w error) error { return errors.Join(later(), w) }, "signal time", false},
		"a signal, released":  {func(w error) error { return errors.Join(w, later()) }, "signal time", false},
		"released alone":      {func(error) error { return later() }, "signal time", false},
		"all of it":           {func(w error) error { return errors.Join(later(), w, block()) }, "signal time blocked", false},
		"a signal, try later": {func(w error) error { return errors.Join(w, runlane.RetryAfter(time.Hour, errors.New("no"))) }, "signal", true},
	} {
		for _, way := range []string{"signal", "beside"} {
			t.Run(name+" ended by "+way, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					ok := runlane.NewSignal[int]("ok")
					task := runlane.NewTask[int]("task", nil)
					rt := openStranger(t, memlane.New(), task.Handle(func(ctx context.Context, a *runlane.Attempt, _ int) error {
						if a.Number > 1 && way == "beside" {
							return nil
						}
						if _, err := ok.Wait(ctx, a, nil); err != nil {
							return c.join(err)
						}
						return nil
					}))
					id := rt.trigger(task.With(1), nil)
					rt.drain()
					run, err := rt.Runs().Get(t.Context(), id)
					if err != nil || run.Waiting == nil {
						t.Fatalf("%+v, %v", run, err)
					}
					var kinds []string
					for _, kind := range run.Waiting.For {
						kinds = append(kinds, string(kind))
					}
					if got := strings.Join(kinds, " "); got != c.kinds {
						t.Errorf("it waits for %s, want %s", got, c.kinds)
					}
					switch {
					case way == "signal":
						rt.signal(id, ok.With(1))
					case c.resumes:
						if _, err := rt.Runs().Resume(t.Context(), id, nil); err != nil {
							t.Fatal(err)
						}
					default:
						time.Sleep(time.Hour + time.Second)
						tick(t, rt)
					}
					rt.drain()
					if run, err = rt.Runs().Get(t.Context(), id); err != nil || run.Status != runlane.StatusSucceeded {
						t.Errorf("it is %s until %s, %v", run.Status, run.RunAt, err)
					}
				})
			})
		}
	}
}

// Of several releases the shortest counts, and one that breaks the rules fails the attempt.
func TestJoined_Releases_TheShortestCounts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err    error
		status runlane.Status
		wait   time.Duration
	}{
		{errors.Join(runlane.Release(time.Hour, "a"), runlane.Release(time.Minute, "b")), runlane.StatusReleased, time.Minute},
		{errors.Join(runlane.Release(time.Minute, "a"), runlane.Release(time.Hour, "b")), runlane.StatusReleased, time.Minute},
		{errors.Join(runlane.Release(time.Minute, "a"), runlane.Release(-1, "b")), runlane.StatusScheduled, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			task := runlane.NewTask("task", &runlane.TaskOptions[int]{Retry: runlane.Retry{MaxAttempts: 2, Backoff: runlane.Fixed(time.Hour)}})
			rt := openStranger(t, memlane.New(), task.Handle(func(context.Context, *runlane.Attempt, int) error { return c.err }))
			id := rt.trigger(task.With(1), nil)
			began := time.Now()
			rt.drain()
			run, err := rt.Runs().Get(t.Context(), id)
			if err != nil || run.Waiting != nil {
				t.Fatalf("%+v, %v", run, err)
			}
			switch {
			case c.status == runlane.StatusReleased:
				if run.Status != c.status || run.RunAt.Sub(began) > c.wait+time.Second {
					t.Errorf("%s until %s after", run.Status, run.RunAt.Sub(began))
				}
			case run.Failure.Code != runlane.ErrValidationFailed:
				t.Errorf("%s: %+v", run.Status, run.Failure)
			}
		})
	}
}
