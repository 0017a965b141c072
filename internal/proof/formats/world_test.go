package formats_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/dynamostore"
	"github.com/runlane/runlane-go/internal/proof/awstest"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/sqstransport"
)

const environment runlane.Environment = "recorded"

var (
	narrow  = runlane.Queue{Name: "narrow", Concurrency: 1}
	ordered = runlane.Queue{Name: "ordered"}
)

// The tasks. What a run's handler does is decided run by run; by default it succeeds without an output.
var (
	report = runlane.NewTask("report", &runlane.TaskOptions[json.RawMessage]{
		Retry: runlane.Retry{MaxAttempts: 5, Backoff: runlane.Fixed(time.Hour), NoJitter: true},
	})
	importing = runlane.NewTask("import", &runlane.TaskOptions[json.RawMessage]{
		Queue: narrow, Timeout: time.Minute,
		Retry: runlane.Retry{MaxAttempts: 2, Backoff: runlane.Fixed(time.Hour), NoJitter: true},
	})
	shipping = runlane.NewTask("ship", &runlane.TaskOptions[json.RawMessage]{Queue: ordered})
	greeting = runlane.NewTask("greet", &runlane.TaskOptions[json.RawMessage]{IdempotencyTTL: runlane.WhileActive})
)

func schedules() []runlane.Schedule {
	payload := json.RawMessage(`{"by":"schedule"}`)
	return []runlane.Schedule{
		{ID: "claimed", When: runlane.Every(time.Hour), Call: report.With(payload)},
		{ID: "halfway", When: runlane.Every(time.Hour), Call: report.With(payload)},
		{ID: "hourly", When: runlane.Every(time.Hour), Call: report.With(payload)},
		{ID: "paused", When: runlane.Every(time.Hour), Call: report.With(payload)},
		{ID: "pending", When: runlane.Every(time.Hour), Call: report.With(payload), Overlap: runlane.OverlapQueueLatest},
		{
			ID: "skipping", When: runlane.Every(10 * time.Minute), Call: report.With(payload),
			Misfire: runlane.Misfire{Policy: runlane.MisfireSkip, Tolerance: time.Minute},
		},
	}
}

// world is a runtime on a separate table, at its own instants. Nothing in it happens by itself.
type world struct {
	testing.TB
	client  *dynamodb.Client
	table   string
	api     *mortal
	store   *dynamostore.Store
	mailbox *mailbox
	rt      *core.Runtime
	other   *core.Runtime // takes turns with rt, where it is set

	millis  atomic.Int64
	ids     int
	handler map[runlane.RunID]func(context.Context, *runlane.Attempt) error
	dying   runlane.ScheduleID // the tick dies before it can complete an occurrence of this schedule
}

// openWorld loads items into a new table and opens a runtime on it.
func openWorld(t testing.TB, at time.Time, items []item) *world {
	t.Helper()
	client := awstest.DynamoDB(t)
	w := &world{TB: t, client: client, table: awstest.Table(t, client), handler: map[runlane.RunID]func(context.Context, *runlane.Attempt) error{}}
	w.millis.Store(at.UnixMilli())
	w.load(items)
	w.api = &mortal{API: client, deletes: -1}
	w.store = dynamostore.New(w.api, w.table, &dynamostore.Options{Now: w.now, RequestTimeout: awstest.RequestTimeout})
	w.mailbox = newMailbox(w.now)
	w.rt = w.runtime(&mortalStorage{Storage: w.store, world: w})
	return w
}

// runtime opens one on a storage, with the world's clock and mailbox.
func (w *world) runtime(storage lane.Storage) *core.Runtime {
	w.Helper()
	transport, err := sqstransport.New(w.mailbox, queueURLs, nil)
	if err != nil {
		w.Fatal(err)
	}
	l, err := lane.New(storage, transport, nil)
	if err != nil {
		w.Fatal(err)
	}
	rt, err := core.Open(w.Context(), l, &core.Options{
		Environment: environment, Schedules: schedules(), Logger: slog.New(slog.DiscardHandler),
		Handlers: []runlane.Handler{
			report.Handle(w.handle), importing.Handle(w.handle), shipping.Handle(w.handle), greeting.Handle(w.handle),
		},
		World: &core.World{Now: w.now, Rand: func() uint64 { return 1 << 63 }, NewID: w.newID},
	})
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { _ = rt.Close(context.Background()) })
	return rt
}

func (w *world) now() time.Time       { return time.UnixMilli(w.millis.Load()).UTC() }
func (w *world) pass(d time.Duration) { w.millis.Add(d.Milliseconds()) }

// newID counts: nothing here happens at once, but for ticks, which make no ids.
func (w *world) newID(prefix string) string {
	w.ids++
	return fmt.Sprintf("%s%026d", prefix, w.ids)
}

func (w *world) handle(ctx context.Context, a *runlane.Attempt, _ json.RawMessage) error {
	if do := w.handler[a.Run.ID]; do != nil {
		delete(w.handler, a.Run.ID)
		return do(ctx, a)
	}
	return nil
}

// mortal is a client whose process may lose the right to delete after a number of deletions; -1 is any.
type mortal struct {
	dynamostore.API
	deletes int
}

// DeleteItem implements dynamostore.API.
func (m *mortal) DeleteItem(
	ctx context.Context, in *dynamodb.DeleteItemInput, o ...func(*dynamodb.Options),
) (*dynamodb.DeleteItemOutput, error) {
	if m.deletes == 0 {
		return nil, &smithy.GenericAPIError{Code: "AccessDeniedException", Fault: smithy.FaultClient}
	}
	if m.deletes > 0 {
		m.deletes--
	}
	return m.API.DeleteItem(ctx, in, o...)
}

// mortalStorage is a storage whose process dies before it can complete an occurrence.
type mortalStorage struct {
	lane.Storage
	world *world
}

// Unwrap lets optional abilities be found.
func (s *mortalStorage) Unwrap() lane.Storage { return s.Storage }

// CompleteScheduleOccurrence implements lane.Storage.
func (s *mortalStorage) CompleteScheduleOccurrence(ctx context.Context, c *lane.CompleteOccurrenceCommand) error {
	if s.world.dying == c.ScheduleID {
		return &runlane.Error{Code: runlane.ErrStorageUnavailable, Message: "the process is dead"}
	}
	return s.Storage.CompleteScheduleOccurrence(ctx, c)
}

func (w *world) load(items []item) {
	w.Helper()
	for len(items) > 0 {
		part := items[:min(len(items), 25)]
		items = items[len(part):]
		var writes []types.WriteRequest
		for _, it := range part {
			writes = append(writes, types.WriteRequest{PutRequest: &types.PutRequest{Item: it}})
		}
		out, err := w.client.BatchWriteItem(w.Context(), &dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{w.table: writes}})
		if err != nil || len(out.UnprocessedItems) > 0 {
			w.Fatal(out, err)
		}
	}
}

// items is the whole table, by key.
func (w *world) items() (all []item) {
	w.Helper()
	pages := dynamodb.NewScanPaginator(w.client, &dynamodb.ScanInput{TableName: &w.table, ConsistentRead: aws.Bool(true)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(w.Context())
		if err != nil {
			w.Fatal(err)
		}
		all = append(all, page.Items...)
	}
	sortItems(all)
	return all
}

func (w *world) key(id runlane.RunID) lane.RunKey {
	return lane.RunKey{Environment: environment, RunID: id}
}

func (w *world) get(id runlane.RunID) *runlane.Run {
	w.Helper()
	run, err := w.rt.Runs().Get(w.Context(), id)
	if err != nil {
		w.Fatal(err)
	}
	return run
}

// trigger makes a run. The mailbox decides about its wakeup.
func (w *world) trigger(call runlane.Call, id runlane.RunID, options *runlane.TriggerOptions) {
	w.Helper()
	o := runlane.TriggerOptions{}
	if options != nil {
		o = *options
	}
	o.RunID = id
	result, err := w.rt.Trigger(w.Context(), call, &o)
	if err != nil || result.Outcome != runlane.TriggerCreated {
		w.Fatalf("%s: %+v, %v", id, result, err)
	}
	w.pass(time.Second)
}

// deliver hands a run's wakeup to a worker.
func (w *world) deliver(id runlane.RunID, do func(context.Context, *runlane.Attempt) error) {
	w.Helper()
	w.handler[id] = do
	result, err := w.rt.ExecuteDelivery(w.Context(), lane.Wakeup{RunKey: w.key(id), RequestedAt: w.now()}, &core.DeliveryOptions{WorkerID: "worker"})
	if err != nil || result.Ignored != "" {
		w.Fatalf("%s: %+v, %v", id, result, err)
	}
	w.pass(time.Second)
}

// claim is what a worker writes before it dies.
func (w *world) claim(id runlane.RunID, lease time.Duration, queue runlane.Queue) *runlane.Run {
	w.Helper()
	run := w.get(id)
	c := &lane.ClaimCommand{At: w.now(), ByWakeup: true, Slot: queue.Bounded(), Transition: w.transition(run, queue,
		&runlane.RunLeaseClaimed{Lease: runlane.Lease{Token: w.newID("lease_"), WorkerID: "worker", ExpiresAt: w.now().Add(lease)}},
		&runlane.RunStarted{Attempt: run.Counters.Attempts + 1})}
	got, err := w.store.ClaimRunLease(w.Context(), c)
	if err != nil || got.Outcome != lane.Acquired {
		w.Fatalf("%s: %+v, %v", id, got, err)
	}
	w.pass(time.Second)
	return c.Projected
}

func (w *world) transition(run *runlane.Run, queue runlane.Queue, bodies ...runlane.EventBody) lane.Transition {
	w.Helper()
	t := lane.Transition{ExpectedSequence: run.EventSequence, Queue: queue}
	for _, body := range bodies {
		t.Events = append(t.Events, runlane.Event{
			RunID: run.ID, Environment: environment, OccurredAt: w.now(), Actor: runlane.Actor{Type: runlane.ActorWorker, ID: "worker"}, Body: body,
		})
	}
	var err error
	if t.Projected, err = core.ProjectRunEvents(run, run.EventSequence, t.Events...); err != nil {
		w.Fatal(err)
	}
	return t
}

func (w *world) tick() *core.TickResult {
	w.Helper()
	result, err := w.rt.Tick(w.Context(), &core.TickOptions{Deadline: w.now().Add(time.Minute)})
	if err != nil {
		w.Fatal(err)
	}
	return result
}

func (w *world) outboxID(id runlane.RunID) string {
	w.Helper()
	seen, err := w.store.InspectRun(w.Context(), &lane.InspectQuery{RunKey: w.key(id)})
	if err != nil || seen.Delivery == nil {
		w.Fatalf("%s: %+v, %v", id, seen, err)
	}
	return seen.Delivery.ID
}
