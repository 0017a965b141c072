package core_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/memlane"
)

// stalledStorage stops its process once: behind the list of schedules, the claim of an occurrence, or a run's events.
type stalledStorage struct {
	lane.Storage

	afterList, afterClaim, afterCreate func()
}

func (s *stalledStorage) Unwrap() lane.Storage { return s.Storage }

func (s *stalledStorage) ListSchedules(ctx context.Context, q *lane.PageQuery) (*runlane.Page[runlane.ScheduleRecord], error) {
	page, err := s.Storage.ListSchedules(ctx, q)
	once(&s.afterList)
	return page, err
}

func (s *stalledStorage) ClaimScheduleOccurrence(ctx context.Context, c *lane.ClaimOccurrenceCommand) (*lane.OccurrenceClaim, error) {
	claim, err := s.Storage.ClaimScheduleOccurrence(ctx, c)
	if err == nil && claim.Outcome == lane.Acquired {
		once(&s.afterClaim)
	}
	return claim, err
}

func (s *stalledStorage) AppendRunEvents(ctx context.Context, c *lane.AppendCommand) (*lane.Commit, error) {
	commit, err := s.Storage.AppendRunEvents(ctx, c)
	once(&s.afterCreate)
	return commit, err
}

// twoTickers are two processes that tick for one schedule. The first one's storage can be stalled.
type twoTickers struct {
	*testing.T

	now      time.Time
	storage  *stalledStorage
	runtimes [2]*core.Runtime
}

func newTwoTickers(t *testing.T, every time.Duration, overlap runlane.Overlap) *twoTickers {
	t.Helper()
	w := &twoTickers{T: t, now: time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)}
	now := func() time.Time { return w.now }
	storage := memlane.NewStorage(&memlane.StorageOptions{Now: now})
	w.storage = &stalledStorage{Storage: storage}
	task := runlane.NewTask[payload]("scheduled", nil)
	for i, s := range []lane.Storage{w.storage, storage} {
		l := newLane(t, s, memlane.NewTransport(nil))
		w.runtimes[i] = openQuiet(t, l, core.Options{World: &core.World{Now: now}, Schedules: []runlane.Schedule{{
			ID: "s", When: runlane.Every(every), Call: task.With(payload{}), Overlap: overlap,
		}}})
	}
	w.tick(0)
	return w
}

func (w *twoTickers) tick(i int) {
	w.Helper()
	if _, err := w.runtimes[i].Tick(w.Context(), nil); err != nil {
		w.Fatal(err)
	}
}

// wantOneActive also wants that no occurrence is recorded twice.
func (w *twoTickers) wantOneActive(when string) {
	w.Helper()
	var active []runlane.RunID
	page, err := w.runtimes[1].Runs().List(w.Context(), nil)
	if err != nil {
		w.Fatal(err)
	}
	for _, run := range page.Items {
		if run.Status.Active() {
			active = append(active, run.ID)
		}
	}
	if len(active) != 1 {
		w.Errorf("%s: %d runs of the schedule are active: %v", when, len(active), active)
	}
	dealtWith := time.Time{}
	var all []runlane.Occurrence
	for o, err := range w.runtimes[1].Schedules().Occurrences(w.Context(), "s", false) {
		if err != nil {
			w.Fatal(err)
		}
		all = append(all, o)
	}
	for i := range all {
		o := all[len(all)-1-i] // the newest come first
		first := o.FireTime
		if o.Count > 1 {
			first = o.First
		}
		if !first.After(dealtWith) {
			w.Errorf("%s: %s is dealt with twice: %+v", when, first, all)
		}
		dealtWith = o.FireTime
	}
}

// A tick claims the first of several occurrences and stalls before its run is there; another one comes two occurrences later.
func TestTwoTicks_OneStallsBehindItsClaim_OverlapPoliciesHold(t *testing.T) {
	t.Parallel()
	for _, policy := range []runlane.Overlap{runlane.OverlapForbid, runlane.OverlapReplace, runlane.OverlapQueueLatest} {
		t.Run(string(policy), func(t *testing.T) {
			t.Parallel()
			w := newTwoTickers(t, 10*time.Second, policy)
			w.now = w.now.Add(10 * time.Second)
			w.storage.afterClaim = func() {
				w.now = w.now.Add(20 * time.Second)
				w.tick(1)
			}
			w.tick(0)
			w.wantOneActive("after both")
			w.now = w.now.Add(10 * time.Second)
			w.tick(1)
			w.wantOneActive("a tick later")
		})
	}
}

// A tick has listed the records when another one deals with all that is due; it comes to the schedule three occurrences later.
func TestTwoTicks_OneStallsBehindItsList_OverlapPoliciesHold(t *testing.T) {
	t.Parallel()
	for _, policy := range []runlane.Overlap{runlane.OverlapForbid, runlane.OverlapReplace, runlane.OverlapQueueLatest} {
		t.Run(string(policy), func(t *testing.T) {
			t.Parallel()
			w := newTwoTickers(t, time.Second, policy)
			w.now = w.now.Add(5 * time.Second)
			w.storage.afterList = func() {
				w.tick(1)
				w.now = w.now.Add(3 * time.Second)
			}
			w.tick(0)
			w.wantOneActive("after both")
		})
	}
}

// A tick stalls for longer than its claim lasts. Meanwhile the schedule is triggered by hand, and another tick skips the occurrence because
// of that run: the first one makes none any more.
func TestTwoTicks_OneStallsForLongerThanItsClaim_TheSkipHolds(t *testing.T) {
	t.Parallel()
	for _, stall := range []time.Duration{time.Minute, 58 * time.Second} { // the other's clock may be ahead by 2.5 s
		w := newTwoTickers(t, time.Hour, runlane.OverlapForbid)
		w.now = w.now.Add(time.Hour)
		w.storage.afterClaim = func() {
			if _, err := w.runtimes[1].Schedules().TriggerNow(t.Context(), "s", nil); err != nil {
				t.Fatal(err)
			}
			before := w.now
			w.now = before.Add(time.Minute)
			w.tick(1)
			w.now = before.Add(stall)
		}
		w.tick(0)
		w.wantOneActive(stall.String())
	}
}

// A tick dies behind the run that it made, and the schedule is paused and resumed: the occurrence is recorded with its
// run, which the next one is not to overlap.
func TestTwoTicks_OneDiesBeforeAPause_ItsRunIsRecorded(t *testing.T) {
	t.Parallel()
	w := newTwoTickers(t, time.Minute, runlane.OverlapForbid)
	w.now = w.now.Add(time.Minute)
	ctx, die := context.WithCancel(t.Context())
	w.storage.afterCreate = die
	_, _ = w.runtimes[0].Tick(ctx, nil) // it is cut off
	if err := w.runtimes[1].Schedules().Pause(t.Context(), "s", nil); err != nil {
		t.Fatal(err)
	}
	w.now = w.now.Add(3 * time.Minute)
	if err := w.runtimes[1].Schedules().Resume(t.Context(), "s", nil); err != nil {
		t.Fatal(err)
	}
	w.now = w.now.Add(time.Minute)
	w.tick(1)
	w.wantOneActive("after the pause")
}

func TestTwoTicks_OneDiesBeforeItsRun_ResumeSaysSo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newTwoTickers(t, time.Minute, runlane.OverlapAllow)
		w.now = w.now.Add(time.Minute)
		ctx, die := context.WithCancel(t.Context())
		w.storage.afterClaim = die
		_, _ = w.runtimes[0].Tick(ctx, nil) // it is cut off
		schedules := w.runtimes[1].Schedules()
		if err := schedules.Pause(t.Context(), "s", nil); err != nil {
			t.Fatal(err)
		}
		if err := schedules.Resume(t.Context(), "s", nil); err == nil || !strings.Contains(err.Error(), "another process") {
			t.Fatal(err)
		}
		brief, leave := context.WithTimeout(t.Context(), time.Millisecond)
		defer leave()
		if err := schedules.Resume(brief, "s", nil); !errors.Is(err, runlane.ErrOperationCancelled) {
			t.Errorf("a caller that leaves while it waits: %v", err)
		}
		w.now = w.now.Add(time.Minute)
		if err := schedules.Resume(t.Context(), "s", nil); err != nil {
			t.Fatal(err)
		}
	})
}
