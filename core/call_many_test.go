package core_test

import (
	"context"
	"log/slog"
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
			rt := openTree(t, treeNode.Handle(func(ctx context.Context, a *runlane.Attempt, n int) (int, error) {
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
			run, err := rt.Runs().Get(t.Context(), "run_root")
			if err != nil {
				t.Fatal(err)
			}
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

func (s distantCalls) TellEnd(ctx context.Context, c *lane.TellCommand) (*lane.Commit, error) {
	time.Sleep(5 * time.Millisecond)
	return s.Storage.TellEnd(ctx, c)
}

// A hundred ends in one moment meet each other in the call that counts them. Who loses tries again at once, so that the
// caller does not wait for a tick: there is none.
func TestCallAll_EndsThatMeet_AreToldWithoutATick(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const children = 300
		l, err := lane.New(distantCalls{memlane.NewStorage(nil)}, memlane.NewTransport(nil), &lane.Options{Environment: "test"})
		if err != nil {
			t.Fatal(err)
		}
		rt, err := core.Open(t.Context(), l, &core.Options{
			Logger: slog.New(slog.DiscardHandler),
			Handlers: []runlane.Handler{treeNode.Handle(func(ctx context.Context, a *runlane.Attempt, n int) (int, error) {
				if n == 0 {
					time.Sleep(time.Second)
					return 1, nil
				}
				results, err := runlane.CallAll(ctx, a, treeNode, make([]int, n), nil)
				return len(results), err
			})},
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		worked := make(chan error)
		go func() {
			worked <- rt.Work(ctx, &core.WorkOptions{Concurrency: 100, NoTick: true})
		}()
		began := time.Now()
		if _, err := rt.Trigger(t.Context(), treeNode.With(children), &runlane.TriggerOptions{RunID: "run_root"}); err != nil {
			t.Fatal(err)
		}
		waiting, give := context.WithTimeout(t.Context(), time.Minute)
		defer give()
		run, err := rt.Wait(waiting, "run_root")
		if err != nil || run.Status != runlane.StatusSucceeded {
			t.Fatal(run, err)
		}
		if took := time.Since(began); took > 20*time.Second {
			t.Errorf("%d runs that were called, each in a second, a hundred at once, took %s", children, took)
		}
		stop()
		if err := <-worked; err != nil {
			t.Error(err)
		}
		if err := rt.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
}
