package lane

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/runlane/runlane-go"
)

// Transport wakes workers. It carries no state. Embed [UnimplementedTransport]. All methods are safe for concurrent
// use.
type Transport interface {
	// Capabilities are the adapter's promises. They never change during its life.
	Capabilities() TransportCapabilities
	// Start makes the transport ready, once, before any other call but Capabilities and Queues; an unusable binding is
	// runlane.ErrConfigurationInvalid.
	Start(ctx context.Context, o StartOptions) error
	// Close releases what Start took. No other call follows.
	Close(ctx context.Context) error

	// Queues are the bindings this transport has; nil when they cannot be listed, which means any queue.
	Queues() []runlane.QueueName

	// PublishWakeups returns one outcome for each attempt, in order. An error (runlane.ErrTransportUnavailable, or
	// runlane.ErrTransportPublishFailed for the operation) means that no outcome can be trusted: core records it
	// against every attempt, where it counts for none, and retries without a limit.
	PublishWakeups(ctx context.Context, c *PublishCommand) ([]PublishOutcome, error)

	// MaxDelay is the longest delay of a queue; 0 where it cannot delay, as ordered queues, in whose groups a delayed
	// wakeup would not be. It makes no request to a provider, and neither do Carrier, Ordered and Fair.
	MaxDelay(queue runlane.QueueName) time.Duration
	// SendWakeups sends wakeups that no outbox row stands for, each after its delay, rounded up. Best effort: the tick
	// finds what is lost. It returns one outcome for each wakeup, in order, or an error as PublishWakeups does.
	SendWakeups(ctx context.Context, wakeups []DelayedWakeup) ([]PublishOutcome, error)

	// Carrier names the binding that carries a queue's wakeups: its own, or one of Queues that it shares. ok is false
	// for a queue that has none. That of [UnimplementedTransport] is the queue's own; callers ask [CarrierOf].
	Carrier(queue runlane.QueueName) (binding runlane.QueueName, ok bool)
	// Ordered reports whether the wakeups of a group of this queue are delivered one after the other, in the order of
	// their publication: the next one comes when that before it was acknowledged. In an ordered queue core acknowledges
	// no wakeup while a lease on its run stands, so that no run executes beside or before those whose wakeups came
	// earlier.
	Ordered(queue runlane.QueueName) bool
	// Fair reports whether the wakeups of one group keep no others of the queue from coming, in no order.
	Fair(queue runlane.QueueName) bool
	// Depth counts, approximately, wakeups of a queue that wait and those that were received and not yet acknowledged:
	// redelivery waits while there is a backlog. No flag stands for it: runlane.ErrCapabilityUnsupported means that it
	// cannot be read.
	Depth(ctx context.Context, queue runlane.QueueName) (visible, inFlight int, err error)
}

// StartOptions describe the runtime that a transport works for.
type StartOptions struct {
	// Environment is the one to receive wakeups of and to count. Only a transport with one set of queues for several
	// environments, such as that of one file, needs it: elsewhere each environment has its own queues. Wakeups are sent
	// to the environment that each one names. Default: the default environment.
	Environment runlane.Environment
	// Logger is the runtime's, for a transport that was made without one. Default: slog.Default().
	Logger *slog.Logger
}

// TransportCapabilities are public promises.
type TransportCapabilities struct {
	// DurableDelivery: accepted wakeups survive the loss of the process.
	DurableDelivery bool `json:"durableDelivery"`
	// MessageGrouping: wakeups can be grouped for provider-level order.
	MessageGrouping bool `json:"messageGrouping"`
	// NativeDelay: the provider can hold wakeups for later (SendWakeups), in the queues of which MaxDelay says so.
	NativeDelay bool `json:"nativeDelay"`
	// OrderedDelivery: the provider keeps the order within a group, for the queues of which Ordered says so.
	OrderedDelivery bool `json:"orderedDelivery"`
}

// Wakeup tells a worker to check a run. It carries no state.
type Wakeup struct {
	RunKey
	// Queue is the run's.
	Queue runlane.QueueName
	// RequestedAt is when the delivery was requested.
	RequestedAt time.Time
	// TraceCarrier continues a trace; may be nil.
	TraceCarrier map[string]string
}

// PublishAttempt is a claimed outbox message. GroupKey is the concurrency key, else the run id; the transport hashes
// it.
type PublishAttempt struct {
	OutboxRef
	Wakeup
	GroupKey string
}

// PublishCommand is what to publish.
type PublishCommand struct {
	// Attempts are answered in this order.
	Attempts []PublishAttempt
}

// PublishOutcome is tagged: the zero value is a contract violation, so a forgotten entry is never "published". A
// failure with the code runlane.ErrTransportPublishFailed is this message's own and counts;
// runlane.ErrTransportUnavailable (throttled, outage) does not.
type PublishOutcome struct {
	// Type is the tag.
	Type PublishOutcomeType
	// Failure of a failed one.
	Failure runlane.Failure
	// Permanent: it can never be accepted, and is dead-lettered at once.
	Permanent bool
}

// PublishOutcomeType tags a [PublishOutcome].
type PublishOutcomeType string

// The outcomes of publishing one wakeup.
const (
	// Published: the provider accepted it.
	Published PublishOutcomeType = "published"
	// PublishFailed: it did not.
	PublishFailed PublishOutcomeType = "failed"
)

// Receiver is the optional ability to deliver wakeups to this process: memlane's channel, SQS long polling. Found with
// [As].
type Receiver interface {
	// Receive calls handle from as many goroutines as concurrency until ctx ends, then waits for those under way and
	// returns nil. A nil return of handle acknowledges; an error hands the wakeup back, to come again later. handle
	// has logged it: the receiver need not. The
	// context that handle gets does not end with ctx: the caller decides how long attempts may take to finish. queues
	// are those to take wakeups of; one that is not bound is runlane.ErrConfigurationInvalid. Wakeups of queues that
	// share a binding with them come too, and handle decides ([CarrierOf]).
	Receive(
		ctx context.Context, queues []runlane.QueueName, concurrency int, handle func(context.Context, Wakeup) error,
	) error
}

// CarrierOf names the binding with which the transport carries a queue's wakeups, one of its Queues. ok is false for a
// queue that has none.
func CarrierOf(t Transport, queue runlane.QueueName) (binding runlane.QueueName, ok bool) {
	binding, ok = t.Carrier(queue)
	bindings := t.Queues()
	return binding, ok && (bindings == nil || slices.Contains(bindings, binding))
}

// DelayedWakeup is a wakeup for later.
type DelayedWakeup struct {
	Wakeup
	// Delay counts from the call.
	Delay time.Duration
}
