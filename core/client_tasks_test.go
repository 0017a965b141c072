package core_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/internal/host"
	"github.com/runlane/runlane-go/memlane"
)

var resize = runlane.NewTask("images.resize", &runlane.TaskOptions[json.RawMessage]{
	Retry: runlane.Retry{MaxAttempts: 2, Backoff: runlane.Fixed(time.Second), NoJitter: true},
})

// clients is a runtime whose only task is that of clients, in virtual time.
func clients(t *testing.T, options core.Options, task *runlane.Task[json.RawMessage]) *core.Runtime {
	t.Helper()
	options.Tasks = append(options.Tasks, core.ClientTask{Definition: task.Definition()})
	return openQuiet(t, memlane.New(), options)
}

// claimed triggers a run and claims it.
func claimed(t *testing.T, rt *core.Runtime, task *runlane.Task[json.RawMessage]) *core.Claim {
	t.Helper()
	trigger(t, rt, task.With(json.RawMessage(`{"n": 1}`)))
	return claimNext(t, rt, &core.ClaimOptions{WorkerID: "py-1"})
}

func claimNext(t *testing.T, rt *core.Runtime, options *core.ClaimOptions) *core.Claim {
	t.Helper()
	if options == nil {
		options = &core.ClaimOptions{}
	}
	options.Wait = 20 * time.Second
	claim, err := rt.Claim(t.Context(), options)
	if err != nil || claim == nil {
		t.Fatalf("%v, %v", claim, err)
	}
	return claim
}

func stale(t *testing.T, err error) {
	t.Helper()
	if !errors.Is(err, runlane.ConflictLeaseOwnership) {
		t.Errorf("%v, want a conflict of the lease", err)
	}
}

func TestClaim_IsExecutedAndCompleted_ByItsToken(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rt := clients(t, core.Options{}, resize)
		claim := claimed(t, rt, resize)
		if string(claim.Run.Payload) != `{"n": 1}` || claim.Run.Counters.Attempts != 1 || claim.Run.Lease.WorkerID != "py-1" {
			t.Errorf("%+v", claim.Run)
		}
		if strings.Contains(claim.Token, claim.Run.Lease.Token) {
			t.Error("who sees the lease has the token")
		}
		again, err := rt.ByToken(t.Context(), claim.Token)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(50 * time.Second)
		if err := again.Heartbeat(t.Context(), 30*time.Second); err != nil {
			t.Fatal(err)
		}
		if left := time.Until(again.Run.Lease.ExpiresAt); left != 30*time.Second {
			t.Errorf("the lease ends in %s", left)
		}
		if err := again.Complete(t.Context(), json.RawMessage(`{ "done": true }`)); err != nil {
			t.Fatal(err)
		}
		run := runOf(t, rt, claim.Run.ID)
		if run.Status != runlane.StatusSucceeded || string(run.Output) != `{ "done": true }` || string(run.Payload) != `{"n": 1}` {
			t.Errorf("%+v", run)
		}
		stale(t, claim.Heartbeat(t.Context(), 0))
		stale(t, again.Complete(t.Context(), nil))
		_, err = rt.ByToken(t.Context(), claim.Token)
		stale(t, err)
	})
}

// The client dies: its lease ends, a tick gives the run to another one, and what the first one says is refused.
func TestClaim_OfAClientThatDied_IsGivenToAnother(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rt := clients(t, core.Options{}, resize)
		first := claimed(t, rt, resize)
		go func() { _ = rt.Maintain(t.Context()) }() // until the end of the test
		time.Sleep(45 * time.Second)                 // less than the lease
		if nothing, err := rt.Claim(t.Context(), &core.ClaimOptions{Wait: time.Second}); nothing != nil || err != nil {
			t.Fatalf("%v, %v", nothing, err)
		}
		second, err := rt.Claim(t.Context(), &core.ClaimOptions{Wait: 5 * time.Minute})
		if err != nil || second == nil || second.Run.ID != first.Run.ID || second.Run.Counters.Attempts != 2 {
			t.Fatalf("%v, %v", second, err)
		}
		stale(t, first.Heartbeat(t.Context(), 0))
		late, err := rt.ByToken(t.Context(), first.Token)
		stale(t, err)
		if late != nil {
			t.Error("a stale token opens a claim")
		}
		if err := second.Complete(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
	})
}

func TestClaim_Failures(t *testing.T) {
	t.Parallel()
	after := 7 * time.Second
	for name, c := range map[string]struct {
		failure *core.ClaimFailure
		status  runlane.Status
		wait    time.Duration
	}{
		"without a text": {nil, runlane.StatusRetrying, time.Second},
		"retryable":      {&core.ClaimFailure{Code: "too_dark", Message: "no light"}, runlane.StatusRetrying, time.Second},
		"after a delay":  {&core.ClaimFailure{After: &after}, runlane.StatusRetrying, after},
		"permanent":      {&core.ClaimFailure{Code: "no_image", Message: "no image", Permanent: true}, runlane.StatusFailed, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				rt := clients(t, core.Options{}, resize)
				claim := claimed(t, rt, resize)
				if err := claim.Fail(t.Context(), c.failure); err != nil {
					t.Fatal(err)
				}
				run := runOf(t, rt, claim.Run.ID)
				if run.Status != c.status || c.wait != 0 && time.Until(run.RunAt) != c.wait {
					t.Errorf("%s, %s", run.Status, time.Until(run.RunAt))
				}
				if f := c.failure; f != nil && f.Code != "" && (run.Failure.Code != f.Code || run.Failure.Message != f.Message) {
					t.Errorf("%+v", run.Failure)
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		rt := clients(t, core.Options{}, resize)
		claim := claimed(t, rt, resize)
		below := -time.Second
		err := claim.Fail(t.Context(), &core.ClaimFailure{After: &below})
		if runlane.CodeOf(err) != runlane.ErrValidationFailed {
			t.Errorf("%v", err)
		}
	})
}

func TestClaim_Released_CostsNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rt := clients(t, core.Options{}, resize)
		claim := claimed(t, rt, resize)
		if err := claim.Release(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		again := claimNext(t, rt, nil)
		err := again.Release(t.Context(), &runlane.ReleaseError{Delay: -1})
		if runlane.CodeOf(err) != runlane.ErrValidationFailed {
			t.Fatalf("%v", err)
		}
		if err := again.Release(t.Context(), &runlane.ReleaseError{Delay: 3 * time.Second, Reason: "busy"}); err != nil {
			t.Fatal(err)
		}
		run := runOf(t, rt, claim.Run.ID)
		if run.Status != runlane.StatusReleased || run.Counters.Failures != 0 || time.Until(run.RunAt) != 3*time.Second {
			t.Errorf("%+v", run)
		}
		if third := claimNext(t, rt, nil); third.Run.Counters.Attempts != 3 {
			t.Errorf("%+v", third.Run)
		}
	})
}

// A run that was asked to stop tells its client with the next heartbeat; the release of the client cancels it.
func TestClaim_OfACancelledRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rt := clients(t, core.Options{}, resize)
		claim := claimed(t, rt, resize)
		if _, err := rt.Runs().Cancel(t.Context(), claim.Run.ID, nil); err != nil {
			t.Fatal(err)
		}
		if err := claim.Heartbeat(t.Context(), 0); err != nil || claim.Run.Status != runlane.StatusCancellationRequested {
			t.Fatalf("%s, %v", claim.Run.Status, err)
		}
		if err := claim.Release(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		if run := runOf(t, rt, claim.Run.ID); run.Status != runlane.StatusCancelled {
			t.Errorf("%s", run.Status)
		}
	})
}

// No client extends its attempt beyond the task's timeout.
func TestClaim_EndsAtTheTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		short := runlane.NewTask("images.short", &runlane.TaskOptions[json.RawMessage]{Timeout: 20 * time.Second})
		rt := clients(t, core.Options{}, short)
		claim := claimed(t, rt, short)
		if left := time.Until(claim.Run.Lease.ExpiresAt); left != 25*time.Second {
			t.Errorf("the lease ends in %s", left)
		}
		time.Sleep(10 * time.Second)
		if err := claim.Heartbeat(t.Context(), 0); err != nil || time.Until(claim.Run.Lease.ExpiresAt) != 15*time.Second {
			t.Errorf("%s, %v", time.Until(claim.Run.Lease.ExpiresAt), err)
		}
		time.Sleep(10 * time.Second)
		stale(t, claim.Heartbeat(t.Context(), 0))
		run := runOf(t, rt, claim.Run.ID)
		if run.Status != runlane.StatusFailed || run.Failure.Code != runlane.ErrTaskTimedOut {
			t.Errorf("%s %+v", run.Status, run.Failure)
		}
	})
}

// What a client remembers, its next attempt finds, and its sleep ends at its moment. What more a claim does is a scenario.
func TestClaim_RemembersSteps_AndSleeps(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rt := clients(t, core.Options{}, resize)
		claim := claimed(t, rt, resize)
		_, fault := claim.Keep(t.Context(), "", nil)
		if runlane.CodeOf(fault) != runlane.ErrValidationFailed {
			t.Errorf("%v", fault)
		}
		_, kept := claim.Keep(t.Context(), "charged", json.RawMessage("7"))
		if err := errors.Join(kept, claim.Progress(t.Context(), "half way")); err != nil {
			t.Fatal(err)
		}
		if err := claim.Sleep(t.Context(), "nap", time.Minute); !runlane.Suspended(err) {
			t.Fatalf("%v", err)
		}
		next, err := rt.Claim(t.Context(), &core.ClaimOptions{Wait: 2 * time.Minute})
		if err != nil || next == nil {
			t.Fatalf("%v, %v", next, err)
		}
		records, err := next.Steps(t.Context())
		if err != nil || len(records) == 0 || records[0].Name != "charged" {
			t.Fatalf("%+v, %v", records, err)
		}
		if err := errors.Join(next.Sleep(t.Context(), "nap", time.Minute), next.Complete(t.Context(), nil)); err != nil {
			t.Fatal(err)
		}
	})
}

// claimedMetric is called when an attempt has started.
type claimedMetric func()

func (m claimedMetric) Count(name core.Metric, _ int64, _ core.Labels) {
	if name == core.MetricAttemptsStarted {
		m()
	}
}

func (claimedMetric) Observe(core.Metric, time.Duration, core.Labels) {}

// A caller that is gone when its run is claimed loses none: the run is released at once.
func TestClaim_ForACallerThatIsGone_IsReleased(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, leave := context.WithCancel(t.Context())
		rt := clients(t, core.Options{Metrics: claimedMetric(leave)}, resize)
		trigger(t, rt, resize.With(json.RawMessage(`1`)))
		if claim, err := rt.Claim(ctx, nil); claim != nil || runlane.CodeOf(err) != runlane.ErrOperationCancelled {
			t.Fatalf("%v, %v", claim, err)
		}
		claim := claimNext(t, rt, nil)
		if n := claim.Run.Counters; n.Attempts != 2 || n.Releases != 1 || n.Failures != 0 {
			t.Errorf("%+v", claim.Run)
		}
	})
}

// A payload that the check refuses makes no run, by whatever call of this runtime, and the error quotes nothing.
func TestClientTask_ChecksPayloads(t *testing.T) {
	t.Parallel()
	checked := core.ClientTask{Definition: resize.Definition(), Check: func(payload json.RawMessage) error {
		switch string(payload) {
		case "1":
			return errors.New("at /n")
		case "2":
			panic("secret")
		}
		return nil
	}}
	ctx := host.With(t.Context(), host.Host{Tasks: []core.ClientTask{checked}})
	rt, err := core.Open(ctx, memlane.New(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rt.Close(context.Background()) }()
	for payload, message := range map[string]string{"1": `task "images.resize": at /n`, "2": "the check panicked", "3": ""} {
		call, err := rt.CallJSON("images.resize", json.RawMessage(payload))
		if err != nil {
			t.Fatal(err)
		}
		_, err = rt.Trigger(t.Context(), call, nil)
		switch {
		case message == "" && err != nil:
			t.Error(err)
		case message != "" && (runlane.CodeOf(err) != runlane.ErrValidationFailed || !strings.Contains(err.Error(), message)):
			t.Errorf("%s: %v", payload, err)
		}
	}
	tasks, err := rt.Tasks().List(t.Context())
	if err != nil || len(tasks) != 1 || !tasks[0].Known {
		t.Errorf("%+v, %v", tasks, err)
	}
	twice := &core.Options{Tasks: []core.ClientTask{checked, checked, {}}}
	if _, err := core.Open(t.Context(), memlane.New(), twice); runlane.CodeOf(err) != runlane.ErrConfigurationInvalid {
		t.Errorf("%v", err)
	}
}
