package ddb

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"golang.org/x/sync/errgroup"
)

// Limits of repeating one request.
const (
	maxConflictTries  = 8
	triesBeforeRead   = 2 // of these, before each read of the items
	maxConflictRounds = 3 // while reads show that no other transaction has succeeded
	MaxUnknownTries   = 4
	conflictBackoff   = 80 * time.Millisecond
	throttleBackoff   = 250 * time.Millisecond
)

// SentOnce turns off the SDK's retries of a write: they would hide an earlier sending that succeeded and now makes the
// condition fail.
func SentOnce(o *dynamodb.Options) { o.RetryMaxAttempts = 1 }

// MaxParallel is how many requests one call runs at once by default.
const MaxParallel = 8

// InParallel calls one for every member, at most MaxParallel at once, until one fails.
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

// AllOf runs the functions, at most atOnce at a time, until one fails. A single function runs in the caller's
// goroutine, with its already grown stack.
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

// throttlePause is the pause after some earlier throttles. Half of it is random, so that throttled callers do not
// return together.
func throttlePause(before int) time.Duration {
	longest := throttleBackoff << min(before, 4)
	return longest/2 + jitter(longest/2)
}

// Pause waits a random time before another try at an item that others are changing.
func Pause(ctx context.Context) error { return Sleep(ctx, jitter(conflictBackoff)) }

func jitter(d time.Duration) time.Duration {
	return time.Duration(rand.Int64N(int64(d) + 1)) // no secrecy needed
}

// Sleep waits, or returns the context's error when it ends.
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
