package lanetest_test

import (
	"context"
	"errors"
	"maps"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// takesEveryNode makes a run of a flow whatever the flow is.
type takesEveryNode struct{ sound }

func (s takesEveryNode) AppendRunEvents(ctx context.Context, c *lane.AppendCommand) (*lane.Commit, error) {
	blind := *c
	blind.Flow = nil
	return s.sound.AppendRunEvents(ctx, &blind)
}

// lastFlowWins writes the record of a flow on any version.
type lastFlowWins struct{ sound }

func (s lastFlowWins) PutFlow(ctx context.Context, c *lane.FlowCommand) (*lane.FlowRecord, error) {
	put, err := s.sound.PutFlow(ctx, c)
	if !errors.Is(err, runlane.ConflictFlow) {
		return put, err
	}
	known, err := s.GetFlow(ctx, &lane.FlowRead{FlowKey: lane.FlowKey{Environment: c.Environment, FlowID: c.Flow.ID}})
	if err != nil {
		return nil, err
	}
	forced := *c
	forced.Flow.Version, forced.Flow.CreatedAt = known.Version, known.CreatedAt
	return s.sound.PutFlow(ctx, &forced)
}

// forgetsFlows lists no flow that a tick has to look at.
type forgetsFlows struct{ sound }

func (s forgetsFlows) ListFlows(ctx context.Context, q *lane.FlowQuery) (*runlane.Page[lane.FlowRecord], error) {
	if !q.Finished && !q.Before.IsZero() {
		return &runlane.Page[lane.FlowRecord]{}, nil
	}
	return s.sound.ListFlows(ctx, q)
}

func init() {
	maps.Copy(broken, map[string]struct {
		storage func(sound) lane.Storage
		fails   string // group/case
	}{
		"takesEveryNode": {func(s sound) lane.Storage { return takesEveryNode{s} }, "Flows/ARunIsMadeForAnOpenFlowInItsRound"},
		"lastFlowWins":   {func(s sound) lane.Storage { return lastFlowWins{s} }, "Flows/ARecordDependsOnTheVersionThatWasRead"},
		"forgetsFlows":   {func(s sound) lane.Storage { return forgetsFlows{s} }, "Flows/OnesToBeTendedAreListedByTheirMoment"},
	})
}
