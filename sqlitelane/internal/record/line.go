package record

import (
	"strings"

	"github.com/runlane/runlane-go"
)

// lineMark separates a name from a priority. No name has it.
const lineMark = "\x01"

// Line returns the name that the indexes have for a concurrency key or a task with a priority: runs of one line are in
// the order of their times. Without a priority it is the name itself.
func Line(name string, priority int) string {
	if priority == 0 {
		return name
	}
	return name + lineMark + string(rune('a'+runlane.MaxPriority+priority))
}

// CutLine is the opposite of Line.
func CutLine(line string) (name string, priority int) {
	name, mark, prioritized := strings.Cut(line, lineMark)
	if !prioritized || mark == "" {
		return name, 0
	}
	return name, int(mark[0]) - 'a' - runlane.MaxPriority
}

// LinesBetween are the bounds, exclusive, of a name's lines with a priority.
func LinesBetween(name string) (from, until string) { return name + lineMark, name + "\x02" }
