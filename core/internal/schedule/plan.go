package schedule

import (
	"time"

	"github.com/runlane/runlane-go"
)

const (
	// maxOccurrences bounds what one evaluation of a schedule considers: after a long outage the rest is for the next
	// tick.
	maxOccurrences = 20_000
	// defaultTolerance is how late an occurrence may be under runlane.MisfireSkip where the schedule says nothing:
	// several ticks.
	defaultTolerance = 5 * time.Minute
	// defaultCatchUp is how many missed occurrences runlane.MisfireCatchUp runs where the schedule names nothing.
	defaultCatchUp = 100
)

// firing is the decision about one or several occurrences in a row: a run, or a skip with its reason.
type firing struct {
	at      time.Time // of several that are skipped: the last
	first   time.Time
	count   int
	skipped runlane.SkipReason // "" makes a run
}

// occurrences are the fire times after from, up to and including now. more is true when there are too many for one
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

// judgeMisfires applies the misfire policy to the occurrences that are due, oldest first. more says that later ones are
// due too.
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

// addSkip adds a skipped occurrence; those in a row with one reason are one.
func addSkip(plan []firing, at time.Time, reason runlane.SkipReason) []firing {
	if n := len(plan); n > 0 && plan[n-1].skipped == reason {
		plan[n-1].at = at
		plan[n-1].count++
		return plan
	}
	return append(plan, firing{at: at, first: at, count: 1, skipped: reason})
}

// skipAll makes one skip of occurrences in a row.
func skipAll(fires []time.Time, reason runlane.SkipReason) (plan []firing) {
	for _, at := range fires {
		plan = addSkip(plan, at, reason)
	}
	return plan
}

// judgePending changes the plan where an occurrence was kept pending while the run before it was active. The latest one
// runs: the last that is due, or, where the misfire policy leaves that out, the pending one, which is late because it
// waited. Those before it came while that run was active.
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
