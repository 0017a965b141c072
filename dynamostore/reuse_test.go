package dynamostore

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/dynamostore/internal/item"
	"github.com/runlane/runlane-go/dynamostore/internal/rows"
	"github.com/runlane/runlane-go/lane"
)

// Timelines in which a run is pruned and its id used again, by another process: ids of reruns and occurrences are computed, and callers
// choose ids. What one process knows of the first run must not pass for knowledge of the second.

func reusedKey() lane.OwnerKey {
	return lane.OwnerKey{Environment: "test", TaskID: "bench.noop", Key: "key"}
}

// useAgain prunes the run and makes another with its id and keys, which is active.
func (w *world) useAgain() {
	w.Helper()
	if progress := w.prune(w.pruning()); progress.Pruned != 1 {
		w.Fatalf("%+v", progress)
	}
	w.again = w.run.ID
	w.pass(time.Hour).create(eager, 0, owned("key", []byte(`"second"`)))
}

func (w *world) wantOwner(id runlane.RunID) {
	w.Helper()
	for what, lookup := range map[string]func(context.Context, lane.OwnerKey) (*runlane.Run, error){
		"idempotency": w.store.GetRunByIdempotencyKey, "singleton": w.store.GetRunBySingletonKey,
	} {
		if run, err := lookup(w.Context(), reusedKey()); err != nil || run.ID != id {
			w.Errorf("the %s key belongs to %v: %v, want %s", what, run, err, id)
		}
	}
	w.checked()
}

// creationWith is the command of a new run with the key, as idempotency key, as singleton key, or both.
func (w *world) creationWith(created *runlane.RunCreated) *lane.AppendCommand {
	w.Helper()
	mine := *w
	mine.run = &runlane.Run{ID: "run_mine"}
	created.TaskID, created.Queue, created.Source = "bench.noop", "default", runlane.Source{Type: runlane.SourceTrigger}
	return &lane.AppendCommand{Transition: mine.transition(created, mine.request(mine.now)), Outbox: eager(mine.now)}
}

// One process has found the owner of a key dead. Elsewhere the run is pruned and its id used again with the same key: the first
// process still has the dead owner in mind, and must not take the living one for it.
func TestHazard41_DeadRunIDUsedAgain_TheLivingOwnerIsNotReplaced(t *testing.T) {
	t.Parallel()
	single := &runlane.RunCreated{Payload: []byte(`{}`), SingletonKey: "key"}
	for name, c := range map[string]struct {
		created *runlane.RunCreated
		learn   func(w *world) error // that the owner is dead
		kind    runlane.ConflictKind
	}{
		"singleton key, looked up": {single, func(w *world) error {
			_, err := w.store.GetRunBySingletonKey(w.Context(), reusedKey())
			return err
		}, runlane.ConflictSingletonKey},
		"idempotency key, looked up": {owned("key", []byte(`{}`)), func(w *world) error {
			w.pass(2 * runlane.DefaultIdempotencyTTL)
			_, err := w.store.GetRunByIdempotencyKey(w.Context(), reusedKey())
			return err
		}, runlane.ConflictIdempotencyKey},
		"idempotency key, reset": {owned("key", []byte(`{}`)), func(w *world) error {
			w.pass(2 * runlane.DefaultIdempotencyTTL)
			return w.store.ResetIdempotencyKey(w.Context(), reusedKey())
		}, runlane.ConflictIdempotencyKey},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t).keyed("key", []byte(`"first"`))
			if err := c.learn(w); !errors.Is(err, runlane.ErrRunNotFound) {
				t.Fatalf("the owner is dead, and its key: %v", err)
			}
			second := w.another()
			second.useAgain()
			_, err := w.store.AppendRunEvents(t.Context(), w.creationWith(c.created))
			if e, ok := errors.AsType[*runlane.Error](err); !ok || !errors.Is(err, c.kind) || e.RunID != second.run.ID {
				t.Errorf("the key belongs to an active run, and a creation with it: %v", err)
			}
			second.wantOwner(second.run.ID)
		})
	}
}

// The same between the judgement of an owner and the commit that follows.
func TestHazard41_DeadRunIDUsedAgainWithinACreation_TheLivingOwnerIsNotReplaced(t *testing.T) {
	w := newWorld(t).keyed("key", []byte(`"first"`)).pass(2 * runlane.DefaultIdempotencyTTL)
	second := w.another()
	commits := w.beforeSecondCommit(second.useAgain) // the first met the dead owner
	_, err := w.store.AppendRunEvents(t.Context(), w.creationWith(owned("key", []byte(`{}`))))
	if !errors.Is(err, runlane.ConflictIdempotencyKey) {
		t.Errorf("%v after %d commits", err, *commits)
	}
	second.wantOwner(second.run.ID)
}

// The same between a reset's reading and its deletion.
func TestHazard41_RunIDUsedAgainWithinAReset_TheLivingOwnerStays(t *testing.T) {
	w := newWorld(t).keyed("key", []byte(`"first"`))
	second := w.another()
	w.store.db.Client = interrupted(w.store.db.Client, second.useAgain)
	if err := w.store.ResetIdempotencyKey(t.Context(), reusedKey()); !errors.Is(err, runlane.ConflictIdempotencyKey) {
		t.Errorf("%v", err)
	}
	second.wantOwner(second.run.ID)
}

// A commit of the first run is not repeated as if only the marker had moved.
func TestHazard41_CommitOfTheFirstRun_IsRefusedByOneRequest(t *testing.T) {
	w := newWorld(t).create(eager, 0, nil)
	late := &lane.AppendCommand{Transition: w.transition(&runlane.RunCancelled{})}
	w.another().other(&runlane.RunCancelled{}).useAgain()
	commits := w.beforeSecondCommit(func() { t.Error("the commit was repeated") })
	if _, err := w.store.AppendRunEvents(t.Context(), late); !errors.Is(err, runlane.ConflictEventSequence) || *commits != 1 {
		t.Errorf("%v after %d commits", err, *commits)
	}
}

// An older program's owner has no commit: it is known by its run, and by that it has none.
func TestOwner_OfAnOlderProgram_IsReplacedWhenDeadAndOnlyThen(t *testing.T) {
	t.Parallel()
	old := func(w *world) *world {
		w.keyed("key", []byte(`"first"`)).pass(2 * runlane.DefaultIdempotencyTTL)
		for _, pk := range []string{rows.IdempotencyPK(reusedKey()), rows.SingletonPK(reusedKey())} {
			w.rewrite(item.Key(pk, rows.OwnerSK), "REMOVE #ci", nil)
		}
		return w
	}
	t.Run("replaced", func(t *testing.T) {
		w := old(newWorld(t))
		commit, err := w.store.AppendRunEvents(t.Context(), w.creationWith(owned("key", []byte(`{}`))))
		if err != nil {
			t.Fatal(err)
		}
		w.wantOwner(commit.Run.ID)
	})
	t.Run("pruned", func(t *testing.T) {
		w := old(newWorld(t))
		if progress := w.prune(w.pruning()); progress.Pruned != 1 || len(w.remains()) != 0 {
			t.Errorf("%+v, and %v are left", progress, w.remains())
		}
	})
	t.Run("its run's id is used again meanwhile", func(t *testing.T) {
		w := old(newWorld(t))
		second := w.another()
		commits := w.beforeSecondCommit(second.useAgain)
		_, err := w.store.AppendRunEvents(t.Context(), w.creationWith(owned("key", []byte(`{}`))))
		if !errors.Is(err, runlane.ConflictIdempotencyKey) {
			t.Errorf("%v after %d commits", err, *commits)
		}
		second.wantOwner(second.run.ID)
	})
	t.Run("passed to another run meanwhile", func(t *testing.T) {
		w := old(newWorld(t))
		other := w.another()
		commits := w.beforeSecondCommit(func() {
			for _, pk := range []string{rows.IdempotencyPK(reusedKey()), rows.SingletonPK(reusedKey())} {
				other.rewrite(item.Key(pk, rows.OwnerSK), "SET #ru = :ru", item.Item{":ru": item.Text("run_other")})
			}
		})
		_, err := w.store.AppendRunEvents(t.Context(), w.creationWith(owned("key", []byte(`{}`))))
		if err != nil || *commits != 3 { // the other is none that exists: judged anew, and replaced
			t.Errorf("%v after %d commits", err, *commits)
		}
	})
}

// An owner left from a run whose id another run has by now, one without the key, is dead.
func TestOwner_NamesARunWithoutTheKey_IsDead(t *testing.T) {
	w := newWorld(t).create(eager, 0, owned("key", []byte(`{}`)))
	id := w.run.ID
	w.create(eager, 0, nil)
	stranger := w.run.ID
	for _, pk := range []string{rows.IdempotencyPK(reusedKey()), rows.SingletonPK(reusedKey())} {
		w.rewrite(item.Key(pk, rows.OwnerSK), "SET #ru = :ru", item.Item{":ru": item.Text(string(stranger))})
	}
	for _, lookup := range []func(context.Context, lane.OwnerKey) (*runlane.Run, error){w.store.GetRunByIdempotencyKey, w.store.GetRunBySingletonKey} {
		if run, err := lookup(t.Context(), reusedKey()); !errors.Is(err, runlane.ErrRunNotFound) {
			t.Errorf("the key of %s belongs to %v: %v", id, run, err)
		}
	}
	commit, err := w.store.AppendRunEvents(t.Context(), w.creationWith(owned("key", []byte(`{}`))))
	if err != nil {
		t.Fatal(err)
	}
	if run, err := w.store.GetRunBySingletonKey(t.Context(), reusedKey()); err != nil || run.ID != commit.Run.ID {
		t.Errorf("%v %v", run, err)
	}
}
