package core_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/memlane"
)

// distant is a storage that needs its time for a read of many runs and for each commit.
type distant struct {
	lane.Storage

	far *atomic.Bool
}

func (s distant) Unwrap() lane.Storage { return s.Storage }

func (s distant) take(ctx context.Context, d time.Duration) error {
	if s.far.Load() {
		time.Sleep(d)
	}
	return ctx.Err()
}

func (s distant) GetRuns(ctx context.Context, q *lane.RunsQuery) ([]*runlane.Run, error) {
	if err := s.take(ctx, time.Duration(len(q.IDs))*4*time.Millisecond); err != nil {
		return nil, err
	}
	return s.Storage.GetRuns(ctx, q)
}

func (s distant) AppendRunEvents(ctx context.Context, c *lane.AppendCommand) (*lane.Commit, error) {
	if err := s.take(ctx, 15*time.Millisecond); err != nil {
		return nil, err
	}
	return s.Storage.AppendRunEvents(ctx, c)
}

// A node that has called more runs than can be read in the time that a tick has for ends is cancelled: each tick comes further, all of them
// are asked to end, and what undoes the node does not wait for that.
func TestCancel_OfARunThatCalledMany_ReachesAllOfThem(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const calls, each = 2, 1000
		far := &atomic.Bool{}
		child := runlane.NewFunc[int, int]("child", nil)
		parent, undo := runlane.NewTask[int]("parent", nil), runlane.NewTask[int]("undo", nil)
		rt := openOn(t, distant{memlane.NewStorage(nil), far}, memlane.NewTransport(nil),
			child.Handle(func(context.Context, *runlane.Attempt, int) (int, error) {
				return 0, runlane.Release(1000*time.Hour, "waits")
			}),
			undo.Handle(func(context.Context, *runlane.Attempt, int) error { return nil }),
			parent.Handle(func(ctx context.Context, a *runlane.Attempt, _ int) error {
				var all error
				for i := range calls {
					_, err := runlane.CallAll(ctx, a, child, make([]int, each), &runlane.CallOptions{Name: fmt.Sprint("call ", i)})
					all = errors.Join(all, err)
				}
				return all
			}))
		f := runlane.NewFlow("f")
		n := f.Add("n", parent.With(1), nil)
		f.Add("undo", undo.With(1), &runlane.NodeOptions{After: []runlane.Node{n}, If: runlane.IfFailed})
		flow, err := rt.StartFlow(t.Context(), f, nil)
		if err != nil {
			t.Fatal(err)
		}
		work := func() {
			if err := rt.Work(t.Context(), &core.WorkOptions{Drain: true, Concurrency: 8}); err != nil {
				t.Fatal(err)
			}
		}
		work()
		far.Store(true)
		if _, err := rt.Runs().Cancel(t.Context(), flow.Nodes[0].RunID, nil); err != nil {
			t.Fatal(err)
		}
		waiting := func() (n int) {
			for _, err := range rt.Runs().All(t.Context(), &core.ListOptions{RunFilter: core.RunFilter{Statuses: []runlane.Status{runlane.StatusReleased}}}) {
				if err != nil {
					t.Fatal(err)
				}
				n++
			}
			return n
		}
		for before := waiting(); before > 0; {
			time.Sleep(time.Minute)
			if _, err := rt.Tick(t.Context(), &core.TickOptions{Deadline: time.Now().Add(time.Minute), Repeat: true}); err != nil {
				t.Log(err)
			}
			after := waiting()
			if after >= before {
				t.Fatalf("a tick asked none of %d runs to end", after)
			}
			before = after
		}
		far.Store(false)
		work()
		if flow, err := rt.Flows().Get(t.Context(), "f"); err != nil || flow.Nodes[1].Status != runlane.StatusSucceeded {
			t.Errorf("what undoes the node: %+v, %v", flow, err)
		}
	})
}

// damaged is a storage with a run that no read of many finds whole, and another that no commit goes on with.
type damaged struct {
	lane.Storage

	unread, stuck *atomic.Pointer[runlane.RunID]
}

func (s damaged) Unwrap() lane.Storage { return s.Storage }

var errDamaged = &runlane.Error{Code: runlane.ErrInvariantViolation, Message: "the row is damaged"}

func (s damaged) GetRuns(ctx context.Context, q *lane.RunsQuery) ([]*runlane.Run, error) {
	if id := s.unread.Load(); id != nil && slices.Contains(q.IDs, *id) {
		return nil, errDamaged
	}
	return s.Storage.GetRuns(ctx, q)
}

func (s damaged) AppendRunEvents(ctx context.Context, c *lane.AppendCommand) (*lane.Commit, error) {
	if id := s.stuck.Load(); id != nil && c.Projected.ID == *id {
		return nil, errDamaged
	}
	return s.Storage.AppendRunEvents(ctx, c)
}

// Damaged children of a cancelled run keep none of the others from being asked to end, also of the same read, and the tick reports them.
func TestCancel_OfARunWithDamagedChildren_ReachesTheOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const each = 250
		unread, stuck := &atomic.Pointer[runlane.RunID]{}, &atomic.Pointer[runlane.RunID]{}
		child, parent := runlane.NewFunc[int, int]("child", nil), runlane.NewFunc[int, int]("parent", nil)
		rt := openOn(t, damaged{memlane.NewStorage(nil), unread, stuck}, memlane.NewTransport(nil),
			child.Handle(func(context.Context, *runlane.Attempt, int) (int, error) {
				return 0, runlane.Release(1000*time.Hour, "waits")
			}),
			parent.Handle(func(ctx context.Context, a *runlane.Attempt, _ int) (int, error) {
				_, err := runlane.CallAll(ctx, a, child, make([]int, each), nil)
				return 0, err
			}))
		triggerWith(t, rt, parent.With(1), &runlane.TriggerOptions{RunID: "run_root"})
		if err := rt.Work(t.Context(), &core.WorkOptions{Drain: true, Concurrency: 8}); err != nil {
			t.Fatal(err)
		}
		tree, err := rt.Runs().Tree(t.Context(), "run_root", &core.TreeOptions{Each: each})
		if err != nil {
			t.Fatal(err)
		}
		children := tree.Calls[0].Runs
		unread.Store(&children[10].Run.ID)
		stuck.Store(&children[120].Run.ID)
		if _, err := rt.Runs().Cancel(t.Context(), "run_root", nil); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		report, err := rt.Tick(t.Context(), &core.TickOptions{Deadline: time.Now().Add(time.Minute)})
		if err == nil && report.Told.Err == nil {
			t.Errorf("the tick does not tell of the damaged runs: %+v", report)
		}
		unread.Store(nil)
		stuck.Store(nil)
		if tree, err = rt.Runs().Tree(t.Context(), "run_root", nil); err != nil {
			t.Fatal(err)
		}
		if got := tree.Calls[0].Statuses; got[runlane.StatusCancelled] != each-2 {
			t.Errorf("%v, want all but two cancelled", got)
		}
	})
}
