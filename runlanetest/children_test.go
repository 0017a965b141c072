package runlanetest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/runlanetest"
)

var (
	doubled   = runlane.NewFunc[int, int]("numbers.double", &runlane.TaskOptions[int]{Queue: runlane.Queue{Name: "numbers"}})
	quadruple = runlane.NewFunc[int, int]("numbers.quadruple", nil)
)

// twice calls a run of another program, and another with its result.
func twice(ctx context.Context, a *runlane.Attempt, n int) (int, error) {
	two, err := doubled.Call(ctx, a, n, &runlane.CallOptions{Name: "first"})
	if err != nil {
		return 0, err
	}
	return doubled.Call(ctx, a, two, &runlane.CallOptions{Name: "second"})
}

func quadrupling(t testing.TB) (*runlanetest.Runtime, runlane.RunID) {
	rt := runlanetest.New(t, &runlanetest.Options{Handlers: []runlane.Handler{quadruple.Handle(twice)}})
	return rt, rt.MustTrigger(quadruple.With(3), nil).ID
}

func TestComplete_EndsChildrenOfAnotherProgram(t *testing.T) {
	t.Parallel()
	rt, id := quadrupling(t)
	for n := range 2 {
		rt.Settle()
		children := rt.History(id).Children
		if len(children) != n+1 {
			t.Fatalf("%d children", len(children))
		}
		for _, child := range children {
			if child.Status.Active() {
				number, err := doubled.Decode(child.Payload)
				if err != nil {
					t.Fatal(err)
				}
				rt.Complete(child.ID, 2*number)
			}
		}
	}
	run := rt.Finish(id)
	if got, err := quadruple.Result(&run.Run); err != nil || got != 12 {
		t.Errorf("got %d, %v", got, err)
	}
}

func TestFail_EndsWithoutRetries_AndTheCallerIsTold(t *testing.T) {
	t.Parallel()
	rt, id := quadrupling(t)
	rt.Settle()
	child := rt.History(id).Children[0].ID
	rt.Fail(child, &runlane.Error{Code: "no_numbers", Message: "there are no numbers"})
	if run := rt.History(child); run.Failure.Code != "no_numbers" || run.Counters.Attempts != 1 {
		t.Errorf("%+v, %d attempts", run.Failure, run.Counters.Attempts)
	}
	run := rt.Finish(id)
	if _, err := quadruple.Result(&run.Run); !errors.Is(err, runlane.ErrRunFailed) {
		t.Errorf("got %v", err)
	}
}

func TestComplete_WhatCannotBeEndedByHand_EndsTheTest(t *testing.T) {
	t.Parallel()
	for name, misuse := range map[string]func(*runlanetest.Runtime, runlane.RunID){
		"it has a handler here": func(rt *runlanetest.Runtime, id runlane.RunID) { rt.Complete(id, 1) },
		"there is none":         func(rt *runlanetest.Runtime, _ runlane.RunID) { rt.Complete("run_none", 1) },
		"it has ended": func(rt *runlanetest.Runtime, id runlane.RunID) {
			rt.Settle()
			child := rt.History(id).Children[0].ID
			rt.Complete(child, nil)
			rt.Fail(child, errors.New("again"))
		},
		"no error": func(rt *runlanetest.Runtime, id runlane.RunID) {
			rt.Settle()
			rt.Fail(rt.History(id).Children[0].ID, nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if failure := spyOn(t, func(t testing.TB) {
				rt, id := quadrupling(t)
				misuse(rt, id)
			}); failure == "" {
				t.Error("the test goes on")
			}
		})
	}
}

// A handler calls a run whose task another program executes: the test says how it ends.
func ExampleRuntime_Complete() {
	test := func(t *testing.T) {
		rt := runlanetest.New(t, &runlanetest.Options{Handlers: []runlane.Handler{quadruple.Handle(twice)}})
		id := rt.MustTrigger(quadruple.With(3), nil).ID
		rt.Settle() // up to the call
		rt.Complete(rt.History(id).Children[0].ID, 6)
		rt.Settle()
		rt.Fail(rt.History(id).Children[1].ID, errors.New("too large"))
		_, err := quadruple.Result(&rt.Finish(id).Run)
		fmt.Println(err)
	}
	_ = test
}
