package core_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/memlane"
)

var moveYes, moveTwo = runlane.NewSignal[bool]("yes"), runlane.NewSignal[bool]("two")

// goOn ticks and executes through five hours of the program's clock.
func (m *mover) goOn(now *time.Time) {
	m.t.Helper()
	for range 20 {
		if _, err := m.Tick(m.t.Context(), nil); err != nil {
			m.t.Fatal(err)
		}
		m.drain()
		*now = now.Add(15 * time.Minute)
	}
}

// A wait of many names keeps none of them: its run goes on all the same where it is imported.
func TestMove_WaitsTooLargeForTheirNames_GoOn(t *testing.T) {
	t.Parallel()
	for name, call := range map[string]func(context.Context, *runlane.Attempt) error{
		"four calls": func(ctx context.Context, a *runlane.Attempt) error {
			var all error
			for i := range 4 {
				_, err := moveChild.Call(ctx, a, 2, &runlane.CallOptions{Name: fmt.Sprint("call ", i)})
				all = errors.Join(all, err)
			}
			return all
		},
		"a call and a long question": func(ctx context.Context, a *runlane.Attempt) error {
			_, called := moveChild.Call(ctx, a, 2, &runlane.CallOptions{Name: "fetch the attachments of the contract of the customer"})
			if called == nil {
				return nil
			}
			_, asked := moveYes.Wait(ctx, a, &runlane.WaitOptions{Prompt: strings.Repeat("Go on without? ", 10)})
			return errors.Join(called, asked)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			from, _ := newCallerOf(t, call)
			id := from.trigger(moveCaller.With(""), nil)
			from.drain()
			to, now := newCallerOf(t, call)
			to.imports(from.export())
			to.goOn(now)
			if run, err := to.Runs().Get(t.Context(), id); err != nil || run.Status != runlane.StatusSucceeded {
				t.Errorf("it is %s, %v, and waits for %+v", run.Status, err, run.Waiting)
			}
		})
	}
}

// A cancellation goes down to runs that were moved with the one that called them, although no record of the call was.
func TestMove_ACallerThatIsCancelled_TakesItsRunsAlong(t *testing.T) {
	t.Parallel()
	from, _ := newCaller(t)
	id := from.trigger(moveCaller.With(""), nil)
	from.drain()
	to, now := newCaller(t)
	to.imports(from.export())
	if _, err := to.Runs().Cancel(t.Context(), id, nil); err != nil {
		t.Fatal(err)
	}
	to.goOn(now)
	are := map[runlane.Status]int{}
	for run, err := range to.Runs().All(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		are[run.Status]++
	}
	want := map[runlane.Status]int{runlane.StatusSucceeded: 1, runlane.StatusCancelled: 2} // one had ended before
	if diff := cmp.Diff(want, are); diff != "" {
		t.Error(diff)
	}
}

// Answers that were moved here are no signals of this lane: one that came here, and that no wait has read, is not left behind for them.
func TestMove_ASecondTime_RefusesUnreadSignals(t *testing.T) {
	t.Parallel()
	asks := func(ctx context.Context, a *runlane.Attempt) error {
		if _, err := moveYes.Wait(ctx, a, nil); err != nil {
			return err
		}
		if err := a.Sleep(ctx, "term", 10*time.Hour); err != nil {
			return err
		}
		_, err := moveTwo.Wait(ctx, a, nil)
		return err
	}
	first, _ := newCallerOf(t, asks)
	id := first.trigger(moveCaller.With(""), nil)
	first.drain()
	if err := first.Signal(t.Context(), id, moveYes.With(true), nil); err != nil {
		t.Fatal(err)
	}
	first.drain()
	second, _ := newCallerOf(t, asks)
	second.imports(first.export())
	second.drain()
	second.export()
	if err := second.Signal(t.Context(), id, moveTwo.With(true), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := second.Export(t.Context(), &strings.Builder{}, nil); runlane.CodeOf(err) != runlane.ErrStorageConflict {
		t.Errorf("an export with a signal that was not read: %v", err)
	}
}

// An answer that is sealed may be of a signal that stayed behind at an earlier move. Without its codec it hides no signal that was not read.
func TestMove_ASecondTimeWithoutTheCodec_RefusesUnreadSignals(t *testing.T) {
	t.Parallel()
	asks := moveCaller.Handle(func(ctx context.Context, a *runlane.Attempt, _ string) error {
		if _, err := moveYes.Wait(ctx, a, nil); err != nil {
			return err
		}
		return runlane.Block("look at it")
	})
	coded := core.Options{Codec: &scriptedCodec{key: "k"}}
	first := &mover{Runtime: openQuiet(t, memlane.New(), coded, asks), t: t}
	id := first.trigger(moveCaller.With(""), nil)
	first.drain()
	if err := first.Signal(t.Context(), id, moveYes.With(true), nil); err != nil {
		t.Fatal(err)
	}
	first.drain()
	l := memlane.New()
	second := &mover{Runtime: openQuiet(t, l, coded, asks), t: t}
	second.imports(first.export())
	if err := second.Signal(t.Context(), id, moveTwo.With(true), nil); err != nil {
		t.Fatal(err)
	}
	_, err := openQuiet(t, l, core.Options{}).Export(t.Context(), &strings.Builder{}, nil)
	if runlane.CodeOf(err) != runlane.ErrStorageConflict || !strings.Contains(err.Error(), "1 answers that cannot be read here") {
		t.Errorf("an export without the codec: %v", err)
	}
}
