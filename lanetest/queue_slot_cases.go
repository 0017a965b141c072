package lanetest

import (
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// The clock of the run's worker is behind: for it the reservation is still active when it is over by another's clock.
func queueTakenOver(t *testing.T, b *bundle) {
	s := b.limited(1)
	end := noon.Add(reservation)
	first := s.won("reserve", s.reserve(s.waiting(noon, RunOptions{}), noon))
	second := s.waiting(noon, RunOptions{})
	s.wantFull("a millisecond before the reservation ends", second, end.Add(-time.Millisecond))
	second = s.won("reserve when it ends", s.reserve(second, end))
	equal(t, "holders", runIDs(second), s.holders(second))
	s.wantOutcome(
		"claim of the run that lost its slot",
		s.take(first, end.Add(-20*time.Second), false),
		lane.LostReservation,
	)
	equal(t, "the run that lost its slot", first, b.get(first.ID))
	s.wantFull("beside the second reservation", first, end.Add(time.Second))

	second = s.won("claim", s.take(second, end.Add(time.Second), false))
	s.wantOutcome("late claim with a slot", s.take(first, end.Add(time.Hour), true), lane.LostCapacity)
	s.commit(second, end.Add(time.Hour), Succeeded(second, nil))
	s.won("late claim with a slot that is free", s.take(first, end.Add(time.Hour), true))
}

func queueGivenBack(t *testing.T, b *bundle) {
	s := b.limited(1)
	at, end := noon.Add(time.Second), noon.Add(reservation)
	release := func(run *runlane.Run, until time.Time) bool {
		t.Helper()
		return must(b.storage.ReleaseRunDispatch(b.ctx(), &lane.ReleaseDispatchCommand{
			RunKey: b.key(run.ID), ExpiresAt: until, At: at,
		}))(t)
	}
	first := s.won("reserve", s.reserve(s.waiting(noon, RunOptions{}), noon))
	second := s.waiting(noon, RunOptions{})
	equal(t, "a run without a reservation", false, release(second, time.Time{}))
	equal(t, "another reservation", false, release(first, end.Add(time.Millisecond)))
	s.wantFull("before it is given back", second, at)
	equal(t, "given back", true, release(first, end))
	equal(t, "the run that gave it back", first, b.get(first.ID))
	equal(t, "given back again", false, release(first, end))

	second = s.won("the next", s.reserve(second, at))
	equal(t, "holders", runIDs(second), s.holders(second))
	equal(t, "the slot of another", false, release(first, end))
	s.wantOutcome("claim with a slot that is another's", s.take(first, at, true), lane.LostCapacity)
	second = s.won("claim", s.take(second, at, false))
	equal(t, "a claimed slot", false, release(second, at.Add(reservation)))
	equal(t, "holders after the claim", runIDs(second), s.holders(second))
	s.commit(second, at, Succeeded(second, nil))
	s.wantOutcome("reserve before the reservation's end", s.reserve(first, at), lane.LostEligibility)
	first = s.won("claim with a slot that is free", s.take(first, at, true))
	s.commit(first, at, Succeeded(first, nil))
	equal(t, "a run that has ended", false, release(first, end))

	unbounded := s.won("reserve", s.reserve(s.waiting(noon, RunOptions{}), noon))
	equal(t, "given back", true, release(unbounded, end))
	s.won("claim once the queue has no limit", s.under(0).take(unbounded, at, false))
}

// docs/internals/layout.md, Slots: the dead worker's slot is its run's own, so recovery needs no free one.
func queueCrash(t *testing.T, b *bundle) {
	s := b.limited(1)
	end := noon.Add(time.Minute)
	reserved, claimed := RunOptions{ConcurrencyKey: "reserved"}, RunOptions{ConcurrencyKey: "claimed"}

	run, competitor := s.executing(noon, reserved), s.waiting(noon, reserved)
	b.wantScan(
		"needing dispatch before the lease ends",
		b.storage.ListRunsNeedingDispatch,
		s.bounded(end.Add(-time.Millisecond)),
	)
	b.wantScan("needing dispatch after the crash", b.storage.ListRunsNeedingDispatch, s.bounded(end), run)
	b.wantScan("runnable after the crash", b.storage.ListRunnableRuns, s.bounded(end), run)
	s.wantFull("after the crash", competitor, end)
	run = s.won("recovery", s.reserve(run, end))
	equal(t, "holders after the recovery", runIDs(run), s.holders(run))
	s.wantFull("after the recovery", competitor, end.Add(time.Second))
	run = s.won("claim after the recovery", s.take(run, end.Add(time.Second), false))

	// The worker crashed again, and now no claim follows the reservation: only in this case may time free the slot.
	again := end.Add(2 * time.Minute)
	run = s.won("second recovery", s.reserve(run, again))
	s.won("the competitor, when the reservation is over", s.reserve(competitor, again.Add(reservation)))
	s.wantOutcome("second recovery, too late", s.take(run, again.Add(reservation), false), lane.LostReservation)

	// A worker that finds the dead one's run takes it over with its slot.
	run = s.executing(noon, claimed)
	competitor = s.waiting(noon, claimed)
	run = s.won("takeover", s.take(run, end, false))
	s.wantFull("after the takeover", competitor, end.Add(24*time.Hour))
	equal(t, "holders after the takeover", runIDs(run), s.holders(run))
}

func queueHeld(t *testing.T, b *bundle) {
	s := b.limited(2)
	first, second := s.executing(noon, RunOptions{}), s.won("claim", s.take(s.waiting(noon, RunOptions{}), noon, true))
	competitor := s.waiting(noon, RunOptions{})
	for _, later := range []time.Duration{time.Minute, reservation, 24 * time.Hour, 10_000 * time.Hour} {
		s.wantFull("after "+later.String(), competitor, noon.Add(later))
	}
	equal(t, "holders", runIDs(first, second), s.holders(competitor))
	b.wantScan(
		"needing dispatch, years later",
		b.storage.ListRunsNeedingDispatch,
		s.bounded(noon.Add(10_000*time.Hour)),
		first,
		second,
	)
}

func queueFreed(t *testing.T, b *bundle) {
	s, end := b.limited(1), noon.Add(time.Minute)
	for name, body := range map[string]func(run *runlane.Run) runlane.EventBody{
		"success": func(run *runlane.Run) runlane.EventBody { return Succeeded(run, nil) },
		"failure": func(run *runlane.Run) runlane.EventBody { return Failed(run) },
		"retry":   func(run *runlane.Run) runlane.EventBody { return Retried(run, end.Add(time.Hour)) },
		"release": func(run *runlane.Run) runlane.EventBody { return Released(run, end.Add(time.Hour)) },
		// A run that is recovered without a reservation waits like every other, and its request is not sent.
		"recovery without a reservation": func(run *runlane.Run) runlane.EventBody { return Delivery(run, end, end) },
	} {
		run := s.executing(noon, RunOptions{ConcurrencyKey: name})
		run = s.commit(run, end, body(run))
		equal(t, name+": holders", nil, s.holders(run))
		s.won(name+": the next", s.reserve(s.waiting(noon, RunOptions{ConcurrencyKey: name}), end))
		if run.Status == runlane.StatusQueued {
			equal(t, name+": delivery that could be claimed", nil, b.row(run.ID))
			s.wantFull(name, run, end)
		}
	}
	reserved := s.won("reserve", s.reserve(s.waiting(noon, RunOptions{}), noon))
	s.commit(reserved, noon, &runlane.RunCancelled{})
	s.won("the next after a reserved run was cancelled", s.reserve(s.waiting(noon, RunOptions{}), noon))
}

func queueHeartbeat(t *testing.T, b *bundle) {
	s := b.limited(1)
	run, competitor := s.executing(noon, RunOptions{}), s.waiting(noon, RunOptions{})
	beat := b.Heartbeat(t, run, noon.Add(20*time.Second), noon.Add(80*time.Second))
	beat.Queue.Concurrency = 1
	run = must(b.storage.HeartbeatRunLease(b.ctx(), beat))(t).Run
	s.wantFull("after a heartbeat", competitor, noon.Add(70*time.Second))
	equal(t, "holders after a heartbeat", runIDs(run), s.holders(run))
	run = s.commit(run, noon.Add(30*time.Second), &runlane.RunCancellationRequested{})
	s.wantFull("while a run is asked to cancel", competitor, noon.Add(time.Hour))
	b.wantScan(
		"needing cancellation",
		b.storage.ListRunsNeedingCancellationFinalization,
		s.bounded(noon.Add(time.Hour)),
		run,
	)
	s.commit(run, noon.Add(time.Hour), &runlane.RunCancelled{})
	s.won("the next", s.reserve(competitor, noon.Add(time.Hour)))
}

func queueCancelled(t *testing.T, b *bundle) {
	s := b.limited(1)
	end := noon.Add(reservation)
	loser := s.won("reserve", s.reserve(s.waiting(noon, RunOptions{}), noon))
	winner := s.won("reserve when it is over", s.reserve(s.waiting(noon, RunOptions{}), end))
	s.commit(loser, end, &runlane.RunCancelled{})
	equal(t, "holders: the slot is not the cancelled run's", runIDs(winner), s.holders(winner))
	s.wantFull("after the cancellation", s.waiting(noon, RunOptions{}), end)

	// Now both at once; either may come first.
	for _, key := range []string{"one", "two"} {
		o := RunOptions{ConcurrencyKey: key}
		loser = s.won("reserve", s.reserve(s.waiting(noon, o), noon))
		cancel := b.Append(t, loser, end, &runlane.RunCancelled{})
		cancel.Queue.Concurrency = 1
		takeover := b.Reserve(t, s.waiting(noon, o), end, end.Add(reservation), 1)
		_, failed := race(2, func(i int) (any, error) {
			if i == 0 {
				return b.storage.AppendRunEvents(b.ctx(), cancel)
			}
			return b.storage.ReserveRunDispatch(b.ctx(), takeover)
		})
		if len(failed) > 0 {
			t.Fatalf("cancelling beside a takeover: %v", failed[0])
		}
		equal(t, "status", runlane.StatusCancelled, b.get(loser.ID).Status)
	}
}

// docs/internals/layout.md, Invariants: no commit adds a slot beyond the limit that it carries, wherever the taken ones
// lie.
func queueLimits(t *testing.T, b *bundle) {
	wide := b.limited(6)
	first := make([]*runlane.Run, 0, 6)
	for range 6 {
		first = append(first, wide.executing(noon, RunOptions{}))
	}
	for _, run := range first[:4] {
		wide.commit(run, noon, Succeeded(run, nil))
	}
	held := first[4:]
	runs := wide.waitingRuns(9, noon, RunOptions{})
	wantHolders := func(s *withSlots, want int) {
		t.Helper()
		winners := s.raceForSlots(t, runs, noon)
		runs = without(runs, winners)
		if len(held)+len(winners) > want {
			t.Fatalf(
				"%d runs hold slots, %d racers just got one under the limit %d",
				len(held)+len(winners),
				len(winners),
				s.limit,
			)
		}
		filled := s.fill(runs, noon)
		runs = without(runs, filled)
		held = append(append(held, winners...), filled...)
		if len(held) != want {
			t.Fatalf("%d runs hold slots when none is left, want %d", len(held), want)
		}
		equal(t, "holders", runIDs(held...), s.holders(held[0]))
	}
	wantHolders(wide.under(2), 2) // lowered to what runs already
	wantHolders(wide.under(3), 3)
	wantHolders(wide.under(1), 3) // lowered: no run loses its slot
	wantHolders(wide.under(5), 5)
}

func queueBecomesBounded(t *testing.T, b *bundle) {
	s, end := b.limited(1), noon.Add(time.Minute)
	before := b.running(noon, end, RunOptions{}) // while there was no limit
	published := b.create(noon, RunOptions{Outbox: lane.InitialOutbox{Published: true}})
	slotted := s.executing(noon, RunOptions{})
	equal(t, "holders: a run from before holds no slot", runIDs(slotted), s.holders(before))

	// What was on its way wants a slot like all others.
	s.wantFull("a run whose wakeup was on its way", published, noon)
	s.wantOutcome("its claim without a slot", s.take(published, noon, false), lane.LostReservation)
	s.wantFull("a run that crashed since", before, end)
	// A run must not stay running without a slot: the scan returns it, and maintenance makes it wait like the others.
	b.wantScan("needing dispatch after the crash", b.storage.ListRunsNeedingDispatch, s.bounded(end), before, slotted)
	b.wantScan(
		"needing dispatch under a limit with room",
		b.storage.ListRunsNeedingDispatch,
		s.under(5).bounded(end),
		before,
		slotted,
		published,
	)
	done := s.commit(slotted, noon, Succeeded(slotted, nil))
	b.wantScan("needing dispatch", b.storage.ListRunsNeedingDispatch, s.bounded(noon), published)
	s.won("reserve when the slot is free", s.reserve(published, noon))
	equal(t, "holders at the end", runIDs(published), s.holders(done))

	// The run from before the limit can still end.
	before = s.commit(before, noon, Succeeded(before, nil))
	equal(t, "status", runlane.StatusSucceeded, before.Status)
}

func queueBecomesUnbounded(t *testing.T, b *bundle) {
	s := b.limited(1)
	free := s.under(0)
	running := s.executing(noon, RunOptions{})
	waiting := s.waiting(noon, RunOptions{})
	s.wantFull("while there is a limit", waiting, noon)

	// The limit goes: an ordinary request brings what waited, and a claim asks for nothing.
	delivered := b.deliver(waiting, noon, noon, lane.InitialOutbox{})
	equal(t, "rows due", []runlane.RunID{waiting.ID}, runsOf(b.outboxOf(noon, delivered.Outbox[0].ID)))
	second := free.won("claim without a limit", free.take(delivered.Run, noon, false))
	equal(t, "holders: who started without a limit holds no slot", runIDs(running), s.holders(running))

	// It comes back: the one from before still counts, the other never did.
	third := s.waiting(noon, RunOptions{})
	s.wantFull("when the limit is back", third, noon)
	// What happens to a slot follows the run, not the policy: this commit knows no limit and frees it.
	free.commit(running, noon, Succeeded(running, nil))
	third = s.won("the next", s.reserve(third, noon))
	free.commit(second, noon, Succeeded(second, nil))

	// A reserved run that is claimed while there is no limit keeps its slot, so that the limit holds once it is back.
	third = free.won("claim of a reserved run", free.take(third, noon.Add(time.Second), false))
	s.wantFull("beside it", s.waiting(noon, RunOptions{}), noon.Add(24*time.Hour))
	s.commit(third, noon.Add(time.Second), Succeeded(third, nil))
	equal(t, "holders at the end", nil, s.holders(third))
}
