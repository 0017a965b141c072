package console

import (
	"fmt"
	"strings"

	g "maragu.dev/gomponents"

	"github.com/runlane/runlane-go"
)

// stepsShown limits the steps on a page, and resultShown each result in bytes: a run may have 1,000 steps and 64 MB.
const (
	stepsShown  = 100
	resultShown = 4 << 10
)

func (v *visitor) steps(id runlane.RunID, steps []runlane.StepRecord) g.Node {
	if len(steps) == 0 {
		return g.Group{}
	}
	more := max(0, len(steps)-stepsShown)
	var rows g.Group
	for i := range steps[:len(steps)-more] {
		s := &steps[i]
		took := g.Text("–")
		if !s.StartedAt.IsZero() {
			took = g.Text(short(s.At.Sub(s.StartedAt)))
		}
		rows = append(rows, h.Tr(
			h.ID(fmt.Sprintf("step-%d", i)),
			h.Td(g.Text(visible(s.Name))), h.Td(g.Text(string(s.Kind))), h.Td(g.Textf("%d", s.Attempt)),
			h.Td(v.ago(s.At)), h.Td(took), h.Td(v.result(s)),
		))
	}
	columns := []string{"Name", "Kind", "Attempt", "Recorded", "Took", "Result"}
	return section("Steps", g.Group{
		table("Steps", columns, rows, g.Text("")),
		g.Iff(more > 0, func() g.Node {
			return h.P(h.Class("note"), g.Textf("%d more: ", more), v.command("runs", "steps", string(id)))
		}),
	})
}

func (v *visitor) result(s *runlane.StepRecord) g.Node {
	switch {
	case v.HidePayloads:
		return h.Span(h.Class("note"), g.Text("hidden"))
	case s.Fault != "":
		return h.Span(h.Class("note"), g.Text(visible(s.Fault)))
	case len(s.Result) == 0:
		return g.Text("–")
	case len(s.Result) <= 80:
		return h.Code(g.Text(visible(string(s.Result))))
	case len(s.Result) > resultShown:
		shown := strings.ToValidUTF8(string(s.Result[:resultShown]), "")
		return h.Details(
			h.Summary(g.Textf("%d bytes, the first %d", len(s.Result), resultShown)),
			h.Pre(g.Text(visible(shown)+"…")))
	default:
		return h.Details(h.Summary(g.Textf("%d bytes", len(s.Result))), v.tree(s.Result))
	}
}
