package shown

import (
	"fmt"
	"strings"

	"github.com/runlane/runlane-go"
)

// WaitsFor describes what a suspended run waits for, to follow "waits for": "the answer of a person (approved), or 2
// runs that it called". Questions and time limit are not included.
func WaitsFor(w *runlane.Waiting) string {
	if w == nil {
		return ""
	}
	var parts []string
	for _, kind := range w.For {
		if part := waitsForKind(w, kind); part != "" {
			parts = append(parts, part)
		}
	}
	signals := w.Has(runlane.WaitingSignal) || w.Has(runlane.WaitingInput)
	calls := w.Has(runlane.WaitingChildren)
	switch names := strings.Join(w.Names, ", "); {
	case names == "":
	case signals && calls: // both have names, and a run stores them in one list
		return inWords(parts) + ": " + names
	case signals, calls:
		parts[0] += " (" + names + ")" // these kinds come first
	}
	return inWords(parts)
}

// Asked returns the questions of a suspended run in one line, with their names if there are several.
func Asked(w *runlane.Waiting) string {
	asks := w.Asks()
	texts := make([]string, len(asks))
	for i, q := range asks {
		if texts[i] = q.Prompt; len(asks) > 1 && q.Name != "" {
			texts[i] = q.Name + ": " + q.Prompt
		}
	}
	return strings.Join(strings.Fields(strings.Join(texts, "; ")), " ")
}

// waitsForKind describes one kind of a wait. It returns "" if another part or the time limit describes it.
func waitsForKind(w *runlane.Waiting, kind runlane.WaitingFor) string {
	person := w.Has(runlane.WaitingInput)
	switch kind {
	case runlane.WaitingSignal:
		switch {
		case person: // WaitingInput covers it
			return ""
		case w.All && len(w.Names) > 1:
			return "all of its signals"
		default:
			return "a signal"
		}
	case runlane.WaitingInput:
		if w.All && len(w.Names) > 1 {
			return "all answers of a person"
		}
		return "the answer of a person"
	case runlane.WaitingChildren:
		return ends(w.Need, "that it called")
	case runlane.WaitingEnds:
		return ends(w.Need, "of its flow")
	case runlane.WaitingBlocked:
		return "an operator"
	case runlane.WaitingAnything:
		return "any signal or called run"
	case runlane.WaitingTime:
		if len(w.For) > 1 {
			return ""
		}
		return "its time"
	default:
		return string(kind)
	}
}

func ends(need int, which string) string {
	switch need {
	case 0:
		return "runs " + which
	case 1:
		return "1 run " + which
	default:
		return fmt.Sprintf("%d runs %s", need, which)
	}
}

// inWords joins alternatives: "a, b, or c".
func inWords(parts []string) string {
	if last := len(parts) - 1; last > 0 {
		return strings.Join(parts[:last], ", ") + ", or " + parts[last]
	}
	return strings.Join(parts, "")
}
