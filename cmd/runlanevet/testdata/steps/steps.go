// Package steps has what runlanevet finds, with what it says, and what it leaves alone.
package steps

import (
	"context"
	"fmt"
	"time"

	"github.com/runlane/runlane-go"
)

type receipt struct {
	ID string
	At time.Time
}

type closed struct{ id string }

type open struct {
	Reply chan int
}

var (
	total   int
	decided = runlane.NewSignal[bool]("decided")
	render  = runlane.NewFunc[int, int]("render", nil)
)

func nothing(context.Context) error { return nil }

// Wrong is a handler that has it all.
func Wrong(ctx context.Context, a *runlane.Attempt, ids []string) error {
	var found string
	_, _ = runlane.Step(ctx, a, "find", func(context.Context) (int, error) {
		found = "x" // want "the step sets found"
		total++     // want "the step sets total"
		local := 1  //
		local += len(found)
		return local, nil
	})
	for range ids {
		_ = a.Do(ctx, "mail", nothing)     // want "Attempt.Do has the same name"
		a.Sleep(ctx, "pause", time.Second) // want "the error of Attempt.Sleep is dropped" "Attempt.Sleep has the same name"
	}
	_ = a.Do(ctx, "outer", func(ctx context.Context) error {
		return a.Do(ctx, "inner", nothing) // want "Attempt.Do within a step"
	})
	_ = a.Sleep(ctx, "night", time.Hour)                                                                // want "the error of Attempt.Sleep is dropped"
	_, _ = runlane.Step(ctx, a, "chan", func(context.Context) (open, error) { return open{}, nil })     // want "has a channel"
	_, _ = runlane.Step(ctx, a, "shut", func(context.Context) (closed, error) { return closed{}, nil }) // want "has no exported field"
	return nil
}

// Waits drops what suspends it.
func Waits(ctx context.Context, a *runlane.Attempt, node runlane.Node) error {
	_, _ = decided.Wait(ctx, a, nil)                 // want "the error of Signal.Wait is dropped"
	_ = runlane.WaitAny(ctx, a, nil)                 // want "the error of WaitAny is dropped"
	_ = runlane.WaitAll(ctx, a, nil)                 // want "the error of WaitAll is dropped"
	n, _ := render.Call(ctx, a, 1, nil)              // want "the error of Func.Call is dropped"
	_, _ = runlane.CallAll(ctx, a, render, nil, nil) // want "the error of CallAll is dropped"
	_, _ = render.Ref(node).Wait(ctx, a)             // want "the error of Ref.Wait is dropped"
	_, _ = a.CallRuns(ctx, runlane.CallRequest{})    // want "the error of Attempt.CallRuns is dropped"
	_, _ = a.WaitNode(ctx, node)                     // want "the error of Attempt.WaitNode is dropped"
	go a.Sleep(ctx, "beside", time.Hour)             // want "the error of Attempt.Sleep is dropped"
	return a.Do(ctx, "call", func(ctx context.Context) error {
		_, err := render.Call(ctx, a, n, nil) // want "Func.Call within a step"
		return err
	})
}

// Twice uses names that it has used.
func Twice(ctx context.Context, a, other *runlane.Attempt, first bool) error {
	const mail = "mail"
	if err := a.Do(ctx, "mail", nothing); err != nil {
		return err
	}
	if err := a.Do(ctx, mail, nothing); err != nil { // want "of a call before it: an attempt uses a name once"
		return err
	}
	if err := a.Sleep(ctx, "mail", time.Hour); err != nil { // want "Attempt.Sleep has the name"
		return err
	}
	if err := other.Do(ctx, "mail", nothing); err != nil {
		return err
	}
	_, err := runlane.Step(ctx, a, "mail", func(context.Context) (int, error) { return 0, nil }) // want "Step has the name"
	if err != nil {
		return err
	}
	if first {
		return a.Do(ctx, "either", nothing)
	}
	return a.Do(ctx, "either", nothing)
}

// Outside is no handler: a runtime blocks until the run has ended.
func Outside(ctx context.Context, rt runlane.Caller) { _, _ = render.Call(ctx, rt, 1, nil) }

// Right is a handler that is left alone.
func Right(ctx context.Context, a *runlane.Attempt, ids []string) error {
	for i, id := range ids {
		if err := a.Do(ctx, "mail/"+id, nothing); err != nil {
			return err
		}
		if err := a.Sleep(ctx, fmt.Sprint("pause/", i), time.Minute); err != nil {
			return err
		}
	}
	for range 3 {
		each := func() error { return a.Do(ctx, "called elsewhere", nothing) }
		_ = each
	}
	got, err := runlane.Step(ctx, a, "receipt", func(context.Context) ([]receipt, error) { return nil, nil })
	if err != nil {
		return err
	}
	_ = got
	_, err = runlane.Step(ctx, a, "none", func(context.Context) (struct{}, error) { return struct{}{}, nil })
	if err != nil {
		return err
	}
	_ = a.Sleep(ctx, "meant", time.Hour) //runlanevet:ignore a test of the mark
	return a.Do(ctx, "fields", func(context.Context) error {
		a.Number = 2 // a field, not a variable
		return nil
	})
}
