package sqlitelane

import (
	"context"
	"encoding/json"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/embedded"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/sqlitelane/internal/file"
)

const occurrenceColumns = "SELECT fire, token, claim_until, kept_until, result FROM occurrences"

func readOccurrence(row []driverValue) (*embedded.Occurrence, error) {
	o := &embedded.Occurrence{
		Fire: embedded.Millis(number(row[0])), Token: text(row[1]), ClaimUntil: embedded.Millis(number(row[2])),
		KeptUntil: embedded.Millis(number(row[3])),
	}
	if row[4] != nil {
		o.Result = &embedded.Result{}
		if err := json.Unmarshal([]byte(text(row[4])), o.Result); err != nil {
			return nil, damagedRecord("an occurrence", err)
		}
	}
	return o, nil
}

func (t *tx) occurrence(env int64, id runlane.ScheduleID, fire embedded.Millis) (*embedded.Occurrence, error) {
	row, err := t.One(occurrenceColumns+" WHERE env = ? AND schedule = ? AND fire = ?", env, string(id), int64(fire))
	if err != nil || row == nil {
		return nil, err
	}
	return readOccurrence(row)
}

// ClaimScheduleOccurrence implements [lane.Storage].
func (s *Storage) ClaimScheduleOccurrence(
	ctx context.Context, c *lane.ClaimOccurrenceCommand,
) (claim *lane.OccurrenceClaim, err error) {
	if err := embedded.Ended(ctx); err != nil {
		return nil, err
	}
	if err := c.Validate(); err != nil {
		return nil, err
	}
	fire, now := embedded.At(c.FireTime), s.clock()
	err = s.write(ctx, func(t *tx) error {
		claim = &lane.OccurrenceClaim{Outcome: lane.LostOccurrence}
		env, err := s.names.find(t.Conn, c.Environment.Name())
		if err != nil {
			return err
		}
		known, err := s.schedule(t.Conn, env, c.ScheduleID)
		switch {
		case err != nil:
			return err
		case known == nil:
			return embedded.ScheduleNotFound(c.ScheduleID)
		case embedded.Fired(known, c):
			return nil
		}
		o, err := t.occurrence(env, c.ScheduleID, fire)
		if err != nil || o != nil && o.Holds(c) && o.KeptUntil > now {
			return err
		}
		err = t.Exec("DELETE FROM occurrences WHERE env = ? AND schedule = ? AND kept_until <= ?",
			env, string(c.ScheduleID), int64(now))
		if err != nil {
			return err
		}
		claimed := embedded.Occurrence{Fire: fire}
		claimed.Claim(c, "occurrence-"+s.nextToken(), now)
		claim = &lane.OccurrenceClaim{Outcome: lane.Acquired, Token: claimed.Token}
		return t.Exec(`INSERT INTO occurrences(env, schedule, fire, token, claim_until, kept_until)
			VALUES(?, ?, ?, ?, ?, ?) ON CONFLICT(env, schedule, fire) DO UPDATE
			SET token = excluded.token, claim_until = excluded.claim_until, kept_until = excluded.kept_until`,
			env, string(c.ScheduleID), int64(fire), claim.Token, int64(claimed.ClaimUntil),
			int64(claimed.KeptUntil))
	})
	if err != nil {
		return nil, err
	}
	return claim, nil
}

// CompleteScheduleOccurrence implements [lane.Storage].
func (s *Storage) CompleteScheduleOccurrence(ctx context.Context, c *lane.CompleteOccurrenceCommand) error {
	if err := embedded.Ended(ctx); err != nil {
		return err
	}
	if err := c.Validate(); err != nil {
		return err
	}
	fire := embedded.At(c.FireTime)
	became := embedded.ResultOf(c)
	stored, err := json.Marshal(became)
	if err != nil {
		return &runlane.Error{Code: runlane.ErrInternal, Message: "an occurrence's result does not marshal", Cause: err}
	}
	return s.write(ctx, func(t *tx) error {
		env, err := s.names.find(t.Conn, c.Environment.Name())
		if err != nil {
			return err
		}
		known, err := s.schedule(t.Conn, env, c.ScheduleID)
		if err != nil {
			return err
		}
		if known == nil {
			return embedded.ScheduleNotFound(c.ScheduleID)
		}
		o, err := t.occurrence(env, c.ScheduleID, fire)
		if err != nil {
			return err
		}
		if done, err := o.JudgeCompletion(c, became); err != nil || done {
			return err
		}
		err = t.Exec("UPDATE occurrences SET result = ? WHERE env = ? AND schedule = ? AND fire = ?",
			string(stored), env, string(c.ScheduleID), int64(fire))
		if err != nil || !embedded.MoveLastFire(known, c) {
			return err
		}
		return t.putSchedule(env, known)
	})
}

// ListScheduleOccurrences implements [lane.Storage].
func (s *Storage) ListScheduleOccurrences(
	ctx context.Context, q *lane.OccurrenceQuery,
) (*runlane.Page[runlane.Occurrence], error) {
	if err := embedded.Ended(ctx); err != nil {
		return nil, err
	}
	if err := q.ScheduleID.Validate(); err != nil {
		return nil, err
	}
	scope := embedded.OccurrencesScope(q)
	limit, after, err := embedded.OpenPage(&q.PageQuery, scope)
	if err != nil {
		return nil, err
	}
	now, before := s.clock(), embedded.BehindAll
	if after != nil {
		before = after.At
	}
	page := &runlane.Page[runlane.Occurrence]{}
	err = s.read(ctx, true, func(c *file.Conn) error {
		env, err := s.names.known(c, q.Environment.Name())
		if err != nil {
			return err
		}
		last, examined := before, 0
		return c.Each(occurrenceColumns+" WHERE env = ? AND schedule = ? AND fire < ? ORDER BY fire DESC",
			func(row []driverValue) (bool, error) {
				o, err := readOccurrence(row)
				if err != nil {
					return false, err
				}
				if len(page.Items) == limit || examined == embedded.MostExamined {
					page.Next = scope.Cursor(embedded.Position{At: last})
					return false, nil
				}
				examined, last = examined+1, o.Fire
				if o.Listed(q, now) {
					page.Items = append(page.Items, o.Shown(q.ScheduleID))
				}
				return true, nil
			}, env, string(q.ScheduleID), int64(before))
	})
	if err != nil {
		return nil, err
	}
	return page, nil
}
