package cli

import (
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/runlane/runlane-go"
)

// defaultWidth is the width of a terminal that does not report one.
const defaultWidth = 80

const gap = "  "

type table struct {
	header []string
	rows   [][]string
	color  map[int]func(cell string) string // of a column: an escape sequence or ""
	shrink int                              // the column that shrinks first on a narrow terminal
	least  int                              // its least width; minShrunk unless given
	spare  []int                            // columns to leave out if that is not enough, in this order
	headed bool                             // the header was already written
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

// write writes the table. It cuts cells and omits columns only on a terminal: a pipe gets everything.
func (s *session) write(t *table) {
	if len(t.rows) == 0 {
		return
	}
	widths := t.widths()
	if columns, ok := s.width(s.stdout); ok {
		t.fit(widths, columns)
	}
	for n, row := range append([][]string{t.header}, t.rows...) {
		if n == 0 && t.headed {
			continue
		}
		var line strings.Builder
		for i, cell := range row {
			if widths[i] == 0 {
				continue
			}
			if line.Len() > 0 {
				line.WriteString(gap)
			}
			cell = shortened(cell, widths[i])
			padding := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			switch choose := t.color[i]; {
			case n == 0:
				cell = s.paint(s.stdout, dim, cell)
			case choose != nil:
				cell = s.paint(s.stdout, choose(row[i]), cell)
			}
			line.WriteString(cell + padding)
		}
		s.line("%s", strings.TrimRight(line.String(), " "))
	}
}

func (t *table) widths() []int {
	widths := make([]int, len(t.header))
	for _, row := range append([][]string{t.header}, t.rows...) {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	return widths
}

// fit reduces columns to a terminal's width; 0 omits a column. It narrows the shrinking column, omits spare ones, then
// narrows the widest of the others, and the first, which people copy, only when all are narrow.
func (t *table) fit(widths []int, columns int) {
	wanted := widths[t.shrink]
	shrink := func() {
		least := max(utf8.RuneCountInString(t.header[t.shrink]), minShrunk, t.least)
		widths[t.shrink] = min(wanted, max(wanted-(total(widths)-columns), least))
	}
	shrink()
	for _, i := range t.spare {
		if total(widths) <= columns {
			return
		}
		widths[i], widths[t.shrink] = 0, wanted
		shrink()
	}
	for others := widths[1:]; total(widths) > columns && slices.Max(others) > minShrunk; {
		others[slices.Index(others, slices.Max(others))]--
	}
	for total(widths) > columns && slices.Max(widths) > 1 {
		widths[slices.Index(widths, slices.Max(widths))]--
	}
}

const minShrunk = 8

func total(widths []int) int {
	sum := -len(gap)
	for _, width := range widths {
		if width > 0 {
			sum += width + len(gap)
		}
	}
	return sum
}

// facts writes names and values, one pair a line, and omits empty values.
func (s *session) facts(pairs ...[2]string) {
	width := 0
	for _, p := range pairs {
		if p[1] != "" {
			width = max(width, len(p[0]))
		}
	}
	columns, onTerminal := s.width(s.stdout)
	indent := strings.Repeat(" ", width) + gap
	for _, p := range pairs {
		if p[1] != "" {
			value := strings.ReplaceAll(p[1], "\n", "\n"+indent)
			if onTerminal && len(indent)+len(value) > columns && !strings.Contains(value, "\x1b") {
				value = strings.TrimPrefix(wrapped(value, indent, columns), indent)
			}
			name := s.paint(s.stdout, dim, p[0]) + strings.Repeat(" ", width-len(p[0]))
			s.line("%s%s%s", name, gap, value)
		}
	}
}

// shortened cuts a text and marks the cut.
func shortened(text string, width int) string {
	if utf8.RuneCountInString(text) <= width {
		return text
	}
	return string([]rune(text)[:max(width-1, 0)]) + "…"
}

const (
	red    = "\x1b[31m"
	green  = "\x1b[32m"
	yellow = "\x1b[33m"
	dim    = "\x1b[2m"
	plain  = "\x1b[0m"
)

// paint colors text on a terminal, unless a flag or variable forbids it.
func (s *session) paint(stream io.Writer, color, text string) string {
	if color == "" || text == "" || s.noColor || s.json || s.getenv("NO_COLOR") != "" || s.getenv("TERM") == "dumb" {
		return text
	}
	if _, ok := s.width(stream); !ok {
		return text
	}
	return color + text + plain
}

func statusColor(cell string) string {
	status := runlane.Status(cell)
	switch {
	case status.End() == runlane.StatusSucceeded, cell == string(runlane.FlowCompleted):
		return green
	case status.End() == runlane.StatusFailed, cell == string(runlane.AttemptAbandoned):
		return red
	case status.End() == runlane.StatusCancelled,
		status == runlane.StatusRetrying, status == runlane.StatusCancellationRequested:
		return yellow
	default:
		return ""
	}
}

func instant(at time.Time) string { return instantIn(at, time.UTC) }

// instantIn formats a time in a zone, whose abbreviation follows.
func instantIn(at time.Time, zone *time.Location) string {
	switch {
	case at.IsZero():
		return ""
	case zone == time.UTC:
		return at.UTC().Format("2006-01-02 15:04:05Z")
	default:
		return at.In(zone).Format("2006-01-02 15:04:05 MST")
	}
}

// ago formats a time relative to now: "3m ago", "in 2h".
func (s *session) ago(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	d := s.now().Sub(at)
	switch {
	case d < 0:
		return "in " + rough(-d)
	case d < time.Second:
		return "now"
	default:
		return rough(d) + " ago"
	}
}

// rough formats a duration in its largest unit, rounded: three days less a second are "3d".
func rough(d time.Duration) string {
	units := []struct {
		size time.Duration
		name string
	}{{24 * time.Hour, "d"}, {time.Hour, "h"}, {time.Minute, "m"}, {time.Second, "s"}}
	for i, unit := range units {
		least := unit.size
		if i+1 < len(units) {
			least -= units[i+1].size / 2 // durations that the next unit would round up to this one
		}
		if d >= least {
			return strconv.Itoa(int(d.Round(unit.size)/unit.size)) + unit.name
		}
	}
	return "1s"
}

func (s *session) when(at time.Time) string { return s.whenIn(at, time.UTC) }

func (s *session) whenIn(at time.Time, zone *time.Location) string {
	if s.absolute {
		return instantIn(at, zone)
	}
	return s.ago(at)
}

func (s *session) at(t time.Time) string { return s.atIn(t, time.UTC) }

func (s *session) atIn(t time.Time, zone *time.Location) string {
	if t.IsZero() {
		return ""
	}
	return instantIn(t, zone) + " (" + s.ago(t) + ")"
}
