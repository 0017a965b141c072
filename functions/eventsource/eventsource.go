// Package eventsource stands in for Lambda's event source mappings where there is no Lambda: local development, tests
// and the demonstration on local AWS. [Queue] feeds a handler with batches of an SQS queue, [Stream] one with records
// of a DynamoDB stream, both with the events that Lambda would send and with its answers to partial failures. Neither
// is meant for production.
package eventsource

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"time"
)

// DefaultTimeout is the time of an invocation where options name none.
const DefaultTimeout = time.Minute

const (
	// requestTimeout bounds each request, on top of a long poll's wait.
	requestTimeout = 10 * time.Second
	// firstPause and lastPause bound the pause after a failure; it doubles from one failure to the next.
	firstPause = 250 * time.Millisecond
	lastPause  = 10 * time.Second
)

// pause waits after the given number of failures in a row, with jitter, and reports whether ctx is still alive.
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

// invocation is a context such as Lambda gives: it has a deadline, and does not end with the mapping.
func invocation(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), timeout)
}

func loggerOr(logger *slog.Logger) *slog.Logger {
	if logger == nil {
		return slog.Default()
	}
	return logger
}
