package core_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/memlane"
)

// The record names ten runs triggered by hand: those that ended make room first, then the oldest goes.
func TestTriggerNow_MoreActiveRunsThanFit_NotesTheLatest(t *testing.T) {
	t.Parallel()
	task := runlane.NewTask[payload]("scheduled", nil)
	rt := openQuiet(t, memlane.New(), core.Options{Schedules: []runlane.Schedule{{
		ID: "hourly", When: runlane.Every(time.Hour), Call: task.With(payload{}), Overlap: runlane.OverlapReplace,
	}}})
	var want []runlane.RunID
	trigger := func(n int) {
		for range n {
			run, err := rt.Schedules().TriggerNow(t.Context(), "hourly", nil)
			if err != nil {
				t.Fatal(err)
			}
			want = append(want, run.ID)
		}
	}
	notes := func(what string) {
		state, err := rt.Schedules().Get(t.Context(), "hourly")
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(state.ManualRunIDs, want) {
			t.Fatalf("%s: noted are %v, want %v", what, state.ManualRunIDs, want)
		}
	}
	trigger(10)
	notes("ten")
	if _, err := rt.Runs().Cancel(t.Context(), want[3], nil); err != nil {
		t.Fatal(err)
	}
	notes("one ended")
	trigger(1)
	want = slices.Delete(want, 3, 4)
	notes("it made room")
	trigger(2)
	want = want[2:]
	notes("no room")
}

// Callers at the same time all get their runs, and all of these are noted.
func TestTriggerNow_ManyAtOnce_AllAreNoted(t *testing.T) {
	t.Parallel()
	task := runlane.NewTask[payload]("scheduled", nil)
	rt := openQuiet(t, memlane.New(), core.Options{Schedules: []runlane.Schedule{{
		ID: "hourly", When: runlane.Every(time.Hour), Call: task.With(payload{}), Overlap: runlane.OverlapForbid,
	}}})
	const callers = 8
	ids, failed := make([]runlane.RunID, callers), make(chan error, callers)
	for i := range callers {
		go func() {
			run, err := rt.Schedules().TriggerNow(t.Context(), "hourly", nil)
			if err != nil {
				err = fmt.Errorf("caller %d: %w", i, err)
			} else {
				ids[i] = run.ID
			}
			failed <- err
		}()
	}
	for range callers {
		if err := <-failed; err != nil {
			t.Error(err)
		}
	}
	state, err := rt.Schedules().Get(t.Context(), "hourly")
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(ids)
	noted := slices.Sorted(slices.Values(state.ManualRunIDs))
	if !slices.Equal(noted, ids) {
		t.Fatalf("noted are %v, made %v", noted, ids)
	}
}
