package console

import (
	"cmp"
	"fmt"
	"time"

	g "maragu.dev/gomponents"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
)

const (
	timelineLines = 40 // limit of steps and called runs; the tables have all
	timelineNames = 200
	timelineWidth = 700
	timelineRow   = 22
	timelineEnd   = 40 // room for half of the last tick's text
	timelineTicks = 4
)

type span struct {
	class    string
	from, to time.Time // zero: not ended
}

type timelineRowOf struct {
	name  string
	spans []span
}

// timelineOf returns the rows: waits, attempts, steps, and called runs.
func timelineOf(
	run *runlane.Run, attempts []core.AttemptSummary, steps []runlane.StepRecord, tree *core.RunTree,
) []timelineRowOf {
	waits, worked := timelineRowOf{name: "waits"}, timelineRowOf{name: "attempts"}
	since := run.CreatedAt
	for i := range attempts {
		a := &attempts[i]
		waits.spans = append(waits.spans, span{"wait", since, a.StartedAt})
		worked.spans = append(worked.spans, span{string(a.Status), a.StartedAt, a.FinishedAt})
		since = a.FinishedAt
	}
	if !since.IsZero() && !run.Status.Terminal() {
		waits.spans = append(waits.spans, span{"wait", since, time.Time{}})
	}
	rows := []timelineRowOf{waits, worked}
	for i := range steps {
		from := steps[i].StartedAt
		if from.IsZero() {
			from = steps[i].At
		}
		rows = append(rows, timelineRowOf{"step " + steps[i].Name, []span{{"step", from, steps[i].At}}})
	}
	for i := range tree.Calls {
		call := &tree.Calls[i]
		for j := range call.Runs {
			if r := call.Runs[j].Run; r != nil && !r.CreatedAt.IsZero() {
				rows = append(rows, timelineRowOf{
					fmt.Sprintf("%s, %d", call.Name, j+1), []span{{string(r.Status), r.CreatedAt, r.FinishedAt}},
				})
			}
		}
	}
	return rows
}

// timeline draws the rows. The tables of the page have the same data.
func (v *visitor) timeline(run *runlane.Run, rows []timelineRowOf) g.Node {
	begin, end := run.CreatedAt, v.now
	if !run.FinishedAt.IsZero() {
		end = run.FinishedAt
	}
	whole, more := max(end.Sub(begin), time.Millisecond), 0
	if len(rows) > timelineLines {
		rows, more = rows[:timelineLines], len(rows)-timelineLines
	}
	x := func(t time.Time) float64 {
		if t.IsZero() {
			t = end
		}
		return timelineNames + min(max(t.Sub(begin).Seconds()/whole.Seconds(), 0), 1)*timelineWidth
	}
	height := (len(rows) + 1) * timelineRow
	lines := timelineAxis(whole, height)
	for i, row := range rows {
		y := (i + 1) * timelineRow
		lines = append(lines, h.El("text", h.Attr("x", "0"), h.Attr("y", fmt.Sprint(y+timelineRow-7)),
			g.Text(visible(clip(row.name, 26)))))
		for _, s := range row.spans {
			left := min(x(s.from), timelineNames+timelineWidth-2)
			lines = append(lines, h.El("rect", h.Class("bar "+s.class),
				h.Attr("x", fmt.Sprintf("%.1f", left)), h.Attr("y", fmt.Sprint(y+5)),
				h.Width(fmt.Sprintf("%.1f", max(x(s.to)-left, 2))), h.Height("12")))
		}
	}
	width := timelineNames + timelineWidth + timelineEnd
	said := fmt.Sprintf("%s from its creation on: when it waited, its attempts, steps and what it called", short(whole))
	return section("Timeline", g.Group{
		h.Div(h.Class("scroll"), h.Role("region"), h.Aria("label", "Timeline"), h.TabIndex("0"), h.SVG(
			h.Class("graph"), h.Role("img"), h.Aria("label", said+"; the tables below say the same"),
			h.Attr("viewBox", fmt.Sprintf("0 0 %d %d", width, height)),
			h.Width(fmt.Sprint(width)), h.Height(fmt.Sprint(height)), lines,
		)),
		h.P(h.Class("note"), g.Text(said+"."), g.If(more > 0, g.Textf(" %d more lines are in the tables.", more))),
	})
}

// timelineAxis draws the axis above the rows: the time since the run's creation, with a line at each tick.
func timelineAxis(whole time.Duration, height int) (axis g.Group) {
	before := ""
	for i := range timelineTicks + 1 {
		x := fmt.Sprint(timelineNames + i*timelineWidth/timelineTicks)
		said := "0"
		if i > 0 {
			said = short(whole * time.Duration(i) / timelineTicks)
		}
		if said == before { // the whole is a few milliseconds
			said = ""
		}
		before = cmp.Or(said, before)
		axis = append(axis,
			h.El("text", h.Class("tick"), h.Attr("x", x), h.Attr("y", fmt.Sprint(timelineRow-7)), g.Text(said)),
			h.El("rect", h.Class("axis"), h.Attr("x", x), h.Attr("y", fmt.Sprint(timelineRow-2)),
				h.Width("1"), h.Height(fmt.Sprint(height-timelineRow+2))))
	}
	return axis
}
