package core

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/runlane/runlane-go"
)

const bulkParallel = 8

// CancelAll cancels all matching active runs, each as [Runs.Cancel] does, at most Cap in one call. It skips runs that
// ended meanwhile or have a cancellation request. A terminal status in the filter is runlane.ErrValidationFailed.
//
// Like all bulk calls it reads the list, which lags a little. A run that fails does not stop the others. An error comes
// with the result so far; its Next repeats the page in progress, which is harmless.
func (r *Runs) CancelAll(ctx context.Context, options *BulkOptions) (*BulkResult, error) {
	return r.rt.bulk(ctx, &bulkCall{
		name:      "cancel",
		options:   options,
		allowed:   activeStatuses,
		otherwise: cancellable,
		one: func(ctx context.Context, c change, id runlane.RunID) (bool, error) {
			_, changed, err := c.cancel(ctx, id)
			return changed, err
		},
	})
}

// RerunAll reruns all matching finished runs, each as [Runs.Rerun] does, at most Cap in one call. It skips runs rerun
// before, so a repeated call makes no run twice. An active status in the filter is runlane.ErrValidationFailed. For the
// rest see [Runs.CancelAll].
func (r *Runs) RerunAll(ctx context.Context, options *BulkOptions) (*BulkResult, error) {
	return r.repeatAll(ctx, options, "rerun", runlane.SourceRerun, terminalStatuses)
}

// RetryAll retries all matching failed runs, each as [Runs.Retry] does, at most Cap in one call. It skips runs retried
// before. Another status in the filter is runlane.ErrValidationFailed. For the rest see [Runs.CancelAll].
func (r *Runs) RetryAll(ctx context.Context, options *BulkOptions) (*BulkResult, error) {
	return r.repeatAll(ctx, options, "retry", runlane.SourceManualRetry, failedStatuses)
}

func (r *Runs) repeatAll(
	ctx context.Context, options *BulkOptions, name string, kind runlane.SourceType, allowed []runlane.Status,
) (*BulkResult, error) {
	return r.rt.bulk(ctx, &bulkCall{
		name:      name,
		options:   options,
		allowed:   allowed,
		otherwise: allowed,
		one: func(ctx context.Context, c change, id runlane.RunID) (bool, error) {
			_, made, err := c.repeat(ctx, id, kind)
			return made, err
		},
	})
}

type bulkCall struct {
	name      string
	options   *BulkOptions
	allowed   []runlane.Status // statuses that a filter may name
	otherwise []runlane.Status // statuses if the filter names none
	// page lists the matching runs; nil means the list of runs.
	page func(
		ctx context.Context, f *RunFilter, limit int, after runlane.Cursor,
	) (ids []runlane.RunID, next runlane.Cursor, err error)
	// again: changed runs can match again, so runs that changed since the first call began are skipped.
	again bool
	// one changes one run and reports whether anything changed.
	one func(ctx context.Context, c change, id runlane.RunID) (changed bool, err error)
}

func (rt *Runtime) bulk(ctx context.Context, call *bulkCall) (*BulkResult, error) {
	if err := rt.gate.enterLate(); err != nil {
		return nil, err
	}
	defer rt.gate.leave()
	o := BulkOptions{}
	if call.options != nil {
		o = *call.options
	}
	if err := firstError(o.check(call.allowed), rt.operatorReads()); err != nil {
		return nil, err
	}
	scope := fmt.Sprintf("%s all %s %s", call.name, rt.environment, o.scope())
	begun, at, err := openBulkCursor(o.After, scope, rt.now())
	if err != nil {
		return nil, err
	}
	c, err := rt.newChange(&o.ChangeOptions, "BulkOptions")
	if err != nil {
		return nil, err
	}
	if call.again {
		c.begun = begun
	}
	filter := o.RunFilter
	if len(filter.Statuses) == 0 {
		filter.Statuses = call.otherwise
	}
	page := call.page
	if page == nil {
		page = rt.pageOfRuns
	}
	left := o.Cap
	if left == 0 {
		left = defaultCap
	}

	result := &BulkResult{}
	dealtWith := map[runlane.RunID]bool{} // by this call; times alone have only milliseconds
	for {
		ids, next, err := page(ctx, &filter, min(left, runlane.MaxPageLimit), at)
		if err != nil {
			result.Next = sealBulkCursor(scope, begun, at)
			return result, err
		}
		ids = slices.DeleteFunc(ids, func(id runlane.RunID) bool {
			known := dealtWith[id]
			dealtWith[id] = true
			return call.again && known
		})
		result.Matched += len(ids)
		if !o.DryRun {
			result.add(bulkEach(ctx, ids, func(ctx context.Context, id runlane.RunID) (bool, error) {
				return call.one(ctx, c, id)
			}))
		}
		if ctx.Err() != nil {
			result.Next = sealBulkCursor(scope, begun, at)
			return result, cancelled(ctx, "")
		}
		if next == "" {
			return result, nil
		}
		at = next
		if left -= len(ids); left <= 0 {
			result.Next = sealBulkCursor(scope, begun, at)
			return result, nil
		}
	}
}

func (rt *Runtime) pageOfRuns(
	ctx context.Context, f *RunFilter, limit int, after runlane.Cursor,
) (ids []runlane.RunID, next runlane.Cursor, err error) {
	page, err := rt.listRuns(ctx, f, limit, after)
	if err != nil {
		return nil, "", err
	}
	for i := range page.Items {
		ids = append(ids, page.Items[i].ID)
	}
	return ids, page.Next, nil
}

// openBulkCursor returns when the first call began, and the storage's cursor.
func openBulkCursor(c runlane.Cursor, scope string, now time.Time) (time.Time, runlane.Cursor, error) {
	if c == "" {
		return now, "", nil
	}
	position, err := openCursor(c, scope, "BulkOptions.After")
	if err != nil {
		return now, "", err
	}
	begun, at, _ := strings.Cut(position, " ")
	ms, err := strconv.ParseInt(begun, 10, 64)
	if err != nil {
		return now, "", foreignCursor("BulkOptions.After")
	}
	return time.UnixMilli(ms).UTC(), runlane.Cursor(at), nil
}

// sealBulkCursor wraps the storage's cursor for this call alone. Unlike the storage's, it is never empty.
func sealBulkCursor(scope string, begun time.Time, at runlane.Cursor) runlane.Cursor {
	return sealCursor(scope, fmt.Sprintf("%d %s", begun.UnixMilli(), at))
}

func bulkEach(
	ctx context.Context, ids []runlane.RunID, do func(context.Context, runlane.RunID) (bool, error),
) *BulkResult {
	var mu sync.Mutex
	result := &BulkResult{}
	group := errgroup.Group{}
	group.SetLimit(bulkParallel)
	for _, id := range ids {
		if ctx.Err() != nil {
			break
		}
		group.Go(func() error {
			changed, err := do(ctx, id)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case changed:
				result.Changed++
			case err == nil, movedOn(err):
				result.Skipped++
			case ctx.Err() != nil: // the caller stopped: the next call reads this run again
			default:
				result.fail(id, err)
			}
			return nil
		})
	}
	_ = group.Wait() // errors are in the result
	return result
}

func (b *BulkResult) fail(id runlane.RunID, err error) {
	if len(b.Failed) >= maxFailed {
		return
	}
	if b.Failed == nil {
		b.Failed = map[runlane.RunID]error{}
	}
	b.Failed[id] = err
}

func (b *BulkResult) add(other *BulkResult) {
	b.Changed += other.Changed
	b.Skipped += other.Skipped
	for id, err := range other.Failed {
		b.fail(id, err)
	}
}
