package lanetest

import (
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// docs/internals/design.md, Leases and workers: the last note of a run is not in its history; writes need the lease.
func progressCases() []storageCase {
	return []storageCase{
		{"TheLastNoteIsKept", needsLeases, progressLast},
		{"OnlyTheOwnerLeavesNotes", needsLeases, progressFenced},
		{"NotesGoWithTheirRun", needsBoth(needsLeases, needsPruning), progressPruned},
	}
}

// notes is the ability, nil where the harness does not declare it.
func (b *bundle) notes() lane.ProgressKeeper {
	b.t.Helper()
	if !b.h.Progress {
		return nil
	}
	keeper, ok := lane.As[lane.ProgressKeeper](b.storage)
	if !ok {
		b.t.Fatal("the storage is no lane.ProgressKeeper")
	}
	return keeper
}

func progressLast(t *testing.T, b *bundle) {
	keeper := b.notes()
	if keeper == nil {
		return
	}
	run := b.create(noon, RunOptions{})
	run = b.claim(run, noon, noon.Add(time.Minute))
	key := b.key(run.ID)
	equal(t, "note before the first", runlane.Progress{}, must(keeper.GetProgress(b.ctx(), key))(t))
	sequence := b.get(run.ID).EventSequence
	note := func(text string, at time.Duration) runlane.Progress {
		return runlane.Progress{Attempt: 1, Note: text, At: noon.Add(at)}
	}
	for _, p := range []runlane.Progress{
		note("half", time.Second),
		note("three quarters", 2*time.Second),
		note("Ωλ \"quoted\"", 3*time.Second),
	} {
		if err := keeper.PutProgress(b.ctx(), key, run.Lease.Token, p); err != nil {
			t.Fatal(err)
		}
		equal(t, "note", p, must(keeper.GetProgress(b.ctx(), key))(t))
	}
	if err := keeper.PutProgress(b.ctx(), key, run.Lease.Token, note("late", time.Second)); err != nil {
		t.Fatal(err)
	}
	equal(t, "after an older one", note("Ωλ \"quoted\"", 3*time.Second), must(keeper.GetProgress(b.ctx(), key))(t))
	equal(t, "sequence: notes are no history", sequence, b.get(run.ID).EventSequence)
	b.push(run, noon.Add(time.Second), Succeeded(run, nil))
	equal(t, "after the end", "Ωλ \"quoted\"", must(keeper.GetProgress(b.ctx(), key))(t).Note)
	other := key
	other.Environment += "-elsewhere"
	equal(t, "elsewhere", runlane.Progress{}, must(keeper.GetProgress(b.ctx(), other))(t))
}

func progressFenced(t *testing.T, b *bundle) {
	keeper := b.notes()
	if keeper == nil {
		return
	}
	run := b.create(noon, RunOptions{})
	key, p := b.key(run.ID), runlane.Progress{Attempt: 1, Note: "half", At: noon}
	wantConflict := func(what, token string) {
		t.Helper()
		if err := keeper.PutProgress(b.ctx(), key, token, p); !isConflict(err, runlane.ConflictLeaseOwnership) {
			t.Errorf("%s: %v", what, err)
		}
	}
	wantConflict("without an owner", "none")
	run = b.claim(run, noon, noon.Add(time.Minute))
	wantConflict("another's token", "another's")
	first := run.Lease.Token
	run = b.claim(run, noon.Add(time.Minute), noon.Add(2*time.Minute))
	wantConflict("a late owner", first)
	b.push(run, noon.Add(time.Minute), Succeeded(run, nil))
	wantConflict("after the end", run.Lease.Token)
	equal(t, "note", runlane.Progress{}, must(keeper.GetProgress(b.ctx(), key))(t))
	wantError(t, keeper.PutProgress(b.ctx(), b.key("run_missing"), "token", p), runlane.ErrRunNotFound)
}

func progressPruned(t *testing.T, b *bundle) {
	keeper := b.notes()
	if keeper == nil {
		return
	}
	run := b.create(noon, RunOptions{})
	run = b.claim(run, noon, noon.Add(time.Minute))
	if err := keeper.PutProgress(b.ctx(), b.key(run.ID), run.Lease.Token, runlane.Progress{
		Attempt: 1,
		Note:    "half",
		At:      noon,
	}); err != nil {
		t.Fatal(err)
	}
	b.push(run, noon.Add(time.Second), Succeeded(run, nil))
	b.forget(run.ID)
	b.eventually(func() string {
		b.pruneThrough(b.pruning(noon.Add(time.Hour)))
		return difference(runlane.Progress{}, must(keeper.GetProgress(b.ctx(), b.key(run.ID)))(t))
	})
}
