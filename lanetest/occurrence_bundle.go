package lanetest

import (
	"fmt"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// claimOf is the claim of an occurrence made at the instant, for claimTime.
func (b *bundle) claimOf(id runlane.ScheduleID, fire, at time.Time) *lane.ClaimOccurrenceCommand {
	return &lane.ClaimOccurrenceCommand{
		ScheduleKey:  b.scheduleKey(id),
		OccurrenceID: occurrenceID(fire),
		FireTime:     fire,
		At:           at,
		ClaimUntil:   at.Add(claimTime),
	}
}

func occurrenceID(fire time.Time) string { return fmt.Sprintf("occ_%x", fire.UnixMilli()) }

// tryOccurrence claims at the instant; a token comes exactly with the occurrence.
func (b *bundle) tryOccurrence(id runlane.ScheduleID, fire, at time.Time) *lane.OccurrenceClaim {
	b.t.Helper()
	got := must(b.storage.ClaimScheduleOccurrence(b.ctx(), b.claimOf(id, fire, at)))(b.t)
	if got == nil || (got.Outcome == lane.Acquired) != (got.Token != "") ||
		got.Outcome != lane.Acquired && got.Outcome != lane.LostOccurrence {
		b.t.Fatalf("claim of %v at %v: %+v", fire, at, got)
	}
	return got
}

// wantOutcome claims at the instant and demands an outcome.
func (b *bundle) wantOutcome(id runlane.ScheduleID, fire, at time.Time, want lane.Outcome) (token string) {
	b.t.Helper()
	got := b.tryOccurrence(id, fire, at)
	if got.Outcome != want {
		b.t.Fatalf("claim of %v at %v: outcome %q, want %q", fire, at, got.Outcome, want)
	}
	return got.Token
}

// claimed is the token of an occurrence that must be free, claimed at its fire time.
func (b *bundle) claimed(id runlane.ScheduleID, fire time.Time) (token string) {
	b.t.Helper()
	return b.wantOutcome(id, fire, fire, lane.Acquired)
}

func (b *bundle) completion(
	id runlane.ScheduleID, fire time.Time, token string, runs ...runlane.RunID,
) *lane.CompleteOccurrenceCommand {
	return &lane.CompleteOccurrenceCommand{
		ScheduleKey:  b.scheduleKey(id),
		OccurrenceID: occurrenceID(fire),
		FireTime:     fire,
		Token:        token,
		RunIDs:       runs,
	}
}

func (b *bundle) complete(id runlane.ScheduleID, fire time.Time, token string, runs ...runlane.RunID) error {
	return b.storage.CompleteScheduleOccurrence(b.ctx(), b.completion(id, fire, token, runs...))
}

// completed claims and completes an occurrence.
func (b *bundle) completed(id runlane.ScheduleID, fire time.Time, runs ...runlane.RunID) {
	b.t.Helper()
	if err := b.complete(id, fire, b.claimed(id, fire), runs...); err != nil {
		b.t.Fatalf("completing %v: %v", fire, err)
	}
}

// skipped claims an occurrence and completes it without a run.
func (b *bundle) skipped(id runlane.ScheduleID, fire time.Time, reason runlane.SkipReason) {
	b.t.Helper()
	c := b.completion(id, fire, b.claimed(id, fire))
	c.Skipped = reason
	if err := b.storage.CompleteScheduleOccurrence(b.ctx(), c); err != nil {
		b.t.Fatalf("skipping %v: %v", fire, err)
	}
}

// occurrences reads the list to its end.
func (b *bundle) occurrences(id runlane.ScheduleID, skippedOnly bool) []runlane.Occurrence {
	b.t.Helper()
	return b.occurrencePages(&lane.OccurrenceQuery{
		PageQuery:   lane.PageQuery{Environment: b.env},
		ScheduleID:  id,
		SkippedOnly: skippedOnly,
	})
}

func (b *bundle) occurrencePages(q *lane.OccurrenceQuery) []runlane.Occurrence {
	b.t.Helper()
	return collect(b.t, &q.PageQuery, func() (*runlane.Page[runlane.Occurrence], error) {
		return b.storage.ListScheduleOccurrences(b.ctx(), q)
	})
}

func (b *bundle) wantOccurrences(id runlane.ScheduleID, want []runlane.Occurrence) {
	b.t.Helper()
	b.eventually(func() string { return difference(want, b.occurrences(id, false)) })
}
