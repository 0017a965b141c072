package crashtest

import (
	"context"
	"slices"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/functions"
	"github.com/runlane/runlane-go/internal/proof/waiting"
	"github.com/runlane/runlane-go/lane"
)

// scenario is one thing that a process does until it dies.
type scenario struct {
	name string
	// options of the program, of both processes. nil: its two tasks.
	options func(p *program) *core.Options
	// without: the process that dies has no handlers.
	without bool
	// prepare is done by the process that takes over later.
	prepare func(w *world)
	// act is done by the process that dies.
	act func(ctx context.Context, c *child) error
	// repeat is what is done after two ticks, by the caller of the process that died, which got no answer.
	repeat func(w *world)
	// atOnce is how many attempts the process that dies may be in the middle of. 0 means one.
	atOnce int
	// judge finds faults beside those that every world may have.
	judge func(a *account)
}

func scenarios() []scenario {
	all := slices.Concat(
		triggerScenarios(), deliveryScenarios(), tickScenarios(), scheduleScenarios(), operatorScenarios(), waitScenarios(),
		[]scenario{importScenario()}, pruneScenarios(),
	)
	for i := range all {
		if all[i].options == nil {
			all[i].options = func(p *program) *core.Options { return p.options() }
		}
	}
	return all
}

func scenarioOf(name string) (scenario, bool) {
	all := scenarios()
	at := slices.IndexFunc(all, func(s scenario) bool { return s.name == name })
	if at < 0 {
		return scenario{}, false
	}
	return all[at], true
}

// fails makes the first abandoned attempt of a run its last.
func fails(p *program) *core.Options {
	o := p.options()
	o.MaxAbandoned = 1
	return o
}

// hooked has a hook that sees every commit, and a codec.
func hooked(p *program) *core.Options {
	o := p.options()
	waiting.Hooked(o)
	return o
}

// invoke lets a function of the dying process take what its queues have.
func invoke(ctx context.Context, c *child) error { return c.invoke(ctx) }

// tickOnce lets the dying process maintain, as a function: but that one keeps a share of its time free, by the real clock, and has none
// left in a world whose clock is far ahead.
func tickOnce(ctx context.Context, c *child) error {
	if c.Ahead > 5*time.Minute {
		_, err := c.rt.Tick(ctx, nil)
		return err
	}
	limited, cancel := c.limit(ctx, tickTime)
	defer cancel()
	return functions.Tick(c.rt)(limited)
}

// fresh triggers a run that needs what may have been left behind, and wants it through at once, without a tick.
func (w *world) fresh(call runlane.Call, options *runlane.TriggerOptions) {
	w.t.Helper()
	id := w.trigger(call, options)
	w.deliver()
	run, err := w.rt.Runs().Get(w.t.Context(), id)
	w.must(err)
	if run.Status != runlane.StatusSucceeded {
		w.fault("a run that came afterwards is %s", run.Status)
	}
}

// slotIsFree proves that the bounded queue's only slot can be taken.
func slotIsFree(w *world) { w.fresh(lined.With(act{Name: "afterwards"}), nil) }

// policy is the queue of a run.
func policy(run *runlane.Run) runlane.Queue {
	if run.Queue == narrow.Name {
		return narrow
	}
	return runlane.Queue{Name: run.Queue}
}

// abandon makes a run one whose worker has died: its lease is over in a second.
func (w *world) abandon(id runlane.RunID) {
	w.t.Helper()
	run, err := w.rt.Runs().Get(w.t.Context(), id)
	w.must(err)
	w.claim(run, policy(run), time.Second)
}

// claim starts an attempt that no worker executes, under a lease of a length.
func (w *world) claim(run *runlane.Run, queue runlane.Queue, length time.Duration) {
	w.t.Helper()
	id := run.ID
	at := runlane.UTCMillis(w.now())
	header := runlane.Event{RunID: id, Environment: w.environment, OccurredAt: at, Actor: runlane.Actor{Type: runlane.ActorWorker, ID: "dead"}}
	claimed, started := header, header
	claimed.Body = &runlane.RunLeaseClaimed{Lease: runlane.Lease{Token: "lease_dead", WorkerID: "dead", ExpiresAt: at.Add(length)}}
	started.Body = &runlane.RunStarted{Attempt: run.Counters.Attempts + 1}
	happened := []runlane.Event{claimed, started}
	projected, err := core.ProjectRunEvents(run, run.EventSequence, happened...)
	w.must(err)
	got, err := w.storage.ClaimRunLease(w.t.Context(), &lane.ClaimCommand{
		At: at, ByWakeup: true, Slot: queue.Bounded(), Transition: lane.Transition{
			ExpectedSequence: run.EventSequence, Events: happened, Projected: projected, Queue: queue,
		},
	})
	w.must(err)
	if got.Outcome != lane.Acquired {
		w.t.Fatalf("the claim was %s", got.Outcome)
	}
}

// hold claims the wakeup of a new run, as a publisher.
func (w *world) hold(id runlane.RunID, length time.Duration) lane.OutboxMessage {
	w.t.Helper()
	seen, err := w.storage.InspectRun(w.t.Context(), &lane.InspectQuery{RunKey: lane.RunKey{Environment: w.environment, RunID: id}})
	w.must(err)
	at := runlane.UTCMillis(w.now())
	rows, err := w.storage.ClaimOutboxMessages(w.t.Context(), &lane.ClaimOutboxCommand{
		Environment: w.environment, IDs: []string{seen.Delivery.ID}, At: at, ClaimUntil: at.Add(length), Limit: 1,
	})
	w.must(err)
	if len(rows) != 1 {
		w.t.Fatalf("%d rows were claimed", len(rows))
	}
	return rows[0]
}

// giveUp makes a run one whose wakeup was given up.
func (w *world) giveUp(id runlane.RunID) {
	w.t.Helper()
	row := w.hold(id, time.Second)
	w.must(w.storage.MarkOutboxMessagesDeadLettered(w.t.Context(), &lane.MarkDeadLetteredCommand{
		Environment: w.environment, At: runlane.UTCMillis(w.now()), Messages: []lane.OutboxFailure{{
			OutboxRef: row.OutboxRef, Attempts: 10, Failure: runlane.NewFailure(runlane.ErrTransportPublishFailed, "refused", nil),
		}},
	}))
}

// finish makes runs that have ended.
func (w *world) finish(calls ...runlane.Call) []runlane.RunID {
	w.t.Helper()
	var ids []runlane.RunID
	for _, call := range calls {
		ids = append(ids, w.trigger(call, nil))
	}
	w.deliver()
	return ids
}
