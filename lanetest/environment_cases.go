package lanetest

import (
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// docs/internals/contract.md, Environments: no call ever sees two.
func environmentCases() []storageCase {
	return []storageCase{
		{"RunsAndKeysOfOneAreUnknownInAnother", needsBoth(needsIdempotency, needsSingleton), environmentsApart},
		{
			"ScansListsAndOutboxKeepToOne",
			needsBoth(needsBoth(needsHistory, needsOutbox), needsLeases),
			environmentScans,
		},
		{"TheEmptyNameIsTheDefaultOne", nil, environmentDefault},
		{"EveryMethodKeepsToOne", nil, environmentMethods},
	}
}

func environmentsApart(t *testing.T, b *bundle) {
	elsewhere := b.env + "-elsewhere"
	o := RunOptions{
		ID:             "run_shared",
		IdempotencyKey: "key",
		SingletonKey:   "key",
		Retention:      runlane.KeyRetention{TTL: time.Hour},
	}
	here := b.create(time.Now(), o)
	key := lane.OwnerKey{Environment: elsewhere, TaskID: TaskID, Key: "key"}
	_, err := b.storage.GetRun(b.ctx(), lane.RunKey{Environment: elsewhere, RunID: here.ID})
	wantError(t, err, runlane.ErrRunNotFound)
	_, err = b.storage.GetRunByIdempotencyKey(b.ctx(), key)
	wantError(t, err, runlane.ErrRunNotFound)
	_, err = b.storage.GetRunBySingletonKey(b.ctx(), key)
	wantError(t, err, runlane.ErrRunNotFound)
	wantError(t, b.storage.ResetIdempotencyKey(b.ctx(), key), runlane.ErrRunNotFound)
	if got := must(b.storage.GetRuns(b.ctx(), &lane.RunsQuery{
		Environment: elsewhere,
		IDs:         []runlane.RunID{here.ID},
	}))(t); len(got) != 0 {
		t.Fatalf("GetRuns found %v", got)
	}

	o.Environment, o.Payload = elsewhere, []byte(`"another run"`)
	there := b.create(time.Now(), o) // the same id, the same keys
	equal(t, "run here", here, b.get(here.ID))
	equal(
		t,
		"run there",
		there,
		must(b.storage.GetRun(b.ctx(), lane.RunKey{Environment: elsewhere, RunID: here.ID}))(t),
	)
	equal(t, "owner there", there, must(b.storage.GetRunByIdempotencyKey(b.ctx(), key))(t))
	key.Environment = b.env
	equal(t, "owner here", here, must(b.storage.GetRunBySingletonKey(b.ctx(), key))(t))
}

func environmentScans(t *testing.T, b *bundle) {
	elsewhere := b.env + "-elsewhere"
	runs := b.everyStatus()
	dead := b.eagerRow(noon)
	b.giveUp(dead.OutboxRef, 10, noon)
	later := b.due(noon.Add(24 * time.Hour))
	later.Environment = elsewhere
	for what, list := range map[string]scan{
		"runnable": b.storage.ListRunnableRuns, "delivery": b.storage.ListRunsNeedingDelivery,
		"cancellation": b.storage.ListRunsNeedingCancellationFinalization,
	} {
		if got := b.scanAll(list, later); len(got) != 0 {
			t.Errorf("%s: found %v", what, got)
		}
	}
	if b.h.Capabilities.FindsLostWakeups && len(b.scanAll(b.storage.ListRunsNeedingRedelivery, later)) != 0 {
		t.Error("redelivery found runs")
	}
	q := &lane.RunQuery{PageQuery: lane.PageQuery{Environment: elsewhere}}
	if got := b.listRuns(q); len(got) != 0 {
		t.Errorf("ListRuns found %v", got)
	}
	queued := runs[runlane.StatusQueued]
	events, err := b.storage.ListRunEvents(b.ctx(), &lane.EventQuery{
		PageQuery: lane.PageQuery{Environment: elsewhere},
		RunID:     queued.ID,
	})
	if runlane.CodeOf(err) != runlane.ErrRunNotFound && (err != nil || len(events.Items) != 0) {
		t.Errorf("ListRunEvents found %v, error %v", events, err)
	}
	scheduled := b.row(runs[runlane.StatusScheduled].ID)
	claim := &lane.ClaimOutboxCommand{Environment: elsewhere, At: later.At, ClaimUntil: later.At.Add(claimTime)}
	if got := must(b.storage.ClaimOutboxMessages(b.ctx(), claim))(t); len(got) != 0 {
		t.Errorf("claimed %v", got)
	}
	claim.IDs = []string{scheduled.ID}
	if got := must(b.storage.ClaimOutboxMessages(b.ctx(), claim))(t); len(got) != 0 {
		t.Errorf("claimed by id: %v", got)
	}
	mine := b.outboxOf(later.At, scheduled.ID)[0]
	err = b.storage.MarkOutboxMessagesPublished(b.ctx(), &lane.MarkPublishedCommand{
		Environment: elsewhere, At: later.At, Messages: []lane.OutboxRef{mine.OutboxRef},
	})
	wantStale(t, err, mine.ID)
	if b.h.Capabilities.KeepsDeadLetters {
		page := must(b.storage.ListDeadLetters(b.ctx(), &lane.DeadLetterQuery{
			PageQuery: lane.PageQuery{Environment: elsewhere},
		}))(t)
		if len(page.Items) != 0 {
			t.Errorf("ListDeadLetters found %v", page.Items)
		}
		if n := must(b.storage.RequeueDeadLetters(b.ctx(), &lane.RequeueCommand{
			Environment: elsewhere,
			IDs:         []string{dead.ID},
			At:          noon,
		}))(t); n != 0 {
			t.Error("requeued a dead letter of another environment")
		}
	}
}

// The default environment may be shared with other tests: the case reads only its own run.
func environmentDefault(t *testing.T, b *bundle) {
	c := b.Creation(t, noon, RunOptions{ID: runlane.RunID(b.env) + "-run"})
	c.Projected.Environment = ""
	for i := range c.Events {
		c.Events[i].Environment = ""
	}
	c.Events[1].Body.(*runlane.RunDeliveryRequested).Delivery.Environment = ""
	must(b.storage.AppendRunEvents(b.ctx(), c))(t)
	for _, name := range []runlane.Environment{"", runlane.DefaultEnvironment} {
		run := must(b.storage.GetRun(b.ctx(), lane.RunKey{Environment: name, RunID: c.Projected.ID}))(t)
		if run.Environment.Name() != string(runlane.DefaultEnvironment) {
			t.Fatalf("environment is %q", run.Environment)
		}
		// Ends it, so that no other test finds it.
		if name == runlane.DefaultEnvironment {
			must(b.storage.AppendRunEvents(b.ctx(), b.Append(t, run, noon, &runlane.RunCancelled{})))(t)
		}
	}
}
