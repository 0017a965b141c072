package dynamostore

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/dynamostore/internal/ddb"
	"github.com/runlane/runlane-go/dynamostore/internal/item"
	"github.com/runlane/runlane-go/dynamostore/internal/rows"
	"github.com/runlane/runlane-go/lane"
)

// ClaimOutboxMessages implements lane.Storage.
func (s *Store) ClaimOutboxMessages(ctx context.Context, c *lane.ClaimOutboxCommand) ([]lane.OutboxMessage, error) {
	runs, err := s.claimable(ctx, c)
	if err != nil {
		return nil, err
	}
	messages := make([]*lane.OutboxMessage, len(runs))
	err = ddb.InParallel(ctx, runs, func(ctx context.Context, i int, r *rows.Run) (err error) {
		messages[i], err = s.claimRow(ctx, c, r)
		return err
	})
	var claimed []lane.OutboxMessage
	for _, m := range messages {
		if m != nil {
			claimed = append(claimed, *m)
		}
	}
	return claimed, err
}

// claimable finds the runs with a latest row that may be due: by markers, or by the given IDs.
func (s *Store) claimable(ctx context.Context, c *lane.ClaimOutboxCommand) ([]*rows.Run, error) {
	var runs []*rows.Run
	if c.IDs == nil {
		q := &lane.DueQuery{
			PageQuery: lane.PageQuery{Environment: c.Environment, Limit: c.Limit},
			At:        c.At,
			Patience:  c.Patience,
			Without:   c.Without,
			Round:     c.Round,
		}
		for {
			page, err := s.scan(ctx, q, rows.Publishing)
			if err != nil {
				return nil, err
			}
			for _, f := range page.Items {
				runs = append(runs, f.run)
			}
			if len(runs) > 0 || page.Next == "" {
				return runs, nil
			}
			q.After = page.Next
		}
	}
	wanted := map[string]bool{}
	var ids []runlane.RunID
	for _, id := range c.IDs {
		if run, _, _, ok := rows.ParseOutboxID(id); ok {
			wanted[id] = true
			ids = append(ids, run)
		}
	}
	found, err := s.readRuns(ctx, c.Environment, ids)
	for _, r := range found {
		if wanted[r.DeliveryID()] {
			runs = append(runs, r)
		}
	}
	slices.SortFunc(runs, func(a, b *rows.Run) int { return strings.Compare(a.PK, b.PK) })
	return runs, err
}

// claimRow claims one row, or returns nil if it is not due or another publisher has it.
func (s *Store) claimRow(ctx context.Context, c *lane.ClaimOutboxCommand, r *rows.Run) (*lane.OutboxMessage, error) {
	if r.DispatchExpiresAt != 0 && r.DispatchExpiresAt <= rows.ToMillis(c.At) {
		return nil, nil // its reservation is over: it waits for a slot and needs no row
	}
	at := rows.DeliveryRef{Key: r.Key(), First: r.DeliveryLog, Index: r.DeliveryIndex}
	row, err := s.readDelivery(ctx, at.Key, at.First, at.Index)
	later := r.State() == runlane.StatusScheduled && r.RunAt > rows.ToMillis(c.At) // put off by another trigger
	if err != nil || row == nil || later || !row.Claimable(rows.ToMillis(c.At)) {
		return nil, err
	}
	token := randomID()
	claimed, err := s.updateRow(ctx, "claim outbox", at, at.Claim(row, token, rows.ToMillis(c.ClaimUntil)))
	if err != nil || claimed == nil {
		return nil, err
	}
	m := claimed.Message(at.Key, runlane.QueueName(r.Queue), r.DeliveryID())
	m.ClaimToken = rows.TokenOf(token, r)
	return &m, nil
}

// updateRow changes a delivery row by one plain write of its log item. It returns nil if the condition failed.
func (s *Store) updateRow(
	ctx context.Context, operation string, at rows.DeliveryRef, u *item.Update,
) (*rows.Delivery, error) {
	after, ok, err := s.db.Update(ctx, operation, u)
	if err != nil || !ok {
		return nil, err
	}
	return at.Of(after)
}

// MarkOutboxMessagesPublished implements lane.Storage.
func (s *Store) MarkOutboxMessagesPublished(ctx context.Context, c *lane.MarkPublishedCommand) error {
	return s.markRows(ctx, c.Environment, c.Messages, func(ctx context.Context, row rows.ClaimedDelivery) (bool, error) {
		published, err := s.updateRow(ctx, "acknowledge", row.DeliveryRef, row.MarkPublished(rows.ToMillis(c.At)))
		if err != nil || published == nil {
			return false, err
		}
		from, _, known := row.Due.Parse()
		if !known || from.Kind != rows.Unpublished {
			return true, nil
		}
		return true, s.moveAfterMark(ctx, row, rows.AfterPublished(published))
	})
}

// MarkOutboxMessagesFailed implements lane.Storage.
func (s *Store) MarkOutboxMessagesFailed(ctx context.Context, c *lane.MarkFailedCommand) error {
	failures := failuresByID(c.Messages)
	return s.markRows(
		ctx,
		c.Environment,
		failureRefs(c.Messages),
		func(ctx context.Context, row rows.ClaimedDelivery) (bool, error) {
			f := failures[row.ID]
			next := rows.ToMillis(f.NextAvailableAt)
			if ok, err := s.markFailure(ctx, row, lane.OutboxFailed, &f, next); err != nil || !ok {
				return ok, err
			}
			return true, s.moveAfterMark(ctx, row, rows.AfterFailed(next, row.Reserved))
		},
	)
}

// MarkOutboxMessagesDeadLettered implements lane.Storage.
func (s *Store) MarkOutboxMessagesDeadLettered(ctx context.Context, c *lane.MarkDeadLetteredCommand) error {
	failures := failuresByID(c.Messages)
	at := rows.ToMillis(c.At)
	return s.markRows(
		ctx,
		c.Environment,
		failureRefs(c.Messages),
		func(ctx context.Context, row rows.ClaimedDelivery) (bool, error) {
			f := failures[row.ID]
			if ok, err := s.markFailure(ctx, row, lane.OutboxDeadLettered, &f, at); err != nil || !ok {
				return ok, err
			}
			return true, s.moveAfterMark(ctx, row, rows.AfterGivenUp(at))
		},
	)
}

func (s *Store) markFailure(
	ctx context.Context, row rows.ClaimedDelivery, status lane.OutboxStatus, f *lane.OutboxFailure, at rows.Millis,
) (bool, error) {
	failed, err := row.MarkFailed(status, f, at)
	if err != nil {
		return false, err
	}
	after, err := s.updateRow(ctx, "mark failed", row.DeliveryRef, failed)
	return after != nil, err
}

// moveAfterMark moves the marker of a marked row's run if sequence and marker are as before the mark. Otherwise it
// leaves the newer marker.
func (s *Store) moveAfterMark(ctx context.Context, row rows.ClaimedDelivery, to rows.Marker) error {
	_, queue, ok := row.Due.Parse()
	if !ok {
		return nil // the run had no marker when the row was claimed
	}
	shards, err := s.shardCounts(ctx, row.Key.Environment)
	if err != nil {
		return err
	}
	due := to.Key(row.Key.Environment, rows.ShardOf(string(row.Key.RunID), shards.Write), queue)
	if due == row.Due {
		return nil
	}
	return s.moveMarkerFrom(ctx, rows.RunPK(row.Key), row.Sequence, row.Due, due, row.Due.Entry())
}

// markRows calls one for each row, and reports all rows with a stale claim in one error.
func (s *Store) markRows(
	ctx context.Context,
	e runlane.Environment,
	refs []lane.OutboxRef,
	one func(context.Context, rows.ClaimedDelivery) (bool, error),
) error {
	if err := ctx.Err(); err != nil {
		return s.db.Failure(ctx, "mark", err)
	}
	var mutex sync.Mutex
	var stale []string
	err := ddb.InParallel(ctx, refs, func(ctx context.Context, _ int, ref lane.OutboxRef) (err error) {
		row, ok := rows.ParseClaim(e, ref)
		if ok {
			ok, err = one(ctx, row)
		}
		if err == nil && !ok {
			mutex.Lock()
			stale = append(stale, ref.ID)
			mutex.Unlock()
		}
		return err
	})
	if err != nil || len(stale) == 0 {
		return err
	}
	slices.Sort(stale)
	e2 := runlane.NewConflict(runlane.ConflictOutboxClaim, "the claim on some outbox rows is over")
	e2.Meta = map[string]string{"outbox_ids": strings.Join(stale, ",")}
	return e2
}

func failureRefs(failures []lane.OutboxFailure) []lane.OutboxRef {
	refs := make([]lane.OutboxRef, len(failures))
	for i, f := range failures {
		refs[i] = f.OutboxRef
	}
	return refs
}

func failuresByID(failures []lane.OutboxFailure) map[string]lane.OutboxFailure {
	byID := make(map[string]lane.OutboxFailure, len(failures))
	for _, f := range failures {
		byID[f.ID] = f
	}
	return byID
}
