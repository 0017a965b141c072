package core_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/memlane"
)

// retryStore does something before and after a retry writes the round: it has read the runs of its flow, and made none.
type retryStore struct {
	*memlane.Storage

	before, after func()
}

func (s *retryStore) PutFlow(ctx context.Context, c *lane.FlowCommand) (*lane.FlowRecord, error) {
	first := c.Flow.Round == 1 && c.Flow.Plan != nil && !c.Remove
	if do := s.before; do != nil && first {
		s.before = nil
		do()
	}
	put, err := s.Storage.PutFlow(ctx, c)
	if do := s.after; do != nil && first {
		s.after = nil
		do()
	}
	return put, err
}

// retryWorld is a runtime with a task whose handler is given.
type retryWorld struct {
	*core.Runtime

	store  *retryStore
	task   *runlane.Task[int]
	handle func(n int) error
}

func newRetryWorld(t *testing.T, handle func(n int) error) *retryWorld {
	t.Helper()
	w := &retryWorld{
		store: &retryStore{Storage: memlane.NewStorage(nil)}, task: runlane.NewTask[int]("task", nil), handle: handle,
	}
	w.Runtime = openOn(t, w.store, memlane.NewTransport(nil), w.task.Handle(func(_ context.Context, _ *runlane.Attempt, n int) error {
		return w.handle(n)
	}))
	return w
}

// start starts a flow and executes what can be.
func (w *retryWorld) start(t *testing.T, f *runlane.Flow) {
	t.Helper()
	if _, err := w.StartFlow(t.Context(), f, nil); err != nil {
		t.Fatal(err)
	}
	w.drain(t)
}

func (w *retryWorld) drain(t *testing.T) {
	t.Helper()
	if err := w.Work(t.Context(), &core.WorkOptions{Drain: true, Concurrency: 3}); err != nil {
		t.Fatal(err)
	}
}

// wantFlow returns the flow, which has the status.
func (w *retryWorld) wantFlow(t *testing.T, status runlane.FlowStatus) *runlane.FlowState {
	t.Helper()
	state, err := w.Flows().Get(t.Context(), "f")
	if err != nil || state.Status != status {
		t.Fatalf("it is not %s: %v, %v", status, state, err)
	}
	return state
}

var errRetry = errors.New("no")

func TestFlows_RetryThatCannotBeMade_ChangesNothing(t *testing.T) {
	t.Parallel()
	w := newRetryWorld(t, func(int) error { return runlane.Permanent(errRetry) })
	f := runlane.NewFlow("f")
	f.Add("a", w.task.With(1), &runlane.NodeOptions{Meta: map[string]string{"k": strings.Repeat("x", runlane.MaxMetaBytes-50)}})
	w.start(t, f)
	_, err := w.Flows().Retry(t.Context(), "f", &core.RetryFlowOptions{
		ChangeOptions: core.ChangeOptions{Reason: strings.Repeat("why ", 20)},
	})
	if runlane.CodeOf(err) != runlane.ErrValidationFailed {
		t.Fatal(err)
	}
	if state := w.wantFlow(t, runlane.FlowFailed); state.FinishedAt.IsZero() || state.Retries != 0 {
		t.Errorf("a retry that was refused took its end away: %+v", state)
	}
	if _, err := w.Flows().Retry(t.Context(), "f", nil); err != nil {
		t.Error(err)
	}
}

// A process dies behind the write of the round; then the flow is cancelled, or a tick does so an hour later.
func TestFlows_RetryThatDied_IsRetried(t *testing.T) {
	t.Parallel()
	for _, by := range []string{"operator", "tick"} {
		t.Run(by, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				broken := true
				w := newRetryWorld(t, func(int) error {
					if broken {
						return runlane.Permanent(errRetry)
					}
					return nil
				})
				f := runlane.NewFlow("f")
				f.Add("b", w.task.With(2), &runlane.NodeOptions{After: []runlane.Node{f.Add("a", w.task.With(1), nil)}})
				w.start(t, f)
				w.wantFlow(t, runlane.FlowFailed)
				dying, die := context.WithCancel(t.Context())
				w.store.after = die
				if _, err := w.Flows().Retry(dying, "f", nil); err == nil {
					t.Fatal("it lives")
				}
				if by == "operator" {
					if _, err := w.Flows().Cancel(t.Context(), "f", nil); err != nil {
						t.Fatal(err)
					}
				}
				time.Sleep(2 * time.Hour)
				tick(t, w)
				w.wantFlow(t, runlane.FlowCancelled)
				broken = false
				if _, err := w.Flows().Retry(t.Context(), "f", nil); err != nil {
					t.Fatal(err)
				}
				w.drain(t)
				w.wantFlow(t, runlane.FlowCompleted)
			})
		})
	}
}

// Pruning removes a node that stays between the look and the write of a retry.
func TestFlows_RetryThatMeetsPruning_Ends(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		broken := true
		w := newRetryWorld(t, func(n int) error {
			if n == 2 {
				time.Sleep(time.Hour)
			}
			if n == 2 && broken {
				return runlane.Permanent(errRetry)
			}
			return nil
		})
		f := runlane.NewFlow("f")
		a, b := f.Add("a", w.task.With(1), nil), f.Add("b", w.task.With(2), nil)
		f.Add("c", w.task.With(3), &runlane.NodeOptions{After: []runlane.Node{a, b}})
		w.start(t, f)
		broken = false
		w.store.before = func() {
			pruned, err := w.Runs().Prune(t.Context(), &core.PruneOptions{OlderThan: 30 * time.Minute})
			if err != nil || pruned.Changed != 1 {
				t.Error(pruned, err)
			}
		}
		if _, err := w.Flows().Retry(t.Context(), "f", nil); err != nil {
			t.Fatal(err)
		}
		w.drain(t)
		w.wantFlow(t, runlane.FlowCompleted)
	})
}

// Pruning beside a retry that makes a new run of a failed node. Before the retry its run is gone: nothing is written.
// Between the look and the write, a typed error tells of it and a tick ends the flow. Afterwards the flow keeps its runs.
func TestFlows_RetryBesidePruning(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		pruned  int
		refused bool
		want    runlane.FlowStatus
	}{
		"before":          {1, true, runlane.FlowFailed},
		"at the write":    {1, true, runlane.FlowCancelled},
		"after the write": {0, false, runlane.FlowCompleted},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				broken := true
				w := newRetryWorld(t, func(n int) error {
					if n == 2 {
						time.Sleep(time.Hour)
					}
					if n == 1 && broken {
						return runlane.Permanent(errRetry)
					}
					return nil
				})
				f := runlane.NewFlow("f")
				f.Add("a", w.task.With(1), nil)
				f.Add("b", w.task.With(2), nil)
				w.start(t, f)
				broken = false
				prune := func() {
					pruned, err := w.Runs().Prune(t.Context(), &core.PruneOptions{OlderThan: 30 * time.Minute})
					if err != nil || pruned.Changed != c.pruned {
						t.Error(pruned, err)
					}
				}
				switch name {
				case "before":
					prune()
				case "at the write":
					w.store.before = prune
				default:
					w.store.after = prune
				}
				_, err := w.Flows().Retry(t.Context(), "f", nil)
				if errors.Is(err, runlane.ErrValidationFailed) != c.refused || !c.refused && err != nil {
					t.Errorf("%v", err)
				}
				time.Sleep(time.Hour)
				if _, err := w.Tick(t.Context(), nil); err != nil {
					t.Error(err)
				}
				w.drain(t)
				w.wantFlow(t, c.want)
			})
		})
	}
}

// What had begun in the round before is undone, when its undo failed there and the retry is cancelled before it begins.
// What was undone there is not undone twice.
func TestFlows_UndoThatFailed_IsOwed(t *testing.T) {
	t.Parallel()
	for fails, want := range map[int]int{0: 1, 1: 1} {
		undone := 0
		w := newRetryWorld(t, func(n int) error {
			switch {
			case n == 1:
				return runlane.Permanent(errRetry)
			case fails > 0:
				fails--
				return runlane.Permanent(errRetry)
			}
			undone++
			return nil
		})
		f := runlane.NewFlow("f")
		a := f.Add("a", w.task.With(1), nil)
		f.Add("undo", w.task.With(2), &runlane.NodeOptions{After: []runlane.Node{a}, If: runlane.IfFailed})
		w.start(t, f)
		if _, err := w.Flows().Retry(t.Context(), "f", &core.RetryFlowOptions{NothingUndone: true}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Flows().Cancel(t.Context(), "f", nil); err != nil {
			t.Fatal(err)
		}
		w.drain(t)
		if w.wantFlow(t, runlane.FlowCancelled); undone != want {
			t.Errorf("undone %d times, want %d", undone, want)
		}
	}
}
