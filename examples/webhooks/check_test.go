package webhooks

import (
	"context"
	"errors"
	"testing"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/memlane"
)

func TestCheck_EndsAsAskedFor(t *testing.T) {
	t.Parallel()
	l, err := lane.New(memlane.NewStorage(nil), memlane.NewTransport(nil), nil)
	if err != nil {
		t.Fatal(err)
	}
	rt, err := core.Open(t.Context(), l, &core.Options{Handlers: (&Sender{}).Handlers()})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	worked := make(chan error, 1)
	go func() { worked <- rt.Work(ctx, nil) }() // ends with ctx
	defer func() {
		stop()
		if err := errors.Join(<-worked, rt.Close(context.Background())); err != nil {
			t.Error(err)
		}
	}()
	for do, want := range map[string]runlane.Run{
		CheckSucceed: {Status: runlane.StatusSucceeded, Counters: runlane.Counters{Attempts: 1}},
		CheckRetry:   {Status: runlane.StatusSucceeded, Counters: runlane.Counters{Attempts: 2, Failures: 1, Retries: 1}},
		CheckRelease: {Status: runlane.StatusSucceeded, Counters: runlane.Counters{Attempts: 2, Releases: 1}},
		"vanish":     {Status: runlane.StatusFailed, Counters: runlane.Counters{Attempts: 1, Failures: 1}},
	} {
		result, err := rt.Trigger(t.Context(), Check.With(Probe{Do: do}), nil)
		if err != nil {
			t.Fatal(err)
		}
		run, err := rt.Wait(t.Context(), result.Run.ID)
		if err != nil {
			t.Fatal(err)
		}
		if run.Status != want.Status || run.Counters != want.Counters {
			t.Errorf("%s: %s %+v, want %s %+v", do, run.Status, run.Counters, want.Status, want.Counters)
		}
	}
}
