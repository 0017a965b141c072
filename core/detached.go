package core

import (
	"context"
	"sync"
	"time"
)

// afterCommitTime bounds each call that follows a commit and must not fail or delay its caller for long.
const afterCommitTime = 5 * time.Second

// detachedContext is context.WithTimeout(context.WithoutCancel(parent), limit), except that its timer is made only when
// Done is called: every run needs several, and an adapter in memory never calls it. Begin it with start and end it with
// stop.
type detachedContext struct {
	parent   context.Context // this is a context
	deadline time.Time

	mu      sync.Mutex
	made    context.Context // this is a context
	cancel  context.CancelFunc
	stopped bool
}

// start is called once, before anything else.
func (c *detachedContext) start(parent context.Context, limit time.Duration) *detachedContext {
	c.parent, c.deadline = parent, time.Now().Add(limit)
	return c
}

// afterCommit is for work that follows a commit: it outlives the caller's context and has a separate time limit.
func afterCommit(ctx context.Context) *detachedContext {
	return new(detachedContext).start(ctx, afterCommitTime)
}

// context is the real context with a timer.
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

// Deadline is known without a timer.
func (c *detachedContext) Deadline() (time.Time, bool) { return c.deadline, true }

// Done makes the timer.
func (c *detachedContext) Done() <-chan struct{} { return c.context().Done() }

// Err is known without a timer.
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

// Value makes the real context: only code that also calls Done asks for it.
func (c *detachedContext) Value(key any) any { return c.context().Value(key) }
