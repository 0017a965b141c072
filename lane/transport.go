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
	// Capabilities never change during the adapter's life.
	Capabilities() TransportCapabilities
	// Start makes the transport ready, once, before any other call except Capabilities and Queues. An unusable binding
	// is runlane.ErrConfigurationInvalid.
	Start(ctx context.Context, o StartOptions) error
	// Close releases the resources of Start. No other call follows.
	Close(ctx context.Context) error

	// Queues lists the transport's bindings. nil means that they cannot be listed: any queue.
	Queues() []runlane.QueueName

	// PublishWakeups returns one outcome for each attempt, in order. An error (runlane.ErrTransportUnavailable, or
	// runlane.ErrTransportPublishFailed for the operation) means that no outcome can be trusted: core retries every
	// attempt without a limit and counts no failure.
	PublishWakeups(ctx context.Context, c *PublishCommand) ([]PublishOutcome, error)

	// MaxDelay is the longest delay of a queue; 0 if it cannot delay, like ordered queues, where a delayed wakeup would
	// lose its place in its group. MaxDelay, Carrier, Ordered and Fair make no request to a provider.
	MaxDelay(queue runlane.QueueName) time.Duration
	// SendWakeups sends wakeups without outbox rows, each after its delay, rounded up. Best effort: the tick finds lost
	// ones. It returns one outcome for each wakeup, in order, or an error like PublishWakeups.
	SendWakeups(ctx context.Context, wakeups []DelayedWakeup) ([]PublishOutcome, error)

	// Carrier names the binding that carries a queue's wakeups: its own, or a shared one of Queues. ok is false without
	// one. [UnimplementedTransport] returns the queue's own; callers use [CarrierOf].
	Carrier(queue runlane.QueueName) (binding runlane.QueueName, ok bool)
	// Ordered reports whether the wakeups of a group are delivered in order of publication, each after the previous one
	// is acknowledged. In an ordered queue core acknowledges no wakeup while the run is leased, so that runs of a group
	// execute one at a time, in order.
	Ordered(queue runlane.QueueName) bool
	// Fair reports whether a group's wakeups cannot hold up the rest of the queue. Fair queues have no order.
	Fair(queue runlane.QueueName) bool
	// Depth estimates the waiting wakeups of a queue, and the received but unacknowledged ones: redelivery pauses
	// during a backlog. It has no flag: runlane.ErrCapabilityUnsupported means that it cannot be read.
	Depth(ctx context.Context, queue runlane.QueueName) (visible, inFlight int, err error)
}

// StartOptions describe the transport's runtime.
type StartOptions struct {
	// Environment selects the wakeups for Receive and Depth. Only a transport with shared queues for several
	// environments, such as in one file, needs it. Sent wakeups go to the environment that each one names. Default: the
	// default environment.
	Environment runlane.Environment
	// Logger for a transport without its own. Default: slog.Default().
	Logger *slog.Logger
}

// TransportCapabilities are public promises.
type TransportCapabilities struct {
	// DurableDelivery: accepted wakeups survive the loss of the process.
	DurableDelivery bool `json:"durableDelivery"`
	// MessageGrouping: wakeups can be grouped for provider-level order.
	MessageGrouping bool `json:"messageGrouping"`
	// NativeDelay: the provider can delay wakeups (SendWakeups), for queues with a MaxDelay.
	NativeDelay bool `json:"nativeDelay"`
	// OrderedDelivery: the provider keeps the order within a group, for queues with Ordered.
	OrderedDelivery bool `json:"orderedDelivery"`
}

// Wakeup makes a worker check a run. It carries no state: only the run's key and Queue, the time of the request in
// RequestedAt, and TraceCarrier to continue a trace, which may be nil.
type Wakeup struct {
	RunKey
	Queue        runlane.QueueName
	RequestedAt  time.Time
	TraceCarrier map[string]string
}

// PublishAttempt is a claimed outbox message. GroupKey is the concurrency key, else the run ID; the transport hashes
// it.
type PublishAttempt struct {
	OutboxRef
	Wakeup
	GroupKey string
}

// PublishCommand holds wakeups to publish. Outcomes are in the order of Attempts.
type PublishCommand struct {
	Attempts []PublishAttempt
}

// PublishOutcome is tagged by Type: the zero value is a contract violation, so a forgotten entry never counts as
// published. A failure with the code runlane.ErrTransportPublishFailed belongs to this message and counts;
// runlane.ErrTransportUnavailable (throttled, outage) does not.
type PublishOutcome struct {
	Type PublishOutcomeType
	// Failure, if Type is PublishFailed.
	Failure runlane.Failure
	// Permanent: the message can never be accepted and is dead-lettered at once.
	Permanent bool
}

// PublishOutcomeType tags a [PublishOutcome].
type PublishOutcomeType string

// The outcomes of publishing one wakeup.
const (
	// Published: the provider accepted it.
	Published PublishOutcomeType = "published"
	// PublishFailed: the provider did not accept it.
	PublishFailed PublishOutcomeType = "failed"
)

// Receiver is the optional ability to deliver wakeups to this process, such as memlane's channel or SQS long polling.
// Found with [As].
type Receiver interface {
	// Receive calls handle from concurrency goroutines until ctx ends, waits for the running calls and returns nil. If
	// handle returns nil, the wakeup is acknowledged; an error, which handle has already logged, returns it for later
	// redelivery. The context of handle does not end with ctx: the caller decides how long attempts may take to finish.
	// queues selects the wakeups; an unbound queue is runlane.ErrConfigurationInvalid. Wakeups of other queues on a
	// shared binding arrive too, and handle decides about them ([CarrierOf]).
	Receive(
		ctx context.Context, queues []runlane.QueueName, concurrency int, handle func(context.Context, Wakeup) error,
	) error
}

// CarrierOf returns the binding that carries a queue's wakeups, one of the transport's Queues. ok is false without one.
func CarrierOf(t Transport, queue runlane.QueueName) (binding runlane.QueueName, ok bool) {
	binding, ok = t.Carrier(queue)
	bindings := t.Queues()
	return binding, ok && (bindings == nil || slices.Contains(bindings, binding))
}

// DelayedWakeup is a wakeup for later. Delay counts from the call.
type DelayedWakeup struct {
	Wakeup
	Delay time.Duration
	// Early rounds Delay down: the receiver waits for the rest, so that starts at a rate keep their distances.
	Early bool
}
