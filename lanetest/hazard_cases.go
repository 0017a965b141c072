package lanetest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// Timelines in which a design like this can fail, as far as the contract covers them. The number is the timeline's;
// tests of a single storage and of the runtime have it in their names too.
func hazardCases() []storageCase {
	return []storageCase{
		{
			"Hazard01_ARunClaimedFromAnywhereIsFoundWhenItsWorkerDies",
			needsBoth(needsOutbox, needsLeases),
			hazardClaimedAnywhere,
		},
		{
			"Hazard02_ALookBetweenReadAndCommitNeitherRefusesNorLosesTheRun",
			needsBoth(needsRedelivery, needsLeases),
			hazardLookBetween,
		},
		{"Hazard03_DueIsTheTrueMomentAndPatienceIsTheReaders", needsBoth(needsOutbox, needsLeases), hazardTrueMoment},
		{
			"Hazard04_WhateverIsNotHandedOverIsFoundAndNothingElse",
			needsBoth(needsDeadLetters, needsLeases),
			hazardHandedOver,
		},
		{
			"Hazard05_AWakeupLostAfterItsPublicationIsAskedForAgain",
			needsBoth(needsRedelivery, needsLeases),
			hazardLostWakeup,
		},
		{
			"Hazard10_TheRunOfAnOccurrenceIsMadeOnceAndCompletesIt",
			needsBoth(needsOccurrences, needsIdempotency),
			hazardOccurrenceRun,
		},
		{
			"Hazard10_ASingletonConflictIsARecordedSkip",
			needsBoth(needsOccurrences, needsSingleton),
			hazardOccurrenceSingleton,
		},
		{
			"Hazard13_PatienceWithDelayedWakeupsIsForShortWaitsOnly",
			needsBoth(needsOutbox, needsLeases),
			hazardShortWaits,
		},
	}
}

// looks reads what the stages of a tick read at an instant, because a storage may store something when it reads.
func (b *bundle) looks(at time.Time, bounded ...runlane.Queue) {
	b.t.Helper()
	lists := []scan{b.storage.ListRunsNeedingCancellationFinalization, b.storage.ListRunsNeedingDelivery}
	if b.h.Capabilities.FindsLostWakeups {
		lists = append(lists, b.storage.ListRunsNeedingRedelivery)
	}
	if b.h.Capabilities.EnforcesQueueConcurrency {
		lists = append(lists, b.storage.ListRunsNeedingDispatch)
	}
	for _, list := range lists {
		q := b.due(at)
		q.Bounded = bounded
		b.scanAll(list, q)
	}
}

// of is a query for one queue alone.
func (b *bundle) of(queue runlane.QueueName, at time.Time) *lane.DueQuery {
	q := b.due(at)
	q.Queues = []runlane.QueueName{queue}
	return q
}

// docs/internals/layout.md, Marker table: after a claim, the run is found at its lease's end, wherever it was before.
func hazardClaimedAnywhere(_ *testing.T, b *bundle) {
	lease := 15 * time.Minute
	held := func(queue runlane.QueueName) lane.OutboxMessage {
		return b.append(b.Creation(b.t, noon, RunOptions{
			Queue:  queue,
			Outbox: lane.InitialOutbox{ClaimUntil: noon.Add(claimTime)},
		})).Outbox[0]
	}
	published := lane.InitialOutbox{Published: true}
	// Each makes a run and returns it with the moment of its claim.
	states := map[runlane.QueueName]func(queue runlane.QueueName) (*runlane.Run, time.Time){
		"behind-a-backlog": func(queue runlane.QueueName) (*runlane.Run, time.Time) {
			run, at := b.create(noon, RunOptions{Queue: queue, Outbox: published}), noon
			for _, minutes := range []int{10, 20, 40, 80} { // the next redelivery is hours away
				at = at.Add(time.Duration(minutes) * time.Minute)
				run = b.deliver(run, at, at, published).Run
			}
			b.looks(at.Add(time.Minute))
			return run, at.Add(2 * time.Minute)
		},
		"publishing-failed": func(queue runlane.QueueName) (*runlane.Run, time.Time) {
			row := held(queue)
			b.markFailure(row.OutboxRef, 9, noon, noon.Add(5*time.Hour))
			return b.get(row.Wakeup.RunID), noon.Add(time.Second)
		},
		"dead-lettered": func(queue runlane.QueueName) (*runlane.Run, time.Time) {
			row := held(queue)
			b.giveUp(row.OutboxRef, 10, noon)
			return b.get(row.Wakeup.RunID), noon.Add(time.Second)
		},
		"deferred": func(queue runlane.QueueName) (*runlane.Run, time.Time) {
			return b.create(noon, RunOptions{Queue: queue}), noon.Add(time.Second)
		},
		"retrying": func(queue runlane.QueueName) (*runlane.Run, time.Time) {
			run := b.running(noon, noon.Add(time.Minute), RunOptions{Queue: queue})
			return b.push(run, noon, Retried(run, noon.Add(time.Hour))), noon.Add(time.Hour)
		},
		"taken-over": func(queue runlane.QueueName) (*runlane.Run, time.Time) {
			run := b.running(noon, noon.Add(time.Hour), RunOptions{Queue: queue})
			b.looks(noon.Add(10 * time.Minute))
			return run, noon.Add(time.Hour)
		},
	}
	delivery, cancellation := b.storage.ListRunsNeedingDelivery, b.storage.ListRunsNeedingCancellationFinalization
	for state, before := range states {
		queue := state
		run, at := before(queue)
		end := at.Add(lease)
		run = b.claim(run, at, end)
		b.looks(at.Add(time.Minute)) // its worker is dead already
		b.wantScan(
			string(state)+": needing delivery while the lease lasts",
			delivery,
			b.of(queue, end.Add(-time.Millisecond)),
		)
		b.wantScan(string(state)+": needing delivery at the end of the lease", delivery, b.of(queue, end), run)

		queue += "-cancelled"
		run, at = before(queue)
		run = b.push(b.claim(run, at, end), at, &runlane.RunCancellationRequested{})
		b.looks(at.Add(time.Minute))
		b.wantScan(
			string(state)+": needing cancellation while the lease lasts",
			cancellation,
			b.of(queue, end.Add(-time.Millisecond)),
		)
		b.wantScan(string(state)+": needing cancellation at the end of the lease", cancellation, b.of(queue, end), run)
	}
}

// docs/internals/layout.md, Invariants: what a tick stores about a run does not count as progress of the run.
func hazardLookBetween(t *testing.T, b *bundle) {
	published := lane.InitialOutbox{Published: true}
	run := b.create(noon, RunOptions{Outbox: published}) // read by a worker
	at := noon.Add(2 * time.Minute)
	b.looks(at) // now the tick has seen it
	equal(t, "run after a look", run, b.get(run.ID))
	end := at.Add(time.Minute)
	run = b.claim(run, at, end)
	b.wantScan(
		"needing delivery while the lease lasts",
		b.storage.ListRunsNeedingDelivery,
		b.due(end.Add(-time.Millisecond)),
	)
	b.wantScan("needing delivery when the worker died", b.storage.ListRunsNeedingDelivery, b.due(end), run)

	// The owner's writes are not refused for it either.
	second := b.running(noon, noon.Add(time.Hour), RunOptions{Queue: "second"})
	b.looks(noon.Add(2 * time.Minute))
	second = must(b.storage.HeartbeatRunLease(b.ctx(), b.Heartbeat(t, second, at, at.Add(time.Hour))))(t).Run
	b.looks(noon.Add(time.Hour + time.Minute))
	outcome := b.Append(t, second, at, Succeeded(second, nil))
	outcome.LeaseToken = second.Lease.Token
	b.append(outcome)
}

// docs/internals/layout.md, Indexes: a time is when something became or becomes due, never when a scan is planned.
func hazardTrueMoment(t *testing.T, b *bundle) {
	initial := lane.InitialOutbox{ClaimUntil: noon.Add(claimTime)}
	ms := time.Millisecond

	// A worker that polls finds what was triggered this instant.
	fresh := b.create(noon, RunOptions{Queue: "poll", Outbox: initial})
	b.wantScan("runnable before it exists", b.storage.ListRunnableRuns, b.of("poll", noon.Add(-ms)))
	b.wantScan("runnable at once", b.storage.ListRunnableRuns, b.of("poll", noon), fresh)

	// A worker with ten seconds for its work dies. Its lease ends long before the patience of the scans is over.
	end := noon.Add(15 * time.Second)
	short := b.claim(b.create(noon, RunOptions{Queue: "lambda", Outbox: initial}), noon, end)
	for _, list := range []scan{b.storage.ListRunnableRuns, b.storage.ListRunsNeedingDelivery} {
		b.wantScan("before the end of a short lease", list, b.of("lambda", end.Add(-ms)))
		b.wantScan("at the end of a short lease", list, b.of("lambda", end), short)
	}

	// The claim on a row ends at its ClaimUntil.
	equal(t, "rows while their maker's claim lasts", 0, len(b.outbox(noon.Add(claimTime-ms))))
	b.wantDue("rows when their maker's claim is over", noon.Add(claimTime), fresh.ID)

	// Patience hides a run for no longer than its own duration, whatever the run waits for.
	patience := lane.Patience{Queued: time.Minute, ShortWait: 30 * time.Second}
	retry := b.running(noon, noon.Add(time.Hour), RunOptions{Queue: "retry"})
	retry = b.push(retry, noon, Retried(retry, noon.Add(10*time.Second)))
	for _, c := range []struct {
		list scan
		run  *runlane.Run
		by   time.Time
	}{
		{b.storage.ListRunnableRuns, fresh, noon.Add(patience.Queued)},
		{b.storage.ListRunsNeedingDelivery, short, noon.Add(patience.Queued)},
		{b.storage.ListRunsNeedingDelivery, retry, retry.RunAt.Add(patience.ShortWait)},
	} {
		q := b.of(c.run.Queue, c.by)
		q.Patience = patience
		b.wantScan(string(c.run.Queue)+": when patience is over", c.list, q, c.run)
	}

	// Runs come in the order of their due times, whatever was claimed, read or published in between.
	var order []*runlane.Run
	for i := range 6 {
		at := noon.Add(time.Duration(i) * time.Second)
		order = append(order, b.create(at, RunOptions{Queue: "order", Outbox: lane.InitialOutbox{Published: i%2 == 0}}))
		if i == 2 {
			b.looks(noon.Add(2 * time.Minute))
		}
	}
	b.wantScanOrder(
		"runnable, in the order of their moments",
		b.storage.ListRunnableRuns,
		b.of("order", noon.Add(time.Hour)),
		order...,
	)
}

// docs/internals/design.md, Delivery: the outbox.
func hazardHandedOver(t *testing.T, b *bundle) {
	next := noon.Add(time.Second)
	failed := b.eagerRow(noon)
	b.markFailure(failed.OutboxRef, 1, noon, next)
	deferred := b.create(noon, RunOptions{})
	dead := b.eagerRow(noon)
	b.giveUp(dead.OutboxRef, 10, noon)
	redelivered := b.append(b.Creation(t, noon, RunOptions{}))
	b.deliver(redelivered.Run, noon, noon, lane.InitialOutbox{Published: true})
	cancelled := b.append(b.Creation(t, noon, RunOptions{}))
	b.push(cancelled.Run, noon, &runlane.RunCancelled{})
	claimed := b.append(b.Creation(t, noon, RunOptions{}))
	b.claim(claimed.Run, noon, noon.Add(24*time.Hour))

	// Rows are found at the times at which they are due, without an inspection of the run before.
	b.wantDue("at once", next.Add(-time.Millisecond), deferred.ID)
	b.wantDue("when the second try is due", next, failed.Wakeup.RunID)
	// The publisher that holds a superseded row can still mark it, and no other publisher ever gets it.
	for name, c := range map[string]*lane.Commit{
		"redelivered": redelivered,
		"cancelled":   cancelled,
		"claimed":     claimed,
	} {
		for _, at := range []time.Time{noon, noon.Add(time.Hour)} {
			if got := b.outboxOf(at, c.Outbox[0].ID); len(got) != 0 {
				t.Fatalf("%s: the superseded row was claimed", name)
			}
		}
	}
	// Only the list of dead letters leads to the run.
	b.wantDeadLetters("", runlane.DeadLetter{
		RunID: dead.Wakeup.RunID, OutboxID: dead.ID, Queue: Queue, Attempts: 10, Failure: refusal, Since: noon,
	})
	equal(t, "rows of a dead letter", 0, len(b.outboxOf(noon.Add(time.Hour), dead.ID)))
	requeue := &lane.RequeueCommand{Environment: b.env, IDs: []string{dead.ID}, At: next}
	equal(t, "requeued", 1, must(b.storage.RequeueDeadLetters(b.ctx(), requeue))(t))
	b.wantDue("after requeueing", next, dead.Wakeup.RunID)
	b.wantDue("publishers that died", next.Add(claimTime), deferred.ID, failed.Wakeup.RunID, dead.Wakeup.RunID)
}

// docs/internals/design.md, Delivery: lost wakeups. That redelivery waits while the transport is behind is the
// runtime's part.
func hazardLostWakeup(t *testing.T, b *bundle) {
	held := b.eagerRow(noon)
	b.mark(t, held.OutboxRef, noon)
	run := b.get(held.Wakeup.RunID)
	for _, at := range []time.Time{noon, noon.Add(time.Hour), noon.Add(24 * time.Hour)} { // no other method can do it
		equal(t, "published rows to publish", 0, len(b.outbox(at)))
		equal(t, "published rows to publish, by id", 0, len(b.outboxOf(at, held.ID)))
		b.wantScan("needing delivery", b.storage.ListRunsNeedingDelivery, b.due(at))
	}
	first := noon.Add(10 * time.Minute)
	b.wantRedelivery("ten minutes after the publication", first, run)
	again := b.deliver(run, first, first, lane.InitialOutbox{ClaimUntil: first.Add(claimTime)})
	equal(t, "status after the second request", runlane.StatusQueued, again.Run.Status)
	b.mark(t, again.Outbox[0].OutboxRef, first)
	second := first.Add(20 * time.Minute)
	b.wantRedelivery("twice as long after the second", second, again.Run)

	// The first wakeup was only late: it claims the run as it is now, and nothing asks for it again.
	if got := b.tryClaim(run, second, second); got.Outcome != lane.LostSequence {
		t.Fatalf("claim with what was read before the redelivery: outcome %q", got.Outcome)
	}
	b.claim(again.Run, second, second.Add(48*time.Hour))
	b.wantScan(
		"needing redelivery after the claim",
		b.storage.ListRunsNeedingRedelivery,
		b.due(second.Add(24*time.Hour)),
	)
}

// docs/internals/design.md, Schedules. That runs of schedules take no idempotency key, although their task has a
// function for it, is the runtime's part; here is what the order claim, create, complete needs from a storage after a
// crash in its middle.
func hazardOccurrenceRun(t *testing.T, b *bundle) {
	b.registered("nightly")
	// A trigger took the key that the task would compute from the schedule's payload, for a month.
	b.create(noon, RunOptions{
		IdempotencyKey: "of the payload",
		Retention:      runlane.KeyRetention{TTL: 30 * 24 * time.Hour},
	})
	var fires []runlane.Occurrence
	for night := range 3 {
		fire := noon.Add(time.Duration(night+1) * 24 * time.Hour)
		creation := b.Creation(t, fire, RunOptions{
			ID:     runlane.RunID(fmt.Sprintf("run_%x", fire.UnixMilli())),
			Source: runlane.Source{Type: runlane.SourceSchedule, ScheduleID: "nightly"},
		})
		b.claimed("nightly", fire)
		b.append(creation) // and the tick dies before it completes the occurrence

		late := fire.Add(claimTime)
		token := b.wantOutcome("nightly", fire, late, lane.Acquired)
		_, err := b.storage.AppendRunEvents(b.ctx(), creation)
		wantConflict(t, err, runlane.ConflictEventSequence, creation.Projected.ID)
		existing := b.get(creation.Projected.ID)
		equal(t, "source of the run that exists", creation.Projected.Source, existing.Source)
		equal(t, "events of the run that exists", creation.Projected.EventSequence, existing.EventSequence)
		if err := b.complete("nightly", fire, token, existing.ID); err != nil {
			t.Fatalf("completing with the run that exists: %v", err)
		}
		b.wantOutcome("nightly", fire, late.Add(40*24*time.Hour), lane.LostOccurrence)
		fires = append(fires, runlane.Occurrence{ScheduleID: "nightly", FireTime: fire, RunID: existing.ID})
		equal(t, "last run", existing.ID, b.record("nightly").LastRunID)
	}
	slices.Reverse(fires)
	b.wantOccurrences("nightly", fires)
}

func hazardOccurrenceSingleton(t *testing.T, b *bundle) {
	b.registered("nightly")
	active := b.create(noon, RunOptions{SingletonKey: "one"})
	fire := noon.Add(24 * time.Hour)
	token := b.claimed("nightly", fire)
	_, err := b.storage.AppendRunEvents(b.ctx(), b.Creation(t, fire, RunOptions{SingletonKey: "one"}))
	wantConflict(t, err, runlane.ConflictSingletonKey, active.ID)
	skip := b.completion("nightly", fire, token)
	skip.Skipped = runlane.SkippedSingleton
	if err := b.storage.CompleteScheduleOccurrence(b.ctx(), skip); err != nil {
		t.Fatalf("completing with a skip: %v", err)
	}
	b.wantOccurrences("nightly", []runlane.Occurrence{
		{ScheduleID: "nightly", FireTime: fire, Skipped: runlane.SkippedSingleton},
	})
	b.wantOutcome("nightly", fire, fire.Add(time.Hour), lane.LostOccurrence)
	equal(t, "last fire", fire, b.record("nightly").LastFire)
}

// docs/internals/design.md, Delivery: short waits. That an early wakeup is sent again, or waits, is the runtime's
// part.
func hazardShortWaits(_ *testing.T, b *bundle) {
	const longest = 15 * time.Minute
	patience := lane.Patience{Queued: time.Minute, ShortWait: 30 * time.Second}
	for name, wait := range map[runlane.QueueName]time.Duration{
		"short":  longest,
		"long":   longest + time.Millisecond,
		"longer": time.Hour,
	} {
		due := noon.Add(wait)
		retried, released := b.running(noon, due, RunOptions{
			Queue: name,
		}), b.running(noon, due, RunOptions{Queue: name})
		runs := []*runlane.Run{
			b.create(noon, RunOptions{Queue: name, RunAt: due}),
			b.push(retried, noon, Retried(retried, due)), b.push(released, noon, Released(released, due)),
		}
		found := due // a long wait has no delayed wakeup that could be on its way
		if wait <= longest {
			found = due.Add(patience.ShortWait)
		}
		for _, list := range []scan{b.storage.ListRunsNeedingDelivery, b.storage.ListRunnableRuns} {
			q := b.of(name, found)
			q.Patience = patience
			b.wantScan(string(name)+" waits, with patience", list, q, runs...)
			q = b.of(name, due) // no wakeup is sent when a wait there ends
			q.Patience = patience
			q.Patience.Undelayed = []runlane.QueueName{"another", name}
			b.wantScan(string(name)+" waits, without native delay", list, q, runs...)
			b.wantScan(string(name)+" waits, a millisecond early", list, b.of(name, due.Add(-time.Millisecond)))
			b.wantScan(string(name)+" waits, without patience", list, b.of(name, due), runs...)
		}
	}
}
