package runlane_test

import (
	"context"
	"fmt"

	"github.com/runlane/runlane-go"
)

// A graph of runs: tests after a build, a deployment after both tests, and what undoes it.
func ExampleNewFlow() {
	build := runlane.NewFunc[string, string]("ci.build", nil)
	test := runlane.NewTask[runlane.Ref[string]]("ci.test", nil)
	f := runlane.NewFlow("release-42")
	built := f.Add("build", build.With("4f2a91c"), nil)
	artifact := build.Ref(built) // the result of a run that has not begun yet
	var tests []runlane.Node
	for _, system := range []string{"linux", "darwin"} {
		tests = append(tests, f.Add("test/"+system, test.With(artifact), &runlane.NodeOptions{After: []runlane.Node{built}}))
	}
	f.Add("undo", test.With(artifact), &runlane.NodeOptions{After: tests, If: runlane.IfFailed})
	fmt.Println(f.ID(), len(f.Nodes()), runlane.ValidateNodeName("no:name") != nil)
	// In a program: state, err := rt.StartFlow(ctx, f, &runlane.FlowOptions{Meta: map[string]string{"by": "ada"}})
	_ = runlane.FlowOptions{}
	// Output: release-42 4 true
}

// A handler whose node goes after another one reads its result.
func ExampleRef_Wait() {
	build := runlane.NewFunc[string, string]("ci.build", nil)
	deploy := runlane.NewTask[runlane.Ref[string]]("ci.deploy", nil)
	handler := deploy.Handle(func(ctx context.Context, a *runlane.Attempt, artifact runlane.Ref[string]) error {
		digest, err := artifact.Wait(ctx, a)
		fmt.Println(digest)
		return err
	})
	a := runlane.NewAttempt(runlane.Run{}, 1, runlane.AttemptHost{Nodes: ended{Output: []byte(`"sha256:4f2a"`)}})
	err := handler.Execute(context.Background(), a, []byte(`{"node":{"flow":"release-42","name":"build"},"taskId":"ci.build"}`))
	fmt.Println(err)
	run, err := a.WaitNode(context.Background(), runlane.Node{Flow: "release-42", Name: "build"})
	fmt.Println(run.TaskID, build.Ref(runlane.Node{Flow: "release-42", Name: "build"}).Task == run.TaskID, err)
	// Output:
	// sha256:4f2a
	// <nil>
	// ci.build true <nil>
}

// ended stands for a runtime: the run of every node has ended like this.
type ended runlane.Run

func (e ended) WaitNode(context.Context, runlane.Node) (*runlane.Run, error) {
	run := runlane.Run(e)
	run.TaskID, run.Status = "ci.build", runlane.StatusSucceeded
	return &run, nil
}

// A flow as text and as a diagram.
func ExampleFlowState_Mermaid() {
	state := runlane.FlowState{ID: "release-42", Status: runlane.FlowFailed, Nodes: []runlane.NodeState{
		{Name: "build", Status: runlane.StatusFailed},
		{Name: "deploy", After: []string{"build"}, Status: runlane.StatusCancelled},
		{Name: "undo", After: []string{"build"}, If: runlane.IfFailed, Status: runlane.StatusSucceeded},
	}}
	fmt.Println(state.String())
	fmt.Print(state.Mermaid())
	undo, _ := state.Node("undo")
	fmt.Println(undo.Words(), state.Status.Ended(), len(runlane.FlowStatuses()))
	// Output:
	// release-42 failed
	//   build failed
	//   deploy cancelled after build
	//   undo succeeded after build if failed
	// graph LR
	//   n0["build<br/>failed"]
	//   n1["deploy<br/>cancelled"]
	//   n2["undo<br/>succeeded"]
	//   n0 --> n1
	//   n0 -. failed .-> n2
	// succeeded true 6
}
