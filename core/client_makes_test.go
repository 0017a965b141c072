package core_test

import (
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
)

// What a client of a claim that is lost asks for is not done, by a value of it either.
func TestClaim_Lost_DoesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rt := clients(t, core.Options{}, resize)
		first := claimed(t, rt, resize)
		go func() { _ = rt.Maintain(t.Context()) }() // until the end of the test
		second, err := rt.Claim(t.Context(), &core.ClaimOptions{Wait: 5 * time.Minute})
		if err != nil || second == nil || second.Run.ID != first.Run.ID {
			t.Fatalf("%v, %v", second, err)
		}
		ctx, call := t.Context(), resize.With(json.RawMessage("{}"))
		flow := runlane.NewFlow("late")
		flow.Add("a", call, nil)
		request := runlane.CallRequest{CallOptions: runlane.CallOptions{Name: "c"}, Calls: []runlane.Call{call}}
		_, err = first.Keep(ctx, "step", nil)
		stale(t, err)
		_, err = first.Snapshot(ctx, "seen", nil)
		stale(t, err)
		_, err = first.Trigger(ctx, call, &runlane.TriggerOptions{RunID: "late"})
		stale(t, err)
		_, err = first.CallRuns(ctx, request)
		stale(t, err)
		_, err = first.StartFlow(ctx, flow, nil)
		stale(t, err)
		stale(t, first.Signal(ctx, second.Run.ID, runlane.NewRawSignal("late", json.RawMessage("1")), nil))
		stale(t, first.Block(ctx, "late"))
		if records, err := second.Steps(ctx); err != nil || len(records) > 0 {
			t.Errorf("%v, %v", records, err)
		}
		if _, err := rt.Runs().Get(ctx, "late"); runlane.CodeOf(err) != runlane.ErrRunNotFound {
			t.Errorf("a run was made: %v", err)
		}
		if _, err := rt.Flows().Get(ctx, "late"); runlane.CodeOf(err) != runlane.ErrFlowNotFound {
			t.Errorf("a flow was started: %v", err)
		}
		wait := runlane.WaitRequest{Name: "late", Names: []string{"late"}, Timeout: runlane.NoWait}
		answer, err := second.Wait(ctx, wait)
		if err != nil || len(answer.Signals) > 0 {
			t.Errorf("the signal was sent: %v, %v", answer, err)
		}
	})
}

// A client whose run calls others is claimed again once all have ended, and gets their results.
func TestClaim_CallsRuns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rt := clients(t, core.Options{Tasks: []core.ClientTask{{Definition: thumb.Definition()}}}, resize)
		parent, request := callsThumbs(t, rt, "1", "2")
		_, err := rt.ByToken(t.Context(), parent.Token)
		stale(t, err)
		for range 2 {
			child := claimNext(t, rt, nil)
			if child.Run.TaskID != "images.thumb" || child.Run.Source.RunID != parent.Run.ID {
				t.Fatalf("claimed %+v", child.Run)
			}
			if err := child.Complete(t.Context(), child.Run.Payload); err != nil {
				t.Fatal(err)
			}
		}
		again := claimNext(t, rt, nil)
		if again.Run.ID != parent.Run.ID {
			t.Fatalf("claimed %+v", again.Run)
		}
		for range 2 { // an answer may be lost, and is asked for again
			held, err := rt.ByToken(t.Context(), again.Token)
			if err != nil {
				t.Fatal(err)
			}
			runs, err := held.CallRuns(t.Context(), request)
			if err != nil || len(runs) != 2 || string(runs[0].Output) != "1" || string(runs[1].Output) != "2" {
				t.Fatalf("%v, %v", runs, err)
			}
		}
	})
}

var thumb = runlane.NewTask[json.RawMessage]("images.thumb", nil)

// callsThumbs claims a run that calls one of thumb for each payload, and is suspended by that.
func callsThumbs(t *testing.T, rt *core.Runtime, payloads ...string) (*core.Claim, runlane.CallRequest) {
	t.Helper()
	parent := claimed(t, rt, resize)
	request := runlane.CallRequest{CallOptions: runlane.CallOptions{Name: "thumbs"}}
	for _, payload := range payloads {
		request.Calls = append(request.Calls, thumb.With(json.RawMessage(payload)))
	}
	if _, err := parent.CallRuns(t.Context(), request); !runlane.Suspended(err) {
		t.Fatalf("the call returned %v", err)
	}
	return parent, request
}

// The call whose answer was lost is repeated within the same attempt: it makes no second runs.
func TestClaim_CallThatIsRepeated_MakesItsRunsOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rt := clients(t, core.Options{Tasks: []core.ClientTask{{Definition: thumb.Definition()}}}, resize)
		parent, request := callsThumbs(t, rt, "1")
		if _, err := rt.Runs().Resume(t.Context(), parent.Run.ID, nil); err != nil {
			t.Fatal(err)
		}
		again := claimNext(t, rt, &core.ClaimOptions{Tasks: []runlane.TaskID{"images.resize"}})
		if _, err := again.CallRuns(t.Context(), request); !runlane.Suspended(err) {
			t.Fatal(err)
		}
		page, err := rt.Runs().List(t.Context(), &core.ListOptions{RunFilter: core.RunFilter{TaskID: "images.thumb"}})
		if err != nil || len(page.Items) != 1 {
			t.Errorf("%+v, %v", page, err)
		}
	})
}

// A blocked run waits for an operator; a reason that is too long ends nothing.
func TestClaim_Blocks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rt := clients(t, core.Options{}, resize)
		claim := claimed(t, rt, resize)
		err := claim.Block(t.Context(), string(make([]byte, runlane.MaxPromptBytes+1)))
		if runlane.CodeOf(err) != runlane.ErrValidationFailed {
			t.Fatal(err)
		}
		if err := claim.Block(t.Context(), "the disk is full"); err != nil {
			t.Fatal(err)
		}
		run := runOf(t, rt, claim.Run.ID)
		blocked := run.Status == runlane.StatusReleased && run.Waiting.Has(runlane.WaitingBlocked)
		if !blocked || run.Waiting.Prompt != "the disk is full" {
			t.Errorf("%s %+v", run.Status, run.Waiting)
		}
		if _, err := rt.Runs().Resume(t.Context(), run.ID, nil); err != nil {
			t.Fatal(err)
		}
		if again := claimNext(t, rt, nil); again.Run.ID != run.ID {
			t.Errorf("claimed %s", again.Run.ID)
		}
	})
}
