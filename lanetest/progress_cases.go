package lanetest

import (
	"testing"
	"time"

	"github.com/runlane/runlane-go"
)

// docs/internals/design.md, Leases and workers: the last note of a run is not in its history; writes need the lease.
func progressCases() []storageCase {
	return []storageCase{
		{"TheLastNoteIsKept", needsProgress, progressLast},
		{"OnlyTheOwnerLeavesNotes", needsProgress, progressFenced},
		{"NotesGoWithTheirRun", needsBoth(needsProgress, needsPruning), progressPruned},
	}
}

func progressLast(t *testing.T, b *bundle) {
	run := b.create(noon, RunOptions{})
	run = b.claim(run, noon, noon.Add(time.Minute))
	key := b.key(run.ID)
	equal(t, "note before the first", runlane.Progress{}, must(b.storage.GetProgress(b.ctx(), key))(t))
	sequence := b.get(run.ID).EventSequence
	note := func(text string, at time.Duration) runlane.Progress {
		return runlane.Progress{Attempt: 1, Note: text, At: noon.Add(at)}
	}
	for _, p := range []runlane.Progress{
		note("half", time.Second),
		note("three quarters", 2*time.Second),
		note("Ωλ \"quoted\"", 3*time.Second),
	} {
		if err := b.storage.PutProgress(b.ctx(), key, run.Lease.Token, p); err != nil {
			t.Fatal(err)
		}
		equal(t, "note", p, must(b.storage.GetProgress(b.ctx(), key))(t))
	}
	if err := b.storage.PutProgress(b.ctx(), key, run.Lease.Token, note("late", time.Second)); err != nil {
		t.Fatal(err)
	}
	equal(t, "after an older one", note("Ωλ \"quoted\"", 3*time.Second), must(b.storage.GetProgress(b.ctx(), key))(t))
	equal(t, "sequence: notes are no history", sequence, b.get(run.ID).EventSequence)
	b.push(run, noon.Add(time.Second), Succeeded(run, nil))
	equal(t, "after the end", "Ωλ \"quoted\"", must(b.storage.GetProgress(b.ctx(), key))(t).Note)
	other := key
	other.Environment += "-elsewhere"
	equal(t, "elsewhere", runlane.Progress{}, must(b.storage.GetProgress(b.ctx(), other))(t))
}

func progressFenced(t *testing.T, b *bundle) {
	run := b.create(noon, RunOptions{})
	key, p := b.key(run.ID), runlane.Progress{Attempt: 1, Note: "half", At: noon}
	wantConflict := func(what, token string) {
		t.Helper()
		if err := b.storage.PutProgress(b.ctx(), key, token, p); !isConflict(err, runlane.ConflictLeaseOwnership) {
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
	equal(t, "note", runlane.Progress{}, must(b.storage.GetProgress(b.ctx(), key))(t))
	wantError(t, b.storage.PutProgress(b.ctx(), b.key("run_missing"), "token", p), runlane.ErrRunNotFound)
}

func progressPruned(t *testing.T, b *bundle) {
	run := b.create(noon, RunOptions{})
	run = b.claim(run, noon, noon.Add(time.Minute))
	if err := b.storage.PutProgress(b.ctx(), b.key(run.ID), run.Lease.Token, runlane.Progress{
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
		return difference(runlane.Progress{}, must(b.storage.GetProgress(b.ctx(), b.key(run.ID)))(t))
	})
}
