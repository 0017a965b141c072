package core_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/memlane"
)

// A run calls another, and is called again when that has ended.
func ExampleRuntime_CallRuns() {
	square := runlane.NewFunc[int, int]("square", nil)
	sum := runlane.NewFunc[[]int, int]("sum", nil)
	ctx := context.Background()
	rt, err := core.Open(ctx, memlane.New(), &core.Options{Handlers: []runlane.Handler{
		square.Handle(func(_ context.Context, _ *runlane.Attempt, n int) (int, error) {
			if n < 0 {
				return 0, runlane.Permanent(errors.New("negative"))
			}
			return n * n, nil
		}),
		sum.Handle(func(ctx context.Context, a *runlane.Attempt, numbers []int) (int, error) {
			squares, err := runlane.CallAll(ctx, a, square, numbers, nil)
			total := 0
			for _, one := range squares {
				if one.Err != nil {
					return 0, one.Err
				}
				total += one.Value
			}
			return total, err
		}),
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer rt.Close(ctx)
	go func() { // in production these are other processes
		_ = rt.Work(ctx, nil)
	}()
	fmt.Println(sum.Call(ctx, rt, []int{1, 2, 3}, nil))
	_, err = sum.Call(ctx, rt, []int{1, -2}, nil)
	fmt.Println(errors.Is(err, runlane.ErrRunFailed))
	// Output:
	// 14 <nil>
	// true
}

// A tree shows a run with what it called.
func ExampleRuns_Tree() {
	leaf := runlane.NewFunc[string, string]("leaf", nil)
	root := runlane.NewFunc[string, string]("root", nil)
	ctx := context.Background()
	rt, err := core.Open(ctx, memlane.New(), &core.Options{Handlers: []runlane.Handler{
		leaf.Handle(func(_ context.Context, _ *runlane.Attempt, name string) (string, error) { return name, nil }),
		root.Handle(func(ctx context.Context, a *runlane.Attempt, name string) (string, error) {
			return leaf.Call(ctx, a, name, nil)
		}),
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer rt.Close(ctx)
	result, err := rt.Trigger(ctx, root.With("oak"), nil)
	if err == nil {
		err = rt.Work(ctx, &core.WorkOptions{Drain: true})
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	tree, err := rt.Runs().Tree(ctx, result.Run.ID, &core.TreeOptions{Each: 5})
	if err != nil {
		fmt.Println(err)
		return
	}
	call := tree.Calls[0]
	fmt.Println(tree.Run.Status, call.Name, call.Ended, "of", call.Count, call.Runs[0].Run.Status)
	// Output: succeeded leaf 1 of 1 succeeded
}
