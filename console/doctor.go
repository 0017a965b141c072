package console

import (
	"log/slog"

	g "maragu.dev/gomponents"

	"github.com/runlane/runlane-go/internal/doctor"
	"github.com/runlane/runlane-go/internal/shown"
	"github.com/runlane/runlane-go/server"
)

// doctorForm asks before checking: checks read, and try writes that cannot succeed.
func (v *visitor) doctorForm() (*page, error) {
	return v.doctorPage(g.Group{h.P(h.Class("empty"), g.Text("Nothing has been checked yet."))}), nil
}

func (v *visitor) doctor() (*page, error) {
	findings, err := doctor.Look(v.r.Context(), v.rt)
	v.audit(v.r.Context(), "doctor", slog.Attr{}, err)
	if err != nil {
		return nil, err
	}
	rows := g.Map(findings, func(f shown.Finding) g.Node {
		return h.Tr(
			h.Td(h.Span(h.Class("badge "+f.Status), g.Text(f.Status))), h.Td(g.Text(f.Check)),
			h.Td(g.Text(visible(clip(f.Detail, 500))), g.If(f.Cause != "",
				h.P(h.Class("note"), g.Text("Cause: "+visible(clip(f.Cause, 300)))))),
			h.Td(g.Text(visible(clip(f.Fix, 500)))),
		)
	})
	columns := []string{"Result", "Check", "What was found", "What to do"}
	return v.doctorPage(g.Group{table("Findings", columns, rows, g.Text("No check was made."))}), nil
}

func (v *visitor) doctorPage(found g.Group) *page {
	ask := h.P(h.Class("note"), g.Text("Checks try writes that cannot hold: they need the scope operate."))
	if v.Has(server.ScopeOperate) {
		ask = h.Form(h.Method("post"), h.Action(v.Prefix+"/doctor"),
			h.Button(g.Text("Check everything")), v.command("doctor"))
	}
	return &page{title: "Doctor", nav: "Doctor", body: g.Group{
		h.P(h.Class("note"), g.Text("Whether everything works: access, queues, work that no worker takes, dead "+
			"letters, and the invariants of the storage on a sample. Nothing is changed.")),
		ask, found,
	}}
}
