package core_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/memlane"
)

// A flow is started, fails, is retried and completes.
func ExampleRuntime_StartFlow() {
	square := runlane.NewFunc[int, int]("square", nil)
	broken := true
	ctx := context.Background()
	rt, err := core.Open(ctx, memlane.New(), &core.Options{Handlers: []runlane.Handler{
		square.Handle(func(_ context.Context, _ *runlane.Attempt, n int) (int, error) {
			if n == 3 && broken {
				return 0, runlane.Permanent(errors.New("no paper"))
			}
			return n * n, nil
		}),
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer rt.Close(ctx)
	f := runlane.NewFlow("numbers")
	two := f.Add("two", square.With(2), nil)
	f.Add("three", square.With(3), &runlane.NodeOptions{After: []runlane.Node{two}})
	_, err = rt.StartFlow(ctx, f, nil)
	fmt.Println(err)
	stop := working(ctx, rt)
	state, err := rt.Flows().Wait(ctx, "numbers")
	fmt.Println(state.Status, err)
	stop()
	broken = false
	fmt.Println(rt.Flows().PlanRetry(ctx, "numbers", &core.RetryFlowOptions{Number: 1}))
	state, err = rt.Flows().Retry(ctx, "numbers", nil)
	fmt.Println(state.Retries, err)
	stop = working(ctx, rt)
	three, err := square.Ref(runlane.Node{Flow: "numbers", Name: "three"}).Wait(ctx, rt)
	fmt.Println(three, err)
	stop()
	err = rt.Flows().ReadSizes(ctx, state)
	fmt.Println(state.Nodes[0].OutputBytes, state.Nodes[0].Words(), err)
	// Output:
	// <nil>
	// failed <nil>
	// [three] <nil>
	// 1 <nil>
	// 9 <nil>
	// 1 succeeded <nil>
}

// working works until the end of the returned function; in production these are other processes.
func working(ctx context.Context, rt *core.Runtime) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = rt.Work(ctx, nil)
	}()
	return func() { cancel(); <-done }
}

// A flow that is cancelled undoes what had begun, and lists show its end.
func ExampleFlows_Cancel() {
	task := runlane.NewTask[int]("task", nil)
	ctx := context.Background()
	rt, err := core.Open(ctx, memlane.New(), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer rt.Close(ctx)
	f := runlane.NewFlow("order-1")
	place := f.Add("place", task.With(1), nil)
	f.Add("undo", task.With(2), &runlane.NodeOptions{After: []runlane.Node{place}, If: runlane.IfFailed})
	_, err = rt.StartFlow(ctx, f, nil)
	fmt.Println(err)
	page, err := rt.Flows().List(ctx, &core.FlowListOptions{Statuses: []runlane.FlowStatus{runlane.FlowActive}})
	fmt.Println(len(page.Items), err)
	state, err := rt.Flows().Cancel(ctx, "order-1", &core.CancelFlowOptions{
		ChangeOptions: core.ChangeOptions{Reason: "the customer left"},
	})
	fmt.Println(state.Status, err) // undo is cancelled too: nothing had begun
	for state, err := range rt.Flows().All(ctx, nil) {
		fmt.Println(state.ID, state.Status, err)
	}
	state, err = rt.Flows().Get(ctx, "order-1")
	fmt.Println(state)
	fmt.Println(err)
	run, err := rt.WaitNode(ctx, runlane.Node{Flow: "order-1", Name: "place"})
	fmt.Println(run.Status, err)
	// Output:
	// <nil>
	// 1 <nil>
	// cancelled <nil>
	// order-1 cancelled <nil>
	// order-1 cancelled
	//   place cancelled
	//   undo cancelled after place if failed
	// <nil>
	// cancelled <nil>
}
