package core

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// maxPreview is how many fire times [Schedules.Preview] computes at most.
const maxPreview = 1000

// resumeRounds bounds how often a resumption reads what fell due during a long pause.
const resumeRounds = 500

// Schedules is the operator's view of schedules. Stateless: get one with [Runtime.Schedules] when you need it.
type Schedules struct{ rt *Runtime }

// Schedules returns the view.
func (rt *Runtime) Schedules() *Schedules { return &Schedules{rt: rt} }

// ScheduleState is what is known of a schedule: its record, and what follows from this runtime's definition.
type ScheduleState struct {
	runlane.ScheduleRecord
	// Known is false when this runtime has no definition of the schedule: another program makes its runs, or none does
	// any more.
	Known bool `json:"known"`
	// Next is when it fires next. Zero when it never fires again, or when that is not known here. A paused schedule
	// does not fire.
	Next time.Time `json:"next,omitzero"`
	// Doubted are marks of the record, by their names in JSON, that lie further ahead of this process's clock than
	// clocks differ: a process with a wrong clock set them. They do not count.
	Doubted []string `json:"-"`
}

// List walks all schedules that have a record, and those of this runtime that no tick has registered yet, by id. An
// error is the last thing it yields.
func (s *Schedules) List(ctx context.Context) iter.Seq2[ScheduleState, error] {
	return func(yield func(ScheduleState, error) bool) {
		if err := s.rt.gate.enterLate(); err != nil {
			yield(ScheduleState{}, err)
			return
		}
		defer s.rt.gate.leave()
		if err := s.rt.keepsSchedules(); err != nil {
			yield(ScheduleState{}, err)
			return
		}
		unregistered := s.rt.schedules
		q := lane.PageQuery{Environment: s.rt.environment}
		for {
			page, err := s.rt.storage().ListSchedules(ctx, &q)
			if err != nil {
				yield(ScheduleState{}, err)
				return
			}
			for _, record := range page.Items {
				for len(unregistered) > 0 && unregistered[0].ID <= record.ID {
					if own := unregistered[0]; own.ID < record.ID &&
						!yield(s.state(&runlane.ScheduleRecord{ID: own.ID}), nil) {
						return
					}
					unregistered = unregistered[1:]
				}
				if !yield(s.state(&record), nil) {
					return
				}
			}
			if q.After = page.Next; q.After == "" {
				break
			}
		}
		for _, own := range unregistered {
			if !yield(s.state(&runlane.ScheduleRecord{ID: own.ID}), nil) {
				return
			}
		}
	}
}

// Get returns one schedule. Without a record and without a definition here it is runlane.ErrScheduleNotFound.
func (s *Schedules) Get(ctx context.Context, id runlane.ScheduleID) (*ScheduleState, error) {
	if err := s.rt.gate.enterLate(); err != nil {
		return nil, err
	}
	defer s.rt.gate.leave()
	record, err := s.record(ctx, id)
	if err != nil {
		return nil, err
	}
	state := s.state(record)
	return &state, nil
}

// record is the stored one, or an empty one for a schedule of this runtime that no tick has registered yet.
func (s *Schedules) record(ctx context.Context, id runlane.ScheduleID) (*runlane.ScheduleRecord, error) {
	if err := firstError(id.Validate(), s.rt.keepsSchedules()); err != nil {
		return nil, err
	}
	record, err := s.rt.storage().GetSchedule(ctx, lane.ScheduleKey{Environment: s.rt.environment, ScheduleID: id})
	if _, known := s.rt.findSchedule(id); known && errors.Is(err, runlane.ErrScheduleNotFound) {
		return &runlane.ScheduleRecord{ID: id}, nil
	}
	return record, err
}

func (s *Schedules) state(record *runlane.ScheduleRecord) ScheduleState {
	state := ScheduleState{ScheduleRecord: *record}
	own, known := s.rt.findSchedule(record.ID)
	if state.Known = known; known {
		now := s.rt.now()
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
	state.Doubted = doubted(record, s.rt.now())
	return state
}

func (rt *Runtime) keepsSchedules() error {
	if !rt.storage().Capabilities().KeepsSchedules {
		return unsupported("the storage keeps no schedules")
	}
	return nil
}

// Occurrences walks the recorded occurrences of a schedule, newest first; skippedOnly leaves out those that made runs.
// They are kept 40 days. An error is the last thing it yields.
func (s *Schedules) Occurrences(
	ctx context.Context, id runlane.ScheduleID, skippedOnly bool,
) iter.Seq2[runlane.Occurrence, error] {
	return func(yield func(runlane.Occurrence, error) bool) {
		if err := s.rt.gate.enterLate(); err != nil {
			yield(runlane.Occurrence{}, err)
			return
		}
		defer s.rt.gate.leave()
		if err := firstError(id.Validate(), s.rt.keepsSchedules()); err != nil {
			yield(runlane.Occurrence{}, err)
			return
		}
		q := lane.OccurrenceQuery{
			PageQuery:   lane.PageQuery{Environment: s.rt.environment},
			ScheduleID:  id,
			SkippedOnly: skippedOnly,
		}
		for {
			page, err := s.rt.storage().ListScheduleOccurrences(ctx, &q)
			if err != nil {
				yield(runlane.Occurrence{}, err)
				return
			}
			for _, occurrence := range page.Items {
				if !yield(occurrence, nil) {
					return
				}
			}
			if q.After = page.Next; q.After == "" {
				return
			}
		}
	}
}

// Preview computes the next n fire times of a schedule that this runtime has, from now on, or fewer when it stops
// firing. n is 1 to 1,000.
func (s *Schedules) Preview(id runlane.ScheduleID, n int) ([]time.Time, error) {
	own, known := s.rt.findSchedule(id)
	switch {
	case !known:
		return nil, unknownSchedule(id)
	case n < 1 || n > maxPreview:
		return nil, invalidInput(fmt.Sprintf("ask for 1 to %d", maxPreview), "n is %d", n)
	}
	var fires []time.Time
	for at, ok := own.When.Next(s.rt.now()); ok && len(fires) < n; at, ok = own.When.Next(at) {
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

// Pause stops a schedule from firing, in every process, from the next tick on, and keeps the reason. Pausing twice
// keeps the newer reason. The call registers a schedule that no tick has registered yet.
func (s *Schedules) Pause(ctx context.Context, id runlane.ScheduleID, options *ChangeOptions) error {
	return s.change(ctx, id, options, func(r *runlane.ScheduleRecord, reason string) {
		r.Paused, r.PauseReason = true, reason
	})
}

// Resume lets a paused schedule fire again. What became due while it was paused is recorded as one skip, with reason
// runlane.SkippedPaused, and never fires. It needs the schedule's definition: without it the times that passed are not
// known (runlane.ErrScheduleNotFound). Resuming a schedule that is not paused changes nothing.
func (s *Schedules) Resume(ctx context.Context, id runlane.ScheduleID, options *ChangeOptions) error {
	if err := s.rt.gate.enterLate(); err != nil {
		return err
	}
	defer s.rt.gate.leave()
	if _, _, err := options.settle("ChangeOptions"); err != nil {
		return err
	}
	own, known := s.rt.findSchedule(id)
	if !known {
		return unknownSchedule(id)
	}
	for range resumeRounds {
		record, err := s.record(ctx, id)
		if err != nil || !record.Paused {
			return err
		}
		e := evaluation{rt: s.rt, schedule: own, record: record, now: s.rt.now()}
		if left, err := e.skipPaused(ctx); err != nil {
			return err
		} else if left { // more than one reading covers, or another process's
			continue
		}
		next := *record
		next.Paused, next.PauseReason = false, ""
		next.DefinitionHash, next.LastEvaluated = own.hash, e.now
		_, err = s.rt.storage().PutSchedule(ctx, &lane.PutScheduleCommand{
			Environment: s.rt.environment,
			Record:      next,
		})
		if !isConflict(err, runlane.ConflictScheduleOccurrence) {
			return err
		}
	}
	return scheduleChangedTooOften(id, resumeRounds)
}

// skipPaused records what came due during the pause. left means that the record must be read again.
func (e *evaluation) skipPaused(ctx context.Context) (left bool, err error) {
	from, err := e.from(ctx)
	if err != nil {
		return false, err
	}
	fires, more := occurrences(e.schedule.When, from, e.now)
	for _, f := range skipAll(fires, runlane.SkippedPaused) {
		if _, err := e.fire(ctx, f); err != nil {
			return false, err
		}
		left = true // the completion moved the record's version
	}
	return left || more, nil
}

// TriggerNow makes a run of the schedule at once, whatever its times, its pause and its overlap policy say. The run
// names the schedule as its source, and the time of this call as its fire time. The reason is kept in its meta, as
// "runlane.reason". It needs the schedule's definition (runlane.ErrScheduleNotFound). A held singleton key is
// runlane.ConflictSingletonKey.
//
// When the schedule's overlap policy is not runlane.OverlapAllow, the run is first noted in the schedule's record, so
// that the next occurrence sees it. If that record keeps changing meanwhile, the error is
// runlane.ConflictScheduleOccurrence and no run is made.
func (s *Schedules) TriggerNow(
	ctx context.Context, id runlane.ScheduleID, options *ChangeOptions,
) (*runlane.Run, error) {
	if err := s.rt.gate.enterLate(); err != nil {
		return nil, err
	}
	defer s.rt.gate.leave()
	actor, reason, err := options.settle("ChangeOptions")
	if err != nil {
		return nil, err
	}
	own, known := s.rt.findSchedule(id)
	if !known {
		return nil, unknownSchedule(id)
	}
	p := s.rt.planScheduled(own, actor, runlane.RunID(s.rt.world.NewID("run_")), time.Time{})
	p.source.FireTime = p.at
	if reason != "" {
		p.options = &runlane.TriggerOptions{Meta: map[string]string{metaReason: reason}}
	}
	if checksOverlap(own.Overlap) {
		if err := s.noteManual(ctx, own, p.id); err != nil {
			return nil, err
		}
	}
	commit, err := s.rt.create(ctx, p)
	if err != nil {
		return nil, err
	}
	s.rt.announce(ctx, p, commit)
	return commit.Run, nil
}

// change writes a record with an operator's change, over whatever other processes write meanwhile.
func (s *Schedules) change(
	ctx context.Context,
	id runlane.ScheduleID,
	options *ChangeOptions,
	apply func(r *runlane.ScheduleRecord, reason string),
) error {
	if err := s.rt.gate.enterLate(); err != nil {
		return err
	}
	defer s.rt.gate.leave()
	_, reason, err := options.settle("ChangeOptions")
	if err != nil {
		return err
	}
	return s.write(ctx, id, changeRounds, func(r *runlane.ScheduleRecord) { apply(r, reason) })
}

// write writes a record as apply changes it, over whatever other processes write meanwhile.
func (s *Schedules) write(
	ctx context.Context, id runlane.ScheduleID, rounds int, apply func(*runlane.ScheduleRecord),
) error {
	for range rounds {
		record, err := s.record(ctx, id)
		if err != nil {
			return err
		}
		next := *record
		if own, _ := s.rt.findSchedule(id); own != nil && next.Version == 0 {
			next.DefinitionHash, next.RegisteredAt, next.LastEvaluated = own.hash, s.rt.now(), s.rt.now()
		}
		apply(&next)
		_, err = s.rt.storage().PutSchedule(ctx, &lane.PutScheduleCommand{
			Environment: s.rt.environment,
			Record:      next,
		})
		if !isConflict(err, runlane.ConflictScheduleOccurrence) {
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
