package console

import (
	"fmt"
	"time"

	g "maragu.dev/gomponents"

	"github.com/runlane/runlane-go"
)

const (
	chartRead  = 100 // runs of each list that are counted
	chartParts = 24
	partWidth  = 24
	chartHalf  = 44 // pixels above and below the middle line
)

type chartPart struct {
	from                          time.Time
	made, succeeded, failed, rest int
}

func (p *chartPart) ended() int { return p.succeeded + p.failed + p.rest }

// chartOf counts the last ended and the active runs by time. If more ended runs exist than were read, the chart begins
// with the first end that was read, since earlier ones are missing.
func chartOf(ended, active []runlane.RunSummary, more bool, now time.Time) (parts []chartPart, each time.Duration) {
	begin := now
	for i := range ended {
		at := ended[i].CreatedAt
		if more {
			at = ended[i].FinishedAt
		}
		if at.Before(begin) {
			begin = at
		}
	}
	each = (max(now.Sub(begin), chartParts*time.Second)/chartParts + time.Second - 1).Truncate(time.Second)
	begin = now.Add(-chartParts * each)
	parts = make([]chartPart, chartParts)
	for i := range parts {
		parts[i].from = begin.Add(time.Duration(i) * each)
	}
	of := func(t time.Time) *chartPart {
		if t.Before(begin) {
			return &chartPart{} // before the chart
		}
		return &parts[min(int(t.Sub(begin)/each), chartParts-1)]
	}
	for i := range active {
		of(active[i].CreatedAt).made++
	}
	for i := range ended {
		of(ended[i].CreatedAt).made++
		switch part := of(ended[i].FinishedAt); ended[i].Status {
		case runlane.StatusSucceeded:
			part.succeeded++
		case runlane.StatusFailed:
			part.failed++
		default:
			part.rest++
		}
	}
	return parts, each
}

// chart shows created runs above a line and ended ones below, and the same numbers in a table.
func (v *visitor) chart(ended, active *runlane.Page[runlane.RunSummary]) g.Node {
	if len(ended.Items) == 0 {
		return g.Group{}
	}
	parts, each := chartOf(ended.Items, active.Items, ended.Next != "", v.now)
	most, sum := 1, chartPart{}
	for i := range parts {
		p := &parts[i]
		most = max(most, p.made, p.ended())
		sum.made, sum.succeeded = sum.made+p.made, sum.succeeded+p.succeeded
		sum.failed, sum.rest = sum.failed+p.failed, sum.rest+p.rest
	}
	var bars, rows g.Group
	for i := range parts {
		p := &parts[i]
		bars = append(bars, chartBars(i, p, most))
		if p.made+p.ended() > 0 {
			rows = append(rows, h.Tr(h.Td(v.ago(p.from)), h.Td(g.Textf("%d", p.made)),
				h.Td(g.Textf("%d", p.succeeded)), h.Td(g.Textf("%d", p.failed)), h.Td(g.Textf("%d", p.rest))))
		}
	}
	said := fmt.Sprintf("In %s: %d made; %d ended, %d of them failed",
		rounded(chartParts*each), sum.made, sum.ended(), sum.failed)
	note := said + fmt.Sprintf(". Above the line made, below it ended; each part is %s.", short(each))
	if ended.Next != "" || active.Next != "" {
		note += fmt.Sprintf(" Only the last %d that ended and the first %d active ones are counted.",
			chartRead, chartRead)
	}
	width, height := chartParts*partWidth, 2*chartHalf+2
	return section("Made and ended", g.Group{
		h.SVG(h.Class("chart"), h.Role("img"), h.Aria("label", said+"; the table below says when"),
			h.Attr("viewBox", fmt.Sprintf("0 0 %d %d", width, height)),
			h.El("rect", h.Class("axis"), h.Attr("y", fmt.Sprint(chartHalf)),
				h.Width(fmt.Sprint(width)), h.Height("1")),
			bars,
		),
		h.P(h.Class("note"), g.Text(note)),
		h.Details(h.Summary(g.Text("As a table")),
			table("Made and ended", []string{"From", "Made", "Succeeded", "Failed", "Others"}, rows, g.Text(""))),
	})
}

func chartBars(i int, p *chartPart, most int) g.Node {
	high := func(n int) float64 { return float64(n*(chartHalf-2)) / float64(most) }
	var all g.Group
	add := func(class string, y float64, n int) float64 {
		if n > 0 {
			all = append(all, h.El("rect", h.Class("bar "+class),
				h.Attr("x", fmt.Sprint(i*partWidth+2)), h.Attr("y", fmt.Sprintf("%.1f", y)),
				h.Width(fmt.Sprint(partWidth-4)), h.Height(fmt.Sprintf("%.1f", high(n)))))
		}
		return y + high(n)
	}
	add("made", chartHalf-1-high(p.made), p.made)
	y := add("succeeded", chartHalf+2, p.succeeded)
	y = add("failed", y, p.failed)
	add("other", y, p.rest)
	return all
}
