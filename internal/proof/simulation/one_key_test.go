package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/runlane/runlane-go/internal/proof/race"
)

// documented is a row of the table in docs/simulation.md.
func (k *fullKey) documented() string {
	held := map[string]string{cycleTime: "cycle time", limitSlots: "1,000 write units", limitSlotReads: "3,000 read units"}
	before := fmt.Sprintf("%s, %s", number(k.Before.Carries), held[k.Before.Held])
	if k.Before.TurnedAway > 0.01 {
		before += fmt.Sprintf("; %.0f %% of the triggers fail", 100*k.Before.TurnedAway)
	}
	return fmt.Sprintf("| %s | %.3g s | %s | %s | %s | %s, %s | %.2f | %s |", number(float64(k.Limit)), k.Handler, number(k.Carries), number(k.Ceiling),
		held[k.Held], number(k.Writes), number(k.Reads), k.Failed, before)
}

func TestFullKey_CarriesWhatTheDocumentSays(t *testing.T) {
	t.Parallel()
	text := source(t, "docs/simulation.md")
	limits := everything.limits
	if testing.Short() || race.Enabled {
		limits = limits[:2] // the others take seconds; without the race detector, for there is no goroutine, CI runs them all
	}
	for _, k := range fullKeys(1, limits, []time.Duration{handlerTime, longHandler}) {
		if row := k.documented(); !strings.Contains(text, row) {
			t.Errorf("docs/simulation.md does not say\n%s", row)
		}
	}
}
