package core_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/memlane"
)

var treeNode = runlane.NewFunc[int, int]("tree.node", nil)

// growing calls as many runs as its payload's last digit says, each with what is left of it: 23 calls three runs that
// call two each. A payload of 0 fails.
func growing(ctx context.Context, a *runlane.Attempt, n int) (int, error) {
	if n == 0 {
		return 0, runlane.Permanent(errors.New("nothing grows here"))
	}
	payloads := make([]int, n%10)
	for i := range payloads {
		payloads[i] = n / 10
	}
	_, err := runlane.CallAll(ctx, a, treeNode, payloads, nil)
	return n, err
}

// drained executes one after the other.
func drained(t *testing.T, rt *core.Runtime, call runlane.Call, id runlane.RunID) {
	t.Helper()
	triggerWith(t, rt, call, &runlane.TriggerOptions{RunID: id})
	if err := rt.Work(t.Context(), &core.WorkOptions{Drain: true, Concurrency: 1}); err != nil {
		t.Fatal(err)
	}
}

// treeText is a tree in one line: runs by their status's first letter, calls in parentheses.
func treeText(tree *core.RunTree) string {
	text := string(tree.Run.Status[:1])
	for i := range tree.Calls {
		call := &tree.Calls[i]
		text += fmt.Sprintf("(%d/%d", call.Ended, call.Count)
		for n := range call.Runs {
			text += " " + treeText(&call.Runs[n])
		}
		if len(call.More) > 0 {
			text += fmt.Sprint(" ", call.More)
		}
		text += ")"
	}
	return text
}

func TestTree_ShowsWhatWasCalledByWhatWasCalled(t *testing.T) {
	t.Parallel()
	rt := openQuiet(t, memlane.New(), core.Options{}, treeNode.Handle(growing))
	drained(t, rt, treeNode.With(23), "run_root")
	for each, want := range map[int]string{
		0: "s(3/3 s(2/2 f f) s(2/2 f f) s(2/2 f f))",
		1: "s(3/3 s(2/2 f map[failed:1]) map[succeeded:2])",
	} {
		tree, err := rt.Runs().Tree(t.Context(), "run_root", &core.TreeOptions{Each: each})
		if err != nil {
			t.Fatal(err)
		}
		if got := treeText(tree); got != want {
			t.Errorf("each %d: got %s, want %s", each, got, want)
		}
	}
	leaf, err := rt.Runs().Tree(t.Context(), "run_root", nil)
	if err != nil {
		t.Fatal(err)
	}
	child := leaf.Calls[0].Runs[0].Run
	if child.Source.RunID != "run_root" || leaf.Calls[0].Name != "tree.node" || leaf.Calls[0].TaskID != "tree.node" {
		t.Errorf("%+v", child.Source)
	}
}

// Whatever the numbers, a tree has at most MaxTreeShown runs, those near the root first, and counts all that it reads.
func TestTree_OfThousands_IsBounded(t *testing.T) {
	t.Parallel()
	rt := openQuiet(t, memlane.New(), core.Options{}, treeNode.Handle(func(ctx context.Context, a *runlane.Attempt, n int) (int, error) {
		if n == 0 {
			return 0, nil
		}
		_, err := runlane.CallAll(ctx, a, treeNode, make([]int, n), nil)
		return n, err
	}))
	const many = core.MaxTreeShown + 500
	drained(t, rt, treeNode.With(many), "run_root")
	tree, err := rt.Runs().Tree(t.Context(), "run_root", &core.TreeOptions{Each: many})
	if err != nil {
		t.Fatal(err)
	}
	call := tree.Calls[0]
	all := map[runlane.Status]int{runlane.StatusSucceeded: many}
	more := map[runlane.Status]int{runlane.StatusSucceeded: many - len(call.Runs)}
	if len(call.Runs) != core.MaxTreeShown-1 || !maps.Equal(call.Statuses, all) || !maps.Equal(call.More, more) {
		t.Errorf("shown %d, %v, more %v", len(call.Runs), call.Statuses, call.More)
	}
}

// A list that is cut begins with what an operator looks for, in the order of the payloads otherwise.
func TestTree_ThatIsCut_ShowsFailedAndOpenRunsFirst(t *testing.T) {
	t.Parallel()
	const many = 30
	payloads := make([]int, many)
	for i := range payloads {
		payloads[i] = i + 1
	}
	rt := openQuiet(t, memlane.New(), core.Options{}, treeNode.Handle(func(ctx context.Context, a *runlane.Attempt, n int) (int, error) {
		switch n {
		case 0:
			_, err := runlane.CallAll(ctx, a, treeNode, payloads, nil)
			return n, err
		case many:
			return 0, runlane.Permanent(errors.New("the last one fails"))
		case many - 1:
			return 0, runlane.Release(time.Hour, "waits")
		default:
			return n, nil
		}
	}))
	drained(t, rt, treeNode.With(0), "run_root")
	for each, want := range map[int]string{
		3:        "(29/30 f r s map[succeeded:27])",
		1:        "(29/30 f map[released:1 succeeded:28])",
		many:     "(29/30" + strings.Repeat(" s", many-2) + " r f)",
		many - 1: "(29/30 f r" + strings.Repeat(" s", many-3) + " map[succeeded:1])",
	} {
		tree, err := rt.Runs().Tree(t.Context(), "run_root", &core.TreeOptions{Each: each})
		if err != nil {
			t.Fatal(err)
		}
		if got := treeText(tree); !strings.HasSuffix(got, want) {
			t.Errorf("each %d: got %s, want %s", each, got, want)
		}
	}
}

// A call beyond what is to be read shows its first runs, and says nothing of the others.
func TestTree_BeyondWhatItReads_ShowsTheFirst(t *testing.T) {
	t.Parallel()
	rt := openQuiet(t, memlane.New(), core.Options{}, treeNode.Handle(growing))
	drained(t, rt, treeNode.With(28), "run_root") // 8 runs, each of which calls 2
	tree, err := rt.Runs().Tree(t.Context(), "run_root", &core.TreeOptions{Each: 3, Read: 5})
	if err != nil {
		t.Fatal(err)
	}
	call := tree.Calls[0]
	if call.Count != 8 || len(call.Runs) != 3 || call.Statuses != nil || call.More != nil {
		t.Errorf("%d of %d, %v, %v", len(call.Runs), call.Count, call.Statuses, call.More)
	}
	if below := call.Runs[1].Calls[0]; len(below.Runs) != 2 || below.Statuses[runlane.StatusFailed] != 2 {
		t.Errorf("a smaller call is read as before: %+v", below)
	}
}
