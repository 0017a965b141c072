package runlane

import (
	"fmt"
	"time"
)

// Retry is a task's retry policy. Only failures count, not releases or abandoned attempts. The zero value means one
// attempt.
type Retry struct {
	// MaxAttempts is the number of failures that fails the run; each earlier one schedules a retry. 0 means 1.
	MaxAttempts int

	// Backoff gives the delay after each failure. nil means Exponential{}. With MaxAttempts below 2 it could never be
	// used and is ErrConfigurationInvalid.
	Backoff Backoff

	// NoJitter turns off the ± 20 % that the runtime adds to every delay. (The runtime adds it, so backoffs stay pure.)
	NoJitter bool
}

// Attempts returns MaxAttempts with its default filled in.
func (r Retry) Attempts() int { return max(r.MaxAttempts, 1) }

// Delay returns the delay after failure number n, counted from 1, without jitter.
func (r Retry) Delay(n int) time.Duration {
	if r.Backoff == nil {
		return Exponential{}.Delay(n)
	}
	return max(r.Backoff.Delay(n), 0)
}

// Validate returns [ErrConfigurationInvalid] if the policy cannot work.
func (r Retry) Validate() error {
	fault := ""
	switch {
	case r.MaxAttempts < 0:
		fault = fmt.Sprintf("Retry.MaxAttempts is %d", r.MaxAttempts)
	case r.Backoff != nil && r.MaxAttempts < 2:
		fault = "Retry.Backoff is set but MaxAttempts allows no retry"
	default:
		if b, ok := r.Backoff.(Exponential); ok && (b.Base < 0 || b.Max < 0) {
			fault = "Retry.Backoff is exponential with a negative duration"
		}
		if b, ok := r.Backoff.(Fixed); ok && b < 0 {
			fault = "Retry.Backoff is fixed and negative"
		}
		if b, ok := r.Backoff.(BackoffFunc); ok && b == nil {
			fault = "Retry.Backoff is a BackoffFunc without a function"
		}
	}
	if fault == "" {
		return nil
	}
	return &Error{
		Code:    ErrConfigurationInvalid,
		Message: fault,
		Hint:    "set MaxAttempts to 2 or more with a backoff, or leave Retry empty",
	}
}

// Backoff returns the delay after failure number n, counted from 1. It must be a pure function.
type Backoff interface{ Delay(n int) time.Duration }

// Defaults of [Exponential].
const (
	// DefaultBackoffBase is the delay after the first failure.
	DefaultBackoffBase = time.Second
	// DefaultBackoffMax is the longest delay.
	DefaultBackoffMax = 5 * time.Minute
)

// Exponential doubles from Base (0 means [DefaultBackoffBase]) up to Max (0 means [DefaultBackoffMax]).
type Exponential struct{ Base, Max time.Duration }

// Delay returns Base × 2^(n-1), at most Max.
func (b Exponential) Delay(n int) time.Duration {
	base, limit := b.Base, b.Max
	if base == 0 {
		base = DefaultBackoffBase
	}
	if limit == 0 {
		limit = DefaultBackoffMax
	}
	delay := base
	for i := 1; i < n && delay < limit; i++ {
		if delay > limit/2 { // doubling could overflow
			return limit
		}
		delay *= 2
	}
	return min(delay, limit)
}

// Fixed waits the same time after every failure.
type Fixed time.Duration

// Delay returns the fixed time.
func (b Fixed) Delay(int) time.Duration { return time.Duration(b) }

// BackoffFunc adapts a function.
type BackoffFunc func(n int) time.Duration

// Delay calls the function.
func (f BackoffFunc) Delay(n int) time.Duration { return f(n) }
