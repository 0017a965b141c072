package core_test

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/memlane"
)

// A program that clients reach in its own way lends runs to them: it claims one for a client, gives it run and token,
// and goes on with the claim when the client sends the token. Package server does this over HTTP.
func ExampleRuntime_Claim() {
	ctx := context.Background()
	resize := runlane.NewTask("images.resize", &runlane.TaskOptions[json.RawMessage]{Timeout: time.Minute})
	rt, err := core.Open(ctx, memlane.New(), &core.Options{
		Tasks: []core.ClientTask{{Definition: resize.Definition()}},
	})
	if err != nil {
		panic(err)
	}
	defer rt.Close(ctx)
	ticking, stop := context.WithCancel(ctx)
	defer stop()
	go func() { _ = rt.Maintain(ticking) }() // gives the runs of clients that died to others

	if _, err := rt.Trigger(ctx, resize.With(json.RawMessage(`{"width":100}`)), nil); err != nil {
		panic(err)
	}
	claim, err := rt.Claim(ctx, &core.ClaimOptions{Wait: 20 * time.Second, WorkerID: "python-1"})
	if err != nil || claim == nil { // nil: nothing came
		panic(err)
	}
	fmt.Println(claim.Run.TaskID, string(claim.Run.Payload), claim.Deadline().Sub(claim.Run.StartedAt))

	// Later, and perhaps in another server:
	claim, err = rt.ByToken(ctx, claim.Token)
	if err != nil { // a conflict: the attempt is not the client's any more
		panic(err)
	}
	if err := claim.Heartbeat(ctx, 30*time.Second); err != nil {
		panic(err)
	}
	if err := claim.Complete(ctx, json.RawMessage(`{"bytes":1024}`)); err != nil {
		panic(err)
	}
	fmt.Println(claim.Run.Status)
	// Output:
	// images.resize {"width":100} 1m0s
	// succeeded
}

// What a client remembers and waits for, in three attempts of a run.
func ExampleClaim() {
	ctx := context.Background()
	order := runlane.NewTask("orders.ship", &runlane.TaskOptions[json.RawMessage]{Retry: runlane.Retry{MaxAttempts: 2}})
	rt, err := core.Open(ctx, memlane.New(), &core.Options{Tasks: []core.ClientTask{{Definition: order.Definition()}}})
	if err != nil {
		panic(err)
	}
	defer rt.Close(ctx)
	result, err := rt.Trigger(ctx, order.With(json.RawMessage(`{}`)), nil)
	if err != nil {
		panic(err)
	}
	next := func() *core.Claim {
		claim, err := rt.Claim(ctx, nil)
		if err != nil {
			panic(err)
		}
		return claim
	}

	claim := next()
	kept, err := claim.Keep(ctx, "charge", json.RawMessage(`{"chargeId":"ch_1"}`))
	if err != nil {
		panic(err)
	}
	fmt.Println(string(kept.Result), claim.Progress(ctx, "charged"))
	_, err = claim.Wait(ctx, runlane.WaitRequest{Name: "approval", Names: []string{"approved"}, Timeout: time.Hour})
	fmt.Println(runlane.Suspended(err))
	if err := rt.Signal(ctx, result.Run.ID, runlane.NewRawSignal("approved", json.RawMessage(`"ada"`)), nil); err != nil {
		panic(err)
	}

	claim = next()
	records, err := claim.Steps(ctx)
	if err != nil {
		panic(err)
	}
	answer, err := claim.Wait(ctx, runlane.WaitRequest{Name: "approval", Names: []string{"approved"}, Timeout: time.Hour})
	if err != nil {
		panic(err)
	}
	fmt.Println(records[0].Name, string(answer.Signals[0].Body), claim.Sleep(ctx, "no pause", 0))
	if err := claim.Release(ctx, nil); err != nil { // another client goes on at once
		panic(err)
	}

	claim = next()
	err = claim.Fail(ctx, &core.ClaimFailure{Code: "no_stock", Message: "nothing left to ship", Permanent: true})
	fmt.Println(err, claim.Run.Failure.Code)
	// Output:
	// {"chargeId":"ch_1"} <nil>
	// true
	// charge "ada" <nil>
	// <nil> no_stock
}
