package console

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	g "maragu.dev/gomponents"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/shown"
)

// receiptsShown limits the receipts on a page, the latest ones.
const receiptsShown = 20

func (v *visitor) receipts(id runlane.RunID, receipts []runlane.Receipt) g.Node {
	if len(receipts) == 0 {
		return g.Group{}
	}
	more := max(0, len(receipts)-receiptsShown)
	var rows g.Group
	for i := range receipts[more:] {
		r := &receipts[more+i]
		took := g.Text("–")
		if !r.StartedAt.IsZero() {
			took = g.Text(short(r.EndedAt.Sub(r.StartedAt)))
		}
		rows = append(rows, h.Tr(
			h.ID(fmt.Sprintf("receipt-%d", r.Attempt)),
			h.Td(g.Textf("%d", r.Attempt)), h.Td(g.Text(visible(r.Request+r.Command))), h.Td(g.Text(visible(shown.Answer(r)))),
			h.Td(v.ago(r.EndedAt)), h.Td(took), h.Td(v.receiptTexts(r)),
		))
	}
	columns := []string{"Attempt", "Target", "Answer", "Ended", "Took", "Details"}
	return section("Receipts", g.Group{
		table("Receipts", columns, rows, g.Text("")),
		g.Iff(more > 0, func() g.Node {
			return h.P(h.Class("note"), g.Textf("%d earlier: ", more), v.command("runs", "receipts", string(id)))
		}),
	})
}

// receiptTexts has headers, body and outputs, which are payloads to who may see them.
func (v *visitor) receiptTexts(r *runlane.Receipt) g.Node {
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(r.Headers)) {
		fmt.Fprintf(&text, "%s: %s\n", name, r.Headers[name])
	}
	for _, part := range []struct{ name, text string }{{"body", r.Body}, {"stdout", r.Stdout}, {"stderr", r.Stderr}} {
		if part.text != "" {
			fmt.Fprintf(&text, "%s:\n%s\n", part.name, part.text)
		}
	}
	switch {
	case text.Len() == 0:
		return g.Text("–")
	case v.HidePayloads:
		return h.Span(h.Class("note"), g.Text("hidden"))
	}
	return h.Details(h.Summary(g.Textf("%d bytes", text.Len())), h.Pre(g.Text(visible(text.String()))))
}
