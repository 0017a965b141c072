package core

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// FeedOptions of [Runs.Feed]. nil means events from now on, without following.
type FeedOptions struct {
	// After resumes behind an event: the cursor of a [FeedRecord], or of [Runs.FeedStart]. "" means from now on.
	After runlane.Cursor
	// Follow waits at the end for more events, until the context ends.
	Follow bool
}

// FeedRecord is an event of the environment's feed.
type FeedRecord struct {
	runlane.EventRecord

	// Cursor resumes behind this event.
	Cursor runlane.Cursor
}

const (
	feedPage = 256
	// feedLast is the longest pause between two reads.
	feedLast = 500 * time.Millisecond
)

// FeedStart returns the cursor of now: [Runs.Feed] with it yields every event committed after this call. The very first
// call begins the storage's feed. Errors as with Feed.
func (r *Runs) FeedStart(ctx context.Context) (runlane.Cursor, error) {
	w := feedWalk{rt: r.rt}
	if err := w.open(); err != nil {
		return "", err
	}
	defer r.rt.gate.leave()
	position, err := w.rt.storage().BeginFeed(ctx)
	if err != nil {
		return "", err
	}
	return r.rt.feedCursor(position, 0), nil
}

func feedScope(environment runlane.Environment) string { return "feed " + environment.Name() }

// feedCursor is the place behind an event, or with sequence 0 behind its commit.
func (rt *Runtime) feedCursor(position lane.FeedPosition, sequence int64) runlane.Cursor {
	return sealCursor(feedScope(rt.environment), fmt.Sprintf("%d.%d.%d", position.Number, position.Tag, sequence))
}

// Feed walks the events of all runs of the environment in commit order, without gaps or repetitions. Events of runs
// pruned meanwhile are left out. With Follow it polls for more, after 10 ms, then at growing intervals up to half a
// second.
//
// A feed keeps at least the latest 100,000 commits. An error is the last thing it yields:
//
//   - runlane.ErrCapabilityUnsupported: the storage keeps no order of commits; those of memory and of a file do.
//   - runlane.ErrValidationFailed: the cursor is of another request, or its place is no longer kept.
//   - runlane.ErrOperationCancelled: ctx ended.
//   - runlane.ErrConfigurationInvalid: the runtime was closed meanwhile.
//
// The last record's cursor resumes after a break, and after any error but the first two.
func (r *Runs) Feed(ctx context.Context, options *FeedOptions) iter.Seq2[FeedRecord, error] {
	if options == nil {
		options = &FeedOptions{}
	}
	return func(yield func(FeedRecord, error) bool) {
		w := feedWalk{rt: r.rt, options: *options, yield: yield}
		if err := w.walk(ctx); err != nil {
			yield(FeedRecord{}, err)
		}
	}
}

type feedWalk struct {
	rt      *Runtime
	options FeedOptions
	yield   func(FeedRecord, error) bool

	after   lane.FeedPosition // the walk continues behind it
	partly  lane.FeedPosition // a commit yielded up to seen; zero: none
	again   bool              // read the commit at after once more
	seen    int64
	stopped bool // the caller wants no more
}

// open enters the gate and checks for a feed. Without an error the caller leaves the gate.
func (w *feedWalk) open() error {
	if err := w.rt.gate.enterLate(); err != nil {
		return err
	}
	err := w.rt.operatorReads()
	if err == nil && !w.rt.storage().Capabilities().FeedsCommits {
		err = &runlane.Error{
			Code:    runlane.ErrCapabilityUnsupported,
			Message: "the lane keeps no order of the commits of all runs",
			Hint:    "follow single runs, use a lane in memory or in a file, or on AWS send ends to a bus (docs/events.md)",
		}
	}
	if err != nil {
		w.rt.gate.leave()
	}
	return err
}

// walk returns the last thing to yield, nil for none.
func (w *feedWalk) walk(ctx context.Context) error {
	if err := w.open(); err != nil {
		return err
	}
	defer w.rt.gate.leave()
	if err := w.begin(ctx); err != nil {
		return err
	}
	following, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer w.rt.gate.onClose(func() { cancel(errFeedClosed) })()
	wait := waitFirst
	for {
		found, err := w.read(following)
		switch {
		case context.Cause(following) == errFeedClosed: //nolint:errorlint // our own, never wrapped
			return errFeedClosed
		case err != nil && ctx.Err() != nil:
			return cancelled(ctx, "")
		case err != nil || w.stopped || !w.options.Follow:
			return err
		case found:
			wait = waitFirst
		}
		if !pause(following, w.rt.world.around(wait)) {
			continue // the next read returns the error
		}
		wait = min(wait*3/2, feedLast)
	}
}

func (w *feedWalk) begin(ctx context.Context) (err error) {
	if w.options.After == "" {
		w.after, err = w.rt.storage().BeginFeed(ctx)
		return err
	}
	at, err := openCursor(w.options.After, feedScope(w.rt.environment), "FeedOptions.After")
	if err != nil {
		return err
	}
	n, err := fmt.Sscanf(at, "%d.%d.%d", &w.after.Number, &w.after.Tag, &w.seen)
	if err != nil || n < 3 || w.after.Number < 0 || w.seen < 0 {
		return foreignCursor("FeedOptions.After")
	}
	if w.seen > 0 {
		w.partly, w.again = w.after, true
	}
	return nil
}

func (w *feedWalk) read(ctx context.Context) (found bool, err error) {
	for {
		page, err := w.rt.storage().ReadFeed(ctx, &lane.FeedQuery{
			Environment: w.rt.environment,
			After:       w.after,
			Again:       w.again,
			Limit:       feedPage,
		})
		if err != nil {
			return found, err
		}
		alive, err := w.alive(ctx, page.Items)
		if err != nil {
			return found, err
		}
		for i := range page.Items {
			item := &page.Items[i]
			if created, ok := alive[item.RunID]; ok && created.Equal(item.CreatedAt) {
				found = true
				if err := w.commit(ctx, item); err != nil || w.stopped {
					return found, err
				}
			}
			w.after, w.again = item.Position, false
		}
		w.after, w.again = page.Next, false
		if !page.More {
			return found, nil
		}
	}
}

// alive returns the creation times of the runs that still exist.
func (w *feedWalk) alive(ctx context.Context, items []lane.FeedItem) (map[runlane.RunID]time.Time, error) {
	var ids []runlane.RunID
	for i := range items {
		ids = append(ids, items[i].RunID)
	}
	slices.Sort(ids)
	alive := map[runlane.RunID]time.Time{}
	for some := range slices.Chunk(slices.Compact(ids), runlane.MaxPageLimit) {
		runs, err := w.rt.storage().GetRuns(ctx, &lane.RunsQuery{
			Environment: w.rt.environment, IDs: some, WithoutPayload: true,
		})
		if err != nil {
			return nil, err
		}
		for _, run := range runs {
			alive[run.ID] = run.CreatedAt
		}
	}
	return alive, nil
}

// commit yields the remaining events of one commit. It reads backwards: they are near the end of the history.
func (w *feedWalk) commit(ctx context.Context, item *lane.FeedItem) error {
	first := item.First
	if item.Position == w.partly {
		first = max(first, w.seen+1)
	}
	q := lane.EventQuery{
		PageQuery: lane.PageQuery{
			Environment: w.rt.environment,
			Limit:       min(int(item.Last-first)+runlane.DefaultPageLimit, runlane.MaxPageLimit),
		},
		RunID:      item.RunID,
		Descending: true,
	}
	var events []runlane.EventRecord // the last one first
	for {
		page, err := w.rt.storage().ListRunEvents(ctx, &q)
		if err != nil {
			return err
		}
		for i := range page.Items {
			if at := page.Items[i].Sequence; first <= at && at <= item.Last {
				events = append(events, page.Items[i])
			}
		}
		if n := len(page.Items); page.Next == "" || n == 0 || page.Items[n-1].Sequence <= first {
			break
		}
		q.After = page.Next
	}
	for i := len(events) - 1; i >= 0; i-- {
		record := FeedRecord{EventRecord: events[i]}
		record.Cursor = w.rt.feedCursor(item.Position, record.Sequence)
		if record.Sequence == item.Last {
			record.Cursor = w.rt.feedCursor(item.Position, 0)
		}
		if !w.yield(record, nil) {
			w.stopped = true
			return nil
		}
	}
	return nil
}
