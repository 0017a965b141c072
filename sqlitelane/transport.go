package sqlitelane

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/sqlitelane/internal/file"
	"github.com/runlane/runlane-go/sqlitelane/internal/record"
)

// The times of wakeups on their way.
const (
	// maxDelay is the longest delay of a wakeup, the same as that of SQS, so that programs behave alike on both.
	maxDelay = 15 * time.Minute
	// handBack is how long a wakeup that its handler handed back pauses the first time. Each further pause is twice as
	// long, up to maxHandBack.
	handBack    = time.Second
	maxHandBack = 5 * time.Minute
	// visibility is how long a wakeup stays with the process that took it, unless that process says again that it is
	// there, which it does three times as often. After a crash the wakeup comes again when it is over.
	visibility = 30 * time.Second
)

// Transport wakes workers of every process that uses the file. Wakeups are rows of it until they are acknowledged. One
// that is published while a worker of the same process is idle goes to that worker directly. Otherwise the processes
// with idle workers are told, on Linux by the system, elsewhere by looking every 10 ms. Any queue can be used. It is
// safe for concurrent use. It is part of what [Open] returns.
//
// It is a [lane.Receiver], a [lane.DelayedSender] and a [lane.DepthReader].
type Transport struct {
	lane.UnimplementedTransport

	storage  *Storage // has the file, and its lane starts it first and closes it last
	handBack time.Duration

	mu         sync.Mutex
	receptions map[runlane.QueueName][]*reception
	closed     chan struct{}
	closing    sync.Once
	watching   sync.WaitGroup
	watched    int // receptions; one watcher runs while there are any
	unwatch    context.CancelFunc
}

var (
	_ lane.Transport     = (*Transport)(nil)
	_ lane.Receiver      = (*Transport)(nil)
	_ lane.DelayedSender = (*Transport)(nil)
	_ lane.DepthReader   = (*Transport)(nil)
)

func newTransport(s *Storage) *Transport {
	return &Transport{
		storage: s, handBack: handBack, receptions: map[runlane.QueueName][]*reception{}, closed: make(chan struct{}),
	}
}

// Capabilities promises that accepted wakeups survive, and native delay.
func (*Transport) Capabilities() lane.TransportCapabilities {
	return lane.TransportCapabilities{DurableDelivery: true, NativeDelay: true}
}

// Start demands that the storage was started, whose file it shares.
func (t *Transport) Start(context.Context) error {
	_, err := t.storage.opened()
	return err
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

func (t *Transport) down() error {
	return &runlane.Error{Code: runlane.ErrTransportUnavailable, Message: "the transport is closed"}
}

// PublishWakeups puts wakeups into their queues, where receivers find them at once.
func (t *Transport) PublishWakeups(ctx context.Context, c *lane.PublishCommand) ([]lane.PublishOutcome, error) {
	wakeups := make([]lane.DelayedWakeup, len(c.Attempts))
	for i := range c.Attempts {
		wakeups[i].Wakeup = c.Attempts[i].Wakeup
	}
	return t.send(ctx, wakeups)
}

// MaxDelay is the same for every queue.
func (*Transport) MaxDelay(runlane.QueueName) time.Duration { return maxDelay }

// SendWakeups keeps wakeups for their delays, then puts them into their queues.
func (t *Transport) SendWakeups(ctx context.Context, wakeups []lane.DelayedWakeup) ([]lane.PublishOutcome, error) {
	return t.send(ctx, wakeups)
}

func (t *Transport) send(ctx context.Context, wakeups []lane.DelayedWakeup) ([]lane.PublishOutcome, error) {
	if err := ended(ctx); err != nil {
		return nil, err
	}
	if t.isClosed() {
		return nil, t.down()
	}
	outcomes := make([]lane.PublishOutcome, len(wakeups))
	bodies := make([][]byte, len(wakeups))
	left := 0
	for i := range wakeups {
		if w := &wakeups[i]; w.Delay > maxDelay {
			outcomes[i] = lane.PublishOutcome{
				Type: lane.PublishFailed, Permanent: true,
				Failure: runlane.NewFailure(runlane.ErrTransportPublishFailed,
					fmt.Sprintf("delay %s is longer than %s", w.Delay, maxDelay), nil),
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
func (t *Transport) put(tx *tx, w *lane.DelayedWakeup, body []byte) error {
	queue, err := t.storage.names.made(tx.Tx, string(w.Queue))
	if err != nil {
		return err
	}
	now := t.storage.now()
	visible, taken := now.Add(w.Delay+time.Millisecond-1), int64(0)
	var to *reception
	if w.Delay <= 0 {
		visible = now
		if to = t.reserve(w.Queue); to != nil {
			visible, taken = now.Add(visibility), 1
		}
	}
	n, err := tx.Insert("INSERT INTO messages(queue, visible, told, taken, refused, wakeup) VALUES(?, ?, ?, ?, 0, ?)",
		queue, visible.UnixMilli(), now.UnixMilli(), taken, body)
	if to != nil {
		next := message{n: n, wakeup: w.Wakeup}
		tx.After(func(committed bool) { t.handOver(to, next, committed && err == nil) })
	} else {
		t.announce(tx.Tx, w.Queue, visible)
	}
	return err
}

// Depth counts wakeups that wait, and those that handlers have or have refused and get again.
func (t *Transport) Depth(ctx context.Context, name runlane.QueueName) (visible, inFlight int, err error) {
	if err := ended(ctx); err != nil {
		return 0, 0, err
	}
	now := t.storage.now().UnixMilli()
	err = t.storage.read(ctx, true, func(c *file.Conn) error {
		queue, err := t.storage.names.known(c, string(name))
		if err != nil {
			return err
		}
		row, err := c.One(`SELECT count(*) FILTER (WHERE visible <= ?2), count(*) FILTER (WHERE visible > ?2 AND taken)
			FROM messages WHERE queue = ?1`, queue, now)
		if err == nil && row != nil {
			visible, inFlight = int(number(row[0])), int(number(row[1]))
		}
		return err
	})
	return visible, inFlight, err
}
