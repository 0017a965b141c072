package memlane

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/embedded"
	"github.com/runlane/runlane-go/lane"
)

// schedule is a record with its occurrences by fire time. The last fire outlives them.
type schedule struct {
	record      runlane.ScheduleRecord
	occurrences []*embedded.Occurrence
}

// schedule returns a schedule, or nil. env may be nil.
func (env *environment) schedule(id runlane.ScheduleID) *schedule {
	if env == nil {
		return nil
	}
	return env.schedules[id]
}

// place returns the index of the occurrence with that fire time, or where to insert it.
func (s *schedule) place(fire embedded.Millis) (index int, found bool) {
	return slices.BinarySearchFunc(s.occurrences, fire, func(o *embedded.Occurrence, fire embedded.Millis) int {
		return cmp.Compare(o.Fire, fire)
	})
}

// PutSchedule implements [lane.Storage].
func (s *Storage) PutSchedule(ctx context.Context, c *lane.PutScheduleCommand) (*runlane.ScheduleRecord, error) {
	if err := embedded.Ended(ctx); err != nil {
		return nil, err
	}
	if err := c.Validate(); err != nil {
		return nil, err
	}
	record := embedded.ScheduleAtRest(c.Record)
	s.mu.Lock()
	defer s.mu.Unlock()
	env := s.open(c.Environment)
	known := env.schedule(record.ID)
	var kept *runlane.ScheduleRecord
	if known != nil {
		kept = &known.record
	}
	if err := embedded.JudgeSchedule(kept, &record); err != nil {
		return nil, err
	}
	record.Version++
	returned := embedded.ScheduleAtRest(record)
	if known == nil {
		if env.schedules == nil {
			env.schedules = map[runlane.ScheduleID]*schedule{}
		}
		env.schedules[record.ID] = &schedule{record: record}
	} else {
		known.record = record
	}
	return &returned, nil
}

// GetSchedule returns the record.
func (s *Storage) GetSchedule(ctx context.Context, key lane.ScheduleKey) (*runlane.ScheduleRecord, error) {
	if err := embedded.Ended(ctx); err != nil {
		return nil, err
	}
	if err := key.ScheduleID.Validate(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.find(key.Environment).schedule(key.ScheduleID)
	if known == nil {
		return nil, embedded.ScheduleNotFound(key.ScheduleID)
	}
	record := embedded.ScheduleAtRest(known.record)
	return &record, nil
}

// ListSchedules pages the records by ID.
func (s *Storage) ListSchedules(ctx context.Context, q *lane.PageQuery) (*runlane.Page[runlane.ScheduleRecord], error) {
	return pageByID(ctx, s, "ListSchedules", q,
		func(env *environment) map[runlane.ScheduleID]*schedule { return env.schedules },
		func(known *schedule) runlane.ScheduleRecord { return embedded.ScheduleAtRest(known.record) })
}

// ClaimScheduleOccurrence implements [lane.Storage]. It never gives an occurrence at or before the last fire, even if
// its record is gone.
func (s *Storage) ClaimScheduleOccurrence(
	ctx context.Context, c *lane.ClaimOccurrenceCommand,
) (*lane.OccurrenceClaim, error) {
	if err := embedded.Ended(ctx); err != nil {
		return nil, err
	}
	if err := c.Validate(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.find(c.Environment).schedule(c.ScheduleID)
	if known == nil {
		return nil, embedded.ScheduleNotFound(c.ScheduleID)
	}
	known.forget(embedded.At(s.now()))
	if embedded.Fired(&known.record, c) {
		return &lane.OccurrenceClaim{Outcome: lane.LostOccurrence}, nil
	}
	fire := embedded.At(c.FireTime)
	index, found := known.place(fire)
	if found && known.occurrences[index].Holds(c) {
		return &lane.OccurrenceClaim{Outcome: lane.LostOccurrence}, nil
	}
	if !found {
		known.occurrences = slices.Insert(known.occurrences, index, &embedded.Occurrence{Fire: fire})
	}
	o := known.occurrences[index]
	o.Claim(c, fmt.Sprintf("occurrence-%d", s.tokens.Add(1)), embedded.At(s.now()))
	return &lane.OccurrenceClaim{Outcome: lane.Acquired, Token: o.Token}, nil
}

// forget removes old occurrences. The last fire stays.
func (s *schedule) forget(now embedded.Millis) {
	kept := 0
	for kept < len(s.occurrences) && s.occurrences[kept].KeptUntil <= now {
		kept++
	}
	s.occurrences = slices.Delete(s.occurrences, 0, kept)
}

// CompleteScheduleOccurrence implements [lane.Storage]. Repeating it with the same token and result changes nothing.
func (s *Storage) CompleteScheduleOccurrence(ctx context.Context, c *lane.CompleteOccurrenceCommand) error {
	if err := embedded.Ended(ctx); err != nil {
		return err
	}
	if err := c.Validate(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.find(c.Environment).schedule(c.ScheduleID)
	if known == nil {
		return embedded.ScheduleNotFound(c.ScheduleID)
	}
	var o *embedded.Occurrence
	if index, found := known.place(embedded.At(c.FireTime)); found {
		o = known.occurrences[index]
	}
	became := embedded.ResultOf(c)
	if done, err := o.JudgeCompletion(c, became); err != nil || done {
		return err
	}
	o.Result = became
	embedded.MoveLastFire(&known.record, c)
	return nil
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
	scope := embedded.OccurrencesScope(q)
	limit, after, err := embedded.OpenPage(&q.PageQuery, scope)
	if err != nil {
		return nil, err
	}
	now := embedded.At(s.now())
	s.mu.Lock()
	defer s.mu.Unlock()
	page := &runlane.Page[runlane.Occurrence]{}
	known := s.find(q.Environment).schedule(q.ScheduleID)
	if known == nil {
		return page, nil
	}
	behind := len(known.occurrences)
	if after != nil {
		behind, _ = known.place(after.At)
	}
	for examined := 0; examined < behind; examined++ {
		o := known.occurrences[behind-1-examined]
		if len(page.Items) == limit || examined == embedded.MostExamined {
			page.Next = scope.Cursor(embedded.Position{At: known.occurrences[behind-examined].Fire})
			return page, nil
		}
		if o.Listed(q, now) {
			page.Items = append(page.Items, o.Shown(q.ScheduleID))
		}
	}
	return page, nil
}
