package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/dynamostore/internal/ddb"
	"github.com/runlane/runlane-go/dynamostore/internal/item"
	"github.com/runlane/runlane-go/dynamostore/internal/rows"
	"github.com/runlane/runlane-go/lane"
)

// PutSchedule implements lane.Storage: one plain write.
func (s *Store) PutSchedule(ctx context.Context, c *lane.PutScheduleCommand) (*runlane.ScheduleRecord, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	next := rows.NewScheduleItem(c.Environment, &c.Record, randomID())
	put, err := next.Put()
	if err != nil {
		return nil, err
	}
	after, ok, err := s.db.Update(ctx, "put schedule", put)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, s.putRefusal(ctx, c)
	}
	written, err := rows.UnmarshalSchedule(after)
	if err != nil {
		return nil, err
	}
	record := written.Record()
	return &record, nil
}

func (s *Store) putRefusal(ctx context.Context, c *lane.PutScheduleCommand) error {
	current, err := s.readSchedule(ctx, lane.ScheduleKey{Environment: c.Environment, ScheduleID: c.Record.ID})
	switch {
	case errors.Is(err, runlane.ErrScheduleNotFound):
		return rows.Conflict(
			runlane.ConflictScheduleOccurrence,
			"",
			"schedule %q has no record at version %d",
			c.Record.ID,
			c.Record.Version,
		)
	case err != nil:
		return err
	case current.Version == c.Record.Version && rows.ToMillis(c.Record.LastFire) < current.LastFire:
		return rows.MalformedSchedule(
			nil,
			"schedule %q fired last at %v, which the record moves back",
			c.Record.ID,
			current.LastFire.Time(),
		)
	default:
		return rows.Conflict(
			runlane.ConflictScheduleOccurrence,
			"",
			"schedule %q is at version %d, not %d",
			c.Record.ID,
			current.Version,
			c.Record.Version,
		)
	}
}

// GetSchedule implements lane.Storage.
func (s *Store) GetSchedule(ctx context.Context, key lane.ScheduleKey) (*runlane.ScheduleRecord, error) {
	if err := key.ScheduleID.Validate(); err != nil {
		return nil, err
	}
	current, err := s.readSchedule(ctx, key)
	if err != nil {
		return nil, err
	}
	record := current.Record()
	return &record, nil
}

func (s *Store) readSchedule(ctx context.Context, key lane.ScheduleKey) (*rows.Schedule, error) {
	raw, err := s.db.Get(ctx, "read schedule", rows.SchedulePK(key.Environment), string(key.ScheduleID))
	if err != nil {
		return nil, err
	}
	if raw == nil {
		return nil, rows.ScheduleNotFound(key)
	}
	return rows.UnmarshalSchedule(raw)
}

type schedulePosition struct {
	ID runlane.ScheduleID `json:"i"`
}

// ListSchedules implements lane.Storage.
func (s *Store) ListSchedules(ctx context.Context, q *lane.PageQuery) (*runlane.Page[runlane.ScheduleRecord], error) {
	limit, err := q.PageLimit()
	if err != nil {
		return nil, err
	}
	scope := "schedules:" + q.Environment.Name()
	var after schedulePosition
	if err := rows.OpenCursor(q.After, scope, &after); err != nil {
		return nil, err
	}
	schedules := &ddb.Query{
		Operation: "list schedules",
		Where:     "#pk = :pk",
		Values:    item.Item{":pk": item.Text(rows.SchedulePK(q.Environment))},
		Limit:     limit + 1,
	}
	if after.ID != "" {
		schedules.Behind = item.Key(rows.SchedulePK(q.Environment), string(after.ID))
	}
	page := &runlane.Page[runlane.ScheduleRecord]{}
	err = s.db.Query(ctx, schedules, func(raw item.Item) (bool, error) {
		if len(page.Items) == limit {
			page.Next = rows.SealCursor(scope, schedulePosition{page.Items[limit-1].ID})
			return false, nil
		}
		current, err := rows.UnmarshalSchedule(raw)
		if err != nil {
			return false, err
		}
		page.Items = append(page.Items, current.Record())
		return true, nil
	})
	if err != nil {
		return nil, err
	}
	return page, nil
}

// ClaimScheduleOccurrence implements lane.Storage: it reads the record, then writes the occurrence. If the last fire
// moves in between, the claim counts as earlier, and the item shows whether this occurrence was completed.
func (s *Store) ClaimScheduleOccurrence(
	ctx context.Context, c *lane.ClaimOccurrenceCommand,
) (*lane.OccurrenceClaim, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	record, err := s.readSchedule(ctx, c.ScheduleKey)
	if err != nil {
		return nil, err
	}
	if rows.ToMillis(c.FireTime) <= record.LastFire && c.Trusts(record.LastFire.Time()) {
		return &lane.OccurrenceClaim{Outcome: lane.LostOccurrence}, nil
	}
	token := randomID()
	_, ok, err := s.db.Update(ctx, "claim occurrence", rows.ClaimOccurrence(c, token, s.keptUntil(c.ClaimUntil)))
	if err != nil {
		return nil, err
	}
	if !ok {
		return &lane.OccurrenceClaim{Outcome: lane.LostOccurrence}, nil
	}
	return &lane.OccurrenceClaim{Outcome: lane.Acquired, Token: token}, nil
}

// keptUntil is when DynamoDB may remove an occurrence, by the store's clock, which agrees with DynamoDB's, or a later
// end of the claim.
func (s *Store) keptUntil(claimUntil time.Time) time.Time {
	from := s.now()
	if claimUntil.After(from) {
		from = claimUntil
	}
	return from.Add(rows.OccurrenceKept)
}

// maxCompletionRounds limits how often a completion starts over after the record or the claim changed.
const maxCompletionRounds = 16

// CompleteScheduleOccurrence implements lane.Storage. Repeating it with the same token and result changes nothing and
// is no error.
func (s *Store) CompleteScheduleOccurrence(ctx context.Context, c *lane.CompleteOccurrenceCommand) error {
	if err := c.Validate(); err != nil {
		return err
	}
	for range maxCompletionRounds {
		record, occurrence, err := s.readOccurrence(ctx, c)
		if err != nil {
			return err
		}
		if done, err := occurrence.CompletedBy(c); done || err != nil {
			return err
		}
		if written, err := s.complete(ctx, c, record, occurrence); written || err != nil {
			return err
		}
		if err := ddb.Pause(ctx); err != nil {
			return s.db.Failure(ctx, "complete occurrence", err)
		}
	}
	return &runlane.Error{
		Code:      runlane.ErrStorageUnavailable,
		Message:   "complete occurrence: the schedule's record changed at each try",
		Retryable: true,
		Hint:      "try again",
		Meta:      map[string]string{"outcome": "not committed"},
	}
}

// readOccurrence reads a schedule's record, which must exist, and an occurrence, which may be nil.
func (s *Store) readOccurrence(
	ctx context.Context, c *lane.CompleteOccurrenceCommand,
) (record *rows.Schedule, occurrence *rows.Occurrence, err error) {
	keys := []item.Item{
		item.Key(rows.SchedulePK(c.Environment), string(c.ScheduleID)),
		item.Key(rows.OccurrencePK(c.ScheduleKey), rows.OccurrenceSK(rows.ToMillis(c.FireTime))),
	}
	err = s.db.BatchGet(ctx, "read occurrence", keys, func(raw item.Item) (err error) {
		if item.TextOf(raw[item.PK]) == rows.SchedulePK(c.Environment) {
			record, err = rows.UnmarshalSchedule(raw)
		} else {
			occurrence, err = rows.UnmarshalOccurrence(raw)
		}
		return err
	})
	if err == nil && record == nil {
		err = rows.ScheduleNotFound(c.ScheduleKey)
	}
	return record, occurrence, err
}

// complete writes the occurrence's result, and in the same transaction the record's last fire if it moves. written is
// false if the items have changed.
func (s *Store) complete(
	ctx context.Context, c *lane.CompleteOccurrenceCommand, record *rows.Schedule, occurrence *rows.Occurrence,
) (written bool, err error) {
	const operation = "complete occurrence"
	completion, err := occurrence.Completion(c)
	if err != nil {
		return false, err
	}
	if !c.Moves(record.LastFire.Time()) {
		_, ok, err := s.db.Update(ctx, operation, occurrence.CompleteAlone(&completion, c.Token))
		return ok, err
	}
	failed, err := s.db.Transact(ctx, &ddb.Transaction{
		Operation: operation,
		Token:     randomID(),
		Version:   "sq",
		Writes:    []item.Write{record.Fired(occurrence.Fire(), c.RunIDs), completion},
		Proof:     occurrence.CompletionProof(completion),
	})
	return err == nil && len(failed) == 0, err
}

type occurrencePosition struct {
	Fire rows.Millis `json:"f"`
}

// ListScheduleOccurrences implements lane.Storage. It skips claimed occurrences, and expired ones that DynamoDB has not
// removed yet.
func (s *Store) ListScheduleOccurrences(
	ctx context.Context, q *lane.OccurrenceQuery,
) (*runlane.Page[runlane.Occurrence], error) {
	limit, err := q.PageLimit()
	if err != nil {
		return nil, err
	}
	if err := q.ScheduleID.Validate(); err != nil {
		return nil, err
	}
	scope := strings.Join(
		[]string{"occurrences", q.Environment.Name(), string(q.ScheduleID), fmt.Sprint(q.SkippedOnly)},
		":",
	)
	var after occurrencePosition
	if err := rows.OpenCursor(q.After, scope, &after); err != nil {
		return nil, err
	}
	pk := rows.OccurrencePK(lane.ScheduleKey{Environment: q.Environment, ScheduleID: q.ScheduleID})
	occurrences := &ddb.Query{
		Operation: "list occurrences",
		Where:     "#pk = :pk",
		Values:    item.Item{":pk": item.Text(pk)},
		Backwards: true,
		Limit:     limit + 1,
	}
	if after.Fire != 0 {
		occurrences.Behind = item.Key(pk, rows.OccurrenceSK(after.Fire))
	}
	page := &runlane.Page[runlane.Occurrence]{}
	examined, now := 0, s.now()
	err = s.db.Query(ctx, occurrences, func(raw item.Item) (bool, error) {
		if len(page.Items) == limit || examined == maxListRows {
			page.Next = rows.SealCursor(scope, after)
			return false, nil
		}
		o, err := rows.UnmarshalOccurrence(raw)
		if err != nil {
			return false, err
		}
		examined, after.Fire = examined+1, o.Fire()
		if o.Listed(now) && (o.Skipped != "" || !q.SkippedOnly) {
			page.Items = append(page.Items, o.Outcome(q.ScheduleID))
		}
		return true, nil
	})
	if err != nil {
		return nil, err
	}
	return page, nil
}
