package lanetest

import (
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// docs/internals/design.md, Queues; docs/internals/contract.md, Bounded queues; docs/internals/layout.md, Slots.
func queueCases() []storageCase {
	return []storageCase{
		{"ReservingTakesASlotAppendsAndMakesTheRow", needsQueues, queueReserve},
		{"ReservingTellsWhichRaceWasLost", needsQueues, queueReserveLost},
		{"AMalformedReservationIsAContractViolationAndWritesNothing", needsQueues, queueMalformed},
		{"RacingReserversAndClaimersNeverExceedTheLimit", needsQueues, queueRace},
		{"RacingCreationsNeverExceedTheLimit", needsQueues, queueCreationRace},
		{"EachConcurrencyKeyQueueAndEnvironmentCountsAlone", needsQueues, queuePartitions},
		{"ACreationTakesASlotOrWritesNothing", needsQueues, queueCreation},
		{"ACreationThatRunsAtOnceTakesASlotOrWritesNothing", needsQueues, queueRunNow},
		{
			"KeysAreJudgedBeforeAFullQueue",
			needsBoth(needsQueues, needsBoth(needsIdempotency, needsSingleton)),
			queueKeysFirst,
		},
		{"AClaimNeedsItsReservationOrASlot", needsQueues, queueClaim},
		{"AnExpiredReservationIsAnothersToTake", needsQueues, queueTakenOver},
		{"AReservationIsGivenBackOnce", needsQueues, queueGivenBack},
		{"ARunReusesItsOwnSlotAfterACrash", needsQueues, queueCrash},
		{"ASlotIsNeverFreedByTimeWhileItsRunRuns", needsQueues, queueHeld},
		{"EveryCommitThatEndsTheRunningStateFreesTheSlot", needsQueues, queueFreed},
		{"HeartbeatsAndCancellationRequestsKeepTheSlot", needsQueues, queueHeartbeat},
		{"Hazard20_CancellingNeverFailsForASlotThatWasTakenOver", needsQueues, queueCancelled},
		{"ALoweredAndRaisedLimitHoldsUnderRacingReservers", needsQueues, queueLimits},
		{"AQueueThatBecomesBoundedCountsOnlySlots", needsQueues, queueBecomesBounded},
		{"AQueueThatBecomesUnboundedStopsAskingForSlots", needsQueues, queueBecomesUnbounded},
	}
}

// Slots are taken by claims and come with deliveries.
func needsQueues(c lane.StorageCapabilities) bool {
	return c.EnforcesQueueConcurrency && c.LeasesRuns && c.PersistsOutbox && c.ReadsRunHistory
}

func queueReserve(t *testing.T, b *bundle) {
	s := b.limited(1)
	waiting := s.waiting(noon, RunOptions{ConcurrencyKey: "customer:7"})
	c := b.Reserve(t, waiting, noon, noon.Add(reservation), 1)
	c.Outbox = lane.InitialOutbox{ClaimUntil: noon.Add(claimTime)}
	got := must(b.storage.ReserveRunDispatch(b.ctx(), c))(t)
	run := s.won("reserve", got)
	equal(t, "run of the commit", c.Projected, run)
	equal(t, "run read", c.Projected, b.get(run.ID))
	if !run.DispatchedAt.Equal(noon) || !run.DispatchExpiresAt.Equal(noon.Add(reservation)) {
		t.Fatalf("reserved at %s until %s", run.DispatchedAt, run.DispatchExpiresAt)
	}
	equal(t, "events", got.Commit.Events, b.history(b.key(run.ID))[waiting.EventSequence:])
	if len(got.Commit.Outbox) != 1 || got.Commit.Outbox[0].ClaimToken == "" ||
		got.Commit.Outbox[0].GroupKey != "customer:7" {
		t.Fatalf("rows of the commit: %+v", got.Commit.Outbox)
	}
	if row := b.row(run.ID); row == nil || row.ID != got.Commit.Outbox[0].ID || row.Status != lane.OutboxClaimed {
		t.Fatalf("row read: %+v", row)
	}
	b.mark(t, got.Commit.Outbox[0].OutboxRef, noon)
	equal(t, "holders", runIDs(run), s.holders(run))

	running := s.won("claim", s.take(run, noon.Add(time.Second), false))
	if !running.DispatchedAt.IsZero() || !running.DispatchExpiresAt.IsZero() {
		t.Fatalf("a running run is still reserved from %s to %s", running.DispatchedAt, running.DispatchExpiresAt)
	}
	equal(t, "holders while it runs", runIDs(run), s.holders(run))
	s.commit(running, noon.Add(2*time.Second), Succeeded(running, nil))
	equal(t, "holders afterwards", nil, s.holders(run))
}

// Every status that may be reserved is so from its exact millisecond on.
func queueReserveLost(t *testing.T, b *bundle) {
	s := b.limited(10)
	due := noon.Add(time.Hour)
	early := func(what string, run *runlane.Run) {
		t.Helper()
		c := b.Reserve(t, run, due, due.Add(reservation), s.limit)
		c.At = due.Add(-time.Millisecond)
		s.wantOutcome(
			what+", a millisecond early",
			s.checked(b.storage.ReserveRunDispatch(b.ctx(), c)),
			lane.LostEligibility,
		)
		equal(t, what+": run after a reservation too early", run, b.get(run.ID))
		s.won(what+", at the millisecond", s.reserve(run, due))
	}
	crashed := s.won("claim", s.take(s.waiting(noon, RunOptions{}), due.Add(-time.Minute), true))
	early("running run whose lease ends", crashed)
	retrying := s.executing(noon, RunOptions{})
	early("retrying run", s.commit(retrying, noon, Retried(retrying, due)))
	released := s.executing(noon, RunOptions{})
	early("released run", s.commit(released, noon, Released(released, due)))
	early("queued run for later", s.waiting(noon, RunOptions{RunAt: due}))
	early("reserved run", s.won("reserve", s.reserveUntil(s.waiting(noon, RunOptions{}), noon, due)))

	cancelling := s.executing(noon, RunOptions{})
	cancelling = s.commit(cancelling, noon, &runlane.RunCancellationRequested{})
	forged := *cancelling
	forged.Status, forged.Lease = runlane.StatusQueued, runlane.Lease{} // core never projects a delivery of such a run
	s.wantOutcome("run asked to cancel", s.reserve(&forged, due), lane.LostEligibility)
	equal(t, "run asked to cancel", cancelling, b.get(cancelling.ID))

	stale := s.waiting(noon, RunOptions{})
	moved := s.won("reserve", s.reserve(stale, noon))
	s.wantOutcome("stale sequence", s.reserve(stale, due), lane.LostSequence)
	equal(t, "run after a stale reservation", moved, b.get(stale.ID))
	absent := *stale
	absent.ID = "run_absent"
	s.wantOutcome("run that does not exist", s.reserve(&absent, due), lane.LostSequence)
}

func queueMalformed(t *testing.T, b *bundle) {
	s := b.limited(1)
	run := s.waiting(noon, RunOptions{})
	for name, change := range map[string]func(c *lane.ReserveCommand){
		"no projection":       func(c *lane.ReserveCommand) { c.Projected = nil },
		"no events":           func(c *lane.ReserveCommand) { c.Events = nil },
		"wrong sequence":      func(c *lane.ReserveCommand) { c.Projected.EventSequence++ },
		"another run's event": func(c *lane.ReserveCommand) { c.Events[0].RunID = "run_other" },
		"no limit":            func(c *lane.ReserveCommand) { c.Queue.Concurrency = 0 },
		"no reservation": func(c *lane.ReserveCommand) {
			c.Transition = b.Transition(t, run, noon, Delivery(run, noon, noon))
			c.Queue.Concurrency = 1
		},
	} {
		c := b.Reserve(t, run, noon, noon.Add(reservation), 1)
		change(c)
		if got, err := b.storage.ReserveRunDispatch(b.ctx(), c); runlane.CodeOf(err) != runlane.ErrContractViolation {
			t.Errorf("%s: outcome %v, error %v, want %q", name, got, err, runlane.ErrContractViolation)
		}
	}
	equal(t, "run after malformed reservations", run, b.get(run.ID))
	equal(t, "holders after malformed reservations", nil, s.holders(run))
}

func queueRace(t *testing.T, b *bundle) {
	const racers, limit = callers, 3
	s := b.limited(limit)
	runs := s.waitingRuns(racers, noon, RunOptions{})
	winners := s.raceForSlots(t, runs, noon)
	if len(winners) == 0 || len(winners) > limit {
		t.Fatalf("%d of %d racers got a slot, the limit is %d", len(winners), racers, limit)
	}
	rest := without(runs, winners)
	winners = append(winners, s.fill(rest, noon)...)
	if len(winners) != limit {
		t.Fatalf("%d runs have a slot when none is left, want %d", len(winners), limit)
	}
	equal(t, "holders", runIDs(winners...), s.holders(runs[0]))
	s.wantFull("after the race", without(runs, winners)[0], noon)
}

func queueCreationRace(t *testing.T, b *bundle) {
	const racers, limit = callers, 3
	s := b.limited(limit)
	commands := make([]*lane.AppendCommand, racers)
	for i := range commands {
		commands[i] = b.Creation(t, noon, RunOptions{Concurrency: limit, ReservedUntil: noon.Add(reservation)})
	}
	won, lost := race(racers, func(i int) (*lane.Commit, error) {
		return b.storage.AppendRunEvents(b.ctx(), commands[i])
	})
	if len(won) == 0 || len(won) > limit {
		t.Fatalf("%d of %d creations got a slot, the limit is %d", len(won), racers, limit)
	}
	var made []*runlane.Run
	for _, commit := range won {
		b.remember(commit.Run)
		made = append(made, commit.Run)
	}
	for _, err := range lost {
		wantConflict(t, err, runlane.ConflictQueueCapacity, "")
	}
	for _, c := range commands {
		if len(without([]*runlane.Run{c.Projected}, made)) == 1 {
			_, err := b.storage.GetRun(b.ctx(), c.Key())
			wantError(t, err, runlane.ErrRunNotFound)
		}
	}
	equal(t, "holders", runIDs(made...), s.holders(made[0]))
}

func queuePartitions(t *testing.T, b *bundle) {
	s := b.limited(1)
	for _, o := range []RunOptions{
		{}, {ConcurrencyKey: "a"}, {ConcurrencyKey: "a:b"}, {ConcurrencyKey: "b"}, {Queue: "another"},
		{Queue: "another", ConcurrencyKey: "a"},
		{Environment: b.env + "-elsewhere"},
	} {
		run := s.won("the first of its partition", s.reserve(s.waiting(noon, o), noon))
		second := s.waiting(noon, o)
		s.wantOutcome("the second of its partition", s.reserve(second, noon), lane.LostCapacity)
		if o.Environment == "" {
			equal(t, "holders", runIDs(run), s.holders(second))
		}
	}
}

func queueCreation(t *testing.T, b *bundle) {
	s := b.limited(1)
	initial := lane.InitialOutbox{ClaimUntil: noon.Add(claimTime)}
	first := b.append(b.Creation(t, noon, RunOptions{
		Concurrency:   1,
		ReservedUntil: noon.Add(reservation),
		Outbox:        initial,
	}))
	if len(first.Outbox) != 1 || first.Outbox[0].ClaimToken == "" ||
		!first.Run.DispatchExpiresAt.Equal(noon.Add(reservation)) {
		t.Fatalf("a creation with a reservation: %+v", first)
	}
	equal(t, "holders", runIDs(first.Run), s.holders(first.Run))

	o := RunOptions{ID: b.NewRunID(), Concurrency: 1, ReservedUntil: noon.Add(reservation)}
	if c := b.h.Capabilities; c.EnforcesIdempotency && c.EnforcesSingleton {
		o.IdempotencyKey, o.SingletonKey = "key", "key"
	}
	full := b.Creation(t, noon, o)
	_, err := b.storage.AppendRunEvents(b.ctx(), full)
	wantConflict(t, err, runlane.ConflictQueueCapacity, "")
	_, err = b.storage.GetRun(b.ctx(), full.Key())
	wantError(t, err, runlane.ErrRunNotFound)

	// The same run without the reservation: it took no keys before, and waits without a row.
	o.ReservedUntil = time.Time{}
	waiting := s.waiting(noon, o)
	if row := b.row(waiting.ID); row != nil {
		t.Fatalf("a run that waits for a slot has the row %+v", row)
	}
	equal(t, "rows due", 0, len(b.outbox(noon)))
	s.wantFull("beside a reserved run", waiting, noon)
	s.won("claim", s.take(first.Run, noon, false))
}

// docs/internals/design.md, Idempotency, singleton: running at once leaves nothing behind where the queue is full.
func queueRunNow(t *testing.T, b *bundle) {
	s := b.limited(1)
	runNow := func() *lane.AppendCommand {
		c := b.Creation(t, noon, RunOptions{NoDelivery: true, Concurrency: 1})
		rest := b.Transition(t, c.Projected, noon, Claimed(b.NewToken(), noon.Add(time.Minute)), &runlane.RunStarted{
			Attempt: 1,
		})
		c.Events, c.Projected = append(c.Events, rest.Events...), rest.Projected
		return c
	}
	run := b.append(runNow()).Run
	equal(t, "holders", runIDs(run), s.holders(run))
	full := runNow()
	_, err := b.storage.AppendRunEvents(b.ctx(), full)
	wantConflict(t, err, runlane.ConflictQueueCapacity, "")
	_, err = b.storage.GetRun(b.ctx(), full.Key())
	wantError(t, err, runlane.ErrRunNotFound)

	s.wantFull("beside a run that ran at once", s.waiting(noon, RunOptions{}), noon.Add(24*time.Hour))
	s.commit(run, noon, Succeeded(run, nil))
	b.append(full)
}

func queueKeysFirst(t *testing.T, b *bundle) {
	o := RunOptions{
		Concurrency:    1,
		ReservedUntil:  noon.Add(reservation),
		IdempotencyKey: "key",
		Retention:      runlane.KeyRetention{WhileActive: true},
	}
	idempotent := b.create(noon, o)
	_, err := b.storage.AppendRunEvents(b.ctx(), b.Creation(t, noon, o))
	wantConflict(t, err, runlane.ConflictIdempotencyKey, idempotent.ID)

	o = RunOptions{Queue: "another", Concurrency: 1, ReservedUntil: noon.Add(reservation), SingletonKey: "key"}
	single := b.create(noon, o)
	_, err = b.storage.AppendRunEvents(b.ctx(), b.Creation(t, noon, o))
	wantConflict(t, err, runlane.ConflictSingletonKey, single.ID)
}

func queueClaim(t *testing.T, b *bundle) {
	s := b.limited(1)
	later := noon.Add(reservation)
	run := s.won("reserve", s.reserve(s.waiting(noon, RunOptions{}), noon))
	s.wantOutcome("claim at the end of the reservation", s.take(run, later, false), lane.LostReservation)
	equal(t, "run after a claim too late", run, b.get(run.ID))
	s.wantOutcome(
		"claim of a run that never had one",
		s.take(s.waiting(noon, RunOptions{}), noon, false),
		lane.LostReservation,
	)

	// A wakeup that comes too late finds the slot free: the run takes it again.
	run = s.won("late claim with a slot", s.take(run, later, true))
	other := s.waiting(noon, RunOptions{})
	s.wantFull("beside a run that took a slot with its claim", other, later.Add(24*time.Hour))
	s.commit(run, later, Succeeded(run, nil))

	// The slot that a claim may take is its own while the reservation lives.
	other = s.won("reserve", s.reserve(other, later))
	other = s.won("claim with a slot and a reservation", s.take(other, later.Add(time.Second), true))
	equal(t, "holders", runIDs(other), s.holders(other))
}
