package lanetest_test

import (
	"context"
	"errors"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// Storages that are wrong about slots.

// countsOneTooMany reads "less than the limit" as "not more".
type countsOneTooMany struct{ sound }

func (s countsOneTooMany) ReserveRunDispatch(ctx context.Context, c *lane.ReserveCommand) (*lane.Acquisition, error) {
	wide := *c
	wide.Queue.Concurrency++
	return s.sound.ReserveRunDispatch(ctx, &wide)
}

// ignoresReservations claims whatever runs, as if each had its slot.
type ignoresReservations struct{ sound }

func (s ignoresReservations) ClaimRunLease(ctx context.Context, c *lane.ClaimCommand) (*lane.Acquisition, error) {
	free := *c
	if !c.Slot {
		free.Queue.Concurrency = 0
	}
	return s.sound.ClaimRunLease(ctx, &free)
}

// freesByTime believes that a slot lasts no longer than a lease might.
type freesByTime struct{ sound }

func (s freesByTime) ReserveRunDispatch(ctx context.Context, c *lane.ReserveCommand) (*lane.Acquisition, error) {
	got, err := s.sound.ReserveRunDispatch(ctx, c)
	if err == nil && got.Outcome == lane.LostCapacity && c.At.Sub(c.Projected.CreatedAt) > time.Hour {
		wide := *c
		wide.Queue.Concurrency++
		return s.sound.ReserveRunDispatch(ctx, &wide)
	}
	return got, err
}

// needsRoomForItsOwn counts a crashed run's slot against the run itself.
type needsRoomForItsOwn struct{ sound }

func (s needsRoomForItsOwn) ReserveRunDispatch(ctx context.Context, c *lane.ReserveCommand) (*lane.Acquisition, error) {
	if c.Projected == nil {
		return s.sound.ReserveRunDispatch(ctx, c)
	}
	run, err := s.GetRun(ctx, c.Key())
	if err == nil && run.Status == runlane.StatusRunning && run.EventSequence == c.ExpectedSequence {
		return &lane.Acquisition{Outcome: lane.LostCapacity}, nil
	}
	return s.sound.ReserveRunDispatch(ctx, c)
}

// offersFullPartitions leaves it to the commit to find out.
type offersFullPartitions struct{ sound }

func (s offersFullPartitions) ListRunsNeedingDispatch(ctx context.Context, q *lane.DueQuery) (*runlane.Page[lane.RunRef], error) {
	wide := *q
	wide.Bounded = nil
	for _, queue := range q.Bounded {
		queue.Concurrency = runlane.MaxQueueConcurrency
		wide.Bounded = append(wide.Bounded, queue)
	}
	return s.sound.ListRunsNeedingDispatch(ctx, &wide)
}

// createsAnyway writes a creation that lost its slot, and then says that it did not.
type createsAnyway struct{ sound }

func (s createsAnyway) AppendRunEvents(ctx context.Context, c *lane.AppendCommand) (*lane.Commit, error) {
	commit, err := s.sound.AppendRunEvents(ctx, c)
	if errors.Is(err, runlane.ConflictQueueCapacity) {
		wide := *c
		wide.Queue.Concurrency = runlane.MaxQueueConcurrency
		_, _ = s.sound.AppendRunEvents(ctx, &wide)
	}
	return commit, err
}

// cancelFails lets the slot of another run stop a cancellation.
type cancelFails struct{ sound }

func (s cancelFails) AppendRunEvents(ctx context.Context, c *lane.AppendCommand) (*lane.Commit, error) {
	if c.Projected != nil && c.Projected.Status == runlane.StatusCancelled && c.Queue.Bounded() {
		inspection, err := s.InspectRun(ctx, &lane.InspectQuery{RunKey: c.Key(), Queue: c.Queue})
		if err == nil && len(inspection.Holders) > 0 && inspection.Holders[0] != c.Projected.ID {
			return nil, runlane.NewConflict(runlane.ConflictQueueCapacity, "the slot belongs to another run")
		}
	}
	return s.sound.AppendRunEvents(ctx, c)
}

// publishesLate gives rows away whose reservation is over.
type publishesLate struct{ sound }

func (s publishesLate) ClaimOutboxMessages(ctx context.Context, c *lane.ClaimOutboxCommand) ([]lane.OutboxMessage, error) {
	early := *c
	early.At = c.At.Add(-time.Minute)
	return s.sound.ClaimOutboxMessages(ctx, &early)
}
