// Package histories makes random lives of a few runs with a storage alone, and holds what its scans and reads say
// against the projections that its commits returned: where an index says something else, the index is wrong.
package histories

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/lanetest"
)

// history is a random life of a few runs, and what a reader of all projections would say about them.
type history struct {
	t       testing.TB
	s       lane.Storage
	name    runlane.Environment
	f       *lanetest.Factory
	now     time.Time
	ids     []runlane.RunID
	current map[runlane.RunID]*runlane.Run
}

// Check lives many lives, each in a separate environment of a storage that the lives may share. It has to be a
// lane.Checker, to show writes at once, and to lease runs.
func Check(t *testing.T, storage func() lane.Storage) {
	t.Helper()
	lives := 0
	rapid.Check(t, func(r *rapid.T) {
		lives++
		name := runlane.Environment(fmt.Sprint("history-", lives))
		h := &history{
			t: t, s: storage(), name: name, f: lanetest.NewFactory(name),
			now: time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC), current: map[runlane.RunID]*runlane.Run{},
		}
		for range rapid.IntRange(1, 60).Draw(r, "steps") {
			h.step(r)
		}
		at := h.now.Add(time.Duration(rapid.IntRange(-60, 120).Draw(r, "look")) * time.Second)
		h.checkScan(r, "runnable", h.s.ListRunnableRuns, at, lane.RunnableAt)
		h.checkScan(r, "delivery", h.s.ListRunsNeedingDelivery, at, lane.DeliveryRecoveryAt)
		h.checkScan(r, "cancellation", h.s.ListRunsNeedingCancellationFinalization, at, lane.CancellationFinalizationAt)
		h.checkFolds(r)
		checker, ok := lane.As[lane.Checker](h.s)
		if !ok {
			r.Fatal("the storage is no lane.Checker")
		}
		page, err := checker.Check(context.Background(), &lane.PageQuery{Environment: h.name})
		if err != nil || len(page.Items) != 0 {
			r.Fatalf("check: %v %v", page, err)
		}
	})
}

// step does one thing that may be done, at an instant a little later.
func (h *history) step(r *rapid.T) {
	h.now = h.now.Add(time.Duration(rapid.IntRange(0, 20).Draw(r, "seconds")) * time.Second)
	if len(h.ids) == 0 || rapid.IntRange(0, 3).Draw(r, "create") == 0 {
		o := lanetest.RunOptions{}
		if rapid.Bool().Draw(r, "later") {
			o.RunAt = h.now.Add(time.Duration(rapid.IntRange(1, 60).Draw(r, "delay")) * time.Second)
		}
		commit, err := h.s.AppendRunEvents(context.Background(), h.f.Creation(h.t, h.now, o))
		if err != nil {
			r.Fatal(err)
		}
		h.ids = append(h.ids, commit.Run.ID)
		h.current[commit.Run.ID] = commit.Run
		return
	}
	run := h.current[rapid.SampledFrom(h.ids).Draw(r, "run")]
	soon := h.now.Add(time.Duration(rapid.IntRange(0, 40).Draw(r, "until")) * time.Second)
	bodies := map[string]runlane.EventBody{
		"ask": &runlane.RunCancellationRequested{},
		"beat": &runlane.RunLeaseHeartbeat{
			Lease: runlane.Lease{Token: run.Lease.Token, WorkerID: run.Lease.WorkerID, ExpiresAt: soon},
		},
		"cancel":  &runlane.RunCancelled{},
		"claim":   lanetest.Claimed(h.f.NewToken(), soon.Add(time.Second)),
		"deliver": lanetest.Delivery(run, h.now, soon),
		"fail":    lanetest.Failed(run),
		"release": lanetest.Released(run, soon),
		"resume":  lanetest.Resumed(),
		"retry":   lanetest.Retried(run, soon),
		"succeed": lanetest.Succeeded(run, nil),
	}
	names := []string{"ask", "beat", "cancel", "claim", "deliver", "fail", "release", "resume", "retry", "succeed"}
	event := runlane.Event{RunID: run.ID, Environment: run.Environment, OccurredAt: h.now, Actor: runlane.SystemActor}
	name := rapid.SampledFrom(names).Draw(r, "event")
	events := []runlane.Event{event}
	events[0].Body = bodies[name]
	if name == "claim" {
		event.Body = &runlane.RunStarted{Attempt: run.Counters.Attempts + 1}
		events = append(events, event)
	}
	projected, err := core.ProjectRunEvents(run, run.EventSequence, events...)
	if err != nil {
		return // core does not allow it here
	}
	transition := lane.Transition{ExpectedSequence: run.EventSequence, Events: events, Projected: projected}
	if name == "claim" {
		got, err := h.s.ClaimRunLease(context.Background(), &lane.ClaimCommand{Transition: transition, At: h.now})
		if err != nil || got.Outcome != lane.Acquired {
			r.Fatalf("claim that core allows: %v %v", got, err)
		}
		h.current[run.ID] = got.Commit.Run
		return
	}
	commit, err := h.s.AppendRunEvents(context.Background(), &lane.AppendCommand{Transition: transition})
	if err != nil {
		r.Fatal(err)
	}
	h.current[run.ID] = commit.Run
}

type listed struct {
	ID runlane.RunID
	At time.Time
}

func (h *history) checkScan(
	r *rapid.T, what string,
	scan func(context.Context, *lane.DueQuery) (*runlane.Page[lane.RunRef], error), at time.Time,
	due func(*runlane.Run) (time.Time, bool),
) {
	var want, got []listed
	for _, run := range h.current {
		if moment, ok := due(run); ok && !moment.After(at) {
			want = append(want, listed{run.ID, moment})
		}
	}
	slices.SortFunc(want, func(a, b listed) int {
		if c := a.At.Compare(b.At); c != 0 {
			return c
		}
		return strings.Compare(string(a.ID), string(b.ID))
	})
	limit := rapid.IntRange(1, 5).Draw(r, "limit")
	q := &lane.DueQuery{PageQuery: lane.PageQuery{Environment: h.name, Limit: limit}, At: at}
	for {
		page, err := scan(context.Background(), q)
		if err != nil {
			r.Fatal(err)
		}
		for _, ref := range page.Items {
			got = append(got, listed{ref.RunID, ref.AvailableAt})
		}
		if q.After = page.Next; q.After == "" {
			break
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		r.Fatalf("%s at %s (-projections +scan):\n%s", what, at, d)
	}
}

func (h *history) checkFolds(r *rapid.T) {
	for _, run := range h.current {
		page, err := h.s.ListRunEvents(context.Background(), &lane.EventQuery{
			PageQuery: lane.PageQuery{Environment: h.name, Limit: runlane.MaxPageLimit}, RunID: run.ID,
		})
		if err != nil {
			r.Fatal(err)
		}
		var events []runlane.Event
		for _, record := range page.Items {
			events = append(events, record.Event)
		}
		folded, err := core.ProjectRunEvents(nil, 0, events...)
		if err != nil {
			r.Fatal(err)
		}
		stored, err := h.s.GetRun(context.Background(), lane.RunKey{Environment: h.name, RunID: run.ID})
		if err != nil {
			r.Fatal(err)
		}
		if d := cmp.Diff(folded, stored); d != "" {
			r.Fatalf("run is not the fold of its history:\n%s", d)
		}
	}
}
