package schedule

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core/internal/fail"
	"github.com/runlane/runlane-go/lane"
)

const (
	maxPreview = 1000
	// resumeRounds bounds the reads of one resumption after a long pause.
	resumeRounds = 500
	// resumeTaken is how often Resume waits for another process that has an occurrence, for resumePause each.
	resumeTaken = 10
	resumePause = 50 * time.Millisecond
	// changeRounds bounds the tries of an operator's change when other processes change the record first.
	changeRounds = 5
)

// State is core.ScheduleState.
type State struct {
	runlane.ScheduleRecord
	Known   bool
	Next    time.Time
	Doubted []string
}

// List returns all recorded schedules and the unregistered definitions, by ID. An error ends it.
func (s *Scheduler) List(ctx context.Context) iter.Seq2[State, error] {
	return func(yield func(State, error) bool) {
		unregistered := s.definitions
		for record, err := range s.records(ctx, 0) {
			if err != nil {
				yield(State{}, err)
				return
			}
			for len(unregistered) > 0 && unregistered[0].ID <= record.ID {
				if own := unregistered[0]; own.ID < record.ID && !yield(s.state(&runlane.ScheduleRecord{ID: own.ID}), nil) {
					return
				}
				unregistered = unregistered[1:]
			}
			if !yield(s.state(record), nil) {
				return
			}
		}
		for _, own := range unregistered {
			if !yield(s.state(&runlane.ScheduleRecord{ID: own.ID}), nil) {
				return
			}
		}
	}
}

func (s *Scheduler) Get(ctx context.Context, id runlane.ScheduleID) (State, error) {
	record, err := s.record(ctx, id)
	if err != nil {
		return State{}, err
	}
	return s.state(record), nil
}

// record returns the stored record, or an empty one for a definition that no tick has registered yet.
func (s *Scheduler) record(ctx context.Context, id runlane.ScheduleID) (*runlane.ScheduleRecord, error) {
	if err := fail.First(id.Validate(), s.Supported()); err != nil {
		return nil, err
	}
	record, err := s.Host.Storage().GetSchedule(ctx, s.key(id))
	if _, known := s.Find(id); known && errors.Is(err, runlane.ErrScheduleNotFound) {
		return &runlane.ScheduleRecord{ID: id}, nil
	}
	return record, err
}

func (s *Scheduler) state(record *runlane.ScheduleRecord) State {
	state := State{ScheduleRecord: *record}
	own, known := s.Find(record.ID)
	if state.Known = known; known {
		now := s.Host.Now()
		from := now
		for _, mark := range [...]time.Time{record.RegisteredAt, record.LastEvaluated, record.LastFire} {
			if !mark.After(now.Add(markTolerance)) {
				from = latest(from, mark)
			}
		}
		if next, ok := own.When.Next(from); ok {
			state.Next = next
		}
	}
	state.Doubted = doubted(record, s.Host.Now())
	return state
}

// Preview returns the next n fire times of a definition.
func (s *Scheduler) Preview(id runlane.ScheduleID, n int) ([]time.Time, error) {
	own, known := s.Find(id)
	switch {
	case !known:
		return nil, unknownSchedule(id)
	case n < 1 || n > maxPreview:
		return nil, fail.Input(fmt.Sprintf("ask for 1 to %d", maxPreview), "n is %d", n)
	}
	var fires []time.Time
	for at, ok := own.When.Next(s.Host.Now()); ok && len(fires) < n; at, ok = own.When.Next(at) {
		fires = append(fires, at)
	}
	return fires, nil
}

func unknownSchedule(id runlane.ScheduleID) error {
	return &runlane.Error{
		Code: runlane.ErrScheduleNotFound, Message: fmt.Sprintf("this runtime has no definition of schedule %q", id),
		Hint: "pass it to core.Open, or ask the program that has it",
	}
}

// Resume ends a pause. Occurrences due meanwhile are recorded as skipped.
func (s *Scheduler) Resume(ctx context.Context, id runlane.ScheduleID) error {
	own, known := s.Find(id)
	if !known {
		return unknownSchedule(id)
	}
	taken := 0
	for range resumeRounds {
		record, err := s.record(ctx, id)
		if err != nil || !record.Paused {
			return err
		}
		e := evaluation{s: s, own: own, record: record, now: s.Host.Now()}
		if left, err := e.skipPaused(ctx); err != nil {
			return err
		} else if left { // too many for one read, or another process has one
			if e.taken {
				if taken++; taken > resumeTaken {
					return occurrenceTaken(id)
				}
				if err := wait(ctx, resumePause); err != nil {
					return err
				}
			}
			continue
		}
		next := *record
		next.Paused, next.PauseReason = false, ""
		next.DefinitionHash, next.LastEvaluated = own.hash, e.now
		_, err = s.Host.Storage().PutSchedule(ctx, &lane.PutScheduleCommand{
			Environment: s.Environment,
			Record:      next,
		})
		if !fail.IsConflict(err, runlane.ConflictScheduleOccurrence) {
			return err
		}
	}
	return scheduleChangedTooOften(id, resumeRounds)
}

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return fail.Cancelled(ctx, "")
	}
}

func occurrenceTaken(id runlane.ScheduleID) error {
	conflict := runlane.NewConflict(
		runlane.ConflictScheduleOccurrence, fmt.Sprintf("another process is making an occurrence of schedule %q", id),
	)
	conflict.Hint = "call again: it ends within a minute"
	return conflict
}

// skipPaused records occurrences due in the pause; a run that a tick had made before is recorded as such. left means
// that the record must be read again.
func (e *evaluation) skipPaused(ctx context.Context) (left bool, err error) {
	from, err := e.dueAfter(ctx)
	if err != nil {
		return false, err
	}
	fires, more := occurrences(e.own.When, from, e.now)
	if len(fires) == 0 {
		return more, nil
	}
	plan, err := e.salvage(ctx, skipAll(fires, runlane.SkippedPaused))
	if err != nil {
		return false, err
	}
	if ours, err := e.claimFirst(ctx, plan[0]); err != nil || !ours {
		return true, err
	}
	for _, f := range plan {
		if done, err := e.fire(ctx, f); err != nil || !done {
			return true, err
		}
	}
	return true, nil // the completion changed the record's version
}

// TriggerNow makes a run of a definition at once.
func (s *Scheduler) TriggerNow(ctx context.Context, id runlane.ScheduleID, run *Run) (*runlane.Run, error) {
	own, known := s.Find(id)
	if !known {
		return nil, unknownSchedule(id)
	}
	if checksOverlap(own.Overlap) {
		if err := s.noteManual(ctx, own, run.ID); err != nil {
			return nil, err
		}
	}
	made, announce, err := s.Host.Create(ctx, own, run)
	if err != nil {
		return nil, err
	}
	announce(ctx)
	return made, nil
}

// Change applies an operator's change to a record and repeats it after concurrent writes.
func (s *Scheduler) Change(ctx context.Context, id runlane.ScheduleID, apply func(*runlane.ScheduleRecord)) error {
	return s.write(ctx, id, changeRounds, apply)
}

// write applies a change to a record and repeats it after concurrent writes.
func (s *Scheduler) write(
	ctx context.Context, id runlane.ScheduleID, rounds int, apply func(*runlane.ScheduleRecord),
) error {
	for range rounds {
		record, err := s.record(ctx, id)
		if err != nil {
			return err
		}
		next := *record
		if own, _ := s.Find(id); own != nil && next.Version == 0 {
			next.DefinitionHash, next.RegisteredAt, next.LastEvaluated = own.hash, s.Host.Now(), s.Host.Now()
		}
		apply(&next)
		_, err = s.Host.Storage().PutSchedule(ctx, &lane.PutScheduleCommand{
			Environment: s.Environment,
			Record:      next,
		})
		if !fail.IsConflict(err, runlane.ConflictScheduleOccurrence) {
			return err
		}
	}
	return scheduleChangedTooOften(id, rounds)
}

func scheduleChangedTooOften(id runlane.ScheduleID, rounds int) error {
	conflict := runlane.NewConflict(
		runlane.ConflictScheduleOccurrence,
		fmt.Sprintf("schedule %q changed during each of %d tries", id, rounds),
	)
	conflict.Hint = "call again"
	return conflict
}
