package lanetest_test

import (
	"context"
	"errors"
	"maps"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// sleepsThroughEnds suspends whatever ended since its look.
type sleepsThroughEnds struct{ sound }

func (s sleepsThroughEnds) AppendRunEvents(ctx context.Context, c *lane.AppendCommand) (*lane.Commit, error) {
	if c.Look == nil {
		return s.sound.AppendRunEvents(ctx, c)
	}
	blind, look := *c, *c.Look
	look.Calls = nil
	blind.Look = &look
	return s.sound.AppendRunEvents(ctx, &blind)
}

// toldAgain takes the repetition of a telling for a success.
type toldAgain struct{ sound }

func (s toldAgain) TellEnd(ctx context.Context, c *lane.TellCommand) (*lane.Commit, error) {
	commit, err := s.sound.TellEnd(ctx, c)
	if errors.Is(err, runlane.ConflictWait) {
		return nil, nil
	}
	return commit, err
}

// ignoresBegunWaits counts the last end although its run began to wait since.
type ignoresBegunWaits struct{ sound }

func (s ignoresBegunWaits) TellEnd(ctx context.Context, c *lane.TellCommand) (*lane.Commit, error) {
	forced := *c
	if c.To != nil && c.Resume == nil {
		to := *c.To
		if run, err := s.GetRun(ctx, lane.RunKey{Environment: c.Environment, RunID: to.RunID}); err == nil {
			to.Wait = run.EventSequence
		}
		forced.To = &to
	}
	return s.sound.TellEnd(ctx, &forced)
}

func init() {
	maps.Copy(broken, map[string]struct {
		storage func(sound) lane.Storage
		fails   string // group/case
	}{
		"sleepsThroughEnds": {func(s sound) lane.Storage { return sleepsThroughEnds{s} }, "Calls/ASuspensionDependsOnTheEndsThatWereMissing"},
		"toldAgain":         {func(s sound) lane.Storage { return toldAgain{s} }, "Calls/AnEndIsCountedOnce"},
		"ignoresBegunWaits": {func(s sound) lane.Storage { return ignoresBegunWaits{s} }, "Calls/TheLastEndDependsOnTheWaitThatWasRead"},
	})
}
