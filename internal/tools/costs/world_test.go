package costs_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/dynamostore"
	"github.com/runlane/runlane-go/internal/proof/awstest"
	"github.com/runlane/runlane-go/internal/tools/costs"
	"github.com/runlane/runlane-go/lane"
)

// world is a runtime over a table of DynamoDB Local, and a transport that counts the requests SQS would get. Its time passes when a test
// lets it; every wakeup is delivered as a bridge would.
type world struct {
	*testing.T
	rt        *core.Runtime
	store     *dynamostore.Store
	wire      *wire
	idle      dynamostore.Usage // of a tick with nothing to do
	used      costs.Use
	delivered int
}

// clock is shared by the runtime and the transport.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) reach(at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if at.After(c.now) {
		c.now = at
	}
}

// wire keeps wakeups until they are due.
type wire struct {
	lane.UnimplementedTransport
	*clock
	mu       sync.Mutex
	requests int
	pending  []arrival
}

type arrival struct {
	at     time.Time
	wakeup lane.Wakeup
}

func (*wire) Capabilities() lane.TransportCapabilities {
	return lane.TransportCapabilities{NativeDelay: true}
}
func (*wire) Start(context.Context, lane.StartOptions) error { return nil }
func (*wire) Close(context.Context) error                    { return nil }
func (*wire) Queues() []runlane.QueueName                    { return nil }
func (*wire) MaxDelay(runlane.QueueName) time.Duration       { return 15 * time.Minute }

func (w *wire) PublishWakeups(_ context.Context, c *lane.PublishCommand) ([]lane.PublishOutcome, error) {
	wakeups := make([]lane.DelayedWakeup, len(c.Attempts))
	for i := range c.Attempts {
		wakeups[i].Wakeup = c.Attempts[i].Wakeup
	}
	return w.SendWakeups(context.Background(), wakeups)
}

func (w *wire) SendWakeups(_ context.Context, wakeups []lane.DelayedWakeup) ([]lane.PublishOutcome, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.requests += (len(wakeups) + costs.BatchSize - 1) / costs.BatchSize
	outcomes := make([]lane.PublishOutcome, len(wakeups))
	for i, wakeup := range wakeups {
		w.pending = append(w.pending, arrival{w.Now().Add(wakeup.Delay), wakeup.Wakeup})
		outcomes[i].Type = lane.Published
	}
	return outcomes, nil
}

// next takes the earliest wakeup, and lets time pass until it is due; false when none comes before so long.
func (w *wire) next(within time.Duration) (lane.Wakeup, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	slices.SortStableFunc(w.pending, func(a, b arrival) int { return a.at.Compare(b.at) })
	if len(w.pending) == 0 || w.pending[0].at.After(w.Now().Add(within)) {
		return lane.Wakeup{}, false
	}
	first := w.pending[0]
	w.pending = w.pending[1:]
	w.reach(first.at)
	return first.wakeup, true
}

func newWorld(t *testing.T, options *core.Options) *world {
	t.Helper()
	db := awstest.DynamoDB(t)
	now := &clock{now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	w := &world{T: t, wire: &wire{clock: now}, store: dynamostore.New(db, awstest.Table(t, db), &dynamostore.Options{Now: now.Now, RequestTimeout: awstest.RequestTimeout})}
	l, err := lane.New(w.store, w.wire, &lane.Options{Environment: "costs"})
	if err != nil {
		t.Fatal(err)
	}
	options.Logger, options.World = slog.New(slog.DiscardHandler), &core.World{Now: now.Now}
	if w.rt, err = core.Open(t.Context(), l, options); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.rt.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	w.tick() // registers schedules
	before := w.usage()
	w.tick()
	w.idle = w.usage().Minus(before)
	return w
}

// usage is what the store used so far, but for the catalog of tasks, which is paid twice a day, whatever runs do, and for
// the list of flows, which one tick in ten reads.
func (w *world) usage() dynamostore.Usage {
	stats := w.store.Stats()
	u := stats.Usage
	for _, operation := range []string{"list tasks", "put task", "list flows"} {
		u = u.Minus(stats.Operations[operation])
	}
	return u
}

func (w *world) tick() {
	w.Helper()
	for more := true; more; {
		result, err := w.rt.Tick(w.Context(), nil)
		if err != nil {
			w.Fatal(err)
		}
		more = result.More
	}
}

// measured adds what a step uses. Of ticks only what is above an idle one: that is paid once a minute, whatever runs do.
func (w *world) measured(step func()) {
	w.Helper()
	before, sends, delivered := w.usage(), w.wire.requests, w.delivered
	step()
	used := w.usage().Minus(before)
	w.used.Writes += used.WriteUnits
	w.used.Reads += used.ReadUnits
	w.used.Requests += float64(used.Requests)
	w.used.Sends += float64(w.wire.requests - sends)
	w.used.Deliveries += float64(w.delivered - delivered)
}

func (w *world) trigger(call runlane.Call, options *runlane.TriggerOptions) runlane.RunID {
	w.Helper()
	var id runlane.RunID
	w.measured(func() {
		result, err := w.rt.Trigger(w.Context(), call, options)
		if err != nil {
			w.Fatal(err)
		}
		id = result.Run.ID
	})
	return id
}

func (w *world) approve(id runlane.RunID) {
	w.Helper()
	w.measured(func() {
		if err := w.rt.Signal(w.Context(), id, approved.With(small("ada")), nil); err != nil {
			w.Fatal(err)
		}
	})
}

// deliver does what a bridge does with a wakeup.
func (w *world) deliver(wakeup lane.Wakeup) {
	w.Helper()
	w.measured(func() {
		w.delivered++
		if _, err := w.rt.ExecuteDelivery(w.Context(), wakeup, nil); err != nil {
			w.Fatal(err)
		}
	})
}

// active are the runs that have not ended.
func (w *world) active() []runlane.RunSummary {
	w.Helper()
	statuses := slices.DeleteFunc(runlane.Statuses(), runlane.Status.Terminal)
	page, err := w.rt.Runs().List(w.Context(), &core.ListOptions{RunFilter: core.RunFilter{Statuses: statuses}})
	if err != nil {
		w.Fatal(err)
	}
	return page.Items
}

// settle delivers wakeups, and ticks each minute in which something can be due, until nothing is active.
func (w *world) settle() {
	w.Helper()
	for range 100 {
		for wakeup, ok := w.wire.next(time.Minute); ok; wakeup, ok = w.wire.next(time.Minute) {
			w.deliver(wakeup)
		}
		active := w.active()
		if len(active) == 0 {
			return
		}
		w.wire.reach(w.wire.Now().Add(time.Minute))
		due := active[0].RunAt
		for _, run := range active {
			if run.RunAt.Before(due) {
				due = run.RunAt
			}
		}
		w.wire.reach(due.Add(-16 * time.Minute)) // the tick asks 15 minutes ahead
		w.measured(w.tick)
		w.used.Reads -= w.idle.ReadUnits
		w.used.Requests -= float64(w.idle.Requests)
	}
	w.Fatal(errors.New("runs are still active"))
}
