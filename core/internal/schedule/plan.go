package schedule

import (
	"time"

	"github.com/runlane/runlane-go"
)

const (
	// maxOccurrences bounds one evaluation of a schedule: after a long outage the next tick continues.
	maxOccurrences = 20_000
	// defaultTolerance is the tolerance of runlane.MisfireSkip without a Tolerance: several ticks.
	defaultTolerance = 5 * time.Minute
	// defaultCatchUp is the limit of runlane.MisfireCatchUp without a Limit.
	defaultCatchUp = 100
)

// firing is the decision about one occurrence, or about consecutive ones: a run, or a skip with its reason.
type firing struct {
	at      time.Time // of several skipped ones: the last
	first   time.Time
	count   int
	skipped runlane.SkipReason // "" makes a run
}

// occurrences returns the fire times after from, up to and including now. more is true if there are too many for one
// evaluation.
func occurrences(when runlane.When, from, now time.Time) (fires []time.Time, more bool) {
	for at, ok := when.Next(from); ok && !at.After(now); at, ok = when.Next(at) {
		if len(fires) == maxOccurrences {
			return fires, true
		}
		fires = append(fires, at)
	}
	return fires, false
}

// judgeMisfires applies the misfire policy to due occurrences, oldest first. more means that later ones are due too.
func judgeMisfires(m runlane.Misfire, fires []time.Time, more bool, now time.Time) []firing {
	keep := func(i int) bool { return i == len(fires)-1 && !more }
	switch m.Policy {
	case runlane.MisfireLatest:
	case runlane.MisfireSkip:
		tolerance := m.Tolerance
		if tolerance == 0 {
			tolerance = defaultTolerance
		}
		keep = func(i int) bool { return now.Sub(fires[i]) <= tolerance }
	case runlane.MisfireCatchUp:
		limit := m.Limit
		if limit == 0 {
			limit = defaultCatchUp
		}
		keep = func(i int) bool {
			return !more && len(fires)-i <= limit && (m.Window == 0 || now.Sub(fires[i]) <= m.Window)
		}
	}
	plan := make([]firing, 0, 2)
	for i, at := range fires {
		if keep(i) {
			plan = append(plan, firing{at: at, first: at, count: 1})
		} else {
			plan = addSkip(plan, at, runlane.SkippedMisfire)
		}
	}
	return plan
}

// addSkip adds a skipped occurrence and merges consecutive ones with the same reason.
func addSkip(plan []firing, at time.Time, reason runlane.SkipReason) []firing {
	if n := len(plan); n > 0 && plan[n-1].skipped == reason {
		plan[n-1].at = at
		plan[n-1].count++
		return plan
	}
	return append(plan, firing{at: at, first: at, count: 1, skipped: reason})
}

func skipAll(fires []time.Time, reason runlane.SkipReason) (plan []firing) {
	for _, at := range fires {
		plan = addSkip(plan, at, reason)
	}
	return plan
}

// judgePending changes the plan after an occurrence was kept pending behind an active run. The latest one runs: the
// last due one, or, if the misfire policy skips that, the pending one, which is late only because it waited. Earlier
// ones are skipped for overlap.
func judgePending(plan []firing, fires []time.Time, pending time.Time) []firing {
	runs := pending
	if last := plan[len(plan)-1]; last.skipped == "" {
		runs = last.at
	}
	judged := make([]firing, 0, len(plan))
	for _, at := range fires {
		switch at.Compare(runs) {
		case -1:
			judged = addSkip(judged, at, runlane.SkippedOverlap)
		case 0:
			judged = append(judged, firing{at: at, first: at, count: 1})
		default:
			judged = addSkip(judged, at, runlane.SkippedMisfire)
		}
	}
	return judged
}
