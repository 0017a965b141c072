package console

import (
	"slices"

	g "maragu.dev/gomponents"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/internal/shown"
)

// Limits of a tree on a page: runs shown of each call, and runs read to count them.
const (
	calledShown = 10
	calledRead  = 500
)

// runTree returns the tree of called runs. It is empty if the lane does not support trees.
func (v *visitor) runTree(id runlane.RunID) (*core.RunTree, error) {
	tree, err := v.rt.Runs().Tree(v.r.Context(), id, &core.TreeOptions{Each: calledShown, Read: calledRead})
	if runlane.CodeOf(err) == runlane.ErrCapabilityUnsupported {
		return &core.RunTree{}, nil
	}
	return tree, err
}

func (v *visitor) called(id runlane.RunID, tree *core.RunTree) g.Node {
	if len(tree.Calls) == 0 {
		return g.Group{}
	}
	return section("What it called", g.Group{
		v.calls(tree),
		h.P(h.A(h.Href(v.listed("source", string(id))), g.Text("All runs that come from it")), g.Text(" · "),
			v.command("runs", "tree", string(id))),
	})
}

// calls lists a run's calls, each with its first runs and the number of others.
func (v *visitor) calls(tree *core.RunTree) g.Node {
	if len(tree.Calls) == 0 {
		return g.Group{}
	}
	return h.Ul(h.Class("tree"), g.Map(tree.Calls, func(call core.CallTree) g.Node {
		var runs g.Group
		for i := range call.Runs {
			runs = append(runs, v.branch(&call.Runs[i]))
		}
		if more := shown.More(&call); more != "" {
			runs = append(runs, h.Li(h.Class("note"), g.Text(more)))
		}
		return h.Li(
			h.Strong(g.Text(visible(call.Name))),
			g.Textf(" · %s · %d of %d ended", visible(string(call.TaskID)), call.Ended, call.Count),
			h.Ul(runs),
		)
	}))
}

func (v *visitor) branch(tree *core.RunTree) g.Node {
	detail := tree.Run.Failure.Message
	if tree.Run.Waiting != nil {
		detail = "waits for " + waitsFor(tree.Run.Waiting)
	}
	return h.Li(badge(tree.Run.Status), g.Text(" "), v.runLink(tree.Run.ID),
		h.Span(h.Class("note"), g.Text(" "+visible(clip(detail, 120)))), v.calls(tree))
}

// others lists runs that come from a run other than by calls: retries, reruns, and runs that it triggered.
func (v *visitor) others(id runlane.RunID, made *runlane.Page[runlane.RunSummary]) g.Node {
	runs := slices.DeleteFunc(made.Items, func(run runlane.RunSummary) bool {
		return run.Source.Type == runlane.SourceCall
	})
	if len(runs) == 0 && made.Next == "" {
		return g.Group{}
	}
	return section("Runs that come from it", g.Group{
		v.runTable("Runs that come from it", runs, none(made, g.Text(""))),
		g.If(made.Next != "", h.P(h.A(h.Href(v.listed("source", string(id))), g.Text("All of them")))),
	})
}
