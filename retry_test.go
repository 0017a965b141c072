package runlane_test

import (
	"errors"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/runlane/runlane-go"
)

func TestRetry_AttemptsDefaultToOne(t *testing.T) {
	t.Parallel()
	for given, want := range map[int]int{-1: 1, 0: 1, 1: 1, 2: 2, 10: 10} {
		if got := (runlane.Retry{MaxAttempts: given}).Attempts(); got != want {
			t.Errorf("%d: got %d, want %d", given, got, want)
		}
	}
}

func TestRetry_Delays(t *testing.T) {
	t.Parallel()
	const s = time.Second
	for name, c := range map[string]struct {
		backoff runlane.Backoff
		want    map[int]time.Duration
	}{
		"none is the default":      {nil, map[int]time.Duration{1: s, 2: 2 * s, 3: 4 * s, 9: 256 * s, 10: 300 * s, 1000: 300 * s}},
		"exponential":              {runlane.Exponential{Base: 3 * s, Max: 20 * s}, map[int]time.Duration{1: 3 * s, 2: 6 * s, 3: 12 * s, 4: 20 * s, 5: 20 * s}},
		"base above max":           {runlane.Exponential{Base: time.Hour}, map[int]time.Duration{1: 5 * time.Minute, 2: 5 * time.Minute}},
		"max alone":                {runlane.Exponential{Max: 3 * s}, map[int]time.Duration{1: s, 2: 2 * s, 3: 3 * s}},
		"before the first failure": {runlane.Exponential{}, map[int]time.Duration{0: s, -5: s}},
		"no overflow":              {runlane.Exponential{Max: math.MaxInt64}, map[int]time.Duration{34: s << 33, 35: math.MaxInt64, 64: math.MaxInt64, 1 << 30: math.MaxInt64}},
		"fixed":                    {runlane.Fixed(7 * s), map[int]time.Duration{1: 7 * s, 100: 7 * s}},
		"fixed at once":            {runlane.Fixed(0), map[int]time.Duration{1: 0}},
		"function":                 {runlane.BackoffFunc(func(n int) time.Duration { return time.Duration(n) * s }), map[int]time.Duration{1: s, 5: 5 * s}},
		"never negative":           {runlane.BackoffFunc(func(int) time.Duration { return -s }), map[int]time.Duration{1: 0}},
	} {
		for n, want := range c.want {
			if got := (runlane.Retry{MaxAttempts: 5, Backoff: c.backoff}).Delay(n); got != want {
				t.Errorf("%s: delay %d is %v, want %v", name, n, got, want)
			}
		}
	}
}

func TestExponential_NeverShrinksAndNeverPassesItsMax(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b := runlane.Exponential{
			Base: time.Duration(rapid.Int64Range(1, math.MaxInt64).Draw(t, "base")), Max: time.Duration(rapid.Int64Range(1, math.MaxInt64).Draw(t, "max")),
		}
		n := rapid.IntRange(1, 200).Draw(t, "n")
		got, next := b.Delay(n), b.Delay(n+1)
		if got <= 0 || got > b.Max || next < got {
			t.Fatalf("delay %d is %v, then %v, at most %v", n, got, next, b.Max)
		}
	})
}

func TestRetry_Validate(t *testing.T) {
	t.Parallel()
	for _, good := range []runlane.Retry{
		{}, {MaxAttempts: 1}, {MaxAttempts: 2}, {NoJitter: true}, {MaxAttempts: 2, Backoff: runlane.Exponential{}},
		{MaxAttempts: 2, Backoff: runlane.Fixed(0)}, {MaxAttempts: 9, Backoff: runlane.BackoffFunc(func(int) time.Duration { return 0 })},
	} {
		if err := good.Validate(); err != nil {
			t.Errorf("%+v: %v", good, err)
		}
	}
	for want, bad := range map[string]runlane.Retry{
		"Retry.MaxAttempts is -1":                               {MaxAttempts: -1},
		"Retry.Backoff is set but MaxAttempts allows no retry":  {Backoff: runlane.Fixed(time.Second)},
		"Retry.Backoff is exponential with a negative duration": {MaxAttempts: 2, Backoff: runlane.Exponential{Base: -1}},
		"Retry.Backoff is fixed and negative":                   {MaxAttempts: 2, Backoff: runlane.Fixed(-1)},
		"Retry.Backoff is a BackoffFunc without a function":     {MaxAttempts: 2, Backoff: runlane.BackoffFunc(nil)},
	} {
		got, ok := errors.AsType[*runlane.Error](bad.Validate())
		if !ok || got.Code != runlane.ErrConfigurationInvalid || got.Message != want || got.Hint == "" {
			t.Errorf("got %v, want %s", got, want)
		}
	}
	for _, bad := range []runlane.Retry{
		{MaxAttempts: 1, Backoff: runlane.Exponential{}}, {MaxAttempts: 2, Backoff: runlane.Exponential{Max: -1}},
	} {
		if !errors.Is(bad.Validate(), runlane.ErrConfigurationInvalid) {
			t.Errorf("%+v is accepted", bad)
		}
	}
}

func TestQueue_Validate(t *testing.T) {
	t.Parallel()
	for _, good := range []runlane.Queue{
		runlane.DefaultQueue, {Name: "q", Concurrency: 1}, {Name: "q", Concurrency: runlane.MaxQueueConcurrency},
		{Name: "q", Concurrency: 1, DispatchTimeout: time.Second},
		{Name: "q", Rate: runlane.PerSecond(runlane.MaxQueueRate), Burst: runlane.MaxQueueBurst, DispatchTimeout: time.Second},
		{Name: "q", Rate: runlane.Rate{Count: 1, Period: runlane.MaxRatePeriod}},
	} {
		if err := good.Validate(); err != nil {
			t.Errorf("%+v: %v", good, err)
		}
		if good.Bounded() != (good.Concurrency > 0 || good.Rated()) {
			t.Errorf("%+v: bounded %t", good, good.Bounded())
		}
	}
	for want, bad := range map[string]runlane.Queue{
		`queue "q" has Concurrency -1: use 0 (unbounded) to 1000`:                                       {Name: "q", Concurrency: -1},
		`queue "q" has Concurrency 1001: use 0 (unbounded) to 1000`:                                     {Name: "q", Concurrency: 1001},
		`queue "q" has a negative DispatchTimeout`:                                                      {Name: "q", Concurrency: 1, DispatchTimeout: -1},
		`queue "q" has a DispatchTimeout but no Concurrency or Rate: only bounded queues reserve slots`: {Name: "q", DispatchTimeout: 1},
		`queue "q" has Burst -1: use 0 (one) to 1000`:                                                   {Name: "q", Rate: runlane.PerHour(1), Burst: -1},
		`queue "q" has a Burst but no Rate`:                                                             {Name: "q", Burst: 1},
		`queue "q" has Rate 0 in 1s: use at least 1, in up to 24h0m0s`:                                  {Name: "q", Rate: runlane.PerSecond(0)},
		`queue "q" has Rate 1 in 0s: use at least 1, in up to 24h0m0s`:                                  {Name: "q", Rate: runlane.Rate{Count: 1}},
		`queue "q" has Rate 1001/s: use at most 1000 a second`:                                          {Name: "q", Rate: runlane.PerSecond(1001)},
		`queue has a bad name`:                                                                          {Name: "a:b"},
	} {
		got, ok := errors.AsType[*runlane.Error](bad.Validate())
		if !ok || got.Code != runlane.ErrConfigurationInvalid || got.Message != want || got.Hint == "" {
			t.Errorf("got %v, want %s", got, want)
		}
	}
	if err := (runlane.Queue{}).Validate(); !errors.Is(err, runlane.ErrConfigurationInvalid) || !errors.Is(err, runlane.ErrValidationFailed) {
		t.Errorf("no name: %v", err)
	}
}
