package lanetest_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// Storages that are wrong about lists, owners, environments, clocks and pruning.

// listsNewestDeadFirst has dead letters in the other order.
type listsNewestDeadFirst struct{ sound }

func (s listsNewestDeadFirst) ListDeadLetters(ctx context.Context, q *lane.DeadLetterQuery) (*runlane.Page[runlane.DeadLetter], error) {
	page, err := s.sound.ListDeadLetters(ctx, q)
	if err == nil {
		slices.Reverse(page.Items)
	}
	return page, err
}

// ignoresAFilter lists the runs of every source.
type ignoresAFilter struct{ sound }

func (s ignoresAFilter) ListRuns(ctx context.Context, q *lane.RunQuery) (*runlane.Page[runlane.RunSummary], error) {
	wide := *q
	wide.SourceRunID = ""
	return s.sound.ListRuns(ctx, &wide)
}

// beginsAnew takes every cursor, those of other requests for none at all.
type beginsAnew struct{ sound }

func (s beginsAnew) ListRunsNeedingDelivery(ctx context.Context, q *lane.DueQuery) (*runlane.Page[lane.RunRef], error) {
	page, err := s.sound.ListRunsNeedingDelivery(ctx, q)
	if errors.Is(err, runlane.ErrValidationFailed) && q.After != "" {
		first := *q
		first.After = ""
		return s.sound.ListRunsNeedingDelivery(ctx, &first)
	}
	return page, err
}

// flushesLate claims what was due a moment ago.
type flushesLate struct{ sound }

func (s flushesLate) ClaimOutboxMessages(ctx context.Context, c *lane.ClaimOutboxCommand) ([]lane.OutboxMessage, error) {
	late := *c
	if c.IDs == nil {
		late.At = c.At.Add(-time.Millisecond)
	}
	return s.sound.ClaimOutboxMessages(ctx, &late)
}

// leaksKeys looks keys up in every environment of a family.
type leaksKeys struct{ sound }

func (s leaksKeys) GetRunByIdempotencyKey(ctx context.Context, key lane.OwnerKey) (*runlane.Run, error) {
	key.Environment = runlane.Environment(strings.TrimSuffix(string(key.Environment), "-elsewhere"))
	return s.sound.GetRunByIdempotencyKey(ctx, key)
}

// marksElsewhere believes that ids of rows are enough.
type marksElsewhere struct{ sound }

func (s marksElsewhere) MarkOutboxMessagesFailed(ctx context.Context, c *lane.MarkFailedCommand) error {
	here := *c
	here.Environment = runlane.Environment(strings.TrimSuffix(string(c.Environment), "-elsewhere"))
	return s.sound.MarkOutboxMessagesFailed(ctx, &here)
}

// sharesHeartbeats returns what it was given.
type sharesHeartbeats struct{ sound }

func (s sharesHeartbeats) HeartbeatRunLease(ctx context.Context, c *lane.HeartbeatCommand) (*lane.Commit, error) {
	commit, err := s.sound.HeartbeatRunLease(ctx, c)
	if err == nil {
		c.Projected.Status = runlane.StatusRunning + " "
	}
	return commit, err
}

// ordersByTime refuses what occurred before the run's last change.
type ordersByTime struct{ sound }

func (s ordersByTime) AppendRunEvents(ctx context.Context, c *lane.AppendCommand) (*lane.Commit, error) {
	if c.Projected != nil && len(c.Events) > 0 {
		if run, err := s.GetRun(ctx, c.Key()); err == nil && c.Events[0].OccurredAt.Before(run.UpdatedAt) {
			return nil, &runlane.Error{Code: runlane.ErrContractViolation, Message: "the event is older than the run"}
		}
	}
	return s.sound.AppendRunEvents(ctx, c)
}

// notesOfAnybody keeps a note whatever its token.
type notesOfAnybody struct{ sound }

func (s notesOfAnybody) PutProgress(ctx context.Context, key lane.RunKey, _ string, p runlane.Progress) error {
	run, err := s.GetRun(ctx, key)
	if err != nil || run.Lease.Token == "" {
		return err
	}
	return s.sound.PutProgress(ctx, key, run.Lease.Token, p)
}

// forgetsWaits keeps no wait.
type forgetsWaits struct{ sound }

func (s forgetsWaits) GetRun(ctx context.Context, key lane.RunKey) (*runlane.Run, error) {
	run, err := s.sound.GetRun(ctx, key)
	if err == nil {
		run.Waiting = nil
	}
	return run, err
}

// prunesTheCutoff removes what finished at it.
type prunesTheCutoff struct{ sound }

func (s prunesTheCutoff) PruneRuns(ctx context.Context, c *lane.PruneCommand) (*lane.PruneProgress, error) {
	wide := *c
	if !c.OlderThan.IsZero() {
		wide.OlderThan = c.OlderThan.Add(time.Millisecond)
	}
	return s.sound.PruneRuns(ctx, &wide)
}

// createsWithoutTheKey makes a run that lost the race for its key all the same.
type createsWithoutTheKey struct{ sound }

func (s createsWithoutTheKey) AppendRunEvents(ctx context.Context, c *lane.AppendCommand) (*lane.Commit, error) {
	commit, err := s.sound.AppendRunEvents(ctx, c)
	if errors.Is(err, runlane.ConflictIdempotencyKey) {
		free := *c
		free.Projected = c.Projected.Clone()
		free.Projected.IdempotencyKey, free.Projected.Retention = "", runlane.KeyRetention{}
		free.Events = slices.Clone(c.Events)
		created := *free.Events[0].Body.(*runlane.RunCreated)
		created.IdempotencyKey, created.Retention = "", runlane.KeyRetention{}
		free.Events[0].Body = &created
		return s.sound.AppendRunEvents(ctx, &free)
	}
	return commit, err
}

// cleansUpOnLookup frees the key of a finished run when it is asked for.
type cleansUpOnLookup struct{ sound }

func (s cleansUpOnLookup) GetRunByIdempotencyKey(ctx context.Context, key lane.OwnerKey) (*runlane.Run, error) {
	run, err := s.sound.GetRunByIdempotencyKey(ctx, key)
	if err == nil {
		_ = s.ResetIdempotencyKey(ctx, key) // refuses those who are active
	}
	return run, err
}

func init() {
	maps.Copy(broken, map[string]struct {
		storage func(sound) lane.Storage
		fails   string // group/case
	}{
		"listsNewestDeadFirst": {func(s sound) lane.Storage { return listsNewestDeadFirst{s} }, "DeadLetters/AreListedOldestFirst"},
		"ignoresAFilter":       {func(s sound) lane.Storage { return ignoresAFilter{s} }, "Lists/FiltersFindActiveAndFinishedRunsAtEveryPageSize"},
		"beginsAnew":           {func(s sound) lane.Storage { return beginsAnew{s} }, "Paging/CursorsOfEveryScanBelongToOneRequest"},
		"flushesLate":          {func(s sound) lane.Storage { return flushesLate{s} }, "Outbox/EveryKindOfDueRowIsTakenFromItsExactMillisecond"},
		"leaksKeys":            {func(s sound) lane.Storage { return leaksKeys{s} }, "Environments/RunsAndKeysOfOneAreUnknownInAnother"},
		"marksElsewhere":       {func(s sound) lane.Storage { return marksElsewhere{s} }, "Environments/EveryMethodKeepsToOne"},
		"sharesHeartbeats":     {func(s sound) lane.Storage { return sharesHeartbeats{s} }, "Contract/HeartbeatsShareNothing"},
		"forgetsWaits":         {func(s sound) lane.Storage { return forgetsWaits{s} }, "Waits/AWaitIsKeptUntilTheNextEvent"},
		"ordersByTime":         {func(s sound) lane.Storage { return ordersByTime{s} }, "Clocks/InstantsMayGoBackFromCommitToCommit"},
		"prunesTheCutoff":      {func(s sound) lane.Storage { return prunesTheCutoff{s} }, "Pruning/TheCutoffIsExclusiveAtTheMillisecond"},
		"strandsTheAbandoned":  {func(s sound) lane.Storage { return needsRoomForItsOwn{s} }, "Hazards/Hazard07_AnAbandonedRunIsRecoveredInItsOwnSlot"},
		"createsWithoutTheKey": {func(s sound) lane.Storage { return createsWithoutTheKey{s} }, "Owners/IdempotencyRaceHasOneWinner"},
		"cleansUpOnLookup":     {func(s sound) lane.Storage { return cleansUpOnLookup{s} }, "Owners/LookupsOfLivingOwnersChangeNothing"},
	})
}
