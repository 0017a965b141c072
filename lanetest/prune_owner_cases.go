package lanetest

import (
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// Retention is judged by the real clock. The retained runs are the oldest, and more than a call may remove.
func pruneRetained(t *testing.T, b *bundle) {
	now := time.Now()
	o := func(key string) RunOptions {
		return RunOptions{IdempotencyKey: key, Retention: runlane.KeyRetention{TTL: time.Hour}}
	}
	var retained []runlane.RunID
	for i, key := range []string{"a", "b", "c", "d"} {
		status := []runlane.Status{runlane.StatusSucceeded, runlane.StatusCancelled}[i%2]
		retained = append(retained, b.finished(now.Add(time.Duration(i)*time.Second), status, o(key)))
	}
	reset := b.finished(now.Add(10*time.Second), runlane.StatusSucceeded, o("reset"))
	if err := b.storage.ResetIdempotencyKey(b.ctx(), b.owner("reset")); err != nil {
		t.Fatal(err)
	}
	unkeyed := b.finished(now.Add(11*time.Second), runlane.StatusSucceeded, RunOptions{})
	c := b.pruning(now.Add(time.Minute))
	c.Limit = 1
	b.wantPruned(c, len(retained), reset, unkeyed)
	for i, key := range []string{"a", "b", "c", "d"} {
		if owner := must(b.storage.GetRunByIdempotencyKey(b.ctx(), b.owner(key)))(t); owner.ID != retained[i] {
			t.Fatalf("key %q belongs to %s, want %s", key, owner.ID, retained[i])
		}
		_, err := b.storage.AppendRunEvents(b.ctx(), b.Creation(t, now, o(key)))
		wantConflict(t, err, runlane.ConflictIdempotencyKey, retained[i])
	}
}

func (b *bundle) owner(key string) lane.OwnerKey {
	return lane.OwnerKey{Environment: b.env, TaskID: TaskID, Key: key}
}

// Neither a failed run nor one past its time or freed by its policy retains a key; all of them can be used again.
func pruneDeadOwners(t *testing.T, b *bundle) {
	long := time.Now().Add(-2 * time.Hour)
	day, hour := runlane.KeyRetention{TTL: 24 * time.Hour}, runlane.KeyRetention{TTL: time.Hour}
	active := runlane.KeyRetention{WhileActive: true}
	keyed := func(key string, retention runlane.KeyRetention) RunOptions {
		return RunOptions{IdempotencyKey: key, SingletonKey: key, Retention: retention}
	}
	gone := []runlane.RunID{
		b.finished(long, runlane.StatusFailed, keyed("failed", day)),
		b.finished(long, runlane.StatusSucceeded, keyed("past its time", hour)),
		b.finished(long, runlane.StatusCancelled, keyed("past its time too", hour)),
		b.finished(long, runlane.StatusSucceeded, keyed("while active", active)),
	}
	b.wantPruned(b.pruning(long.Add(time.Minute)), 0, gone...)
	for _, key := range []string{"failed", "past its time", "past its time too", "while active"} {
		_, err := b.storage.GetRunByIdempotencyKey(b.ctx(), b.owner(key))
		wantError(t, err, runlane.ErrRunNotFound)
		next := b.create(time.Now(), keyed(key, day))
		equal(t, "next owner", next, must(b.storage.GetRunByIdempotencyKey(b.ctx(), b.owner(key)))(t))
	}
}

func pruneRelease(t *testing.T, b *bundle) {
	now := time.Now()
	o := RunOptions{IdempotencyKey: "key", Retention: runlane.KeyRetention{TTL: time.Hour}}
	run := b.finished(now, runlane.StatusSucceeded, o)
	c := b.pruning(now.Add(time.Minute))
	c.ReleaseOwners = true
	b.wantPruned(c, 0, run)
	_, err := b.storage.GetRunByIdempotencyKey(b.ctx(), b.owner("key"))
	wantError(t, err, runlane.ErrRunNotFound)
	wantError(t, b.storage.ResetIdempotencyKey(b.ctx(), b.owner("key")), runlane.ErrRunNotFound)
	next := b.create(now, o)
	equal(t, "next owner", next, must(b.storage.GetRunByIdempotencyKey(b.ctx(), b.owner("key")))(t))
}

// Keys that other runs took over from a pruned one stay with those, whatever the command releases.
func pruneOthers(t *testing.T, b *bundle) {
	now := time.Now()
	o := RunOptions{IdempotencyKey: "key", SingletonKey: "key", Retention: runlane.KeyRetention{TTL: time.Hour}}
	first := b.finished(now.Add(-time.Minute), runlane.StatusFailed, o)
	second := b.create(now, o)
	c := b.pruning(now.Add(time.Minute))
	c.ReleaseOwners = true
	b.wantPruned(c, 0, first)
	equal(t, "owner", second, must(b.storage.GetRunByIdempotencyKey(b.ctx(), b.owner("key")))(t))
	equal(t, "singleton owner", second, must(b.storage.GetRunBySingletonKey(b.ctx(), b.owner("key")))(t))
	_, err := b.storage.AppendRunEvents(b.ctx(), b.Creation(t, now, o))
	wantConflict(t, err, runlane.ConflictIdempotencyKey, second.ID)
	_, err = b.storage.AppendRunEvents(b.ctx(), b.Creation(t, now, RunOptions{SingletonKey: "key"}))
	wantConflict(t, err, runlane.ConflictSingletonKey, second.ID)
}
