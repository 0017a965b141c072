package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/runlane/runlane-go"
)

// ended is a world in which everything went well: two promised runs, and a schedule's.
func ended() (l *ledger, runs []seen, notes []note) {
	l = &ledger{}
	orders := []order{
		{Name: "one", Pad: "xx", ends: runlane.StatusSucceeded},
		{Name: "two", ends: runlane.StatusScheduled},
		{Name: "one", ends: runlane.StatusSucceeded},
	}
	for i, id := range []runlane.RunID{"r1", "r2", "r1"} {
		l.acknowledge(&orders[i], &acknowledgement{Name: orders[i].Name, Run: id})
	}
	runs = []seen{
		{Run: "r1", Name: "one", Bytes: 9, Status: runlane.StatusSucceeded, Attempts: 2, Output: `{"by":"today","name":"one"}`},
		{Run: "r2", Name: "two", Bytes: 9, Status: runlane.StatusScheduled},
	}
	notes = []note{
		{Run: "r1", Name: "one", Attempt: 1, By: old, What: "started"},
		{Run: "r1", Name: "one", Attempt: 2, By: today, What: "started"},
		{Run: "r1", Name: "one", Attempt: 2, By: today, What: "succeeded"},
	}
	for i, fire := range []int64{10_000, 20_000, 30_000} {
		id := runlane.RunID("s" + string(rune('1'+i)))
		runs = append(runs, seen{
			Run: id, Name: "beat", Status: runlane.StatusSucceeded, Attempts: 1, Schedule: "beat", Fire: fire, Output: `{"by":"old","name":"beat"}`,
		})
		notes = append(notes, note{Run: id, Name: "beat", Attempt: 1, By: old, What: "started"},
			note{Run: id, Name: "beat", Attempt: 1, By: old, What: "succeeded"})
	}
	return l, runs, notes
}

// Each thing that an upgrade may break is told, under its name.
func TestJudge_TellsWhatIsLostStuckAndWrong(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*ledger, *[]seen, *[]note)
		lost   string
		stuck  string
		wrong  string
	}{
		"nothing": {change: func(*ledger, *[]seen, *[]note) {}},
		"a run is lost": {
			change: func(_ *ledger, runs *[]seen, _ *[]note) { *runs = slices.Delete(*runs, 1, 2) },
			lost:   "two (r2) was acknowledged, and is not there",
		},
		"a run is stuck": {
			change: func(_ *ledger, runs *[]seen, _ *[]note) { (*runs)[0].Status = runlane.StatusRunning },
			stuck:  "one (r1) is running, want succeeded",
		},
		"a schedule's run is stuck": {
			change: func(_ *ledger, runs *[]seen, _ *[]note) { (*runs)[2].Status = runlane.StatusQueued },
			stuck:  "a run of schedule beat (s1) is queued",
		},
		"a run ended otherwise": {
			change: func(_ *ledger, runs *[]seen, _ *[]note) { (*runs)[0].Status = runlane.StatusFailed },
			wrong:  "one (r1) is failed, want succeeded",
		},
		"a run is there twice": {
			change: func(_ *ledger, runs *[]seen, _ *[]note) { *runs = append(*runs, (*runs)[1]) },
			wrong:  "r2 is listed twice",
		},
		"a run that was never promised": {
			change: func(_ *ledger, runs *[]seen, _ *[]note) {
				*runs = append(*runs, seen{Run: "r9", Name: "nine", Status: runlane.StatusScheduled})
			},
			wrong: "nine (r9) was never promised",
		},
		"a payload is cut": {
			change: func(_ *ledger, runs *[]seen, _ *[]note) { (*runs)[0].Bytes = 1 },
			wrong:  `one (r1) has the payload of "one", 1 bytes`,
		},
		"a history does not fold": {
			change: func(_ *ledger, runs *[]seen, _ *[]note) { (*runs)[1].Fault = "its history folds to something else" },
			wrong:  "two (r2): its history folds to something else",
		},
		"an attempt is executed twice": {
			change: func(_ *ledger, _ *[]seen, notes *[]note) { *notes = append(*notes, (*notes)[0]) },
			wrong:  "attempt 1 of one (r1) was executed twice",
		},
		"an attempt is not counted": {
			change: func(_ *ledger, runs *[]seen, _ *[]note) { (*runs)[0].Attempts = 1 },
			wrong:  "one (r1) counts 1 attempts, and number 2 was executed",
		},
		"what was executed is not there": {
			change: func(_ *ledger, _ *[]seen, notes *[]note) {
				*notes = append(*notes, note{Run: "r9", Name: "nine", Attempt: 1, What: "started"})
			},
			wrong: "nine (r9) was executed, and is not there",
		},
		"a success without a handler's": {
			change: func(_ *ledger, _ *[]seen, notes *[]note) { *notes = slices.Delete(*notes, 2, 3) },
			wrong:  `one (r1) succeeded with {"by":"today","name":"one"}, and its handler says {"by":"","name":"one"}`,
		},
		"an occurrence is missing": {
			change: func(_ *ledger, runs *[]seen, notes *[]note) {
				*runs = slices.Delete(*runs, 3, 4)
				*notes = slices.DeleteFunc(*notes, func(n note) bool { return n.Run == "s2" })
			},
			wrong: "schedule beat fired at 10000 and next at 30000, want each 10000 ms",
		},
		"a key has two runs": {
			change: func(l *ledger, _ *[]seen, _ *[]note) {
				l.acknowledge(&order{Name: "one"}, &acknowledgement{Name: "one", Run: "r7"})
			},
			wrong: "one has run r1, and was answered with r7",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, runs, notes := ended()
			c.change(l, &runs, &notes)
			v := l.judge(runs, notes)
			for what, pair := range map[string][2]string{
				"lost": {strings.Join(v.lost, "\n"), c.lost}, "stuck": {strings.Join(v.stuck, "\n"), c.stuck},
				"wrong": {strings.Join(v.wrong, "\n"), c.wrong},
			} {
				if !strings.Contains(pair[0], pair[1]) || pair[1] == "" && pair[0] != "" && c.lost+c.stuck == "" {
					t.Errorf("%s: %q, want %q", what, pair[0], pair[1])
				}
			}
			if (v.String() == "") != (name == "nothing") {
				t.Errorf("the verdict is %q", v)
			}
		})
	}
}
