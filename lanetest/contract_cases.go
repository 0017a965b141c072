package lanetest

import (
	"context"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// contractCases are rules of docs/internals/contract.md that hold for every storage, or for several of its methods.
func contractCases() []storageCase {
	return []storageCase{
		{
			"KeysAreRefusedWhereTheyAreNotEnforced",
			func(c lane.StorageCapabilities) bool { return !c.EnforcesIdempotency || !c.EnforcesSingleton },
			keysRefused,
		},
		{"EveryMethodAnswersAnEndedContext", nil, endedEverywhere},
		{"NothingIsSharedByStoragesWithoutLeasesEither", needsHistory, copiesOfHistory},
		{"HeartbeatsShareNothing", needsBoth(needsLeases, needsHistory), copiesOfHeartbeats},
		{"ReservationsShareNothing", needsQueues, copiesOfReservations},
		{"FailuresOfTheOutboxShareNothing", needsBoth(needsDeadLetters, needsHistory), copiesOfFailures},
		{"OwnersAreTheCallersOwnCopy", needsBoth(needsIdempotency, needsSingleton), copiesOfOwners},
		{"ManyRunsAreReadInOneCall", nil, readVeryMany},
		{"APageOfTheDefaultLimitHasFiftyRowsAtMost", needsHistory, pagingDefault},
		{"AClaimWithoutThePayloadKeepsTheStoredOne", needsLeases, claimWithoutPayload},
		{"AMalformedHeartbeatIsAContractViolationAndWritesNothing", needsLeases, heartbeatMalformed},
	}
}

// docs/internals/contract.md, Capabilities: a key that the storage does not enforce must be refused.
func keysRefused(t *testing.T, b *bundle) {
	for name, c := range map[string]struct {
		enforced bool
		options  RunOptions
	}{
		"idempotency": {
			b.h.Capabilities.EnforcesIdempotency,
			RunOptions{IdempotencyKey: "key", Retention: runlane.KeyRetention{TTL: time.Hour}},
		},
		"singleton": {b.h.Capabilities.EnforcesSingleton, RunOptions{SingletonKey: "key"}},
	} {
		if c.enforced {
			continue
		}
		command := b.Creation(t, noon, c.options)
		_, err := b.storage.AppendRunEvents(b.ctx(), command)
		if runlane.CodeOf(err) != runlane.ErrCapabilityUnsupported {
			t.Errorf("%s key: error is %v, want %q", name, err, runlane.ErrCapabilityUnsupported)
		}
		_, err = b.storage.GetRun(b.ctx(), command.Key())
		wantError(t, err, runlane.ErrRunNotFound)
	}
}

// docs/internals/contract.md, Errors.
func endedEverywhere(t *testing.T, b *bundle) {
	run := b.create(noon, RunOptions{})
	ctx, cancel := context.WithCancel(b.ctx())
	cancel()
	page := lane.PageQuery{Environment: b.env}
	due := &lane.DueQuery{PageQuery: page, At: noon}
	owner := lane.OwnerKey{Environment: b.env, TaskID: TaskID, Key: "key"}
	s, has := b.storage, b.h.Capabilities
	first := func(_ any, err error) error { return err }
	for method, call := range map[string]struct {
		promised bool
		call     func() error
	}{
		"GetRuns": {true, func() error {
			return first(s.GetRuns(ctx, &lane.RunsQuery{Environment: b.env, IDs: []runlane.RunID{run.ID}}))
		}},
		"InspectRun": {
			true,
			func() error { return first(s.InspectRun(ctx, &lane.InspectQuery{RunKey: b.key(run.ID)})) },
		},
		"ListRuns": {
			has.ReadsRunHistory,
			func() error { return first(s.ListRuns(ctx, &lane.RunQuery{PageQuery: page})) },
		},
		"ListRunEvents": {has.ReadsRunHistory, func() error {
			return first(s.ListRunEvents(ctx, &lane.EventQuery{PageQuery: page, RunID: run.ID}))
		}},
		"GetRunByIdempotencyKey": {
			has.EnforcesIdempotency,
			func() error { return first(s.GetRunByIdempotencyKey(ctx, owner)) },
		},
		"ResetIdempotencyKey": {has.EnforcesIdempotency, func() error { return s.ResetIdempotencyKey(ctx, owner) }},
		"GetRunBySingletonKey": {
			has.EnforcesSingleton,
			func() error { return first(s.GetRunBySingletonKey(ctx, owner)) },
		},
		"ListRunsNeedingDelivery": {has.LeasesRuns, func() error { return first(s.ListRunsNeedingDelivery(ctx, due)) }},
		"ListRunsNeedingCancellationFinalization": {has.LeasesRuns, func() error {
			return first(s.ListRunsNeedingCancellationFinalization(ctx, due))
		}},
		"ReleaseRunDispatch": {has.EnforcesQueueConcurrency, func() error {
			return first(s.ReleaseRunDispatch(ctx, &lane.ReleaseDispatchCommand{RunKey: b.key(run.ID), At: noon}))
		}},
		"ReleaseRunLease": {has.LeasesRuns, func() error {
			return s.ReleaseRunLease(ctx, &lane.ReleaseCommand{RunKey: b.key(run.ID), LeaseToken: "x"})
		}},
		"ListRunsNeedingRedelivery": {
			has.FindsLostWakeups,
			func() error { return first(s.ListRunsNeedingRedelivery(ctx, due)) },
		},
		"ListRunsNeedingDispatch": {
			has.EnforcesQueueConcurrency,
			func() error { return first(s.ListRunsNeedingDispatch(ctx, due)) },
		},
		"MarkOutboxMessagesPublished": {has.PersistsOutbox, func() error {
			return s.MarkOutboxMessagesPublished(ctx, &lane.MarkPublishedCommand{
				Environment: b.env,
				At:          noon,
				Messages:    []lane.OutboxRef{{ID: "x", ClaimToken: "x"}},
			})
		}},
		"ListDeadLetters": {
			has.KeepsDeadLetters,
			func() error { return first(s.ListDeadLetters(ctx, &lane.DeadLetterQuery{PageQuery: page})) },
		},
		"RequeueDeadLetters": {has.KeepsDeadLetters, func() error {
			return first(s.RequeueDeadLetters(ctx, &lane.RequeueCommand{
				Environment: b.env,
				IDs:         []string{"x"},
				At:          noon,
			}))
		}},
		"ListSchedules": {has.KeepsSchedules, func() error { return first(s.ListSchedules(ctx, &page)) }},
	} {
		if err := call.call(); call.promised && runlane.CodeOf(err) != runlane.ErrOperationCancelled {
			t.Errorf("%s on an ended context: error is %v, want %q", method, err, runlane.ErrOperationCancelled)
		}
	}
}

// docs/internals/contract.md, Copies.
func copiesOfHistory(t *testing.T, b *bundle) {
	command := b.rich(t)
	commit := b.append(command)
	before := b.snapshot(commit.Run.ID)
	returned := cloneCommit(commit)
	scribbleRun(command.Projected)
	for i := range command.Events {
		scribbleEvent(&command.Events[i])
	}
	equal(t, "stored, after the command was changed", before, b.snapshot(before.Run.ID))
	equal(t, "returned, after the command was changed", returned, cloneCommit(commit))
	scribbleCommit(commit)
	equal(t, "stored, after the commit was changed", before, b.snapshot(before.Run.ID))
	scribbleRun(b.get(before.Run.ID))
	for _, r := range b.history(b.key(before.Run.ID)) {
		scribbleEvent(&r.Event)
	}
	equal(t, "stored, after what was read was changed", before, b.snapshot(before.Run.ID))
}

// docs/internals/contract.md, Copies.
func copiesOfHeartbeats(t *testing.T, b *bundle) {
	run := b.running(noon, noon.Add(time.Minute), RunOptions{
		Payload: []byte(`{"a":1}`), Meta: map[string]string{"m": "meta"}, TraceCarrier: map[string]string{"t": "trace"},
	})
	beat := b.Heartbeat(t, run, noon.Add(time.Second), noon.Add(time.Hour))
	kept := cloneTransition(&beat.Transition)
	commit := must(b.storage.HeartbeatRunLease(b.ctx(), beat))(t)
	equal(t, "HeartbeatRunLease changed its command", kept, &beat.Transition)
	before := b.snapshot(run.ID)
	scribbleRun(beat.Projected)
	beat.Events[0].Body.(*runlane.RunLeaseHeartbeat).Lease.Token = "scribbled"
	scribbleCommit(commit)
	commit.Events[0].Body.(*runlane.RunLeaseHeartbeat).Lease.Token = "scribbled"
	equal(t, "stored, after command and commit were changed", before, b.snapshot(run.ID))
}

// docs/internals/contract.md, Copies.
func copiesOfOwners(t *testing.T, b *bundle) {
	run := b.create(time.Now(), RunOptions{
		IdempotencyKey: "key",
		SingletonKey:   "key",
		Retention:      runlane.KeyRetention{TTL: time.Hour},
		Payload:        []byte(`{"a":1}`),
		Meta:           map[string]string{"m": "meta"},
		TraceCarrier:   map[string]string{"t": "trace"},
	})
	key := lane.OwnerKey{Environment: b.env, TaskID: TaskID, Key: "key"}
	for range 2 {
		scribbleRun(must(b.storage.GetRunByIdempotencyKey(b.ctx(), key))(t))
		scribbleRun(must(b.storage.GetRunBySingletonKey(b.ctx(), key))(t))
		equal(t, "run", run, b.get(run.ID))
	}
}

// docs/internals/contract.md, Reads: a backend limits how much one request reads; callers must not notice.
func readVeryMany(t *testing.T, b *bundle) {
	runs := []*runlane.Run{b.create(noon, RunOptions{}), b.create(noon, RunOptions{}), b.create(noon, RunOptions{})}
	q := &lane.RunsQuery{Environment: b.env}
	var want []*runlane.Run
	for i := range 250 {
		q.IDs = append(q.IDs, runlane.RunID("run_absent_"+noon.Add(time.Duration(i)*time.Second).Format("150405")))
		if i%60 == 0 {
			q.IDs, want = append(q.IDs, runs[i%3].ID), append(want, runs[i%3])
		}
	}
	q.IDs, want = append(q.IDs, runs[2].ID), append(want, runs[2])
	equal(t, "runs", want, must(b.storage.GetRuns(b.ctx(), q))(t))
}

// docs/internals/contract.md, Pages and cursors.
func pagingDefault(t *testing.T, b *bundle) {
	run := b.create(noon, RunOptions{NoDelivery: true})
	bodies := make([]runlane.EventBody, runlane.DefaultPageLimit+9)
	for i := range bodies {
		bodies[i] = Delivery(run, noon, noon)
	}
	run = b.push(run, noon, bodies...)
	q := &lane.EventQuery{PageQuery: lane.PageQuery{Environment: b.env}, RunID: run.ID}
	page := must(b.storage.ListRunEvents(b.ctx(), q))(t)
	if len(page.Items) > runlane.DefaultPageLimit || page.Next == "" {
		t.Fatalf("a page of the default limit has %d items and the cursor %q", len(page.Items), page.Next)
	}
	events := collect(t, &q.PageQuery, func() (*runlane.Page[runlane.EventRecord], error) {
		return b.storage.ListRunEvents(b.ctx(), q)
	})
	if int64(len(events)) != run.EventSequence {
		t.Fatalf("%d events, want %d", len(events), run.EventSequence)
	}
}

// docs/internals/contract.md, Append.
func claimWithoutPayload(t *testing.T, b *bundle) {
	payload := []byte(`{"keep": "me"}`)
	run := b.create(noon, RunOptions{Payload: payload})
	lean := must(b.storage.GetRuns(b.ctx(), &lane.RunsQuery{
		Environment:    b.env,
		IDs:            []runlane.RunID{run.ID},
		WithoutPayload: true,
	}))(t)[0]
	claimed := b.claim(lean, noon, noon.Add(time.Minute))
	lean = claimed.Clone()
	lean.Payload = nil
	must(b.storage.HeartbeatRunLease(b.ctx(), b.Heartbeat(t, lean, noon.Add(time.Second), noon.Add(2*time.Minute))))(t)
	wantBytes(t, "payload after a claim and a heartbeat without it", payload, b.get(run.ID).Payload)
}

// docs/internals/contract.md, Leases.
func heartbeatMalformed(t *testing.T, b *bundle) {
	run := b.running(noon, noon.Add(time.Minute), RunOptions{})
	for name, change := range map[string]func(c *lane.HeartbeatCommand){
		"no projection":  func(c *lane.HeartbeatCommand) { c.Projected = nil },
		"no events":      func(c *lane.HeartbeatCommand) { c.Events = nil },
		"wrong sequence": func(c *lane.HeartbeatCommand) { c.Projected.EventSequence++ },
		"another event": func(c *lane.HeartbeatCommand) {
			c.Transition = b.Transition(t, run, noon, Succeeded(run, nil))
		},
	} {
		c := b.Heartbeat(t, run, noon.Add(time.Second), noon.Add(time.Hour))
		change(c)
		if _, err := b.storage.HeartbeatRunLease(b.ctx(), c); runlane.CodeOf(err) != runlane.ErrContractViolation {
			t.Errorf("%s: error is %v, want %q", name, err, runlane.ErrContractViolation)
		}
	}
	equal(t, "run after malformed heartbeats", run, b.get(run.ID))
}
