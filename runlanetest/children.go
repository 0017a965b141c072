package runlanetest

import (
	"context"
	"encoding/json"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
)

// Complete ends a run of a task without a handler here as succeeded, as if another program had executed it, for example
// a child of a handler under test. The output is encoded as JSON; nil is none. It executes no other runs: a parent
// becomes due, and [Runtime.Settle], Advance or Finish calls its handler. A run that is not due, has ended, or has a
// handler here ends the test.
func (rt *Runtime) Complete(id runlane.RunID, output any) {
	rt.t.Helper()
	rt.finishByHand(id, func(a *runlane.Attempt) error {
		if output == nil {
			return nil
		}
		return a.SetOutput(output)
	})
}

// Fail is [Runtime.Complete] for a run that fails with err, without retries. A nil err ends the test.
func (rt *Runtime) Fail(id runlane.RunID, err error) {
	rt.t.Helper()
	if err == nil {
		rt.t.Fatalf("runlanetest: Fail needs the error that run %s fails by", id)
	}
	rt.finishByHand(id, func(*runlane.Attempt) error { return runlane.Permanent(err) })
}

// finishByHand executes a run with another runtime on the same lane.
func (rt *Runtime) finishByHand(id runlane.RunID, end func(*runlane.Attempt) error) {
	rt.t.Helper()
	run, err := rt.Runs().Get(rt.t.Context(), id)
	if err != nil {
		rt.t.Fatalf("runlanetest: run %s cannot be read: %v", id, err)
	}
	if rt.tasks[run.TaskID] {
		rt.t.Fatalf("runlanetest: run %s of task %q has a handler here: Settle or Finish execute it", id, run.TaskID)
	}
	task := runlane.NewTask(run.TaskID, &runlane.TaskOptions[json.RawMessage]{Queue: runlane.Queue{Name: run.Queue}})
	other, err := core.Open(rt.t.Context(), rt.Lane(), &core.Options{
		Environment: rt.Environment(),
		Handlers: []runlane.Handler{task.Handle(func(_ context.Context, a *runlane.Attempt, _ json.RawMessage) error {
			return end(a)
		})},
		Logger: rt.logger,
		World:  rt.world,
	})
	if err != nil {
		rt.t.Fatalf("runlanetest: run %s of task %q cannot be ended by hand: %v", id, run.TaskID, err)
	}
	result, err := other.ExecuteDelivery(rt.t.Context(),
		lane.Wakeup{RunKey: lane.RunKey{Environment: rt.Environment(), RunID: id}, Queue: run.Queue},
		&core.DeliveryOptions{WorkerID: "by hand", Queues: []runlane.QueueName{run.Queue}})
	switch {
	case err != nil:
		rt.t.Fatalf("runlanetest: run %s of task %q cannot be ended by hand: %v", id, run.TaskID, err)
	case result.Ignored != "" || !result.Run.Status.Terminal():
		rt.t.Fatalf("runlanetest: run %s of task %q is %s and cannot be ended by hand", id, run.TaskID, run.Status)
	}
}
