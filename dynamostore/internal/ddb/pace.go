package ddb

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"golang.org/x/sync/errgroup"
)

// Bounds of repeating one transaction.
const (
	maxConflictTries  = 8
	triesBeforeRead   = 2 // after every so many of these the members are read
	maxConflictRounds = 3 // rounds of such tries, while reading shows that no other transaction has succeeded
	MaxUnknownTries   = 4
	conflictBackoff   = 80 * time.Millisecond
	throttleBackoff   = 250 * time.Millisecond
)

// SentOnce turns off the SDK's retries of a write: the table repeats it. Behind the SDK's retries it would be unknown
// whether a condition fails because an earlier sending succeeded.
func SentOnce(o *dynamodb.Options) { o.RetryMaxAttempts = 1 }

// MaxParallel is how many requests of one call run at once, unless the call says otherwise.
const MaxParallel = 8

// InParallel handles the members of a list at once, at most MaxParallel, until one fails.
func InParallel[E any](ctx context.Context, list []E, one func(ctx context.Context, i int, e E) error) error {
	if len(list) == 1 {
		return one(ctx, 0, list[0])
	}
	all := make([]func(context.Context) error, len(list))
	for i, e := range list {
		all[i] = func(ctx context.Context) error { return one(ctx, i, e) }
	}
	return AllOf(ctx, MaxParallel, all)
}

// AllOf runs everything at once, at most so many at a time, until something fails. A single function runs in place: in
// a separate goroutine the deep stack that a request needs would have to grow again.
func AllOf(ctx context.Context, atOnce int, all []func(ctx context.Context) error) error {
	if len(all) == 1 {
		return all[0](ctx)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for _, one := range all {
		group.Go(func() error { return one(ctx) })
	}
	return group.Wait()
}

// throttled is the pause after that many earlier refusals. Half of it is random, so that callers who were refused
// together do not return together.
func throttled(before int) time.Duration {
	longest := throttleBackoff << min(before, 4)
	return longest/2 + jitter(longest/2)
}

// Pause waits for a random moment before another try at an item that others are changing.
func Pause(ctx context.Context) error { return Sleep(ctx, jitter(conflictBackoff)) }

// jitter is a random part of d.
func jitter(d time.Duration) time.Duration {
	return time.Duration(rand.Int64N(int64(d) + 1)) // spreading retries needs no secrecy
}

// Sleep waits, or returns early with the context's error.
func Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
