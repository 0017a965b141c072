package core_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
)

// A worker that stops while a run's cancellation is requested ends the run: to release it would bring it back.
func TestShutdown_AfterARequestedCancellation_CancelsTheRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begun := make(chan struct{})
		task := runlane.NewTask[payload]("stopped", nil)
		rt := open(t, nil, task.Handle(func(ctx context.Context, _ *runlane.Attempt, _ payload) error {
			close(begun)
			<-ctx.Done()
			return context.Cause(ctx)
		}))
		ctx, stop := context.WithCancel(t.Context())
		worked := make(chan error, 1)
		go func() { worked <- rt.Work(ctx, &core.WorkOptions{Grace: time.Second}) }() // ends with stop
		run := trigger(t, rt, task.With(payload{}))
		<-begun
		stop()
		if _, err := rt.Runs().Cancel(t.Context(), run.ID, nil); err != nil {
			t.Fatal(err)
		}
		if err := <-worked; err != nil {
			t.Fatal(err)
		}
		if got := status(t, rt, run.ID); got != runlane.StatusCancelled {
			t.Errorf("the run is %s", got)
		}
	})
}
