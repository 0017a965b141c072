package dynamostore

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// rowRef is where a delivery row is.
type rowRef struct {
	key   lane.RunKey
	first int64
	index int
}

func (r rowRef) path(attribute string) string { return fmt.Sprintf("#dl[%d].#%s", r.index, attribute) }

// claimToken is the row's token with the run's sequence and marker as they are known when the row is claimed: whoever marks the
// row later may move the marker only if both are still so.
func claimToken(token string, r *runItem) string {
	return strings.Join([]string{token, strconv.FormatInt(r.Sequence, 10), strconv.FormatInt(int64(r.DispatchExpiresAt), 10), r.DueP, r.DueA}, ":")
}

type claimedRow struct {
	rowRef
	id       string
	token    string
	sequence int64
	reserved millis // until when the run's slot is; 0 for none
	due      dueKey
}

// parseClaim reads what claimToken wrote. A token that was never ours has no row that could match it.
func parseClaim(e runlane.Environment, ref lane.OutboxRef) (claimedRow, bool) {
	run, first, index, ok := parseOutboxID(ref.ID)
	parts := strings.Split(ref.ClaimToken, ":") // token, sequence, reservation, and the marker's partition (three parts) and moment (two)
	if !ok || len(parts) != 8 || parts[0] == "" {
		return claimedRow{}, false
	}
	sequence, err := strconv.ParseInt(parts[1], 10, 64)
	reserved, err2 := strconv.ParseInt(parts[2], 10, 64)
	return claimedRow{
		rowRef: rowRef{lane.RunKey{Environment: e, RunID: run}, first, index}, id: ref.ID, token: parts[0], sequence: sequence,
		reserved: millis(reserved), due: dueKey{strings.Join(parts[3:6], ":"), strings.Join(parts[6:], ":")},
	}, err == nil && err2 == nil
}

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
	unchanged := condition{
		text: at.path("st") + " = :was", values: item{":was": text(row.Status)},
	}
	if row.Token != "" {
		unchanged.text += " AND " + at.path("ct") + " = :held"
		unchanged.values[":held"] = text(row.Token)
	}
	if row.NextAt != 0 { // it may have been claimed and have failed again meanwhile
		unchanged.text += " AND " + at.path("nx") + " = :next"
		unchanged.values[":next"] = num(int64(row.NextAt))
	}
	token := randomID()
	log, ok, err := s.updateRow(ctx, "claim outbox", at, "SET "+at.path("st")+" = :st, "+at.path("ct")+" = :ct, "+at.path("cu")+" = :cu", unchanged, item{
		":st": text(string(lane.OutboxClaimed)), ":ct": text(token), ":cu": num(int64(toMillis(c.ClaimUntil))),
	}, func(now delivery) bool { return now.Token == token })
	if err != nil || !ok {
		return nil, err
	}
	m := log.Deliveries[at.index].message(at.key, runlane.QueueName(r.Queue), r.deliveryID())
	m.ClaimToken = claimToken(token, r)
	return &m, nil
}

// updateRow changes a delivery row: one plain write of its log item. wrote tells whether the row as it is now is what this change
// makes of it, should the answer get lost.
func (s *Store) updateRow(
	ctx context.Context, operation string, at rowRef, expression string, c condition, values item, wrote func(now delivery) bool,
) (*logItem, bool, error) {
	after, ok, err := s.db.Update(ctx, operation, &update{
		key: itemKey(runPK(at.key), logSK(at.first)), expression: expression, values: values, condition: c,
		wrote: func(now item) bool {
			log := &logItem{}
			return unmarshalItem(now, log) == nil && at.index < len(log.Deliveries) && wrote(log.Deliveries[at.index])
		},
	})
	if err != nil || !ok {
		return nil, false, err
	}
	log := &logItem{}
	if err := unmarshalItem(after, log); err != nil {
		return nil, false, err
	}
	return log, at.index < len(log.Deliveries), nil
}

// held is the condition that the row is still under the claim.
func (r claimedRow) held() condition {
	return condition{text: r.path("ct") + " = :held", values: item{":held": text(r.token)}}
}

// MarkOutboxMessagesPublished implements lane.Storage.
func (s *Store) MarkOutboxMessagesPublished(ctx context.Context, c *lane.MarkPublishedCommand) error {
	at := num(int64(toMillis(c.At)))
	return s.mark(ctx, c.Environment, c.Messages, func(ctx context.Context, row claimedRow) (bool, error) {
		expression := "SET " + row.path("st") + " = :st, " + row.path("pa") + " = :at, " + row.path("pf") + " = if_not_exists(" + row.path("pf") + ", :at)" +
			" REMOVE " + row.path("ct") + ", " + row.path("cu")
		log, ok, err := s.updateRow(ctx, "acknowledge", row.rowRef, expression, row.held(), item{":st": text(string(lane.OutboxPublished)), ":at": at},
			func(now delivery) bool {
				return now.status() == lane.OutboxPublished && now.Token == "" && now.Published == toMillis(c.At)
			})
		if err != nil || !ok {
			return ok, err
		}
		from, _, known := row.due.parse()
		if !known || from.kind != unpublished {
			return true, nil
		}
		return true, s.moveAfterMark(ctx, row, marker{deliverable, log.Deliveries[row.index].AvailableAt})
	})
}

// MarkOutboxMessagesFailed implements lane.Storage.
func (s *Store) MarkOutboxMessagesFailed(ctx context.Context, c *lane.MarkFailedCommand) error {
	failures := failuresByID(c.Messages)
	return s.mark(ctx, c.Environment, failureRefs(c.Messages), func(ctx context.Context, row claimedRow) (bool, error) {
		f := failures[row.id]
		next := toMillis(f.NextAvailableAt)
		ok, err := s.markFailure(ctx, row, lane.OutboxFailed, f, "nx", next)
		if err != nil || !ok {
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
		ok, err := s.markFailure(ctx, row, lane.OutboxDeadLettered, failures[row.id], "dd", at)
		if err != nil || !ok {
			return ok, err
		}
		return true, s.moveAfterMark(ctx, row, marker{deadLetter, at})
	})
}

func (s *Store) markFailure(
	ctx context.Context, row claimedRow, status lane.OutboxStatus, f lane.OutboxFailure, timeAttribute string, at millis,
) (bool, error) {
	meta, err := encodeTexts(f.Failure.Meta)
	if err != nil {
		return false, &runlane.Error{Code: runlane.ErrInternal, Message: "failure does not marshal", Cause: err}
	}
	expression := "SET " + row.path("st") + " = :st, " + row.path("at") + " = :at, " + row.path("fc") + " = :fc, " + row.path("fm") + " = :fm, " +
		row.path("fx") + " = :fx, " + row.path(timeAttribute) + " = :due REMOVE " + row.path("ct") + ", " + row.path("cu")
	_, ok, err := s.updateRow(ctx, "mark failed", row.rowRef, expression, row.held(), item{
		":st": text(string(status)), ":at": num(int64(f.Attempts)), ":fc": text(string(f.Failure.Code)), ":fm": text(f.Failure.Message),
		":fx": meta, ":due": num(int64(at)),
	}, func(now delivery) bool {
		due := now.NextAt
		if status == lane.OutboxDeadLettered {
			due = now.DeadAt
		}
		return now.status() == status && now.Token == "" && now.Attempts == f.Attempts && due == at
	})
	return ok, err
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
