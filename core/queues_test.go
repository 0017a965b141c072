package core_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/internal/proof/scenarios"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/lanetest"
	"github.com/runlane/runlane-go/memlane"
)

// listed is a storage whose lists never end, and that counts how often it is asked.
type listed struct {
	lane.Storage
	pages, others atomic.Int32
	endless       bool
	asked         atomic.Pointer[lane.RunQuery]
}

func (l *listed) ListRuns(ctx context.Context, q *lane.RunQuery) (*runlane.Page[runlane.RunSummary], error) {
	n := l.pages.Add(1)
	asked := *q
	l.asked.Store(&asked)
	if !l.endless {
		return l.Storage.ListRuns(ctx, q)
	}
	page := &runlane.Page[runlane.RunSummary]{Next: runlane.Cursor(fmt.Sprint(n))}
	status := runlane.StatusQueued
	if !slices.Contains(q.Statuses, status) {
		status = runlane.StatusRunning
	}
	for i := range q.Limit {
		page.Items = append(page.Items, runlane.RunSummary{ID: runlane.RunID(fmt.Sprint(n, "-", i)), Queue: q.Queue, Status: status, CreatedAt: time.Now().Add(time.Second)})
	}
	return page, nil
}

// CountRuns is unsupported: the pages are all that there is.
func (l *listed) CountRuns(ctx context.Context, q *lane.CountQuery) (*lane.RunCounts, error) {
	return lane.UnimplementedStorage{}.CountRuns(ctx, q)
}

func (l *listed) GetRun(ctx context.Context, key lane.RunKey) (*runlane.Run, error) {
	l.others.Add(1)
	return l.Storage.GetRun(ctx, key)
}

func (l *listed) GetRuns(ctx context.Context, q *lane.RunsQuery) ([]*runlane.Run, error) {
	l.others.Add(1)
	return l.Storage.GetRuns(ctx, q)
}

// plainTransport has no abilities beyond those of every transport.
type plainTransport struct{ lane.Transport }

func (plainTransport) Capabilities() lane.TransportCapabilities { return lane.TransportCapabilities{} }

func (plainTransport) Depth(ctx context.Context, queue runlane.QueueName) (visible, inFlight int, err error) {
	return lane.UnimplementedTransport{}.Depth(ctx, queue)
}

// silent is a transport whose depth cannot be read.
type silent struct{ *scenarios.ScriptedTransport }

func (silent) Depth(context.Context, runlane.QueueName) (visible, inFlight int, err error) {
	return 0, 0, &runlane.Error{Code: runlane.ErrTransportUnavailable, Message: "no answer"}
}

// backlogged is a queue whose list has a great many runs that wait before the two that hold its slots.
type backlogged struct{ *listed }

func (c backlogged) ListRuns(ctx context.Context, q *lane.RunQuery) (*runlane.Page[runlane.RunSummary], error) {
	page, err := c.listed.ListRuns(ctx, q)
	if err == nil && !slices.Contains(q.Statuses, runlane.StatusQueued) {
		page.Items, page.Next = page.Items[:2], ""
	}
	return page, err
}

// A busy queue is counted up to a bound. Runs that hold slots are counted behind any number that wait.
func TestQueueStats_ABusyQueue_IsCountedUpToABound(t *testing.T) {
	t.Parallel()
	for _, waits := range []bool{false, true} {
		endless := &listed{Storage: memlane.NewStorage(nil), endless: true}
		storage, running, waiting := lane.Storage(endless), 10*runlane.MaxPageLimit, 10*runlane.MaxPageLimit
		if waits {
			storage, running, waiting = backlogged{endless}, 2, 19*runlane.MaxPageLimit
		}
		stats, err := openOn(t, storage, scenarios.NewScriptedTransport()).Queues().Stats(t.Context(), "busy")
		if err != nil {
			t.Fatal(err)
		}
		if pages := endless.pages.Load(); pages != 20 || !stats.AtLeast || stats.Waiting != waiting || stats.Running != running {
			t.Errorf("%d pages, stats %+v", pages, stats)
		}
	}
}

// Only active runs are asked for, once, and no run is read by its id.
func TestQueueStats_OfAQuietQueue_AreOnePageAndOneLookAtTheTransport(t *testing.T) {
	t.Parallel()
	storage := &listed{Storage: memlane.NewStorage(nil)}
	task := runlane.NewTask[payload]("quiet", nil)
	rt := openOn(t, storage, scenarios.NewScriptedTransport())
	for range 3 {
		trigger(t, rt, task.With(payload{}))
	}
	stats, err := rt.Queues().Stats(t.Context(), "default")
	if err != nil {
		t.Fatal(err)
	}
	if stats.Waiting != 3 || stats.AtLeast || storage.pages.Load() != 1 || storage.others.Load() != 0 {
		t.Errorf("%d pages, %d other reads, stats %+v", storage.pages.Load(), storage.others.Load(), stats)
	}
	q := storage.asked.Load()
	for _, status := range runlane.Statuses() {
		asked := false
		for _, s := range q.Statuses {
			asked = asked || s == status
		}
		if asked == status.Terminal() || q.Queue != "default" {
			t.Errorf("the list was asked for %v of %q", q.Statuses, q.Queue)
		}
	}
}

func TestQueueStats_WhatTheTransportCannotTell(t *testing.T) {
	t.Parallel()
	storage := memlane.NewStorage(nil)
	stats, err := openOn(t, storage, plainTransport{memlane.NewTransport(nil)}).Queues().Stats(t.Context(), "default")
	if err != nil || stats.Backlog != -1 || stats.InFlight != -1 {
		t.Errorf("stats are %+v, %v", stats, err)
	}
	rt := openOn(t, memlane.NewStorage(nil), silent{scenarios.NewScriptedTransport()})
	trigger(t, rt, runlane.NewTask[payload]("any", nil).With(payload{}))
	stats, err = rt.Queues().Stats(t.Context(), "default")
	if runlane.CodeOf(err) != runlane.ErrTransportUnavailable || stats == nil || stats.Waiting != 1 || stats.Backlog != -1 {
		t.Errorf("stats are %+v, %v", stats, err)
	}
	if err := rt.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := rt.Queues().Stats(t.Context(), "default"); runlane.CodeOf(err) != runlane.ErrConfigurationInvalid {
		t.Errorf("a closed runtime returned %v", err)
	}
	bound := scenarios.NewScriptedTransport()
	bound.Bind("default")
	bound.SetDepth(5)
	stats, err = openOn(t, memlane.NewStorage(nil), bound).Queues().Stats(t.Context(), "elsewhere")
	if err != nil || stats.Bound || stats.Backlog != -1 {
		t.Errorf("stats of a queue without a binding are %+v, %v", stats, err)
	}
}

// The slots of a bounded queue are counted for each concurrency key: what runs, what has one reserved, and what waits.
func TestQueueStats_SlotsOfEachKey(t *testing.T) {
	t.Parallel()
	task := runlane.NewTask("keyed", &runlane.TaskOptions[string]{
		Queue:          runlane.Queue{Name: "narrow", Concurrency: 2},
		ConcurrencyKey: strings.Clone,
	})
	var rt *core.Runtime
	var seen *core.QueueStats
	rt = openOn(t, memlane.NewStorage(nil), scenarios.NewScriptedTransport(), task.Handle(
		func(ctx context.Context, _ *runlane.Attempt, _ string) (err error) {
			seen, err = rt.Queues().Stats(ctx, "narrow")
			return err
		}))
	for _, key := range []string{"a", "a", "a", "b", ""} {
		trigger(t, rt, task.With(key))
	}
	if _, err := rt.RunNow(t.Context(), task.With("c"), nil); err != nil {
		t.Fatal(err)
	}
	want := []core.KeyStats{
		{Key: "a", Waiting: 3, Reserved: 2},
		{Key: "", Waiting: 1, Reserved: 1},
		{Key: "b", Waiting: 1, Reserved: 1},
		{Key: "c", Running: 1},
	}
	if diff := cmp.Diff(want, seen.Keys); diff != "" || seen.Reserved != 4 || seen.Running != 1 || seen.MoreKeys != 0 {
		t.Errorf("stats %+v\n%s", seen, diff)
	}
}

// A queue of a great many keys has those with the most waiting runs, and the number of the others.
func TestQueueStats_ManyKeys_AreCounted(t *testing.T) {
	t.Parallel()
	task := runlane.NewTask("keyed", &runlane.TaskOptions[string]{ConcurrencyKey: strings.Clone})
	rt := openOn(t, memlane.NewStorage(nil), scenarios.NewScriptedTransport())
	for n := range core.MaxQueueKeys + 7 {
		trigger(t, rt, task.With(fmt.Sprintf("key %03d", n)))
	}
	trigger(t, rt, task.With("key 106"))
	stats, err := rt.Queues().Stats(t.Context(), "default")
	if err != nil {
		t.Fatal(err)
	}
	first, last := stats.Keys[0], stats.Keys[len(stats.Keys)-1]
	if len(stats.Keys) != core.MaxQueueKeys || stats.MoreKeys != 7 || first.Key != "key 106" || last.Key != "key 098" {
		t.Errorf("%d keys from %+v to %+v, %d more", len(stats.Keys), first, last, stats.MoreKeys)
	}
}

// The counts of a queue do not depend on what is in others.
func TestStats_BehindTheBacklogOfAnotherQueue_AreExact(t *testing.T) {
	t.Parallel()
	l, f := memlane.New(), lanetest.NewFactory(runlane.DefaultEnvironment)
	for i := range 20_000 {
		o := lanetest.RunOptions{NoDelivery: true, Queue: "heavy", ID: runlane.RunID(fmt.Sprintf("heavy_%05d", i))}
		if i >= 19_997 {
			o.Queue = "light"
		}
		if _, err := l.Storage.AppendRunEvents(t.Context(), f.Creation(t, time.Now(), o)); err != nil {
			t.Fatal(err)
		}
	}
	rt := openQuiet(t, l, core.Options{})
	for name, want := range map[runlane.QueueName]int{"light": 3, "empty": 0, "heavy": 19_997} {
		if stats, err := rt.Queues().Stats(t.Context(), name); err != nil || stats.Waiting != want || stats.AtLeast {
			t.Errorf("%s: %+v, %v", name, stats, err)
		}
	}
}
