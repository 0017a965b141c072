package functions_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/functions"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/memlane"
)

// watched counts the rounds of a tick, each of which looks for cancellations first, and can fail them.
type watched struct {
	lane.Storage

	rounds atomic.Int64
	err    error
	hangs  bool // until its share of the time is over
}

func (s *watched) Unwrap() lane.Storage { return s.Storage }

func (s *watched) ListRunsNeedingCancellationFinalization(ctx context.Context, q *lane.DueQuery) (*runlane.Page[lane.RunRef], error) {
	s.rounds.Add(1)
	if s.hangs {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if s.err != nil {
		return nil, s.err
	}
	return s.Storage.ListRunsNeedingCancellationFinalization(ctx, q)
}

// waiting is a runtime on which n wakeups wait for a tick, written ten minutes ago.
func waiting(t *testing.T, storage *watched, n int) (*core.Runtime, lane.Transport) {
	t.Helper()
	var past atomic.Int64
	past.Store(int64(10 * time.Minute))
	transport := memlane.NewTransport(nil)
	rt := openOn(t, storage, transport, &core.Options{World: &core.World{
		Now: func() time.Time { return time.Now().Add(-time.Duration(past.Load())) },
	}})
	for range n {
		if _, err := rt.Trigger(t.Context(), greet.With("you"), &runlane.TriggerOptions{Deferred: true}); err != nil {
			t.Fatal(err)
		}
	}
	past.Store(0)
	return rt, transport
}

func depth(t *testing.T, transport lane.Transport) int {
	t.Helper()
	visible, _, err := transport.Depth(t.Context(), "default")
	if err != nil {
		t.Fatal(err)
	}
	return visible
}

func TestTick_MoreThanOneRound_GoesOnUntilNothingWaits(t *testing.T) {
	t.Parallel()
	storage := &watched{Storage: memlane.NewStorage(nil)}
	rt, transport := waiting(t, storage, 250)
	if err := functions.Tick(rt)(t.Context()); err != nil {
		t.Fatal(err)
	}
	equal(t, "wakeups published", depth(t, transport), 250)
	if n := storage.rounds.Load(); n < 3 || n > 5 {
		t.Errorf("%d rounds for 250 rows of 100 a round", n)
	}
}

func TestTick_DeadlineNear_MakesOneRoundAndLeavesTheRest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		storage := &watched{Storage: memlane.NewStorage(nil)}
		rt, transport := waiting(t, storage, 250)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if err := functions.Tick(rt)(ctx); err != nil {
			t.Fatal(err)
		}
		equal(t, "rounds", storage.rounds.Load(), int64(1))
		if n := depth(t, transport); n == 0 || n == 250 {
			t.Errorf("%d wakeups were published", n)
		}
	})
}

// What fails in each round ends nothing as long as another stage gets on: a few failing runs would else hold up a backlog.
func TestTick_StageFails_GoesOnWithTheOthersAndReturnsItsErrorOnce(t *testing.T) {
	t.Parallel()
	storage := &watched{Storage: memlane.NewStorage(nil), err: &runlane.Error{Code: runlane.ErrStorageUnavailable, Message: "scripted"}}
	rt, transport := waiting(t, storage, 250)
	err := functions.Tick(rt)(t.Context())
	if !errors.Is(err, runlane.ErrStorageUnavailable) || strings.Count(err.Error(), "scripted") != 1 {
		t.Errorf("error is %v", err)
	}
	equal(t, "wakeups published", depth(t, transport), 250)
	if n := storage.rounds.Load(); n < 3 || n > 5 {
		t.Errorf("%d rounds for 250 rows of 100 a round", n)
	}
}

func TestTick_Outage_EndsAfterTheRound(t *testing.T) {
	t.Parallel()
	storage := &watched{Storage: memlane.NewStorage(nil)}
	rt, transport := waiting(t, storage, 1250)
	if err := transport.(*memlane.Transport).Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := functions.Tick(rt)(t.Context()); !errors.Is(err, runlane.ErrTransportUnavailable) {
		t.Errorf("error is %v", err)
	}
	equal(t, "rounds", storage.rounds.Load(), int64(1))
}

func TestTick_RoundWithoutTimeForAnything_LeavesTheRestToTheNext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		storage := &watched{Storage: memlane.NewStorage(nil), hangs: true}
		rt, _ := waiting(t, storage, 0)
		ctx, cancel := context.WithTimeout(t.Context(), 8*time.Second)
		defer cancel()
		if err := functions.Tick(rt)(ctx); err != nil {
			t.Fatal(err)
		}
		equal(t, "rounds", storage.rounds.Load(), int64(1))
		if deadline, _ := ctx.Deadline(); time.Until(deadline) < 5*time.Second {
			t.Errorf("only %s are left, another round would not have fitted anyway", time.Until(deadline))
		}
	})
}
