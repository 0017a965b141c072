package lanetest

import (
	"context"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// docs/contract.md, Owners of keys: what a process knows of a run that was pruned does not hold for another run under its id.
func reuseCases() []storageCase {
	needs := needsBoth(needsPruning, needsBoth(needsIdempotency, needsSingleton))
	return []storageCase{
		{"Hazard41_AnIDUsedAgainAfterPruningHoldsItsKeys", needs, reusedKeys},
		{"Hazard41_PruningNeverTakesAnythingOfTheNextRunOfAnID", needs, reusedRace},
	}
}

var reusedOptions = RunOptions{
	ID: "run_again", IdempotencyKey: "key", SingletonKey: "key", Retention: runlane.KeyRetention{WhileActive: true},
}

// One process learns of each run that it is over, from a lookup, a reset and a creation with its key. Another prunes the run and makes
// it again. What the first does then meets the run that is there.
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
		"a reset": func() { wantError(t, b.storage.ResetIdempotencyKey(b.ctx(), b.owner("key")), runlane.ErrRunNotFound) },
		"a creation": func() {
			b.forget(b.end(b.create(time.Now(), mine), time.Now(), runlane.StatusCancelled).ID)
		},
	} {
		now := time.Now()
		first := b.end(b.create(now, reusedOptions), now, runlane.StatusSucceeded)
		learn()
		other.pruneUntilGone(first)
		second := other.create(now.Add(time.Second), reusedOptions)

		wantConflict(t, b.storage.ResetIdempotencyKey(b.ctx(), b.owner("key")), runlane.ConflictIdempotencyKey, second.ID)
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
		return difference(0, len(must(b.storage.GetRuns(b.ctx(), &lane.RunsQuery{Environment: b.env, IDs: []runlane.RunID{run.ID}}))(b.t)))
	})
	b.first.forget(run.ID)
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
