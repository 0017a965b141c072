package lanetest

import (
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// docs/internals/contract.md, Copies.
func copiesOfReservations(t *testing.T, b *bundle) {
	run := b.limited(1).waiting(noon, RunOptions{
		Payload: []byte(`{"a":1}`), Meta: map[string]string{"m": "meta"}, TraceCarrier: map[string]string{"t": "trace"},
	})
	c := b.Reserve(t, run, noon, noon.Add(reservation), 1)
	kept := cloneTransition(&c.Transition)
	commit := must(b.storage.ReserveRunDispatch(b.ctx(), c))(t).Commit
	equal(t, "ReserveRunDispatch changed its command", kept, &c.Transition)
	before := b.snapshot(run.ID)
	scribbleRun(c.Projected)
	scribbleEvent(&c.Events[0])
	scribbleCommit(commit)
	equal(t, "stored, after command and commit were changed", before, b.snapshot(run.ID))
	equal(t, "trace of the delivery", map[string]string{"t": "trace"}, b.row(run.ID).Wakeup.TraceCarrier)
}

// docs/internals/contract.md, Copies.
func copiesOfFailures(t *testing.T, b *bundle) {
	failed, dead := b.eagerRow(noon), b.eagerRow(noon)
	failure := func() runlane.Failure {
		return runlane.NewFailure(runlane.ErrTransportPublishFailed, "refused", map[string]string{"status": "400"})
	}
	want := failure()
	mark := &lane.MarkFailedCommand{Environment: b.env, At: noon, Messages: []lane.OutboxFailure{
		{OutboxRef: failed.OutboxRef, Attempts: 1, Failure: failure(), NextAvailableAt: noon.Add(time.Second)},
	}}
	if err := b.storage.MarkOutboxMessagesFailed(b.ctx(), mark); err != nil {
		t.Fatal(err)
	}
	bury := &lane.MarkDeadLetteredCommand{Environment: b.env, At: noon, Messages: []lane.OutboxFailure{
		{OutboxRef: dead.OutboxRef, Attempts: 1, Failure: failure()},
	}}
	if err := b.storage.MarkOutboxMessagesDeadLettered(b.ctx(), bury); err != nil {
		t.Fatal(err)
	}
	scribbleMap(mark.Messages[0].Failure.Meta)
	scribbleMap(bury.Messages[0].Failure.Meta)
	for range 2 {
		for _, id := range []runlane.RunID{failed.Wakeup.RunID, dead.Wakeup.RunID} {
			row := b.row(id)
			equal(t, "failure that was read", want, row.Failure)
			scribbleMap(row.Failure.Meta)
		}
		b.eventually(func() string {
			letters := b.deadLetters("")
			if len(letters) != 1 {
				return "no dead letter"
			}
			defer scribbleMap(letters[0].Failure.Meta)
			return difference(want, letters[0].Failure)
		})
	}
}
