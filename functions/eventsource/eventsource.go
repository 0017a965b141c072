// Package eventsource replaces Lambda's event source mappings in local development and tests. [Queue] calls a handler
// with batches of an SQS queue, [Stream] with records of a DynamoDB stream. Both send Lambda's events and handle
// partial failures like Lambda. Do not use them in production.
package eventsource

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"time"
)

// DefaultTimeout is the default time of an invocation.
const DefaultTimeout = time.Minute

const (
	// requestTimeout limits each request, in addition to a long poll's wait.
	requestTimeout = 10 * time.Second
	// firstPause and lastPause limit the pause after failures, which doubles each time.
	firstPause = 250 * time.Millisecond
	lastPause  = 10 * time.Second
)

// pause waits after the given number of consecutive failures, with jitter, and reports whether ctx is still alive.
func pause(ctx context.Context, failures int) bool {
	d := min(firstPause<<min(failures-1, 10), lastPause)
	return sleep(ctx, d/2+rand.N(d/2)) // jitter
}

func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// invocation returns a context like Lambda's: it has a deadline and does not end with the mapping.
func invocation(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), timeout)
}

func loggerOr(logger *slog.Logger) *slog.Logger {
	if logger == nil {
		return slog.Default()
	}
	return logger
}
