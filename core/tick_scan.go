package core

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// tick is the state of one round.
type tick struct {
	rt       *Runtime
	deadline time.Time
	limit    int
	result   *TickResult

	scanning *lane.DueQuery // of the scan for two stages; nil before it began
	scanned  bool           // that scan has enough, is at its end, or failed
	due      []lane.RunRef  // what it found and no stage has dealt with yet
	moreDue  bool

	aside *queuesAside // queues that take no wakeups; of all rounds of one call

	elsewhere int // runs of this stage that count in another one's result
}

func (t *tick) query(at time.Time) lane.DueQuery {
	q := lane.DueQuery{
		PageQuery: lane.PageQuery{Environment: t.rt.environment, Limit: t.limit},
		At:        at,
		Patience:  lane.Patience{Queued: queuedPatience},
		Bounded:   t.rt.bounded,
	}
	if t.rt.delays {
		q.Patience.ShortWait, q.Patience.Undelayed = shortWaitPatience, t.rt.undelayed
	}
	return q
}

// runs reads what a scan refers to, without payloads. A run that is gone is a stale row.
func (t *tick) runs(ctx context.Context, refs []lane.RunRef) ([]*runlane.Run, error) {
	if len(refs) == 0 {
		return nil, nil
	}
	ids := make([]runlane.RunID, len(refs))
	for i := range refs {
		ids[i] = refs[i].RunID
	}
	return t.rt.storage().GetRuns(ctx, &lane.RunsQuery{Environment: t.rt.environment, IDs: ids, WithoutPayload: true})
}

// scanner is one of the storage's scans for due runs.
type scanner func(context.Context, *lane.DueQuery) (*runlane.Page[lane.RunRef], error)

// paged hands the rows of a scan to act, page after page, until act has done something with Limit of them, or there are
// no more, or the stage's time is over. Earlier rows must not hide later ones, whether they are rows of other queues,
// rows that other processes handled first, or rows that fail. A page without rows but with a cursor is not the end.
func (t *tick) paged(
	ctx context.Context, list scanner, q lane.DueQuery, act func([]lane.RunRef) StageResult,
) (result StageResult) {
	left := false // rows that this stage does not come to
	t.elsewhere = 0
	for {
		page, err := list(ctx, &q)
		if err != nil {
			result.Err = errors.Join(result.Err, err)
			return result
		}
		refs := page.Items
		if room := t.limit - result.Done - t.elsewhere; len(refs) > room {
			refs, left = refs[:room], true
		}
		before := result
		if len(refs) > 0 {
			result.add(act(refs))
		}
		if page.Next == "" || result.Done+t.elsewhere >= t.limit || result.Failed >= failuresOfALimit*t.limit ||
			ctx.Err() != nil {
			result.More = (left || page.Next != "") && (result.Done > 0 || result.Passed > 0)
			return result
		}
		if result.passedSince(&before) {
			result.Passed++
		}
		q.After = page.Next
	}
}

// scan finds as many due and recoverable runs as are enough for the two stages that deal with them. The second stage
// continues where the first had no more time. The stage that meets a failure reports it.
func (t *tick) scan(ctx context.Context, enough int) (passed int, err error) {
	if t.scanning == nil {
		q := t.query(t.rt.now())
		t.scanning = &q
		t.scanning.Without = t.aside.queues
	}
	for !t.scanned && ctx.Err() == nil {
		t.scanning.Limit = enough - len(t.due)
		page, err := t.rt.storage().ListRunsNeedingDelivery(ctx, t.scanning)
		if err != nil {
			t.scanned = ctx.Err() == nil
			return passed, err
		}
		refs := t.known(page.Items)
		t.due = append(t.due, refs...)
		t.moreDue = page.Next != ""
		t.scanned = len(t.due) >= enough || page.Next == ""
		t.scanning.After = page.Next
		if len(refs) == 0 && t.moreDue {
			passed++
		}
	}
	return passed, nil
}

// known drops runs of queues that are left to processes which know them, and notes these queues, so that the next scan
// leaves them out.
func (t *tick) known(refs []lane.RunRef) []lane.RunRef {
	return slices.DeleteFunc(refs, func(ref lane.RunRef) bool {
		if !t.rt.unknownHere(ref.Queue) {
			return false
		}
		if !slices.Contains(t.aside.queues, ref.Queue) {
			t.aside.queues = append(t.aside.queues, ref.Queue)
		}
		return true
	})
}

// scanOn reads further than the scan has: from the beginning, but without the queues that turned out to take nothing.
func (t *tick) scanOn() {
	t.scanned, t.due = false, nil
	if len(t.scanning.Without) != len(t.aside.queues) {
		t.scanning.Without, t.scanning.After = t.aside.queues, ""
	}
}

// each does the same to several runs at once and counts. A run that another process moved on, or whose slot it took
// first, is Skipped. A run that needs nothing any more, a stale index row, is not counted.
func (t *tick) each(
	ctx context.Context, runs []*runlane.Run, do func(context.Context, *runlane.Run) (bool, error),
) StageResult {
	var mu sync.Mutex
	var result StageResult
	group := errgroup.Group{}
	group.SetLimit(parallel)
	for _, run := range runs {
		group.Go(func() error {
			done, err := do(ctx, run)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case done:
				result.Done++
			case isConflict(err, runlane.ConflictEventSequence), isConflict(err, runlane.ConflictQueueCapacity):
				result.Skipped++
			case err != nil:
				result.Failed++
				result.Err = errors.Join(result.Err, err)
			}
			return nil
		})
	}
	_ = group.Wait() // errors are in the result
	return result
}
