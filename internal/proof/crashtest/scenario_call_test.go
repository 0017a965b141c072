package crashtest

import (
	"context"
	"strconv"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
)

// played is play with a result, so that runs can call it.
var played = runlane.Func[act, struct{}]{Task: play}

// callsOthers is an attempt that calls runs and waits for all of them. Ones that wait themselves end by a cancellation.
func callsOthers(ctx context.Context, a *runlane.Attempt, n int, do string) error {
	payloads := make([]act, n)
	for i := range payloads {
		payloads[i] = act{Name: "child " + strconv.Itoa(i), Do: do}
	}
	_, err := runlane.CallAll(ctx, a, &played, payloads, nil)
	return err
}

// callScenarios have a run that calls others: its attempt dies, the last of them does, a tick tells what they left, and
// a cancellation has to reach them.
func callScenarios() []scenario {
	caller := delivering("delivery that calls", play.With(act{Name: "a", Do: calls}))
	caller.judge = func(a *account) {
		a.all(runlane.StatusSucceeded)
		a.count(3)
	}

	ending := delivering("delivery of a called run", play.With(act{Name: "a", Do: single}))
	ending.judge = func(a *account) {
		a.all(runlane.StatusSucceeded)
		a.count(2)
	}
	ending.prepare = func(w *world) {
		w.trigger(play.With(act{Name: "a", Do: single}), nil)
		w.deliverOnce()
	}

	cancelling := operating("cancel a run that has called", func(w *world) {
		w.arguments["run"] = string(w.trigger(play.With(act{Name: "a", Do: calling}), nil))
		w.deliver()
	}, nil, func(a *account) {
		a.all(runlane.StatusCancelled)
		a.count(2)
	})
	cancelling.act = func(ctx context.Context, c *child) error { return cancelRun(ctx, c.rt, c.Arguments["run"]) }
	cancelling.repeat = func(w *world) {
		_ = cancelRun(w.t.Context(), w.rt, w.arguments["run"]) // it is over, or it is not
		w.deliver()
	}
	return []scenario{caller, ending, cancelling}
}

func cancelRun(ctx context.Context, rt *core.Runtime, id string) error {
	_, err := rt.Runs().Cancel(ctx, runlane.RunID(id), nil)
	return err
}
