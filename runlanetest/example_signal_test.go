package runlanetest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/runlanetest"
)

// A run waits for an approval, which the test sends an hour later.
func ExampleRuntime_MustSignal() {
	example(func(t testing.TB) { // in a file of tests: func TestAsking(t *testing.T)
		token := ""
		rt := runlanetest.New(t, &runlanetest.Options{Handlers: []runlane.Handler{asking(&token)}})
		id := rt.MustTrigger(asked.With(""), nil).ID
		rt.Advance(time.Hour)
		runlanetest.RequireWaiting(t, rt.History(id), "approved")
		rt.MustSignal(id, approved.With("ada"))
		fmt.Println(string(rt.Finish(id).Output))
	})
	// Output: "ada"
}

// A person answers by the link in a mail.
func ExampleRuntime_MustAnswer() {
	example(func(t testing.TB) {
		token := ""
		rt := runlanetest.New(t, &runlanetest.Options{Handlers: []runlane.Handler{asking(&token)}})
		id := rt.MustTrigger(asked.With(""), nil).ID
		rt.Settle()
		rt.MustAnswer(token, approved.With("bob"))
		fmt.Println(string(rt.Finish(id).Output))
	})
	// Output: "bob"
}

// Signals that the code under test sends are kept, each id once.
func ExampleRecorder_Signals() {
	example(func(t testing.TB) {
		r := &runlanetest.Recorder{}
		node := runlane.Node{Flow: "release-42", Name: "deploy"}
		fmt.Println(r.Signal(t.Context(), "run_1", approved.With("ada"), nil))
		fmt.Println(r.SignalNode(t.Context(), node, approved.With("bob"), &runlane.SignalOptions{ID: "hook-7"}))
		for _, sent := range r.Signals() {
			fmt.Println(sent.RunID, sent.Node.Name, sent.Name, string(sent.Body))
		}
	})
	// Output:
	// <nil>
	// <nil>
	// run_1  approved "ada"
	//  deploy approved "bob"
}

func ExampleRequireWaiting() {
	example(func(t testing.TB) {
		token := ""
		rt := runlanetest.New(t, &runlanetest.Options{Handlers: []runlane.Handler{asking(&token)}})
		id := rt.MustTrigger(asked.With(""), nil).ID
		rt.Settle()
		runlanetest.RequireWaiting(t, rt.History(id), "approved")
	})
	// Output:
}

// A flow is followed to its end in virtual time.
func ExampleRuntime_FinishFlow() {
	example(func(t testing.TB) {
		rt := runlanetest.New(t, &runlanetest.Options{Handlers: []runlane.Handler{sleeping()}})
		rt.MustStartFlow(book("book-1"))
		rt.Advance(25 * time.Hour)
		runlanetest.RequireNodes(t, rt.Flow("book-1"), "write succeeded", "render queued", "put back waits")
		page, _ := rt.Flow("book-1").Node("render")
		rt.Fail(page.RunID, errors.New("no ink")) // as the program that has its handler
		fmt.Println(rt.FinishFlow("book-1"))
	})
	// Output:
	// book-1 failed
	//   write succeeded
	//   render failed after write
	//   put back succeeded after render if failed
}

// A handler that calls and waits is called alone: the test says how the called runs ended, and what was sent.
func ExampleAttemptOptions() {
	example(func(t testing.TB) {
		a := runlanetest.NewAttempt(t, &runlanetest.AttemptOptions{
			Nodes:    map[string]runlanetest.End{"write": {Task: "books.write", Output: "Go"}},
			Children: map[string][]runlanetest.End{"pages.render": {{Output: "p1"}, {Output: "p2"}}},
			Signals:  []runlane.SignalValue{approved.With("ada")},
		})
		text := runlane.Ref[string]{Node: runlane.Node{Flow: "book-1", Name: "write"}, Task: "books.write"}
		err := publish(context.Background(), a.Attempt, text)
		fmt.Println(string(a.Output()), len(a.Called()), err)
	})
	// Output: "Go p1p2 by ada" 1 <nil>
}
