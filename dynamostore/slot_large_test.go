package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/dynamostore/internal/item"
	"github.com/runlane/runlane-go/dynamostore/internal/rows"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/memlane"
)

// occupy lets others have reservations on the numbers of the world's partition from one to another, that one not included.
func (w *world) occupy(from, until int) *world {
	w.Helper()
	p := rows.Partition{Environment: "test", Queue: "default", Hash: rows.Hash(w.group)}
	var batch []types.WriteRequest
	for n := from; n < until; n++ {
		id := runlane.RunID(fmt.Sprintf("run_01ARZ3NDEKTSV4RRFFQ69G%04d", n))
		slot, err := rows.Marshal(rows.SlotItem{PK: p.PK(), SK: rows.SlotSK(n), Run: id, Until: rows.ToMillis(w.now.Add(time.Hour))})
		if err != nil {
			w.Fatal(err)
		}
		batch = append(batch, types.WriteRequest{PutRequest: &types.PutRequest{Item: slot}})
		if len(batch) == batchWrites || n+1 == until {
			if err := writeBatch(w.Context(), w.store.db.Client.(*dynamodb.Client), w.store.db.Name, batch); err != nil {
				w.Fatal(err)
			}
			batch = nil
		}
	}
	return w
}

// turnedAway triggers into a full queue as core does: with a slot, without one, and then once more for a slot.
func (w *world) turnedAway() *world {
	w.Helper()
	if _, err := w.enter(reservation); !errors.Is(err, runlane.ConflictQueueCapacity) {
		w.Fatalf("%v, want a full queue", err)
	}
	run := w.must(w.enter(0))
	run.wantOutcome(run.reserve(reservation), lane.LostCapacity)
	return run
}

// A trigger into a full queue of a large limit took 46 units of one partition key, which carries 3,000 a second.
func TestHazard43_LargeLimit_IsNotReadWhole(t *testing.T) {
	w := newWorld(t).bounded(runlane.MaxQueueConcurrency).occupy(0, runlane.MaxQueueConcurrency)
	before := w.store.Stats().Operations["read slots"]
	run := w.turnedAway()
	if got := w.store.Stats().Operations["read slots"].Minus(before).ReadUnits; got > 8 {
		t.Errorf("a trigger into a full queue read slots for %v units, want at most 8", got)
	}
	before = w.store.Stats().Operations["read slots"]
	run.wantOutcome(run.claimFor(time.Minute, true), lane.LostCapacity)
	if got := w.store.Stats().Operations["read slots"].Minus(before).ReadUnits; got > 8 {
		t.Errorf("a claim that looked for a slot read %v units, want at most 8", got)
	}
}

// With half of the numbers unused each window shows some.
func TestReserve_LargeLimitWithRoom_FindsANumberInOneWindow(t *testing.T) {
	w := newWorld(t).bounded(runlane.MaxQueueConcurrency)
	for from := 0; from < runlane.MaxQueueConcurrency; from += rows.SlotWindow {
		w.occupy(from, min(from+rows.SlotWindow/2, runlane.MaxQueueConcurrency))
	}
	for range 5 {
		run := w.must(w.enter(0))
		run.wantOutcome(run.reserve(reservation), lane.Acquired)
		if got := run.meter.Stats().Operations["read slots"].ReadUnits; got > 3 {
			t.Errorf("read slots for %v units, want at most 3", got)
		}
		if n := run.item().Slot - 1; n%rows.SlotWindow < rows.SlotWindow/2 || n >= runlane.MaxQueueConcurrency {
			t.Errorf("took number %d, which was occupied", n)
		}
	}
}

// A limit of 1,000 becomes 900 while higher numbers are taken: unused numbers below it may not be taken, as long as they are not among the
// lowest for which there is room.
func TestHazard21_LargeLimitLowered_OnlyTheLowestNumbersAreTaken(t *testing.T) {
	w := newWorld(t).bounded(900).occupy(0, 800).occupy(950, 1000) // room for 50: 800 to 849
	for range 3 {
		run := w.must(w.enter(0))
		run.wantOutcome(run.reserve(reservation), lane.Acquired)
		if n := run.item().Slot - 1; n < 800 || n >= 850 {
			t.Errorf("took number %d, want one of the lowest 50 that are unused", n)
		}
	}
	w.occupy(800, 850) // 900 are taken, and 850 to 899 are unused
	run := w.must(w.enter(0))
	run.wantOutcome(run.reserve(reservation), lane.LostCapacity)
	run.wantOutcome(run.claimFor(time.Minute, true), lane.LostCapacity)
}

// A run whose reservation ended at a number at or above a limit that was lowered since takes another one, and gives up its own.
func TestReserve_OwnNumberAboveALargeLimit_IsGivenUp(t *testing.T) {
	w := newWorld(t).bounded(200).occupy(0, 150)
	run, err := w.enter(reservation)
	for tries := 0; errors.Is(err, runlane.ConflictQueueCapacity) && tries < 100; tries++ { // it may see occupied numbers alone
		run, err = w.enter(reservation)
	}
	if own := w.must(run, err).item().Slot - 1; own < 150 {
		t.Fatalf("the run got number %d, which was occupied", own)
	}
	run.bounded(150).pass(2 * reservation) // the others' reservations last an hour
	run.wantOutcome(run.reserve(reservation), lane.LostCapacity)
	run.pass(time.Hour)
	run.wantOutcome(run.reserve(reservation), lane.Acquired)
	if n := run.item().Slot - 1; n >= run.queue.Concurrency {
		t.Errorf("took number %d under a limit of %d", n, run.queue.Concurrency)
	}
	run.checked()
}

// refusingSlots is a client to which everything about slots is refused for its rate, in the way that a hot partition key is.
type refusingSlots struct {
	API

	reads, writes atomic.Bool
}

func (c *refusingSlots) Query(ctx context.Context, in *dynamodb.QueryInput, o ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	if strings.Contains(item.TextOf(in.ExpressionAttributeValues[":pk"]), ":slot:") && c.reads.Load() {
		return nil, &types.ProvisionedThroughputExceededException{Message: aws.String("hot")}
	}
	return c.API.Query(ctx, in, o...)
}

func (c *refusingSlots) TransactWriteItems(
	ctx context.Context, in *dynamodb.TransactWriteItemsInput, o ...func(*dynamodb.Options),
) (*dynamodb.TransactWriteItemsOutput, error) {
	refused := false
	reasons := make([]types.CancellationReason, len(in.TransactItems))
	for i := range in.TransactItems {
		reasons[i].Code = aws.String("None")
		if put := in.TransactItems[i].Put; put != nil && strings.Contains(item.TextOf(put.Item[item.PK]), ":slot:") && c.writes.Load() {
			reasons[i].Code, refused = aws.String("ThrottlingError"), true
		}
	}
	if refused {
		return nil, &types.TransactionCanceledException{CancellationReasons: reasons}
	}
	return c.API.TransactWriteItems(ctx, in, o...)
}

// Slots are one partition key, and a busy one is throttled. The run is made without a slot then, and waits for one.
func TestHazard44_ThrottledSlots_TheRunIsCreatedAndWaits(t *testing.T) {
	t.Parallel()
	for name, refuse := range map[string]func(c *refusingSlots, to bool){
		"reads":  func(c *refusingSlots, to bool) { c.reads.Store(to) },
		"writes": func(c *refusingSlots, to bool) { c.writes.Store(to) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			client := &refusingSlots{API: w.store.db.Client}
			store := New(client, w.store.db.Name, &Options{Now: func() time.Time { return w.now }, RequestTimeout: w.store.db.Timeout})
			l, err := lane.New(store, memlane.NewTransport(nil), nil)
			if err != nil {
				t.Fatal(err)
			}
			task := runlane.NewTask("slot.throttled", &runlane.TaskOptions[struct{}]{Queue: runlane.Queue{Name: "narrow", Concurrency: 2}})
			rt, err := core.Open(t.Context(), l, &core.Options{
				Environment: "test", Logger: slog.New(slog.DiscardHandler), World: &core.World{Now: func() time.Time { return w.now }},
				Handlers: []runlane.Handler{task.Handle(func(context.Context, *runlane.Attempt, struct{}) error { return nil })},
			})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = rt.Close(context.Background()) })
			refuse(client, true)
			result, err := rt.Trigger(t.Context(), task.With(struct{}{}), nil)
			if err != nil {
				t.Fatalf("the trigger failed for the sake of a slot: %v", err)
			}
			w.run = result.Run
			if got := w.marker(); !strings.HasPrefix(got, "d") {
				t.Errorf("marker %s, want the run to wait for a slot", got)
			}
			refuse(client, false)
			if _, err := rt.Tick(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			if w.item().Slot == 0 {
				t.Error("the tick reserved no slot when there was no throttle any more")
			}
			w.checked()
		})
	}
}
