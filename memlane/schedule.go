package memlane

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/embedded"
	"github.com/runlane/runlane-go/lane"
)

// occurrenceKept is how long an occurrence can be listed after it was claimed.
const occurrenceKept = 40 * 24 * time.Hour

// schedule is a record with its occurrences, by fire time. Its last fire outlives them.
type schedule struct {
	record      runlane.ScheduleRecord
	occurrences []*occurrence
}

// occurrence is under a claim until it is complete: then it has runs or a reason, never both.
type occurrence struct {
	fire, claimUntil, keptUntil embedded.Millis
	token                       string
	runs                        []runlane.RunID
	skipped                     runlane.SkipReason
	first                       time.Time // of several that were skipped together
	count                       int
}

func (o *occurrence) completed() bool { return len(o.runs) > 0 || o.skipped != "" }

// holds reports an occurrence that is not to be claimed: it is complete, or under a claim.
func (o *occurrence) holds(c *lane.ClaimOccurrenceCommand) bool {
	return o.completed() || o.claimUntil > embedded.At(c.At) && c.Trusts(o.claimUntil.Time())
}

// became is the occurrence in the form of lists.
func (o *occurrence) became(id runlane.ScheduleID) runlane.Occurrence {
	shown := runlane.Occurrence{
		ScheduleID: id,
		FireTime:   o.fire.Time(),
		Skipped:    o.skipped,
		First:      o.first,
		Count:      o.count,
	}
	if len(o.runs) > 0 {
		shown.RunID = o.runs[len(o.runs)-1]
	}
	return shown
}

// schedule returns one schedule, nil when it has no record. env may be nil.
func (env *environment) schedule(id runlane.ScheduleID) *schedule {
	if env == nil {
		return nil
	}
	return env.schedules[id]
}

// place is where the occurrence of a fire time is, or belongs.
func (s *schedule) place(fire embedded.Millis) (index int, found bool) {
	return slices.BinarySearchFunc(s.occurrences, fire, func(o *occurrence, fire embedded.Millis) int {
		return cmp.Compare(o.fire, fire)
	})
}

// PutSchedule writes a record if its version is still what the caller read.
func (s *Storage) PutSchedule(ctx context.Context, c *lane.PutScheduleCommand) (*runlane.ScheduleRecord, error) {
	if err := embedded.Ended(ctx); err != nil {
		return nil, err
	}
	if err := c.Validate(); err != nil {
		return nil, err
	}
	record := recordAtRest(c.Record)
	s.mu.Lock()
	defer s.mu.Unlock()
	env := s.open(c.Environment)
	known := env.schedule(record.ID)
	switch {
	case known == nil && record.Version != 0:
		return nil, embedded.OccurrenceConflict("schedule %q has no record at version %d", record.ID, record.Version)
	case known != nil && known.record.Version != record.Version:
		return nil, embedded.OccurrenceConflict(
			"schedule %q is at version %d, not %d",
			record.ID,
			known.record.Version,
			record.Version,
		)
	case known != nil && record.LastFire.Before(known.record.LastFire):
		return nil, &runlane.Error{
			Code: runlane.ErrContractViolation,
			Message: fmt.Sprintf(
				"schedule %q fired last at %v, which the record moves back",
				record.ID,
				known.record.LastFire,
			),
		}
	}
	record.Version++
	returned := recordAtRest(record)
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

// recordAtRest is the record as storages keep it: times in UTC and whole milliseconds, and nothing shared with the
// caller.
func recordAtRest(r runlane.ScheduleRecord) runlane.ScheduleRecord {
	for _, t := range []*time.Time{&r.RegisteredAt, &r.LastEvaluated, &r.LastFire, &r.PendingFire} {
		*t = runlane.UTCMillis(*t)
	}
	r.ManualRunIDs = slices.Clone(r.ManualRunIDs)
	return r
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
	record := recordAtRest(known.record)
	return &record, nil
}

// ListSchedules pages the records by id.
func (s *Storage) ListSchedules(ctx context.Context, q *lane.PageQuery) (*runlane.Page[runlane.ScheduleRecord], error) {
	if err := embedded.Ended(ctx); err != nil {
		return nil, err
	}
	scope := embedded.NewScope("ListSchedules", q.Environment)
	limit, after, err := embedded.OpenPage(q, scope)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	page := &runlane.Page[runlane.ScheduleRecord]{}
	env := s.find(q.Environment)
	if env == nil {
		return page, nil
	}
	for id, known := range env.schedules {
		if after == nil || string(id) > after.ID {
			page.Items = append(page.Items, recordAtRest(known.record))
		}
	}
	slices.SortFunc(page.Items, func(a, b runlane.ScheduleRecord) int {
		return strings.Compare(string(a.ID), string(b.ID))
	})
	if len(page.Items) > limit {
		page.Items = slices.Clone(page.Items[:limit])
		page.Next = scope.Cursor(embedded.Position{ID: string(page.Items[limit-1].ID)})
	}
	return page, nil
}

// ClaimScheduleOccurrence gives one caller the occurrence if it is new or its claim is over. One at or before the last
// fire is never given, even if its record is gone.
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
	fire := embedded.At(c.FireTime)
	if fire <= embedded.At(known.record.LastFire) && c.Trusts(known.record.LastFire) {
		return &lane.OccurrenceClaim{Outcome: lane.LostOccurrence}, nil
	}
	index, found := known.place(fire)
	if found && known.occurrences[index].holds(c) {
		return &lane.OccurrenceClaim{Outcome: lane.LostOccurrence}, nil
	}
	if !found {
		known.occurrences = slices.Insert(known.occurrences, index, &occurrence{fire: fire})
	}
	o := known.occurrences[index]
	o.token = fmt.Sprintf("occurrence-%d", s.tokens.Add(1))
	o.claimUntil = embedded.At(c.ClaimUntil)
	o.keptUntil = max(embedded.At(s.now()), o.claimUntil).Add(occurrenceKept)
	return &lane.OccurrenceClaim{Outcome: lane.Acquired, Token: o.token}, nil
}

// forget removes the oldest occurrences once their time is over. The last fire stays.
func (s *schedule) forget(now embedded.Millis) {
	kept := 0
	for kept < len(s.occurrences) && s.occurrences[kept].keptUntil <= now {
		kept++
	}
	s.occurrences = slices.Delete(s.occurrences, 0, kept)
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
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.find(c.Environment).schedule(c.ScheduleID)
	if known == nil {
		return embedded.ScheduleNotFound(c.ScheduleID)
	}
	fire := embedded.At(c.FireTime)
	index, found := known.place(fire)
	if !found || known.occurrences[index].token != c.Token {
		return embedded.OccurrenceConflict("the occurrence is not under this claim")
	}
	o := known.occurrences[index]
	if o.completed() {
		if slices.Equal(o.runs, c.RunIDs) && o.skipped == c.Skipped && o.count == c.Count &&
			o.first.Equal(runlane.UTCMillis(c.First)) {
			return nil
		}
		return embedded.OccurrenceConflict("the occurrence was completed with another result")
	}
	o.runs, o.skipped, o.first, o.count = slices.Clone(c.RunIDs), c.Skipped, runlane.UTCMillis(c.First), c.Count
	if c.Moves(known.record.LastFire) {
		known.record.LastFire = fire.Time()
		if len(o.runs) > 0 {
			known.record.LastRunID = o.runs[len(o.runs)-1]
		}
		known.record.Version++
	}
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
	scope := embedded.NewScope("ListScheduleOccurrences", q.Environment, string(q.ScheduleID), fmt.Sprint(q.SkippedOnly))
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
			page.Next = scope.Cursor(embedded.Position{At: known.occurrences[behind-examined].fire})
			return page, nil
		}
		if o.completed() && o.keptUntil > now && (o.skipped != "" || !q.SkippedOnly) {
			page.Items = append(page.Items, o.became(q.ScheduleID))
		}
	}
	return page, nil
}
