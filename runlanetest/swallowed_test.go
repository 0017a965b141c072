package runlanetest_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/runlanetest"
)

// swallowing loses the errors of what it waits for, sleeps, and calls.
var swallowing = echo.Handle(func(ctx context.Context, a *runlane.Attempt, what string) error {
	var err error
	switch what {
	case "wait":
		_, err = approved.Wait(ctx, a, nil)
	case "sleep":
		err = a.Sleep(ctx, "nap", time.Hour)
	case "call":
		_, err = a.CallRuns(ctx, runlane.CallRequest{
			CallOptions: runlane.CallOptions{Name: "others"}, Calls: []runlane.Call{asked.With("x")},
		})
	}
	if err != nil {
		a.Logger().DebugContext(ctx, "lost", "error", err)
	}
	return nil
})

// A handler that ends well although it was suspended has lost an error: the test fails and names the call.
func TestSwallowedSuspension_FailsTheTest_UnlessItIsAllowed(t *testing.T) {
	t.Parallel()
	for what, want := range map[string][2]string{ // by an attempt, by a runtime
		"wait": {"suspended by approved", "it waits for approved."}, "sleep": {"suspended by nap", "it waits for nap."},
		"call": {"suspended by others", "it waits for others."}, "": {},
	} {
		for _, allowed := range []bool{false, true} {
			got := spyOn(t, func(t testing.TB) {
				a := runlanetest.NewAttempt(t, &runlanetest.AttemptOptions{AllowSwallowed: allowed})
				if err := a.Execute(t.Context(), swallowing, echo.With(what)); err != nil {
					t.Errorf("the handler's own error: %v", err)
				}
			})
			if fails := got != ""; fails != (what != "" && !allowed) || !strings.Contains(got, want[0]) && !allowed {
				t.Errorf("an attempt, %s, allowed %t: %q", what, allowed, got)
			}
			got = spyOn(t, func(t testing.TB) {
				rt := runlanetest.New(t, &runlanetest.Options{
					Handlers:       []runlane.Handler{swallowing},
					AllowSwallowed: allowed,
				})
				rt.MustTrigger(echo.With(what), nil)
				rt.Settle()
			})
			if fails := got != ""; fails != (what != "" && !allowed) || !strings.Contains(got, want[1]) && !allowed {
				t.Errorf("a runtime, %s, allowed %t: %q", what, allowed, got)
			}
		}
	}
}
