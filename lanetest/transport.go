package lanetest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/proof/scenarios/patience"
	"github.com/runlane/runlane-go/lane"
)

// TransportHarness is what [RunTransport] has to know of a transport.
type TransportHarness struct {
	// New returns a transport bound to the queues, which are empty. It is started for [TransportEnvironment] and closed
	// by t.Cleanup. Required.
	New func(t testing.TB, queues ...runlane.QueueName) lane.Transport
	// Capabilities are what the transport is expected to promise. With OrderedDelivery all queues of New are ordered
	// ones, and none of them can delay.
	Capabilities lane.TransportCapabilities
	// AnyQueue: bindings cannot be listed, every queue is accepted.
	AnyQueue bool
	// Shared: the queues of New share one binding, so that a receiver of one gets the wakeups of all.
	Shared bool
	// Receives: it is expected to be a lane.Receiver. Without it, that wakeups arrive is not tested here.
	Receives bool
	// Fair: groups take turns.
	Fair bool
	// Depth: the depth of its queues can be read.
	Depth bool
	// HandBack is how long a refused wakeup may take to come again. 0 means a minute.
	HandBack time.Duration
	// Deduplicates: a wakeup that is published again for the same outbox row, a moment later, arrives once.
	Deduplicates bool
	// MaxBytes is what the provider takes of one wakeup; 0: there is no bound.
	MaxBytes int
	// Refusing, when set, returns what New does, except that the provider takes the wakeups of all runs but the given
	// ones.
	Refusing func(t testing.TB, refused []runlane.RunID, queues ...runlane.QueueName) lane.Transport
	// Down, when set, returns what New does, except that the provider does not answer any more.
	Down func(t testing.TB, queues ...runlane.QueueName) lane.Transport
}

type transportCase struct {
	name  string
	needs func(TransportHarness) bool
	run   func(t *testing.T, h TransportHarness)
}

// RunTransport proves the contract of lane.Transport, and that of lane.Receiver where the harness declares it.
func RunTransport(t *testing.T, h TransportHarness) {
	t.Helper()
	for _, c := range transportCases() {
		if c.needs != nil && !c.needs(h) {
			continue // CapabilitiesAreThoseDeclared proves that the ability is absent
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.run(t, h)
		})
	}
}

func transportCases() []transportCase {
	receives := func(h TransportHarness) bool { return h.Receives }
	delays := func(h TransportHarness) bool {
		return h.Receives && h.Capabilities.NativeDelay && !h.Capabilities.OrderedDelivery
	}
	groups := func(h TransportHarness) bool {
		return h.Receives && h.Capabilities.MessageGrouping && h.Capabilities.OrderedDelivery
	}
	return []transportCase{
		{"CapabilitiesAreThoseDeclared", nil, transportCapabilities},
		{"OneOutcomeForEachAttemptInOrder", nil, transportOutcomes},
		{"UnboundQueueFailsAlone", func(h TransportHarness) bool { return !h.AnyQueue }, transportUnbound},
		{"EndedContextIsOperationCancelled", nil, transportEnded},
		{
			"RefusedWakeupsFailAloneEachAtItsPlace",
			func(h TransportHarness) bool { return h.Refusing != nil },
			transportRefused,
		},
		{
			"AnOutageFailsEveryAttemptAndCountsForNone",
			func(h TransportHarness) bool { return h.Down != nil },
			transportDown,
		},
		{
			"AWakeupThatIsTooLargeFailsAloneForGood",
			func(h TransportHarness) bool { return h.MaxBytes > 0 },
			transportOversize,
		},
		{"WakeupsArriveAsTheyWereSent", receives, transportArrive},
		{"QueuesAreApart", func(h TransportHarness) bool { return h.Receives && !h.Shared }, transportApart},
		{
			"ReceivingAnUnboundQueueIsRefused",
			func(h TransportHarness) bool { return h.Receives && !h.AnyQueue },
			transportReceiveUnbound,
		},
		{"NoMoreHandlersThanConcurrency", receives, transportConcurrency},
		{"ARefusedWakeupComesAgainAndAnAcknowledgedOneDoesNot", receives, transportHandBack},
		{"ReceiveLetsHandlersFinishWhenItsContextEnds", receives, transportFinish},
		{"AGroupHoldsUpNoOther", func(h TransportHarness) bool { return h.Receives && h.Fair }, transportFair},
		{"GroupsKeepTheirOrder", groups, transportGroups},
		{
			"ARepeatedPublicationArrivesOnce",
			func(h TransportHarness) bool { return h.Receives && h.Deduplicates },
			transportDeduplicates,
		},
		{"DelayedWakeupsArriveAfterTheirDelay", delays, transportDelay},
		{
			"WithoutNativeDelayNothingIsDelayed",
			func(h TransportHarness) bool { return !h.Capabilities.NativeDelay || h.Capabilities.OrderedDelivery },
			transportNoDelay,
		},
		{
			"DepthCountsWaitingAndUnacknowledgedWakeups",
			func(h TransportHarness) bool { return h.Depth && h.Receives },
			transportDepth,
		},
	}
}

// TransportEnvironment is the environment of the wakeups that [RunTransport] sends.
const TransportEnvironment runlane.Environment = "lanetest"

func attempt(n int, queue runlane.QueueName) lane.PublishAttempt {
	id := runlane.RunID(fmt.Sprintf("run_%03d", n))
	return lane.PublishAttempt{
		OutboxRef: lane.OutboxRef{ID: fmt.Sprintf("row_%03d", n), ClaimToken: "token"},
		Wakeup: lane.Wakeup{
			RunKey:       lane.RunKey{Environment: TransportEnvironment, RunID: id},
			Queue:        queue,
			RequestedAt:  noon.Add(time.Duration(n) * time.Millisecond),
			TraceCarrier: map[string]string{"traceparent": fmt.Sprint("00-", n)},
		},
		GroupKey: string(id),
	}
}

func publish(t *testing.T, transport lane.Transport, attempts ...lane.PublishAttempt) []lane.PublishOutcome {
	t.Helper()
	return must(transport.PublishWakeups(t.Context(), &lane.PublishCommand{Attempts: attempts}))(t)
}

func wantPublished(t *testing.T, outcomes []lane.PublishOutcome, n int) {
	t.Helper()
	want := slices.Repeat([]lane.PublishOutcome{{Type: lane.Published}}, n)
	equal(t, "outcomes", want, outcomes)
}

// receiver collects what a transport delivers, until the test ends or stop is called.
type receiver struct {
	t    *testing.T
	got  chan lane.Wakeup
	stop func() error
}

func receive(
	t *testing.T,
	transport lane.Transport,
	concurrency int,
	handle func(lane.Wakeup) error,
	queues ...runlane.QueueName,
) *receiver {
	t.Helper()
	r, ok := lane.As[lane.Receiver](transport)
	if !ok {
		t.Fatal("transport is no lane.Receiver")
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	c := &receiver{t: t, got: make(chan lane.Wakeup, 100)}
	done := make(chan error, 1)
	go func() { // ends with ctx
		done <- r.Receive(ctx, queues, concurrency, func(_ context.Context, w lane.Wakeup) error {
			err := handle(w)
			c.got <- w
			return err
		})
	}()
	c.stop = sync.OnceValue(func() error {
		cancel()
		return <-done
	})
	t.Cleanup(func() {
		if err := c.stop(); err != nil {
			t.Errorf("Receive returned %v", err)
		}
	})
	return c
}

func accept(lane.Wakeup) error { return nil }

// take waits for n deliveries and returns their runs.
func (r *receiver) take(n int) []lane.Wakeup {
	r.t.Helper()
	var wakeups []lane.Wakeup
	timeout := time.After(patience.Limit)
	for range n {
		select {
		case w := <-r.got:
			wakeups = append(wakeups, w)
		case <-timeout:
			r.t.Fatalf("%d of %d wakeups arrived", len(wakeups), n)
		}
	}
	slices.SortFunc(wakeups, func(a, b lane.Wakeup) int { return slices.Compare([]byte(a.RunID), []byte(b.RunID)) })
	return wakeups
}

// none demands that nothing more was delivered until now.
func (r *receiver) none() {
	r.t.Helper()
	select {
	case w := <-r.got:
		r.t.Fatalf("unexpected wakeup for %s", w.RunID)
	default:
	}
}

// docs/internals/contract.md, Capabilities.
func transportCapabilities(t *testing.T, h TransportHarness) {
	transport := h.New(t, "alpha", "beta")
	equal(t, "capabilities", h.Capabilities, transport.Capabilities())
	equal(t, "fair", h.Fair, transport.Fair("alpha"))
	if _, ok := lane.As[lane.Receiver](transport); ok != h.Receives {
		t.Errorf("transport is a lane.Receiver: %t, the harness says %t", ok, h.Receives)
	}
	_, _, err := transport.Depth(t.Context(), "alpha")
	if errors.Is(err, runlane.ErrCapabilityUnsupported) == h.Depth {
		t.Errorf("the depth of a queue: %v; the harness says %t", err, h.Depth)
	}
	if h.AnyQueue {
		if got := transport.Queues(); got != nil {
			t.Errorf("queues are %v, want none listed", got)
		}
		return
	}
	equal(t, "queues", []runlane.QueueName{"alpha", "beta"}, sorted(transport.Queues()))
}

// docs/internals/contract.md, Publishing.
func transportOutcomes(t *testing.T, h TransportHarness) {
	transport := h.New(t, "alpha", "beta")
	if got := publish(t, transport); len(got) != 0 {
		t.Fatalf("no attempts have outcomes %v", got)
	}
	var attempts []lane.PublishAttempt
	for n := range 25 { // more than one request of any provider takes
		attempts = append(attempts, attempt(n, []runlane.QueueName{"alpha", "beta"}[n%2]))
	}
	wantPublished(t, publish(t, transport, attempts...), len(attempts))
}

// docs/internals/contract.md, Publishing.
func transportUnbound(t *testing.T, h TransportHarness) {
	transport := h.New(t, "alpha")
	got := publish(t, transport, attempt(0, "alpha"), attempt(1, "nowhere"), attempt(2, "alpha"))
	if len(got) != 3 || got[0].Type != lane.Published || got[2].Type != lane.Published {
		t.Fatalf("outcomes are %+v, want the first and the last published", got)
	}
	if got[1].Type != lane.PublishFailed || got[1].Failure.IsZero() {
		t.Fatalf("outcome of an unbound queue is %+v", got[1])
	}
}

// docs/internals/contract.md, Errors.
func transportEnded(t *testing.T, h TransportHarness) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := h.New(t, "alpha").PublishWakeups(ctx, &lane.PublishCommand{
		Attempts: []lane.PublishAttempt{attempt(0, "alpha")},
	})
	wantError(t, err, runlane.ErrOperationCancelled)
}

func await(t *testing.T, what string, done <-chan struct{}) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(patience.Limit):
		t.Fatalf("waited %s for %s", patience.Limit, what)
	}
}

// yield lets other goroutines go on: what they must not do, they do when it is their turn.
func yield() {
	for range 1000 {
		runtime.Gosched()
	}
}

func waitFor(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience.Limit); !condition(); {
		if time.Now().After(deadline) {
			t.Fatalf("waited %s until %s", patience.Limit, what)
		}
		select {
		case <-t.Context().Done():
			t.Fatal(t.Context().Err())
		case <-time.After(5 * time.Millisecond):
		}
	}
}
