package core_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/memlane"
)

// A client calls a run, which another client executes, and makes what follows by its claim: everything has the claimed
// run as its source, and none of it is done once the claim is lost.
func ExampleClaim_CallRuns() {
	ctx := context.Background()
	album := runlane.NewTask[json.RawMessage]("albums.publish", nil)
	thumb := runlane.NewTask[json.RawMessage]("images.thumb", nil)
	rt, err := core.Open(ctx, memlane.New(), &core.Options{
		Tasks: []core.ClientTask{{Definition: album.Definition()}, {Definition: thumb.Definition()}},
	})
	if err != nil {
		panic(err)
	}
	defer rt.Close(ctx)
	must := func(err error) {
		if err != nil {
			panic(err)
		}
	}
	next := func() *core.Claim {
		claim, err := rt.Claim(ctx, nil)
		must(err)
		return claim
	}
	_, err = rt.Trigger(ctx, album.With(json.RawMessage(`{}`)), nil)
	must(err)

	claim := next()
	request := runlane.CallRequest{
		CallOptions: runlane.CallOptions{Name: "cover"},
		Calls:       []runlane.Call{thumb.With(json.RawMessage(`{"image":1}`))},
	}
	_, err = claim.CallRuns(ctx, request)
	fmt.Println(runlane.Suspended(err))
	must(next().Complete(ctx, json.RawMessage(`{"bytes":1024}`)))

	claim = next()
	runs, err := claim.CallRuns(ctx, request)
	must(err)
	kept, err := claim.Snapshot(ctx, "cover as it was", runs[0].Output)
	must(err)
	fmt.Println(runs[0].Status, string(kept.Result))

	made, err := claim.Trigger(ctx, thumb.With(json.RawMessage(`{"image":2}`)), &runlane.TriggerOptions{RunID: "later"})
	must(err)
	fmt.Println(made.Run.Source.RunID == claim.Run.ID)
	must(claim.Signal(ctx, "later", runlane.NewRawSignal("hint", json.RawMessage(`"small"`)), nil))

	flow := runlane.NewFlow("album-1")
	node := flow.Add("back", thumb.With(json.RawMessage(`{"image":3}`)), nil)
	state, err := claim.StartFlow(ctx, flow, nil)
	must(err)
	fmt.Println(state.ID, state.Status)
	must(claim.SignalNode(ctx, node, runlane.NewRawSignal("hint", json.RawMessage(`"large"`)), nil))

	must(claim.Block(ctx, "look at the cover first"))
	fmt.Println(claim.Run.Status)
	// Output:
	// true
	// succeeded {"bytes":1024}
	// true
	// album-1 active
	// released
}
