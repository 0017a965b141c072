package core

import (
	"context"
	"iter"
	"strconv"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// EventOptions of [Runs.Events]. nil means all events, oldest first.
type EventOptions struct {
	// After resumes behind an event, see [EventCursor].
	After runlane.Cursor
	// Descending lists the newest event first; After then resumes towards older ones.
	Descending bool
	// Follow waits at the end for more events, until the run is terminal or the context ends. Not with Descending.
	Follow bool
}

// EventCursor is an event's place in its run's history, in both directions. Store it with your result of the event:
// [Runs.Events] continues behind it. With another run it is runlane.ErrValidationFailed.
func EventCursor(record *runlane.EventRecord) runlane.Cursor {
	return sealCursor(eventScope(record.Environment, record.RunID), strconv.FormatInt(record.Sequence, 10))
}

func eventScope(environment runlane.Environment, id runlane.RunID) string {
	return "events " + environment.Name() + " " + string(id)
}

// Events walks the history of one run, page by page. With Follow it then polls the run for more, after 10 ms, then at
// growing intervals up to 5 s, and ends behind the event that ends the run.
//
// An error is the last thing it yields:
//
//   - runlane.ErrRunNotFound: the run does not exist or was pruned meanwhile.
//   - runlane.ErrValidationFailed: the options are impossible.
//   - runlane.ErrOperationCancelled: ctx ended while it followed.
//   - runlane.ErrConfigurationInvalid: the runtime was closed meanwhile.
//
// The last event's cursor resumes after an error or a break, without gaps or repetitions.
func (r *Runs) Events(
	ctx context.Context, id runlane.RunID, options *EventOptions,
) iter.Seq2[runlane.EventRecord, error] {
	if options == nil {
		options = &EventOptions{}
	}
	return func(yield func(runlane.EventRecord, error) bool) {
		f := feed{rt: r.rt, id: id, options: *options, yield: yield}
		if err := f.walk(ctx); err != nil {
			yield(runlane.EventRecord{}, err)
		}
	}
}

type feed struct {
	rt      *Runtime
	id      runlane.RunID
	options EventOptions
	yield   func(runlane.EventRecord, error) bool

	after   int64          // the walk continues after this sequence; 0: from the beginning
	page    runlane.Cursor // the storage's cursor of the latest page
	any     bool           // an event was yielded or skipped
	stopped bool           // the caller wants no more
	ended   bool           // the run is terminal
}

// walk returns the last thing to yield, nil for none.
func (f *feed) walk(ctx context.Context) error {
	if err := f.rt.gate.enterLate(); err != nil {
		return err
	}
	defer f.rt.gate.leave()
	if err := firstError(f.check(), f.rt.operatorReads()); err != nil {
		return err
	}
	if err := f.read(ctx); err != nil || f.stopped {
		return err
	}
	if !f.any {
		if _, err := f.rt.get(ctx, f.id); err != nil {
			return err // an unknown run may list as empty
		}
	}
	if !f.options.Follow || f.ended {
		return nil
	}
	waiting, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer f.rt.gate.onClose(func() { cancel(errFeedClosed) })()
	err := f.follow(waiting)
	if context.Cause(waiting) == errFeedClosed { //nolint:errorlint // our own, never wrapped
		return errFeedClosed
	}
	return err
}

var errFeedClosed error = &runlane.Error{
	Code: runlane.ErrConfigurationInvalid, Message: "the runtime was closed while a feed followed a run",
	Hint: "resume with the cursor of the last event on another runtime",
}

func (f *feed) check() error {
	if err := f.id.Validate(); err != nil {
		return err
	}
	if f.options.Follow && f.options.Descending {
		return invalidInput("follow oldest first, or list the newest first without following",
			"EventOptions.Follow and EventOptions.Descending are both set")
	}
	if f.options.After == "" {
		return nil
	}
	text, err := openCursor(f.options.After, eventScope(f.rt.environment, f.id), "EventOptions.After")
	if err != nil {
		return err
	}
	f.after, err = strconv.ParseInt(text, 10, 64)
	if err != nil || f.after < 1 {
		return foreignCursor("EventOptions.After")
	}
	return nil
}

// read keeps the storage's cursor of the last page, so that the next read costs one page instead of the history.
func (f *feed) read(ctx context.Context) error {
	q := lane.EventQuery{
		PageQuery: lane.PageQuery{Environment: f.rt.environment, Limit: runlane.MaxPageLimit}, RunID: f.id,
		Descending: f.options.Descending,
	}
	if f.options.Follow {
		q.Limit = runlane.DefaultPageLimit // the last page is read repeatedly
	}
	for {
		q.After = f.page
		page, err := f.rt.storage().ListRunEvents(ctx, &q)
		if err != nil {
			return err
		}
		for i := range page.Items {
			record := &page.Items[i]
			f.any = true
			f.ended = f.ended || effectOf(record).final
			if !f.isBehind(record.Sequence) {
				continue
			}
			f.after = record.Sequence
			if !f.yield(*record, nil) {
				f.stopped = true
				return nil
			}
		}
		if page.Next == "" {
			return nil
		}
		f.page = page.Next
	}
}

// isBehind reports an event that is still to be yielded.
func (f *feed) isBehind(sequence int64) bool {
	if f.options.Descending {
		return f.after == 0 || sequence < f.after
	}
	return sequence > f.after
}

func (f *feed) follow(ctx context.Context) error {
	wait := waitFirst
	for !f.ended {
		if !pause(ctx, f.rt.world.around(wait)) {
			return cancelled(ctx, f.id)
		}
		wait = min(wait*3/2, waitLast)
		runs, err := f.rt.storage().GetRuns(ctx, &lane.RunsQuery{
			Environment: f.rt.environment, IDs: []runlane.RunID{f.id}, WithoutPayload: true,
		})
		switch {
		case err != nil && ctx.Err() != nil:
			return cancelled(ctx, f.id)
		case err != nil:
			return err
		case len(runs) == 0:
			return &runlane.Error{
				Code:    runlane.ErrRunNotFound,
				Message: "the run was removed while its events were followed",
				RunID:   f.id,
			}
		case runs[0].EventSequence <= f.after:
			continue
		}
		err = f.read(ctx)
		if err != nil && ctx.Err() != nil {
			return cancelled(ctx, f.id)
		}
		if err != nil || f.stopped {
			return err
		}
		wait = waitFirst
	}
	return nil
}

// operatorReads rejects reads that the lane hides or its storage cannot do.
func (rt *Runtime) operatorReads() error {
	if rt.lane.OperatorReads {
		return nil
	}
	return unsupported("the lane does not expose its runs and events to operators")
}
