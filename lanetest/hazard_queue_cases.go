package lanetest

import (
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// Timelines about bounded queues in which a design like this can fail.
func hazardQueueCases() []storageCase {
	return []storageCase{
		{"Hazard01_ARunThatTookItsSlotWithItsClaimIsFoundWhenItsWorkerDies", needsQueues, hazardClaimedWaiting},
		{"Hazard06_AHeldSlotOutlastsEveryLeaseUntilACommitEndsIt", needsQueues, hazardHeldSlot},
		{"Hazard07_AnAbandonedRunIsRecoveredInItsOwnSlot", needsQueues, hazardOwnSlot},
		{
			"Hazard08_WhatWaitedInAQueueThatLosesItsLimitIsDelivered",
			needsBoth(needsQueues, needsRedelivery),
			hazardLimitGone,
		},
		{
			"Hazard08_WhatWasOnItsWayInAQueueThatGetsALimitIsHandedASlot",
			needsBoth(needsQueues, needsRedelivery),
			hazardLimitNew,
		},
		{
			"Hazard12_AWakeupLaterThanItsReservationReservesAndClaims",
			needsBoth(needsQueues, needsRedelivery),
			hazardLateWakeup,
		},
	}
}

// policy is the queue with its limit, as scans carry it.
func (s *withSlots) policy() runlane.Queue { return runlane.Queue{Name: Queue, Concurrency: s.limit} }

// docs/internals/layout.md, Marker table: a run that is claimed while it waits for a slot must still be found while
// scans skip its full partition.
func hazardClaimedWaiting(_ *testing.T, b *bundle) {
	s := b.limited(1)
	at, end := noon.Add(time.Second), noon.Add(time.Second+time.Minute)
	o := RunOptions{ConcurrencyKey: "customer:7"}
	run := s.waiting(noon, o)
	behind := []*runlane.Run{s.waiting(noon.Add(time.Millisecond), o), s.waiting(noon.Add(2*time.Millisecond), o)}
	// by a poll worker, or a late duplicate
	run = s.won("a claim of a run that waits for a slot", s.take(run, at, true))
	for _, look := range []time.Duration{0, 30 * time.Second, time.Minute - time.Millisecond} {
		b.looks(at.Add(look), s.policy())
		b.wantScan("needing dispatch while it runs", b.storage.ListRunsNeedingDispatch, s.bounded(at.Add(look)))
	}
	// The worker is dead. Its run fills the partition, and has to be found.
	b.wantScan("needing dispatch at the end of the lease", b.storage.ListRunsNeedingDispatch, s.bounded(end), run)
	run = s.won("recovery", s.reserve(run, end))
	run = s.won("claim after the recovery", s.take(run, end, false))
	s.commit(run, end, Succeeded(run, nil))
	b.wantScan("needing dispatch when the slot is free", b.storage.ListRunsNeedingDispatch, s.bounded(end), behind[0])
}

// docs/internals/layout.md, Slots: heartbeats leave the slot alone, so its occupation must not depend on them.
func hazardHeldSlot(t *testing.T, b *bundle) {
	s := b.limited(1)
	run := s.executing(noon, RunOptions{}) // for a minute
	competitor := s.waiting(noon, RunOptions{})
	at := noon
	for range 3 {
		at = at.Add(40 * time.Second)
		beat := b.Heartbeat(t, run, at, at.Add(time.Minute))
		beat.Queue.Concurrency = 1
		run = must(b.storage.HeartbeatRunLease(b.ctx(), beat))(t).Run
		s.wantFull("beside a heartbeat, after "+at.Sub(noon).String(), competitor, at.Add(time.Minute-time.Millisecond))
	}
	end := run.Lease.ExpiresAt
	s.wantFull("at the end of the lease", competitor, end)
	s.wantFull("a day after the end of the lease", competitor, end.Add(24*time.Hour))
	// The running state ends in recovery: from here on the slot is a reservation, and time frees it.
	run = s.won("recovery", s.reserve(run, end))
	until := run.DispatchExpiresAt
	s.wantFull("a millisecond before the reservation is over", competitor, until.Add(-time.Millisecond))
	competitor = s.won("when the reservation is over", s.reserve(competitor, until))
	equal(t, "holders", runIDs(competitor), s.holders(run))
}

// docs/internals/design.md, Queues: what one tick does for the run of a dead worker, all in its second.
func hazardOwnSlot(t *testing.T, b *bundle) {
	s := b.limited(1)
	end := noon.Add(time.Minute)
	run := s.executing(noon, RunOptions{})
	competitor := s.waiting(noon, RunOptions{})
	free := b.running(noon, end, RunOptions{Queue: "another"})

	b.wantScan("needing delivery: bounded queues are left out", b.storage.ListRunsNeedingDelivery, s.bounded(end), free)
	b.wantScan("needing delivery, had the queue no limit", b.storage.ListRunsNeedingDelivery, b.due(end), free, run)
	b.wantScan(
		"needing dispatch a millisecond early",
		b.storage.ListRunsNeedingDispatch,
		s.bounded(end.Add(-time.Millisecond)),
	)
	b.wantScan("needing dispatch: it needs no free slot", b.storage.ListRunsNeedingDispatch, s.bounded(end), run)
	c := b.Reserve(t, run, end, end.Add(reservation), 1)
	c.Outbox = lane.InitialOutbox{ClaimUntil: end.Add(claimTime)}
	recovered := s.checked(b.storage.ReserveRunDispatch(b.ctx(), c))
	run = s.won("recovery", recovered)
	equal(t, "rows of the recovery", 1, len(recovered.Commit.Outbox))
	equal(t, "holders", runIDs(run), s.holders(run))
	run = s.won("the next attempt", s.take(run, end, false))
	equal(t, "attempts", 2, run.Counters.Attempts)
	s.wantFull("beside the next attempt", competitor, end.Add(24*time.Hour))
	equal(t, "holders", runIDs(run), s.holders(run))
}

// docs/internals/design.md, Queues. That a tick appends what these scans ask for is the runtime's part.
func hazardLimitGone(t *testing.T, b *bundle) {
	s := b.limited(1)
	holder := s.executing(noon, RunOptions{})
	waiting := s.waitingRuns(7, noon, RunOptions{})
	b.looks(noon.Add(time.Second), s.policy())
	equal(t, "rows of what waits", 0, len(b.outbox(noon.Add(time.Second))))

	// A deployment without the limit. Pages are small: what waited must come through them.
	at := noon.Add(2 * time.Second)
	free := s.under(0)
	q := b.due(at)
	q.Limit = 3
	b.wantScan("needing redelivery when the limit is gone", b.storage.ListRunsNeedingRedelivery, q, waiting...)
	for _, run := range waiting {
		commit := b.deliver(run, at, at, lane.InitialOutbox{})
		equal(t, "row of the request", 1, len(b.outboxOf(at, commit.Outbox[0].ID)))
		free.won("claim", free.take(commit.Run, at, false))
	}
	b.wantScan("needing redelivery in the end", b.storage.ListRunsNeedingRedelivery, b.due(at.Add(time.Second)))
	b.wantScan("needing delivery when all workers died", b.storage.ListRunsNeedingDelivery, b.due(at.Add(time.Minute)),
		append(waiting, holder)...)
}

func hazardLimitNew(t *testing.T, b *bundle) {
	published := lane.InitialOutbox{Published: true}
	var runs []*runlane.Run
	for range 3 {
		runs = append(runs, b.create(noon, RunOptions{Outbox: published}))
	}
	b.looks(noon.Add(2 * time.Minute)) // the tick leaves them alone for ten minutes

	// A deployment with a limit, and another run has the slot when their wakeups arrive.
	s := b.limited(1)
	at := noon.Add(3 * time.Minute)
	holder := s.executing(at, RunOptions{})
	for _, run := range runs {
		s.wantOutcome("a wakeup without a slot to be had", s.take(run, at, true), lane.LostCapacity)
	}
	b.wantScan("needing dispatch while the queue is full", b.storage.ListRunsNeedingDispatch, s.bounded(at))
	b.wantScan(
		"needing redelivery: bounded queues are left out",
		b.storage.ListRunsNeedingRedelivery,
		s.bounded(at.Add(24*time.Hour)),
	)

	// The wakeups are acknowledged. Each process that frees the slot finds the next run at once.
	for len(runs) > 0 {
		at = at.Add(time.Second)
		s.commit(holder, at, Succeeded(holder, nil))
		var next lane.RunRef
		b.eventually(func() string {
			refs := b.scanAll(b.storage.ListRunsNeedingDispatch, s.bounded(at))
			if len(refs) != 1 {
				return "one slot is free, and the runs that need dispatch are " + difference(nil, refIDs(refs))
			}
			next = refs[0]
			return ""
		})
		run := b.get(next.RunID)
		if len(without(runs, []*runlane.Run{run})) != len(runs)-1 {
			t.Fatalf("needing dispatch is %s, which is none of those that wait", run.ID)
		}
		runs = without(runs, []*runlane.Run{run})
		holder = s.won("claim", s.take(s.won("reserve", s.reserve(run, at)), at, false))
	}
}

// docs/internals/design.md, Queues. That a wakeup without a live reservation tries this, and in which of the two
// ways, is the runtime's part.
func hazardLateWakeup(t *testing.T, b *bundle) {
	s := b.limited(1)
	run := s.won("reserve", s.reserve(s.waiting(noon, RunOptions{}), noon))
	late := noon.Add(reservation + 5*time.Second)
	s.wantOutcome("claim on a reservation that is over", s.take(run, late, false), lane.LostReservation)

	// The worker reserves for itself, with a row that is not to be sent, and claims.
	c := b.Reserve(t, run, late, late.Add(reservation), 1)
	c.Outbox = lane.InitialOutbox{Published: true}
	reserved := s.checked(b.storage.ReserveRunDispatch(b.ctx(), c))
	run = s.won("reserve on arrival", reserved)
	if rows := reserved.Commit.Outbox; len(rows) != 1 || rows[0].Status != lane.OutboxPublished {
		t.Fatalf("rows of the reservation: %+v", rows)
	}
	equal(t, "rows to send", 0, len(b.outbox(late.Add(time.Minute))))
	run = s.won("claim on arrival", s.take(run, late, false))

	// Or it takes the slot with its claim.
	second := s.waiting(noon, RunOptions{})
	s.commit(run, late, Succeeded(run, nil))
	second = s.won("reserve", s.reserve(second, late))
	later := late.Add(reservation + 5*time.Second)
	second = s.won("claim with a slot on arrival", s.take(second, later, true))

	// Where there is none it waits again, and is found when there is.
	// from before the limit
	third := b.append(b.Creation(t, noon, RunOptions{Outbox: lane.InitialOutbox{Published: true}})).Run
	b.looks(noon.Add(time.Minute))
	s.wantFull("a wakeup that finds no slot", third, later)
	b.wantScan("needing dispatch while there is none", b.storage.ListRunsNeedingDispatch, s.bounded(later))
	s.commit(second, later, Succeeded(second, nil))
	b.wantScan("needing dispatch when there is one", b.storage.ListRunsNeedingDispatch, s.bounded(later), third)
}
