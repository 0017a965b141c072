package core

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core/internal/schedule"
	"github.com/runlane/runlane-go/lane"
)

// Schedules lets operators read and change schedules. It is stateless; get it from [Runtime.Schedules].
type Schedules struct{ rt *Runtime }

// Schedules returns the operator's view of schedules.
func (rt *Runtime) Schedules() *Schedules { return &Schedules{rt: rt} }

// ScheduleState is a schedule's record with facts from this runtime's definition.
type ScheduleState struct {
	runlane.ScheduleRecord
	// Known is false if this runtime has no definition of the schedule: another program creates its runs, or none does.
	Known bool `json:"known"`
	// Next is the next fire time. Zero if there is none or it is unknown here. A paused schedule does not fire.
	Next time.Time `json:"next,omitzero"`
	// Doubted are the record's marks, by their JSON names, that are further ahead of this process's clock than clocks
	// differ: a process with a wrong clock set them. They are ignored.
	Doubted []string `json:"-"`
}

// List walks all schedules with a record and the unregistered schedules of this runtime, by id. An error ends it.
func (s *Schedules) List(ctx context.Context) iter.Seq2[ScheduleState, error] {
	return func(yield func(ScheduleState, error) bool) {
		if err := s.rt.gate.enterLate(); err != nil {
			yield(ScheduleState{}, err)
			return
		}
		defer s.rt.gate.leave()
		if err := s.rt.schedules.Supported(); err != nil {
			yield(ScheduleState{}, err)
			return
		}
		for state, err := range s.rt.schedules.List(ctx) {
			if !yield(ScheduleState(state), err) {
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
	state, err := s.rt.schedules.Get(ctx, id)
	if err != nil {
		return nil, err
	}
	return (*ScheduleState)(&state), nil
}

// Occurrences walks the recorded occurrences of a schedule, newest first; skippedOnly omits the ones that created runs.
// They are kept 40 days. An error ends it.
func (s *Schedules) Occurrences(
	ctx context.Context, id runlane.ScheduleID, skippedOnly bool,
) iter.Seq2[runlane.Occurrence, error] {
	return func(yield func(runlane.Occurrence, error) bool) {
		if err := s.rt.gate.enterLate(); err != nil {
			yield(runlane.Occurrence{}, err)
			return
		}
		defer s.rt.gate.leave()
		if err := firstError(id.Validate(), s.rt.schedules.Supported()); err != nil {
			yield(runlane.Occurrence{}, err)
			return
		}
		for occurrence, err := range s.rt.schedules.Occurrences(ctx, id, skippedOnly) {
			if err != nil {
				yield(runlane.Occurrence{}, err)
				return
			}
			if !yield(*occurrence, nil) {
				return
			}
		}
	}
}

// Preview computes the next n fire times, 1 to 1,000, of a schedule of this runtime. It returns fewer if the schedule
// stops firing.
func (s *Schedules) Preview(id runlane.ScheduleID, n int) ([]time.Time, error) {
	return s.rt.schedules.Preview(id, n)
}

// When returns when a schedule of this runtime fires, and false for another program's.
func (s *Schedules) When(id runlane.ScheduleID) (when runlane.When, known bool) {
	own, known := s.rt.schedules.Find(id)
	if !known {
		return runlane.When{}, false
	}
	return own.When, true
}

// Pause stops a schedule from firing, in every process, from the next tick on, and keeps the reason. Pausing twice
// keeps the newer reason. An unregistered schedule is registered.
func (s *Schedules) Pause(ctx context.Context, id runlane.ScheduleID, options *ChangeOptions) error {
	return s.change(ctx, id, options, func(r *runlane.ScheduleRecord, reason string) {
		r.Paused, r.PauseReason = true, reason
	})
}

// Resume lets a paused schedule fire again. Occurrences that became due during the pause, or shortly before it without
// a tick, are recorded as one skip with reason runlane.SkippedPaused, and never fire. Without the schedule's definition
// these times are unknown (runlane.ErrScheduleNotFound). Resuming a schedule that is not paused changes no record.
func (s *Schedules) Resume(ctx context.Context, id runlane.ScheduleID, options *ChangeOptions) error {
	if err := s.rt.gate.enterLate(); err != nil {
		return err
	}
	defer s.rt.gate.leave()
	if _, _, err := options.settle("ChangeOptions"); err != nil {
		return err
	}
	return s.rt.schedules.Resume(ctx, id)
}

// TriggerNow creates a run of the schedule now, regardless of its times, pause and overlap policy. The run has the
// schedule as its source and the time of this call as its fire time. The reason is kept in its meta, as
// "runlane.reason". Without the schedule's definition it is runlane.ErrScheduleNotFound. A held singleton key is
// runlane.ConflictSingletonKey.
//
// Unless the overlap policy is runlane.OverlapAllow, the run is first noted in the schedule's record, where the next
// occurrence sees it. If that record keeps changing, the error is runlane.ConflictScheduleOccurrence and no run is
// created.
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
	return s.rt.schedules.TriggerNow(ctx, id, &schedule.Run{
		ID:     runlane.RunID(s.rt.world.NewID("run_")),
		Actor:  actor,
		Reason: reason,
	})
}

// change writes a record with an operator's change, and repeats it if other processes write meanwhile.
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
	return s.rt.schedules.Change(ctx, id, func(r *runlane.ScheduleRecord) { apply(r, reason) })
}

// scheduleHost implements schedule.Host.
type scheduleHost struct{ rt *Runtime }

func (h scheduleHost) Now() time.Time { return h.rt.now() }

func (h scheduleHost) Storage() lane.Storage { return h.rt.storage() }

// Create sets no idempotency key: the occurrence is the run's identity.
func (h scheduleHost) Create(
	ctx context.Context, d *schedule.Definition, run *schedule.Run,
) (*runlane.Run, func(context.Context), error) {
	at := h.rt.now()
	p := &plan{
		options:        &noOptions,
		task:           d.Call.Task,
		queue:          d.Call.Task.Queue,
		id:             run.ID,
		actor:          run.Actor,
		source:         runlane.Source{Type: runlane.SourceSchedule, ScheduleID: d.ID, FireTime: run.FireTime},
		at:             at,
		availableAt:    at,
		payload:        d.Prepared.Payload,
		concurrencyKey: d.Prepared.ConcurrencyKey,
		singletonKey:   d.Prepared.SingletonKey,
	}
	if run.FireTime.IsZero() {
		p.source.FireTime = at
	}
	if run.Reason != "" {
		p.options = &runlane.TriggerOptions{Meta: map[string]string{metaReason: run.Reason}}
	}
	ctx, t := h.rt.traceCreation(ctx, p)
	commit, err := h.rt.create(ctx, p)
	t.done(commitEnd(commit, err))
	if err != nil {
		return nil, nil, err
	}
	return commit.Run, func(ctx context.Context) { h.rt.announce(ctx, p, commit) }, nil
}

func (h scheduleHost) Cancel(ctx context.Context, id runlane.RunID, actor runlane.Actor, reason string) error {
	_, _, err := change{rt: h.rt, actor: actor, reason: reason}.cancel(ctx, id)
	if movedOn(err) {
		return nil
	}
	return err
}

// checkScheduledPayloads refuses payloads that the storage cannot hold: each fire would fail. If the codec cannot
// encode one now, the plain payload is checked.
func (rt *Runtime) checkScheduledPayloads(ctx context.Context) error {
	for _, s := range rt.schedules.All() {
		stored := s.Prepared.Payload
		_, id := schedule.OccurrenceIDs(rt.environment, s.ID, rt.now())
		if rt.coded {
			of := runlane.BodyRef{Environment: rt.environment, RunID: id, TaskID: s.Call.Task.ID}
			if encoded, _, err := rt.codec.encodeBody(ctx, of, stored); err == nil {
				stored = encoded
			}
		}
		if err := firstError(rt.checkSize("payload", s.Prepared.Payload), rt.limits.CheckPayload(id, stored)); err != nil {
			return &runlane.Error{
				Code:    runlane.ErrConfigurationInvalid,
				Message: fmt.Sprintf("Options.Schedules: schedule %q: %s", s.ID, messageOf(err)),
				Hint:    hintOf(err),
				Cause:   err,
			}
		}
	}
	return nil
}
