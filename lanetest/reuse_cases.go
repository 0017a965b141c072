package lanetest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// docs/internals/contract.md, Owners of keys: what a process knows of a run that was pruned does not hold for another
// run under its id.
func reuseCases() []storageCase {
	needs := needsBoth(needsPruning, needsBoth(needsIdempotency, needsSingleton))
	return []storageCase{
		{"Hazard41_AnIDUsedAgainAfterPruningHoldsItsKeys", needs, reusedKeys},
		{"Hazard41_PruningNeverTakesAnythingOfTheNextRunOfAnID", needs, reusedRace},
		{"Hazard41_NoCommitOfARunLandsOnTheNextOneOfItsID", needsPruning, reusedStale},
		{
			"Hazard41_NoReservationOfARunLandsOnTheNextOneOfItsID",
			needsBoth(needsPruning, needsQueues),
			reusedReservation,
		},
		{"Hazard41_ARunIsNotJudgedByTheOneBeforeItOfItsID", needsPruning, reusedJudgement},
	}
}

var reusedOptions = RunOptions{
	ID:             "run_again",
	IdempotencyKey: "key",
	SingletonKey:   "key",
	Retention:      runlane.KeyRetention{WhileActive: true},
}

// One process learns of each run that it is over, from a lookup, a reset and a creation with its key. Another prunes
// the run and makes it again. What the first does then meets the run that is there.
func reusedKeys(t *testing.T, b *bundle) {
	other := b.ahead()
	mine := reusedOptions
	mine.ID = ""
	for name, learn := range map[string]func(){
		"a lookup of the singleton key": func() {
			_, err := b.storage.GetRunBySingletonKey(b.ctx(), b.owner("key"))
			wantError(t, err, runlane.ErrRunNotFound)
		},
		"a lookup of the idempotency key": func() {
			_, err := b.storage.GetRunByIdempotencyKey(b.ctx(), b.owner("key"))
			wantError(t, err, runlane.ErrRunNotFound)
		},
		"a reset": func() {
			wantError(t, b.storage.ResetIdempotencyKey(b.ctx(), b.owner("key")), runlane.ErrRunNotFound)
		},
		"a creation": func() {
			b.forget(b.end(b.create(time.Now(), mine), time.Now(), runlane.StatusCancelled).ID)
		},
	} {
		now := time.Now()
		first := b.end(b.create(now, reusedOptions), now, runlane.StatusSucceeded)
		learn()
		other.pruneUntilGone(first)
		second := other.create(now.Add(time.Second), reusedOptions)

		wantConflict(
			t,
			b.storage.ResetIdempotencyKey(b.ctx(), b.owner("key")),
			runlane.ConflictIdempotencyKey,
			second.ID,
		)
		_, err := b.storage.AppendRunEvents(b.ctx(), b.Creation(t, now, mine))
		wantConflict(t, err, runlane.ConflictIdempotencyKey, second.ID)
		_, err = b.storage.AppendRunEvents(b.ctx(), b.Creation(t, now, RunOptions{SingletonKey: "key"}))
		wantConflict(t, err, runlane.ConflictSingletonKey, second.ID)
		b.wantOwns("after "+name, second)
		other.pruneUntilGone(b.end(second, now.Add(2*time.Second), runlane.StatusCancelled))
	}
}

// pruneUntilGone removes a finished run, which an index may show late.
func (b *bundle) pruneUntilGone(run *runlane.Run) {
	b.t.Helper()
	b.eventually(func() string {
		b.pruneThrough(b.pruning(time.Now().Add(time.Minute)))
		return difference(
			0,
			len(
				must(b.storage.GetRuns(b.ctx(), &lane.RunsQuery{
					Environment: b.env,
					IDs:         []runlane.RunID{run.ID},
				}))(b.t),
			),
		)
	})
	b.first.forget(run.ID)
}

// reusedCommits are the commits without a lease token. Each is projected on a run as its process knows it, at the
// instant.
func (b *bundle) reusedCommits() map[string]func(run *runlane.Run, at time.Time) error {
	appends := func(
		body func(run *runlane.Run, at time.Time) runlane.EventBody,
	) func(run *runlane.Run, at time.Time) error {
		return func(run *runlane.Run, at time.Time) error {
			_, err := b.storage.AppendRunEvents(b.ctx(), b.Append(b.t, run, at, body(run, at)))
			return err
		}
	}
	return map[string]func(run *runlane.Run, at time.Time) error{
		"a cancellation": appends(func(*runlane.Run, time.Time) runlane.EventBody {
			return &runlane.RunCancelled{}
		}),
		"a delivery request": appends(func(run *runlane.Run, at time.Time) runlane.EventBody {
			return Delivery(run, at, at)
		}),
		"a claim": func(run *runlane.Run, at time.Time) error {
			return outcomeError(b.storage.ClaimRunLease(
				b.ctx(),
				b.Claim(b.t, run, at, at.Add(time.Minute), b.NewToken()),
			))
		},
	}
}

// outcomeError is the conflict for an outcome.
func outcomeError(got *lane.Acquisition, err error) error {
	switch {
	case err != nil || got.Outcome == lane.Acquired:
		return err
	case got.Outcome == lane.LostSequence:
		return runlane.NewConflict(runlane.ConflictEventSequence, "the race is lost")
	default:
		return errors.New(string(got.Outcome))
	}
}

// A process has read a run, and pauses before its commit. Meanwhile the run ends and is pruned, and its id is used
// again: the second run differs from the first in its creation time only, or in its payload too. The commit is meant
// for the first run, and is refused as if the run had moved on. The same process then does the same to the second run,
// and must not use what it remembers of the first.
func reusedStale(t *testing.T, b *bundle) {
	for what, commit := range b.reusedCommits() {
		for _, wait := range []time.Duration{0, reusedWait} { // both runs wait for the same instant, or for none
			for _, knows := range []bool{false, true} { // of the second run, through a read
				where := fmt.Sprintf("%s, due after %s, knows %t", what, wait, knows)
				b.staleAgain(where, RunOptions{}, wait, knows, commit)
			}
		}
	}
}

// The same with a reservation of a slot.
func reusedReservation(t *testing.T, b *bundle) {
	const limit = 1
	reserve := func(run *runlane.Run, at time.Time) error {
		return outcomeError(b.storage.ReserveRunDispatch(b.ctx(), b.Reserve(t, run, at, at.Add(reservation), limit)))
	}
	for _, knows := range []bool{false, true} {
		b.staleAgain(
			fmt.Sprintf("a reservation, knows %t", knows),
			RunOptions{NoDelivery: true, Concurrency: limit},
			reusedWait,
			knows,
			reserve,
		)
	}
}

// A process remembers a run that waits for an hour. The next one of its id is at the same sequence, and due: it can be
// claimed there.
func reusedJudgement(t *testing.T, b *bundle) {
	now, other := runlane.UTCMillis(time.Now()), b.ahead()
	first := b.create(now, RunOptions{ID: "run_again", RunAt: now.Add(time.Hour)})
	other.pruneUntilGone(other.end(first, now.Add(time.Millisecond), runlane.StatusCancelled))
	second := other.create(now.Add(time.Second), RunOptions{ID: "run_again"})
	b.claim(second, now.Add(time.Second), now.Add(time.Minute))
}

const reusedWait = 10 * time.Second

// staleAgain commits a change of the first run of an id when there is a second, and then one of the second.
func (b *bundle) staleAgain(
	where string, o RunOptions, wait time.Duration, knows bool, commit func(run *runlane.Run, at time.Time) error,
) {
	b.t.Helper()
	now, other := runlane.UTCMillis(time.Now()), b.ahead()
	due := now.Add(reusedWait)
	if o.ID = "run_again"; wait > 0 {
		o.RunAt = now.Add(wait)
	}
	first := b.create(now, o)
	other.pruneUntilGone(other.end(first, now.Add(time.Millisecond), runlane.StatusCancelled))
	if !knows {
		o.Payload = []byte(`"second"`)
	}
	second := other.create(now.Add(time.Second), o)
	equal(b.t, "sequence of both runs, "+where, first.EventSequence, second.EventSequence)
	if knows {
		equal(b.t, "the second run, "+where, second, b.get(second.ID))
	}
	if err := commit(first, due); !errors.Is(err, runlane.ConflictEventSequence) {
		b.t.Errorf("%s of the first run when there is a second: %v", where, err)
	}
	equal(b.t, "the second run after "+where+" of the first", second, other.get(second.ID))

	if err := commit(second, due); err != nil {
		b.t.Fatalf("%s of the second run: %v", where, err)
	}
	run := other.get(second.ID)
	equal(b.t, "the payload after "+where+" of the second", string(second.Payload), string(run.Payload))
	switch {
	case run.Status == runlane.StatusRunning:
		run = b.push(run, due, Succeeded(run, nil))
	case !run.Status.Terminal():
		run = b.push(run, due, &runlane.RunCancelled{})
	}
	other.pruneUntilGone(run)
}

// Callers prune a run while others make the next one of its id.
func reusedRace(t *testing.T, b *bundle) {
	for i := range 4 {
		o := reusedOptions
		o.Payload = filler(3000 + i)
		now := time.Now()
		first := b.end(b.create(now, o), now, runlane.StatusSucceeded)
		b.forget(first.ID)
		o.Payload = filler(2000 + i)
		command := b.Creation(t, now.Add(time.Second), o)
		won, _ := race(callers, func(i int) (*lane.Commit, error) {
			if i%2 == 0 {
				_, err := b.storage.PruneRuns(b.ctx(), b.pruning(now.Add(time.Minute)))
				return nil, err
			}
			return b.storage.AppendRunEvents(b.ctx(), command)
		})
		var second *runlane.Run
		for _, commit := range won {
			switch {
			case commit == nil: // pruning
			case second != nil:
				t.Fatal("two creations of one id succeeded")
			default:
				second = commit.Run
			}
		}
		if second != nil {
			b.remember(second)
			equal(t, "run", second, b.get(second.ID))
			b.wantOwns("after the race", second)
			first = b.end(second, now.Add(2*time.Second), runlane.StatusCancelled)
		}
		b.ahead().pruneUntilGone(first)
	}
}

// wantOwns demands that the run owns both keys.
func (b *bundle) wantOwns(when string, run *runlane.Run) {
	b.t.Helper()
	for what, lookup := range map[string]func(context.Context, lane.OwnerKey) (*runlane.Run, error){
		"idempotency": b.storage.GetRunByIdempotencyKey, "singleton": b.storage.GetRunBySingletonKey,
	} {
		equal(b.t, what+" owner "+when, run, must(lookup(b.ctx(), b.owner("key")))(b.t))
	}
}
