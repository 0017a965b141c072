package lanetest_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// Storages that are wrong about schedules.

// endsClaimsEarly takes occurrences over a millisecond too soon.
type endsClaimsEarly struct{ sound }

func (s endsClaimsEarly) ClaimScheduleOccurrence(ctx context.Context, c *lane.ClaimOccurrenceCommand) (*lane.OccurrenceClaim, error) {
	early := *c
	early.At = c.At.Add(time.Millisecond)
	return s.sound.ClaimScheduleOccurrence(ctx, &early)
}

// losesOccurrencesWithErrors has no outcome for those who come second.
type losesOccurrencesWithErrors struct{ sound }

func (s losesOccurrencesWithErrors) ClaimScheduleOccurrence(ctx context.Context, c *lane.ClaimOccurrenceCommand) (*lane.OccurrenceClaim, error) {
	got, err := s.sound.ClaimScheduleOccurrence(ctx, c)
	if err == nil && got.Outcome != lane.Acquired {
		return nil, runlane.NewConflict(runlane.ConflictScheduleOccurrence, "lost")
	}
	return got, err
}

// firesAgain remembers occurrences for 40 days, and nothing else.
type firesAgain struct{ sound }

func (s firesAgain) ClaimScheduleOccurrence(ctx context.Context, c *lane.ClaimOccurrenceCommand) (*lane.OccurrenceClaim, error) {
	got, err := s.sound.ClaimScheduleOccurrence(ctx, c)
	if err == nil && got.Outcome != lane.Acquired && c.At.Sub(c.FireTime) > 40*24*time.Hour {
		return &lane.OccurrenceClaim{Outcome: lane.Acquired, Token: "once more"}, nil
	}
	return got, err
}

// completesForAnybody does not look at tokens.
type completesForAnybody struct{ sound }

func (s completesForAnybody) CompleteScheduleOccurrence(ctx context.Context, c *lane.CompleteOccurrenceCommand) error {
	err := s.sound.CompleteScheduleOccurrence(ctx, c)
	if errors.Is(err, runlane.ConflictScheduleOccurrence) {
		return nil
	}
	return err
}

// putsAnyway writes records whatever their version.
type putsAnyway struct{ sound }

func (s putsAnyway) PutSchedule(ctx context.Context, c *lane.PutScheduleCommand) (*runlane.ScheduleRecord, error) {
	current, err := s.GetSchedule(ctx, lane.ScheduleKey{Environment: c.Environment, ScheduleID: c.Record.ID})
	forced := *c
	if err == nil {
		forced.Record.Version = current.Version
	}
	return s.sound.PutSchedule(ctx, &forced)
}

// losesFires lets a put take back what a completion has moved.
type losesFires struct{ sound }

func (s losesFires) GetSchedule(ctx context.Context, key lane.ScheduleKey) (*runlane.ScheduleRecord, error) {
	record, err := s.sound.GetSchedule(ctx, key)
	if err == nil && record.PauseReason != "" {
		record.LastFire, record.LastRunID = record.RegisteredAt, ""
	}
	return record, err
}

// listsOldestFirst has its pages in the other order.
type listsOldestFirst struct{ sound }

func (s listsOldestFirst) ListScheduleOccurrences(ctx context.Context, q *lane.OccurrenceQuery) (*runlane.Page[runlane.Occurrence], error) {
	page, err := s.sound.ListScheduleOccurrences(ctx, q)
	if err == nil {
		slices.Reverse(page.Items)
	}
	return page, err
}

func init() {
	maps.Copy(broken, map[string]struct {
		storage func(sound) lane.Storage
		fails   string // group/case
	}{
		"endsClaimsEarly": {func(s sound) lane.Storage { return endsClaimsEarly{s} }, "Schedules/ClaimsEndAtTheirExactMillisecond"},
		"losesOccurrencesWithErrors": {
			func(s sound) lane.Storage { return losesOccurrencesWithErrors{s} }, "Schedules/ClaimRaceHasOneWinnerAndLosersGetAnOutcome",
		},
		"firesAgain":          {func(s sound) lane.Storage { return firesAgain{s} }, "Schedules/NothingAtOrBeforeTheLastFireIsClaimed"},
		"completesForAnybody": {func(s sound) lane.Storage { return completesForAnybody{s} }, "Schedules/CompletionEnforcesTheToken"},
		"putsAnyway":          {func(s sound) lane.Storage { return putsAnyway{s} }, "Schedules/PutIsConditionalOnTheVersion"},
		"losesFires":          {func(s sound) lane.Storage { return losesFires{s} }, "Schedules/CompletionMovesTheLastFireAndItsRun"},
		"listsOldestFirst":    {func(s sound) lane.Storage { return listsOldestFirst{s} }, "Schedules/OccurrencesAreListedNewestFirst"},
	})
}
