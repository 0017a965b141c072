package core_test

import (
	"context"
	"errors"
	"reflect"
	"testing"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/memlane"
)

// Each attempt's receipt is there with its outcome. To handlers and to the list of steps it is none of the run's records.
func TestReceipts_AreKeptBesideOutcomes(t *testing.T) {
	t.Parallel()
	task := runlane.NewTask("calls", &runlane.TaskOptions[int]{Retry: runlane.Retry{MaxAttempts: 2, Backoff: runlane.Fixed(0)}})
	handler := task.Handle(func(ctx context.Context, a *runlane.Attempt, _ int) error {
		a.SetReceipt(runlane.Receipt{Target: runlane.ReceiptHTTP, Status: 1})
		a.SetReceipt(runlane.Receipt{Target: runlane.ReceiptHTTP, Status: 500 + a.Number})
		if err := a.Do(ctx, "receipt:1", func(context.Context) error { return nil }); runlane.CodeOf(err) != runlane.ErrValidationFailed {
			t.Errorf("a step with the name of a receipt: %v", err)
		}
		if a.Number == 1 {
			return errors.New("again")
		}
		return a.Do(ctx, "step", func(context.Context) error { return nil })
	})
	rt := openQuiet(t, memlane.New(), core.Options{Handlers: []runlane.Handler{handler}})
	result, err := rt.RunNow(t.Context(), task.With(1), nil)
	if err != nil {
		t.Fatal(err)
	}
	id := result.Run.ID
	if got, err := rt.Runs().Receipts(t.Context(), id); err != nil || len(got) != 1 || got[0].Status != 501 {
		t.Errorf("after a failure: %+v, %v", got, err)
	}
	if err := rt.Work(t.Context(), &core.WorkOptions{Drain: true}); err != nil {
		t.Fatal(err)
	}
	got, err := rt.Runs().Receipts(t.Context(), id)
	if err != nil || len(got) != 2 || got[0].Status != 501 || got[1].Status != 502 || got[1].Attempt != 2 {
		t.Errorf("receipts are %+v, %v", got, err)
	}
	steps, err := rt.Runs().Steps(t.Context(), id)
	if err != nil || len(steps) != 1 || steps[0].Name != "step" {
		t.Errorf("steps are %+v, %v", steps, err)
	}
	kept, err := rt.Runs().Kept(t.Context(), id)
	if err != nil || !reflect.DeepEqual(kept, &core.Kept{Steps: steps, Receipts: got}) {
		t.Errorf("together they are %+v, %v", kept, err)
	}
}
