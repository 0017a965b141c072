package lanetest

import (
	"slices"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// docs/internals/design.md, Leases and workers: clocks that disagree break no guarantee. The clocks of two processes
// over the same data differ by five seconds. The one ahead sees leases, claims and reservations end early; their
// holders learn that from the storage, never from time.
func clockCases() []storageCase {
	return []storageCase{
		{"ALeaseTakenOverByAnAheadClockFencesItsOwner", needsBoth(needsLeases, needsHistory), clockLease},
		{"ARaceAtTheEndOfALeaseHasOneWinner", needsLeases, clockLeaseRace},
		{"InstantsMayGoBackFromCommitToCommit", needsBoth(needsLeases, needsOutbox), clockBack},
		{"AReservationThatIsOverToOneOnlyNeverExceedsTheLimit", needsQueues, clockReservation},
		{"AnOutboxClaimThatIsOverToOneOnlyHasOneHolder", needsOutbox, clockOutbox},
		{"AnOccurrenceClaimThatIsOverToOneOnlyIsCompletedOnce", needsOccurrences, clockOccurrence},
		{"AKeyThatIsOverToOneOnlyHasOneOwner", needsBoth(needsIdempotency, needsLeases), clockKey},
		{"AnActiveRunKeepsItsKeyWhateverTheClock", needsIdempotency, clockActiveKey},
		{"AKeyThatIsOverIsFreeForARunOfAnEarlierInstant", needsIdempotency, clockEarlierRun},
	}
}

// skew is how far the second process's clock is ahead.
const skew = 5 * time.Second

// ahead is the second process.
func (b *bundle) ahead() *bundle {
	b.t.Helper()
	storage := b.storage
	if b.h.Skewed != nil {
		storage = b.h.Skewed(b.t, b.storage, skew)
	}
	return &bundle{Factory: b.Factory, t: b.t, h: b.h, storage: storage, env: b.env, first: b}
}

func clockLease(t *testing.T, b *bundle) {
	other := b.ahead()
	end := noon.Add(time.Minute)
	mine := b.running(noon, end, RunOptions{})
	if got := other.tryClaim(mine, end, end.Add(-time.Millisecond)); got.Outcome != lane.LostEligibility {
		t.Fatalf("claim a millisecond before the lease ends by the clock ahead: outcome %q", got.Outcome)
	}
	theirs := other.claim(mine, end, end.Add(time.Minute)) // to its owner the lease lives for five more seconds

	now := end.Add(-skew)
	_, err := b.storage.HeartbeatRunLease(b.ctx(), b.Heartbeat(t, mine, now, now.Add(time.Minute)))
	wantConflict(t, err, runlane.ConflictEventSequence, mine.ID)
	seen := *theirs // it reads again, and still believes in its token
	seen.Lease = mine.Lease
	_, err = b.storage.HeartbeatRunLease(b.ctx(), b.Heartbeat(t, &seen, now, now.Add(time.Minute)))
	wantConflict(t, err, runlane.ConflictLeaseOwnership, mine.ID)
	outcome := b.Append(t, theirs, now, Succeeded(theirs, []byte(`"of the late one"`)))
	outcome.LeaseToken = mine.Lease.Token
	_, err = b.storage.AppendRunEvents(b.ctx(), outcome)
	wantConflict(t, err, runlane.ConflictLeaseOwnership, mine.ID)
	equal(t, "run, as the process behind reads it", theirs, b.get(mine.ID))

	done := other.Append(t, theirs, end.Add(time.Second), Succeeded(theirs, []byte(`"of the owner"`)))
	done.LeaseToken = theirs.Lease.Token
	equal(t, "run in the end", other.append(done).Run, b.get(mine.ID))

	// In the other direction, a lease lasts longer for the process whose clock is behind.
	theirs = other.running(noon.Add(skew), end.Add(skew), RunOptions{})
	if got := b.tryClaim(theirs, end.Add(skew), end.Add(skew-time.Millisecond)); got.Outcome != lane.LostEligibility {
		t.Fatalf("claim before the lease ends by the clock behind: outcome %q", got.Outcome)
	}
	b.claim(theirs, end.Add(skew), end.Add(2*time.Minute))
}

// Each process claims at its own time, when the lease is over to both, while the owner sends its outcome.
func clockLeaseRace(t *testing.T, b *bundle) {
	other := b.ahead()
	end := noon.Add(time.Minute)
	run := b.running(noon, end, RunOptions{})
	outcome := b.Append(t, run, end, Succeeded(run, nil))
	outcome.LeaseToken = run.Lease.Token
	claims := make([]*lane.ClaimCommand, callers-1)
	for i := range claims {
		at := end.Add(time.Duration(i%2) * skew)
		claims[i] = b.Claim(t, run, at, at.Add(time.Minute), b.NewToken())
	}
	won, failed := race(callers, func(i int) (*lane.Commit, error) {
		if i == len(claims) {
			commit, err := b.storage.AppendRunEvents(b.ctx(), outcome)
			if isConflict(err, runlane.ConflictEventSequence) || isConflict(err, runlane.ConflictLeaseOwnership) {
				return nil, nil
			}
			return commit, err
		}
		process := []*bundle{b, other}[i%2]
		got, err := process.storage.ClaimRunLease(b.ctx(), claims[i])
		if err != nil {
			return nil, err
		}
		return got.Commit, nil
	})
	if len(failed) > 0 {
		t.Fatalf("losing is an outcome, or a conflict of the owner: %v", failed[0])
	}
	won = slices.DeleteFunc(won, func(c *lane.Commit) bool { return c == nil })
	if len(won) != 1 {
		t.Fatalf("%d of %d commits at one sequence were written", len(won), callers)
	}
	equal(t, "run, as one process reads it", won[0].Run, b.get(run.ID))
	equal(t, "run, as the other one does", won[0].Run, other.get(run.ID))
}

func clockBack(t *testing.T, b *bundle) {
	other := b.ahead()
	run := other.create(noon.Add(skew), RunOptions{})
	if got := b.tryClaim(run, noon.Add(skew), noon.Add(skew-time.Millisecond)); got.Outcome != lane.LostEligibility {
		t.Fatalf("claim of a run that is new in five seconds: outcome %q", got.Outcome)
	}
	at := noon.Add(time.Second) // earlier than everything the run knows
	run = b.deliver(run, at, at, lane.InitialOutbox{}).Run
	b.wantScan("runnable, a millisecond early", b.storage.ListRunnableRuns, b.due(at.Add(-time.Millisecond)))
	b.wantScan("runnable", b.storage.ListRunnableRuns, b.due(at), run)
	b.wantDue("a millisecond early", at.Add(-time.Millisecond))
	b.wantDue("at its time", at, run.ID)
	run = b.claim(run, at, at.Add(time.Minute))
	run = other.push(run, at.Add(skew), &runlane.RunCancellationRequested{})
	run = b.push(run, at.Add(time.Millisecond), &runlane.RunCancelled{})
	equal(t, "finished at", at.Add(time.Millisecond), b.get(run.ID).FinishedAt)

	// An attempt that ends before it began, with a retry that is due for only one of them.
	run = other.running(noon.Add(skew), noon.Add(time.Minute), RunOptions{})
	retry := noon.Add(2 * time.Second)
	run = b.push(run, noon.Add(time.Second), Retried(run, retry))
	b.wantScan(
		"needing delivery, a millisecond early",
		b.storage.ListRunsNeedingDelivery,
		b.due(retry.Add(-time.Millisecond)),
	)
	b.wantScan("needing delivery", other.storage.ListRunsNeedingDelivery, b.due(retry), run)
}

func clockReservation(t *testing.T, b *bundle) {
	other := b.ahead()
	s, o := b.limited(1), other.limited(1)
	end := noon.Add(reservation)
	mine := s.won("reserve", s.reserve(s.waiting(noon, RunOptions{}), noon))
	theirs := o.waiting(noon, RunOptions{})
	o.wantFull("a millisecond before the end by the clock ahead", theirs, end.Add(-time.Millisecond))
	theirs = o.won("reserve at the end by the clock ahead", o.reserve(theirs, end))
	s.wantOutcome(
		"claim of the run that is reserved for five more seconds by the clock behind",
		s.take(mine, end.Add(-skew), false),
		lane.LostReservation,
	)
	equal(t, "holders", runIDs(theirs), s.holders(mine))
	theirs = o.won("claim", o.take(theirs, end, false))
	s.wantFull("beside it", mine, end.Add(time.Hour))
	o.commit(theirs, end, Succeeded(theirs, nil))

	// Both at once, repeatedly, each time in another partition: for one process the reservation is active, for the
	// other it is over.
	for _, key := range []string{"a", "b", "c", "d"} {
		p := RunOptions{ConcurrencyKey: key}
		reserved := s.won("reserve", s.reserve(s.waiting(noon, p), noon))
		claim := s.claimCommand(reserved, end.Add(-skew-time.Second), false)
		reserve := o.Reserve(t, o.waiting(noon, p), end, end.Add(reservation), 1)
		got, failed := race(2, func(i int) (*lane.Acquisition, error) {
			if i == 0 {
				return b.storage.ClaimRunLease(b.ctx(), claim)
			}
			return other.storage.ReserveRunDispatch(b.ctx(), reserve)
		})
		if len(failed) > 0 {
			t.Fatalf("losing is an outcome: %v", failed[0])
		}
		won := 0
		for _, a := range got {
			if s.checked(a, nil).Outcome == lane.Acquired {
				won++
			}
		}
		if holders := s.holders(reserved); won != 1 || len(holders) != 1 {
			t.Fatalf("%d of two took the one slot, which %v hold", won, holders)
		}
	}
}

func clockOutbox(t *testing.T, b *bundle) {
	other := b.ahead()
	eager := b.eagerRow(noon)
	end := noon.Add(claimTime)
	if got := other.outboxOf(end.Add(-time.Millisecond), eager.ID); len(got) != 0 {
		t.Fatalf("claimed a millisecond before the claim ends by the clock ahead: %+v", got)
	}
	taken := other.outboxOf(end, eager.ID)
	if len(taken) != 1 || taken[0].ClaimToken == eager.ClaimToken {
		t.Fatalf("claimed at the end by the clock ahead: %+v", taken)
	}
	// By its first holder's clock, the claim has five more seconds; the storage refuses it.
	err := b.storage.MarkOutboxMessagesFailed(b.ctx(), &lane.MarkFailedCommand{
		Environment: b.env,
		At:          end.Add(-skew),
		Messages: []lane.OutboxFailure{
			{OutboxRef: eager.OutboxRef, Attempts: 1, Failure: refusal, NextAvailableAt: end},
		},
	})
	wantStale(t, err, eager.ID)
	if got := b.outboxOf(end.Add(-skew), eager.ID); len(got) != 0 {
		t.Fatalf("claimed beside its holder: %+v", got)
	}
	other.mark(t, taken[0].OutboxRef, end)
	if row := b.row(eager.Wakeup.RunID); row.Status != lane.OutboxPublished {
		t.Fatalf("row is %+v", row)
	}

	// At an instant at which it is over for both, one gets it.
	row := b.eagerRow(noon)
	claimed, failed := race(callers, func(i int) ([]lane.OutboxMessage, error) {
		process, at := b, end
		if i%2 == 1 {
			process, at = other, end.Add(skew)
		}
		return process.storage.ClaimOutboxMessages(b.ctx(), &lane.ClaimOutboxCommand{
			Environment: b.env,
			IDs:         []string{row.ID},
			At:          at,
			ClaimUntil:  at.Add(claimTime),
			Limit:       1,
		})
	})
	if len(failed) > 0 {
		t.Fatal(failed[0])
	}
	if all := slices.Concat(claimed...); len(all) != 1 {
		t.Fatalf("%d of %d got the row", len(all), callers)
	}
}

func clockOccurrence(t *testing.T, b *bundle) {
	other := b.ahead()
	b.registered("nightly")
	fire := noon.Add(time.Minute)
	first := b.claimed("nightly", fire)
	end := fire.Add(claimTime)
	other.wantOutcome("nightly", fire, end.Add(-time.Millisecond), lane.LostOccurrence)
	second := other.wantOutcome("nightly", fire, end, lane.Acquired)
	b.wantOutcome("nightly", fire, end.Add(-skew), lane.LostOccurrence)
	wantConflict(t, b.complete("nightly", fire, first, "run_first"), runlane.ConflictScheduleOccurrence, "")
	if err := other.complete("nightly", fire, second, "run_second"); err != nil {
		t.Fatal(err)
	}
	wantConflict(t, b.complete("nightly", fire, first, "run_first"), runlane.ConflictScheduleOccurrence, "")
	b.wantOccurrences("nightly", []runlane.Occurrence{{ScheduleID: "nightly", FireTime: fire, RunID: "run_second"}})

	// An occurrence that fires by the clock ahead moves the last fire: the process behind does not fire it again five
	// seconds later.
	other.completed("nightly", fire.Add(time.Hour), "run_third")
	b.wantOutcome("nightly", fire.Add(time.Hour), fire.Add(time.Hour+skew), lane.LostOccurrence)
	equal(t, "last run, as the process behind reads it", runlane.RunID("run_third"), b.record("nightly").LastRunID)
}

// The end of a retention is decided by each storage's clock: for the process ahead it is over.
func clockKey(t *testing.T, b *bundle) {
	other := b.ahead()
	retention := runlane.KeyRetention{TTL: time.Hour}
	made := time.Now().Add(-time.Hour + skew - 200*time.Millisecond)
	over := made.Add(time.Hour) // 4.8 s from now; to the process ahead since 0.2 s
	o := RunOptions{IdempotencyKey: "key", Retention: retention}
	first := b.end(b.create(made, o), made.Add(time.Second), runlane.StatusSucceeded)
	key := lane.OwnerKey{Environment: b.env, TaskID: TaskID, Key: "key"}
	found, err := b.storage.GetRunByIdempotencyKey(b.ctx(), key)
	if time.Now().Before(over) { // it was not over meanwhile
		equal(t, "owner, to the process behind", first, must(found, err)(t))
	}
	if b.h.Skewed != nil {
		_, err = other.storage.GetRunByIdempotencyKey(b.ctx(), key)
		wantError(t, err, runlane.ErrRunNotFound)
	}

	commands := make([]*lane.AppendCommand, callers)
	for i := range commands {
		commands[i] = b.Creation(t, time.Now().Add(time.Duration(i%2)*skew), o)
	}
	won, lost := race(callers, func(i int) (*lane.Commit, error) {
		return []*bundle{b, other}[i%2].storage.AppendRunEvents(b.ctx(), commands[i])
	})
	if len(won) != 1 {
		t.Fatalf("%d of %d creations took the key; errors: %v", len(won), callers, lost)
	}
	b.remember(won[0].Run)
	for _, err := range lost {
		wantConflict(t, err, runlane.ConflictIdempotencyKey, "")
		if e, _ := asError(err); e.RunID != first.ID && e.RunID != won[0].Run.ID {
			t.Fatalf("conflict names %s, neither the old owner %s nor the new one %s", e.RunID, first.ID, won[0].Run.ID)
		}
	}
	for _, process := range []*bundle{b, other} {
		equal(t, "owner after the race", won[0].Run, must(process.storage.GetRunByIdempotencyKey(b.ctx(), key))(t))
	}
}

func clockActiveKey(t *testing.T, b *bundle) {
	other := b.ahead()
	made := time.Now().Add(-time.Hour - skew/2) // over by two and a half seconds to one, by more to the other
	o := RunOptions{IdempotencyKey: "key", Retention: runlane.KeyRetention{TTL: time.Hour}}
	run := b.create(made, o)
	key := lane.OwnerKey{Environment: b.env, TaskID: TaskID, Key: "key"}
	for _, process := range []*bundle{b, other} {
		equal(t, "owner", run, must(process.storage.GetRunByIdempotencyKey(b.ctx(), key))(t))
		_, err := process.storage.AppendRunEvents(b.ctx(), b.Creation(t, time.Now().Add(skew), o))
		wantConflict(t, err, runlane.ConflictIdempotencyKey, run.ID)
		wantConflict(t, process.storage.ResetIdempotencyKey(b.ctx(), key), runlane.ConflictIdempotencyKey, run.ID)
	}
}

// A history that is written later, as an import does: its first instant is before the end of the key's time.
func clockEarlierRun(t *testing.T, b *bundle) {
	made := time.Now().Add(-2 * time.Hour)
	o := RunOptions{IdempotencyKey: "key", Retention: runlane.KeyRetention{TTL: time.Hour}}
	b.end(b.create(made, o), made.Add(time.Second), runlane.StatusSucceeded)
	second := b.create(made.Add(time.Minute), o)
	key := lane.OwnerKey{Environment: b.env, TaskID: TaskID, Key: "key"}
	equal(t, "owner", second, must(b.storage.GetRunByIdempotencyKey(b.ctx(), key))(t))
}
