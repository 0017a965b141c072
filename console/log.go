package console

import (
	"fmt"
	"strings"

	g "maragu.dev/gomponents"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/internal/shown"
)

// log shows what the latest attempt logged, if its task keeps that. It is at most runlane.MaxLogBytes.
func (v *visitor) log(run *runlane.Run) (g.Node, error) {
	attempt := run.Counters.Attempts
	if attempt == 0 {
		return g.Group{}, nil
	}
	var lines []string
	for line, err := range v.rt.Runs().Logs(v.r.Context(), run.ID, &core.LogOptions{Attempt: attempt}) {
		if runlane.CodeOf(err) == runlane.ErrCapabilityUnsupported {
			return g.Group{}, nil
		}
		if err != nil {
			return nil, err
		}
		lines = append(lines, visible(logText(&line)))
	}
	if len(lines) == 0 {
		return g.Group{}, nil
	}
	shownLines := h.Pre(h.Class("log"), g.Text(strings.Join(lines, "\n")))
	if v.HidePayloads {
		shownLines = h.P(h.Class("note"), g.Textf("%d lines, hidden", len(lines)))
	}
	return section(fmt.Sprintf("Log of attempt %d", attempt), g.Group{
		shownLines, h.P(h.Class("note"), g.Text("All attempts: "), v.command("runs", "logs", string(run.ID))),
	}), nil
}

func logText(line *core.LogLine) string {
	switch {
	case line.Fault != "":
		return "lines cannot be read here: " + line.Fault
	case line.Dropped > 0:
		return fmt.Sprintf("… %d dropped …", line.Dropped)
	}
	said := shown.LogTextOf(line.Line)
	text := fmt.Sprintf("%s  %-5s  %s", shown.Printable(said.At), shown.Printable(said.Level), shown.Printable(said.Message))
	return strings.TrimRight(text+"  "+strings.Join(said.Attributes, " "), " ")
}
