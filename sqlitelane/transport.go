package sqlitelane

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/embedded"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/sqlitelane/internal/file"
	"github.com/runlane/runlane-go/sqlitelane/internal/record"
)

const (
	// maxDelay is the longest delay of a wakeup, as on SQS, so that programs behave alike on both.
	maxDelay = 15 * time.Minute
	// handBack is the first pause of a refused wakeup. Each further pause is twice as long, up to maxHandBack or
	// maxOrderedHandBack.
	handBack    = time.Second
	maxHandBack = 5 * time.Minute
	// maxOrderedHandBack is the longest pause in an ordered queue, where a wakeup blocks its group. A look costs a
	// read and a small commit.
	maxOrderedHandBack = 5 * time.Second
	// visibility is the visibility timeout of a taken wakeup. Its process extends it three times as often; after a
	// crash the wakeup is redelivered when it ends.
	visibility = 30 * time.Second
	// parked is when a wakeup becomes visible while others of its group are before it: never.
	parked = math.MaxInt64
	// handedBack replaces the take of a wakeup that was handed back.
	handedBack = 1
)

// Transport wakes workers of all processes that use the file. Wakeups are rows until they are acknowledged. A wakeup
// published while a worker of the same process is idle goes directly to that worker. Otherwise processes with idle
// workers are notified on Linux; elsewhere they look every 10 ms. Any queue can be used. It is safe for concurrent
// use. [Open] returns it as part of a lane.
//
// It is a [lane.Receiver].
type Transport struct {
	lane.UnimplementedTransport

	logger   *slog.Logger // nil: see log
	storage  *Storage     // owns the file; the lane starts it first and closes it last
	ordered  []runlane.QueueName
	handBack time.Duration

	environment runlane.Environment // of the wakeups to receive

	mu         sync.Mutex
	receptions map[runlane.QueueName][]*reception
	closed     chan struct{}
	closing    sync.Once
	watching   sync.WaitGroup
	watched    int // receptions; the watcher runs while there are any
	unwatch    context.CancelFunc
}

var (
	_ lane.Transport = (*Transport)(nil)
	_ lane.Receiver  = (*Transport)(nil)
)

func newTransport(s *Storage, logger *slog.Logger, ordered ...runlane.QueueName) *Transport {
	return &Transport{
		storage:    s,
		logger:     logger,
		ordered:    ordered,
		handBack:   handBack,
		receptions: map[runlane.QueueName][]*reception{},
		closed:     make(chan struct{}),
	}
}

// Capabilities includes durable delivery, native delay except in ordered queues, and order within the groups of those.
func (t *Transport) Capabilities() lane.TransportCapabilities {
	orders := len(t.ordered) > 0
	return lane.TransportCapabilities{
		DurableDelivery: true,
		MessageGrouping: orders,
		NativeDelay:     true,
		OrderedDelivery: orders,
	}
}

// Start requires that the storage, which has the file, was started.
func (t *Transport) Start(_ context.Context, o lane.StartOptions) error {
	t.environment, t.logger = o.Environment, cmp.Or(t.logger, o.Logger)
	_, err := t.storage.opened()
	return err
}

// log returns the lane's or runtime's logger, else the default one.
func (t *Transport) log() *slog.Logger { return cmp.Or(t.logger, slog.Default()) }

// inbox is the name in the file of an environment's queue.
func inbox(environment runlane.Environment, queue runlane.QueueName) string {
	return environment.Name() + ":" + string(queue) // names of environments have no colon
}

// Queues returns nil: any queue can be used.
func (*Transport) Queues() []runlane.QueueName { return nil }

// Close ends every Receive. It does not wait for handlers; Receive does.
func (t *Transport) Close(context.Context) error {
	t.closing.Do(func() { close(t.closed) })
	t.mu.Lock()
	if t.unwatch != nil {
		t.unwatch()
	}
	t.mu.Unlock()
	t.watching.Wait()
	return nil
}

func (t *Transport) isClosed() bool {
	select {
	case <-t.closed:
		return true
	default:
		return false
	}
}

// PublishWakeups puts wakeups into their queues at once.
func (t *Transport) PublishWakeups(ctx context.Context, c *lane.PublishCommand) ([]lane.PublishOutcome, error) {
	sent := make([]sending, len(c.Attempts))
	for i := range c.Attempts {
		a := &c.Attempts[i]
		sent[i].Wakeup = a.Wakeup
		sent[i].group, sent[i].longest = a.GroupKey, maxDelay
	}
	return t.send(ctx, sent)
}

// sending is a wakeup to write. group is "" for none. Groups of queues without order take turns.
type sending struct {
	lane.DelayedWakeup

	group   string
	longest time.Duration // longest allowed delay; 0: none is allowed
}

// MaxDelay is the same for every queue, but 0 for ordered ones: a delayed wakeup has no group.
func (t *Transport) MaxDelay(queue runlane.QueueName) time.Duration {
	if t.Ordered(queue) {
		return 0
	}
	return maxDelay
}

// SendWakeups puts wakeups into their queues after their delays. A delay that is too long and any wakeup of an ordered
// queue fail permanently.
func (t *Transport) SendWakeups(ctx context.Context, wakeups []lane.DelayedWakeup) ([]lane.PublishOutcome, error) {
	sent := make([]sending, len(wakeups))
	for i := range wakeups {
		sent[i].DelayedWakeup = wakeups[i]
		sent[i].longest = t.MaxDelay(wakeups[i].Queue)
	}
	return t.send(ctx, sent)
}

func (t *Transport) send(ctx context.Context, wakeups []sending) ([]lane.PublishOutcome, error) {
	if err := embedded.Ended(ctx); err != nil {
		return nil, err
	}
	if t.isClosed() {
		return nil, embedded.TransportClosed()
	}
	outcomes := make([]lane.PublishOutcome, len(wakeups))
	bodies := make([][]byte, len(wakeups))
	left := 0
	for i := range wakeups {
		if w := &wakeups[i]; w.longest == 0 || w.Delay > w.longest {
			outcomes[i] = lane.PublishOutcome{
				Type: lane.PublishFailed, Permanent: true,
				Failure: runlane.NewFailure(runlane.ErrTransportPublishFailed,
					fmt.Sprintf("queue %q delays at most %s, not %s", w.Queue, w.longest, w.Delay), nil),
			}
			continue
		}
		outcomes[i].Type = lane.Published
		bodies[i] = record.EncodeWakeup(&wakeups[i].Wakeup)
		left++
	}
	if left == 0 {
		return outcomes, nil
	}
	err := t.storage.write(ctx, func(tx *tx) error {
		for i := range wakeups {
			if bodies[i] != nil {
				if err := t.put(tx, &wakeups[i], bodies[i]); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		return nil, unsent(err)
	}
	return outcomes, nil
}

// unsent converts a storage error into one of the transport.
func unsent(err error) error {
	if runlane.CodeOf(err) != runlane.ErrStorageUnavailable {
		return err
	}
	return &runlane.Error{
		Code: runlane.ErrTransportUnavailable, Message: "the wakeups could not be written into the file",
		Retryable: true,
		Cause:     err,
	}
}

// put writes a wakeup. If it is due at once and a worker of this process is idle, the worker gets it directly.
func (t *Transport) put(tx *tx, w *sending, body []byte) error {
	queue, err := t.storage.names.ensure(tx.Tx, inbox(w.Environment, w.Queue))
	if err != nil {
		return err
	}
	now, group, orders := t.storage.now(), w.group, false
	if group != "" {
		if orders, err = t.isOrdered(tx, w.Queue); err != nil {
			return err
		}
	}
	if !orders && group == string(w.RunID) { // of a run without a concurrency key
		group = ""
	}
	if orders {
		if waits, err := t.park(tx, queue, group, now, body); err != nil || waits {
			return err
		}
	}
	visible, taken := now.Add(w.Delay+time.Millisecond-1), int64(0)
	var to *reception
	if w.Delay <= 0 {
		visible = now
		if to = t.reserve(&w.Wakeup); to != nil {
			visible, taken = now.Add(visibility), nextTake()
		}
	}
	n, err := insert(tx, queue, visible.UnixMilli(), now, taken, group, body)
	if to != nil {
		next := message{n: n, take: taken, grouped: orders, wakeup: w.Wakeup}
		tx.After(func(committed bool) { t.handOver(to, next, committed && err == nil) })
	} else {
		t.announce(tx.Tx, w.Queue, visible)
	}
	return err
}

// nextTake returns a random number for one taking of a wakeup. A process may change a wakeup only while it has the
// last take. Row numbers are reused, takes are not.
func nextTake() int64 { return handedBack + 1 + rand.Int64N(math.MaxInt64-handedBack) } // no secret

func insert(tx *tx, queue, visible int64, now time.Time, taken int64, group string, body []byte) (n int64, err error) {
	return tx.Insert(`INSERT INTO messages(queue, visible, told, taken, refused, wakeup, grp)
		VALUES(?, ?, ?, ?, 0, ?, nullif(?, ''))`, queue, visible, now.UnixMilli(), taken, body, group)
}

// Depth counts waiting wakeups as visible; handed out and refused ones as in flight.
func (t *Transport) Depth(ctx context.Context, name runlane.QueueName) (visible, inFlight int, err error) {
	if err := embedded.Ended(ctx); err != nil {
		return 0, 0, err
	}
	now := t.storage.now().UnixMilli()
	err = t.storage.read(ctx, true, func(c *file.Conn) error {
		queue, err := t.storage.names.known(c, inbox(t.environment, name))
		if err != nil {
			return err
		}
		row, err := c.One(`SELECT count(*) FILTER (WHERE visible <= ?2 OR visible = ?3),
			count(*) FILTER (WHERE visible > ?2 AND taken) FROM messages WHERE queue = ?1`, queue, now, int64(parked))
		if err == nil && row != nil {
			visible, inFlight = int(number(row[0])), int(number(row[1]))
		}
		return err
	})
	return visible, inFlight, err
}
