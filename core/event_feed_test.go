package core_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/lanetest"
	"github.com/runlane/runlane-go/memlane"
)

// countedReads counts what a feed asks of its storage, and can fail.
type countedReads struct {
	lane.Storage

	looks, pages atomic.Int64
	failing      atomic.Bool
}

func (c *countedReads) GetRuns(ctx context.Context, q *lane.RunsQuery) ([]*runlane.Run, error) {
	c.looks.Add(1)
	if c.failing.Load() {
		return nil, &runlane.Error{Code: runlane.ErrStorageUnavailable, Message: "scripted", Retryable: true}
	}
	return c.Storage.GetRuns(ctx, q)
}

func (c *countedReads) ListRunEvents(ctx context.Context, q *lane.EventQuery) (*runlane.Page[runlane.EventRecord], error) {
	c.pages.Add(1)
	return c.Storage.ListRunEvents(ctx, q)
}

// feedOn opens a runtime on a counted storage, with a run that waits.
func feedOn(t *testing.T) (*core.Runtime, *countedReads, *runlane.Run) {
	t.Helper()
	storage := &countedReads{Storage: memlane.NewStorage(nil)}
	rt := openOn(t, storage, memlane.NewTransport(nil))
	task := runlane.NewTask[numbered]("followed", nil)
	result := trigger(t, rt, task.With(numbered{}))
	return rt, storage, result
}

func TestEvents_FollowingAnIdleRunIsCheap(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rt, storage, run := feedOn(t)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		events := 0
		for _, err := range rt.Runs().Events(ctx, run.ID, &core.EventOptions{Follow: true}) {
			if err == nil {
				events++
			} else if runlane.CodeOf(err) != runlane.ErrOperationCancelled || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("the feed ended with %v", err)
			}
		}
		if looks := storage.looks.Load(); events != 2 || storage.pages.Load() != 1 || looks < 100 || looks > 200 {
			t.Errorf("%d events, %d looks and %d pages in ten minutes, want a look about every 5 s", events, looks, storage.pages.Load())
		}
	})
}

// After a long wait the first thing that happens makes the feed quick again.
func TestEvents_FollowingWakesUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rt, storage, run := feedOn(t)
		var end time.Time
		events := 0
		for _, err := range rt.Runs().Events(t.Context(), run.ID, &core.EventOptions{Follow: true}) {
			if err != nil {
				t.Fatal(err)
			}
			switch events++; events {
			case 2: // an hour later a wakeup is asked for again
				time.AfterFunc(time.Hour, func() { requestAgain(t, rt, storage, run.ID) })
			case 3: // and right then an operator cancels
				end = time.Now().Add(20 * time.Millisecond)
				time.AfterFunc(20*time.Millisecond, func() { _, _ = rt.Runs().Cancel(t.Context(), run.ID, nil) })
			}
		}
		if late := time.Since(end); events != 4 || late > 100*time.Millisecond {
			t.Errorf("%d events, the last %s late", events, late)
		}
	})
}

func requestAgain(t *testing.T, rt *core.Runtime, storage lane.Storage, id runlane.RunID) {
	t.Helper()
	run, err := rt.Runs().Get(t.Context(), id)
	if err != nil {
		t.Error(err)
		return
	}
	at := runlane.UTCMillis(time.Now())
	events := []runlane.Event{{RunID: id, Environment: run.Environment, OccurredAt: at, Actor: runlane.SystemActor, Body: lanetest.Delivery(run, at, at)}}
	projected, err := core.ProjectRunEvents(run, run.EventSequence, events...)
	if err == nil {
		_, err = storage.AppendRunEvents(t.Context(), &lane.AppendCommand{Transition: lane.Transition{
			ExpectedSequence: run.EventSequence, Events: events, Projected: projected,
		}})
	}
	if err != nil {
		t.Error(err)
	}
}

func TestEvents_AnOutageEndsTheFeed_TheCursorResumes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rt, storage, run := feedOn(t)
		storage.failing.Store(true)
		var at runlane.Cursor
		var sequences []int64
		for record, err := range rt.Runs().Events(t.Context(), run.ID, &core.EventOptions{Follow: true}) {
			if err != nil {
				if runlane.CodeOf(err) != runlane.ErrStorageUnavailable {
					t.Errorf("the feed ended with %v", err)
				}
				continue
			}
			at, sequences = core.EventCursor(&record), append(sequences, record.Sequence)
		}
		storage.failing.Store(false)
		if _, err := rt.Runs().Cancel(t.Context(), run.ID, nil); err != nil {
			t.Fatal(err)
		}
		for record, err := range rt.Runs().Events(t.Context(), run.ID, &core.EventOptions{Follow: true, After: at}) {
			if err != nil {
				t.Fatal(err)
			}
			sequences = append(sequences, record.Sequence)
		}
		if len(sequences) != 3 || sequences[0] != 1 || sequences[1] != 2 || sequences[2] != 3 {
			t.Errorf("saw the events %v", sequences)
		}
	})
}

// A lane may hide its runs from operators; what an application needs stays.
func TestOperatorReads_CanBeHidden(t *testing.T) {
	t.Parallel()
	l, err := lane.New(memlane.NewStorage(nil), memlane.NewTransport(nil), &lane.Options{NoOperatorReads: true})
	if err != nil {
		t.Fatal(err)
	}
	rt := openQuiet(t, l, core.Options{})
	result := trigger(t, rt, runlane.NewTask[numbered]("hidden", nil).With(numbered{}))
	runs, ctx := rt.Runs(), t.Context()
	for name, call := range map[string]func() error{
		"List":      func() error { _, err := runs.List(ctx, nil); return err },
		"Attempts":  func() error { _, err := runs.Attempts(ctx, result.ID); return err },
		"CancelAll": func() error { _, err := runs.CancelAll(ctx, &core.BulkOptions{AllRuns: true}); return err },
		"Prune":     func() error { _, err := runs.Prune(ctx, &core.PruneOptions{OlderThan: 1, DryRun: true}); return err },
		"Stats":     func() error { _, err := rt.Queues().Stats(ctx, "default"); return err },
	} {
		if err := call(); runlane.CodeOf(err) != runlane.ErrCapabilityUnsupported {
			t.Errorf("%s says %v", name, err)
		}
	}
	if _, err := runs.Get(ctx, result.ID); err != nil {
		t.Error(err)
	}
	if e, err := runs.Explain(ctx, result.ID); err != nil || e.Wait != core.WaitWakeup {
		t.Errorf("explained as %+v, %v", e, err)
	}
}
