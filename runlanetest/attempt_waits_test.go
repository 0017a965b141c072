package runlanetest_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/runlanetest"
)

var (
	render    = runlane.NewFunc[int, string]("pages.render", nil)
	published = runlane.NewTask[runlane.Ref[string]]("books.publish", nil)
)

// publish reads the result of a node, calls for two pages, and asks.
func publish(ctx context.Context, a *runlane.Attempt, text runlane.Ref[string]) error {
	title, err := text.Wait(ctx, a)
	if err != nil {
		return err
	}
	pages, err := runlane.CallAll(ctx, a, render, []int{1, 2}, nil)
	if err != nil {
		return err
	}
	by, err := approved.Wait(ctx, a, &runlane.WaitOptions{Prompt: "Publish it?"})
	if err != nil {
		return err
	}
	if pages[1].Err != nil {
		return pages[1].Err
	}
	return a.SetOutput(title + " " + pages[0].Value + pages[1].Value + " by " + by)
}

func TestNewAttempt_SignalsChildrenAndNodes(t *testing.T) {
	t.Parallel()
	text := map[string]runlanetest.End{"write": {Task: "books.write", Output: "Go"}}
	pages := map[string][]runlanetest.End{"pages.render": {{Output: "p1"}, {Output: "p2"}}}
	for name, c := range map[string]struct {
		options runlanetest.AttemptOptions
		waits   []runlane.WaitingFor
		code    runlane.ErrorCode
		output  string
	}{
		"a node that has not ended": {code: runlane.ErrValidationFailed},
		"no child": {
			options: runlanetest.AttemptOptions{Nodes: text},
			waits:   []runlane.WaitingFor{runlane.WaitingChildren},
		},
		"one child of two": {
			options: runlanetest.AttemptOptions{Nodes: text, Children: map[string][]runlanetest.End{"pages.render": {{}}}},
			waits:   []runlane.WaitingFor{runlane.WaitingChildren},
		},
		"too many children": {
			options: runlanetest.AttemptOptions{Nodes: text, Children: map[string][]runlanetest.End{"pages.render": {{}, {}, {}}}},
			code:    runlane.ErrValidationFailed,
		},
		"no signal": {
			options: runlanetest.AttemptOptions{Nodes: text, Children: pages, Signals: []runlane.SignalValue{runlane.NewRawSignal("other", []byte("1"))}},
			waits:   []runlane.WaitingFor{runlane.WaitingSignal, runlane.WaitingInput},
		},
		"all of it": {
			options: runlanetest.AttemptOptions{Nodes: text, Children: pages, Signals: []runlane.SignalValue{approved.With("ada"), approved.With("bob")}},
			output:  `"Go p1p2 by ada"`,
		},
		"a wait that timed out": {
			options: runlanetest.AttemptOptions{Nodes: text, Children: pages, Steps: map[string]any{"approved": runlane.WaitAnswer{TimedOut: true}}},
			code:    runlane.ErrWaitTimedOut,
		},
		"a child that failed": {
			options: runlanetest.AttemptOptions{
				Nodes:    text,
				Children: map[string][]runlanetest.End{"pages.render": {{Output: ""}, {Err: errors.New("no ink")}}},
				Signals:  []runlane.SignalValue{approved.With("ada")},
			},
			code: runlane.ErrRunFailed,
		},
		"a child that was cancelled": {
			options: runlanetest.AttemptOptions{
				Nodes:    text,
				Children: map[string][]runlanetest.End{"pages.render": {{Output: ""}, {Err: runlane.ErrRunCancelled}}},
				Signals:  []runlane.SignalValue{approved.With("ada")},
			},
			code: runlane.ErrRunCancelled,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := runlanetest.NewAttempt(t, &c.options)
			ref := runlane.Ref[string]{Node: runlane.Node{Flow: "book-1", Name: "write"}, Task: "books.write"}
			err := a.Execute(t.Context(), published.Handle(publish), published.With(ref))
			if release, ok := errors.AsType[*runlane.ReleaseError](err); ok != (c.waits != nil) {
				t.Fatalf("it answers %v", err)
			} else if ok && len(release.Waiting.For) != len(c.waits) || ok && release.Waiting.For[0] != c.waits[0] {
				t.Errorf("it waits for %+v, want %v", release.Waiting, c.waits)
			}
			if c.waits == nil && runlane.CodeOf(err) != c.code {
				t.Errorf("it answers %v, want %s", err, c.code)
			}
			if got := string(a.Output()); got != c.output {
				t.Errorf("the output is %s, want %s", got, c.output)
			}
			if called := a.Called(); len(c.options.Nodes) > 0 && (len(called) != 1 || len(called[0].Calls) != 2) {
				t.Errorf("it called %+v", called)
			}
		})
	}
}

func TestNewAttempt_SignalsThatCannotBeSent_EndTheTest(t *testing.T) {
	t.Parallel()
	said := spyOn(t, func(t testing.TB) {
		runlanetest.NewAttempt(t, &runlanetest.AttemptOptions{Signals: []runlane.SignalValue{runlane.NewRawSignal("approved", []byte("{"))}})
	})
	if !strings.Contains(said, `AttemptOptions.Signals, "approved"`) {
		t.Errorf("it says %q", said)
	}
}
