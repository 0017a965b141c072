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

	scanning *lane.DueQuery // the scan shared by two stages; nil before it began
	scanned  bool           // that scan has enough, is at its end, or failed
	due      []lane.RunRef  // its runs that no stage has handled yet
	moreDue  bool

	of *lane.Round

	paused []runlane.QueueName
	aside  *queuesAside // queues that take no wakeups, in all rounds of a call

	elsewhere int // runs of this stage that count in another's result
}

func (t *tick) query(at time.Time) lane.DueQuery {
	q := lane.DueQuery{
		PageQuery: lane.PageQuery{Environment: t.rt.environment, Limit: t.limit},
		At:        at,
		Patience:  lane.Patience{Queued: queuedPatience},
		Bounded:   t.rt.bounded,
		Round:     t.of,
	}
	if t.rt.delays {
		q.Patience.ShortWait, q.Patience.Undelayed = shortWaitPatience, t.rt.undelayed
	}
	return q
}

// runs reads the runs of refs without payloads. A missing run is a stale row.
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

type scanner func(context.Context, *lane.DueQuery) (*runlane.Page[lane.RunRef], error)

// paged passes the rows of a scan to act, page by page, until act has handled Limit of them, the rows end, or the stage
// is out of time. Earlier rows must not hide later ones: rows of other queues, rows that other processes handled first,
// rows that fail. An empty page with a cursor is not the end.
func (t *tick) paged(
	ctx context.Context, list scanner, q lane.DueQuery, act func([]lane.RunRef) StageResult,
) (result StageResult) {
	left := false // rows that this stage does not reach
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

// scan finds enough due and recoverable runs for the two stages that handle them. The second stage continues where the
// first ran out of time. The stage that meets an error reports it.
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

// known drops runs of queues that are unknown here and notes these queues: the next scan omits them.
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

// scanOn continues the scan. If queues were put aside, it starts again without them.
func (t *tick) scanOn() {
	t.scanned, t.due = false, nil
	if len(t.scanning.Without) != len(t.aside.queues) {
		t.scanning.Without, t.scanning.After = t.aside.queues, ""
	}
}

// each calls do for several runs at once and counts. A run that another process moved on, or took the slot of, is
// Skipped. A run that needs no work any more, a stale index row, is not counted.
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
