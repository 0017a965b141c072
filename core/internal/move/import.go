package move

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"slices"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core/internal/fail"
	"github.com/runlane/runlane-go/lane"
)

// parkedUntil is the due time of a run whose history is written in part: nothing looks at it before, and it does not
// add up to its history.
var parkedUntil = time.Date(2200, time.January, 1, 0, 0, 0, 0, time.UTC)

// Import writes a file of Export into the environment. Nothing is written before the whole file is judged.
func (m *Mover) Import(ctx context.Context, from io.ReadSeeker) (*Moved, error) {
	plan, err := judgeFile(from, m.Limits)
	if err != nil {
		return nil, err
	}
	if plan.environment.Name() != m.Environment.Name() {
		return nil, badImport(
			nil, "the file has environment %q, this is %q", plan.environment.Name(), m.Environment.Name())
	}
	moved := &Moved{
		Runs:      plan.last.Runs,
		Schedules: plan.last.Schedules,
		Tasks:     plan.last.Tasks,
		Flows:     plan.last.Flows,
		Unordered: slices.DeleteFunc(plan.ordered, m.Host.Ordered),
	}
	for pass := passBefore; pass < passes; pass++ {
		if !slices.Contains(plan.passes, pass) {
			continue
		}
		if _, err := from.Seek(0, io.SeekStart); err != nil {
			return moved, err
		}
		in := func(line int) bool { return line <= len(plan.passes) && plan.passes[line-1] == pass }
		err := eachLine(from, nil, in, func(l *line) error { return m.importLine(ctx, l, moved) })
		if err != nil {
			return moved, err
		}
	}
	return moved, m.resumeCallers(ctx, plan.callers)
}

// resumeCallers lets runs go on that wait for others that they have called: no end that came where they are from is
// told here. Their handlers call again, find the runs that are there, and look for those that no one tells of.
func (m *Mover) resumeCallers(ctx context.Context, callers map[runlane.RunID]int64) error {
	for id, sequence := range callers {
		run, err := m.Host.Bare(ctx, id)
		if err != nil {
			return err
		}
		if run.EventSequence != sequence {
			continue // it has gone on since an import before
		}
		body := &runlane.RunResumed{By: runlane.WaitingChildren}
		if names := run.Waiting.Names; len(names) > 0 { // a large wait keeps none
			body.Name = names[0]
		}
		err = m.Host.Resume(ctx, run, body)
		if fail.IsConflict(err, runlane.ConflictEventSequence) {
			continue
		}
		if err != nil {
			return ofRun(id, err)
		}
	}
	return nil
}

func (m *Mover) importLine(ctx context.Context, l *line, moved *Moved) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	switch {
	case l.Task != nil:
		return m.importTask(ctx, l.Task)
	case l.Schedule != nil:
		return m.importSchedule(ctx, l.Schedule)
	case l.Flow != nil:
		return m.importFlow(ctx, l.Flow)
	default:
		written, err := m.importRun(ctx, l.Run)
		if written {
			moved.Written++
		}
		return ofRun(l.Run.ID, err)
	}
}

// ofRun says which run of the file a conflict is about. One on a key names its owner, too.
func ofRun(id runlane.RunID, err error) error {
	lost, ok := errors.AsType[*runlane.Error](err)
	if !ok || lost.Code != runlane.ErrStorageConflict {
		return err
	}
	named := *lost
	named.Message, named.Cause = fmt.Sprintf("run %q: %s", id, lost.Message), err
	if lost.RunID != "" && lost.RunID != id {
		named.Message += fmt.Sprintf(": run %q", lost.RunID)
	}
	return &named
}

// eachLine reads the lines whose numbers are wanted, nil for all; sum, if any, gets all that were read before each
// call.
func eachLine(from io.Reader, sum hash.Hash, wanted func(int) bool, each func(*line) error) error {
	reader := bufio.NewReaderSize(from, 1<<20)
	for number := 1; ; number++ {
		text, err := reader.ReadBytes('\n')
		if errors.Is(err, io.EOF) && len(text) == 0 {
			return nil
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if wanted != nil && !wanted(number) {
			continue
		}
		var l line
		if err := json.Unmarshal(text, &l); err != nil {
			return badImport(err, "line %d cannot be read", number)
		}
		if l.Run != nil {
			l.Run.giveBodies()
			l.Run.dropReservation()
		}
		if err := each(&l); err != nil {
			return err
		}
		if sum != nil {
			_, _ = sum.Write(text)
		}
	}
}

// keeps are the commands that keep what the run remembers.
func (r *movedRun) keeps(environment runlane.Environment, createdAt time.Time) []*lane.KeepCommand {
	commands := make([]*lane.KeepCommand, len(r.Records))
	for i, record := range r.Records {
		commands[i] = &lane.KeepCommand{
			RunKey:    lane.RunKey{Environment: environment, RunID: r.ID},
			CreatedAt: createdAt,
			Record:    record.StepRecord,
		}
		commands[i].Record.Result = record.Result
	}
	return commands
}

func (m *Mover) importTask(ctx context.Context, record *runlane.TaskRecord) error {
	if !m.keepsTasks() {
		return nil
	}
	return m.Host.Storage().PutTask(ctx, &lane.PutTaskCommand{Environment: m.Environment, Record: *record})
}

// importSchedule writes a record, unless there is one by now: of an import before, or of a tick since.
func (m *Mover) importSchedule(ctx context.Context, record *runlane.ScheduleRecord) error {
	_, err := m.Host.Stored().GetSchedule(ctx, lane.ScheduleKey{Environment: m.Environment, ScheduleID: record.ID})
	if !errors.Is(err, runlane.ErrScheduleNotFound) {
		return err
	}
	_, err = m.Host.Stored().PutSchedule(ctx, newSchedule(m.Environment, record))
	return err
}

// newSchedule puts a record where there is none.
func newSchedule(environment runlane.Environment, record *runlane.ScheduleRecord) *lane.PutScheduleCommand {
	c := &lane.PutScheduleCommand{Environment: environment, Record: *record}
	c.Record.Version = 0
	return c
}

// importRun writes what is missing of a run's history.
func (m *Mover) importRun(ctx context.Context, r *movedRun) (written bool, err error) {
	have, err := m.judgePresent(ctx, r)
	if err != nil {
		return false, err
	}
	for kept := false; have < len(r.Events) || !kept; {
		if have > 0 && !kept {
			if err := m.importRecords(ctx, r); err != nil {
				return written, err
			}
			kept = true
			continue
		}
		next := r.nextPart(have)
		if have == 0 && len(r.Records) > 0 {
			next = 1 // the run is parked: no attempt begins before it has its records
		}
		if err := m.importPart(ctx, r, have, next); err != nil {
			return written, err
		}
		have, written = next, true
	}
	run, err := r.fold(len(r.Events))
	if err != nil || r.Owns || run.IdempotencyKey == "" {
		return written, err
	}
	return written, m.releaseKey(ctx, run)
}

// importRecords keeps what the run remembers. What is there already, of an import before, has to be the same.
func (m *Mover) importRecords(ctx context.Context, r *movedRun) error {
	if len(r.Records) == 0 {
		return nil
	}
	run, err := r.fold(1)
	if err != nil {
		return err
	}
	for _, command := range r.keeps(m.Environment, run.CreatedAt) {
		kept, err := m.Host.Stored().KeepRecord(ctx, command)
		if err != nil {
			return err
		}
		if !lane.SameRecord(kept, &command.Record) {
			e := runlane.NewConflict(runlane.ConflictEventSequence, "the run is there and remembers something else")
			e.RunID, e.Hint = r.ID, "import into an environment that has no such run"
			return e
		}
	}
	return nil
}

// releaseKey frees a key that the run did not own where it comes from: an operator had reset it.
func (m *Mover) releaseKey(ctx context.Context, run *runlane.Run) error {
	owner, err := m.Host.Stored().GetRunByIdempotencyKey(ctx, ownerOf(run))
	if errors.Is(err, runlane.ErrRunNotFound) || err == nil && owner.ID != run.ID {
		return nil
	}
	if err == nil {
		err = m.Host.Stored().ResetIdempotencyKey(ctx, ownerOf(run))
	}
	return err
}

// judgePresent is how many of the events are there already.
func (m *Mover) judgePresent(ctx context.Context, r *movedRun) (int, error) {
	run, err := m.Host.Stored().GetRun(ctx, lane.RunKey{Environment: m.Environment, RunID: r.ID})
	if errors.Is(err, runlane.ErrRunNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	there := &movedRun{ID: r.ID}
	err = m.eachPage(func(q *lane.PageQuery) (runlane.Cursor, error) {
		page, err := m.Host.Stored().ListRunEvents(ctx, &lane.EventQuery{PageQuery: *q, RunID: r.ID})
		if err != nil {
			return "", err
		}
		there.Events = append(there.Events, page.Items...)
		return page.Next, nil
	})
	if err != nil {
		return 0, err
	}
	there.takeBodies()
	there.dropReservation()
	same := min(len(there.Events), len(r.Events))
	differs := !bytes.Equal(there.Payload, r.Payload)
	for i := range same {
		differs = differs || !sameEvent(&there.Events[i].Event, &r.Events[i].Event)
	}
	if differs || same < len(r.Events) && !run.RunAt.Equal(parkedUntil) {
		e := runlane.NewConflict(runlane.ConflictEventSequence, "the run is there with another history")
		e.RunID, e.Hint = r.ID, "import into an environment that has no such run"
		return 0, e
	}
	return same, nil
}

func sameEvent(a, b *runlane.Event) bool {
	first, firstErr := json.Marshal(a.AtRest())
	second, secondErr := json.Marshal(b.AtRest())
	return firstErr == nil && secondErr == nil && bytes.Equal(first, second)
}

// nextPart is where the next commit ends. The last commit of a run that ended has its last event, since a storage frees
// keys when a run that is there ends; that of a run that waits has the request of its wakeup, which makes it.
func (r *movedRun) nextPart(have int) int {
	last := len(r.Events)
	final := 0
	for i := range r.Events {
		switch r.Events[i].Body.(type) {
		case *runlane.RunDeliveryRequested:
			final = i
		case *runlane.RunSucceeded, *runlane.RunFailed, *runlane.RunCancelled:
			final = i
		default: // neither
		}
	}
	ended := false
	if run, err := r.fold(last); err == nil {
		ended = run.Status.Terminal()
	}
	switch {
	case !ended && last-have <= lane.MaxCommitEvents:
		return last
	case have < final:
		return min(final, have+lane.MaxCommitEvents)
	default:
		return min(last, have+lane.MaxCommitEvents)
	}
}

// part is the commit of some events. Before the last ones the run is parked: as one that is due in 2200.
func (r *movedRun) part(have, next int) (*lane.Transition, error) {
	run, err := r.fold(next)
	if err != nil {
		return nil, err
	}
	if next < len(r.Events) {
		run = run.Clone()
		run.Status, run.RunAt, run.FinishedAt = runlane.StatusScheduled, parkedUntil, time.Time{}
		run.Lease, run.DispatchedAt, run.DispatchExpiresAt = runlane.Lease{}, time.Time{}, time.Time{}
	}
	return &lane.Transition{
		ExpectedSequence: int64(have),
		Events:           r.events(next)[have:],
		Projected:        run,
		WithoutRecords:   true,
	}, nil
}

// importPart commits some events. No queue has a limit here: the run holds no slot.
func (m *Mover) importPart(ctx context.Context, r *movedRun, have, next int) error {
	part, err := r.part(have, next)
	if err != nil {
		return err
	}
	if part.Projected.IdempotencyKey != "" {
		part.PayloadHash = m.Host.PayloadHash(r.Payload)
	}
	_, err = m.Host.Stored().AppendRunEvents(ctx, &lane.AppendCommand{
		Transition: *part,
		Outbox:     lane.InitialOutbox{Published: next < len(r.Events) || part.Projected.Status.Terminal()},
	})
	return err
}

// dropReservation takes the slot from a run that waits with one: slots belong to the lane where they are. The run gets
// another when it is executed.
func (r *movedRun) dropReservation() {
	for i := len(r.Events) - 1; i >= 0; i-- {
		switch body := r.Events[i].Body.(type) {
		case *runlane.RunResumed: // leaves it
		case *runlane.RunDeliveryRequested:
			without := *body
			without.Delivery.DispatchExpiresAt = time.Time{}
			r.Events[i].Body = &without
			return
		default: // ended it, if there was one
			return
		}
	}
}
