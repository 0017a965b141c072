package main

import (
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// cost is what a request writes when it takes a run's marker from one kind to another, 0 for none.
func cost(r *request, from, to marker) float64 {
	units := float64(r.table + r.slot)
	if from != to || r == &retry || r == &recoverRun { // these give the marker another time
		if from != noMarker {
			units++
		}
		if to != noMarker {
			units++
		}
	}
	if r.done {
		units++
	}
	return units
}

// budget reads docs/internals/layout.md, Budget: write units by the name of the row, up to its colon.
func budget(t *testing.T) map[string]float64 {
	t.Helper()
	_, section, _ := strings.Cut(source(t, "docs/internals/layout.md"), "\n## Budget\n")
	section, _, _ = strings.Cut(section, "\n## ")
	units := map[string]float64{}
	row := regexp.MustCompile(`(?m)^\| ([^|]+?) \|[^|]*\|[^|]*\| (?:\+ )?(\d+) \|.*$`)
	for _, match := range row.FindAllStringSubmatch(strings.ReplaceAll(section, "**", ""), -1) {
		name, _, _ := strings.Cut(match[1], ": ")
		n, err := strconv.ParseFloat(match[2], 64)
		if err != nil {
			t.Fatal(err)
		}
		units[name] = n
	}
	if len(units) < 20 {
		t.Fatalf("only %d rows were read", len(units))
	}
	return units
}

func TestRequests_CostWhatTheLayoutSays(t *testing.T) {
	t.Parallel()
	const q, w, l, o, p = deliverable, waiting, leased, unpublished, parked
	trigger, acknowledged := cost(&create, 0, q), cost(&acknowledge, q, q)
	claimed, success := cost(&claim, q, q), cost(&succeed, q, 0)
	units := budget(t)
	for name, ours := range map[string]float64{
		"trigger":                                    trigger,
		"publish acknowledged":                       acknowledged,
		"claim and start":                            claimed,
		"success":                                    success,
		"a simple run":                               trigger + acknowledged + claimed + success,
		"trigger that takes a slot":                  cost(&createWithSlot, 0, q),
		"claim with a reservation":                   cost(&claimWithSlot, q, q),
		"slot reserved":                              cost(&reserveSlot, slotless, q),
		"success that frees a slot":                  cost(&succeedWithSlot, q, 0),
		"retry up to 15 min":                         cost(&retry, q, w) + cost(&claim, w, w),
		"longer wait with a delivery request":        cost(&retry, q, w) + cost(&recoverRun, w, q) + acknowledged + claimed,
		"abandoned attempt":                          cost(&recoverRun, q, q) + acknowledged + claimed,
		"abandoned attempt that was inspected":       cost(&moveMarker, q, l) + cost(&recoverRun, l, q) + acknowledged + claimed,
		"still active at the first inspection":       cost(&moveMarker, q, p),
		"deferred trigger":                           cost(&claimOutbox, o, o) + cost(&moveMarker, o, q),
		"retry in a bounded queue":                   cost(&retry, q, w) + 2 + cost(&claimWithSlot, w, w), // simulated without its slot
		"bounded queue, saturated":                   cost(&createWaiting, 0, slotless) + cost(&reserveSlot, slotless, q) + acknowledged + cost(&claimWithSlot, q, q) + cost(&succeedWithSlot, q, 0),
		"bounded queue with room":                    cost(&createWithSlot, 0, q) + acknowledged + cost(&claimWithSlot, q, q) + cost(&succeedWithSlot, q, 0),
		"longer wait with the tick's delayed wakeup": cost(&retry, q, w) + cost(&claim, w, w),
	} {
		theirs, ok := units[name]
		if !ok {
			t.Errorf("docs/internals/layout.md has no row %q", name)
			continue
		}
		if ours != theirs {
			t.Errorf("%s: %v units here, %v in docs/internals/layout.md", name, ours, theirs)
		}
	}
}
