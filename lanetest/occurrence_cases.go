package lanetest

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// docs/internals/contract.md, Schedules: the outcomes of a fire time.
func occurrenceCases() []storageCase {
	return []storageCase{
		{"ClaimRaceHasOneWinnerAndLosersGetAnOutcome", needsOccurrences, occurrenceRace},
		{"CompletionMovesTheLastFireAndItsRun", needsOccurrences, completionMoves},
		{"CompletionEnforcesTheToken", needsOccurrences, completionToken},
		{"RepeatedCompletionSucceedsWithTheSameResultOnly", needsOccurrences, completionRepeated},
		{"CompletionNeverMovesTheLastFireBack", needsOccurrences, completionOutOfOrder},
		{"CompletionsAndPutsAtOnceLoseNothing", needsOccurrences, completionRace},
		{"NothingAtOrBeforeTheLastFireIsClaimed", needsOccurrences, occurrenceNotAfterLastFire},
		{"MarksBeyondTheTrustedTimeDoNotCount", needsOccurrences, occurrenceTrust},
		{"CompletedOccurrencesAreNeverClaimedAgain", needsOccurrences, occurrenceCompleted},
		{"ClaimsEndAtTheirExactMillisecond", needsOccurrences, occurrenceTakenOver},
		{"ALateOwnerMayCompleteUntilItIsTakenOver", needsOccurrences, occurrenceLateOwner},
		{"SkipsMoveTheLastFireAndKeepTheLastRun", needsOccurrences, occurrenceSkipped},
		{"ASkipMayStandForSeveral", needsOccurrences, occurrenceSeveral},
		{"MalformedOccurrencesAreContractViolationsAndWriteNothing", needsOccurrences, occurrenceMalformed},
		{"OccurrencesAreListedNewestFirst", needsOccurrences, occurrencesListed},
		{"CursorsOfOccurrencesBelongToTheirRequest", needsOccurrences, occurrenceCursors},
	}
}

func occurrenceRace(t *testing.T, b *bundle) {
	before := b.registered("nightly")
	fire := noon.Add(time.Minute)
	got, failed := race(callers, func(int) (*lane.OccurrenceClaim, error) {
		return b.storage.ClaimScheduleOccurrence(b.ctx(), b.claimOf("nightly", fire, fire))
	})
	if len(failed) > 0 {
		t.Fatalf("losing a claim is an outcome, not an error: %v", failed[0])
	}
	token := ""
	for _, claim := range got {
		switch {
		case claim.Outcome == lane.LostOccurrence && claim.Token == "":
		case claim.Outcome == lane.Acquired && claim.Token != "" && token == "":
			token = claim.Token
		default:
			t.Fatalf("%+v, beside the token %q", claim, token)
		}
	}
	if token == "" {
		t.Fatal("no caller acquired the occurrence")
	}
	equal(t, "record after the claims", before, b.record("nightly"))
	if err := b.complete("nightly", fire, token, "run_1"); err != nil {
		t.Fatalf("completion by the winner: %v", err)
	}
}

func completionMoves(t *testing.T, b *bundle) {
	r := b.registered("nightly")
	r.Paused, r.PauseReason = true, "a while"
	r.PendingFire, r.LastEvaluated = noon.Add(time.Hour), noon.Add(time.Minute)
	want := b.schedule(r)
	for i := 1; i <= 3; i++ {
		fire := noon.Add(time.Duration(i) * time.Minute)
		run := runlane.RunID(fmt.Sprint("run_", i))
		b.completed("nightly", fire, "run_first", run) // several runs: the last one is remembered
		got := b.record("nightly")
		if got.Version == want.Version {
			t.Fatal("a completion that moved the last fire left the version")
		}
		want.Version, want.LastFire, want.LastRunID = got.Version, fire, run
		equal(t, "record after a completion", want, got)
	}
	// A caller that read the record earlier must not be able to set the last fire back.
	_, err := b.tryPut(r)
	wantConflict(t, err, runlane.ConflictScheduleOccurrence, "")
	equal(t, "record after a stale put", want, b.record("nightly"))
}

func completionToken(t *testing.T, b *bundle) {
	before := b.registered("nightly")
	b.registered("other")
	fire, later := noon.Add(time.Minute), noon.Add(2*time.Minute)
	token, another, others := b.claimed("nightly", fire), b.claimed("nightly", later), b.claimed("other", fire)
	for name, wrong := range map[string]string{
		"no token":             "",
		"an invented one":      "x",
		"another occurrence's": another,
		"another schedule's":   others,
		"one a byte longer":    token + "0",
	} {
		if err := b.complete("nightly", fire, wrong, "run_1"); !isConflict(err, runlane.ConflictScheduleOccurrence) {
			t.Errorf("%s: %v, want conflict %q", name, err, runlane.ConflictScheduleOccurrence)
		}
	}
	// never claimed
	wantConflict(
		t,
		b.complete("nightly", later.Add(time.Minute), token, "run_1"),
		runlane.ConflictScheduleOccurrence,
		"",
	)
	equal(t, "record after refused completions", before, b.record("nightly"))
	b.wantOccurrences("nightly", nil)
	if err := b.complete("nightly", fire, token, "run_1"); err != nil {
		t.Fatalf("completion under the right token: %v", err)
	}
}

func completionRepeated(t *testing.T, b *bundle) {
	b.registered("nightly")
	fire := noon.Add(time.Minute)
	token := b.claimed("nightly", fire)
	if err := b.complete("nightly", fire, token, "run_1", "run_2"); err != nil {
		t.Fatal(err)
	}
	b.completed("nightly", fire.Add(time.Minute), "run_3")
	want, listed := b.record("nightly"), b.occurrences("nightly", false)
	if err := b.complete("nightly", fire, token, "run_1", "run_2"); err != nil {
		t.Fatalf("the same completion again: %v", err)
	}
	skip := b.completion("nightly", fire, token)
	skip.Skipped = runlane.SkippedMisfire
	for name, err := range map[string]error{
		"other runs":      b.complete("nightly", fire, token, "run_1"),
		"a skip instead":  b.storage.CompleteScheduleOccurrence(b.ctx(), skip),
		"another's token": b.complete("nightly", fire, token+"x", "run_1", "run_2"),
	} {
		if !isConflict(err, runlane.ConflictScheduleOccurrence) {
			t.Errorf("%s: %v, want conflict %q", name, err, runlane.ConflictScheduleOccurrence)
		}
	}
	equal(t, "record", want, b.record("nightly"))
	b.wantOccurrences("nightly", listed)
}

func completionOutOfOrder(t *testing.T, b *bundle) {
	b.registered("nightly")
	early, late := noon.Add(time.Minute), noon.Add(2*time.Minute)
	token := b.claimed("nightly", early)
	b.completed("nightly", late, "run_late")
	want := b.record("nightly")
	if err := b.complete("nightly", early, token, "run_early"); err != nil {
		t.Fatalf("completing an occurrence that was overtaken: %v", err)
	}
	got := b.record("nightly")
	want.Version = got.Version // nothing moved; whether it counts as a change is the storage's choice
	equal(t, "record", want, got)
	b.wantOccurrences("nightly", []runlane.Occurrence{
		{ScheduleID: "nightly", FireTime: late, RunID: "run_late"},
		{ScheduleID: "nightly", FireTime: early, RunID: "run_early"},
	})
	if err := b.complete("nightly", early, token, "run_early"); err != nil {
		t.Fatalf("the same completion again: %v", err)
	}
}

// A tick completes occurrences while others evaluate, pause and resume the schedule: every change that was accepted is
// there.
func completionRace(t *testing.T, b *bundle) {
	b.registered("nightly")
	const fires = 8
	tokens := make([]string, fires)
	at := func(i int) time.Time { return noon.Add(time.Duration(i+1) * time.Minute) }
	for i := range tokens {
		tokens[i] = b.claimed("nightly", at(i))
	}
	_, failed := race(2*fires, func(i int) (struct{}, error) {
		if i < fires {
			return struct{}{}, b.complete("nightly", at(i), tokens[i], runlane.RunID(fmt.Sprint("run_", i)))
		}
		for {
			r, err := b.storage.GetSchedule(b.ctx(), b.scheduleKey("nightly"))
			if err != nil {
				return struct{}{}, err
			}
			r.LastEvaluated, r.PauseReason = at(i), r.PauseReason+"+"
			if _, err = b.tryPut(*r); !isConflict(err, runlane.ConflictScheduleOccurrence) {
				return struct{}{}, err
			}
		}
	})
	if len(failed) > 0 {
		t.Fatal(failed[0])
	}
	got := b.record("nightly")
	equal(t, "last fire", at(fires-1), got.LastFire)
	equal(t, "last run", runlane.RunID(fmt.Sprint("run_", fires-1)), got.LastRunID)
	// a put whose answer is lost is not known again behind another one, and put again
	if !b.h.LosesAnswers || len(got.PauseReason) < fires {
		equal(t, "changes that were put", fires, len(got.PauseReason))
	}
	if listed := b.occurrences("nightly", false); len(listed) != fires {
		t.Fatalf("%d occurrences, want %d", len(listed), fires)
	}
}

func occurrenceNotAfterLastFire(t *testing.T, b *bundle) {
	r := b.registered("nightly")
	b.completed("nightly", noon.Add(time.Hour), "run_1")
	check := func(last time.Time) {
		t.Helper()
		for _, fire := range []time.Time{last.Add(-30 * time.Minute), last.Add(-time.Millisecond), last} {
			b.wantOutcome("nightly", fire, last.Add(400*24*time.Hour), lane.LostOccurrence)
		}
	}
	check(noon.Add(time.Hour))
	r = b.record(r.ID)
	r.LastFire = noon.Add(3 * time.Hour) // moved by a put, past occurrences that were never claimed
	r = b.schedule(r)
	check(r.LastFire)
	equal(t, "record after refused claims", r, b.record("nightly"))
	b.claimed("nightly", r.LastFire.Add(time.Millisecond))
}

// A last fire, and a claim's end, that a wrong clock has set stand in no one's way; what is complete stays so.
func occurrenceTrust(t *testing.T, b *bundle) {
	b.registered("nightly")
	year := noon.Add(365 * 24 * time.Hour)
	hour := func(n int) time.Time { return noon.Add(time.Duration(n) * time.Hour) }
	b.wantOutcome("nightly", hour(1), year, lane.Acquired)
	b.completed("nightly", hour(2), "run_2")
	b.completed("nightly", year, "run_ahead")
	b.wantOutcome("nightly", hour(3), hour(3), lane.LostOccurrence)
	claim := func(fire time.Time) *lane.OccurrenceClaim {
		c := b.claimOf("nightly", fire, hour(3))
		c.TrustUntil = hour(4)
		return must(b.storage.ClaimScheduleOccurrence(b.ctx(), c))(t)
	}
	for fire, want := range map[time.Time]lane.Outcome{hour(1): lane.Acquired, hour(2): lane.LostOccurrence} {
		equal(t, "claim of "+fire.String(), want, claim(fire).Outcome)
	}
	done := b.completion("nightly", hour(3), claim(hour(3)).Token, "run_3")
	done.TrustUntil = hour(4)
	for range 2 {
		if err := b.storage.CompleteScheduleOccurrence(b.ctx(), done); err != nil {
			t.Fatal(err)
		}
	}
	got := b.record("nightly")
	equal(t, "last fire", hour(3), got.LastFire)
	equal(t, "last run", "run_3", got.LastRunID)
	b.wantOutcome("nightly", year, year, lane.LostOccurrence)
}

func occurrenceCompleted(t *testing.T, b *bundle) {
	b.registered("nightly")
	b.completed("nightly", noon.Add(time.Minute), "run_1")
	b.skipped("nightly", noon.Add(2*time.Minute), runlane.SkippedPaused)
	for i := 1; i <= 2; i++ {
		fire := noon.Add(time.Duration(i) * time.Minute)
		for _, at := range []time.Time{fire, fire.Add(claimTime), fire.Add(365 * 24 * time.Hour)} {
			b.wantOutcome("nightly", fire, at, lane.LostOccurrence)
		}
	}
}

func occurrenceTakenOver(t *testing.T, b *bundle) {
	b.registered("nightly")
	fire := noon.Add(time.Minute)
	first := b.claimed("nightly", fire)
	end := fire.Add(claimTime)
	b.wantOutcome("nightly", fire, end.Add(-time.Millisecond), lane.LostOccurrence)
	second := b.wantOutcome("nightly", fire, end, lane.Acquired)
	if second == first {
		t.Fatal("two claims have one token")
	}
	b.wantOutcome("nightly", fire, end, lane.LostOccurrence)
	b.wantOutcome("nightly", fire, end.Add(claimTime-time.Millisecond), lane.LostOccurrence)

	before := b.record("nightly")
	wantConflict(t, b.complete("nightly", fire, first, "run_late"), runlane.ConflictScheduleOccurrence, "")
	equal(t, "record after the late owner", before, b.record("nightly"))
	if err := b.complete("nightly", fire, second, "run_1"); err != nil {
		t.Fatalf("completion by the new owner: %v", err)
	}
	wantConflict(t, b.complete("nightly", fire, first, "run_late"), runlane.ConflictScheduleOccurrence, "")
	wantConflict(t, b.complete("nightly", fire, first, "run_1"), runlane.ConflictScheduleOccurrence, "")
	b.wantOccurrences("nightly", []runlane.Occurrence{{ScheduleID: "nightly", FireTime: fire, RunID: "run_1"}})
}

// Completing carries no instant: a claim that is over still belongs to its last holder.
func occurrenceLateOwner(t *testing.T, b *bundle) {
	b.registered("nightly")
	fire := noon.Add(time.Minute)
	token := b.claimed("nightly", fire)
	b.completed("nightly", fire.Add(time.Hour), "run_2") // long after the claim was over
	b.wantOutcome("nightly", fire, fire.Add(2*time.Hour), lane.LostOccurrence)
	if err := b.complete("nightly", fire, token, "run_1"); err != nil {
		t.Fatalf("completion by the only owner there was: %v", err)
	}
}

// docs/internals/contract.md, Schedules.
func occurrenceSeveral(t *testing.T, b *bundle) {
	b.registered("nightly")
	fire := noon.Add(time.Hour)
	c := b.completion("nightly", fire, b.claimed("nightly", fire))
	c.Skipped, c.First, c.Count = runlane.SkippedMisfire, noon.Add(time.Minute), 60
	for range 2 { // the second time it is done already
		if err := b.storage.CompleteScheduleOccurrence(b.ctx(), c); err != nil {
			t.Fatal(err)
		}
	}
	b.wantOccurrences("nightly", []runlane.Occurrence{{
		ScheduleID: "nightly",
		FireTime:   fire,
		Skipped:    runlane.SkippedMisfire,
		First:      noon.Add(time.Minute),
		Count:      60,
	}})
	equal(t, "last fire", fire, b.record("nightly").LastFire)
	other := *c
	other.Count = 59
	if err := b.storage.CompleteScheduleOccurrence(b.ctx(), &other); !errors.Is(
		err,
		runlane.ConflictScheduleOccurrence,
	) {
		t.Errorf("another result: %v", err)
	}
	later := fire.Add(time.Hour)
	token := b.claimed("nightly", later)
	for name, spoil := range map[string]func(*lane.CompleteOccurrenceCommand){
		"a count without a first": func(c *lane.CompleteOccurrenceCommand) { c.Count = 2 },
		"a first without a count": func(c *lane.CompleteOccurrenceCommand) { c.First = fire },
		"one":                     func(c *lane.CompleteOccurrenceCommand) { c.Count, c.First = 1, fire },
		"a first that is later": func(c *lane.CompleteOccurrenceCommand) {
			c.Count, c.First = 2, later.Add(time.Minute)
		},
		"runs": func(c *lane.CompleteOccurrenceCommand) {
			c.Count, c.First, c.Skipped, c.RunIDs = 2, fire, "", []runlane.RunID{"run_1"}
		},
	} {
		bad := b.completion("nightly", later, token)
		bad.Skipped = runlane.SkippedOverlap
		spoil(bad)
		if err := b.storage.CompleteScheduleOccurrence(b.ctx(), bad); !errors.Is(err, runlane.ErrContractViolation) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func occurrenceSkipped(t *testing.T, b *bundle) {
	b.registered("nightly")
	b.skipped("nightly", noon.Add(time.Minute), runlane.SkippedPaused)
	if r := b.record("nightly"); r.LastRunID != "" || !r.LastFire.Equal(noon.Add(time.Minute)) {
		t.Fatalf("after a skip: %+v", r)
	}
	b.completed("nightly", noon.Add(2*time.Minute), "run_2")
	want := b.record("nightly")
	reasons := []runlane.SkipReason{
		runlane.SkippedMisfire,
		runlane.SkippedOverlap,
		runlane.SkippedSingleton,
		runlane.SkippedPaused,
	}
	var skips []runlane.Occurrence
	for i, reason := range reasons {
		fire := noon.Add(time.Duration(3+i) * time.Minute)
		b.skipped("nightly", fire, reason)
		skips = append(skips, runlane.Occurrence{ScheduleID: "nightly", FireTime: fire, Skipped: reason})
	}
	got := b.record("nightly")
	want.LastFire, want.Version = skips[3].FireTime, got.Version
	equal(t, "record after skips", want, got)
	slices.Reverse(skips)
	first := runlane.Occurrence{ScheduleID: "nightly", FireTime: noon.Add(time.Minute), Skipped: runlane.SkippedPaused}
	run := runlane.Occurrence{ScheduleID: "nightly", FireTime: noon.Add(2 * time.Minute), RunID: "run_2"}
	b.wantOccurrences("nightly", append(slices.Clone(skips), run, first))
	b.eventually(func() string {
		return difference(append(slices.Clone(skips), first), b.occurrences("nightly", true))
	})
}
