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

// parkedUntil is the due time of a run with a partly written history: nobody looks at it before then, and it differs
// from the run's history.
var parkedUntil = time.Date(2200, time.January, 1, 0, 0, 0, 0, time.UTC)

// Import writes a file of Export into the environment. It first validates the whole file.
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

// resumeCallers resumes runs that wait for children, because ends of the source environment notify nobody here. Their
// handlers call again, find the existing children, and check their ends.
func (m *Mover) resumeCallers(ctx context.Context, callers map[runlane.RunID]int64) error {
	for id, sequence := range callers {
		run, err := m.Host.Bare(ctx, id)
		if err != nil {
			return err
		}
		if run.EventSequence != sequence {
			continue // it has continued since an earlier import
		}
		body := &runlane.RunResumed{By: runlane.WaitingChildren}
		if names := run.Waiting.Names; len(names) > 0 { // a large wait has none
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

// ofRun names the run of a conflict, and for a conflict on a key its owner.
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

// eachLine reads the lines with wanted numbers, nil for all. Before each call, sum (if not nil) has all earlier lines.
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

// steps counts the records without logs.
func (r *movedRun) steps() (n int) {
	for i := range r.Records {
		if r.Records[i].Kind != runlane.StepKindLog {
			n++
		}
	}
	return n
}

// keeps returns the commands that write the run's records.
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

// importSchedule writes a record unless there is one, from an earlier import or a tick.
func (m *Mover) importSchedule(ctx context.Context, record *runlane.ScheduleRecord) error {
	_, err := m.Host.Stored().GetSchedule(ctx, lane.ScheduleKey{Environment: m.Environment, ScheduleID: record.ID})
	if !errors.Is(err, runlane.ErrScheduleNotFound) {
		return err
	}
	_, err = m.Host.Stored().PutSchedule(ctx, newSchedule(m.Environment, record))
	return err
}

func newSchedule(environment runlane.Environment, record *runlane.ScheduleRecord) *lane.PutScheduleCommand {
	c := &lane.PutScheduleCommand{Environment: environment, Record: *record}
	c.Record.Version = 0
	return c
}

// importRun writes the missing part of a run's history.
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
			next = 1 // park the run: no attempt may begin before its records exist
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

// importRecords writes the run's records. Records of an earlier import must be the same.
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
			e := runlane.NewConflict(runlane.ConflictEventSequence, "the run exists with other records")
			e.RunID, e.Hint = r.ID, "import into an environment that has no such run"
			return e
		}
	}
	return nil
}

// releaseKey frees a key that the run did not own in its source environment, because an operator had reset it.
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

// judgePresent returns how many of the events exist already.
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
		e := runlane.NewConflict(runlane.ConflictEventSequence, "the run exists with another history")
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

// nextPart returns the end of the next commit. The last commit of an ended run contains its last event, because a
// storage frees keys when an existing run ends. The last commit of a waiting run contains its delivery request, which
// makes the wakeup.
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

// part is the commit of some events. All but the last commit park the run: due in 2200.
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

// importPart commits some events. It passes no queue limit: the run holds no slot.
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

// dropReservation removes the slot of a waiting run, because slots belong to the source lane. The run gets a new one
// here.
func (r *movedRun) dropReservation() {
	for i := len(r.Events) - 1; i >= 0; i-- {
		switch body := r.Events[i].Body.(type) {
		case *runlane.RunResumed: // keeps it
		case *runlane.RunDeliveryRequested:
			without := *body
			without.Delivery.DispatchExpiresAt = time.Time{}
			r.Events[i].Body = &without
			return
		default: // has ended it
			return
		}
	}
}
