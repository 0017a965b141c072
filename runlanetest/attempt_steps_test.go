package runlanetest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/runlanetest"
)

// order is a handler that remembers, sleeps and goes on.
func order(ctx context.Context, a *runlane.Attempt, _ struct{}) error {
	receipt, err := runlane.Step(ctx, a, "charge", func(context.Context) (string, error) { return "ch_1", nil })
	if err != nil {
		return err
	}
	if err := a.Sleep(ctx, "cooling-off", 24*time.Hour); err != nil {
		return err
	}
	if err := a.Snapshot(ctx, "receipt", receipt); err != nil {
		return err
	}
	return a.SetOutput(receipt)
}

var orders = runlane.NewTask[struct{}]("orders", nil)

// The clock jumps over sleeps, as over every wait.
func TestRequireSteps_OfARunThatSleptADay(t *testing.T) {
	t.Parallel()
	run := runlanetest.Run(t, orders.Handle(order), orders.With(struct{}{}))
	runlanetest.RequireSteps(t, run, "charge", "cooling-off", "receipt")
	runlanetest.RequireTransitions(t, run,
		"triggered", "attempt 1 started", "attempt 1 released...", "attempt 2 started", "attempt 2 succeeded")
	if passed := run.FinishedAt.Sub(run.CreatedAt); passed < 24*time.Hour {
		t.Errorf("it took %s", passed)
	}
	failure := spyOn(t, func(t testing.TB) { runlanetest.RequireSteps(t, run, "charge", "receipt") })
	if !strings.Contains(failure, "+ cooling-off") {
		t.Errorf("other steps fail with %q", failure)
	}
}

func TestNewAttempt_Steps(t *testing.T) {
	t.Parallel()
	first := runlanetest.NewAttempt(t, nil)
	err := first.Execute(t.Context(), orders.Handle(order), orders.With(struct{}{}))
	if !runlane.Suspended(err) || len(first.Steps()) != 2 || first.Steps()[0].Name != "charge" {
		t.Errorf("%v, %+v", err, first.Steps())
	}
	next := runlanetest.NewAttempt(t, &runlanetest.AttemptOptions{
		Number: 2, Steps: map[string]any{"charge": "ch_0", "cooling-off": nil},
	})
	err = next.Execute(t.Context(), orders.Handle(order), orders.With(struct{}{}))
	if err != nil || string(next.Output()) != `"ch_0"` || len(next.Steps()) != 1 {
		t.Errorf("%v, %s, %+v", err, next.Output(), next.Steps())
	}
	snapshots, err := next.Snapshots(t.Context())
	if err != nil || len(snapshots) != 1 {
		t.Errorf("%+v, %v", snapshots, err)
	}
}

// An attempt of a test refuses what a runtime refuses.
func TestNewAttempt_StepsThatARuntimeRefuses(t *testing.T) {
	t.Parallel()
	a := runlanetest.NewAttempt(t, &runlanetest.AttemptOptions{Steps: map[string]any{"charge": 5, "rows": 7}})
	ctx, nothing := t.Context(), func(context.Context) error { return nil }
	var n int
	if found, err := a.Restore(ctx, "rows", &n); err != nil || !found || n != 7 {
		t.Errorf("%t, %d, %v", found, n, err)
	}
	if err := errors.Join(a.Checkpoint(ctx, "rows", 8), a.Do(ctx, "once", nothing)); err != nil {
		t.Error(err)
	}
	failed := errors.New("no")
	for range 2 {
		err := a.Do(ctx, "fails", func(context.Context) error { return failed })
		if !errors.Is(err, failed) {
			t.Error(err)
		}
	}
	for what, err := range map[string]error{
		"a name twice":       a.Do(ctx, "once", nothing),
		"a name of a record": a.Do(ctx, "rows", nothing),
		"no name":            a.Do(ctx, "", nothing),
		"another type":       errorOf(runlane.Step(ctx, a.Attempt, "charge", func(context.Context) (string, error) { return "", nil })),
		"a large result":     a.Snapshot(ctx, "large", noise(1<<20)),
	} {
		if !errors.Is(err, runlane.ErrValidationFailed) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func errorOf[T any](_ T, err error) error { return err }

// noise does not compress.
func noise(n int) []byte {
	b, x := make([]byte, n), uint32(1)
	for i := range b {
		x = x*1664525 + 1013904223
		b[i] = byte(x >> 24)
	}
	return b
}

// The clock jumps over the day that the run sleeps.
func ExampleRequireSteps() {
	TestOrder := func(t testing.TB) { // in a file of tests: func TestOrder(t *testing.T)
		run := runlanetest.Run(t, orders.Handle(order), orders.With(struct{}{}))
		runlanetest.RequireSteps(t, run, "charge", "cooling-off", "receipt")
		fmt.Println(run.Status, run.FinishedAt.Sub(run.CreatedAt).Truncate(time.Hour))
	}
	example(TestOrder)
	// Output: succeeded 24h0m0s
}

// An attempt after others is given what they recorded.
func ExampleAttempt_Steps() {
	TestOrder := func(t testing.TB) {
		a := runlanetest.NewAttempt(t, &runlanetest.AttemptOptions{
			Number: 2, Steps: map[string]any{"charge": "ch_0", "cooling-off": nil},
		})
		err := a.Execute(t.Context(), orders.Handle(order), orders.With(struct{}{}))
		fmt.Println(a.Steps()[0].Name, string(a.Output()), err)
	}
	example(TestOrder)
	// Output: receipt "ch_0" <nil>
}
