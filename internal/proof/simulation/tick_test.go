package main

import (
	"strings"
	"testing"
	"time"
)

// How many markers of a backlog without workers one tick moves.
func TestTick_OfABacklog_MovesAsManyMarkersAsTheDocumentSays(t *testing.T) {
	t.Parallel()
	d := freshDeployment()
	d.TablePartitions, d.IndexPartitions = tableQuota/partitionWrites, 0
	w := newWorld(1, d, load{Backlog: 200_000, Weight: 10, Attempts: 1})
	w.ticks()
	w.fill()
	w.run(time.Minute+tickTimeout, nil)
	text := strings.Join(strings.Fields(source(t, "docs/simulation.md")), " ")
	if want := number(w.outcome.looked) + " a minute"; !strings.Contains(text, want) {
		t.Errorf("docs/simulation.md does not say %q", want)
	}
}
