package core_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/memlane"
)

// meddledStorage calls something, once each, in the middle of an attempt's two commits.
type meddledStorage struct {
	lane.Storage

	claimed func() // the claim is committed, and not answered yet
	unheard bool   // and its answer gets lost
	ends    func() // the outcome is about to be committed
	blind   bool   // and the look at what came between fails once
}

var errUnheard = &runlane.Error{
	Code: runlane.ErrStorageUnavailable, Message: "the answer is lost", Retryable: true, Meta: map[string]string{"outcome": "unknown"},
}

func (s *meddledStorage) ClaimRunLease(ctx context.Context, c *lane.ClaimCommand) (*lane.Acquisition, error) {
	got, err := s.Storage.ClaimRunLease(ctx, c)
	once(&s.claimed)
	if s.unheard {
		return nil, errUnheard
	}
	return got, err
}

func (s *meddledStorage) AppendRunEvents(ctx context.Context, c *lane.AppendCommand) (*lane.Commit, error) {
	starts := c.Creates() && c.Projected.Status == runlane.StatusRunning
	if c.LeaseToken != "" {
		once(&s.ends)
	}
	commit, err := s.Storage.AppendRunEvents(ctx, c)
	if starts {
		once(&s.claimed)
		if s.unheard {
			return nil, errUnheard
		}
	}
	return commit, err
}

func (s *meddledStorage) GetRuns(ctx context.Context, q *lane.RunsQuery) ([]*runlane.Run, error) {
	if s.blind && s.ends == nil {
		s.blind = false
		return nil, errUnheard
	}
	return s.Storage.GetRuns(ctx, q)
}

func once(f *func()) {
	if do := *f; do != nil {
		*f = nil
		do()
	}
}

// cancelledHere is a run that the runtime executes which is asked to cancel it.
type cancelledHere struct {
	*testing.T

	rt      *core.Runtime
	storage *meddledStorage
	task    *runlane.Task[payload]
	begun   chan struct{}
	inside  func(ctx context.Context) error // the handler, once it has begun
}

const cancelledHereID = runlane.RunID("here")

func newCancelledHere(t *testing.T) *cancelledHere {
	t.Helper()
	c := &cancelledHere{
		T: t, storage: &meddledStorage{Storage: memlane.NewStorage(nil)}, task: runlane.NewTask[payload]("here", nil), begun: make(chan struct{}),
		inside: func(ctx context.Context) error { return rest(ctx, time.Hour) },
	}
	handler := c.task.Handle(func(ctx context.Context, _ *runlane.Attempt, _ payload) error {
		close(c.begun)
		return c.inside(ctx)
	})
	c.rt = open(t, func(lane.Storage) lane.Storage { return c.storage }, handler)
	return c
}

// begin starts the run. The returned function waits for the end of the attempt.
func (c *cancelledHere) begin(now bool) (ended func()) {
	options := &runlane.TriggerOptions{RunID: cancelledHereID}
	var attempt sync.WaitGroup
	attempt.Go(func() {
		var err error
		if now {
			_, err = c.rt.RunNow(c.Context(), c.task.With(payload{}), options)
		} else if _, err = c.rt.Trigger(c.Context(), c.task.With(payload{}), options); err == nil {
			err = c.rt.Work(c.Context(), &core.WorkOptions{Drain: true, NoTick: true})
		}
		if err != nil {
			c.Error(err)
		}
	})
	return attempt.Wait
}

func (c *cancelledHere) cancel() {
	c.Helper()
	run, err := c.rt.Runs().Cancel(c.Context(), cancelledHereID, nil)
	if err != nil || run.Status != runlane.StatusCancellationRequested {
		c.Errorf("cancel: %+v, %v", run, err)
	}
}

// A cancellation that is requested through the runtime that executes the run reaches its handler at once, also before the claim is
// answered.
func TestCancel_OfARunThatExecutesHere_IsImmediate(t *testing.T) {
	t.Parallel()
	for name, request := range map[string]func(c *cancelledHere){
		"while the handler waits": func(c *cancelledHere) {
			<-c.begun
			c.cancel()
		},
		"while the claim is answered":             nil,
		"while the answer of the claim gets lost": nil,
		"by a call for many": func(c *cancelledHere) {
			<-c.begun
			result, err := c.rt.Runs().CancelAll(c.Context(), &core.BulkOptions{RunFilter: core.RunFilter{TaskID: "here"}})
			if err != nil || result.Changed != 1 {
				c.Errorf("cancel all: %+v, %v", result, err)
			}
		},
		"after another runtime was asked": func(c *cancelledHere) {
			<-c.begun
			elsewhere := open(c.T, func(lane.Storage) lane.Storage { return c.storage })
			if _, err := elsewhere.Runs().Cancel(c.Context(), cancelledHereID, nil); err != nil {
				c.Error(err)
			}
			c.cancel()
		},
	} {
		for _, now := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", now ", now), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					c := newCancelledHere(t)
					began := time.Now()
					if request == nil {
						c.storage.claimed, c.storage.unheard = c.cancel, strings.Contains(name, "lost")
					}
					ended := c.begin(now)
					if request != nil {
						request(c)
					}
					ended()
					if got, took := status(t, c.rt, cancelledHereID), time.Since(began); got != runlane.StatusCancelled || took > 0 {
						t.Errorf("the run is %s after %s", got, took)
					}
				})
			})
		}
	}
}

// A handler that cancels its own run is not waited for by its call, and decides how the run ends.
func TestCancel_ByTheRunsOwnHandler_EndsItsContext(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		returns error
		want    runlane.Status
	}{
		"it gives in": {context.Canceled, runlane.StatusCancelled},
		"it finishes": {nil, runlane.StatusSucceeded},
		"it fails":    {errors.New("no"), runlane.StatusFailed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				h := newCancelledHere(t)
				h.inside = func(ctx context.Context) error {
					h.cancel()
					if cause := context.Cause(ctx); !errors.Is(cause, runlane.ErrCancelRequested) {
						t.Errorf("the cause is %v", cause)
					}
					return c.returns
				}
				h.begin(true)()
				if got := status(t, h.rt, cancelledHereID); got != c.want {
					t.Errorf("the run is %s", got)
				}
			})
		})
	}
}

// A request that comes between the handler's return and the commit of its outcome waits for neither, and the outcome is judged on it.
func TestCancel_WhileTheOutcomeIsCommitted_WaitsForNothing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		returns error
		want    runlane.Status
		blind   bool
	}{
		"a success": {nil, runlane.StatusSucceeded, false},
		"a look":    {nil, runlane.StatusSucceeded, true}, // that fails is repeated, after a pause
		"a release": {runlane.Release(time.Minute, "later"), runlane.StatusCancelled, false},
		"an end":    {context.Canceled, runlane.StatusFailed, false}, // of a client of the handler's: its own context has not ended
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				h := newCancelledHere(t)
				h.inside = func(context.Context) error { return c.returns }
				h.storage.ends, h.storage.blind = h.cancel, c.blind
				began := time.Now()
				h.begin(true)()
				if got, took := status(t, h.rt, cancelledHereID), time.Since(began); got != c.want || (took > 0) != c.blind {
					t.Errorf("the run is %s after %s", got, took)
				}
			})
		})
	}
}
