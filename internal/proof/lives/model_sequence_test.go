package lives

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
)

// modelSequence is one random life with an oracle: the real thing, the model, and what a step may choose from.
type modelSequence struct {
	driver[*modelSequence]

	ctx      context.Context // the sequence is one call
	w        *modelWorld
	m        *model
	d        *modelDeployment // the latest
	stranger *core.Runtime    // knows no queue; opened when it is asked

	inFlight        []*modelAttempt
	mail            []modelMail
	idempotencyKeys map[modelKey]bool
	singletonKeys   map[modelKey]bool
	repeats         map[modelRepeat]runlane.RunID
	checked         int // the model's changes, at the last check of the storage
	mostSlots       int // the largest limit so far; 0: there was none
}

// modelMail is a wakeup that the transport has.
type modelMail struct {
	run     runlane.RunID
	arrives time.Time
}

type modelRepeat struct {
	source  runlane.RunID
	created time.Time
	kind    runlane.SourceType
}

func newModelSequence(r *rapid.T, t *tally) *modelSequence {
	s := &modelSequence{
		ctx: context.Background(), w: newModelWorld(), m: newModel(time.Now().UTC()),
		idempotencyKeys: map[modelKey]bool{}, singletonKeys: map[modelKey]bool{}, repeats: map[modelRepeat]runlane.RunID{},
	}
	s.driver = driver[*modelSequence]{
		self: s, fate: rapidFate{r}, tally: t, steps: modelSteps, now: func() time.Time { return s.m.now },
		before: func() {}, after: s.compare, conclude: s.conclude, soon: time.Second, delays: modelDelays,
	}
	r.Cleanup(s.w.close)
	s.w.random = pick(s, "jitter", []uint64{0, 1 << 63, 1<<64 - 1})
	s.habit = pick(s, "habit", modelHabits)
	s.note("habits: %s", s.habit.name)
	s.w.maxAbandoned = 2 + s.below("abandoned", 2)
	s.m.maxAbandoned = s.w.maxAbandoned
	if s.habit.scheduled || s.chance("scheduled", 6) {
		s.m.schedule = &modelSchedule{kind: pick(s, "schedule", modelScheduleKinds), record: runlane.ScheduleRecord{ID: modelScheduleID}}
	}
	s.deploy(1+s.below("limit", mostSlots), false)
	s.mostSlots = s.d.limit
	return s
}

func (s *modelSequence) deploy(limit int, changed bool) {
	var kind *modelScheduleKind
	if s.m.schedule != nil {
		kind = s.m.schedule.kind
		changed = changed && kind.once == 0
	}
	s.d = s.w.deploy(limit, changed, kind)
	if s.mostSlots > 0 {
		s.mostSlots = max(s.mostSlots, limit)
	}
	if limit == 0 {
		s.mostSlots = 0
	}
}

// refused asks for an error of a code, or for none.
func (s *modelSequence) refused(what string, err error, code runlane.ErrorCode) {
	if runlane.CodeOf(err) != code || (err == nil) != (code == "") {
		s.fail("%s: %v, not %q", what, err, code)
	}
}

// advance lets time pass for everybody.
func (s *modelSequence) advance(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
	s.settle()
}

// settle brings the model to the present: attempts in progress may have ended by themselves meanwhile, one after the other.
func (s *modelSequence) settle() {
	present := time.Now().UTC()
	var ended []*modelAttempt
	for _, x := range s.inFlight {
		if x.finished {
			ended = append(ended, x)
		} else {
			s.mustRun(x, present)
		}
	}
	slices.SortStableFunc(ended, func(a, b *modelAttempt) int { return a.finishedAt.Compare(b.finishedAt) })
	for _, x := range ended {
		s.m.now = runlane.UTCMillis(x.finishedAt)
		s.ended(x)
	}
	s.inFlight = slices.DeleteFunc(s.inFlight, func(x *modelAttempt) bool { return x.finished })
	s.m.now = present
}

// mustRun finds an attempt that should have ended by now.
func (s *modelSequence) mustRun(x *modelAttempt, present time.Time) {
	end := x.model.ends
	if x.stubborn {
		end = end.Add(x.model.unwind)
	}
	if !x.model.ends.IsZero() && !present.Before(end) {
		s.fail("the attempt of run %s is still in progress; its time was over at %s", x.run, end)
	}
	run, bound := s.m.runs[x.run], modelLook
	if x.model.beats {
		bound = modelBeat
	}
	if !x.model.told.IsZero() && !x.stubborn {
		s.fail("the cancellation of run %s was requested here at %s, and its handler still waits", x.run, x.model.told)
	}
	if run != nil && run.owner == x && !x.stubborn && !x.muted && run.Status == runlane.StatusCancellationRequested &&
		present.Sub(run.requested) >= bound {
		s.fail("the cancellation of run %s was requested at %s, and its handler does not know", x.run, run.requested)
	}
}

// ended applies the end of an attempt, and asks whether it could have ended so.
func (s *modelSequence) ended(x *modelAttempt) {
	run := s.m.runs[x.run]
	if x.returnedAt.IsZero() { // left behind: it ignored the end of its context
		x.outcome, x.cause = outcome{kind: stops}, runlane.ErrTimeout
		if want := x.model.ends.Add(x.model.unwind); !x.finishedAt.Equal(want) {
			s.fail("the attempt of run %s was left behind at %s, not at %s", x.run, x.finishedAt, want)
		}
	} else if x.waits && !x.stubborn {
		s.checkCause(x, run)
	}
	s.note("  attempt of %s ended: %s, cause %v", x.run, x.outcome.kind, x.cause)
	s.settleChild(x)
	s.recorded(x, run)
}

// checkCause asks why the context of a handler ended that would have waited.
func (s *modelSequence) checkCause(x *modelAttempt, run *modelRun) {
	switch {
	case x.cause == nil:
	case errors.Is(x.cause, runlane.ErrTimeout) && x.returnedAt.Equal(x.model.ends):
		s.tally.add("seen", "timeout", 1)
	case errors.Is(x.cause, runlane.ErrCancelRequested) && run != nil && run.owner == x && run.Status == runlane.StatusCancellationRequested:
		s.tally.add("seen", "cancelled while running", 1)
		if told := x.model.told; !told.IsZero() {
			s.tally.add("seen", "cancelled at once", 1)
			if at := runlane.UTCMillis(x.returnedAt); at.After(runlane.UTCMillis(told)) {
				s.fail("the handler of run %s was told at %s of the cancellation requested here at %s", x.run, at, told)
			}
		}
	case errors.Is(x.cause, context.Canceled):
		s.tally.add("seen", "interrupted", 1)
	default:
		s.fail("the context of run %s ended with %v at %s", x.run, x.cause, x.returnedAt)
	}
}

// recorded applies the outcome of an attempt and holds it against the delivery's answer.
func (s *modelSequence) recorded(x *modelAttempt, run *modelRun) {
	s.tally.add("outcome", x.outcome.kind, 1)
	owns := s.m.end(run, x)
	switch {
	case x.outcome.kind == kills:
		s.refused("a dead process", x.err, runlane.ErrInternal)
	case x.err != nil:
		s.fail("the attempt of run %s: %v", x.run, x.err)
	case x.result == nil: // of RunNow, whose caller looks at the run
	case !owns && x.result.Ignored != core.IgnoredAbandoned:
		s.fail("the attempt of run %s recorded something, and had lost it: %+v", x.run, x.result)
	case owns && (x.result.Ignored != "" || x.result.Run.Status != x.model.status):
		s.fail("the attempt of run %s ended with %+v, not with %s", x.run, x.result, x.model.status)
	}
	if !owns {
		s.tally.add("seen", "lost lease", 1)
	}
}

// settleChild makes the run that a handler triggered.
func (s *modelSequence) settleChild(x *modelAttempt) {
	if x.outcome.kind != triggers {
		return
	}
	c := &modelCall{d: x.model.deployment, task: taskOf("once"), payload: payload{N: 77}, options: *x.childOption, parent: x.run}
	s.answered(c, x.child, x.childErr)
}

// answered holds the answer to a trigger against the model's, and makes the run.
func (s *modelSequence) answered(c *modelCall, got *runlane.TriggerResult, err error) *modelRun {
	if key := c.options.IdempotencyKey; key != "" {
		s.idempotencyKeys[modelKey{c.task.id, key}] = true
	}
	if key := c.options.SingletonKey; key != "" {
		s.singletonKeys[modelKey{c.task.id, key}] = true
	}
	want, created := s.m.resolve(c)
	switch {
	case created && (err != nil || got.Outcome != runlane.TriggerCreated):
		s.fail("trigger of %s made no run: %+v, %v", c.task.id, got, err)
	case created:
		return s.m.create(c, got.Run.ID)
	case want.existing != nil:
		s.tally.add("seen", "existing run", 1)
		if err != nil || got.Outcome != runlane.TriggerReturnedExisting || got.Run.ID != want.existing.ID || got.PayloadDiffers != want.differs {
			s.fail("trigger of %s returned %+v, %v, not run %s (payload differs: %t)", c.task.id, got, err, want.existing.ID, want.differs)
		}
	default:
		s.refusal(err, want)
	}
	return nil
}

func (s *modelSequence) refusal(err error, want modelAnswer) {
	s.refused("trigger", err, want.code)
	e, ok := errors.AsType[*runlane.Error](err)
	if !ok || e.Conflict != want.conflict || want.about != "" && e.RunID != want.about {
		s.fail("trigger: %+v, not %+v", err, want)
	}
	s.tally.add("refusal", cmp.Or(string(want.conflict), string(want.code)), 1)
}

// someRun draws one of the runs that a step is about, now and then any; nil when there is none.
func (s *modelSequence) someRun(wanted func(*modelRun) bool) *modelRun {
	return someOf(s, s.m.all(), wanted)
}
