package core

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core/internal/origin"
	"github.com/runlane/runlane-go/lane"
)

// cascade cancels the runs that a cancelled run has called. done reports that nothing is left to do.
func (rt *Runtime) cascade(ctx context.Context, run *runlane.Run) (done bool, err error) {
	read, err := rt.storage().ReadCalls(ctx, &lane.CallQuery{
		RunKey: lane.RunKey{Environment: rt.environment, RunID: run.ID},
	})
	switch {
	case isNotFound(err), err == nil && (!read.NotificationPending || !read.Run.CreatedAt.Equal(run.CreatedAt)):
		rt.cascades.forget(run)
		return true, nil
	case err != nil:
		return false, err
	case run.Status != runlane.StatusCancelled:
		return false, nil
	}
	return false, rt.cancelCalled(ctx, run, read.Calls)
}

// cancelCalled cancels the runs of all calls, in parts of a hundred, several at once. It skips parts completed by this
// process before, so that repeated tries finish any number of runs.
func (rt *Runtime) cancelCalled(ctx context.Context, run *runlane.Run, calls []lane.RunCall) error {
	asked := rt.cascades.of(run)
	type part struct {
		calling

		ids []runlane.RunID
	}
	var parts []part
	for i := range calls {
		c := calling{rt: rt, parent: run, call: calls[i]}
		for ids := range slices.Chunk(childIDs(run, &c.call), callChunk) {
			parts = append(parts, part{c, ids})
		}
	}
	var mu sync.Mutex
	var faults error
	_ = inParallel(len(parts), func(n int) error { // errors are in faults
		if asked.has(n) {
			return nil
		}
		if err := parts[n].cancelPart(ctx, parts[n].ids); err != nil {
			mu.Lock()
			defer mu.Unlock()
			faults = errors.Join(faults, err)
			return nil
		}
		asked.add(n)
		return nil
	})
	return faults
}

// cancelPart cancels children that have not ended. A temporary error ends the part; after a lasting one, such as a
// damaged run, it continues with the other children.
func (c *calling) cancelPart(ctx context.Context, ids []runlane.RunID) error {
	if ctx.Err() != nil {
		return cancelled(ctx, c.parent.ID)
	}
	children, err := c.rt.storage().GetRuns(ctx, &lane.RunsQuery{
		Environment: c.rt.environment, IDs: ids, WithoutPayload: true,
	})
	switch half := len(ids) / 2; {
	case err != nil && half > 0 && lasts(ctx, err):
		return errors.Join(c.cancelPart(ctx, ids[:half]), c.cancelPart(ctx, ids[half:]))
	case err != nil:
		return err
	}
	by := change{rt: c.rt, actor: runlane.SystemActor, reason: reasonCaller}
	var faults error
	for _, child := range children {
		if child.Status.Terminal() || child.Status == runlane.StatusCancellationRequested ||
			!origin.Same(child.Source, callSource(c.parent, c.call.Name)) {
			continue
		}
		_, _, err := by.cancel(ctx, child.ID)
		if err == nil || movedOn(err) { // it has ended meanwhile
			continue
		}
		if faults = errors.Join(faults, err); !lasts(ctx, err) {
			break
		}
	}
	return faults
}

// lasts reports an error that the same call would meet again.
func lasts(ctx context.Context, err error) bool {
	e, known := errors.AsType[*runlane.Error](err)
	return ctx.Err() == nil && !(known && e.Retryable)
}

// cascades remembers the progress of this process's cascades. Safe for concurrent use.
type cascades struct {
	mu sync.Mutex
	by map[runlane.RunID]*askedParts
}

// askedParts are a cascade's completed parts. They stay complete: cancelled runs neither call nor begin again.
type askedParts struct {
	created time.Time
	mu      sync.Mutex
	parts   map[int]bool
}

func (c *cascades) of(run *runlane.Run) *askedParts {
	c.mu.Lock()
	defer c.mu.Unlock()
	asked := c.by[run.ID]
	if asked == nil || !asked.created.Equal(run.CreatedAt) {
		asked = &askedParts{created: run.CreatedAt, parts: map[int]bool{}}
		if c.by == nil {
			c.by = map[runlane.RunID]*askedParts{}
		}
		c.by[run.ID] = asked
	}
	return asked
}

func (c *cascades) forget(run *runlane.Run) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.by, run.ID)
}

func (a *askedParts) has(n int) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.parts[n]
}

func (a *askedParts) add(n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.parts[n] = true
}

// reasonCaller is the reason of cancellations by the runtime.
const reasonCaller = "the run that called it was cancelled"

// orphaned reports a run missed by its cancelled caller's cascade: it was made afterwards, or moved here without its
// caller's calls.
func (rt *Runtime) orphaned(ctx context.Context, run *runlane.Run) (bool, error) {
	if run.Source.Type != runlane.SourceCall {
		return false, nil
	}
	callers, err := rt.storage().GetRuns(ctx, &lane.RunsQuery{
		Environment: rt.environment, IDs: []runlane.RunID{run.Source.RunID}, WithoutPayload: true,
	})
	return err == nil && len(callers) == 1 && callers[0].Status == runlane.StatusCancelled &&
		callers[0].CreatedAt.Equal(run.Source.CreatedAt), err
}
