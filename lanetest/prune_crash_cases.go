package lanetest

import (
	"slices"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// The caller that held the cursor is gone: the next caller begins without one. No run is lost, counted twice or left
// over.
func pruneResumed(t *testing.T, b *bundle) {
	var ids []runlane.RunID
	for i := range 5 {
		ids = append(
			ids,
			b.finished(noon.Add(time.Duration(i)*time.Second), runlane.StatusSucceeded, RunOptions{
				Payload: filler(5000),
			}),
		)
	}
	c := b.pruning(noon.Add(time.Hour))
	c.Limit = 2
	for left := ids; len(left) > 0; {
		pruned := 0
		b.eventually(func() string {
			if pruned = b.pruneOnce(c).Pruned; pruned == 0 { // never with a cursor
				return "runs are left, and a call removed none"
			}
			return ""
		})
		var there []runlane.RunID
		for _, run := range must(b.storage.GetRuns(b.ctx(), &lane.RunsQuery{Environment: b.env, IDs: left}))(t) {
			there = append(there, run.ID)
		}
		gone := slices.DeleteFunc(slices.Clone(left), func(id runlane.RunID) bool { return slices.Contains(there, id) })
		equal(t, "runs that are gone", pruned, len(gone))
		b.forget(gone...)
		b.wantGone(gone...)
		b.wantThere(there...)
		left = there
	}
	if progress := b.pruneOnce(c); !none(progress) {
		t.Fatalf("nothing is left, and pruning did %+v", progress)
	}
}

// A process that dies after some of its requests leaves runs that can be read, complete or without the parts that are
// removed first. The next call removes them completely.
func pruneCrashed(t *testing.T, b *bundle) {
	if b.h.Mortal == nil {
		return // only storages whose processes can die are asked
	}
	now := time.Now()
	o := RunOptions{IdempotencyKey: "key", Retention: runlane.KeyRetention{TTL: time.Hour}, Payload: filler(20_000)}
	c := b.pruning(now.Add(time.Minute))
	c.ReleaseOwners = true
	for requests, survived := 0, false; !survived; requests += 3 {
		if requests > 1000 {
			t.Fatal("pruning one run takes a thousand requests")
		}
		run := b.create(now, o)
		run = b.claim(run, now, now.Add(time.Minute))
		run = b.push(run, now, Succeeded(run, filler(10_000)))
		b.forget(run.ID)
		_, err := b.h.Mortal(t, b.storage, requests).PruneRuns(b.ctx(), c)
		survived = err == nil
		b.wantWholeOrGone(run)
		b.eventually(func() string {
			b.pruneThrough(c)
			return difference(
				0,
				len(
					must(b.storage.GetRuns(b.ctx(), &lane.RunsQuery{
						Environment: b.env,
						IDs:         []runlane.RunID{run.ID},
					}))(t),
				),
			)
		})
		b.wantNoHistory(b.key(run.ID))
		_, err = b.storage.GetRunByIdempotencyKey(b.ctx(), b.owner("key"))
		wantError(t, err, runlane.ErrRunNotFound)
	}
	b.verify()
}

// wantWholeOrGone: a run whose pruning was interrupted is read without an error, or is not found.
func (b *bundle) wantWholeOrGone(run *runlane.Run) {
	b.t.Helper()
	got, err := b.storage.GetRun(b.ctx(), b.key(run.ID))
	if runlane.CodeOf(err) == runlane.ErrRunNotFound {
		b.wantNoHistory(b.key(run.ID))
		return
	}
	if err != nil {
		b.t.Fatalf("reading a run whose pruning was interrupted: %v", err)
	}
	if got.Payload != nil {
		wantBytes(b.t, "payload", run.Payload, got.Payload)
	}
	if got.Output != nil {
		wantBytes(b.t, "output", run.Output, got.Output)
	}
	got.Payload, got.Output = run.Payload, run.Output
	equal(b.t, "run whose pruning was interrupted", run, got)
	for i, e := range b.history(b.key(run.ID)) {
		if e.Sequence != int64(i)+1 {
			b.t.Fatalf("its history has event %d in place %d", e.Sequence, i+1)
		}
	}
}
