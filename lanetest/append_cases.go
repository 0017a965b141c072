package lanetest

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// docs/internals/contract.md, Append.
func appendCases() []storageCase {
	return []storageCase{
		{"AReaderOfTheRunFindsAllOfItsHistory", needsBoth(needsHistory, needsOutbox), appendSeenWhole},
		{"WritesRunEventsAndOutboxTogether", needsBoth(needsHistory, needsOutbox), appendTogether},
		{
			"ConflictWritesNothingAtAll",
			needsBoth(needsHistory, needsBoth(needsIdempotency, needsSingleton)),
			appendConflictWritesNothing,
		},
		{"StaleSequenceIsReportedBeforeAnythingElse", needsLeases, appendStaleFirst},
		{"ExistingRunIDOnCreationIsASequenceConflict", nil, appendExistingID},
		{"LeaseTokenIsJudgedAfterTheSequence", needsLeases, appendTokenAfterSequence},
		{"MalformedCommandIsAContractViolationAndWritesNothing", nil, appendMalformed},
		{"ReturnedEventsAreExactlyThoseListedLater", needsBoth(needsHistory, needsLeases), appendReturnsListed},
		{"WithoutRecordsTheCommitIsTheSame", needsBoth(needsHistory, needsOutbox), appendWithoutRecords},
		{"SeveralEventsAreOneCommit", needsHistory, appendSeveral},
		{
			"AWholeHistoryIsOneCommit",
			needsBoth(needsBoth(needsHistory, needsLeases), needsBoth(needsOutbox, needsIdempotency)),
			appendWhole,
		},
		{"AHundredEventsFitOneCommit", needsBoth(needsHistory, needsLeases), appendHundred},
		{"ConcurrentAppendsHaveOneWinner", nil, appendRace},
		{"ProjectionWithoutPayloadKeepsTheStoredOne", nil, appendWithoutPayload},
		{"UnknownEventsAreListedAsTheyAre", needsHistory, appendUnknown},
		{"TimesAreWholeMillisecondsInUTC", needsBoth(needsHistory, needsLeases), appendMillis},
	}
}

func appendTogether(t *testing.T, b *bundle) {
	c := b.Creation(t, noon, RunOptions{
		ConcurrencyKey: "customer:7",
		Priority:       -3,
		Meta:           map[string]string{"by": "test"},
		TraceCarrier:   map[string]string{"traceparent": "00-1"},
		Source:         runlane.Source{Type: runlane.SourceRerun, RunID: "run_before", CreatedAt: noon.Add(-time.Hour)},
	})
	commit := b.append(c)
	equal(t, "run of the commit", c.Projected, commit.Run)
	equal(t, "run read", c.Projected, b.get(c.Projected.ID))
	history := b.history(c.Key())
	if len(history) != 2 || history[0].Type() != runlane.EventCreated ||
		history[1].Type() != runlane.EventDeliveryRequested {
		t.Fatalf("history is %v", history)
	}
	equal(t, "priority in the history", -3, history[0].Body.(*runlane.RunCreated).Priority)
	if len(commit.Outbox) != 1 || commit.Outbox[0].ID == "" || commit.Outbox[0].Status != lane.OutboxPending {
		t.Fatalf("outbox of the commit is %+v, want one pending row", commit.Outbox)
	}
	claimed := b.outboxOf(noon, commit.Outbox[0].ID)
	if len(claimed) != 1 || claimed[0].Wakeup.RunID != c.Projected.ID {
		t.Fatalf("claimed %+v, want the row of the commit", claimed)
	}
}

// The idempotency key is free and would be taken, the singleton key is held: nothing of the creation may stay.
func appendConflictWritesNothing(t *testing.T, b *bundle) {
	holder := b.create(noon, RunOptions{SingletonKey: "one"})
	loser := b.Creation(t, noon, RunOptions{
		SingletonKey:   "one",
		IdempotencyKey: "free",
		Retention:      runlane.KeyRetention{TTL: time.Hour},
	})
	_, err := b.storage.AppendRunEvents(b.ctx(), loser)
	wantConflict(t, err, runlane.ConflictSingletonKey, holder.ID)

	_, err = b.storage.GetRun(b.ctx(), loser.Key())
	wantError(t, err, runlane.ErrRunNotFound)
	_, err = b.storage.GetRunByIdempotencyKey(b.ctx(), lane.OwnerKey{Environment: b.env, TaskID: TaskID, Key: "free"})
	wantError(t, err, runlane.ErrRunNotFound)
	if b.h.Capabilities.PersistsOutbox {
		for _, m := range b.outbox(noon) {
			if m.Wakeup.RunID == loser.Projected.ID {
				t.Fatal("the refused creation left an outbox row")
			}
		}
	}
	again := b.create(noon, RunOptions{
		ID:             loser.Projected.ID,
		IdempotencyKey: "free",
		Retention:      runlane.KeyRetention{TTL: time.Hour},
	})
	if n := len(b.history(b.key(again.ID))); n != 2 {
		t.Fatalf("history has %d events, want the 2 of the second creation", n)
	}
}

func appendStaleFirst(t *testing.T, b *bundle) {
	run := b.running(noon, noon.Add(time.Minute), RunOptions{})
	stale := *run
	stale.EventSequence--
	for name, change := range map[string]func(c *lane.AppendCommand){
		"stale":                          func(*lane.AppendCommand) {},
		"stale and without events":       func(c *lane.AppendCommand) { c.Events = nil },
		"stale and a wrong projection":   func(c *lane.AppendCommand) { c.Projected.EventSequence = 99 },
		"stale and an unknown status":    func(c *lane.AppendCommand) { c.Projected.Status = "odd" },
		"stale and a wrong lease token":  func(c *lane.AppendCommand) { c.LeaseToken = "not the owner's" },
		"stale and another run's events": func(c *lane.AppendCommand) { c.Events[0].RunID = "run_other" },
		"ahead": func(c *lane.AppendCommand) {
			c.ExpectedSequence += 5
			c.Projected.EventSequence += 5
		},
		"of a run that does not exist": func(c *lane.AppendCommand) {
			c.Projected.ID = "run_absent"
			c.Events[0].RunID = "run_absent"
		},
	} {
		c := b.Append(t, &stale, noon.Add(time.Second), &runlane.RunCancellationRequested{})
		change(c)
		if _, err := b.storage.AppendRunEvents(b.ctx(), c); !isConflict(err, runlane.ConflictEventSequence) {
			t.Errorf("%s: error is %v, want conflict %q", name, err, runlane.ConflictEventSequence)
		}
	}
	equal(t, "run after stale commands", run, b.get(run.ID))
}

func appendExistingID(t *testing.T, b *bundle) {
	o := RunOptions{ID: "run_given"}
	if b.h.Capabilities.EnforcesIdempotency {
		o.IdempotencyKey = "its own"
	}
	run := b.create(noon, o)
	for name, payload := range map[string]string{"the same": `{}`, "another payload": `{"x":1}`} {
		o.Payload = []byte(payload)
		if _, err := b.storage.AppendRunEvents(
			b.ctx(),
			b.Creation(t, noon, o),
		); !isConflict(err, runlane.ConflictEventSequence) {
			t.Errorf("%s: error is %v, want conflict %q", name, err, runlane.ConflictEventSequence)
		}
	}
	equal(t, "run after the second creation", run, b.get(run.ID))
}

func appendTokenAfterSequence(t *testing.T, b *bundle) {
	queued := b.create(noon, RunOptions{})
	unowned := b.Append(t, queued, noon, Delivery(queued, noon, noon))
	unowned.LeaseToken = "unknown"
	_, err := b.storage.AppendRunEvents(b.ctx(), unowned)
	wantConflict(t, err, runlane.ConflictLeaseOwnership, queued.ID)

	run := b.running(noon, noon.Add(time.Minute), RunOptions{})
	c := b.Append(t, run, noon.Add(time.Second), Succeeded(run, nil))
	c.LeaseToken = "another's"
	_, err = b.storage.AppendRunEvents(b.ctx(), c)
	wantConflict(t, err, runlane.ConflictLeaseOwnership, run.ID)
	equal(t, "run after a foreign write", run, b.get(run.ID))

	c.LeaseToken, c.Projected.EventSequence = "another's", 77 // malformed too: ownership is judged first
	_, err = b.storage.AppendRunEvents(b.ctx(), c)
	wantConflict(t, err, runlane.ConflictLeaseOwnership, run.ID)

	c = b.Append(t, run, noon.Add(time.Second), Succeeded(run, nil))
	c.LeaseToken = run.Lease.Token
	b.append(c)
}

func appendMalformed(t *testing.T, b *bundle) {
	run := b.create(noon, RunOptions{})
	for name, change := range map[string]func(c *lane.AppendCommand){
		"no projection":              func(c *lane.AppendCommand) { c.Projected = nil },
		"no events":                  func(c *lane.AppendCommand) { c.Events = nil },
		"projected sequence too low": func(c *lane.AppendCommand) { c.Projected.EventSequence-- },
		"projected sequence ahead":   func(c *lane.AppendCommand) { c.Projected.EventSequence++ },
		"unknown status":             func(c *lane.AppendCommand) { c.Projected.Status = "odd" },
		"event of another run":       func(c *lane.AppendCommand) { c.Events[0].RunID = "run_other" },
		"event of another environment": func(c *lane.AppendCommand) {
			c.Events[0].Environment = "elsewhere"
		},
		"event without a body": func(c *lane.AppendCommand) { c.Events[0].Body = nil },
		"event of unknown type": func(c *lane.AppendCommand) {
			c.Events[0].Body = &runlane.UnknownEvent{Type: "run.dreamt"}
		},
		"a second creation": func(c *lane.AppendCommand) {
			c.Events[0].Body = &runlane.RunCreated{TaskID: TaskID, Queue: Queue}
		},
		"delivery for another queue": func(c *lane.AppendCommand) {
			c.Events[0].Body.(*runlane.RunDeliveryRequested).Delivery.Queue = "elsewhere"
		},
		"policy of another queue": func(c *lane.AppendCommand) { c.Queue.Name = "elsewhere" },
		"too many events": func(c *lane.AppendCommand) {
			c.Events = slices.Repeat(c.Events, lane.MaxCommitEvents+1)
			c.Projected.EventSequence = c.ExpectedSequence + int64(len(c.Events))
		},
	} {
		c := b.Append(t, run, noon.Add(time.Second), Delivery(run, noon.Add(time.Second), noon.Add(time.Second)))
		change(c)
		if _, err := b.storage.AppendRunEvents(b.ctx(), c); runlane.CodeOf(err) != runlane.ErrContractViolation {
			t.Errorf("%s: error is %v, want %q", name, err, runlane.ErrContractViolation)
		}
	}
	equal(t, "run after malformed commands", run, b.get(run.ID))

	c := b.Creation(t, noon, RunOptions{NoDelivery: true})
	c.Events[0].Body = Delivery(c.Projected, noon, noon)
	_, err := b.storage.AppendRunEvents(b.ctx(), c)
	wantError(t, err, runlane.ErrContractViolation)
	_, err = b.storage.GetRun(b.ctx(), c.Key())
	wantError(t, err, runlane.ErrRunNotFound)
}

func appendReturnsListed(t *testing.T, b *bundle) {
	var returned []runlane.EventRecord
	commit := b.append(b.Creation(t, noon, RunOptions{Meta: map[string]string{"k": "v"}, Payload: []byte(`{"a": 1}`)}))
	returned = append(returned, commit.Events...)
	acquired := must(b.storage.ClaimRunLease(
		b.ctx(),
		b.Claim(t, commit.Run, noon, noon.Add(time.Minute), b.NewToken()),
	))(t)
	returned = append(returned, acquired.Commit.Events...)
	commit = must(b.storage.HeartbeatRunLease(
		b.ctx(),
		b.Heartbeat(t, acquired.Commit.Run, noon.Add(time.Second), noon.Add(2*time.Minute)),
	))(t)
	returned = append(returned, commit.Events...)
	c := b.Append(t, commit.Run, noon.Add(2*time.Second), Retried(commit.Run, noon.Add(time.Hour)))
	c.Events[0].Meta = map[string]string{"why": "it broke"}
	commit = b.append(c)
	returned = append(returned, commit.Events...)
	returned = append(
		returned,
		b.append(b.Append(t, commit.Run, noon.Add(3*time.Second), &runlane.RunCancelled{Reason: "enough"})).Events...,
	)

	equal(t, "listed events", returned, b.history(b.key(commit.Run.ID)))
	ids := map[string]bool{}
	for _, r := range returned {
		if ids[r.ID] {
			t.Fatalf("two events have the id %q", r.ID)
		}
		ids[r.ID] = true
	}
}

func appendSeveral(t *testing.T, b *bundle) {
	// created, claimed and started together: how an inline attempt begins.
	c := b.Creation(t, noon, RunOptions{NoDelivery: true})
	rest := b.Transition(t, c.Projected, noon, Claimed(b.NewToken(), noon.Add(time.Minute)), &runlane.RunStarted{
		Attempt: 1,
	})
	c.Events, c.Projected = append(c.Events, rest.Events...), rest.Projected
	commit := b.append(c)
	if commit.Run.EventSequence != 3 || commit.Run.Status != runlane.StatusRunning || len(commit.Events) != 3 ||
		len(commit.Outbox) != 0 {
		t.Fatalf("commit is %+v", commit)
	}
	equal(t, "listed events", commit.Events, b.history(c.Key()))
	_, err := b.storage.AppendRunEvents(b.ctx(), c)
	wantConflict(t, err, runlane.ConflictEventSequence, c.Projected.ID)
}

func appendHundred(t *testing.T, b *bundle) {
	run := b.running(noon, noon.Add(time.Minute), RunOptions{})
	bodies := make([]runlane.EventBody, lane.MaxCommitEvents)
	for i := range bodies {
		lease := run.Lease
		lease.ExpiresAt = noon.Add(time.Minute + time.Duration(i)*time.Second)
		bodies[i] = &runlane.RunLeaseHeartbeat{Lease: lease}
	}
	commit := b.append(b.Append(t, run, noon.Add(time.Second), bodies...))
	equal(t, "listed events", commit.Events, b.history(b.key(run.ID))[run.EventSequence:])
}

func appendRace(t *testing.T, b *bundle) {
	run := b.create(noon, RunOptions{})
	commands := make([]*lane.AppendCommand, callers)
	for i := range commands {
		at := noon.Add(time.Duration(i+1) * time.Second)
		commands[i] = b.Append(t, run, at, Delivery(run, at, at))
	}
	winners, others := race(callers, func(i int) (*lane.Commit, error) {
		return b.storage.AppendRunEvents(b.ctx(), commands[i])
	})
	if len(winners) != 1 {
		t.Fatalf("%d of %d commands at one sequence were committed", len(winners), callers)
	}
	for _, err := range others {
		wantConflict(t, err, runlane.ConflictEventSequence, run.ID)
	}
	equal(t, "run after the race", winners[0].Run, b.get(run.ID))
}

// Maintenance reads runs without their payloads and appends to them.
func appendWithoutPayload(t *testing.T, b *bundle) {
	payload := []byte(`{"keep": "me"}`)
	run := b.create(noon, RunOptions{Payload: payload})
	lean := must(b.storage.GetRuns(b.ctx(), &lane.RunsQuery{
		Environment:    b.env,
		IDs:            []runlane.RunID{run.ID},
		WithoutPayload: true,
	}))(t)
	if len(lean) != 1 || lean[0].Payload != nil {
		t.Fatalf("runs without payload: %+v", lean)
	}
	b.push(lean[0], noon.Add(time.Second), Delivery(lean[0], noon.Add(time.Second), noon.Add(time.Second)))
	if got := b.get(run.ID).Payload; string(got) != string(payload) {
		t.Fatalf("payload is %s, want %s", got, payload)
	}
}

// docs/internals/contract.md, Append: the answer may omit Run and Events but not Outbox, and the same data is written.
func appendWithoutRecords(t *testing.T, b *bundle) {
	c := b.Creation(t, noon, RunOptions{})
	c.WithoutRecords = true
	commit := must(b.storage.AppendRunEvents(b.ctx(), c))(t)
	b.remember(c.Projected)
	history := b.history(c.Key())
	if len(history) != len(c.Events) || len(commit.Outbox) != 1 || commit.Outbox[0].Wakeup.RunID != c.Projected.ID {
		t.Fatalf(
			"%d events were written and %d rows returned, want %d and 1",
			len(history),
			len(commit.Outbox),
			len(c.Events),
		)
	}
	if commit.Run != nil {
		equal(t, "run returned all the same", b.get(c.Projected.ID), commit.Run)
	}
	if commit.Events != nil {
		equal(t, "events returned all the same", history, commit.Events)
	}
}

// race calls f from n goroutines at once.
func race[T any](n int, f func(i int) (T, error)) (won []T, lost []error) {
	start := make(chan struct{})
	var mu sync.Mutex
	var callers sync.WaitGroup
	for i := range n {
		callers.Go(func() {
			<-start
			v, err := f(i)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				lost = append(lost, err)
			} else {
				won = append(won, v)
			}
		})
	}
	close(start)
	callers.Wait()
	return won, lost
}
