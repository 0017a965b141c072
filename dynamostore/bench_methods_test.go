package dynamostore

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/dynamostore/internal/rows"
	"github.com/runlane/runlane-go/lane"
)

// many is what is listed or handled at once.
const many = 25

// methodCase is a method in a situation: prepare leads there and returns the call.
type methodCase struct {
	name    string
	prepare func(w *world) operation
}

func methodCases() []methodCase {
	return slices.Concat(commitCases(), readCases(), scanCases(), outboxCases(), scheduleCases())
}

var benchPage = lane.PageQuery{Environment: "test"}

// creation is the command that world.create would send.
func (w *world) creation(created *runlane.RunCreated) *lane.AppendCommand {
	w.Helper()
	w.run = &runlane.Run{ID: runlane.RunID(fmt.Sprintf("run_01ARZ3NDEKTSV4RRFFQ69G%04d", runNumber.Add(1)))}
	created.TaskID, created.Queue, created.Source = "bench.noop", "default", runlane.Source{Type: runlane.SourceTrigger}
	request := w.request(w.now)
	if w.queue.Bounded() {
		request = w.requestSlot(reservation)
	}
	return &lane.AppendCommand{Transition: w.transition(created, request), Outbox: eager(w.now)}
}

func (w *world) creating(created *runlane.RunCreated) operation {
	w.Helper()
	return calling(w.store.AppendRunEvents, w.creation(created))
}

// appending is a call as the run's owner, where it has one.
func (w *world) appending(body runlane.EventBody) operation {
	w.Helper()
	return calling(w.store.AppendRunEvents, &lane.AppendCommand{
		Transition: w.transition(body), LeaseToken: w.run.Lease.Token, Outbox: eager(w.now),
	})
}

func (w *world) claiming() operation {
	w.Helper()
	return calling(w.store.ClaimRunLease, &lane.ClaimCommand{At: w.now, ByWakeup: true, Transition: w.transition(
		&runlane.RunLeaseClaimed{Lease: runlane.Lease{Token: randomID(), WorkerID: "host-1-worker", ExpiresAt: w.now.Add(time.Minute)}},
		&runlane.RunStarted{Attempt: w.run.Counters.Attempts + 1})})
}

// webhook is JSON of about 8 KB that compresses like the body of a webhook.
func webhook() []byte {
	random := rand.New(rand.NewPCG(7, 8)) // fixed bytes
	type entry struct {
		ID     uint64 `json:"id"`
		URL    string `json:"repository_url"`
		Author string `json:"author_association"`
		Title  string `json:"title"`
	}
	var entries []entry
	for range 60 {
		n := random.Uint64()
		entries = append(entries, entry{n, fmt.Sprintf("https://api.example.com/repos/%d", n%97), "CONTRIBUTOR", fmt.Sprintf("change %d of %d", n%31, n%7)})
	}
	b, err := json.Marshal(entries)
	if err != nil {
		panic(err) // plain data
	}
	return b
}

func commitCases() []methodCase {
	running := func(w *world) *world { return w.create(eager, 0, nil).ack().claim(time.Minute, true) }
	return []methodCase{
		{"AppendRunEvents/created", func(w *world) operation { return w.creating(&runlane.RunCreated{Payload: []byte(`{}`)}) }},
		{"AppendRunEvents/created with both keys", func(w *world) operation { return w.creating(owned("key", []byte(`{}`))) }},
		{"AppendRunEvents/created with 8 KB", func(w *world) operation { return w.creating(&runlane.RunCreated{Payload: webhook()}) }},
		{"AppendRunEvents/created with a slot", func(w *world) operation {
			w.bounded(many) // one is free: the choice is the same in every round
			for range many - 1 {
				w.must(w.enter(reservation))
			}
			return w.creating(&runlane.RunCreated{Payload: []byte(`{}`)})
		}},
		{"AppendRunEvents/succeeded", func(w *world) operation { return running(w).appending(&runlane.RunSucceeded{Attempt: 1}) }},
		{"AppendRunEvents/retry scheduled", func(w *world) operation {
			return running(w).appending(&runlane.RunRetryScheduled{
				Attempt: 1, Failure: runlane.Failure{Code: runlane.ErrTaskFailed, Message: "no"}, RetryAt: w.now.Add(time.Second),
			})
		}},
		{"AppendRunEvents/cancelled", func(w *world) operation { return w.create(eager, time.Hour, nil).appending(&runlane.RunCancelled{}) }},
		{"AppendRunEvents/delivery requested", func(w *world) operation { return w.create(eager, 0, nil).ack().appending(w.request(w.now)) }},
		{"ReserveRunDispatch", func(w *world) operation {
			w = w.must(w.bounded(1).enter(0))
			return calling(w.store.ReserveRunDispatch, &lane.ReserveCommand{Transition: w.transition(w.requestSlot(reservation)), At: w.now, Outbox: eager(w.now)})
		}},
		{"ReleaseRunDispatch", func(w *world) operation {
			w = w.must(w.bounded(1).enter(reservation))
			return calling(w.store.ReleaseRunDispatch, &lane.ReleaseDispatchCommand{RunKey: w.key(), ExpiresAt: w.run.DispatchExpiresAt, At: w.now})
		}},
		{"ClaimRunLease", func(w *world) operation { return w.create(eager, 0, nil).ack().claiming() }},
		{"ClaimRunLease/reserved", func(w *world) operation { return w.must(w.bounded(1).enter(reservation)).ack().claiming() }},
		{"HeartbeatRunLease", func(w *world) operation {
			next := running(w).run.Lease
			next.ExpiresAt = next.ExpiresAt.Add(time.Minute)
			return calling(w.store.HeartbeatRunLease, &lane.HeartbeatCommand{Transition: w.transition(&runlane.RunLeaseHeartbeat{Lease: next})})
		}},
		{"ReleaseRunLease", func(w *world) operation {
			c := &lane.ReleaseCommand{RunKey: running(w).key(), LeaseToken: "another"}
			return func(ctx context.Context) error { return w.store.ReleaseRunLease(ctx, c) }
		}},
		{"PruneRuns", func(w *world) operation {
			w.finished(nil, nil).load(w.template(), "old", many-1)
			return finding(many, func(p *lane.PruneProgress) int { return p.Pruned }, w.store.PruneRuns, w.pruning())
		}},
	}
}

func readCases() []methodCase {
	key := lane.OwnerKey{Environment: "test", TaskID: "bench.noop", Key: "key"}
	some := func(w *world) []runlane.RunID {
		w.create(eager, 0, nil).load(w.template(), "some", many)
		var ids []runlane.RunID
		for i := range many {
			ids = append(ids, runlane.RunID(fmt.Sprintf("run_some%020d", i)))
		}
		return ids
	}
	runs := func(runs []*runlane.Run) int { return len(runs) }
	return []methodCase{
		{"Start", func(w *world) operation { return w.store.Start }},
		{"GetRun", func(w *world) operation { return calling(w.store.GetRun, w.create(eager, 0, nil).key()) }},
		{"GetRun/with 8 KB", func(w *world) operation {
			return calling(w.store.GetRun, w.create(eager, 0, &runlane.RunCreated{Payload: webhook()}).key())
		}},
		{"GetRuns", func(w *world) operation {
			return finding(many, runs, w.store.GetRuns, &lane.RunsQuery{Environment: "test", IDs: some(w)})
		}},
		{"GetRuns/without payload", func(w *world) operation {
			return finding(many, runs, w.store.GetRuns, &lane.RunsQuery{Environment: "test", IDs: some(w), WithoutPayload: true})
		}},
		{"GetRunByIdempotencyKey", func(w *world) operation {
			w.create(eager, 0, owned("key", []byte(`{}`)))
			return calling(w.store.GetRunByIdempotencyKey, key)
		}},
		{"GetRunBySingletonKey", func(w *world) operation {
			w.create(eager, 0, owned("key", []byte(`{}`)))
			return calling(w.store.GetRunBySingletonKey, key)
		}},
		{"ResetIdempotencyKey", func(w *world) operation {
			w.finished(owned("key", []byte(`{}`)), nil)
			return func(ctx context.Context) error { return w.store.ResetIdempotencyKey(ctx, key) }
		}},
		{"InspectRun", func(w *world) operation {
			w = w.must(w.bounded(1).enter(reservation))
			return calling(w.store.InspectRun, &lane.InspectQuery{RunKey: w.key(), Queue: w.queue})
		}},
		{"ListRuns/active", func(w *world) operation {
			return finding(runlane.DefaultPageLimit, itemsOf, w.withActive(4*many).store.ListRuns, &lane.RunQuery{PageQuery: benchPage})
		}},
		{"ListRuns/finished", func(w *world) operation {
			w.finished(nil, nil).load(w.template(), "finished", 4*many)
			return finding(runlane.DefaultPageLimit, itemsOf, w.store.ListRuns, &lane.RunQuery{PageQuery: benchPage, Statuses: terminalStatuses()})
		}},
		{"ListRunEvents", func(w *world) operation {
			w.finished(nil, []byte(`{}`))
			return finding(5, itemsOf, w.store.ListRunEvents, &lane.EventQuery{PageQuery: benchPage, RunID: w.run.ID})
		}},
	}
}

func itemsOf[T any](page *runlane.Page[T]) int { return len(page.Items) }

func scanCases() []methodCase {
	scan := func(name string, want int, method func(*Store, context.Context, *lane.DueQuery) (*runlane.Page[lane.RunRef], error), prepare func(w *world)) methodCase {
		return methodCase{name, func(w *world) operation {
			prepare(w)
			q := &lane.DueQuery{PageQuery: benchPage, At: w.now}
			if w.queue.Bounded() {
				q.Bounded = []runlane.Queue{w.queue}
			}
			return finding(want, itemsOf, func(ctx context.Context, q *lane.DueQuery) (*runlane.Page[lane.RunRef], error) {
				return method(w.store, ctx, q)
			}, q)
		}}
	}
	idle := func(*world) {}
	return []methodCase{
		scan("ListRunnableRuns", many, (*Store).ListRunnableRuns, func(w *world) { w.create(eager, 0, nil).ack().load(w.template(), "queued", many-1) }),
		scan("ListRunnableRuns/idle", 0, (*Store).ListRunnableRuns, idle),
		scan("ListRunsNeedingDispatch", many, (*Store).ListRunsNeedingDispatch, func(w *world) {
			w.bounded(2 * many)
			first := w.must(w.enter(0))
			first.load(first.template(), "waiting", many-1)
		}),
		scan("ListRunsNeedingDispatch/idle", 0, (*Store).ListRunsNeedingDispatch, func(w *world) { w.bounded(1) }),
		scan("ListRunsNeedingDelivery", many, (*Store).ListRunsNeedingDelivery, func(w *world) {
			w.create(eager, 0, nil).ack().claim(time.Minute, true).load(w.template(), "abandoned", many-1).pass(time.Minute)
		}),
		scan("ListRunsNeedingDelivery/idle", 0, (*Store).ListRunsNeedingDelivery, idle),
		scan("ListRunsNeedingRedelivery", many, (*Store).ListRunsNeedingRedelivery, func(w *world) {
			w.create(eager, 0, nil).ack().load(w.template(), "lost", many-1).pass(rows.RedeliverFirst)
		}),
		scan("ListRunsNeedingRedelivery/idle", 0, (*Store).ListRunsNeedingRedelivery, idle),
		scan("ListRunsNeedingCancellationFinalization", many, (*Store).ListRunsNeedingCancellationFinalization, func(w *world) {
			w.create(eager, 0, nil).ack().claim(time.Minute, true).other(&runlane.RunCancellationRequested{})
			w.load(w.template(), "cancelled", many-1).pass(time.Minute)
		}),
		scan("ListRunsNeedingCancellationFinalization/idle", 0, (*Store).ListRunsNeedingCancellationFinalization, idle),
	}
}

func outboxCases() []methodCase {
	until := func(w *world) time.Time { return w.now.Add(30 * time.Second) }
	failures := func(w *world) []lane.OutboxFailure {
		return []lane.OutboxFailure{{
			OutboxRef: w.rows[0].OutboxRef, Attempts: 1, Failure: runlane.Failure{Code: runlane.ErrTransportPublishFailed, Message: "no"},
			NextAvailableAt: w.now.Add(time.Second),
		}}
	}
	rows := func(rows []lane.OutboxMessage) int { return len(rows) }
	publishing := func(w *world) operation {
		c := &lane.MarkPublishedCommand{Environment: "test", At: w.now, Messages: refsOf(w.rows)}
		return func(ctx context.Context) error { return w.store.MarkOutboxMessagesPublished(ctx, c) }
	}
	return []methodCase{
		{"ClaimOutboxMessages", func(w *world) operation {
			w.create(deferred, 0, nil).load(w.template(), "deferred", many-1)
			return finding(many, rows, w.store.ClaimOutboxMessages, &lane.ClaimOutboxCommand{Environment: "test", At: w.now, ClaimUntil: until(w)})
		}},
		{"ClaimOutboxMessages/one by its id", func(w *world) operation {
			id := w.create(deferred, 0, nil).rows[0].ID
			return finding(1, rows, w.store.ClaimOutboxMessages, &lane.ClaimOutboxCommand{
				Environment: "test", At: w.now, ClaimUntil: until(w), IDs: []string{id},
			})
		}},
		{"ClaimOutboxMessages/idle", func(w *world) operation {
			return finding(0, rows, w.store.ClaimOutboxMessages, &lane.ClaimOutboxCommand{Environment: "test", At: w.now, ClaimUntil: until(w)})
		}},
		{"MarkOutboxMessagesPublished", func(w *world) operation { return publishing(w.create(eager, 0, nil)) }},
		{"MarkOutboxMessagesPublished/many", func(w *world) operation {
			w.create(deferred, 0, nil).load(w.template(), "deferred", many-1)
			claimed, err := w.store.ClaimOutboxMessages(w.Context(), &lane.ClaimOutboxCommand{Environment: "test", At: w.now, ClaimUntil: until(w)})
			if w.rows = claimed; err != nil || len(claimed) != many {
				w.Fatal(len(claimed), err)
			}
			return publishing(w)
		}},
		{"MarkOutboxMessagesFailed", func(w *world) operation {
			c := &lane.MarkFailedCommand{Environment: "test", At: w.now, Messages: failures(w.create(eager, 0, nil))}
			return func(ctx context.Context) error { return w.store.MarkOutboxMessagesFailed(ctx, c) }
		}},
		{"MarkOutboxMessagesDeadLettered", func(w *world) operation {
			c := &lane.MarkDeadLetteredCommand{Environment: "test", At: w.now, Messages: failures(w.create(eager, 0, nil))}
			return func(ctx context.Context) error { return w.store.MarkOutboxMessagesDeadLettered(ctx, c) }
		}},
		{"ListDeadLetters", func(w *world) operation {
			w.create(eager, 0, nil).bury().load(w.template(), "dead", many-1)
			return finding(many, itemsOf, w.store.ListDeadLetters, &lane.DeadLetterQuery{PageQuery: benchPage})
		}},
		{"RequeueDeadLetters", func(w *world) operation {
			id := w.create(eager, 0, nil).bury().rows[0].ID
			return finding(1, func(n int) int { return n }, w.store.RequeueDeadLetters, &lane.RequeueCommand{
				Environment: "test", IDs: []string{id}, At: w.now.Add(time.Second),
			})
		}},
	}
}

func scheduleCases() []methodCase {
	fire := func(w *world, n int) time.Time { return w.now.Add(time.Duration(n) * time.Minute) }
	return []methodCase{
		{"PutSchedule", func(w *world) operation {
			record := *w.registered().record()
			record.LastEvaluated = w.now
			return calling(w.store.PutSchedule, &lane.PutScheduleCommand{Environment: "test", Record: record})
		}},
		{"GetSchedule", func(w *world) operation { return calling(w.registered().store.GetSchedule, nightly) }},
		{"ListSchedules", func(w *world) operation {
			for i := range many {
				w.put(runlane.ScheduleRecord{ID: runlane.ScheduleID(fmt.Sprintf("schedule-%d", i)), DefinitionHash: "hash", RegisteredAt: w.now})
			}
			return finding(many, itemsOf, w.store.ListSchedules, &benchPage)
		}},
		{"ClaimScheduleOccurrence", func(w *world) operation {
			return calling(w.registered().store.ClaimScheduleOccurrence, &lane.ClaimOccurrenceCommand{
				ScheduleKey: nightly, OccurrenceID: "occ_1", FireTime: fire(w, 1), At: w.now, ClaimUntil: fire(w, 1),
			})
		}},
		{"CompleteScheduleOccurrence", func(w *world) operation {
			c := &lane.CompleteOccurrenceCommand{
				ScheduleKey: nightly, OccurrenceID: "occ_1", FireTime: fire(w, 1), RunIDs: []runlane.RunID{"run_1"},
				Token: w.registered().occurrence(fire(w, 1)),
			}
			return func(ctx context.Context) error { return w.store.CompleteScheduleOccurrence(ctx, c) }
		}},
		{"KeepRecord", func(w *world) operation {
			w.create(eager, 0, nil)
			return calling(w.store.KeepRecord, &lane.KeepCommand{
				RunKey: w.key(), CreatedAt: w.run.CreatedAt,
				Record: lane.StepRecord{Name: "charge", Kind: runlane.StepKindStep, Attempt: 1, At: w.now, Result: []byte(`{"id":"ch_1"}`)},
			})
		}},
		{"ListRecords", func(w *world) operation {
			w.create(eager, 0, nil)
			for i := range many {
				w.keep(fmt.Sprint(i), []byte(`{"id":"ch_1"}`))
			}
			return finding(many, itemsOf, w.store.ListRecords, &lane.RecordQuery{PageQuery: benchPage, RunID: w.run.ID, CreatedAt: w.run.CreatedAt})
		}},
		{"SendSignal", func(w *world) operation {
			w.create(eager, 0, nil)
			return calling(w.store.SendSignal, &lane.SignalCommand{
				RunKey: w.key(), CreatedAt: w.run.CreatedAt,
				Signal: lane.Signal{Name: "approved", ID: "1", Number: 1, SentAt: w.now, Body: []byte(`true`)},
			})
		}},
		{"BeginCall", func(w *world) operation {
			w.create(eager, 0, nil).ack().claim(time.Minute, true)
			return calling(w.store.BeginCall, &lane.CallCommand{
				RunKey: w.key(), CreatedAt: w.run.CreatedAt, LeaseToken: w.run.Lease.Token,
				Call: lane.RunCall{Name: "pages", TaskID: "bench.noop", Count: 1, At: w.now},
			})
		}},
		{"ReadCalls", func(w *world) operation {
			w.create(eager, 0, nil).ack().claim(time.Minute, true).call(1)
			there := func(read *lane.CallsRead) int { return len(read.Calls) }
			return finding(1, there, w.store.ReadCalls, &lane.CallQuery{RunKey: w.key()})
		}},
		{"NotifyEnd", func(w *world) operation {
			child := w.create(eager, 0, nil).ack().claim(time.Minute, true).call(2).ended()
			return calling(w.store.NotifyEnd, &lane.NotifyCommand{
				RunKey: child.key(), CreatedAt: child.run.CreatedAt, To: &lane.CallRead{
					RunID: w.run.ID, CreatedAt: w.run.CreatedAt, Name: "pages", Count: 2,
				},
			})
		}},
		{"ListRunsToNotify", func(w *world) operation {
			w.create(eager, 0, nil).ack().claim(time.Minute, true).call(many)
			for range many {
				w.ended()
			}
			return finding(many, itemsOf, w.store.ListRunsToNotify, &lane.DueQuery{PageQuery: benchPage, At: w.now})
		}},
		{"PutFlow", func(w *world) operation {
			return calling(w.store.PutFlow, w.flow("flow"))
		}},
		{"GetFlow", func(w *world) operation {
			w.startFlow("flow")
			there := func(f *lane.FlowRecord) int { return int(f.Version) }
			return finding(1, there, func(ctx context.Context, key *lane.FlowKey) (*lane.FlowRecord, error) {
				return w.store.GetFlow(ctx, &lane.FlowRead{FlowKey: *key})
			}, &lane.FlowKey{Environment: "test", FlowID: "flow"})
		}},
		{"ListFlows", func(w *world) operation {
			for i := range many {
				w.startFlow(runlane.FlowID(fmt.Sprint("flow ", i)))
			}
			return finding(many, itemsOf, w.store.ListFlows, &lane.FlowQuery{PageQuery: benchPage})
		}},
		{"ReadMail", func(w *world) operation {
			w.create(eager, 0, nil)
			if _, err := w.store.SendSignal(w.Context(), &lane.SignalCommand{
				RunKey: w.key(), CreatedAt: w.run.CreatedAt,
				Signal: lane.Signal{Name: "approved", ID: "1", Number: 1, SentAt: w.now, Body: []byte(`true`)},
			}); err != nil {
				w.Fatal(err)
			}
			sent := func(m *lane.Mail) int { return len(m.Signals) }
			return finding(1, sent, w.store.ReadMail, &lane.MailQuery{RunKey: w.key(), Names: []string{"approved"}})
		}},
		{"ListScheduleOccurrences", func(w *world) operation {
			w.registered()
			for i := range many {
				at := fire(w, i+1)
				if err := w.completeOccurrence(at, w.occurrence(at), "run_1"); err != nil {
					w.Fatal(err)
				}
			}
			return finding(many, itemsOf, w.store.ListScheduleOccurrences, &lane.OccurrenceQuery{PageQuery: benchPage, ScheduleID: nightly.ScheduleID})
		}},
	}
}
