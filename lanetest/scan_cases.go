package lanetest

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// docs/internals/contract.md, Scans.
func scanCases() []storageCase {
	return []storageCase{
		{"EachStatusIsFoundByItsScansAndNoOther", needsBoth(needsLeases, needsOutbox), scanExclusion},
		{"RunnableFromTheExactMillisecondInDueOrder", needsLeases, scanRunnable},
		{"DeliveryIsNeededFromTheExactMillisecondInDueOrder", needsLeases, scanDelivery},
		{"AResumedRunIsDueAtOnce", needsLeases, scanResumed},
		{"AQueuedRunIsRunnableWhateverItsWakeupDoes", needsBoth(needsLeases, needsOutbox), scanQueued},
		{"AScheduledRunComesWithItsUnpublishedRow", needsBoth(needsLeases, needsOutbox), scanScheduledRow},
		{"ARowForLaterIsNoWakeupOfAResumedRun", needsBoth(needsLeases, needsOutbox), scanResumedRow},
		{"DeliveryLeavesBoundedQueuesOut", needsLeases, scanBounded},
		{"CancellationIsFinishedWhenTheLeaseEnds", needsLeases, scanCancellation},
		{"HeartbeatsMoveTheLeaseEnd", needsLeases, scanHeartbeat},
		{"ReferencesSayWhatARunIs", needsLeases, scanReference},
		{"QueuesFilter", needsLeases, scanQueues},
		{"CancellationIsNeededInDueOrder", needsLeases, scanCancellationOrder},
		{"RedeliveryIsNeededInDueOrder", needsRedelivery, scanRedeliveryOrder},
	}
}

type scan func(context.Context, *lane.DueQuery) (*runlane.Page[lane.RunRef], error)

// due is a query for what is due at the instant.
func (b *bundle) due(at time.Time) *lane.DueQuery {
	return &lane.DueQuery{PageQuery: lane.PageQuery{Environment: b.env, Limit: 100}, At: at}
}

func (b *bundle) scanAll(list scan, q *lane.DueQuery) []lane.RunRef {
	b.t.Helper()
	return collect(b.t, &q.PageQuery, func() (*runlane.Page[lane.RunRef], error) { return list(b.ctx(), q) })
}

// wantScan demands exactly these runs, in any order.
func (b *bundle) wantScan(what string, list scan, q *lane.DueQuery, want ...*runlane.Run) {
	b.t.Helper()
	ids := make([]runlane.RunID, len(want))
	for i, run := range want {
		ids[i] = run.ID
	}
	b.eventually(func() string {
		if d := difference(sorted(ids), sorted(refIDs(b.scanAll(list, q)))); d != "" {
			return what + " (-want +got):\n" + d
		}
		return ""
	})
}

// wantScanOrder demands these runs in this order.
func (b *bundle) wantScanOrder(what string, list scan, q *lane.DueQuery, want ...*runlane.Run) {
	b.t.Helper()
	ids := make([]runlane.RunID, len(want))
	for i, run := range want {
		ids[i] = run.ID
	}
	b.eventually(func() string {
		if d := difference(ids, refIDs(b.scanAll(list, q))); d != "" {
			return what + " (-want +got):\n" + d
		}
		return ""
	})
}

// everyStatus makes a run in each status; all instants are noon or before, leases end a minute later.
func (b *bundle) everyStatus() map[runlane.Status]*runlane.Run {
	b.t.Helper()
	end := noon.Add(time.Minute)
	retrying, released := b.running(noon, end, RunOptions{}), b.running(noon, end, RunOptions{})
	cancelling := b.running(noon, end, RunOptions{})
	failed, succeeded := b.running(noon, end, RunOptions{}), b.running(noon, end, RunOptions{})
	runs := map[runlane.Status]*runlane.Run{
		runlane.StatusQueued:                b.create(noon, RunOptions{Outbox: lane.InitialOutbox{Published: true}}),
		runlane.StatusScheduled:             b.create(noon, RunOptions{RunAt: end}),
		runlane.StatusRunning:               b.running(noon, end, RunOptions{}),
		runlane.StatusCancellationRequested: b.push(cancelling, noon, &runlane.RunCancellationRequested{}),
		runlane.StatusRetrying:              b.push(retrying, noon, Retried(retrying, end)),
		runlane.StatusReleased:              b.push(released, noon, Released(released, end)),
		runlane.StatusSucceeded:             b.push(succeeded, noon, Succeeded(succeeded, nil)),
		runlane.StatusFailed:                b.push(failed, noon, Failed(failed)),
		runlane.StatusCancelled:             b.push(b.create(noon, RunOptions{}), noon, &runlane.RunCancelled{}),
	}
	for _, status := range runlane.Statuses() {
		if runs[status] == nil {
			b.t.Fatalf("everyStatus makes no run that is %s", status)
		}
	}
	return runs
}

func scanExclusion(_ *testing.T, b *bundle) {
	runs := b.everyStatus()
	due := func(predicate func(*runlane.Run) (time.Time, bool)) []*runlane.Run {
		var chosen []*runlane.Run
		for _, s := range runlane.Statuses() {
			if _, ok := predicate(runs[s]); ok {
				chosen = append(chosen, runs[s])
			}
		}
		return chosen
	}
	later := b.due(noon.Add(24 * time.Hour))
	b.wantScan("runnable", b.storage.ListRunnableRuns, later, due(lane.RunnableAt)...)
	b.wantScan("needing delivery", b.storage.ListRunsNeedingDelivery, later, due(lane.DeliveryRecoveryAt)...)
	b.wantScan(
		"needing cancellation",
		b.storage.ListRunsNeedingCancellationFinalization,
		later,
		due(lane.CancellationFinalizationAt)...,
	)
	if b.h.Capabilities.FindsLostWakeups {
		b.wantScan("needing redelivery", b.storage.ListRunsNeedingRedelivery, later, runs[runlane.StatusQueued])
	}
}

// spread makes a runnable run of each of the statuses, due a second apart, and returns them in due order.
func (b *bundle) spread(statuses ...runlane.Status) []*runlane.Run {
	b.t.Helper()
	runs := make([]*runlane.Run, len(statuses))
	for i, status := range statuses {
		due := noon.Add(time.Hour + time.Duration(i)*time.Second)
		switch status {
		case runlane.StatusQueued:
			runs[i] = b.create(due, RunOptions{})
		case runlane.StatusScheduled:
			runs[i] = b.create(noon, RunOptions{RunAt: due})
		case runlane.StatusRunning:
			runs[i] = b.running(noon, due, RunOptions{})
		case runlane.StatusRetrying:
			run := b.running(noon, due, RunOptions{})
			runs[i] = b.push(run, noon, Retried(run, due))
		default:
			run := b.running(noon, due, RunOptions{})
			runs[i] = b.push(run, noon, Released(run, due))
		}
	}
	return runs
}

func (b *bundle) wantSpread(what string, list scan, runs []*runlane.Run) {
	b.t.Helper()
	for i := range runs {
		due := noon.Add(time.Hour + time.Duration(i)*time.Second)
		b.wantScanOrder(what+", a millisecond early", list, b.due(due.Add(-time.Millisecond)), runs[:i]...)
		b.wantScanOrder(what+", at the millisecond", list, b.due(due), runs[:i+1]...)
	}
}

// A wait that was ended before its time is over from that very millisecond on.
func scanResumed(t *testing.T, b *bundle) {
	runs := b.spread(runlane.StatusScheduled, runlane.StatusRetrying, runlane.StatusReleased)
	at := noon.Add(time.Minute)
	for i, run := range runs {
		resumed := b.push(run, at.Add(time.Duration(i)*time.Second), Resumed())
		if want := at.Add(time.Duration(i) * time.Second); !resumed.RunAt.Equal(want) || resumed.Status != run.Status {
			t.Errorf("a resumed run is %s, due at %s, not at %s", resumed.Status, resumed.RunAt, want)
		}
		equal(t, "resumed run", resumed, b.get(run.ID))
		runs[i] = resumed
	}
	for i, run := range runs {
		early := b.due(run.RunAt.Add(-time.Millisecond))
		b.wantScanOrder("runnable, early", b.storage.ListRunnableRuns, early, runs[:i]...)
		b.wantScanOrder("runnable", b.storage.ListRunnableRuns, b.due(run.RunAt), runs[:i+1]...)
	}
	last := b.push(runs[0], at.Add(time.Hour), Resumed()) // its time came before: nothing but the sequence changes
	if !last.RunAt.Equal(runs[0].RunAt) {
		t.Errorf("a due run that is resumed is due at %s, not at %s", last.RunAt, runs[0].RunAt)
	}
}

func scanRunnable(_ *testing.T, b *bundle) {
	runs := b.spread(
		runlane.StatusRetrying,
		runlane.StatusQueued,
		runlane.StatusRunning,
		runlane.StatusScheduled,
		runlane.StatusReleased,
	)
	b.wantSpread("runnable", b.storage.ListRunnableRuns, runs)
}

func scanDelivery(_ *testing.T, b *bundle) {
	runs := b.spread(runlane.StatusReleased, runlane.StatusRunning, runlane.StatusScheduled, runlane.StatusRetrying)
	b.wantSpread("needing delivery", b.storage.ListRunsNeedingDelivery, runs)
}

func scanQueued(t *testing.T, b *bundle) {
	pending := b.create(noon, RunOptions{})
	held := b.create(noon, RunOptions{Outbox: lane.InitialOutbox{ClaimUntil: noon.Add(claimTime)}})
	published := b.create(noon, RunOptions{Outbox: lane.InitialOutbox{Published: true}})
	failed := b.eagerRow(noon)
	b.markFailure(failed.OutboxRef, 1, noon, noon.Add(time.Hour))
	b.wantScan(
		"runnable",
		b.storage.ListRunnableRuns,
		b.due(noon),
		pending,
		held,
		published,
		b.get(failed.Wakeup.RunID),
	)
	for _, at := range []time.Time{noon, noon.Add(48 * time.Hour)} {
		b.wantScan("needing delivery", b.storage.ListRunsNeedingDelivery, b.due(at))
	}
	if got := b.tryClaim(b.get(failed.Wakeup.RunID), noon, noon); got.Outcome != lane.Acquired {
		t.Fatalf("claim of a queued run whose publishing failed: outcome %q", got.Outcome)
	}
}

func scanScheduledRow(t *testing.T, b *bundle) {
	due := noon.Add(time.Hour)
	pending := b.create(noon, RunOptions{RunAt: due})
	published := b.create(noon, RunOptions{RunAt: due})
	row := b.outboxOf(due, b.row(published.ID).ID)[0]
	b.mark(t, row.OutboxRef, due)
	b.eventually(func() string {
		got := map[runlane.RunID]string{}
		for _, ref := range b.scanAll(b.storage.ListRunsNeedingDelivery, b.due(due)) {
			got[ref.RunID] = ref.OutboxID
		}
		return difference(map[runlane.RunID]string{pending.ID: b.row(pending.ID).ID, published.ID: ""}, got)
	})
}

// A run whose queue has a limit only where it is resumed: its wakeup is for the time that it waited for, which may be
// centuries away, and it needs another one where the queue has no limit any more.
func scanResumedRow(t *testing.T, b *bundle) {
	due, at := noon.Add(time.Hour), noon.Add(time.Minute)
	pending := b.create(noon, RunOptions{RunAt: due})
	row := b.row(pending.ID).ID
	c := b.Append(t, pending, at, Resumed())
	c.Queue = runlane.Queue{Name: Queue, Concurrency: 3}
	resumed := b.append(c).Run
	b.wantScan("the queue has the limit", b.storage.ListRunsNeedingDispatch, &lane.DueQuery{
		PageQuery: lane.PageQuery{Environment: b.env, Limit: 100}, At: at, Bounded: []runlane.Queue{c.Queue},
	}, resumed)
	b.eventually(func() string {
		got := map[runlane.RunID]string{}
		for _, ref := range b.scanAll(b.storage.ListRunsNeedingDelivery, b.due(at)) {
			got[ref.RunID] = ref.OutboxID
		}
		return difference(map[runlane.RunID]string{pending.ID: ""}, got)
	})
	equal(t, "rows that may be claimed", 0, len(b.outboxOf(due, row)))
	b.deliver(resumed, at, at, lane.InitialOutbox{})
	equal(t, "rows of the new request", 1, len(b.outboxOf(at, b.row(pending.ID).ID)))
}

func scanBounded(_ *testing.T, b *bundle) {
	due := noon.Add(time.Hour)
	free := b.create(noon, RunOptions{RunAt: due})
	limited := b.create(noon, RunOptions{RunAt: due, Queue: "limited"}) // made before its queue got a limit
	q := b.due(due)
	b.wantScan("no queue bounded", b.storage.ListRunsNeedingDelivery, q, free, limited)
	q.Bounded = []runlane.Queue{{Name: "limited", Concurrency: 3}}
	b.wantScan("one queue bounded", b.storage.ListRunsNeedingDelivery, q, free)
}

func scanCancellation(_ *testing.T, b *bundle) {
	end := noon.Add(time.Minute)
	owned := b.running(noon, end, RunOptions{})
	asked := b.push(owned, noon, &runlane.RunCancellationRequested{})
	b.running(noon, end, RunOptions{}) // not asked
	list := b.storage.ListRunsNeedingCancellationFinalization
	b.wantScan("a millisecond before the lease ends", list, b.due(end.Add(-time.Millisecond)))
	b.wantScan("when the lease ends", list, b.due(end), asked)
	b.push(asked, end, &runlane.RunCancelled{})
	b.wantScan("after it was finished", list, b.due(end.Add(time.Hour)))
}

func scanHeartbeat(t *testing.T, b *bundle) {
	end := noon.Add(time.Minute)
	run := b.running(noon, end, RunOptions{})
	must(b.storage.HeartbeatRunLease(b.ctx(), b.Heartbeat(t, run, noon.Add(time.Second), end.Add(time.Minute))))(t)
	b.wantScan("runnable at the first end", b.storage.ListRunnableRuns, b.due(end))
	b.wantScan("needing delivery at the first end", b.storage.ListRunsNeedingDelivery, b.due(end))
	b.wantScan("runnable at the extended end", b.storage.ListRunnableRuns, b.due(end.Add(time.Minute)), run)
	b.wantScan(
		"needing delivery at the extended end",
		b.storage.ListRunsNeedingDelivery,
		b.due(end.Add(time.Minute)),
		run,
	)
}

func scanReference(t *testing.T, b *bundle) {
	end := noon.Add(time.Minute)
	run := b.running(noon, end, RunOptions{ConcurrencyKey: "customer:7", Queue: "special"})
	want := lane.RunRef{
		RunKey:         b.key(run.ID),
		Queue:          "special",
		ConcurrencyKey: "customer:7",
		Status:         runlane.StatusRunning,
		AvailableAt:    end,
		Sequence:       run.EventSequence,
	}
	for what, list := range map[string]scan{
		"runnable":         b.storage.ListRunnableRuns,
		"needing delivery": b.storage.ListRunsNeedingDelivery,
	} {
		b.eventually(func() string {
			return difference([]lane.RunRef{want}, b.scanAll(list, b.due(end.Add(time.Hour))))
		})
		if t.Failed() {
			t.Fatalf("reference of the scan for %s", what)
		}
	}
}

func scanQueues(_ *testing.T, b *bundle) {
	queues := []runlane.QueueName{"alpha", "beta", "gamma"}
	runs := map[runlane.QueueName]*runlane.Run{}
	for _, queue := range queues {
		runs[queue] = b.running(noon, noon.Add(time.Minute), RunOptions{Queue: queue})
	}
	for _, list := range []scan{b.storage.ListRunnableRuns, b.storage.ListRunsNeedingDelivery} {
		for _, chosen := range [][]runlane.QueueName{nil, {"beta"}, {"gamma", "alpha"}, {"delta"}} {
			q := b.due(noon.Add(time.Hour))
			q.Queues = chosen
			var want []*runlane.Run
			for _, queue := range queues {
				if chosen == nil || slices.Contains(chosen, queue) {
					want = append(want, runs[queue])
				}
			}
			b.wantScan("queues filtered", list, q, want...)
		}
		q := b.due(noon.Add(time.Hour))
		q.Without = []runlane.QueueName{"alpha", "delta"}
		b.wantScan("queues left out", list, q, runs["beta"], runs["gamma"])
		q.Queues = []runlane.QueueName{"alpha", "beta"}
		b.wantScan("one of two queues left out", list, q, runs["beta"])
	}
}
