package core

import (
	"context"
	"sync"
	"time"
)

// afterCommitTime bounds each call after a commit, which may neither fail nor delay its caller for long.
const afterCommitTime = 5 * time.Second

// detachedContext is context.WithTimeout(context.WithoutCancel(parent), limit) with a timer made only by Done: every
// run needs several, and adapters in memory never call Done. Begin it with start and end it with stop.
type detachedContext struct {
	parent   context.Context // this is a context
	deadline time.Time

	mu      sync.Mutex
	made    context.Context // this is a context
	cancel  context.CancelFunc
	stopped bool
}

// start comes first, once.
func (c *detachedContext) start(parent context.Context, limit time.Duration) *detachedContext {
	c.parent, c.deadline = parent, time.Now().Add(limit)
	return c
}

// afterCommit returns a context for work after a commit: it outlives the caller's and has a time limit.
func afterCommit(ctx context.Context) *detachedContext {
	return new(detachedContext).start(ctx, afterCommitTime)
}

// context makes the timer.
func (c *detachedContext) context() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.made == nil {
		c.made, c.cancel = context.WithDeadline(context.WithoutCancel(c.parent), c.deadline)
		if c.stopped {
			c.cancel()
		}
	}
	return c.made
}

func (c *detachedContext) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopped = true
	if c.cancel != nil {
		c.cancel()
	}
}

func (c *detachedContext) Deadline() (time.Time, bool) { return c.deadline, true }

func (c *detachedContext) Done() <-chan struct{} { return c.context().Done() }

func (c *detachedContext) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.made != nil:
		return c.made.Err()
	case c.stopped:
		return context.Canceled
	case !time.Now().Before(c.deadline):
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// Value makes the timer: only code that also calls Done calls it.
func (c *detachedContext) Value(key any) any { return c.context().Value(key) }
