package lanetest

import (
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// A run comes from another lane as the history that it has there, in one commit where that is not too long. It is what
// it would be if each event had come on its own: its key is its own or not by how it ended, and nothing is left to do.
func appendWhole(t *testing.T, b *bundle) {
	made := runlane.UTCMillis(time.Now().Add(-time.Minute)) // keys are retained by the real clock
	for name, c := range map[string]struct {
		end  func(run *runlane.Run) runlane.EventBody
		owns bool
	}{
		"succeeded": {func(run *runlane.Run) runlane.EventBody { return Succeeded(run, []byte(`{"n":2}`)) }, true},
		"failed":    {func(run *runlane.Run) runlane.EventBody { return Failed(run) }, false},
		"cancelled": {func(*runlane.Run) runlane.EventBody { return &runlane.RunCancelled{Reason: "enough"} }, true},
	} {
		command := b.Creation(t, made, RunOptions{
			Payload:        []byte(`{"n": 1}`),
			IdempotencyKey: "whole " + name,
			Retention:      runlane.KeyRetention{TTL: time.Hour},
		})
		at := made
		then := func(body func(run *runlane.Run) runlane.EventBody) {
			at = at.Add(time.Second)
			next := b.Transition(t, command.Projected, at, body(command.Projected))
			command.Events, command.Projected = append(command.Events, next.Events...), next.Projected
		}
		for attempt := range 2 {
			if attempt > 0 {
				then(func(run *runlane.Run) runlane.EventBody { return Retried(run, at.Add(time.Second)) })
				then(func(run *runlane.Run) runlane.EventBody { return Delivery(run, at, at) })
			}
			then(func(*runlane.Run) runlane.EventBody { return Claimed(b.NewToken(), at.Add(time.Minute)) })
			then(func(*runlane.Run) runlane.EventBody { return &runlane.RunStarted{Attempt: attempt + 1} })
		}
		if name == "cancelled" {
			then(func(*runlane.Run) runlane.EventBody { return &runlane.RunCancellationRequested{Reason: "enough"} })
		}
		then(c.end)
		command.Outbox.Published = true

		commit := b.append(command)
		equal(t, name+": run", command.Projected, b.get(command.Projected.ID))
		equal(t, name+": events", commit.Events, b.history(command.Key()))
		if len(commit.Events) != len(command.Events) {
			t.Errorf("%s: %d of %d events are there", name, len(commit.Events), len(command.Events))
		}
		owner := lane.OwnerKey{Environment: b.env, TaskID: TaskID, Key: command.Projected.IdempotencyKey}
		run, err := b.storage.GetRunByIdempotencyKey(b.ctx(), owner)
		if !c.owns {
			wantError(t, err, runlane.ErrRunNotFound)
		} else if err != nil || run.ID != command.Projected.ID {
			t.Errorf("%s: its key has %v, %v", name, run, err)
		}
		_, err = b.storage.AppendRunEvents(b.ctx(), command)
		wantConflict(t, err, runlane.ConflictEventSequence, command.Projected.ID)
	}
	if due := b.outbox(made.Add(time.Hour)); len(due) > 0 {
		t.Errorf("wakeups of runs that have ended: %+v", due)
	}
}
