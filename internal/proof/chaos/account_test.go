package chaos_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/internal/proof/chaos"
	"github.com/runlane/runlane-go/internal/proof/lambdatest"
)

// sound is one run of each kind as it has to end, and what was recorded of them.
func sound() ([]chaos.Ending, []lambdatest.Entry) {
	return []chaos.Ending{
			{ID: "plain", Status: runlane.StatusSucceeded, Attempts: 1},
			{ID: "again", Status: runlane.StatusSucceeded, Attempts: 3, Abandoned: 2},
			{ID: "unlucky", Status: runlane.StatusFailed, Failure: runlane.ErrLeaseExpired, Attempts: 4, Abandoned: 3},
			{ID: "poison", Poison: true, Status: runlane.StatusFailed, Failure: runlane.ErrLeaseExpired, Attempts: 3, Abandoned: 3},
			{ID: "far", Far: true, Status: runlane.StatusScheduled, Wait: core.WaitTime},
		}, []lambdatest.Entry{
			{Name: "plain", Attempt: 1}, {Name: "again", Attempt: 1}, {Name: "again", Attempt: 3}, {Name: "unlucky", Attempt: 2},
		}
}

func TestAccount_EverythingAsItHasToBe_AddsUpWithoutProblems(t *testing.T) {
	t.Parallel()
	a := chaos.NewAccount(sound())
	want := &chaos.Account{
		Triggered: 5, Finished: 4, Waiting: 1, Effects: 4, Excess: 1,
		Endings: map[string]int{"succeeded": 2, "failed lease_expired": 1, "failed lease_expired (poison)": 1},
		Waits:   map[core.Wait]int{core.WaitTime: 1},
	}
	if diff := cmp.Diff(want, a); diff != "" {
		t.Errorf("account (-want +got):\n%s", diff)
	}
}

func TestAccount_EachThingThatMustNotBe_IsReported(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change func([]chaos.Ending, []lambdatest.Entry) ([]chaos.Ending, []lambdatest.Entry)
		lost   int
		says   string
	}{
		"a run that is gone": {func(e []chaos.Ending, l []lambdatest.Entry) ([]chaos.Ending, []lambdatest.Entry) {
			e[0] = chaos.Ending{ID: "plain", Missing: true}
			return e, l
		}, 1, "plain is gone"},
		"a success without effect": {func(e []chaos.Ending, l []lambdatest.Entry) ([]chaos.Ending, []lambdatest.Entry) {
			return e, l[1:]
		}, 1, "plain succeeded without its effect"},
		"a wait without a name": {func(e []chaos.Ending, l []lambdatest.Entry) ([]chaos.Ending, []lambdatest.Entry) {
			e[4].Wait = ""
			return e, l
		}, 1, `far is scheduled and waits for nothing that has a name ("")`},
		"a wait that is unknown": {func(e []chaos.Ending, l []lambdatest.Entry) ([]chaos.Ending, []lambdatest.Entry) {
			e[4].Wait = "godot"
			return e, l
		}, 1, `("godot")`},
		"an active run that is called finished": {func(e []chaos.Ending, l []lambdatest.Entry) ([]chaos.Ending, []lambdatest.Entry) {
			e[4].Wait = core.WaitNone
			return e, l
		}, 1, `("none")`},
		"a wait that should be over": {func(e []chaos.Ending, l []lambdatest.Entry) ([]chaos.Ending, []lambdatest.Entry) {
			e[4].Far = false
			return e, l
		}, 0, "far is scheduled and still waits: time"},
		"a wakeup that no worker follows": {func(e []chaos.Ending, l []lambdatest.Entry) ([]chaos.Ending, []lambdatest.Entry) {
			e[4].Wait = core.WaitWakeup
			return e, l
		}, 0, "far is scheduled and still waits: wakeup"},
		"an attempt with two effects": {func(e []chaos.Ending, l []lambdatest.Entry) ([]chaos.Ending, []lambdatest.Entry) {
			return e, append(l, l[0])
		}, 0, "plain attempt 1 had its effect twice"},
		"an attempt that history does not know": {func(e []chaos.Ending, l []lambdatest.Entry) ([]chaos.Ending, []lambdatest.Entry) {
			return e, append(l, lambdatest.Entry{Name: "plain", Attempt: 2})
		}, 0, "plain attempt 2 had an effect, and its history has 1"},
		"an effect of an unknown run": {func(e []chaos.Ending, l []lambdatest.Entry) ([]chaos.Ending, []lambdatest.Entry) {
			return e, append(l, lambdatest.Entry{Name: "stray", Attempt: 1})
		}, 0, "stray had an effect, and was never triggered"},
		"a failure of another kind": {func(e []chaos.Ending, l []lambdatest.Entry) ([]chaos.Ending, []lambdatest.Entry) {
			e[2].Failure = runlane.ErrTaskFailed
			return e, l
		}, 0, "unlucky failed with task_failed after 3 abandoned attempts"},
		"a run given up too early": {func(e []chaos.Ending, l []lambdatest.Entry) ([]chaos.Ending, []lambdatest.Entry) {
			e[2].Abandoned = 2
			return e, l
		}, 0, "unlucky failed with lease_expired after 2 abandoned attempts"},
		"poison that gets a fourth attempt": {func(e []chaos.Ending, l []lambdatest.Entry) ([]chaos.Ending, []lambdatest.Entry) {
			e[3].Attempts, e[3].Abandoned = 4, 4
			return e, l
		}, 0, "poison failed with lease_expired after 4 abandoned attempts"},
		"poison that succeeds": {func(e []chaos.Ending, l []lambdatest.Entry) ([]chaos.Ending, []lambdatest.Entry) {
			e[3].Status = runlane.StatusSucceeded
			return e, append(l, lambdatest.Entry{Name: "poison", Attempt: 1})
		}, 0, "poison succeeded"},
		"a cancellation": {func(e []chaos.Ending, l []lambdatest.Entry) ([]chaos.Ending, []lambdatest.Entry) {
			e[0].Status = runlane.StatusCancelled
			return e, l
		}, 0, "plain is cancelled, and no caller asked for that"},
		"a run counted twice": {func(e []chaos.Ending, l []lambdatest.Entry) ([]chaos.Ending, []lambdatest.Entry) {
			return append(e, e[0]), l
		}, 0, "plain was counted twice"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := chaos.NewAccount(tc.change(sound()))
			if a.Lost != tc.lost || a.Triggered != a.Finished+a.Waiting+a.Lost {
				t.Errorf("the account does not add up, or has not %d lost:\n%s", tc.lost, a)
			}
			if len(a.Problems) != 1 || !strings.Contains(a.Problems[0], tc.says) {
				t.Errorf("problems are %q, want one that says %q", a.Problems, tc.says)
			}
			if !strings.Contains(a.String(), "problem: "+a.Problems[0]) {
				t.Error("the table does not show the problem")
			}
		})
	}
}
