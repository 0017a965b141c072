package lanetest

import (
	"slices"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// Reservations of the cases last longer than any storage's margin: a claim may treat its own as over a few seconds
// early.
const reservation = 2 * time.Minute

// withSlots limits how many runs of the bundle's queue may execute. Its methods carry that limit; it may be changed at
// any time, as by a deployment.
type withSlots struct {
	*bundle
	limit int
}

func (b *bundle) limited(limit int) *withSlots { return &withSlots{b, limit} }

// under is the same queue under another limit, 0 for none.
func (s *withSlots) under(limit int) *withSlots { return &withSlots{s.bundle, limit} }

// waiting makes a run that wants a slot.
func (s *withSlots) waiting(at time.Time, o RunOptions) *runlane.Run {
	s.t.Helper()
	o.NoDelivery, o.Concurrency = true, s.limit
	return s.create(at, o)
}

func (s *withSlots) waitingRuns(n int, at time.Time, o RunOptions) []*runlane.Run {
	s.t.Helper()
	runs := make([]*runlane.Run, n)
	for i := range runs {
		runs[i] = s.waiting(at, o)
	}
	return runs
}

func (s *withSlots) reserveUntil(run *runlane.Run, at, until time.Time) *lane.Acquisition {
	s.t.Helper()
	return s.checked(s.storage.ReserveRunDispatch(s.ctx(), s.Reserve(s.t, run, at, until, s.limit)))
}

func (s *withSlots) reserve(run *runlane.Run, at time.Time) *lane.Acquisition {
	s.t.Helper()
	return s.reserveUntil(run, at, at.Add(reservation))
}

// claimCommand is a claim under the limit, for a minute.
func (s *withSlots) claimCommand(run *runlane.Run, at time.Time, slot bool) *lane.ClaimCommand {
	s.t.Helper()
	c := s.Claim(s.t, run, at, at.Add(time.Minute), s.NewToken())
	c.Queue.Concurrency, c.Slot = s.limit, slot
	return c
}

func (s *withSlots) take(run *runlane.Run, at time.Time, slot bool) *lane.Acquisition {
	s.t.Helper()
	return s.checked(s.storage.ClaimRunLease(s.ctx(), s.claimCommand(run, at, slot)))
}

func (s *withSlots) checked(a *lane.Acquisition, err error) *lane.Acquisition {
	s.t.Helper()
	got := must(a, err)(s.t)
	if (got.Commit != nil) != (got.Outcome == lane.Acquired) {
		s.t.Fatalf("outcome %q with commit %v", got.Outcome, got.Commit)
	}
	return got
}

// won is the run of an acquisition that must be one.
func (s *withSlots) won(what string, a *lane.Acquisition) *runlane.Run {
	s.t.Helper()
	s.wantOutcome(what, a, lane.Acquired)
	return a.Commit.Run
}

func (s *withSlots) wantOutcome(what string, a *lane.Acquisition, want lane.Outcome) {
	s.t.Helper()
	if a.Outcome != want {
		s.t.Fatalf("%s: outcome %q, want %q", what, a.Outcome, want)
	}
}

// executing is a run that went through a reservation to a worker, whose lease lasts a minute.
func (s *withSlots) executing(at time.Time, o RunOptions) *runlane.Run {
	s.t.Helper()
	reserved := s.won("reserve", s.reserve(s.waiting(at, o), at))
	return s.won("claim", s.take(reserved, at, false))
}

// commit appends under the limit.
func (s *withSlots) commit(run *runlane.Run, at time.Time, bodies ...runlane.EventBody) *runlane.Run {
	s.t.Helper()
	c := s.Append(s.t, run, at, bodies...)
	c.Queue.Concurrency = s.limit
	return s.append(c).Run
}

// wantFull demands that a waiting run gets no slot at the instant, in neither way, and stays as it is.
func (s *withSlots) wantFull(what string, waiting *runlane.Run, at time.Time) {
	s.t.Helper()
	s.wantOutcome(what+", reserving", s.reserve(waiting, at), lane.LostCapacity)
	s.wantOutcome(what+", claiming with a slot", s.take(waiting, at, true), lane.LostCapacity)
	equal(s.t, what+": a run that got no slot", waiting, s.get(waiting.ID))
}

// fill reserves for one run after the other until there is no slot left, and returns those that got one.
func (s *withSlots) fill(runs []*runlane.Run, at time.Time) []*runlane.Run {
	s.t.Helper()
	var got []*runlane.Run
	for _, run := range runs {
		a := s.reserve(run, at)
		if a.Outcome == lane.LostCapacity {
			return got
		}
		got = append(got, s.won("reserve", a))
	}
	s.t.Fatal("more runs than a limit got slots")
	return nil
}

// bounded is a query that knows the limits of the queues.
func (s *withSlots) bounded(at time.Time, others ...runlane.Queue) *lane.DueQuery {
	q := s.due(at)
	q.Bounded = append([]runlane.Queue{{Name: Queue, Concurrency: s.limit}}, others...)
	return q
}

// holders are the runs with slots in the run's partition, in the order of their ids.
func (s *withSlots) holders(run *runlane.Run) []runlane.RunID {
	s.t.Helper()
	policy := runlane.Queue{Name: run.Queue, Concurrency: s.limit}
	return sorted(
		must(s.storage.InspectRun(s.ctx(), &lane.InspectQuery{RunKey: s.key(run.ID), Queue: policy}))(s.t).Holders,
	)
}

// raceForSlots lets all runs try for a slot at once, every other by a claim, and returns those that got one. Losing is
// no error.
func (s *withSlots) raceForSlots(t testing.TB, runs []*runlane.Run, at time.Time) []*runlane.Run {
	t.Helper()
	reserves := make([]*lane.ReserveCommand, len(runs))
	claims := make([]*lane.ClaimCommand, len(runs))
	for i, run := range runs {
		reserves[i], claims[i] = s.Reserve(t, run, at, at.Add(reservation), s.limit), s.claimCommand(run, at, true)
	}
	got, failed := race(len(runs), func(i int) (*lane.Acquisition, error) {
		if i%2 == 0 {
			return s.storage.ReserveRunDispatch(s.ctx(), reserves[i])
		}
		return s.storage.ClaimRunLease(s.ctx(), claims[i])
	})
	if len(failed) > 0 {
		t.Fatalf("losing a race for a slot is an outcome, not an error: %v", failed[0])
	}
	var winners []*runlane.Run
	for _, a := range got {
		switch {
		case a.Outcome == lane.Acquired && a.Commit != nil:
			winners = append(winners, a.Commit.Run)
		case a.Outcome != lane.LostCapacity || a.Commit != nil:
			t.Fatalf("outcome %q, commit %v", a.Outcome, a.Commit)
		}
	}
	return winners
}

// without are the runs that are not among the others.
func without(runs, others []*runlane.Run) []*runlane.Run {
	return slices.DeleteFunc(slices.Clone(runs), func(r *runlane.Run) bool {
		return slices.ContainsFunc(others, func(o *runlane.Run) bool { return o.ID == r.ID })
	})
}

func runIDs(runs ...*runlane.Run) []runlane.RunID {
	ids := make([]runlane.RunID, len(runs))
	for i, run := range runs {
		ids[i] = run.ID
	}
	return sorted(ids)
}
