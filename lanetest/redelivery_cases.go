package lanetest

import (
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// docs/internals/design.md, Delivery: a published wakeup that leads to no claim counts as lost after 10 minutes,
// then after 20, 40, … at most 6 hours.
func redeliveryCases() []storageCase {
	return []storageCase{
		{"BeginsTenMinutesAfterThePublication", needsRedelivery, redeliveryFirst},
		{"DoublesItsDistanceUpToSixHours", needsRedelivery, redeliveryDistance},
		{"IsOnlyForPublishedWakeupsOfQueuedRuns", needsBoth(needsRedelivery, needsLeases), redeliveryExclusion},
		{"BeginsAnewAfterAClaim", needsBoth(needsRedelivery, needsLeases), redeliveryAnew},
	}
}

func (b *bundle) wantRedelivery(what string, at time.Time, run *runlane.Run) {
	b.t.Helper()
	list := b.storage.ListRunsNeedingRedelivery
	equal(b.t, what+", as inspected", at, b.inspect(run.ID).RedeliverAt)
	b.wantScan(what+", a millisecond early", list, b.due(at.Add(-time.Millisecond)))
	b.wantScan(what, list, b.due(at), run)
}

func redeliveryFirst(t *testing.T, b *bundle) {
	eager := b.eagerRow(noon)
	published := noon.Add(5 * time.Second)
	b.mark(t, eager.OutboxRef, published)
	run := b.get(eager.Wakeup.RunID)
	b.wantRedelivery("the first", published.Add(10*time.Minute), run)

	want := lane.RunRef{
		RunKey:      b.key(run.ID),
		Queue:       Queue,
		Status:      runlane.StatusQueued,
		AvailableAt: published.Add(10 * time.Minute),
		Sequence:    run.EventSequence,
	}
	b.eventually(func() string {
		return difference(
			[]lane.RunRef{want},
			b.scanAll(b.storage.ListRunsNeedingRedelivery, b.due(noon.Add(time.Hour))),
		)
	})
	q := b.due(noon.Add(time.Hour))
	q.Queues = []runlane.QueueName{"another"}
	b.wantScan("another queue", b.storage.ListRunsNeedingRedelivery, q)
}

func redeliveryDistance(t *testing.T, b *bundle) {
	at := noon
	run := b.append(b.Creation(t, at, RunOptions{Outbox: lane.InitialOutbox{Published: true}})).Run
	for _, minutes := range []int{10, 20, 40, 80, 160, 320, 360, 360} {
		distance := time.Duration(minutes) * time.Minute
		at = at.Add(distance)
		b.wantRedelivery(distance.String()+" after the publication before", at, run)
		run = b.deliver(run, at, at, lane.InitialOutbox{Published: true}).Run
	}
}

func redeliveryExclusion(t *testing.T, b *bundle) {
	equal(t, "of a wakeup that is not published", time.Time{}, b.inspect(b.create(noon, RunOptions{}).ID).RedeliverAt)
	b.create(noon, RunOptions{Outbox: lane.InitialOutbox{ClaimUntil: noon.Add(claimTime)}})
	failed := b.eagerRow(noon)
	b.markFailure(failed.OutboxRef, 1, noon, noon.Add(time.Second))
	scheduled := b.create(noon, RunOptions{RunAt: noon.Add(time.Minute)})
	b.mark(t, b.outboxOf(noon.Add(time.Minute), b.row(scheduled.ID).ID)[0].OutboxRef, noon.Add(time.Minute))
	claimed := b.create(noon, RunOptions{Outbox: lane.InitialOutbox{Published: true}})
	b.claim(claimed, noon, noon.Add(time.Minute))
	ended := b.create(noon, RunOptions{Outbox: lane.InitialOutbox{Published: true}})
	b.push(ended, noon, &runlane.RunCancelled{})
	b.wantScan("needing redelivery", b.storage.ListRunsNeedingRedelivery, b.due(noon.Add(24*time.Hour)))
}

func redeliveryAnew(t *testing.T, b *bundle) {
	run := b.append(b.Creation(t, noon, RunOptions{Outbox: lane.InitialOutbox{Published: true}})).Run
	at := noon.Add(10 * time.Minute)
	run = b.deliver(run, at, at, lane.InitialOutbox{Published: true}).Run
	run = b.claim(run, at, at.Add(time.Minute))
	at = at.Add(time.Minute) // the worker died
	run = b.deliver(run, at, at, lane.InitialOutbox{Published: true}).Run
	b.wantRedelivery("the first after a claim", at.Add(10*time.Minute), run)
}
