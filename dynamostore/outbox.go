package dynamostore

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// ClaimOutboxMessages implements lane.Storage.
func (s *Store) ClaimOutboxMessages(ctx context.Context, c *lane.ClaimOutboxCommand) ([]lane.OutboxMessage, error) {
	runs, err := s.claimable(ctx, c)
	if err != nil {
		return nil, err
	}
	messages := make([]*lane.OutboxMessage, len(runs))
	err = InParallel(ctx, runs, func(ctx context.Context, i int, r *runItem) (err error) {
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

// claimable finds the runs whose latest row may be due: by the markers, or the given ones.
func (s *Store) claimable(ctx context.Context, c *lane.ClaimOutboxCommand) ([]*runItem, error) {
	var runs []*runItem
	if c.IDs == nil {
		q := &lane.DueQuery{PageQuery: lane.PageQuery{Environment: c.Environment, Limit: c.Limit}, At: c.At, Patience: c.Patience}
		for {
			page, err := s.scan(ctx, q, publishing)
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
		if run, _, _, ok := parseOutboxID(id); ok {
			wanted[id] = true
			ids = append(ids, run)
		}
	}
	found, err := s.readRuns(ctx, c.Environment, ids)
	for _, r := range found {
		if wanted[r.deliveryID()] {
			runs = append(runs, r)
		}
	}
	slices.SortFunc(runs, func(a, b *runItem) int { return strings.Compare(a.PK, b.PK) })
	return runs, err
}

// claimRow takes one row if it is due and nobody was faster; nil otherwise.
func (s *Store) claimRow(ctx context.Context, c *lane.ClaimOutboxCommand, r *runItem) (*lane.OutboxMessage, error) {
	if r.DispatchExpiresAt != 0 && r.DispatchExpiresAt <= toMillis(c.At) {
		return nil, nil // its reservation is over: it waits for a slot, and the row for nothing
	}
	at := rowRef{r.key(), r.DeliveryLog, r.DeliveryIndex}
	row, err := s.readDelivery(ctx, at.key, at.first, at.index)
	if err != nil || row == nil || !row.claimable(toMillis(c.At)) {
		return nil, err
	}
	token := randomID()
	claimed, err := s.updateRow(ctx, "claim outbox", at, at.claim(row, token, toMillis(c.ClaimUntil)))
	if err != nil || claimed == nil {
		return nil, err
	}
	m := claimed.message(at.key, runlane.QueueName(r.Queue), r.deliveryID())
	m.ClaimToken = claimToken(token, r)
	return &m, nil
}

// updateRow changes a delivery row: one plain write of its log item. It returns the row afterwards; nil: its condition failed.
func (s *Store) updateRow(ctx context.Context, operation string, at rowRef, u *update) (*delivery, error) {
	after, ok, err := s.db.Update(ctx, operation, u)
	if err != nil || !ok {
		return nil, err
	}
	return at.of(after)
}

// MarkOutboxMessagesPublished implements lane.Storage.
func (s *Store) MarkOutboxMessagesPublished(ctx context.Context, c *lane.MarkPublishedCommand) error {
	return s.mark(ctx, c.Environment, c.Messages, func(ctx context.Context, row claimedRow) (bool, error) {
		published, err := s.updateRow(ctx, "acknowledge", row.rowRef, row.published(toMillis(c.At)))
		if err != nil || published == nil {
			return false, err
		}
		from, _, known := row.due.parse()
		if !known || from.kind != unpublished {
			return true, nil
		}
		return true, s.moveAfterMark(ctx, row, marker{deliverable, published.AvailableAt})
	})
}

// MarkOutboxMessagesFailed implements lane.Storage.
func (s *Store) MarkOutboxMessagesFailed(ctx context.Context, c *lane.MarkFailedCommand) error {
	failures := failuresByID(c.Messages)
	return s.mark(ctx, c.Environment, failureRefs(c.Messages), func(ctx context.Context, row claimedRow) (bool, error) {
		f := failures[row.id]
		next := toMillis(f.NextAvailableAt)
		if ok, err := s.markFailure(ctx, row, lane.OutboxFailed, &f, next); err != nil || !ok {
			return ok, err
		}
		to := marker{unpublished, next}
		if row.reserved != 0 && next > row.reserved { // then it waits for a slot, and the row for nothing
			to = marker{leased, row.reserved}
		}
		return true, s.moveAfterMark(ctx, row, to)
	})
}

// MarkOutboxMessagesDeadLettered implements lane.Storage.
func (s *Store) MarkOutboxMessagesDeadLettered(ctx context.Context, c *lane.MarkDeadLetteredCommand) error {
	failures := failuresByID(c.Messages)
	at := toMillis(c.At)
	return s.mark(ctx, c.Environment, failureRefs(c.Messages), func(ctx context.Context, row claimedRow) (bool, error) {
		f := failures[row.id]
		if ok, err := s.markFailure(ctx, row, lane.OutboxDeadLettered, &f, at); err != nil || !ok {
			return ok, err
		}
		return true, s.moveAfterMark(ctx, row, marker{deadLetter, at})
	})
}

func (s *Store) markFailure(ctx context.Context, row claimedRow, status lane.OutboxStatus, f *lane.OutboxFailure, at millis) (bool, error) {
	failed, err := row.failed(status, f, at)
	if err != nil {
		return false, err
	}
	after, err := s.updateRow(ctx, "mark failed", row.rowRef, failed)
	return after != nil, err
}

// moveAfterMark moves the marker of a marked row's run, if sequence and marker are still what they were before the mark. If not,
// whoever changed them looks later.
func (s *Store) moveAfterMark(ctx context.Context, row claimedRow, to marker) error {
	_, queue, ok := row.due.parse()
	if !ok {
		return nil // finished or superseded when it was claimed: the row is marked, nothing moves
	}
	shards, err := s.shardCounts(ctx, row.key.Environment)
	if err != nil {
		return err
	}
	due := to.key(row.key.Environment, shardOf(string(row.key.RunID), shards.Write), queue)
	if due == row.due {
		return nil
	}
	return s.moveMarkerFrom(ctx, runPK(row.key), row.sequence, row.due, due, row.due.entry())
}

// mark judges rows one by one. Those whose claim is stale are named together, the rest are marked.
func (s *Store) mark(ctx context.Context, e runlane.Environment, refs []lane.OutboxRef, one func(context.Context, claimedRow) (bool, error)) error {
	if err := ctx.Err(); err != nil {
		return s.db.Failure(ctx, "mark", err)
	}
	var mutex sync.Mutex
	var stale []string
	err := InParallel(ctx, refs, func(ctx context.Context, _ int, ref lane.OutboxRef) (err error) {
		row, ok := parseClaim(e, ref)
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
