package core

import (
	"context"
	"sync"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// ownerCommand is memory for the two commits of a simple attempt: its claim and its outcome. It can be used twice
// because storages keep nothing of a command.
type ownerCommand struct {
	claim  lane.ClaimCommand
	append lane.AppendCommand
	events [2]runlane.Event

	claimed   runlane.RunLeaseClaimed
	begun     runlane.RunStarted
	succeeded runlane.RunSucceeded
}

var ownerCommands = sync.Pool{New: func() any { return new(ownerCommand) }}

func newOwnerCommand() *ownerCommand { return ownerCommands.Get().(*ownerCommand) }

func (c *ownerCommand) done() {
	*c = ownerCommand{}
	ownerCommands.Put(c)
}

// claim takes the lease and starts the attempt in one commit.
func (d *delivery) claim(
	ctx context.Context, run *runlane.Run, h runlane.Handler, at time.Time, r rules, token string,
) (*execution, lane.Outcome, error) {
	rt := d.rt
	if timeout := h.Task.Timeout; d.give != nil && timeout > 0 { // nothing else would end the attempt
		r.lease = min(r.lease, timeout+leaseAfterDeadline)
	}
	lease := runlane.Lease{Token: token, WorkerID: d.workerID, ExpiresAt: r.leaseEnd(at)}
	c := newOwnerCommand()
	defer c.done()
	c.claimed, c.begun = runlane.RunLeaseClaimed{Lease: lease}, runlane.RunStarted{Attempt: run.Counters.Attempts + 1}
	header := runlane.Event{
		RunID:       run.ID,
		Environment: rt.environment,
		OccurredAt:  at,
		Actor:       runlane.Actor{Type: runlane.ActorWorker, ID: d.workerID},
	}
	c.events[0], c.events[1] = header, header
	c.events[0].Body, c.events[1].Body = &c.claimed, &c.begun
	projected, err := ProjectRunEvents(run, run.EventSequence, c.events[:]...)
	if err != nil {
		return nil, "", err
	}
	policy := rt.policy(run.Queue)
	c.claim = lane.ClaimCommand{
		At:       at,
		ByWakeup: d.byWakeup && !r.shortLease(),
		Slot:     policy.Bounded(),
		Transition: lane.Transition{
			ExpectedSequence: run.EventSequence,
			Events:           c.events[:],
			Projected:        projected,
			Queue:            policy,
			WithoutRecords:   !rt.watched,
		},
	}
	got, err := rt.storage().ClaimRunLease(ctx, &c.claim)
	switch {
	case err != nil && !rt.claimedAfterAll(ctx, err, run.ID, token):
		return nil, "", err
	case err == nil && got.Outcome != lane.Acquired:
		return nil, got.Outcome, nil
	}
	return &execution{
		rt:       rt,
		handler:  h,
		rules:    r,
		workerID: d.workerID,
		token:    token,
		started:  projected,
		run:      projected,
		spare:    run,
	}, "", nil
}

// claimedAfterAll settles a claim whose answer was lost. Without it the run would wait for the end of a lease that no
// worker uses. When a cancellation was requested meanwhile, here or elsewhere, the attempt is told as it begins.
func (rt *Runtime) claimedAfterAll(ctx context.Context, err error, id runlane.RunID, token string) bool {
	e, ok := asError(err)
	if !ok || e.Code != runlane.ErrStorageUnavailable || e.Meta["outcome"] != "unknown" {
		return false
	}
	run, err := rt.storage().GetRun(ctx, lane.RunKey{Environment: rt.environment, RunID: id})
	if err != nil || !run.Status.Owned() || run.Lease.Token != token {
		return false
	}
	if run.Status == runlane.StatusCancellationRequested {
		rt.executing.cancel(token)
	}
	return true
}
