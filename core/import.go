package core

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// parkedUntil is the due time of a run whose history is written in part: nothing looks at it before, and it does not
// add up to its history.
var parkedUntil = time.Date(2200, time.January, 1, 0, 0, 0, 0, time.UTC)

// Import writes what [Runtime.Export] wrote into the runtime's environment, which has to have the same name. The whole
// file is read first: one that was cut off or changed, or a history that does not fold, is
// [runlane.ErrValidationFailed], and nothing is written.
//
// A run is written with its history, its times and its keys; a run that waits goes on here, its wakeup is sent by the
// next tick at the latest. An import that was interrupted is repeated with the same file: what is there is compared and
// left alone. A run with the same id and another history is [runlane.ErrStorageConflict]. Until it has ended, let
// nothing else trigger into the environment.
func (rt *Runtime) Import(ctx context.Context, from io.ReadSeeker) (*Moved, error) {
	end, err := rt.judgeImport(from)
	if err != nil {
		return nil, err
	}
	if _, err := from.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	moved := &Moved{Runs: end.Runs, Schedules: end.Schedules, Tasks: end.Tasks}
	err = eachLine(from, nil, func(l *exportLine) error {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		switch {
		case l.Task != nil:
			return rt.importTask(ctx, l.Task)
		case l.Schedule != nil:
			return rt.importSchedule(ctx, l.Schedule)
		case l.Run != nil:
			written, err := rt.importRun(ctx, l.Run)
			if written {
				moved.Written++
			}
			return err
		default:
			return nil
		}
	})
	return moved, err
}

// eachLine reads lines; sum, if any, gets all that were read before each call.
func eachLine(from io.Reader, sum hash.Hash, line func(*exportLine) error) error {
	reader := bufio.NewReaderSize(from, 1<<20)
	for number := 1; ; number++ {
		text, err := reader.ReadBytes('\n')
		if errors.Is(err, io.EOF) && len(text) == 0 {
			return nil
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		var l exportLine
		if err := json.Unmarshal(text, &l); err != nil {
			return badImport(err, "line %d cannot be read", number)
		}
		if l.Run != nil {
			l.Run.giveBodies()
		}
		if err := line(&l); err != nil {
			return err
		}
		if sum != nil {
			_, _ = sum.Write(text)
		}
	}
}

func badImport(cause error, format string, args ...any) error {
	return &runlane.Error{
		Code:    runlane.ErrValidationFailed,
		Message: fmt.Sprintf(format, args...) + ": nothing was written",
		Hint:    "give a whole file that \"export\" of this version, or of an older one, wrote",
		Cause:   cause,
	}
}

// judgeImport reads the whole file and folds every history.
func (rt *Runtime) judgeImport(from io.Reader) (*exportEnd, error) {
	sum := sha256.New()
	var have exportEnd
	var end *exportEnd
	number := 0
	err := eachLine(from, sum, func(l *exportLine) error {
		number++
		switch {
		case end != nil:
			return badImport(nil, "something follows the last line")
		case (number == 1) != (l.Head != nil):
			return badImport(nil, "the first line, and no other, has to say what the file is")
		case l.Head != nil:
			return rt.judgeHead(l.Head)
		case l.End != nil:
			have.SHA256, end = hex.EncodeToString(sum.Sum(nil)), l.End
		case l.Task != nil:
			have.Tasks++
		case l.Schedule != nil:
			have.Schedules++
		case l.Run != nil:
			have.Runs++
			return rt.judgeRun(l.Run)
		default:
			return badImport(nil, "line %d has nothing that this version knows", number)
		}
		return nil
	})
	switch {
	case err != nil:
		return nil, err
	case end == nil:
		return nil, badImport(nil, "the file was cut off: its last line is missing")
	case *end != have:
		return nil, badImport(nil, "the file was changed: it has other lines than its last line says")
	}
	return end, nil
}

func (rt *Runtime) judgeHead(h *exportHead) error {
	switch {
	case h.Format != exportFormat:
		return badImport(nil, "the file is of format %d, this program reads %d", h.Format, exportFormat)
	case h.Environment.Name() != rt.environment.Name():
		return badImport(nil, "the file has environment %q, this is %q", h.Environment.Name(), rt.environment.Name())
	}
	return nil
}

func (rt *Runtime) judgeRun(r *exportRun) error {
	run, err := r.fold(len(r.Events))
	switch {
	case err != nil:
		return badImport(err, "the history of run %q does not fold", r.ID)
	case run.ID != r.ID || run.Environment.Name() != rt.environment.Name():
		return badImport(nil, "run %q has the history of another", r.ID)
	case run.Lease.Token != "":
		return badImport(nil, "an attempt executes run %q", r.ID)
	}
	return nil
}

func (rt *Runtime) importTask(ctx context.Context, record *runlane.TaskRecord) error {
	catalog, ok := lane.As[lane.TaskCatalog](rt.storage())
	if !ok {
		return nil
	}
	return catalog.PutTask(ctx, &lane.PutTaskCommand{Environment: rt.environment, Record: *record})
}

// importSchedule writes a record, unless there is one by now: of an import before, or of a tick since.
func (rt *Runtime) importSchedule(ctx context.Context, record *runlane.ScheduleRecord) error {
	_, err := rt.stored().GetSchedule(ctx, lane.ScheduleKey{Environment: rt.environment, ScheduleID: record.ID})
	if !errors.Is(err, runlane.ErrScheduleNotFound) {
		return err
	}
	fresh := *record
	fresh.Version = 0
	_, err = rt.stored().PutSchedule(ctx, &lane.PutScheduleCommand{Environment: rt.environment, Record: fresh})
	return err
}

// importRun writes what is missing of a run's history.
func (rt *Runtime) importRun(ctx context.Context, r *exportRun) (written bool, err error) {
	have, err := rt.judgePresent(ctx, r)
	if err != nil {
		return false, err
	}
	for have < len(r.Events) {
		next := r.nextPart(have)
		if err := rt.importPart(ctx, r, have, next); err != nil {
			return written, err
		}
		have, written = next, true
	}
	run, err := r.fold(len(r.Events))
	if err != nil || r.Owns || run.IdempotencyKey == "" {
		return written, err
	}
	return written, rt.releaseKey(ctx, run)
}

// releaseKey frees a key that the run did not own where it comes from: an operator had reset it.
func (rt *Runtime) releaseKey(ctx context.Context, run *runlane.Run) error {
	owner, err := rt.stored().GetRunByIdempotencyKey(ctx, ownerOf(run))
	if errors.Is(err, runlane.ErrRunNotFound) || err == nil && owner.ID != run.ID {
		return nil
	}
	if err == nil {
		err = rt.stored().ResetIdempotencyKey(ctx, ownerOf(run))
	}
	return err
}

// judgePresent is how many of the events are there already.
func (rt *Runtime) judgePresent(ctx context.Context, r *exportRun) (int, error) {
	run, err := rt.stored().GetRun(ctx, lane.RunKey{Environment: rt.environment, RunID: r.ID})
	if errors.Is(err, runlane.ErrRunNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	there := &exportRun{ID: r.ID}
	err = eachPage(rt, func(q *lane.PageQuery) (runlane.Cursor, error) {
		page, err := rt.stored().ListRunEvents(ctx, &lane.EventQuery{PageQuery: *q, RunID: r.ID})
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
func (r *exportRun) nextPart(have int) int {
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

// importedHash is what a later trigger of the same key is compared with. Where there is a codec, none is kept.
func (rt *Runtime) importedHash(run *runlane.Run, payload []byte) string {
	if run.IdempotencyKey == "" || rt.coded || isCoded(payload) {
		return ""
	}
	return payloadHash(payload)
}

// importPart commits some events. Before the last ones the run is parked: as one that is due in 2200.
func (rt *Runtime) importPart(ctx context.Context, r *exportRun, have, next int) error {
	run, err := r.fold(next)
	if err != nil {
		return err
	}
	whole := next == len(r.Events)
	if !whole {
		run = run.Clone()
		run.Status, run.RunAt, run.FinishedAt = runlane.StatusScheduled, parkedUntil, time.Time{}
		run.Lease, run.DispatchExpiresAt = runlane.Lease{}, time.Time{}
	}
	queue := runlane.Queue{}
	if !run.DispatchExpiresAt.IsZero() { // it holds a slot, until then
		queue = runlane.Queue{Name: run.Queue, Concurrency: runlane.MaxQueueConcurrency}
	}
	_, err = rt.stored().AppendRunEvents(ctx, &lane.AppendCommand{
		Transition: lane.Transition{
			ExpectedSequence: int64(have),
			Events:           r.events(next)[have:],
			Projected:        run,
			Queue:            queue,
			PayloadHash:      rt.importedHash(run, r.Payload),
			WithoutRecords:   true,
		},
		Outbox: lane.InitialOutbox{Published: !whole || run.Status.Terminal()},
	})
	return err
}
