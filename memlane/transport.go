package memlane

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/embedded"
	"github.com/runlane/runlane-go/lane"
)

// Defaults of [TransportOptions].
const (
	// DefaultMaxDelay is the longest delay of a wakeup, as on SQS, so that programs behave alike on both.
	DefaultMaxDelay = 15 * time.Minute
	// DefaultHandBack is the first pause of a wakeup that all receivers handed back.
	DefaultHandBack = time.Second
	// MaxHandBack is the longest pause, as on SQS.
	MaxHandBack = 5 * time.Minute
)

// TransportOptions of [NewTransport]. nil means none.
type TransportOptions struct {
	// HandBack is the first pause of a wakeup that was handed back. Each further pause is twice as long, up to
	// MaxHandBack. 0 means DefaultHandBack.
	HandBack time.Duration
	// MaxDelay is the longest delay of a wakeup. 0 means DefaultMaxDelay.
	MaxDelay time.Duration
	// Queues are the bindings; wakeups for other queues are refused. nil means any queue.
	Queues []runlane.QueueName
}

// Transport wakes workers of the same process. Each binding has an unbounded queue, which hands wakeups directly to
// waiting receivers. Delayed and refused wakeups share one timer, which exists only while there are any. It is safe
// for concurrent use.
//
// It is a [lane.Receiver].
type Transport struct {
	lane.UnimplementedTransport

	handBack time.Duration
	maxDelay time.Duration
	bindings []runlane.QueueName
	fault    error // of the options, returned by Start

	mu     sync.Mutex
	queues map[runlane.QueueName]*queue
	later  later
	closed chan struct{}
}

var (
	_ lane.Transport = (*Transport)(nil)
	_ lane.Receiver  = (*Transport)(nil)
)

// NewTransport returns a transport without wakeups.
func NewTransport(options *TransportOptions) *Transport {
	t := &Transport{
		handBack: DefaultHandBack,
		maxDelay: DefaultMaxDelay,
		queues:   map[runlane.QueueName]*queue{},
		closed:   make(chan struct{}),
	}
	if options == nil {
		return t
	}
	t.fault = options.check()
	if options.HandBack > 0 {
		t.handBack = options.HandBack
	}
	if options.MaxDelay > 0 {
		t.maxDelay = options.MaxDelay
	}
	t.bindings = slices.Clone(options.Queues)
	return t
}

func (o *TransportOptions) check() error {
	fault := ""
	switch {
	case o.HandBack < 0:
		fault = fmt.Sprintf("TransportOptions.HandBack is %s", o.HandBack)
	case o.MaxDelay < 0:
		fault = fmt.Sprintf("TransportOptions.MaxDelay is %s", o.MaxDelay)
	}
	if fault != "" {
		return &runlane.Error{
			Code:    runlane.ErrConfigurationInvalid,
			Message: fault,
			Hint:    "use 0 for the default, or a time",
		}
	}
	return embedded.JudgeQueueNames("TransportOptions.Queues", o.Queues)
}

// Start returns runlane.ErrConfigurationInvalid for invalid options, because NewTransport returns no error.
func (t *Transport) Start(context.Context, lane.StartOptions) error { return t.fault }

// Capabilities includes native delay, but no durability: wakeups end with the process.
func (t *Transport) Capabilities() lane.TransportCapabilities {
	return lane.TransportCapabilities{NativeDelay: true}
}

// Fair is true: concurrency keys take turns.
func (*Transport) Fair(runlane.QueueName) bool { return true }

// Queues returns the bindings, nil for any queue.
func (t *Transport) Queues() []runlane.QueueName { return slices.Clone(t.bindings) }

// Close ends every Receive and drops all wakeups. It does not wait for handlers; Receive does.
func (t *Transport) Close(context.Context) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.isClosed() {
		return nil
	}
	close(t.closed)
	t.later.stop()
	clear(t.queues)
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

func (t *Transport) bound(name runlane.QueueName) bool {
	return t.bindings == nil || slices.Contains(t.bindings, name)
}

// queue returns a binding's queue. The caller holds the lock.
func (t *Transport) queue(name runlane.QueueName) *queue {
	q := t.queues[name]
	if q == nil {
		q = &queue{name: name}
		t.queues[name] = q
	}
	return q
}

// PublishWakeups puts wakeups into their queues at once.
func (t *Transport) PublishWakeups(ctx context.Context, c *lane.PublishCommand) ([]lane.PublishOutcome, error) {
	if err := embedded.Ended(ctx); err != nil {
		return nil, err
	}
	outcomes := make([]lane.PublishOutcome, len(c.Attempts))
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.isClosed() {
		return nil, embedded.TransportClosed()
	}
	for i := range c.Attempts {
		a := &c.Attempts[i]
		key := a.GroupKey
		if key == string(a.Wakeup.RunID) { // the group of a run without a concurrency key
			key = ""
		}
		outcomes[i] = t.send(&a.Wakeup, key, 0)
	}
	return outcomes, nil
}

// MaxDelay is the same for every queue.
func (t *Transport) MaxDelay(runlane.QueueName) time.Duration { return t.maxDelay }

// SendWakeups puts wakeups into their queues after their delays.
func (t *Transport) SendWakeups(ctx context.Context, wakeups []lane.DelayedWakeup) ([]lane.PublishOutcome, error) {
	if err := embedded.Ended(ctx); err != nil {
		return nil, err
	}
	outcomes := make([]lane.PublishOutcome, len(wakeups))
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.isClosed() {
		return nil, embedded.TransportClosed()
	}
	for i := range wakeups {
		outcomes[i] = t.send(&wakeups[i].Wakeup, "", wakeups[i].Delay)
	}
	return outcomes, nil
}

// send puts a wakeup into its queue, now or later. A missing binding is no permanent failure: it may be added later.
func (t *Transport) send(w *lane.Wakeup, key string, delay time.Duration) lane.PublishOutcome {
	switch {
	case !t.bound(w.Queue):
		return lane.PublishOutcome{
			Type: lane.PublishFailed,
			Failure: runlane.NewFailure(
				runlane.ErrTransportUnavailable,
				fmt.Sprintf("queue %q has no binding", w.Queue),
				nil,
			),
		}
	case delay > t.maxDelay:
		return lane.PublishOutcome{
			Type: lane.PublishFailed, Permanent: true,
			Failure: runlane.NewFailure(
				runlane.ErrTransportPublishFailed,
				fmt.Sprintf("delay %s is longer than %s", delay, t.maxDelay),
				nil,
			),
		}
	}
	kept := *w
	kept.TraceCarrier = maps.Clone(w.TraceCarrier)
	if q := t.queue(w.Queue); delay > 0 {
		t.sendLater(q, kept, delay)
	} else {
		q.push(waitingWakeup{Wakeup: kept, key: key})
	}
	return lane.PublishOutcome{Type: lane.Published}
}

// Depth counts waiting wakeups as visible; handed out and refused ones as in flight.
func (t *Transport) Depth(ctx context.Context, name runlane.QueueName) (visible, inFlight int, err error) {
	if err := embedded.Ended(ctx); err != nil {
		return 0, 0, err
	}
	if !t.bound(name) {
		return 0, 0, noBinding(name)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if q := t.queues[name]; q != nil {
		visible, inFlight = q.waiting(), q.inFlight
	}
	return visible, inFlight, nil
}

func noBinding(name runlane.QueueName) error {
	return &runlane.Error{
		Code: runlane.ErrConfigurationInvalid, Message: fmt.Sprintf("queue %q has no binding", name),
		Hint: "add it to TransportOptions.Queues, or leave those nil",
	}
}
