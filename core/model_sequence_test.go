package core_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"strings"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
)

// modelSequence is one random life: the real thing, the model, and what a step may choose from.
type modelSequence struct {
	r        *rapid.T
	ctx      context.Context //nolint:containedctx // the sequence is one call
	w        *modelWorld
	m        *model
	d        *modelDeployment // the latest
	stranger *core.Runtime    // knows no queue; opened when it is asked
	checker  lane.Checker
	coverage *modelCoverage
	habits   *modelHabit

	inFlight        []*modelAttempt
	mail            []modelMail
	idempotencyKeys map[modelKey]bool
	singletonKeys   map[modelKey]bool
	repeats         map[modelRepeat]runlane.RunID
	checked         int // the model's changes, at the last check of the storage
	mostSlots       int // the largest limit so far; 0: there was none
	history         []modelNote
}

// modelMail is a wakeup that the transport has.
type modelMail struct {
	run     runlane.RunID
	arrives time.Time
}

type modelRepeat struct {
	source runlane.RunID
	kind   runlane.SourceType
}

const modelKeyOne = "one"

// modelKeys are the concurrency keys in use.
var modelKeys = []string{"", "a"}

func newModelSequence(r *rapid.T, coverage *modelCoverage) *modelSequence {
	s := &modelSequence{
		r: r, ctx: context.Background(), w: newModelWorld(), m: newModel(time.Now().UTC()), coverage: coverage,
		idempotencyKeys: map[modelKey]bool{}, singletonKeys: map[modelKey]bool{}, repeats: map[modelRepeat]runlane.RunID{},
	}
	r.Cleanup(s.w.close)
	s.w.random = pick(s, "jitter", []uint64{0, 1 << 63, 1<<64 - 1})
	s.checker, _ = lane.As[lane.Checker](lane.Storage(s.w.storage))
	s.habits = pick(s, "habits", modelHabits)
	s.did("habits: %s", s.habits.name)
	s.w.maxAbandoned = 2 + s.below("abandoned", 2)
	s.m.maxAbandoned = s.w.maxAbandoned
	if s.habits.scheduled || s.chance("scheduled", 6) {
		s.m.schedule = &modelSchedule{kind: pick(s, "schedule", modelScheduleKinds), record: runlane.ScheduleRecord{ID: modelScheduleID}}
	}
	s.deploy(1+s.below("limit", modelMostSlots), false)
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

// modelNote is what a step did, written out only when the sequence fails.
type modelNote struct {
	at     time.Time
	format string
	args   []any
}

// fail ends the sequence, with everything that led here.
func (s *modelSequence) fail(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	for _, note := range s.history {
		text += "\n" + note.at.Format("02T15:04:05.000 ") + fmt.Sprintf(note.format, note.args...)
	}
	s.r.Fatal(text)
}

// did notes what a step does.
func (s *modelSequence) did(format string, args ...any) {
	s.history = append(s.history, modelNote{s.m.now, format, args})
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
		x.outcome, x.cause = modelOutcome{kind: outcomeContext}, runlane.ErrTimeout
		if want := x.model.ends.Add(x.model.unwind); !x.finishedAt.Equal(want) {
			s.fail("the attempt of run %s was left behind at %s, not at %s", x.run, x.finishedAt, want)
		}
	} else if x.waits && !x.stubborn {
		s.checkCause(x, run)
	}
	s.did("  attempt of %s ended: %s, cause %v", x.run, x.outcome.kind, x.cause)
	s.settleChild(x)
	s.recorded(x, run)
}

// checkCause asks why the context of a handler ended that would have waited.
func (s *modelSequence) checkCause(x *modelAttempt, run *modelRun) {
	switch {
	case x.cause == nil:
	case errors.Is(x.cause, runlane.ErrTimeout) && x.returnedAt.Equal(x.model.ends):
		s.coverage.add("seen", "timeout")
	case errors.Is(x.cause, runlane.ErrCancelRequested) && run != nil && run.owner == x && run.Status == runlane.StatusCancellationRequested:
		s.coverage.add("seen", "cancelled while running")
		if told := x.model.told; !told.IsZero() {
			s.coverage.add("seen", "cancelled at once")
			if at := runlane.UTCMillis(x.returnedAt); at.After(runlane.UTCMillis(told)) {
				s.fail("the handler of run %s was told at %s of the cancellation requested here at %s", x.run, at, told)
			}
		}
	case errors.Is(x.cause, context.Canceled):
		s.coverage.add("seen", "interrupted")
	default:
		s.fail("the context of run %s ended with %v at %s", x.run, x.cause, x.returnedAt)
	}
}

// recorded applies the outcome of an attempt and holds it against the delivery's answer.
func (s *modelSequence) recorded(x *modelAttempt, run *modelRun) {
	s.coverage.add("outcome", x.outcome.kind)
	owns := s.m.end(run, x)
	switch {
	case x.outcome.kind == outcomeDies:
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
		s.coverage.add("seen", "lost lease")
	}
}

// settleChild makes the run that a handler triggered.
func (s *modelSequence) settleChild(x *modelAttempt) {
	if x.outcome.kind != outcomeChild {
		return
	}
	c := &modelCall{d: x.model.deployment, task: modelTaskOf("once"), payload: modelPayload{N: 77}, options: *x.childOption, parent: x.run}
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
		s.coverage.add("seen", "existing run")
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
	s.coverage.add("refusal", cmp.Or(string(want.conflict), string(want.code)))
}

// pick draws one of several.
func pick[T any](s *modelSequence, label string, list []T) T { return list[s.below(label, len(list))] }

var modelBit = rapid.Bool()

// below draws a number below n, each as likely as the others: rapid's own generators of numbers prefer small ones.
func (s *modelSequence) below(label string, n int) int {
	drawn, length := 0, bits.Len(uint(n-1))
	if n&(n-1) != 0 {
		length += 2 // so that what does not divide evenly matters little
	}
	for range length {
		drawn <<= 1
		if modelBit.Draw(s.r, label) {
			drawn++
		}
	}
	return drawn * n >> length
}

// chance is true once in so many times.
func (s *modelSequence) chance(label string, in int) bool { return s.below(label, in) == in-1 }

// someRun draws one of the runs that a step is about, now and then any; nil when there is none.
func (s *modelSequence) someRun(wanted func(*modelRun) bool) *modelRun {
	runs := s.m.all()
	if !s.chance("any", 10) {
		runs = slices.DeleteFunc(runs, func(run *modelRun) bool { return !wanted(run) })
	}
	if len(runs) == 0 {
		return nil
	}
	return pick(s, "run", runs)
}

// modelCoverage counts what was reached.
type modelCoverage struct{ counts map[string]int }

func (c *modelCoverage) add(kind, value string) { c.counts[kind+": "+value]++ }

// steps of all kinds.
func (c *modelCoverage) steps() (n int) {
	for name, count := range c.counts {
		if strings.HasPrefix(name, "step: ") {
			n += count
		}
	}
	return n
}

func (c *modelCoverage) merge(other *modelCoverage) {
	for name, n := range other.counts {
		c.counts[name] += n
	}
}

func (c *modelCoverage) String() string {
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(c.counts)) {
		lines = append(lines, fmt.Sprintf("%9d  %s", c.counts[name], name))
	}
	return strings.Join(lines, "\n")
}
