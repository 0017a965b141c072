package lanetest

import (
	"context"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// docs/internals/contract.md, Owners of keys.
func ownerCases() []storageCase {
	return []storageCase{
		{
			"IdempotencyIsRetainedAsThePolicyAtCreationSays",
			needsBoth(needsIdempotency, needsLeases),
			idempotencyRetention,
		},
		{"IdempotencyRaceHasOneWinner", needsIdempotency, idempotencyRace},
		{"SingletonRaceHasOneWinner", needsSingleton, singletonRace},
		{"IdempotencyIsJudgedBeforeSingleton", needsBoth(needsIdempotency, needsSingleton), idempotencyFirst},
		{"KeysAreScopedByTask", needsBoth(needsIdempotency, needsSingleton), keysScoped},
		{"LookupOfAnExpiredOwnerChangesNothing", needsBoth(needsIdempotency, needsLeases), lookupFree},
		{"SingletonIsHeldWhileActive", needsBoth(needsSingleton, needsLeases), singletonHeld},
		{"ResetClearsRetainedOwnersOnly", needsBoth(needsIdempotency, needsLeases), resetKey},
		{
			"ARaceForAKeyWhoseOwnerIsOverHasOneWinner",
			needsBoth(needsBoth(needsIdempotency, needsSingleton), needsLeases),
			overRace,
		},
		{
			"EveryActiveStatusHoldsBothKeys",
			needsBoth(needsBoth(needsIdempotency, needsSingleton), needsLeases),
			everyActiveHolds,
		},
		{
			"LookupsOfLivingOwnersChangeNothing",
			needsBoth(needsBoth(needsIdempotency, needsSingleton), needsBoth(needsHistory, needsLeases)),
			lookupsOfOwners,
		},
		{"AResetAndARaceForTheKeyLeaveOneOwner", needsBoth(needsIdempotency, needsLeases), resetRace},
	}
}

// end finishes a queued run.
func (b *bundle) end(run *runlane.Run, at time.Time, status runlane.Status) *runlane.Run {
	b.t.Helper()
	if status == runlane.StatusCancelled {
		return b.push(run, at, &runlane.RunCancelled{Reason: "not needed"})
	}
	run = b.claim(run, at, at.Add(time.Minute))
	if status == runlane.StatusFailed {
		return b.push(run, at, Failed(run))
	}
	return b.push(run, at, Succeeded(run, nil))
}

// The lookup's command has no instant: these runs were made two hours ago by the real clock.
func idempotencyRetention(t *testing.T, b *bundle) {
	made := time.Now().Add(-2 * time.Hour)
	const active = runlane.Status("")
	for _, c := range []struct {
		name      string
		retention runlane.KeyRetention
		end       runlane.Status
		owns      bool
	}{
		{"active, time to live over", runlane.KeyRetention{TTL: time.Hour}, active, true},
		{"active, while active", runlane.KeyRetention{WhileActive: true}, active, true},
		{"succeeded, within time to live", runlane.KeyRetention{TTL: 3 * time.Hour}, runlane.StatusSucceeded, true},
		{"cancelled, within time to live", runlane.KeyRetention{TTL: 3 * time.Hour}, runlane.StatusCancelled, true},
		{"failed, within time to live", runlane.KeyRetention{TTL: 3 * time.Hour}, runlane.StatusFailed, false},
		{"succeeded, time to live over", runlane.KeyRetention{TTL: time.Hour}, runlane.StatusSucceeded, false},
		{"cancelled, time to live over", runlane.KeyRetention{TTL: time.Hour}, runlane.StatusCancelled, false},
		{"succeeded, while active", runlane.KeyRetention{WhileActive: true}, runlane.StatusSucceeded, false},
		{"cancelled, while active", runlane.KeyRetention{WhileActive: true}, runlane.StatusCancelled, false},
		{"failed, while active", runlane.KeyRetention{WhileActive: true}, runlane.StatusFailed, false},
		{"active, within the window", runlane.KeyRetention{TTL: 3 * time.Hour, Window: true}, active, true},
		{"active, window over", runlane.KeyRetention{TTL: time.Hour, Window: true}, active, false},
		{"succeeded, within the window", runlane.KeyRetention{TTL: 3 * time.Hour, Window: true}, runlane.StatusSucceeded, true},
		{"failed, within the window", runlane.KeyRetention{TTL: 3 * time.Hour, Window: true}, runlane.StatusFailed, true},
		{"failed, window over", runlane.KeyRetention{TTL: time.Hour, Window: true}, runlane.StatusFailed, false},
	} {
		owner := lane.OwnerKey{Environment: b.env, TaskID: TaskID, Key: c.name}
		run := b.create(made, RunOptions{
			IdempotencyKey: c.name,
			Retention:      c.retention,
			Payload:        []byte(`{"mine": true}`),
		})
		if c.end != active {
			run = b.end(run, made.Add(time.Second), c.end)
		}
		found, err := b.storage.GetRunByIdempotencyKey(b.ctx(), owner)
		second := b.Creation(t, time.Now(), RunOptions{IdempotencyKey: c.name, Retention: c.retention})
		if c.owns {
			if err != nil {
				t.Fatalf("%s: lookup: %v", c.name, err)
			}
			equal(t, c.name+": owner", run, found)
			_, err = b.storage.AppendRunEvents(b.ctx(), second)
			wantConflict(t, err, runlane.ConflictIdempotencyKey, run.ID)
			continue
		}
		if runlane.CodeOf(err) != runlane.ErrRunNotFound {
			t.Fatalf("%s: lookup found %v, error %v", c.name, found, err)
		}
		b.append(second)
		found = must(b.storage.GetRunByIdempotencyKey(b.ctx(), owner))(t)
		equal(t, c.name+": owner after the key was taken again", second.Projected, found)
	}
}

const callers = 32

func idempotencyRace(t *testing.T, b *bundle) {
	b.keyRace(
		t,
		runlane.ConflictIdempotencyKey,
		RunOptions{IdempotencyKey: "wanted", Retention: runlane.KeyRetention{TTL: time.Hour}},
		b.storage.GetRunByIdempotencyKey,
	)
}

func singletonRace(t *testing.T, b *bundle) {
	b.keyRace(t, runlane.ConflictSingletonKey, RunOptions{SingletonKey: "wanted"}, b.storage.GetRunBySingletonKey)
}

func (b *bundle) keyRace(
	t *testing.T,
	kind runlane.ConflictKind,
	o RunOptions,
	lookup func(context.Context, lane.OwnerKey) (*runlane.Run, error),
) {
	commands := make([]*lane.AppendCommand, callers)
	now := time.Now()
	for i := range commands {
		commands[i] = b.Creation(t, now, o)
	}
	won, lost := race(callers, func(i int) (*lane.Commit, error) {
		return b.storage.AppendRunEvents(b.ctx(), commands[i])
	})
	if len(won) != 1 {
		t.Fatalf("%d of %d creations took the key; errors: %v", len(won), callers, lost)
	}
	winner := won[0].Run
	b.remember(winner)
	for _, err := range lost {
		wantConflict(t, err, kind, winner.ID)
	}
	owner := must(lookup(b.ctx(), lane.OwnerKey{Environment: b.env, TaskID: TaskID, Key: "wanted"}))(t)
	equal(t, "owner", winner, owner)
	for _, c := range commands {
		if c.Projected.ID == winner.ID {
			continue
		}
		_, err := b.storage.GetRun(b.ctx(), c.Key())
		wantError(t, err, runlane.ErrRunNotFound)
	}
}

func idempotencyFirst(t *testing.T, b *bundle) {
	o := RunOptions{IdempotencyKey: "both", SingletonKey: "both", Retention: runlane.KeyRetention{TTL: time.Hour}}
	run := b.create(time.Now(), o)
	_, err := b.storage.AppendRunEvents(b.ctx(), b.Creation(t, time.Now(), o))
	wantConflict(t, err, runlane.ConflictIdempotencyKey, run.ID)
}

func keysScoped(t *testing.T, b *bundle) {
	o := RunOptions{IdempotencyKey: "a:key", SingletonKey: "a:key", Retention: runlane.KeyRetention{TTL: time.Hour}}
	first := b.create(time.Now(), o)
	o.TaskID = "lanetest.other"
	second := b.create(time.Now(), o)
	for task, want := range map[runlane.TaskID]*runlane.Run{TaskID: first, o.TaskID: second} {
		key := lane.OwnerKey{Environment: b.env, TaskID: task, Key: "a:key"}
		equal(t, "idempotency owner of "+string(task), want, must(b.storage.GetRunByIdempotencyKey(b.ctx(), key))(t))
		equal(t, "singleton owner of "+string(task), want, must(b.storage.GetRunBySingletonKey(b.ctx(), key))(t))
	}
	_, err := b.storage.GetRunByIdempotencyKey(b.ctx(), lane.OwnerKey{
		Environment: b.env,
		TaskID:      "lanetest.third",
		Key:         "a:key",
	})
	wantError(t, err, runlane.ErrRunNotFound)
}

func lookupFree(t *testing.T, b *bundle) {
	made := time.Now().Add(-2 * time.Hour)
	run := b.end(
		b.create(made, RunOptions{IdempotencyKey: "old", Retention: runlane.KeyRetention{TTL: time.Hour}}),
		made,
		runlane.StatusSucceeded,
	)
	key := lane.OwnerKey{Environment: b.env, TaskID: TaskID, Key: "old"}
	for range 3 {
		_, err := b.storage.GetRunByIdempotencyKey(b.ctx(), key)
		wantError(t, err, runlane.ErrRunNotFound)
	}
	equal(t, "run after lookups", run, b.get(run.ID))
}

func singletonHeld(t *testing.T, b *bundle) {
	key := lane.OwnerKey{Environment: b.env, TaskID: TaskID, Key: "only one"}
	at := noon
	for _, end := range []runlane.Status{runlane.StatusSucceeded, runlane.StatusFailed, runlane.StatusCancelled} {
		run := b.create(at, RunOptions{SingletonKey: "only one"})
		equal(t, "owner", run, must(b.storage.GetRunBySingletonKey(b.ctx(), key))(t))
		_, err := b.storage.AppendRunEvents(b.ctx(), b.Creation(t, at, RunOptions{SingletonKey: "only one"}))
		wantConflict(t, err, runlane.ConflictSingletonKey, run.ID)
		at = at.Add(time.Minute)
		b.end(run, at, end)
		_, err = b.storage.GetRunBySingletonKey(b.ctx(), key)
		wantError(t, err, runlane.ErrRunNotFound)
	}
}

func resetKey(t *testing.T, b *bundle) {
	now := time.Now()
	key := lane.OwnerKey{Environment: b.env, TaskID: TaskID, Key: "reset me"}
	o := RunOptions{IdempotencyKey: "reset me", Retention: runlane.KeyRetention{TTL: time.Hour}}
	wantError(t, b.storage.ResetIdempotencyKey(b.ctx(), key), runlane.ErrRunNotFound)

	run := b.create(now, o)
	wantConflict(t, b.storage.ResetIdempotencyKey(b.ctx(), key), runlane.ConflictIdempotencyKey, run.ID)
	equal(t, "owner after a refused reset", run, must(b.storage.GetRunByIdempotencyKey(b.ctx(), key))(t))

	b.end(run, now, runlane.StatusSucceeded)
	if err := b.storage.ResetIdempotencyKey(b.ctx(), key); err != nil {
		t.Fatal(err)
	}
	_, err := b.storage.GetRunByIdempotencyKey(b.ctx(), key)
	wantError(t, err, runlane.ErrRunNotFound)
	wantError(t, b.storage.ResetIdempotencyKey(b.ctx(), key), runlane.ErrRunNotFound)
	second := b.create(now, o)
	equal(t, "next owner", second, must(b.storage.GetRunByIdempotencyKey(b.ctx(), key))(t))
}
