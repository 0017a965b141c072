package lanetest

import (
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// docs/internals/contract.md, Copies: a command is neither kept nor changed, and what is returned is the caller's own.
func copyCases() []storageCase {
	return []storageCase{
		{"ChangingACommandAfterwardsChangesNothing", needsBoth(needsHistory, needsLeases), copiesIn},
		{"ChangingAResultChangesNothing", needsBoth(needsHistory, needsLeases), copiesOut},
		{"CommandsAreNotChanged", needsLeases, commandsKept},
	}
}

// rich is a creation with everything that could be shared.
func (b *bundle) rich(t testing.TB) *lane.AppendCommand {
	c := b.Creation(t, noon, RunOptions{
		Payload:      []byte(`{"a":"payload"}`),
		Meta:         map[string]string{"m": "meta"},
		TraceCarrier: map[string]string{"t": "trace"},
	})
	c.Events[1].TraceCarrier = map[string]string{"t": "of the event"}
	c.Events[1].Body.(*runlane.RunDeliveryRequested).Delivery.TraceCarrier = map[string]string{"t": "of the delivery"}
	c.Projected.TraceCarrier = map[string]string{"t": "of the delivery"}
	return c
}

func scribbleRun(r *runlane.Run) {
	scribbleBytes(r.Payload)
	scribbleBytes(r.Output)
	scribbleMap(r.Meta)
	scribbleMap(r.TraceCarrier)
	scribbleMap(r.Failure.Meta)
	r.Status, r.Lease.Token = "scribbled", "scribbled"
}

func scribbleEvent(e *runlane.Event) {
	scribbleMap(e.Meta)
	scribbleMap(e.TraceCarrier)
	e.OccurredAt = e.OccurredAt.Add(time.Hour)
	switch body := e.Body.(type) {
	case *runlane.RunCreated:
		scribbleBytes(body.Payload)
		body.TaskID = "scribbled"
	case *runlane.RunDeliveryRequested:
		scribbleMap(body.Delivery.TraceCarrier)
		body.Delivery.AvailableAt = body.Delivery.AvailableAt.Add(time.Hour)
	case *runlane.RunLeaseClaimed:
		body.Lease.Token = "scribbled"
	case *runlane.RunStarted:
		body.Attempt = 99
	case *runlane.RunRetryScheduled:
		scribbleMap(body.Failure.Meta)
		body.RetryAt = body.RetryAt.Add(time.Hour)
	case *runlane.RunSucceeded:
		scribbleBytes(body.Output)
	default: // no case makes others
	}
}

func scribbleBytes(b []byte) {
	for i := range b {
		b[i] = '#'
	}
}

func scribbleMap(m map[string]string) {
	if m == nil {
		return
	}
	for k := range m {
		m[k] = "scribbled"
	}
	m["scribbled"] = "scribbled"
}

func scribbleCommit(c *lane.Commit) {
	scribbleRun(c.Run)
	for i := range c.Events {
		scribbleEvent(&c.Events[i].Event)
	}
	for i := range c.Outbox {
		scribbleMap(c.Outbox[i].Wakeup.TraceCarrier)
	}
}

// snapshot is what reads say of a run, as a deep copy.
type snapshot struct {
	Run    *runlane.Run
	Events []runlane.EventRecord
}

func (b *bundle) snapshot(id runlane.RunID) snapshot {
	s := snapshot{Run: b.get(id).Clone()}
	for _, r := range b.history(b.key(id)) {
		s.Events = append(s.Events, r.Clone())
	}
	return s
}

func cloneCommit(c *lane.Commit) *lane.Commit {
	copied := &lane.Commit{Run: c.Run.Clone()}
	for _, r := range c.Events {
		copied.Events = append(copied.Events, r.Clone())
	}
	return copied
}

func copiesIn(t *testing.T, b *bundle) {
	scribble := func(tr *lane.Transition, commit *lane.Commit) {
		t.Helper()
		before, returned := b.snapshot(commit.Run.ID), cloneCommit(commit)
		scribbleRun(tr.Projected)
		for i := range tr.Events {
			scribbleEvent(&tr.Events[i])
		}
		equal(t, "stored, after the command was changed", before, b.snapshot(commit.Run.ID))
		equal(t, "returned, after the command was changed", returned, cloneCommit(commit))
	}
	creation := b.rich(t)
	commit := b.append(creation)
	run := commit.Run.Clone()
	scribble(&creation.Transition, commit)

	claim := b.Claim(t, run.Clone(), noon, noon.Add(time.Minute), b.NewToken())
	acquired := must(b.storage.ClaimRunLease(b.ctx(), claim))(t)
	run = acquired.Commit.Run.Clone()
	scribble(&claim.Transition, acquired.Commit)

	retry := b.Append(t, run.Clone(), noon.Add(time.Second), Retried(run, noon.Add(time.Hour)))
	commit = b.append(retry)
	run = commit.Run.Clone()
	scribble(&retry.Transition, commit)

	again := b.Claim(t, run.Clone(), noon.Add(time.Hour), noon.Add(2*time.Hour), b.NewToken())
	acquired = must(b.storage.ClaimRunLease(b.ctx(), again))(t)
	run = acquired.Commit.Run.Clone()
	success := b.Append(t, run.Clone(), noon.Add(time.Hour), Succeeded(run, []byte(`{"an":"output"}`)))
	scribble(&success.Transition, b.append(success))
}

func copiesOut(t *testing.T, b *bundle) {
	id := b.rich(t).Projected.ID
	commit := b.append(b.Creation(t, noon, RunOptions{
		ID:           id,
		Payload:      []byte(`{"a":"payload"}`),
		Meta:         map[string]string{"m": "meta"},
		TraceCarrier: map[string]string{"t": "trace"},
	}))
	run := b.claim(commit.Run, noon, noon.Add(time.Minute))
	run = b.push(run, noon.Add(time.Second), Retried(run, noon.Add(time.Minute)))
	b.push(run, noon.Add(time.Minute), Delivery(run, noon.Add(time.Minute), noon.Add(time.Minute)))
	before := b.snapshot(id)
	check := func(what string) {
		t.Helper()
		equal(t, "stored, after the result of "+what+" was changed", before, b.snapshot(id))
	}

	scribbleCommit(commit)
	check("AppendRunEvents")
	scribbleRun(b.get(id))
	check("GetRun")
	for _, r := range must(b.storage.GetRuns(b.ctx(), &lane.RunsQuery{
		Environment: b.env,
		IDs:         []runlane.RunID{id, id},
	}))(t) {
		scribbleRun(r)
	}
	check("GetRuns")
	for _, r := range b.history(b.key(id)) {
		scribbleEvent(&r.Event)
	}
	check("ListRunEvents")
	if b.h.Capabilities.PersistsOutbox {
		for _, m := range b.outboxOf(noon.Add(time.Minute), b.inspect(id).Delivery.ID) {
			scribbleMap(m.Wakeup.TraceCarrier)
		}
		check("ClaimOutboxMessages")
		inspection := b.inspect(id)
		scribbleRun(inspection.Run)
		scribbleMap(inspection.Delivery.Wakeup.TraceCarrier)
		check("InspectRun")
		equal(
			t,
			"trace carrier of the delivery",
			map[string]string{"t": "trace"},
			b.inspect(id).Delivery.Wakeup.TraceCarrier,
		)
	}
	acquired := must(b.storage.ClaimRunLease(
		b.ctx(),
		b.Claim(t, b.get(id), noon.Add(time.Minute), noon.Add(time.Hour), b.NewToken()),
	))(t)
	before = b.snapshot(id)
	scribbleCommit(acquired.Commit)
	check("ClaimRunLease")
}

func (b *bundle) inspect(id runlane.RunID) *lane.Inspection {
	b.t.Helper()
	return must(b.storage.InspectRun(b.ctx(), &lane.InspectQuery{
		RunKey: b.key(id),
		Queue:  runlane.Queue{Name: Queue},
	}))(b.t)
}

func commandsKept(t *testing.T, b *bundle) {
	same := func(what string, want, got *lane.Transition) {
		t.Helper()
		equal(t, what+" changed its command", want, got)
	}
	creation := b.rich(t)
	kept := cloneTransition(&creation.Transition)
	run := b.append(creation).Run
	same("AppendRunEvents", kept, &creation.Transition)

	claim := b.Claim(t, run, noon, noon.Add(time.Minute), b.NewToken())
	kept = cloneTransition(&claim.Transition)
	must(b.storage.ClaimRunLease(b.ctx(), claim))(t)
	same("ClaimRunLease", kept, &claim.Transition)
}

func cloneTransition(tr *lane.Transition) *lane.Transition {
	c := *tr
	c.Projected = tr.Projected.Clone()
	c.Events = nil
	for _, e := range tr.Events {
		c.Events = append(c.Events, e.Clone())
	}
	return &c
}
