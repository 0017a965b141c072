package lanetest

import (
	"slices"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// docs/internals/contract.md, Scans; docs/internals/design.md, Queues.
func queueScanCases() []storageCase {
	return []storageCase{
		{"EachStatusWantsASlotFromItsExactMillisecond", needsQueues, queueScanExact},
		{"AResumedRunWantsASlotAtOnce", needsQueues, queueScanResumed},
		{"OnlyWhatWantsASlotNeedsDispatch", needsQueues, queueScanExclusion},
		{"ABlockedPartitionNeverHidesTheWorkOfAnother", needsQueues, queueScanBlocked},
		{"WithinAPartitionTheLongestDueComesFirst", needsQueues, queueScanOrder},
		{"APriorityCountsAsTimeOfWaiting", needsQueues, queueScanPriority},
		{"RunnableAreThoseWithASlotOrRoomForOne", needsQueues, queueScanRunnable},
		{"QueuesAndEnvironmentsFilter", needsQueues, queueScanFilters},
		{"ReferencesSayWhatARunIs", needsQueues, queueScanReference},
		{"PagesCoverEveryPartition", needsQueues, queueScanPages},
		{"DeliveryAndRedeliveryLeaveBoundedQueuesOut", needsBoth(needsQueues, needsRedelivery), queueScanOthers},
		{"ARunThatWaitedIsRedeliveredWhenTheLimitIsGone", needsBoth(needsQueues, needsRedelivery), queueScanUnbounded},
		{"ADeadLetterWaitsAlsoWhenItsQueueGetsALimit", needsBoth(needsQueues, needsDeadLetters), queueScanDeadLetter},
		{"ARowIsDueOnlyWhileItsReservationLives", needsQueues, queueRows},
	}
}

func queueScanExact(_ *testing.T, b *bundle) {
	s := b.limited(10)
	due := func(i int) time.Time { return noon.Add(time.Hour + time.Duration(i)*time.Second) }
	retrying, released := s.executing(noon, RunOptions{}), s.executing(noon, RunOptions{})
	runs := []*runlane.Run{
		s.won("reserve", s.reserveUntil(s.waiting(noon, RunOptions{}), noon, due(0))),
		s.waiting(noon, RunOptions{RunAt: due(1)}),
		s.commit(retrying, noon, Retried(retrying, due(2))),
		s.won("claim", s.take(s.waiting(noon, RunOptions{}), due(3).Add(-time.Minute), true)),
		s.commit(released, noon, Released(released, due(4))),
		s.waiting(due(5), RunOptions{}),
	}
	for i := range runs {
		b.wantScan(
			"a millisecond early",
			b.storage.ListRunsNeedingDispatch,
			s.bounded(due(i).Add(-time.Millisecond)),
			runs[:i]...,
		)
		b.wantScan("at the millisecond", b.storage.ListRunsNeedingDispatch, s.bounded(due(i)), runs[:i+1]...)
	}
}

func queueScanResumed(_ *testing.T, b *bundle) {
	s := b.limited(10)
	run := s.executing(noon, RunOptions{})
	run = s.commit(run, noon, Released(run, noon.Add(time.Hour)))
	at := noon.Add(time.Minute)
	run = s.commit(run, at, Resumed())
	b.wantScan("a millisecond early", b.storage.ListRunsNeedingDispatch, s.bounded(at.Add(-time.Millisecond)))
	b.wantScan("resumed", b.storage.ListRunsNeedingDispatch, s.bounded(at), run)
	s.won("reserve a resumed run", s.reserve(run, at))
}

func queueScanExclusion(_ *testing.T, b *bundle) {
	s := b.limited(50)
	other := runlane.Queue{Name: "another", Concurrency: 5}
	for _, end := range []func(run *runlane.Run) runlane.EventBody{
		func(run *runlane.Run) runlane.EventBody { return Succeeded(run, nil) },
		func(run *runlane.Run) runlane.EventBody { return Failed(run) },
		func(*runlane.Run) runlane.EventBody { return &runlane.RunCancellationRequested{} },
	} {
		run := s.executing(noon, RunOptions{})
		s.commit(run, noon, end(run))
	}
	s.commit(s.waiting(noon, RunOptions{}), noon, &runlane.RunCancelled{})
	later := noon.Add(24 * time.Hour)
	s.won("reserve", s.reserveUntil(s.waiting(noon, RunOptions{}), noon, later.Add(time.Hour)))
	s.won("claim", s.take(s.waiting(noon, RunOptions{}), later, true)) // its lease lives
	waiting := s.waiting(noon, RunOptions{})
	crashed := s.executing(noon, RunOptions{})
	b.create(noon, RunOptions{Queue: other.Name, NoDelivery: true}) // of a queue without a limit
	b.wantScan("needing dispatch", b.storage.ListRunsNeedingDispatch, s.bounded(later), waiting, crashed)
	b.wantScan("no queue is bounded", b.storage.ListRunsNeedingDispatch, b.due(later))
}

// A caller must not have to read the pages of a full partition to get to another one.
func queueScanBlocked(t *testing.T, b *bundle) {
	s := b.limited(1)
	s.executing(noon, RunOptions{ConcurrencyKey: "blocked"})
	backlog := s.waitingRuns(12, noon.Add(-time.Hour), RunOptions{ConcurrencyKey: "blocked"})
	free := s.waiting(noon, RunOptions{ConcurrencyKey: "free"})
	unlimited := b.create(noon, RunOptions{Queue: "another"})
	at := noon.Add(30 * time.Second)
	for _, limit := range []int{1, 3, 100} {
		q := s.bounded(at)
		q.Limit = limit
		b.wantScan("needing dispatch", b.storage.ListRunsNeedingDispatch, q, free)
		b.wantScan("runnable", b.storage.ListRunnableRuns, q, free, unlimited)
	}
	s.wantFull("the backlog", backlog[0], at)
	s.won("reserve beside a full partition", s.reserve(free, at))
}

func queueScanOrder(t *testing.T, b *bundle) {
	var order []*runlane.Run
	for i, o := range []RunOptions{
		{RunAt: noon.Add(time.Minute)},
		{RunAt: noon.Add(time.Second)},
		{},
		{RunAt: noon.Add(time.Millisecond)},
	} {
		o.ConcurrencyKey = "customer:7"
		order = append(order, b.limited(3).waiting(noon.Add(-time.Duration(i)), o))
	}
	order = []*runlane.Run{order[2], order[3], order[1], order[0]}
	at := noon.Add(time.Hour)
	b.wantScanOrder("room for all", b.storage.ListRunsNeedingDispatch, b.limited(10).bounded(at), order...)
	b.eventually(func() string { // a storage may return more than can have a slot, but in this order
		got := refIDs(b.scanAll(b.storage.ListRunsNeedingDispatch, b.limited(1).bounded(at)))
		var want []runlane.RunID
		for _, run := range order[:max(1, min(len(got), len(order)))] {
			want = append(want, run.ID)
		}
		return difference(want, got)
	})
}

// A step of priority counts as ten minutes. A run that is not due is ahead of none.
func queueScanPriority(_ *testing.T, b *bundle) {
	s, at := b.limited(1), noon.Add(3*time.Hour)
	lowest := s.waiting(at.Add(-161*time.Minute), RunOptions{Priority: -8})
	highest := s.waiting(at, RunOptions{Priority: 8})
	low := s.waiting(at.Add(-159*time.Minute), RunOptions{Priority: -8})
	normal := s.waiting(at.Add(-time.Hour), RunOptions{})
	planned := s.waiting(at, RunOptions{Priority: 8, RunAt: at.Add(time.Minute)})
	order := []*runlane.Run{lowest, highest, low, normal}
	roomy := b.limited(10).bounded(at)
	b.wantScanOrder("needing dispatch", b.storage.ListRunsNeedingDispatch, roomy, order...)
	b.wantScanOrder("runnable", b.storage.ListRunnableRuns, roomy, order...)
	key := ""
	for _, next := range order {
		q := s.bounded(at)
		q.ConcurrencyKey, q.Limit = &key, 1
		b.wantScan("offered", b.storage.ListRunsNeedingDispatch, q, next)
		executing := s.won("claim", s.take(s.won("reserve", s.reserve(next, at)), at, false))
		s.commit(executing, at, Succeeded(executing, nil))
	}
	b.wantScan("when it is due", b.storage.ListRunsNeedingDispatch, s.bounded(at.Add(time.Hour)), planned)
}

func queueScanRunnable(_ *testing.T, b *bundle) {
	s := b.limited(2)
	end := noon.Add(time.Minute)
	crashed := s.executing(noon, RunOptions{})
	reserved := s.won("reserve", s.reserve(s.waiting(noon, RunOptions{}), noon))
	waiting := s.waiting(noon, RunOptions{})
	b.wantScan("full: who has a slot", b.storage.ListRunnableRuns, s.bounded(end.Add(-time.Millisecond)), reserved)
	b.wantScan("full, when a lease is over", b.storage.ListRunnableRuns, s.bounded(end), reserved, crashed)
	b.wantScan("room for one more", b.storage.ListRunnableRuns, s.under(3).bounded(end), reserved, crashed, waiting)
	b.wantScan("no limit", b.storage.ListRunnableRuns, b.due(end), reserved, crashed, waiting)
	s.commit(crashed, noon, Succeeded(crashed, nil))
	b.wantScan("a slot was freed", b.storage.ListRunnableRuns, s.bounded(end), reserved, waiting)
}

func queueScanFilters(t *testing.T, b *bundle) {
	s := b.limited(1)
	other := runlane.Queue{Name: "another", Concurrency: 2}
	mine, theirs := s.waiting(noon, RunOptions{}), s.waiting(noon, RunOptions{Queue: other.Name})
	for _, c := range []struct {
		queues  []runlane.QueueName
		bounded []runlane.Queue
		want    []*runlane.Run
	}{
		{nil, []runlane.Queue{{Name: Queue, Concurrency: 1}, other}, []*runlane.Run{mine, theirs}},
		{nil, []runlane.Queue{other}, []*runlane.Run{theirs}},
		{[]runlane.QueueName{Queue}, []runlane.Queue{{Name: Queue, Concurrency: 1}, other}, []*runlane.Run{mine}},
		{[]runlane.QueueName{Queue}, []runlane.Queue{other}, nil},
	} {
		q := b.due(noon)
		q.Queues, q.Bounded = c.queues, c.bounded
		b.wantScan("filtered", b.storage.ListRunsNeedingDispatch, q, c.want...)
	}
	q := s.bounded(noon, other)
	q.Environment = b.env + "-elsewhere"
	if got := b.scanAll(b.storage.ListRunsNeedingDispatch, q); len(got) != 0 {
		t.Errorf("another environment: found %v", got)
	}
}

func queueScanReference(_ *testing.T, b *bundle) {
	s := b.limited(1)
	run := s.waiting(noon, RunOptions{ConcurrencyKey: "customer:7", RunAt: noon.Add(time.Second)})
	want := lane.RunRef{
		RunKey:         b.key(run.ID),
		Queue:          Queue,
		ConcurrencyKey: "customer:7",
		Status:         runlane.StatusQueued,
		AvailableAt:    noon.Add(time.Second),
		Sequence:       run.EventSequence,
	}
	b.eventually(func() string {
		return difference(
			[]lane.RunRef{want},
			b.scanAll(b.storage.ListRunsNeedingDispatch, s.bounded(noon.Add(time.Hour))),
		)
	})
}

// docs/internals/contract.md, Pages and cursors.
func queueScanPages(t *testing.T, b *bundle) {
	s := b.limited(1)
	var want []*runlane.Run
	for _, key := range []string{"a", "b", "c", "d", "e"} {
		want = append(
			want,
			s.waiting(noon.Add(time.Duration(len(want)%2)*time.Second), RunOptions{ConcurrencyKey: key}),
		)
	}
	q := s.bounded(noon.Add(time.Minute))
	q.Limit = 2
	b.wantScan("needing dispatch, two a page", b.storage.ListRunsNeedingDispatch, q, want...)

	page := must(b.storage.ListRunsNeedingDispatch(b.ctx(), q))(t)
	if page.Next == "" {
		t.Fatal("a page of two of five runs has no cursor")
	}
	foreign := *q
	foreign.After, foreign.Environment = page.Next, b.env+"-elsewhere"
	_, err := b.storage.ListRunsNeedingDispatch(b.ctx(), &foreign)
	wantError(t, err, runlane.ErrValidationFailed)
	foreign = *q
	foreign.Limit = runlane.MaxPageLimit + 1
	_, err = b.storage.ListRunsNeedingDispatch(b.ctx(), &foreign)
	wantError(t, err, runlane.ErrValidationFailed)
}

func queueScanOthers(_ *testing.T, b *bundle) {
	s := b.limited(10)
	later := noon.Add(24 * time.Hour)
	s.executing(noon, RunOptions{})
	s.waiting(noon, RunOptions{})
	retrying := s.executing(noon, RunOptions{})
	s.commit(retrying, noon, Retried(retrying, noon.Add(time.Minute)))
	published := lane.InitialOutbox{Published: true}
	b.create(noon, RunOptions{Concurrency: 10, ReservedUntil: noon.Add(reservation), Outbox: published})
	free := b.create(noon, RunOptions{Queue: "another", Outbox: published})
	crashed := b.running(noon, noon.Add(time.Minute), RunOptions{Queue: "another"})
	b.wantScan("needing delivery", b.storage.ListRunsNeedingDelivery, s.bounded(later), crashed)
	b.wantScan("needing redelivery", b.storage.ListRunsNeedingRedelivery, s.bounded(later), free)
}

// What waits for a slot has no wakeup on its way that could be late: it is needed at once.
func queueScanUnbounded(_ *testing.T, b *bundle) {
	s := b.limited(10)
	end := noon.Add(reservation)
	waiting, planned := s.waiting(noon, RunOptions{}), s.waiting(noon, RunOptions{RunAt: end})
	over := b.create(noon, RunOptions{Concurrency: 10, ReservedUntil: end, Outbox: lane.InitialOutbox{Published: true}})
	retrying := s.executing(noon, RunOptions{})
	retrying = s.commit(retrying, noon, Retried(retrying, end))
	redelivery, delivery := b.storage.ListRunsNeedingRedelivery, b.storage.ListRunsNeedingDelivery
	b.wantScan("needing redelivery at once", redelivery, b.due(noon), waiting)
	b.wantScan("needing redelivery, a millisecond early", redelivery, b.due(end.Add(-time.Millisecond)), waiting)
	b.wantScan("needing delivery, a millisecond early", delivery, b.due(end.Add(-time.Millisecond)))
	b.wantScan("needing redelivery, at the millisecond", redelivery, b.due(end), waiting, planned, over)
	b.wantScan("needing delivery, at the millisecond", delivery, b.due(end), retrying)
	b.deliver(waiting, end, end, lane.InitialOutbox{})
	b.wantScan("after the request", redelivery, b.due(end), planned, over)
}

// docs/internals/design.md, Delivery: what was given up waits for the operator, in whatever state.
func queueScanDeadLetter(_ *testing.T, b *bundle) {
	s := b.limited(10)
	due := noon.Add(time.Hour)
	for _, runAt := range []time.Time{{}, due} {
		run := b.append(b.Creation(b.t, noon, RunOptions{RunAt: runAt}))
		rows := b.outboxOf(due, run.Outbox[0].ID)
		if len(rows) != 1 {
			b.t.Fatalf("%d rows are due, want 1", len(rows))
		}
		b.giveUp(rows[0].OutboxRef, 1, due)
	}
	for _, list := range []scan{b.storage.ListRunsNeedingDispatch, b.storage.ListRunsNeedingDelivery} {
		b.wantScan("an hour after the limit came", list, s.bounded(due.Add(time.Hour)))
	}
}

// docs/internals/design.md, Delivery: a bounded run without a live reservation has no row that is due.
func queueRows(t *testing.T, b *bundle) {
	s := b.limited(10)
	end := noon.Add(reservation)
	pending := b.append(b.Creation(t, noon, RunOptions{Concurrency: 10, ReservedUntil: end})).Outbox[0]
	failed := b.append(b.Creation(t, noon, RunOptions{
		Concurrency: 10, ReservedUntil: end, Outbox: lane.InitialOutbox{ClaimUntil: noon.Add(claimTime)},
	})).Outbox[0]
	b.markFailure(failed.OutboxRef, 1, noon, noon.Add(time.Second))
	s.waiting(noon, RunOptions{})

	ids := []string{pending.ID, failed.ID}
	slices.Sort(ids)
	equal(t, "rows claimed by their ids when the reservation is over", 0, len(b.outboxOf(end, ids...)))
	for range 3 { // also if the storage reads them again
		equal(t, "rows claimed when the reservation is over", 0, len(b.outbox(end)))
	}
	b.wantDue("rows while the reservation lives", end.Add(-time.Millisecond), pending.Wakeup.RunID, failed.Wakeup.RunID)
	equal(t, "rows under an expired claim when the reservation is over", 0, len(b.outboxOf(end.Add(time.Hour), ids...)))
}
