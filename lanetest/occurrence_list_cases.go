package lanetest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

func occurrenceMalformed(t *testing.T, b *bundle) {
	before := b.registered("nightly")
	fire := noon.Add(time.Minute)
	for name, change := range map[string]func(c *lane.ClaimOccurrenceCommand){
		"no schedule":                func(c *lane.ClaimOccurrenceCommand) { c.ScheduleID = "" },
		"a schedule id with a colon": func(c *lane.ClaimOccurrenceCommand) { c.ScheduleID = "a:b" },
		"no occurrence id":           func(c *lane.ClaimOccurrenceCommand) { c.OccurrenceID = "" },
		"no fire time":               func(c *lane.ClaimOccurrenceCommand) { c.FireTime = time.Time{} },
		"a fire time out of range": func(c *lane.ClaimOccurrenceCommand) {
			c.FireTime = time.UnixMilli(10_000_000_000_000)
		},
		"a fire time before 1970": func(c *lane.ClaimOccurrenceCommand) { c.FireTime = time.UnixMilli(-1) },
		"a claim that is over":    func(c *lane.ClaimOccurrenceCommand) { c.ClaimUntil = c.At },
		"a claim without an end":  func(c *lane.ClaimOccurrenceCommand) { c.ClaimUntil = time.Time{} },
	} {
		c := b.claimOf("nightly", fire, fire)
		change(c)
		got, err := b.storage.ClaimScheduleOccurrence(b.ctx(), c)
		if runlane.CodeOf(err) != runlane.ErrContractViolation {
			t.Errorf("claim with %s: %v, error %v, want %q", name, got, err, runlane.ErrContractViolation)
		}
	}
	token := b.claimed("nightly", fire) // none of them took it
	for name, change := range map[string]func(c *lane.CompleteOccurrenceCommand){
		"runs and a reason":         func(c *lane.CompleteOccurrenceCommand) { c.Skipped = runlane.SkippedMisfire },
		"neither runs nor a reason": func(c *lane.CompleteOccurrenceCommand) { c.RunIDs = nil },
		"an empty run id":           func(c *lane.CompleteOccurrenceCommand) { c.RunIDs = append(c.RunIDs, "") },
		"no occurrence id":          func(c *lane.CompleteOccurrenceCommand) { c.OccurrenceID = "" },
		"no fire time":              func(c *lane.CompleteOccurrenceCommand) { c.FireTime = time.Time{} },
		"no schedule":               func(c *lane.CompleteOccurrenceCommand) { c.ScheduleID = "" },
	} {
		c := b.completion("nightly", fire, token, "run_1")
		change(c)
		err := b.storage.CompleteScheduleOccurrence(b.ctx(), c)
		if runlane.CodeOf(err) != runlane.ErrContractViolation {
			t.Errorf("completion with %s: %v, want %q", name, err, runlane.ErrContractViolation)
		}
	}
	equal(t, "record after malformed commands", before, b.record("nightly"))
	b.wantOccurrences("nightly", nil)
}

func occurrencesListed(t *testing.T, b *bundle) {
	b.registered("nightly")
	b.registered("night")
	var all, skips []runlane.Occurrence
	for i := range 9 {
		o := runlane.Occurrence{ScheduleID: "nightly", FireTime: noon.Add(time.Duration(i+1) * time.Hour)}
		if i%3 == 1 {
			o.Skipped = runlane.SkippedOverlap
			b.skipped("nightly", o.FireTime, o.Skipped)
			skips = append(skips, o)
		} else {
			o.RunID = runlane.RunID(fmt.Sprint("run_", i))
			b.completed("nightly", o.FireTime, o.RunID)
		}
		all = append(all, o)
	}
	b.claimed("nightly", noon.Add(24*time.Hour)) // nothing has become of it yet
	b.completed("night", noon.Add(90*time.Minute), "run_other")
	slices.Reverse(all)
	slices.Reverse(skips)
	for _, limit := range []int{0, 1, 2, 9, runlane.MaxPageLimit} {
		for skippedOnly, want := range map[bool][]runlane.Occurrence{false: all, true: skips} {
			q := &lane.OccurrenceQuery{
				PageQuery:   lane.PageQuery{Environment: b.env, Limit: limit},
				ScheduleID:  "nightly",
				SkippedOnly: skippedOnly,
			}
			b.eventually(func() string { return difference(want, b.occurrencePages(q)) })
		}
	}
}

func occurrenceCursors(t *testing.T, b *bundle) {
	b.registered("nightly")
	b.registered("other")
	for i := range 3 {
		b.skipped("nightly", noon.Add(time.Duration(i+1)*time.Hour), runlane.SkippedPaused)
	}
	q := lane.OccurrenceQuery{PageQuery: lane.PageQuery{Environment: b.env, Limit: 1}, ScheduleID: "nightly"}
	q.After = b.firstCursor(func() (runlane.Cursor, error) {
		page, err := b.storage.ListScheduleOccurrences(b.ctx(), &q)
		if err != nil {
			return "", err
		}
		return page.Next, nil
	})
	for name, change := range map[string]func(q *lane.OccurrenceQuery){
		"another schedule":    func(q *lane.OccurrenceQuery) { q.ScheduleID = "other" },
		"another filter":      func(q *lane.OccurrenceQuery) { q.SkippedOnly = true },
		"another environment": func(q *lane.OccurrenceQuery) { q.Environment += "-elsewhere" },
		"an invented cursor":  func(q *lane.OccurrenceQuery) { q.After = "no cursor" },
		"no schedule":         func(q *lane.OccurrenceQuery) { q.ScheduleID, q.After = "", "" },
		"a negative limit":    func(q *lane.OccurrenceQuery) { q.Limit, q.After = -1, "" },
		"a limit too high":    func(q *lane.OccurrenceQuery) { q.Limit, q.After = runlane.MaxPageLimit+1, "" },
	} {
		other := q
		change(&other)
		_, err := b.storage.ListScheduleOccurrences(b.ctx(), &other)
		if runlane.CodeOf(err) != runlane.ErrValidationFailed {
			t.Errorf("%s: %v, want %q", name, err, runlane.ErrValidationFailed)
		}
	}
	// What appears in front of a cursor does not move what is behind it.
	b.skipped("nightly", noon.Add(24*time.Hour), runlane.SkippedPaused)
	rest := must(b.storage.ListScheduleOccurrences(b.ctx(), &q))(t)
	if len(rest.Items) != 1 || !rest.Items[0].FireTime.Equal(noon.Add(2*time.Hour)) {
		t.Fatalf("behind the first page: %v", rest.Items)
	}
}
