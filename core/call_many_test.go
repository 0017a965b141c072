package core_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/memlane"
)

// A run that calls a thousand others is executed at most three times: when it calls, and when the last of them has ended.
// It calls as many as it may; one more is refused before anything is written.
func TestCallAll_OfThousands_WakesTheCallerOnce(t *testing.T) {
	t.Parallel()
	for name, n := range map[string]int{"a thousand": 1000, "as many as there may be": runlane.MaxCalled, "one more": runlane.MaxCalled + 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rt := openQuiet(t, memlane.New(), core.Options{}, treeNode.Handle(func(ctx context.Context, a *runlane.Attempt, n int) (int, error) {
				if n == 0 {
					return 1, nil
				}
				results, err := runlane.CallAll(ctx, a, treeNode, make([]int, n), nil)
				sum := 0
				for _, result := range results {
					sum += result.Value
				}
				return sum, err
			}))
			drained(t, rt, treeNode.With(n), "run_root")
			run := runOf(t, rt, "run_root")
			if n > runlane.MaxCalled {
				tree, err := rt.Runs().Tree(t.Context(), "run_root", &core.TreeOptions{Each: 1})
				if err != nil || run.Failure.Code != runlane.ErrValidationFailed || len(tree.Calls) > 0 {
					t.Errorf("%+v, %+v, %v", run.Failure, tree, err)
				}
				return
			}
			if got, err := treeNode.Result(run); err != nil || got != n || run.Counters.Attempts > 3 {
				t.Errorf("got %d, %v, %d attempts", got, err, run.Counters.Attempts)
			}
		})
	}
}

// distantCalls is a storage whose calls take as long to read and to count as a database's.
type distantCalls struct{ *memlane.Storage }

func (s distantCalls) ReadCalls(ctx context.Context, q *lane.CallQuery) (*lane.CallsRead, error) {
	defer time.Sleep(3 * time.Millisecond)
	return s.Storage.ReadCalls(ctx, q)
}

func (s distantCalls) NotifyEnd(ctx context.Context, c *lane.NotifyCommand) (*lane.Commit, error) {
	time.Sleep(5 * time.Millisecond)
	return s.Storage.NotifyEnd(ctx, c)
}

// A hundred ends in one moment meet each other in the call that counts them. Who loses tries again at once, so that the
// caller does not wait for a tick: there is none.
func TestCallAll_EndsThatMeet_AreToldWithoutATick(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const children = 300
		rt := openOn(t, distantCalls{memlane.NewStorage(nil)}, memlane.NewTransport(nil),
			treeNode.Handle(func(ctx context.Context, a *runlane.Attempt, n int) (int, error) {
				if n == 0 {
					time.Sleep(time.Second)
					return 1, nil
				}
				results, err := runlane.CallAll(ctx, a, treeNode, make([]int, n), nil)
				return len(results), err
			}))
		defer startWork(t, rt, &core.WorkOptions{Concurrency: 100, NoTick: true})()
		began := time.Now()
		triggerWith(t, rt, treeNode.With(children), &runlane.TriggerOptions{RunID: "run_root"})
		waiting, give := context.WithTimeout(t.Context(), time.Minute)
		defer give()
		run, err := rt.Wait(waiting, "run_root")
		if err != nil || run.Status != runlane.StatusSucceeded {
			t.Fatal(run, err)
		}
		if took := time.Since(began); took > 20*time.Second {
			t.Errorf("%d runs that were called, each in a second, a hundred at once, took %s", children, took)
		}
	})
}

// looksKept is a storage that keeps what suspensions depend on.
type looksKept struct {
	*memlane.Storage

	looks chan *lane.Look
}

func (s looksKept) AppendRunEvents(ctx context.Context, c *lane.AppendCommand) (*lane.Commit, error) {
	if c.Look != nil {
		s.looks <- c.Look
	}
	return s.Storage.AppendRunEvents(ctx, c)
}

// A suspension depends on a set of calls that every storage can check in one commit, whatever the handler does: more
// calls at once than that, each asked for twice. The run looks again for the rest.
func TestCall_ManyAtOnceAndTwice_SuspendOnEveryStorage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const calls = 2 * lane.MaxLookCalls
		s := looksKept{memlane.NewStorage(nil), make(chan *lane.Look, calls)}
		child := runlane.NewFunc[int, int]("child", nil)
		parent := runlane.NewTask[int]("parent", nil)
		w := &retryWorld{Runtime: openOn(t, s, memlane.NewTransport(nil),
			child.Handle(func(context.Context, *runlane.Attempt, int) (int, error) { return 1, nil }),
			parent.Handle(func(ctx context.Context, a *runlane.Attempt, _ int) error {
				var faults []error
				for i := range 2 * calls {
					_, err := child.Call(ctx, a, i/2, &runlane.CallOptions{Name: fmt.Sprintf("call/%03d", i/2)})
					if runlane.Suspended(err) {
						faults = append(faults, err)
					}
				}
				return errors.Join(faults...)
			}))}
		triggerWith(t, w, parent.With(1), &runlane.TriggerOptions{RunID: "run_p"})
		if done, err := w.ExecuteNext(t.Context(), nil); err != nil || done.Run.Status != runlane.StatusReleased || done.Run.RunAt.After(time.Now().Add(time.Minute)) {
			t.Fatal(done, err)
		}
		look := <-s.looks
		names := slices.Compact(slices.Sorted(slices.Values(look.Calls)))
		if len(look.Calls) != lane.MaxLookCalls || len(names) != len(look.Calls) {
			t.Errorf("the suspension depends on %d calls, %d of them different", len(look.Calls), len(names))
		}
		w.drain(t)
		if run, err := w.Runs().Get(t.Context(), "run_p"); err != nil || run.Status != runlane.StatusSucceeded {
			t.Error(run, err)
		}
	})
}
