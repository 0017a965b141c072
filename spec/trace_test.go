package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/dynamostore"
	"github.com/runlane/runlane-go/internal/proof/awstest"
	"github.com/runlane/runlane-go/lane"
)

// unit is the model's unit of time in the real engine: its shortest distances then become one to four units.
const unit = 150 * time.Second

var began = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// engine is a real runtime on a table, each write of which is shown to an acceptor.
type engine struct {
	*testing.T
	dynamostore.API // of the store; writes are shown

	mu       sync.Mutex
	table    string
	now      time.Time
	runs     []runlane.RunID
	acceptor *acceptor
	last     state
	writes   int
	broken   bool // its moves to p and l go to x instead
	over     bool // it left what the model's times can express
	refused  []string

	store   *dynamostore.Store
	runtime *core.Runtime
	mailbox *mailbox
	queue   runlane.Queue
	task    *runlane.Task[string]
}

// mailbox is a transport that takes every wakeup. The test delivers what it likes of them, as often as it likes.
type mailbox struct {
	lane.UnimplementedTransport
	mu   sync.Mutex
	sent map[runlane.RunID]bool
}

func (m *mailbox) PublishWakeups(_ context.Context, c *lane.PublishCommand) ([]lane.PublishOutcome, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	outcomes := make([]lane.PublishOutcome, len(c.Attempts))
	for i := range outcomes {
		outcomes[i].Type = lane.Published
		m.sent[c.Attempts[i].Wakeup.RunID] = true
	}
	return outcomes, nil
}

func (m *mailbox) has(id runlane.RunID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.sent[id]
}

func newEngine(t *testing.T, limit int8) *engine {
	t.Helper()
	w := &world{
		runs: 2, processes: 3, limits: []int8{limit, limit}, maxAbandoned: 99, maxFailures: 99, reservation: 2, deferred: true, cancel: true,
		retry: true, loss: true, duplicates: true, stops: true, doubling: true, polled: true,
	}
	client := awstest.DynamoDB(t)
	e := &engine{T: t, API: client, table: awstest.Table(t, client), now: began, acceptor: newAcceptor(w)}
	e.mailbox = &mailbox{sent: map[runlane.RunID]bool{}}
	e.queue = runlane.Queue{Name: "small", Concurrency: int(limit)}
	if limit > 0 {
		e.queue.DispatchTimeout = 2 * unit
	}
	e.store = dynamostore.New(e, e.table, &dynamostore.Options{Now: e.clock, RequestTimeout: awstest.RequestTimeout})
	l, err := lane.New(e.store, e.mailbox, nil)
	if err != nil {
		t.Fatal(err)
	}
	e.task = runlane.NewTask("small", &runlane.TaskOptions[string]{
		Queue: e.queue, Retry: runlane.Retry{MaxAttempts: 100, Backoff: steady{}, NoJitter: true},
	})
	outcome := func(_ context.Context, a *runlane.Attempt, _ string) error {
		if a.Number%2 == 1 {
			return errors.New("again")
		}
		return nil
	}
	e.runtime, err = core.Open(t.Context(), l, &core.Options{
		Environment: "test", Handlers: []runlane.Handler{e.task.Handle(outcome)}, Logger: slog.New(slog.DiscardHandler),
		World: &core.World{Now: e.clock}, MaxAbandoned: -1,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.runtime.Close(context.Background()) })
	return e
}

func (e *engine) clock() time.Time { return e.now }

func (e *engine) TransactWriteItems(
	ctx context.Context, in *dynamodb.TransactWriteItemsInput, o ...func(*dynamodb.Options),
) (*dynamodb.TransactWriteItemsOutput, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	out, err := e.API.TransactWriteItems(ctx, in, o...)
	e.show()
	return out, err
}

func (e *engine) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, o ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if to, ok := in.ExpressionAttributeValues[":dp"].(*types.AttributeValueMemberS); ok && e.broken {
		to.Value = strings.Replace(strings.Replace(to.Value, ":p:", ":x:", 1), ":l:", ":x:", 1)
	}
	out, err := e.API.UpdateItem(ctx, in, o...)
	e.show()
	return out, err
}

// show gives the acceptor what is stored now.
func (e *engine) show() {
	if e.over || len(e.refused) > 0 {
		return
	}
	o := e.observe()
	if o == e.last || e.over {
		return
	}
	e.writes++
	if !e.acceptor.accepts(o) {
		e.refused = append(e.refused, fmt.Sprintf("from%s\nto  %s", &e.last, &o))
	}
	e.last = o
}

// stored is an item of any kind, as far as the model knows it.
type stored struct {
	PK         string `dynamodbav:"pk"`
	SK         string `dynamodbav:"sk"`
	Status     string `dynamodbav:"st"`
	RunAt      int64  `dynamodbav:"ra"`
	Lease      int64  `dynamodbav:"le"`
	Reserved   int64  `dynamodbav:"de"`
	Slot       int8   `dynamodbav:"sn"`
	Log        int64  `dynamodbav:"ld"`
	Index      int    `dynamodbav:"li"`
	DueP       string `dynamodbav:"dp"`
	DueA       string `dynamodbav:"da"`
	Holder     string `dynamodbav:"ru"`
	Until      int64  `dynamodbav:"un"`
	Deliveries []struct {
		Status     string `dynamodbav:"st"`
		Available  int64  `dynamodbav:"av"`
		Next       int64  `dynamodbav:"nx"`
		ClaimUntil int64  `dynamodbav:"cu"`
		Published  int64  `dynamodbav:"pa"`
		First      int64  `dynamodbav:"pf"`
	} `dynamodbav:"dl"`
}

// units are so many from now on, rounded up: what lies within the coming unit is reached with it.
func (e *engine) units(at int64, floor int8) int8 {
	left := time.UnixMilli(at).Sub(e.now)
	n := int64(left / unit)
	if left > 0 && left%unit != 0 {
		n++
	}
	return int8(max(min(n, 100), int64(floor))) // within bounds
}

var statuses = map[string]int8{
	"queued": queued, "scheduled": scheduled, "retrying": waiting, "released": waiting, "running": running,
	"cancellation_requested": cancelRequested, "succeeded": terminal, "failed": terminal, "cancelled": terminal,
}

var rowStates = map[string]int8{"pending": pending, "claimed": claimed, "published": published, "failed": failed, "dead_lettered": dead}

// observe reads the whole table, which is small, and projects it into the model.
func (e *engine) observe() (o state) {
	out, err := e.API.Scan(context.Background(), &dynamodb.ScanInput{TableName: &e.table})
	if err != nil {
		e.Error(err)
		return o
	}
	var items []stored
	if err := attributevalue.UnmarshalListOfMaps(out.Items, &items); err != nil {
		e.Error(err)
		return o
	}
	for i := range items {
		if id, ok := strings.CutPrefix(items[i].PK, "test:run:"); ok && items[i].SK == "run" && !slices.Contains(e.runs, runlane.RunID(id)) {
			e.runs = append(e.runs, runlane.RunID(id))
		}
	}
	for i := range items {
		it := &items[i]
		if strings.HasPrefix(it.PK, "test:slot:") {
			v := slot{e.number(it.Holder) + 1, held}
			if it.Until != 0 {
				v.until = e.units(it.Until, 0)
			}
			n, _ := strconv.Atoi(it.SK)
			o.slots[n] = v
		}
		if id, ok := strings.CutPrefix(it.PK, "test:run:"); ok && it.SK == "run" {
			o.runs[e.number(id)] = e.project(it, items)
		}
	}
	return seen(&o)
}

func (e *engine) number(id string) int8 {
	return int8(slices.Index(e.runs, runlane.RunID(id))) // of two runs
}

func (e *engine) project(it *stored, items []stored) item {
	r := item{status: statuses[it.Status], runAt: e.units(it.RunAt, 0), lease: e.units(it.Lease, 0), slot: it.Slot}
	if it.Reserved != 0 {
		r.reserved = e.units(it.Reserved, 0)
	}
	if kind, _, ok := strings.Cut(strings.TrimPrefix(it.DueP, "test:"), ":"); ok {
		r.kind = int8(strings.Index("-qoxwdpl", kind)) // of eight
		if at, err := strconv.ParseInt(strings.Split(it.DueA, ":")[0], 10, 64); err == nil && r.kind != slotless && r.kind != deadLetter {
			r.at = e.units(at, -patience)
		}
	}
	for i := range items {
		if items[i].PK != it.PK || it.Log == 0 || items[i].SK != fmt.Sprintf("log:%010d", it.Log) {
			continue
		}
		row := items[i].Deliveries[it.Index]
		r.row = rowStates[row.Status]
		switch r.row {
		case claimed:
			r.rowAt = e.units(max(row.ClaimUntil, row.Available), 0)
		case published:
			sent := max(row.Published, row.Available)
			e.over = e.over || row.First != 0 && row.First != row.Published // distances double from here on
			r.rowAt = e.units(sent+(10*time.Minute).Milliseconds(), 0)
		default:
			r.rowAt = e.units(max(row.Next, row.Available), 0)
		}
	}
	return r
}

// act does something at random and says what.
func (e *engine) act(random *rand.Rand) (string, error) {
	ctx := e.Context()
	if n := len(e.runs); n == 0 || n < 2 && random.IntN(4) == 0 {
		options := &runlane.TriggerOptions{}
		if random.IntN(3) == 0 {
			options.Delay = unit
		}
		_, err := e.runtime.Trigger(ctx, e.task.With("x"), options)
		return "trigger", err
	}
	id := e.runs[random.IntN(len(e.runs))]
	switch random.IntN(8) {
	case 0, 1:
		_, err := e.runtime.Tick(ctx, nil)
		return "tick", err
	case 2, 3, 4:
		e.now = e.now.Add(unit)
		e.acceptor.passes()
		e.last = e.observe()
		return "time", nil
	case 5:
		if random.IntN(4) == 0 {
			_, err := e.runtime.Runs().Cancel(ctx, id, nil)
			if errors.Is(err, runlane.ErrValidationFailed) {
				err = nil // it had ended
			}
			return "cancel", err
		}
		return "a worker that dies", e.die(ctx, id)
	default:
		if !e.mailbox.has(id) {
			return "nothing", nil
		}
		_, err := e.runtime.ExecuteDelivery(ctx, lane.Wakeup{RunKey: lane.RunKey{Environment: "test", RunID: id}, Queue: e.queue.Name, RequestedAt: e.now},
			&core.DeliveryOptions{Deadline: e.now.Add(2*unit - 5*time.Second)})
		return "wakeup", err
	}
}

// die claims a run for a worker that does not come back.
func (e *engine) die(ctx context.Context, id runlane.RunID) error {
	run, err := e.store.GetRun(ctx, lane.RunKey{Environment: "test", RunID: id})
	if err != nil {
		return err
	}
	if at, ok := lane.RunnableAt(run); !ok || at.After(e.now) {
		return nil
	}
	header := runlane.Event{RunID: id, Environment: "test", OccurredAt: e.now, Actor: runlane.SystemActor}
	claim, start := header, header
	claim.Body = &runlane.RunLeaseClaimed{Lease: runlane.Lease{Token: fmt.Sprint("lease_", run.EventSequence), WorkerID: "w", ExpiresAt: e.now.Add(2 * unit)}}
	start.Body = &runlane.RunStarted{Attempt: run.Counters.Attempts + 1}
	c := &lane.ClaimCommand{At: e.now, ByWakeup: e.mailbox.has(id), Slot: e.queue.Bounded(), Transition: lane.Transition{
		ExpectedSequence: run.EventSequence, Events: []runlane.Event{claim, start}, Queue: e.queue,
	}}
	if c.Projected, err = core.ProjectRunEvents(run, run.EventSequence, c.Events...); err != nil {
		return err
	}
	_, err = e.store.ClaimRunLease(ctx, c)
	return err
}

// follow lets the engine act until the model refuses a write, and returns what it did.
func (e *engine) follow(seed uint64) (done []string) {
	e.Helper()
	random := rand.New(rand.NewPCG(seed, 7))
	for range 40 {
		what, err := e.act(random)
		if done = append(done, what); err != nil && !e.broken {
			e.Fatalf("%v: %v", done, err)
		}
		if len(e.refused) > 0 || e.over {
			break
		}
	}
	return done
}

// The real engine on small worlds: every write that it makes is a step of the model.
func TestTraces_OfTheRealEngine_AreAccepted(t *testing.T) {
	t.Parallel()
	awstest.Config(t)
	for _, limit := range []int8{0, 1} {
		for seed := range uint64(12) {
			t.Run(fmt.Sprintf("limit %d, seed %d", limit, seed), func(t *testing.T) {
				t.Parallel()
				e := newEngine(t, limit)
				done := e.follow(seed)
				if len(e.refused) > 0 {
					t.Fatalf("after %v, no step of the model leads\n%s", done, e.refused[0])
				}
				t.Logf("%d writes accepted, the model in one of %d states; %v", e.writes, len(e.acceptor.now.States), done)
				if e.writes < 3 {
					t.Errorf("only %d writes", e.writes)
				}
			})
		}
	}
}

// An engine that moves markers elsewhere than the rules say is found out.
func TestTraces_OfABrokenEngine_AreRefused(t *testing.T) {
	t.Parallel()
	awstest.Config(t)
	for seed := range uint64(12) {
		e := newEngine(t, 0)
		e.broken = true
		if done := e.follow(seed); len(e.refused) > 0 {
			t.Logf("after %v refused\n%s", done, e.refused[0])
			return
		}
	}
	t.Error("every trace was accepted")
}

// steady waits a unit after each failure.
type steady struct{}

func (steady) Delay(int) time.Duration { return unit }
