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

// The times of wakeups on their way.
const (
	// maxDelay is the longest delay of a wakeup, the same as that of SQS, so that programs behave alike on both.
	maxDelay = 15 * time.Minute
	// handBack is how long a wakeup that its handler handed back pauses the first time. Each further pause is twice as
	// long, up to maxHandBack, or maxOrderedHandBack.
	handBack    = time.Second
	maxHandBack = 5 * time.Minute
	// maxOrderedHandBack is the longest pause in an ordered queue, where a wakeup holds its whole group back. To look
	// again costs a read and a small commit.
	maxOrderedHandBack = 5 * time.Second
	// visibility is how long a wakeup stays with the process that took it, unless that process says again that it is
	// there, which it does three times as often. After a crash the wakeup comes again when it is over.
	visibility = 30 * time.Second
	// parked is the instant at which a wakeup is visible that waits for those before it in its group: never.
	parked = math.MaxInt64
	// handedBack is in place of a take where the last one was handed back.
	handedBack = 1
)

// Transport wakes workers of every process that uses the file. Wakeups are rows of it until they are acknowledged. One
// that is published while a worker of the same process is idle goes to that worker directly. Otherwise the processes
// with idle workers are told, on Linux by the system, elsewhere by looking every 10 ms. Any queue can be used. It is
// safe for concurrent use. It is part of what [Open] returns.
//
// It is a [lane.Receiver].
type Transport struct {
	lane.UnimplementedTransport

	logger   *slog.Logger // nil: see log
	storage  *Storage     // has the file, and its lane starts it first and closes it last
	ordered  []runlane.QueueName
	handBack time.Duration

	environment runlane.Environment // whose wakeups are received

	mu         sync.Mutex
	receptions map[runlane.QueueName][]*reception
	closed     chan struct{}
	closing    sync.Once
	watching   sync.WaitGroup
	watched    int // receptions; one watcher runs while there are any
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

// Capabilities promises that accepted wakeups survive, native delay but in ordered queues, and order within the groups
// of those.
func (t *Transport) Capabilities() lane.TransportCapabilities {
	orders := len(t.ordered) > 0
	return lane.TransportCapabilities{
		DurableDelivery: true,
		MessageGrouping: orders,
		NativeDelay:     true,
		OrderedDelivery: orders,
	}
}

// Start demands that the storage was started, whose file it shares.
func (t *Transport) Start(_ context.Context, o lane.StartOptions) error {
	t.environment, t.logger = o.Environment, cmp.Or(t.logger, o.Logger)
	_, err := t.storage.opened()
	return err
}

// log is the lane's logger, else the runtime's.
func (t *Transport) log() *slog.Logger { return cmp.Or(t.logger, slog.Default()) }

// inbox is the name whose number the wakeups of an environment's queue have.
func inbox(environment runlane.Environment, queue runlane.QueueName) string {
	return environment.Name() + ":" + string(queue) // no environment's name has a colon
}

// Queues is nil: any queue can be used.
func (*Transport) Queues() []runlane.QueueName { return nil }

// Close ends every Receive. It does not wait for handlers: Receive does.
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

// PublishWakeups puts wakeups into their queues, where receivers find them at once.
func (t *Transport) PublishWakeups(ctx context.Context, c *lane.PublishCommand) ([]lane.PublishOutcome, error) {
	sent := make([]sending, len(c.Attempts))
	for i := range c.Attempts {
		a := &c.Attempts[i]
		sent[i].Wakeup = a.Wakeup
		sent[i].group, sent[i].longest = a.GroupKey, maxDelay
	}
	return t.send(ctx, sent)
}

// sending is a wakeup on its way into the file, with its group, "" for none; queues without an order have no groups.
type sending struct {
	lane.DelayedWakeup

	group   string
	longest time.Duration // what the delay may be; 0: it may have none
}

// MaxDelay is the same for every queue, but 0 for ordered ones: a delayed wakeup would be in no group.
func (t *Transport) MaxDelay(queue runlane.QueueName) time.Duration {
	if t.Ordered(queue) {
		return 0
	}
	return maxDelay
}

// SendWakeups keeps wakeups for their delays, then puts them into their queues. A delay that is too long, and any
// wakeup of an ordered queue, fails for good.
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

// unsent says in the transport's words that the file could not be written.
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

// put writes a wakeup. One that is due at once goes to an idle worker of this process, if there is one.
func (t *Transport) put(tx *tx, w *sending, body []byte) error {
	queue, err := t.storage.names.made(tx.Tx, inbox(w.Environment, w.Queue))
	if err != nil {
		return err
	}
	now, group := t.storage.now(), w.group
	if group != "" {
		orders, err := t.orders(tx, w.Queue)
		if err != nil {
			return err
		}
		if !orders {
			group = ""
		}
	}
	if group != "" {
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
		next := message{n: n, take: taken, grouped: group != "", wakeup: w.Wakeup}
		tx.After(func(committed bool) { t.handOver(to, next, committed && err == nil) })
	} else {
		t.announce(tx.Tx, w.Queue, visible)
	}
	return err
}

// nextTake names one taking of a wakeup. A process may change what it took only while that is the last one. Numbers of
// wakeups come again, those of takes do not.
func nextTake() int64 { return handedBack + 1 + rand.Int64N(math.MaxInt64-handedBack) } // no secret

func insert(tx *tx, queue, visible int64, now time.Time, taken int64, group string, body []byte) (n int64, err error) {
	return tx.Insert(`INSERT INTO messages(queue, visible, told, taken, refused, wakeup, grp)
		VALUES(?, ?, ?, ?, 0, ?, nullif(?, ''))`, queue, visible, now.UnixMilli(), taken, body, group)
}

// Depth counts wakeups that wait, and those that handlers have or have refused and get again.
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
