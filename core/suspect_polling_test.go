package core_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/memlane"
)

// onlySends is a transport that cannot deliver to this process, as SQS's: workers that live long poll.
type onlySends struct{ lane.Transport }

// polling is a storage whose workers poll, in virtual time.
type polling struct {
	storage *memlane.Storage
	task    *runlane.Task[numbered]
	takes   time.Duration // of each attempt

	mu    sync.Mutex
	epoch time.Time
	begun map[runlane.RunID][]time.Duration // after epoch
}

func newPolling(takes time.Duration) *polling {
	return &polling{
		storage: memlane.NewStorage(nil), task: runlane.NewTask[numbered]("hazard.polled", nil), takes: takes,
		epoch: time.Now(), begun: map[runlane.RunID][]time.Duration{},
	}
}

func (p *polling) open(t *testing.T) *core.Runtime {
	t.Helper()
	return p.logging(t, slog.New(slog.DiscardHandler))
}

func (p *polling) logging(t *testing.T, logger *slog.Logger) *core.Runtime {
	t.Helper()
	handler := p.task.Handle(func(ctx context.Context, a *runlane.Attempt, _ numbered) error {
		p.mu.Lock()
		p.begun[a.Run.ID] = append(p.begun[a.Run.ID], time.Since(p.epoch))
		p.mu.Unlock()
		select {
		case <-time.After(p.takes):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	transport := memlane.NewTransport(nil)
	l := newLane(t, p.storage, onlySends{transport})
	return openQuiet(t, l, core.Options{Logger: logger, Handlers: []runlane.Handler{handler}})
}

// abandon makes runs whose last two workers died with all of them, the last two minutes ago.
func (p *polling) abandon(t *testing.T, rt *core.Runtime, n int) (ids []runlane.RunID) {
	t.Helper()
	for range n {
		run := trigger(t, rt, p.task.With(numbered{}))
		ids = append(ids, run.ID)
	}
	dieTwice(t, p.storage, ids)
	p.epoch = time.Now()
	return ids
}

// begins returns when the attempts of a run began.
func (p *polling) begins(id runlane.RunID) []time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]time.Duration(nil), p.begun[id]...)
}

// Nothing dies any more: every suspect is executed once more, and succeeds. A worker that waited for its turn between reading a run and
// claiming it took leases that were over.
func TestHazard51_SuspectsOfPollingWorkers_AreExecutedOnceMore(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ workers, suspects int }{{1, 10}, {2, 4}, {4, 12}} {
		t.Run(fmt.Sprint(c.workers, " workers, ", c.suspects, " suspects"), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := newPolling(5*time.Minute + 7*time.Second)
				var all []*core.Runtime
				for range c.workers {
					all = append(all, p.open(t))
				}
				ids := p.abandon(t, all[0], c.suspects)
				var stops []func()
				for _, rt := range all {
					stops = append(stops, startWork(t, rt, nil))
				}
				time.Sleep(6 * time.Hour)
				for _, id := range ids {
					run, err := all[0].Runs().Get(t.Context(), id)
					if err != nil {
						t.Fatal(err)
					}
					if began := p.begins(id); run.Status != runlane.StatusSucceeded || len(began) != 1 {
						t.Errorf("%s is %s (%s), attempts %d; its handler began at %v",
							id, run.Status, run.Failure.Message, run.Counters.Attempts, began)
					}
				}
				for _, stop := range stops {
					stop()
				}
			})
		})
	}
}

// As many suspects as the worker has places, each for an hour: an ordinary run begins at once, and after a minute each the suspects are
// no longer taken for what kills as soon as it begins.
func TestHazard51_SuspectsThatLive_HoldNothingUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPolling(time.Hour)
		rt := p.open(t)
		ids := p.abandon(t, rt, 9)
		defer startWork(t, rt, nil)()
		time.Sleep(10 * time.Second)
		ordinary := trigger(t, rt, p.task.With(numbered{})).ID
		time.Sleep(time.Minute)
		if began := p.begins(ordinary); len(began) != 1 {
			t.Errorf("the ordinary run began at %v", began)
		}
		time.Sleep(3 * time.Hour)
		for _, id := range ids {
			if began := p.begins(id); len(began) != 1 || began[0] > 30*time.Minute {
				t.Errorf("a suspect began at %v", began)
			}
		}
	})
}

// A worker that shuts down first stops acquiring.
func TestWork_ToldToStop_BeginsNoSuspectThatWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPolling(8 * time.Second)
		rt := p.open(t)
		ids := p.abandon(t, rt, 6)
		stop := startWork(t, rt, nil)
		time.Sleep(5 * time.Second)
		stop()
		begun := 0
		for _, id := range ids {
			begun += len(p.begins(id))
		}
		if begun != 1 {
			t.Errorf("%d attempts began, want the one that was under way", begun)
		}
	})
}
