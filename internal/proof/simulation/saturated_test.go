package main

import (
	"fmt"
	"strings"
	"testing"
)

// Due rows of a queue that is full do not hide another queue's run, and the document says how fast a tick gets past them.
func TestSaturatedQueue_HidesNoOther_AsTheDocumentSays(t *testing.T) {
	t.Parallel()
	text := strings.Join(strings.Fields(source(t, "docs/simulation.md")), " ")
	for _, s := range saturatedQueues(1, everything.full) {
		if s.Found > 1 {
			t.Errorf("behind %s rows a run was asked for after %.1f minutes: the first tick should have found it", number(s.Rows), s.Found)
		}
		want := fmt.Sprintf("| %s | %.1f s | %s | %.0f min |", number(s.Rows), 60*s.Found, number(s.Moved), s.Cleared)
		if !strings.Contains(text, want) {
			t.Errorf("docs/simulation.md does not say %q", want)
		}
	}
}
