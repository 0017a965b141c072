package lanetest

import (
	"cmp"
	"fmt"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// Timelines that concern scans, schedules, owners of leases, limits and lists. Other timelines are with the cases of
// their ability.
func hazardLaterCases() []storageCase {
	return []storageCase{
		{"Hazard14_FullPartitionsNeverHideOneWithRoom", needsQueues, hazardFullPartitions},
		{"Hazard15_RowsOfAnotherQueueNeverHideAQueuesOwn", needsBoth(needsRedelivery, needsLeases), hazardQueueFilter},
		{"Hazard16_WhatFiredNeverFiresAgain", needsOccurrences, hazardFiredOnce},
		{"Hazard16_TwoDefinitionsInTurnLoseNoFire", needsOccurrences, hazardTwoDefinitions},
		{"Hazard16_AnOvertakenOccurrenceIsRecorded", needsOccurrences, hazardOvertaken},
		{"Hazard19_ARequestInBetweenIsNoLostLease", needsLeases, hazardRequestBetween},
		{"Hazard20_ACreationThatLosesItsSlotIsMadeWithoutOne", needsQueues, hazardCreationWithoutSlot},
		{"Hazard21_ReserversUnderALoweredLimitNeverExceedIt", needsQueues, hazardLoweredLimit},
		{
			"Hazard25_WhatMovesIsReadExactlyElsewhere",
			needsBoth(needsHistory, needsBoth(needsLeases, needsSingleton)),
			hazardExactReads,
		},
	}
}

// docs/internals/layout.md, Invariants: a pass over the partitions begins after the one at which the last pass ended.
// Maintenance keeps no cursor: each time it reads a first page and reserves the runs of it that it can.
func hazardFullPartitions(t *testing.T, b *bundle) {
	s := b.limited(1)
	const partitions = 8
	reserved := map[runlane.RunID]bool{}
	for i := range partitions {
		key := RunOptions{ConcurrencyKey: fmt.Sprint("customer:", i)}
		if i%4 != 0 {
			s.executing(noon, key) // full for good
		}
		s.waitingRuns(3, noon, key)
	}
	at := noon.Add(time.Second)
	b.eventually(func() string {
		for range 2 * partitions {
			q := s.bounded(at)
			q.Limit = 1
			for _, ref := range must(s.storage.ListRunsNeedingDispatch(b.ctx(), q))(t).Items {
				run := s.won("reserve in a partition with room", s.reserve(b.get(ref.RunID), at))
				reserved[run.ID] = true
			}
		}
		if len(reserved) != partitions/4 {
			return fmt.Sprintf(
				"%d runs got a slot, want one in each of %d partitions with room",
				len(reserved),
				partitions/4,
			)
		}
		return ""
	})
}

// docs/internals/layout.md, Indexes: rows of other queues are passed over, and do not use up the page.
func hazardQueueFilter(t *testing.T, b *bundle) {
	const heavy = 30
	published := lane.InitialOutbox{Published: true}
	at := noon.Add(24 * time.Hour)
	states := map[string]struct {
		list scan
		make func(o RunOptions) *runlane.Run
	}{
		"runnable": {b.storage.ListRunnableRuns, func(o RunOptions) *runlane.Run { return b.create(noon, o) }},
		"delivery": {
			b.storage.ListRunsNeedingDelivery,
			func(o RunOptions) *runlane.Run { return b.running(noon, noon.Add(time.Minute), o) },
		},
		"redelivery": {
			b.storage.ListRunsNeedingRedelivery,
			func(o RunOptions) *runlane.Run { o.Outbox = published; return b.create(noon, o) },
		},
	}
	for name, state := range states {
		for range heavy {
			state.make(RunOptions{Queue: runlane.QueueName("heavy-" + name)})
		}
		o := RunOptions{Queue: runlane.QueueName("mails-" + name)}
		run := state.make(o) // the youngest
		q := b.of(o.Queue, at)
		q.Limit = 1
		b.eventually(func() string { // on the first page, which has room for one
			return difference([]runlane.RunID{run.ID}, refIDs(must(state.list(b.ctx(), q))(t).Items))
		})
	}
}

// docs/internals/design.md, Schedules: an occurrence at or before the last fire is never claimed, however long ago
// that was, and even if its record was removed or never existed.
func hazardFiredOnce(t *testing.T, b *bundle) {
	b.registered("once")
	fire := noon.Add(time.Minute)
	b.completed("once", fire, "run_once")
	if r := b.record("once"); !r.LastFire.Equal(fire) || r.LastRunID != "run_once" { // written by the completion itself
		t.Fatalf("after the completion the record is %+v", r)
	}
	for _, later := range []time.Duration{0, claimTime, 41 * 24 * time.Hour, 364 * 24 * time.Hour} {
		b.wantOutcome("once", fire, fire.Add(later), lane.LostOccurrence)
		b.wantOutcome("once", fire.Add(-time.Second-later), fire.Add(later), lane.LostOccurrence)
	}
}

// Two processes with different definitions overwrite each other's record every minute, and the occurrence falls in
// between. The record keeps when it was registered, so it is still due; that a changed definition applies from the last
// evaluation on is the runtime's part.
func hazardTwoDefinitions(t *testing.T, b *bundle) {
	record := b.registered("nightly")
	fire := noon.Add(3 * time.Minute)
	for i := range 6 {
		at := noon.Add(time.Duration(i) * time.Minute)
		record.DefinitionHash, record.LastEvaluated = fmt.Sprint("definition ", i%2), at
		record = b.schedule(record)
		if !record.RegisteredAt.Equal(noon) {
			t.Fatalf("the record was registered at %v, want %v", record.RegisteredAt, noon)
		}
		if i == 4 { // the first evaluation behind it, by whichever
			b.completed("nightly", fire, "run_nightly")
			record = b.record("nightly")
		}
	}
	equal(t, "last run", "run_nightly", record.LastRunID)
	if !record.LastFire.Equal(fire) {
		t.Fatalf("last fire %v, want %v", record.LastFire, fire)
	}
	b.wantOutcome("nightly", fire, fire.Add(time.Hour), lane.LostOccurrence)
}

// An occurrence is claimed, and its process dies. When the claim is over, a newer occurrence is due. The older one can
// be claimed again and completed until the newer one is completed, and never later.
func hazardOvertaken(t *testing.T, b *bundle) {
	b.registered("nightly")
	early, late := noon.Add(time.Minute), noon.Add(2*time.Minute)
	b.claimed("nightly", early)
	at := late.Add(claimTime)
	token := b.wantOutcome("nightly", early, at, lane.Acquired)
	skip := b.completion("nightly", early, token)
	skip.Skipped = runlane.SkippedMisfire
	if err := b.storage.CompleteScheduleOccurrence(b.ctx(), skip); err != nil {
		t.Fatal(err)
	}
	b.completed("nightly", late, "run_late")
	b.eventually(func() string {
		var got []string
		for _, o := range b.occurrences("nightly", false) {
			got = append(got, fmt.Sprintf("%s %s", o.FireTime.Sub(noon), cmp.Or(string(o.Skipped), string(o.RunID))))
		}
		return difference([]string{"2m0s run_late", "1m0s misfire"}, got)
	})
	b.wantOutcome("nightly", early, at.Add(time.Hour), lane.LostOccurrence)
}

// docs/internals/design.md, Leases and workers: another process's event between an owner's read and its write is
// told apart from a lost lease, and the owner's outcome is accepted once it is projected on the run as it is now.
func hazardRequestBetween(t *testing.T, b *bundle) {
	for _, write := range []string{"outcome", "heartbeat"} {
		run := b.running(noon, noon.Add(time.Minute), RunOptions{})
		late := b.Append(t, run, noon.Add(2*time.Second), Succeeded(run, []byte(`"done"`)))
		late.LeaseToken = run.Lease.Token
		beat := b.Heartbeat(t, run, noon.Add(2*time.Second), noon.Add(2*time.Minute))
		requested := b.push(run, noon.Add(time.Second), &runlane.RunCancellationRequested{})

		var err error
		if write == "outcome" {
			_, err = b.storage.AppendRunEvents(b.ctx(), late)
		} else {
			_, err = b.storage.HeartbeatRunLease(b.ctx(), beat)
		}
		wantConflict(t, err, runlane.ConflictEventSequence, run.ID)
		equal(t, "run after the refused write", requested, b.get(run.ID))
		equal(t, "the lease's token", run.Lease.Token, requested.Lease.Token)

		again := b.Append(t, requested, noon.Add(3*time.Second), Succeeded(requested, []byte(`"done"`)))
		again.LeaseToken = run.Lease.Token
		done := b.append(again).Run
		equal(t, "status", runlane.StatusSucceeded, done.Status)
		equal(t, "output", `"done"`, string(b.get(run.ID).Output))
	}
}

// The slot for which a creation was meant is gone: nothing was written, and the caller makes a run that waits for a
// slot.
func hazardCreationWithoutSlot(t *testing.T, b *bundle) {
	s := b.limited(1)
	o := RunOptions{ID: b.NewRunID(), Concurrency: 1, ReservedUntil: noon.Add(reservation)}
	late := b.Creation(t, noon, o) // projected while there was room
	first := s.executing(noon, RunOptions{})
	_, err := b.storage.AppendRunEvents(b.ctx(), late)
	wantConflict(t, err, runlane.ConflictQueueCapacity, "")
	_, err = b.storage.GetRun(b.ctx(), late.Key())
	wantError(t, err, runlane.ErrRunNotFound)

	waiting := s.waiting(noon, RunOptions{ID: o.ID})
	b.wantScan("needing dispatch while the queue is full", b.storage.ListRunsNeedingDispatch, s.bounded(noon))
	s.commit(first, noon, Succeeded(first, nil))
	b.wantScan("needing dispatch with a slot free", b.storage.ListRunsNeedingDispatch, s.bounded(noon), waiting)
	s.won("reserve", s.reserve(waiting, noon))
}

// docs/internals/layout.md, Slots: of ten runs with slots, any five end. Then, under a limit of six, there is room for
// exactly one more, regardless of which run asks first and how often. Under a limit of five there is none.
func hazardLoweredLimit(t *testing.T, b *bundle) {
	wide := b.limited(10)
	var running []*runlane.Run
	for range 10 {
		running = append(running, wide.executing(noon, RunOptions{}))
	}
	waiting := wide.waitingRuns(4, noon, RunOptions{})
	for i := range 5 {
		wide.commit(running[2*i], noon, Succeeded(running[2*i], nil))
	}
	wide.under(5).wantFull("under a limit that is just reached", waiting[0], noon)
	six := wide.under(6)
	six.won("reserve the one slot left", six.reserve(waiting[0], noon))
	six.wantFull("under a limit that is reached now", waiting[1], noon)
	equal(t, "holders", 6, len(six.holders(waiting[1])))
	seven := wide.under(7)
	seven.won("claim the one slot more", seven.take(waiting[1], noon, true))
	seven.wantFull("under the raised limit", waiting[2], noon)
	equal(t, "holders", 7, len(seven.holders(waiting[2])))
}

// docs/internals/design.md, Reads and pruning: between two pages, a run that was already listed is inspected,
// claimed and retried. A list may show it again, but must not miss any other run. Reads of this one run, by id or key,
// return it as it is now.
func hazardExactReads(t *testing.T, b *bundle) {
	moving := b.create(noon, RunOptions{SingletonKey: "only one"})
	var still []*runlane.Run
	for i := range 6 {
		still = append(still, b.create(noon, RunOptions{RunAt: noon.Add(time.Duration(i+1) * time.Hour)}))
	}
	q := &lane.RunQuery{PageQuery: lane.PageQuery{Environment: b.env}}
	b.eventually(func() string { return difference(1+len(still), len(b.listRuns(q))) })
	q.Limit = 2
	shown := map[runlane.RunID]int{}
	at := noon.Add(time.Minute)
	for {
		page := must(b.storage.ListRuns(b.ctx(), q))(t)
		for _, summary := range page.Items {
			shown[summary.ID]++
		}
		if q.After = page.Next; q.After == "" {
			break
		}
		moving = b.claim(moving, at, at.Add(time.Minute))
		equal(t, "run read by its id", moving, b.get(moving.ID))
		moving = b.push(moving, at, Retried(moving, at.Add(90*time.Minute))) // in the middle of what is still to come
		equal(t, "run read by its key", moving, must(b.storage.GetRunBySingletonKey(b.ctx(), b.owner("only one")))(t))
		at = at.Add(2 * time.Hour)
	}
	for _, run := range still {
		if shown[run.ID] != 1 {
			t.Errorf("run %s was shown %d times", run.ID, shown[run.ID])
		}
	}
	if shown[moving.ID] == 0 {
		t.Error("the run that moved was on no page")
	}
}
