package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/runlane/runlane-go"
)

// The forms of what the test's program reads and writes: internal/proof/upgrade/program has them, too, as a program of
// other sources.
type (
	order struct {
		Name           string `json:"name"`
		Do             string `json:"do,omitempty"`
		Gate           string `json:"gate,omitempty"`
		Milliseconds   int    `json:"milliseconds,omitempty"`
		Pad            string `json:"pad,omitempty"`
		Bound          bool   `json:"bound,omitempty"`
		Later          int    `json:"later,omitempty"`
		Deferred       bool   `json:"deferred,omitempty"`
		IdempotencyKey string `json:"idempotencyKey,omitempty"`
		SingletonKey   string `json:"singletonKey,omitempty"`
		Sealed         bool   `json:"sealed,omitempty"`
		Sends          string `json:"sends,omitempty"`

		// ends is the status that the run has in the end.
		ends runlane.Status
	}
	acknowledgement struct {
		Name    string                 `json:"name"`
		Run     runlane.RunID          `json:"run"`
		Outcome runlane.TriggerOutcome `json:"outcome"`
	}
	note struct {
		Run     runlane.RunID `json:"run"`
		Name    string        `json:"name"`
		Attempt int           `json:"attempt"`
		By      string        `json:"by"`
		What    string        `json:"what"`
	}
	seen struct {
		Run      runlane.RunID      `json:"run"`
		Name     string             `json:"name"`
		Bytes    int                `json:"bytes"`
		Status   runlane.Status     `json:"status"`
		Attempts int                `json:"attempts"`
		Schedule runlane.ScheduleID `json:"schedule"`
		Fire     int64              `json:"fire"`
		Output   string             `json:"output"`
		Fault    string             `json:"fault"`
	}
)

// ledger is what was promised: a run for each name.
type ledger struct {
	promised map[runlane.RunID]*order
	byName   map[string]runlane.RunID
	broken   []string // promises that contradict each other
}

// acknowledge writes down the answer to an order. An order whose name was there before has keys of that one, and has to
// be answered with its run.
func (l *ledger) acknowledge(o *order, a *acknowledgement) {
	if l.promised == nil {
		l.promised, l.byName = map[runlane.RunID]*order{}, map[string]runlane.RunID{}
	}
	first, again := l.byName[o.Name]
	switch {
	case a.Name != o.Name:
		l.broken = append(l.broken, fmt.Sprintf("%s was answered as %s", o.Name, a.Name))
	case again && first != a.Run:
		l.broken = append(l.broken, fmt.Sprintf("%s has run %s, and was answered with %s", o.Name, first, a.Run))
	case again:
	case l.promised[a.Run] != nil:
		l.broken = append(l.broken, fmt.Sprintf("%s was answered with the run of %s", o.Name, l.promised[a.Run].Name))
	default:
		l.promised[a.Run], l.byName[o.Name] = o, a.Run
	}
}

// unfinished names the runs that are not where they have to be in the end.
func (l *ledger) unfinished(status map[runlane.RunID]runlane.Status) (names []string) {
	for id, got := range status {
		if o := l.promised[id]; o != nil && got != o.ends {
			names = append(names, fmt.Sprintf("%s is %s, want %s", o.Name, got, o.ends))
		} else if o == nil && got.Active() {
			names = append(names, fmt.Sprintf("%s is %s", id, got))
		}
	}
	slices.Sort(names)
	return names
}

// verdict is what is wrong, in lines.
type verdict struct {
	lost, stuck, wrong []string
}

func (v *verdict) add(to *[]string, format string, values ...any) {
	*to = append(*to, fmt.Sprintf(format, values...))
}

// String is all of it, in one text; "" is a good end.
func (v *verdict) String() string {
	return strings.Join(slices.Concat(v.lost, v.stuck, v.wrong), "\n")
}

// judge compares what a program reads with what was promised, and with what handlers did.
func (l *ledger) judge(runs []seen, notes []note) *verdict {
	v := &verdict{wrong: slices.Clone(l.broken)}
	found := map[runlane.RunID]*seen{}
	for i := range runs {
		run := &runs[i]
		if found[run.Run] != nil {
			v.add(&v.wrong, "%s is listed twice", run.Run)
		}
		found[run.Run] = run
		switch o := l.promised[run.Run]; {
		case o == nil && run.Schedule == "":
			v.add(&v.wrong, "%s (%s) was never promised", run.Name, run.Run)
		case o == nil && run.Status != runlane.StatusSucceeded:
			v.add(&v.stuck, "a run of schedule %s (%s) is %s", run.Schedule, run.Run, run.Status)
		case o == nil:
		case run.Name != o.Name || run.Bytes < len(o.Pad):
			v.add(&v.wrong, "%s (%s) has the payload of %q, %d bytes", o.Name, run.Run, run.Name, run.Bytes)
		case run.Status != o.ends && run.Status.Active():
			v.add(&v.stuck, "%s (%s) is %s, want %s", o.Name, run.Run, run.Status, o.ends)
		case run.Status != o.ends:
			v.add(&v.wrong, "%s (%s) is %s, want %s", o.Name, run.Run, run.Status, o.ends)
		}
	}
	l.compare(v, runs)
	v.contradictions(found, notes)
	v.missed(runs)
	return v
}

// compare finds what is lost, and what a program cannot read as it was written. Unlike the rest it holds at any time.
func (l *ledger) compare(v *verdict, runs []seen) {
	found := map[runlane.RunID]bool{}
	for i := range runs {
		found[runs[i].Run] = true
		if runs[i].Fault != "" {
			v.add(&v.wrong, "%s (%s): %s", runs[i].Name, runs[i].Run, runs[i].Fault)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(l.promised)) {
		if !found[id] {
			v.add(&v.lost, "%s (%s) was acknowledged, and is not there", l.promised[id].Name, id)
		}
	}
}

// contradictions finds where the notes of handlers tell something else than the runs: an attempt that was executed
// twice or that no run counts, a success without a handler's.
func (v *verdict) contradictions(runs map[runlane.RunID]*seen, notes []note) {
	type attempt struct {
		run    runlane.RunID
		number int
	}
	started, succeeded := map[attempt]int{}, map[runlane.RunID]string{}
	for _, n := range notes {
		run := runs[n.Run]
		switch {
		case run == nil:
			v.add(&v.wrong, "%s (%s) was executed, and is not there", n.Name, n.Run)
		case n.Attempt > run.Attempts:
			v.add(
				&v.wrong, "%s (%s) counts %d attempts, and number %d was executed",
				n.Name, n.Run, run.Attempts, n.Attempt,
			)
		case n.What == "started":
			if started[attempt{n.Run, n.Attempt}]++; started[attempt{n.Run, n.Attempt}] == 2 {
				v.add(&v.wrong, "attempt %d of %s (%s) was executed twice", n.Attempt, n.Name, n.Run)
			}
		case n.What == "succeeded":
			succeeded[n.Run] = n.By
		}
	}
	for _, id := range slices.Sorted(maps.Keys(runs)) {
		run := runs[id]
		by, did := succeeded[id]
		output := fmt.Sprintf(`{"by":%q,"name":%q}`, by, run.Name)
		if run.Status == runlane.StatusSucceeded && (!did || run.Output != output) {
			v.add(&v.wrong, "%s (%s) succeeded with %s, and its handler says %s", run.Name, id, run.Output, output)
		}
	}
}

// beat is the interval of the schedule of that name, of which every occurrence makes a run.
const beat = 10_000

// missed finds occurrences of the schedule beat that have no run, or several.
func (v *verdict) missed(runs []seen) {
	var fires []int64
	for i := range runs {
		if runs[i].Schedule == "beat" {
			fires = append(fires, runs[i].Fire)
		}
	}
	slices.Sort(fires)
	for i := 1; i < len(fires); i++ {
		if fires[i]-fires[i-1] != beat {
			v.add(&v.wrong, "schedule beat fired at %d and next at %d, want each %d ms", fires[i-1], fires[i], beat)
		}
	}
}
