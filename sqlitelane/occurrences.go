package sqlitelane

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/embedded"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/sqlitelane/internal/file"
)

// occurrenceKept is how long an occurrence can be listed after it was claimed.
const occurrenceKept = 40 * 24 * time.Hour

// result is what an occurrence led to: runs or a reason, never both. It is stored as JSON.
type result struct {
	Runs    []runlane.RunID    `json:"runs,omitempty"`
	Skipped runlane.SkipReason `json:"skipped,omitempty"`
	First   time.Time          `json:"first,omitzero"` // of several that were skipped together
	Count   int                `json:"count,omitempty"`
}

func (r *result) equal(other *result) bool {
	return slices.Equal(r.Runs, other.Runs) && r.Skipped == other.Skipped && r.Count == other.Count &&
		r.First.Equal(other.First)
}

// occurrence is under a claim until it has a result.
type occurrence struct {
	fire, claimUntil, keptUntil embedded.Millis
	token                       string
	result                      *result
}

// holds reports an occurrence that is not to be claimed: it has a result, or is under a claim.
func (o *occurrence) holds(c *lane.ClaimOccurrenceCommand) bool {
	return o.result != nil || o.claimUntil > embedded.At(c.At) && c.Trusts(o.claimUntil.Time())
}

const occurrenceColumns = "SELECT fire, token, claim_until, kept_until, result FROM occurrences"

func readOccurrence(row []driverValue) (*occurrence, error) {
	o := &occurrence{
		fire: embedded.Millis(number(row[0])), token: text(row[1]), claimUntil: embedded.Millis(number(row[2])),
		keptUntil: embedded.Millis(number(row[3])),
	}
	if row[4] != nil {
		o.result = &result{}
		if err := json.Unmarshal([]byte(text(row[4])), o.result); err != nil {
			return nil, damagedRecord("an occurrence", err)
		}
	}
	return o, nil
}

func (t *tx) occurrence(env int64, id runlane.ScheduleID, fire embedded.Millis) (*occurrence, error) {
	row, err := t.One(occurrenceColumns+" WHERE env = ? AND schedule = ? AND fire = ?", env, string(id), int64(fire))
	if err != nil || row == nil {
		return nil, err
	}
	return readOccurrence(row)
}

// ClaimScheduleOccurrence gives one caller the occurrence if it is new or its claim is over. One at or before the last
// fire is never given, even if its record is gone.
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
		case fire <= embedded.At(known.LastFire) && c.Trusts(known.LastFire):
			return nil
		}
		o, err := t.occurrence(env, c.ScheduleID, fire)
		if err != nil || o != nil && o.holds(c) && o.keptUntil > now {
			return err
		}
		err = t.Exec("DELETE FROM occurrences WHERE env = ? AND schedule = ? AND kept_until <= ?",
			env, string(c.ScheduleID), int64(now))
		if err != nil {
			return err
		}
		claim = &lane.OccurrenceClaim{Outcome: lane.Acquired, Token: "occurrence-" + s.nextToken()}
		until := embedded.At(c.ClaimUntil)
		kept := max(now, until).Add(occurrenceKept)
		return t.Exec(`INSERT INTO occurrences(env, schedule, fire, token, claim_until, kept_until)
			VALUES(?, ?, ?, ?, ?, ?) ON CONFLICT(env, schedule, fire) DO UPDATE
			SET token = excluded.token, claim_until = excluded.claim_until, kept_until = excluded.kept_until`,
			env, string(c.ScheduleID), int64(fire), claim.Token, int64(until), int64(kept))
	})
	if err != nil {
		return nil, err
	}
	return claim, nil
}

// CompleteScheduleOccurrence records the outcome of a claimed occurrence and moves the last fire forward. Repeating it
// with the same token and the same result changes nothing and is no error.
func (s *Storage) CompleteScheduleOccurrence(ctx context.Context, c *lane.CompleteOccurrenceCommand) error {
	if err := embedded.Ended(ctx); err != nil {
		return err
	}
	if err := c.Validate(); err != nil {
		return err
	}
	fire := embedded.At(c.FireTime)
	became := &result{Runs: c.RunIDs, Skipped: c.Skipped, First: runlane.UTCMillis(c.First), Count: c.Count}
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
		switch {
		case err != nil:
			return err
		case o == nil || o.token != c.Token:
			return embedded.OccurrenceConflict("the occurrence is not under this claim")
		case o.result != nil && o.result.equal(became):
			return nil
		case o.result != nil:
			return embedded.OccurrenceConflict("the occurrence was completed with another result")
		}
		err = t.Exec("UPDATE occurrences SET result = ? WHERE env = ? AND schedule = ? AND fire = ?",
			string(stored), env, string(c.ScheduleID), int64(fire))
		if err != nil || !c.Moves(known.LastFire) {
			return err
		}
		known.LastFire = fire.Time()
		if len(c.RunIDs) > 0 {
			known.LastRunID = c.RunIDs[len(c.RunIDs)-1]
		}
		known.Version++
		return t.putSchedule(env, known)
	})
}

// ListScheduleOccurrences pages completed occurrences, newest first.
func (s *Storage) ListScheduleOccurrences(
	ctx context.Context, q *lane.OccurrenceQuery,
) (*runlane.Page[runlane.Occurrence], error) {
	if err := embedded.Ended(ctx); err != nil {
		return nil, err
	}
	if err := q.ScheduleID.Validate(); err != nil {
		return nil, err
	}
	scope := embedded.NewScope("ListScheduleOccurrences", q.Environment, string(q.ScheduleID), fmt.Sprint(q.SkippedOnly))
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
				examined, last = examined+1, o.fire
				if o.result != nil && o.keptUntil > now && (o.result.Skipped != "" || !q.SkippedOnly) {
					page.Items = append(page.Items, o.became(q.ScheduleID))
				}
				return true, nil
			}, env, string(q.ScheduleID), int64(before))
	})
	if err != nil {
		return nil, err
	}
	return page, nil
}

// became is the occurrence in the form of lists.
func (o *occurrence) became(id runlane.ScheduleID) runlane.Occurrence {
	shown := runlane.Occurrence{
		ScheduleID: id, FireTime: o.fire.Time(),
		Skipped: o.result.Skipped, First: o.result.First, Count: o.result.Count,
	}
	if n := len(o.result.Runs); n > 0 {
		shown.RunID = o.result.Runs[n-1]
	}
	return shown
}
