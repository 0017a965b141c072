package main

import (
	"fmt"
	"strings"
)

func opName(p process) string {
	if p.op > opMove {
		return "marker to " + kindName(p.op-opMove)
	}
	return [...]string{
		"nothing", "claim and start", "fail: abandoned too often", "finish the cancellation", "request a delivery",
		"request a delivery again",
		"reserve a slot", "make it queued, into d", "claim the outbox row", "give the slot back", "",
	}[p.op]
}

func kindName(kind int8) string { return "-qoxwdpl"[kind : kind+1] }

func processName(kind int8) string {
	return [...]string{"none", "bridge", "tick", "worker", "publisher"}[kind]
}

func stageName(stage int8) string {
	return [...]string{"none", "finalizing", "delivering", "publishing", "redelivering", "dispatching"}[stage]
}

// Show is a state in one line.
func (w *world) Show(s *state) string { return s.String() }

func (l label) String() string { return fmt.Sprintf("run %d: %s", l.run, l.text) }

// String shows runs and slots in one line.
func (s *state) String() string {
	var b strings.Builder
	for i := range s.runs {
		r := &s.runs[i]
		if r.status == absent {
			continue
		}
		status := [...]string{"", "queued", "scheduled", "waiting", "running", "cancelling", "terminal"}[r.status]
		_, _ = fmt.Fprintf(&b, " run %d %s %s@%d", i, status, kindName(r.kind), r.at)
		if r.row != noRow {
			row := [...]string{"", "pending", "claimed", "published", "failed", "dead"}[r.row]
			_, _ = fmt.Fprintf(&b, " row=%s@%d", row, r.rowAt)
		}
		if r.status == running || r.status == cancelRequested {
			_, _ = fmt.Fprintf(&b, " lease=%d", r.lease)
		}
		if r.reserved != 0 {
			_, _ = fmt.Fprintf(&b, " reserved=%d", r.reserved)
		}
		if r.runAt != 0 {
			_, _ = fmt.Fprintf(&b, " runAt=%d", r.runAt)
		}
		if s.wakeups[i] != 0 {
			b.WriteString(" wakeup")
		}
		b.WriteString(";")
	}
	for n, v := range s.slots {
		if v.holder == 0 {
			continue
		}
		until := fmt.Sprint(v.until)
		if v.until == held {
			until = "held"
		}
		_, _ = fmt.Fprintf(&b, " slot %d: run %d (%s)", n, v.holder-1, until)
	}
	return b.String()
}
