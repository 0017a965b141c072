package lanetest_test

import (
	"context"
	"maps"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// Storages that are wrong about records.

// tellsWhatItWasGiven answers with the caller's record, whichever is kept.
type tellsWhatItWasGiven struct{ sound }

func (s tellsWhatItWasGiven) KeepRecord(ctx context.Context, c *lane.KeepCommand) (*lane.StepRecord, error) {
	if _, err := s.sound.KeepRecord(ctx, c); err != nil {
		return nil, err
	}
	return lane.RecordAtRest(&c.Record), nil
}

// keepsTheLast replaces whatever is there.
type keepsTheLast struct{ sound }

func (s keepsTheLast) KeepRecord(ctx context.Context, c *lane.KeepCommand) (*lane.StepRecord, error) {
	forced := *c
	forced.Replace = true
	return s.sound.KeepRecord(ctx, &forced)
}

// keepsNoReplacement leaves checkpoints at the first.
type keepsNoReplacement struct{ sound }

func (s keepsNoReplacement) KeepRecord(ctx context.Context, c *lane.KeepCommand) (*lane.StepRecord, error) {
	forced := *c
	forced.Replace = false
	return s.sound.KeepRecord(ctx, &forced)
}

// forgetsTheCreation keeps and lists by the run that has the id now.
type forgetsTheCreation struct{ sound }

func (s forgetsTheCreation) KeepRecord(ctx context.Context, c *lane.KeepCommand) (*lane.StepRecord, error) {
	run, err := s.GetRun(ctx, c.RunKey)
	if err != nil {
		return nil, err
	}
	forced := *c
	forced.CreatedAt = run.CreatedAt
	return s.sound.KeepRecord(ctx, &forced)
}

// listsOnePage has no next one.
type listsOnePage struct{ sound }

func (s listsOnePage) ListRecords(ctx context.Context, q *lane.RecordQuery) (*runlane.Page[lane.StepRecord], error) {
	page, err := s.sound.ListRecords(ctx, q)
	if err == nil {
		page.Next = ""
	}
	return page, err
}

func init() {
	maps.Copy(broken, map[string]struct {
		storage func(sound) lane.Storage
		fails   string // group/case
	}{
		"tellsWhatItWasGiven": {func(s sound) lane.Storage { return tellsWhatItWasGiven{s} }, "Records/TheFirstStaysAndWhoComesLaterIsToldIt"},
		"keepsTheLast":        {func(s sound) lane.Storage { return keepsTheLast{s} }, "Records/TheFirstStaysAndWhoComesLaterIsToldIt"},
		"keepsNoReplacement":  {func(s sound) lane.Storage { return keepsNoReplacement{s} }, "Records/AreReplacedOnlyByLaterOnesOfTheirKind"},
		"forgetsTheCreation":  {func(s sound) lane.Storage { return forgetsTheCreation{s} }, "Records/Hazard41_AnIDUsedAgainHasNoneOfTheRunBefore"},
		"listsOnePage":        {func(s sound) lane.Storage { return listsOnePage{s} }, "Records/ArePagedByName"},
	})
}
