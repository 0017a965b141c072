package lanetest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// docs/internals/contract.md, Capabilities.
func capabilityCases() []storageCase {
	return []storageCase{
		{"AreThoseDeclared", nil, capabilitiesDeclared},
		{"MissingOnesAnswerCapabilityUnsupported", nil, capabilitiesHonest},
		{
			"BoundedQueuesAreRefusedWhereTheyAreNotEnforced",
			func(c lane.StorageCapabilities) bool { return !c.EnforcesQueueConcurrency },
			boundedRefused,
		},
		{"EndedContextIsOperationCancelledAndWritesNothing", nil, endedContext},
	}
}

func capabilitiesDeclared(t *testing.T, b *bundle) {
	equal(t, "capabilities", b.h.Capabilities, b.storage.Capabilities())
	equal(t, "capabilities, asked again", b.h.Capabilities, b.storage.Capabilities())
	if c := b.h.Capabilities; c.DurableState && c.ProcessLocalState {
		t.Fatal("state that only one process can reach does not survive it")
	}
}

// Every method whose capability is false answers runlane.ErrCapabilityUnsupported; none silently does nothing.
func capabilitiesHonest(t *testing.T, b *bundle) {
	ctx, s, c := b.ctx(), b.storage, b.h.Capabilities
	page := lane.PageQuery{Environment: b.env}
	schedule := lane.ScheduleKey{Environment: b.env, ScheduleID: "nightly"}
	run := b.Creation(t, noon, RunOptions{})
	owner := lane.OwnerKey{Environment: b.env, TaskID: TaskID, Key: "key"}
	first := func(_ any, err error) error { return err }
	stale := lane.OutboxRef{ID: "no such row", ClaimToken: "x"}
	for _, guarded := range []struct {
		flag   string
		set    bool
		method string
		call   func() error
	}{
		{"ClaimsScheduleOccurrences", c.ClaimsScheduleOccurrences, "ClaimScheduleOccurrence", func() error {
			return first(s.ClaimScheduleOccurrence(ctx, &lane.ClaimOccurrenceCommand{
				ScheduleKey:  schedule,
				OccurrenceID: "occ_1",
				FireTime:     noon,
				At:           noon,
				ClaimUntil:   noon.Add(time.Minute),
			}))
		}},
		{"ClaimsScheduleOccurrences", c.ClaimsScheduleOccurrences, "CompleteScheduleOccurrence", func() error {
			return s.CompleteScheduleOccurrence(ctx, &lane.CompleteOccurrenceCommand{
				ScheduleKey:  schedule,
				OccurrenceID: "occ_1",
				FireTime:     noon,
				Token:        "x",
				RunIDs:       []runlane.RunID{"run_1"},
			})
		}},
		{"ClaimsScheduleOccurrences", c.ClaimsScheduleOccurrences, "ListScheduleOccurrences", func() error {
			return first(s.ListScheduleOccurrences(ctx, &lane.OccurrenceQuery{
				PageQuery:  page,
				ScheduleID: schedule.ScheduleID,
			}))
		}},
		{"KeepsSchedules", c.KeepsSchedules, "PutSchedule", func() error {
			return first(s.PutSchedule(ctx, &lane.PutScheduleCommand{
				Environment: b.env,
				Record:      runlane.ScheduleRecord{ID: schedule.ScheduleID},
			}))
		}},
		{
			"KeepsSchedules",
			c.KeepsSchedules,
			"GetSchedule",
			func() error { return first(s.GetSchedule(ctx, schedule)) },
		},
		{
			"KeepsSchedules",
			c.KeepsSchedules,
			"ListSchedules",
			func() error { return first(s.ListSchedules(ctx, &page)) },
		},
		{"EnforcesQueueConcurrency", c.EnforcesQueueConcurrency, "ListRunsNeedingDispatch", func() error {
			return first(s.ListRunsNeedingDispatch(ctx, &lane.DueQuery{PageQuery: page, At: noon}))
		}},
		{"EnforcesQueueConcurrency", c.EnforcesQueueConcurrency, "ReserveRunDispatch", func() error {
			return first(s.ReserveRunDispatch(ctx, &lane.ReserveCommand{Transition: run.Transition, At: noon}))
		}},
		{"EnforcesQueueRate", c.EnforcesQueueRate, "TakeTicket", func() error {
			_, _, err := s.TakeTicket(ctx, &lane.TicketCommand{
				Environment: b.env, Queue: runlane.Queue{Name: Queue, Rate: runlane.PerSecond(1)}, At: noon, Until: noon,
			})
			return err
		}},
		{"EnforcesQueueConcurrency", c.EnforcesQueueConcurrency, "ReleaseRunDispatch", func() error {
			return first(s.ReleaseRunDispatch(ctx, &lane.ReleaseDispatchCommand{RunKey: run.Key(), At: noon}))
		}},
		{
			"EnforcesIdempotency",
			c.EnforcesIdempotency,
			"GetRunByIdempotencyKey",
			func() error { return first(s.GetRunByIdempotencyKey(ctx, owner)) },
		},
		{
			"EnforcesIdempotency",
			c.EnforcesIdempotency,
			"ResetIdempotencyKey",
			func() error { return s.ResetIdempotencyKey(ctx, owner) },
		},
		{
			"EnforcesSingleton",
			c.EnforcesSingleton,
			"GetRunBySingletonKey",
			func() error { return first(s.GetRunBySingletonKey(ctx, owner)) },
		},
		{"SuspendsRuns", c.SuspendsRuns, "KeepRecord", func() error {
			return first(s.KeepRecord(ctx, b.keeping(run.Projected, "step", "1")))
		}},
		{"SuspendsRuns", c.SuspendsRuns, "ListRecords", func() error {
			return first(s.ListRecords(ctx, &lane.RecordQuery{PageQuery: page, RunID: "run_1", CreatedAt: noon}))
		}},
		{"LeasesRuns", c.LeasesRuns, "ClaimRunLease", func() error {
			return first(s.ClaimRunLease(ctx, &lane.ClaimCommand{Transition: run.Transition, At: noon}))
		}},
		{"LeasesRuns", c.LeasesRuns, "HeartbeatRunLease", func() error {
			return first(s.HeartbeatRunLease(ctx, &lane.HeartbeatCommand{Transition: run.Transition}))
		}},
		{"LeasesRuns", c.LeasesRuns, "ReleaseRunLease", func() error {
			return s.ReleaseRunLease(ctx, &lane.ReleaseCommand{RunKey: run.Key(), LeaseToken: "x"})
		}},
		{"LeasesRuns", c.LeasesRuns, "ListRunnableRuns", func() error {
			return first(s.ListRunnableRuns(ctx, &lane.DueQuery{PageQuery: page, At: noon}))
		}},
		{"LeasesRuns", c.LeasesRuns, "ListRunsNeedingDelivery", func() error {
			return first(s.ListRunsNeedingDelivery(ctx, &lane.DueQuery{PageQuery: page, At: noon}))
		}},
		{"LeasesRuns", c.LeasesRuns, "ListRunsNeedingCancellationFinalization", func() error {
			return first(s.ListRunsNeedingCancellationFinalization(ctx, &lane.DueQuery{PageQuery: page, At: noon}))
		}},
		{"PersistsOutbox", c.PersistsOutbox, "MarkOutboxMessagesPublished", func() error {
			return s.MarkOutboxMessagesPublished(ctx, &lane.MarkPublishedCommand{
				Environment: b.env,
				At:          noon,
				Messages:    []lane.OutboxRef{stale},
			})
		}},
		{"PersistsOutbox", c.PersistsOutbox, "MarkOutboxMessagesFailed", func() error {
			return s.MarkOutboxMessagesFailed(ctx, &lane.MarkFailedCommand{
				Environment: b.env,
				At:          noon,
				Messages:    []lane.OutboxFailure{{OutboxRef: stale}},
			})
		}},
		{"PersistsOutbox", c.PersistsOutbox, "MarkOutboxMessagesDeadLettered", func() error {
			return s.MarkOutboxMessagesDeadLettered(ctx, &lane.MarkDeadLetteredCommand{
				Environment: b.env, At: noon, Messages: []lane.OutboxFailure{{OutboxRef: stale}},
			})
		}},
		{"PersistsOutbox", c.PersistsOutbox, "ClaimOutboxMessages", func() error {
			return first(s.ClaimOutboxMessages(ctx, &lane.ClaimOutboxCommand{
				Environment: b.env,
				At:          noon,
				ClaimUntil:  noon.Add(claimTime),
			}))
		}},
		{"FindsLostWakeups", c.FindsLostWakeups, "ListRunsNeedingRedelivery", func() error {
			return first(s.ListRunsNeedingRedelivery(ctx, &lane.DueQuery{PageQuery: page, At: noon}))
		}},
		{"KeepsDeadLetters", c.KeepsDeadLetters, "ListDeadLetters", func() error {
			return first(s.ListDeadLetters(ctx, &lane.DeadLetterQuery{PageQuery: page}))
		}},
		{"KeepsDeadLetters", c.KeepsDeadLetters, "RequeueDeadLetters", func() error {
			return first(s.RequeueDeadLetters(ctx, &lane.RequeueCommand{
				Environment: b.env,
				IDs:         []string{"x"},
				At:          noon,
			}))
		}},
		{"FeedsCommits", c.FeedsCommits, "BeginFeed", func() error { return first(s.BeginFeed(ctx)) }},
		{"FeedsCommits", c.FeedsCommits, "ReadFeed", func() error {
			return first(s.ReadFeed(ctx, &lane.FeedQuery{Environment: b.env, Limit: 1}))
		}},
		{"KeepsProgress", c.KeepsProgress, "PutProgress", func() error {
			return s.PutProgress(ctx, run.Key(), "x", runlane.Progress{Attempt: 1, Note: "half", At: noon})
		}},
		{
			"KeepsProgress",
			c.KeepsProgress,
			"GetProgress",
			func() error { return first(s.GetProgress(ctx, run.Key())) },
		},
		{"KeepsTasks", c.KeepsTasks, "PutTask", func() error {
			return s.PutTask(ctx, &lane.PutTaskCommand{Environment: b.env, Record: plainTask("task")})
		}},
		{"KeepsTasks", c.KeepsTasks, "ListTasks", func() error { return first(s.ListTasks(ctx, &page)) }},
		{"PrunesRuns", c.PrunesRuns, "PruneRuns", func() error {
			return first(s.PruneRuns(ctx, &lane.PruneCommand{PageQuery: page, OlderThan: noon}))
		}},
		{"PrunesRuns", c.PrunesRuns, "GetKeep", func() error { return first(s.GetKeep(ctx, b.env)) }},
		{"PrunesRuns", c.PrunesRuns, "PutKeep", func() error {
			return s.PutKeep(ctx, &lane.PutKeepCommand{Environment: b.env})
		}},
		{
			"ReadsRunHistory",
			c.ReadsRunHistory,
			"ListRuns",
			func() error { return first(s.ListRuns(ctx, &lane.RunQuery{PageQuery: page})) },
		},
		{"ReadsRunHistory", c.ReadsRunHistory, "ListRunEvents", func() error {
			return first(s.ListRunEvents(ctx, &lane.EventQuery{PageQuery: page, RunID: "run_1"}))
		}},
	} {
		err := guarded.call()
		if unsupported := errors.Is(err, runlane.ErrCapabilityUnsupported); unsupported == guarded.set {
			t.Errorf("%s is %t, and %s returns %v", guarded.flag, guarded.set, guarded.method, err)
		}
	}
}

// docs/internals/contract.md, Bounded queues: a storage without slots must not pretend that a limit holds.
func boundedRefused(t *testing.T, b *bundle) {
	bounded := func(tr lane.Transition) lane.Transition {
		tr.Queue.Concurrency = 1
		return tr
	}
	c := b.Creation(t, noon, RunOptions{})
	c.Transition = bounded(c.Transition)
	_, err := b.storage.AppendRunEvents(b.ctx(), c)
	wantError(t, err, runlane.ErrCapabilityUnsupported)
	_, err = b.storage.GetRun(b.ctx(), c.Key())
	wantError(t, err, runlane.ErrRunNotFound)

	run := b.create(noon, RunOptions{})
	request := b.Append(t, run, noon.Add(time.Second), Delivery(run, noon.Add(time.Second), noon.Add(time.Second)))
	request.Transition = bounded(request.Transition)
	_, err = b.storage.AppendRunEvents(b.ctx(), request)
	wantError(t, err, runlane.ErrCapabilityUnsupported)
	if b.h.Capabilities.LeasesRuns {
		claim := b.Claim(t, run, noon, noon.Add(time.Minute), b.NewToken())
		claim.Transition = bounded(claim.Transition)
		_, err = b.storage.ClaimRunLease(b.ctx(), claim)
		wantError(t, err, runlane.ErrCapabilityUnsupported)
	}
	equal(t, "run after refused commands", run, b.get(run.ID))
}

// docs/internals/contract.md, Errors: a call on an ended context tells so and does nothing.
func endedContext(t *testing.T, b *bundle) {
	ctx, cancel := context.WithCancel(b.ctx())
	cancel()
	run := b.create(noon, RunOptions{})
	c := b.Creation(t, noon, RunOptions{})
	_, err := b.storage.AppendRunEvents(ctx, c)
	wantError(t, err, runlane.ErrOperationCancelled)
	_, err = b.storage.GetRun(ctx, b.key(run.ID))
	wantError(t, err, runlane.ErrOperationCancelled)
	_, err = b.storage.GetRun(b.ctx(), c.Key())
	wantError(t, err, runlane.ErrRunNotFound)
	if b.h.Capabilities.LeasesRuns {
		_, err = b.storage.ListRunnableRuns(ctx, &lane.DueQuery{
			PageQuery: lane.PageQuery{Environment: b.env},
			At:        noon,
		})
		wantError(t, err, runlane.ErrOperationCancelled)
		_, err = b.storage.ClaimRunLease(ctx, b.Claim(t, run, noon, noon.Add(time.Minute), b.NewToken()))
		wantError(t, err, runlane.ErrOperationCancelled)
	}
	if b.h.Capabilities.PersistsOutbox {
		_, err = b.storage.ClaimOutboxMessages(ctx, &lane.ClaimOutboxCommand{
			Environment: b.env,
			At:          noon,
			ClaimUntil:  noon.Add(claimTime),
		})
		wantError(t, err, runlane.ErrOperationCancelled)
	}
	equal(t, "run after refused commands", run, b.get(run.ID))
}
