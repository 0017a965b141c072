package lanetest

import (
	"errors"
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// inhabited is an environment with something for every method, and another one that is asked for it.
type inhabited struct {
	*bundle
	elsewhere                            runlane.Environment
	queued, running, waiting             *runlane.Run
	eager, dead                          lane.OutboxMessage
	nightly                              runlane.ScheduleRecord
	flow                                 lane.FlowRecord
	occurrence                           string // token of a claim
	fire, later                          time.Time
	begun                                lane.FeedPosition // before all
	key                                  lane.OwnerKey
	queuedThere, runningThere, waitThere *runlane.Run // as if they were in the other environment
}

func (b *bundle) inhabited() *inhabited {
	b.t.Helper()
	h, has := &inhabited{bundle: b, elsewhere: b.env + "-elsewhere", later: noon.Add(24 * time.Hour)}, b.h.Capabilities
	moved := func(run *runlane.Run) *runlane.Run {
		there := run.Clone()
		there.Environment = h.elsewhere
		return there
	}
	if has.FeedsCommits {
		h.begun = must(b.storage.BeginFeed(b.ctx()))(b.t)
	}
	if has.KeepsTasks {
		b.putTask(fullTask("task"))
	}
	b.putPauses(lane.Pauses{Entries: []lane.Pause{pauseOf("limited")}})
	o := RunOptions{Outbox: lane.InitialOutbox{ClaimUntil: h.later.Add(time.Hour)}}
	if has.EnforcesIdempotency {
		o.IdempotencyKey, o.Retention = "key", runlane.KeyRetention{WhileActive: true}
	}
	if has.EnforcesSingleton {
		o.SingletonKey = "key"
	}
	h.key = lane.OwnerKey{Environment: h.elsewhere, TaskID: TaskID, Key: "key"}
	commit := b.append(b.Creation(b.t, noon, o))
	h.queued = commit.Run
	h.queuedThere = moved(h.queued)
	h.runningThere, h.waitThere = h.queuedThere, h.queuedThere
	if has.SuspendsRuns {
		b.keep(b.keeping(h.queued, "step", "1"))
	}
	if has.PersistsOutbox {
		h.eager = commit.Outbox[0]
	}
	if has.LeasesRuns {
		h.running = b.running(noon, noon.Add(time.Minute), RunOptions{})
		h.runningThere = moved(h.running)
		if has.KeepsProgress {
			p := runlane.Progress{Attempt: 1, Note: "half", At: noon}
			if err := b.storage.PutProgress(b.ctx(), b.key(h.running.ID), h.running.Lease.Token, p); err != nil {
				b.t.Fatal(err)
			}
		}
		asked := b.running(noon, noon.Add(time.Minute), RunOptions{})
		b.push(asked, noon, &runlane.RunCancellationRequested{})
		b.end(b.create(noon, RunOptions{}), noon, runlane.StatusSucceeded)
	}
	if has.EnforcesQueueConcurrency {
		h.waiting = b.limited(1).waiting(noon, RunOptions{Queue: "limited"})
		h.waitThere = moved(h.waiting)
	}
	if has.KeepsDeadLetters && has.PersistsOutbox {
		h.dead = b.eagerRow(noon)
		b.giveUp(h.dead.OutboxRef, 10, noon)
	}
	if has.FindsLostWakeups {
		b.create(noon, RunOptions{Outbox: lane.InitialOutbox{Published: true}})
	}
	if h.flow = withVersion(newFlow("flow"), 1); has.SuspendsRuns {
		b.putFlow(&lane.FlowRecord{ID: "flow", CreatedAt: noon, Plan: []byte("plan")})
	}
	h.fire = noon.Add(time.Minute)
	if has.KeepsSchedules {
		h.nightly = b.registered("nightly")
		if has.ClaimsScheduleOccurrences {
			h.occurrence = b.claimed("nightly", h.fire)
			b.completed("nightly", h.fire.Add(time.Minute), "run_1")
			h.nightly = b.record("nightly")
		}
	}
	return h
}

// probe asks one method for what is in another environment; its error is what it should not have found.
type probe struct {
	promised bool
	ask      func(t *testing.T)
}

func (h *inhabited) probes() map[string]probe {
	ctx, s, has := h.ctx(), h.storage, h.h.Capabilities
	page := lane.PageQuery{Environment: h.elsewhere}
	schedule := lane.ScheduleKey{Environment: h.elsewhere, ScheduleID: "nightly"}
	notFound := func(code runlane.ErrorCode, call func() error) func(*testing.T) {
		return func(t *testing.T) { wantError(t, call(), code) }
	}
	conflict := func(kind runlane.ConflictKind, call func() error) func(*testing.T) {
		return func(t *testing.T) { wantConflict(t, call(), kind, "") }
	}
	lost := func(call func() (*lane.Acquisition, error)) func(*testing.T) {
		return func(t *testing.T) {
			if got := must(call())(t); got.Outcome != lane.LostSequence || got.Commit != nil {
				t.Fatalf("outcome %q with commit %v, want %q", got.Outcome, got.Commit, lane.LostSequence)
			}
		}
	}
	scanned := func(list scan) func(*testing.T) {
		return func(t *testing.T) {
			q := &lane.DueQuery{
				PageQuery: page,
				At:        h.later,
				Bounded:   []runlane.Queue{{Name: "limited", Concurrency: 1}},
			}
			equal(t, "found", nil, h.scanAll(list, q))
		}
	}
	first := func(_ any, err error) error { return err }
	failure := lane.OutboxFailure{OutboxRef: h.eager.OutboxRef, Attempts: 1, Failure: refusal, NextAvailableAt: noon}
	return map[string]probe{
		"AppendRunEvents": {true, conflict(runlane.ConflictEventSequence, func() error {
			return first(s.AppendRunEvents(ctx, h.Append(h.t, h.queuedThere, noon, &runlane.RunCancelled{})))
		})},
		"GetRun": {true, notFound(runlane.ErrRunNotFound, func() error {
			return first(s.GetRun(ctx, lane.RunKey{Environment: h.elsewhere, RunID: h.queued.ID}))
		})},
		"GetRuns": {true, func(t *testing.T) {
			equal(
				t,
				"found",
				nil,
				must(s.GetRuns(ctx, &lane.RunsQuery{Environment: h.elsewhere, IDs: []runlane.RunID{h.queued.ID}}))(t),
			)
		}},
		"GetRunByIdempotencyKey": {
			has.EnforcesIdempotency,
			notFound(runlane.ErrRunNotFound, func() error { return first(s.GetRunByIdempotencyKey(ctx, h.key)) }),
		},
		"GetRunBySingletonKey": {
			has.EnforcesSingleton,
			notFound(runlane.ErrRunNotFound, func() error { return first(s.GetRunBySingletonKey(ctx, h.key)) }),
		},
		"ResetIdempotencyKey": {
			has.EnforcesIdempotency,
			notFound(runlane.ErrRunNotFound, func() error { return s.ResetIdempotencyKey(ctx, h.key) }),
		},
		"InspectRun": {true, notFound(runlane.ErrRunNotFound, func() error {
			return first(s.InspectRun(ctx, &lane.InspectQuery{
				RunKey: lane.RunKey{Environment: h.elsewhere, RunID: h.queued.ID},
			}))
		})},
		"ListRuns": {
			has.ReadsRunHistory,
			func(t *testing.T) { equal(t, "found", nil, h.listRuns(&lane.RunQuery{PageQuery: page})) },
		},
		"ListRunEvents": {has.ReadsRunHistory, func(*testing.T) {
			h.wantNoHistory(lane.RunKey{Environment: h.elsewhere, RunID: h.queued.ID})
		}},
		"ListRunnableRuns":                        {has.LeasesRuns, scanned(s.ListRunnableRuns)},
		"ListRunsNeedingDispatch":                 {has.EnforcesQueueConcurrency, scanned(s.ListRunsNeedingDispatch)},
		"ListRunsNeedingDelivery":                 {has.LeasesRuns, scanned(s.ListRunsNeedingDelivery)},
		"ListRunsNeedingRedelivery":               {has.FindsLostWakeups, scanned(s.ListRunsNeedingRedelivery)},
		"ListRunsToNotify":                        {has.SuspendsRuns, scanned(s.ListRunsToNotify)},
		"ListRunsNeedingCancellationFinalization": {has.LeasesRuns, scanned(s.ListRunsNeedingCancellationFinalization)},
		"ReserveRunDispatch": {has.EnforcesQueueConcurrency, lost(func() (*lane.Acquisition, error) {
			return s.ReserveRunDispatch(ctx, h.Reserve(h.t, h.waitThere, noon, noon.Add(reservation), 1))
		})},
		"TakeTicket": {has.EnforcesQueueRate, func(t *testing.T) {
			r := h.rated(runlane.PerSecond(1), 0)
			r.ticket("", noon, noon)
			_, ok, err := s.TakeTicket(ctx, &lane.TicketCommand{
				Environment: h.elsewhere, Queue: r.queue, At: noon, Until: noon,
			})
			if err != nil || !ok {
				t.Errorf("no ticket, because of one in another environment (%v)", err)
			}
		}},
		"ReleaseRunDispatch": {has.EnforcesQueueConcurrency, func(t *testing.T) {
			released := must(s.ReleaseRunDispatch(ctx, &lane.ReleaseDispatchCommand{
				RunKey: lane.RunKey{Environment: h.elsewhere, RunID: h.waiting.ID}, ExpiresAt: noon, At: noon,
			}))(t)
			equal(t, "released", false, released)
		}},
		"ClaimRunLease": {has.LeasesRuns, lost(func() (*lane.Acquisition, error) {
			return s.ClaimRunLease(ctx, h.Claim(h.t, h.queuedThere, noon, noon.Add(time.Minute), h.NewToken()))
		})},
		"HeartbeatRunLease": {has.LeasesRuns, conflict(runlane.ConflictEventSequence, func() error {
			return first(s.HeartbeatRunLease(
				ctx,
				h.Heartbeat(h.t, h.runningThere, noon.Add(time.Second), noon.Add(time.Hour)),
			))
		})},
		"ReleaseRunLease": {has.LeasesRuns, notFound(runlane.ErrRunNotFound, func() error {
			return s.ReleaseRunLease(ctx, &lane.ReleaseCommand{
				RunKey: lane.RunKey{Environment: h.elsewhere, RunID: h.running.ID}, LeaseToken: h.running.Lease.Token,
			})
		})},
		"KeepRecord": {has.SuspendsRuns, func(t *testing.T) {
			if _, err := s.KeepRecord(ctx, h.keeping(h.queuedThere, "step", "2")); err != nil {
				wantError(t, err, runlane.ErrRunNotFound)
			}
			equal(t, "record here", "1", string(h.records(h.queued)[0].Result))
		}},
		"ListRecords": {has.SuspendsRuns, func(t *testing.T) {
			for _, r := range h.records(h.queuedThere) { // what KeepRecord may have put there
				equal(t, "result", "2", string(r.Result))
			}
		}},
		"ReadMail": {has.SuspendsRuns, notFound(runlane.ErrRunNotFound, func() error {
			return first(s.ReadMail(ctx, &lane.MailQuery{
				RunKey: lane.RunKey{Environment: h.elsewhere, RunID: h.running.ID},
			}))
		})},
		"SendSignal": {has.SuspendsRuns, conflict(runlane.ConflictWait, func() error {
			return first(s.SendSignal(ctx, &lane.SignalCommand{
				RunKey:    lane.RunKey{Environment: h.elsewhere, RunID: h.running.ID},
				CreatedAt: h.running.CreatedAt,
				Signal:    lane.Signal{Name: "approved", ID: "1", Number: 1, SentAt: noon},
			}))
		})},
		"BeginCall": {has.SuspendsRuns, notFound(runlane.ErrRunNotFound, func() error {
			return first(s.BeginCall(ctx, &lane.CallCommand{
				RunKey:     lane.RunKey{Environment: h.elsewhere, RunID: h.running.ID},
				CreatedAt:  h.running.CreatedAt,
				LeaseToken: h.running.Lease.Token,
				Call:       lane.RunCall{Name: "pages", TaskID: TaskID, Count: 1, At: noon},
			}))
		})},
		"ReadCalls": {has.SuspendsRuns, notFound(runlane.ErrRunNotFound, func() error {
			return first(s.ReadCalls(ctx, &lane.CallQuery{
				RunKey: lane.RunKey{Environment: h.elsewhere, RunID: h.running.ID},
			}))
		})},
		"NotifyEnd": {has.SuspendsRuns, conflict(runlane.ConflictWait, func() error {
			return first(s.NotifyEnd(ctx, &lane.NotifyCommand{
				RunKey:    lane.RunKey{Environment: h.elsewhere, RunID: h.running.ID},
				CreatedAt: h.running.CreatedAt,
			}))
		})},
		"PutFlow": {has.SuspendsRuns, conflict(runlane.ConflictFlow, func() error {
			return first(s.PutFlow(ctx, &lane.FlowCommand{Environment: h.elsewhere, Flow: h.flow}))
		})},
		"GetFlow": {has.SuspendsRuns, notFound(runlane.ErrFlowNotFound, func() error {
			key := lane.FlowKey{Environment: h.elsewhere, FlowID: h.flow.ID}
			return first(s.GetFlow(ctx, &lane.FlowRead{FlowKey: key}))
		})},
		"ListFlows": {has.SuspendsRuns, func(t *testing.T) {
			for _, finished := range []bool{false, true} {
				found := must(s.ListFlows(ctx, &lane.FlowQuery{PageQuery: page, Finished: finished}))(t)
				equal(t, "found", nil, found.Items)
			}
		}},
		"PutSchedule": {has.KeepsSchedules, conflict(runlane.ConflictScheduleOccurrence, func() error {
			return first(s.PutSchedule(ctx, &lane.PutScheduleCommand{Environment: h.elsewhere, Record: h.nightly}))
		})},
		"GetSchedule": {
			has.KeepsSchedules,
			notFound(runlane.ErrScheduleNotFound, func() error { return first(s.GetSchedule(ctx, schedule)) }),
		},
		"ListSchedules": {
			has.KeepsSchedules,
			func(t *testing.T) { equal(t, "found", nil, h.schedules(&lane.PageQuery{Environment: h.elsewhere})) },
		},
		"ClaimScheduleOccurrence": {has.ClaimsScheduleOccurrences, notFound(runlane.ErrScheduleNotFound, func() error {
			c := h.claimOf("nightly", h.fire, h.later)
			c.Environment = h.elsewhere
			return first(s.ClaimScheduleOccurrence(ctx, c))
		})},
		"CompleteScheduleOccurrence": {
			has.ClaimsScheduleOccurrences,
			notFound(runlane.ErrScheduleNotFound, func() error {
				c := h.completion("nightly", h.fire, h.occurrence, "run_1")
				c.Environment = h.elsewhere
				return s.CompleteScheduleOccurrence(ctx, c)
			}),
		},
		"ListScheduleOccurrences": {has.ClaimsScheduleOccurrences, func(t *testing.T) {
			equal(t, "found", nil, h.occurrencePages(&lane.OccurrenceQuery{PageQuery: page, ScheduleID: "nightly"}))
		}},
		"ClaimOutboxMessages": {has.PersistsOutbox, func(t *testing.T) {
			for _, ids := range [][]string{nil, {h.eager.ID}} {
				equal(t, "claimed", nil, must(s.ClaimOutboxMessages(ctx, &lane.ClaimOutboxCommand{
					Environment: h.elsewhere,
					IDs:         ids,
					At:          h.later.Add(2 * time.Hour),
					ClaimUntil:  h.later.Add(3 * time.Hour),
				}))(t))
			}
		}},
		"MarkOutboxMessagesPublished": {has.PersistsOutbox, func(t *testing.T) {
			wantStale(t, s.MarkOutboxMessagesPublished(ctx, &lane.MarkPublishedCommand{
				Environment: h.elsewhere, At: noon, Messages: []lane.OutboxRef{h.eager.OutboxRef},
			}), h.eager.ID)
		}},
		"MarkOutboxMessagesFailed": {has.PersistsOutbox, func(t *testing.T) {
			wantStale(t, s.MarkOutboxMessagesFailed(ctx, &lane.MarkFailedCommand{
				Environment: h.elsewhere, At: noon, Messages: []lane.OutboxFailure{failure},
			}), h.eager.ID)
		}},
		"MarkOutboxMessagesDeadLettered": {has.PersistsOutbox, func(t *testing.T) {
			wantStale(t, s.MarkOutboxMessagesDeadLettered(ctx, &lane.MarkDeadLetteredCommand{
				Environment: h.elsewhere, At: noon, Messages: []lane.OutboxFailure{failure},
			}), h.eager.ID)
		}},
		"ListDeadLetters": {has.KeepsDeadLetters, func(t *testing.T) {
			equal(t, "found", nil, must(s.ListDeadLetters(ctx, &lane.DeadLetterQuery{PageQuery: page}))(t).Items)
		}},
		"RequeueDeadLetters": {has.KeepsDeadLetters && has.PersistsOutbox, func(t *testing.T) {
			equal(
				t,
				"requeued",
				0,
				must(s.RequeueDeadLetters(ctx, &lane.RequeueCommand{
					Environment: h.elsewhere,
					IDs:         []string{h.dead.ID},
					At:          noon,
				}))(t),
			)
		}},
		"PutTask": {has.KeepsTasks, func(t *testing.T) {
			c := &lane.PutTaskCommand{Environment: h.elsewhere, Record: plainTask("task")}
			if err := s.PutTask(ctx, c); err != nil {
				t.Fatal(err)
			}
		}},
		"ListTasks": {
			has.KeepsTasks,
			func(t *testing.T) { equal(t, "found", nil, must(s.ListTasks(ctx, &page))(t).Items) },
		},
		"PutKeep": {has.PrunesRuns, func(t *testing.T) {
			c := &lane.PutKeepCommand{Environment: h.elsewhere, Record: lane.KeepRecord{RuleAt: noon}}
			if err := s.PutKeep(ctx, c); err != nil {
				t.Fatal(err)
			}
		}},
		"GetKeep": {has.PrunesRuns, func(t *testing.T) {
			equal(t, "found", &lane.KeepRecord{}, must(s.GetKeep(ctx, h.elsewhere))(t))
		}},
		"GetPauses": {true, func(t *testing.T) {
			p, err := s.GetPauses(ctx, lane.PausesQuery{Environment: h.elsewhere, Exact: true})
			if !errors.Is(err, runlane.ErrCapabilityUnsupported) {
				equal(t, "found", lane.Pauses{}, must(p, err)(t))
			}
		}},
		"PutPauses": {true, func(t *testing.T) {
			_, err := s.PutPauses(ctx, &lane.PutPausesCommand{Environment: h.elsewhere})
			if err != nil && !errors.Is(err, runlane.ErrCapabilityUnsupported) {
				t.Fatal(err)
			}
		}},
		"PutProgress": {needsProgress(has), notFound(runlane.ErrRunNotFound, func() error {
			key := lane.RunKey{Environment: h.elsewhere, RunID: h.running.ID}
			return s.PutProgress(ctx, key, h.running.Lease.Token, runlane.Progress{Attempt: 1, Note: "all", At: h.later})
		})},
		"GetProgress": {needsProgress(has), func(t *testing.T) {
			key := lane.RunKey{Environment: h.elsewhere, RunID: h.running.ID}
			equal(t, "found", runlane.Progress{}, must(s.GetProgress(ctx, key))(t))
		}},
		"ReadFeed": {has.FeedsCommits, func(t *testing.T) {
			q := &lane.FeedQuery{Environment: h.elsewhere, After: h.begun, Limit: 1000}
			equal(t, "found", nil, must(s.ReadFeed(ctx, q))(t).Items)
		}},
		"CountRuns": {true, func(t *testing.T) {
			counts, err := s.CountRuns(ctx, &lane.CountQuery{Environment: h.elsewhere, Queue: Queue, At: noon, QueuedAt: noon})
			if !errors.Is(err, runlane.ErrCapabilityUnsupported) {
				equal(t, "counted", &lane.RunCounts{}, must(counts, err)(t))
			}
		}},
		"Check": {true, func(t *testing.T) {
			found, err := s.Check(ctx, &page)
			if !errors.Is(err, runlane.ErrCapabilityUnsupported) {
				equal(t, "found", nil, must(found, err)(t).Items)
			}
		}},
		"PruneRuns": {has.PrunesRuns, func(t *testing.T) {
			equal(
				t,
				"pruned",
				lane.PruneProgress{},
				*must(s.PruneRuns(ctx, &lane.PruneCommand{
					PageQuery:     page,
					OlderThan:     h.later,
					ReleaseOwners: true,
				}))(t),
			)
		}},
	}
}

// A call for one environment returns nothing of another one, and changes nothing there.
func environmentMethods(t *testing.T, b *bundle) {
	h := b.inhabited()
	probes := h.probes()
	var methods []string
	everywhere := []string{"Capabilities", "Start", "Close", "BeginFeed", "CheckOutput", "CheckPayload"}
	for m := range reflect.TypeFor[lane.Storage]().Methods() {
		if !slices.Contains(everywhere, m.Name) {
			methods = append(methods, m.Name)
		}
	}
	equal(t, "methods that were asked", methods, slices.Sorted(maps.Keys(probes)))
	before := h.everything()
	for _, method := range methods {
		if probes[method].promised {
			t.Run(method, probes[method].ask)
		}
	}
	equal(t, "the environment that was not asked for", before, h.everything())
	if b.h.Capabilities.PersistsOutbox {
		b.mark(t, h.eager.OutboxRef, noon) // its claim still holds
	}
}

// everything is all that can be read of the environment.
func (h *inhabited) everything() []any {
	h.t.Helper()
	var all []any
	for _, key := range h.made {
		all = append(all, must(h.storage.InspectRun(h.ctx(), &lane.InspectQuery{RunKey: key}))(h.t))
		if h.h.Capabilities.ReadsRunHistory {
			all = append(all, h.history(key))
		}
	}
	if h.h.Capabilities.KeepsTasks {
		all = append(all, h.tasks(h.env, 0))
	}
	if needsProgress(h.h.Capabilities) {
		all = append(all, must(h.storage.GetProgress(h.ctx(), h.bundle.key(h.running.ID)))(h.t))
	}
	if h.h.Capabilities.KeepsSchedules {
		all = append(all, h.record("nightly"))
	}
	if h.h.Capabilities.ClaimsScheduleOccurrences {
		all = append(all, h.occurrences("nightly", false))
	}
	return all
}
