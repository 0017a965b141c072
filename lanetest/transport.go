package lanetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// TransportHarness is what [RunTransport] has to know of a transport.
type TransportHarness struct {
	// New returns a transport that is started, bound to the queues, which are empty, and closed by t.Cleanup. Required.
	New func(t testing.TB, queues ...runlane.QueueName) lane.Transport
	// Capabilities are what the transport is expected to promise.
	Capabilities lane.TransportCapabilities
	// AnyQueue: bindings cannot be listed, every queue is accepted.
	AnyQueue bool
	// Receives: it is expected to be a lane.Receiver. Without it, that wakeups arrive is not tested here.
	Receives bool
	// Depth: it is expected to be a lane.DepthReader.
	Depth bool
	// HandBack is how long a refused wakeup may take to come again. 0 means a minute.
	HandBack time.Duration
}

type transportCase struct {
	name  string
	needs func(TransportHarness) bool
	run   func(t *testing.T, h TransportHarness)
}

// RunTransport proves the contract of lane.Transport, and of the optional abilities that the harness declares.
func RunTransport(t *testing.T, h TransportHarness) {
	t.Helper()
	receives := func(h TransportHarness) bool { return h.Receives }
	delays := func(h TransportHarness) bool { return h.Receives && h.Capabilities.NativeDelay }
	for _, c := range []transportCase{
		{"CapabilitiesAreThoseDeclared", nil, transportCapabilities},
		{"OneOutcomeForEachAttemptInOrder", nil, transportOutcomes},
		{"UnboundQueueFailsAlone", func(h TransportHarness) bool { return !h.AnyQueue }, transportUnbound},
		{"EndedContextIsOperationCancelled", nil, transportEnded},
		{"WakeupsArriveAsTheyWereSent", receives, transportArrive},
		{"QueuesAreApart", receives, transportApart},
		{"ReceivingAnUnboundQueueIsRefused", func(h TransportHarness) bool { return h.Receives && !h.AnyQueue }, transportReceiveUnbound},
		{"NoMoreHandlersThanConcurrency", receives, transportConcurrency},
		{"ARefusedWakeupComesAgainAndAnAcknowledgedOneDoesNot", receives, transportHandBack},
		{"ReceiveLetsHandlersFinishWhenItsContextEnds", receives, transportFinish},
		{"DelayedWakeupsArriveAfterTheirDelay", delays, transportDelay},
		{"DepthCountsWaitingAndUnacknowledgedWakeups", func(h TransportHarness) bool { return h.Depth && h.Receives }, transportDepth},
	} {
		if c.needs != nil && !c.needs(h) {
			continue // CapabilitiesAreThoseDeclared proves that the ability is absent
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.run(t, h)
		})
	}
}

// patience is how long a case waits for what must happen.
const patience = 30 * time.Second

func attempt(n int, queue runlane.QueueName) lane.PublishAttempt {
	id := runlane.RunID(fmt.Sprintf("run_%03d", n))
	return lane.PublishAttempt{
		OutboxRef: lane.OutboxRef{ID: fmt.Sprintf("row_%03d", n), ClaimToken: "token"},
		Wakeup: lane.Wakeup{
			RunKey: lane.RunKey{Environment: "lanetest", RunID: id}, Queue: queue, RequestedAt: noon.Add(time.Duration(n) * time.Millisecond),
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

func receive(t *testing.T, transport lane.Transport, concurrency int, handle func(lane.Wakeup) error, queues ...runlane.QueueName) *receiver {
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
	timeout := time.After(patience)
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

// docs/contract.md, Capabilities.
func transportCapabilities(t *testing.T, h TransportHarness) {
	transport := h.New(t, "alpha", "beta")
	equal(t, "capabilities", h.Capabilities, transport.Capabilities())
	if _, ok := lane.As[lane.Receiver](transport); ok != h.Receives {
		t.Errorf("transport is a lane.Receiver: %t, the harness says %t", ok, h.Receives)
	}
	if _, ok := lane.As[lane.DelayedSender](transport); h.Capabilities.NativeDelay && !ok {
		t.Error("transport promises native delay and is no lane.DelayedSender")
	}
	if _, ok := lane.As[lane.DepthReader](transport); ok != h.Depth {
		t.Errorf("transport is a lane.DepthReader: %t, the harness says %t", ok, h.Depth)
	}
	if h.AnyQueue {
		if got := transport.Queues(); got != nil {
			t.Errorf("queues are %v, want none listed", got)
		}
		return
	}
	equal(t, "queues", []runlane.QueueName{"alpha", "beta"}, sorted(transport.Queues()))
}

// docs/contract.md, Publishing.
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

func transportEnded(t *testing.T, h TransportHarness) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := h.New(t, "alpha").PublishWakeups(ctx, &lane.PublishCommand{Attempts: []lane.PublishAttempt{attempt(0, "alpha")}})
	wantError(t, err, runlane.ErrOperationCancelled)
}

// docs/contract.md, Receiving.
func transportArrive(t *testing.T, h TransportHarness) {
	transport := h.New(t, "alpha", "beta")
	var attempts []lane.PublishAttempt
	var want []lane.Wakeup
	for n := range 12 {
		a := attempt(n, []runlane.QueueName{"alpha", "beta"}[n%2])
		if n%3 == 0 {
			a.TraceCarrier = nil
		}
		attempts = append(attempts, a)
		kept := a.Wakeup
		kept.TraceCarrier = map[string]string{}
		for k, v := range a.TraceCarrier {
			kept.TraceCarrier[k] = v
		}
		want = append(want, kept)
	}
	wantPublished(t, publish(t, transport, attempts...), len(attempts))
	for i := range attempts {
		scribbleMap(attempts[i].TraceCarrier) // the command is the caller's again
	}
	got := receive(t, transport, 4, accept, "alpha", "beta").take(len(want))
	equal(t, "wakeups", want, got)
}

func transportApart(t *testing.T, h TransportHarness) {
	transport := h.New(t, "alpha", "beta")
	wantPublished(t, publish(t, transport, attempt(1, "beta"), attempt(2, "alpha"), attempt(3, "beta")), 3)
	alpha := receive(t, transport, 2, accept, "alpha")
	if got := alpha.take(1); got[0].RunID != "run_002" {
		t.Fatalf("the receiver of alpha got %s", got[0].RunID)
	}
	receive(t, transport, 2, accept, "beta").take(2)
	alpha.none()
}

func transportReceiveUnbound(t *testing.T, h TransportHarness) {
	r, _ := lane.As[lane.Receiver](h.New(t, "alpha"))
	err := r.Receive(t.Context(), []runlane.QueueName{"alpha", "nowhere"}, 1, func(context.Context, lane.Wakeup) error { return nil })
	wantError(t, err, runlane.ErrConfigurationInvalid)
}

func transportConcurrency(t *testing.T, h TransportHarness) {
	transport := h.New(t, "alpha")
	const concurrency, wakeups = 3, 9
	var mu sync.Mutex
	running, most := 0, 0
	full := make(chan struct{})
	r := receive(t, transport, concurrency, func(lane.Wakeup) error {
		mu.Lock()
		running++
		most = max(most, running)
		if running == concurrency {
			select {
			case <-full:
			default:
				close(full)
			}
		}
		mu.Unlock()
		select { // until there are as many at once as there may be
		case <-full:
		case <-time.After(patience):
		}
		mu.Lock()
		defer mu.Unlock()
		running--
		return nil
	}, "alpha")
	var attempts []lane.PublishAttempt
	for n := range wakeups {
		attempts = append(attempts, attempt(n, "alpha"))
	}
	wantPublished(t, publish(t, transport, attempts...), wakeups)
	r.take(wakeups)
	mu.Lock()
	defer mu.Unlock()
	if most != concurrency {
		t.Fatalf("%d handlers at once, want %d", most, concurrency)
	}
}

func transportHandBack(t *testing.T, h TransportHarness) {
	transport := h.New(t, "alpha")
	var mu sync.Mutex
	deliveries := map[runlane.RunID]int{}
	r := receive(t, transport, 2, func(w lane.Wakeup) error {
		mu.Lock()
		defer mu.Unlock()
		deliveries[w.RunID]++
		if w.RunID == "run_001" && deliveries[w.RunID] < 3 {
			return errors.New("not now")
		}
		return nil
	}, "alpha")
	wantPublished(t, publish(t, transport, attempt(0, "alpha"), attempt(1, "alpha")), 2)
	r.take(4)
	mu.Lock()
	defer mu.Unlock()
	equal(t, "deliveries", map[runlane.RunID]int{"run_000": 1, "run_001": 3}, deliveries)
}

func transportFinish(t *testing.T, h TransportHarness) {
	transport := h.New(t, "alpha")
	r, _ := lane.As[lane.Receiver](transport)
	wantPublished(t, publish(t, transport, attempt(0, "alpha")), 1)
	ctx, cancel := context.WithCancel(t.Context())
	entered, leave, returned := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	release := sync.OnceFunc(func() { close(leave) })
	t.Cleanup(release)
	go func() { // ends when the handler may leave
		returned <- r.Receive(ctx, []runlane.QueueName{"alpha"}, 1, func(ctx context.Context, _ lane.Wakeup) error {
			close(entered)
			<-leave
			return ctx.Err() // must not have ended with Receive's
		})
	}()
	await(t, "the handler", entered)
	cancel()
	select {
	case err := <-returned:
		t.Fatalf("Receive returned %v while a handler was under way", err)
	case <-time.After(50 * time.Millisecond):
	}
	release()
	select {
	case err := <-returned:
		if err != nil {
			t.Fatalf("Receive returned %v", err)
		}
	case <-time.After(patience):
		t.Fatal("Receive did not return after its handler had")
	}
	if depth, ok := lane.As[lane.DepthReader](transport); ok && h.Depth {
		waitFor(t, "the wakeup is acknowledged", func() bool {
			visible, inFlight, err := depth.Depth(t.Context(), "alpha")
			return err == nil && visible == 0 && inFlight == 0
		})
	}
}

// docs/contract.md, Delayed wakeups.
func transportDelay(t *testing.T, h TransportHarness) {
	transport := h.New(t, "alpha")
	sender, _ := lane.As[lane.DelayedSender](transport)
	longest := sender.MaxDelay("alpha")
	if longest < time.Second {
		t.Fatalf("the longest delay is %s", longest)
	}
	const delay = 300 * time.Millisecond
	r := receive(t, transport, 1, accept, "alpha")
	sent := time.Now()
	outcomes := must(sender.SendWakeups(t.Context(), []lane.DelayedWakeup{
		{Wakeup: attempt(0, "alpha").Wakeup, Delay: delay}, {Wakeup: attempt(1, "alpha").Wakeup, Delay: longest + time.Second},
	}))(t)
	if len(outcomes) != 2 || outcomes[0].Type != lane.Published || outcomes[1].Type != lane.PublishFailed {
		t.Fatalf("outcomes are %+v, want the first published and the second, which is too long, failed", outcomes)
	}
	got := r.take(1)
	if waited := time.Since(sent); waited < delay {
		t.Fatalf("arrived after %s, want at least %s", waited, delay)
	}
	equal(t, "wakeup", attempt(0, "alpha").Wakeup, got[0])
	r.none()
}

func transportDepth(t *testing.T, h TransportHarness) {
	transport := h.New(t, "alpha")
	reader, _ := lane.As[lane.DepthReader](transport)
	depth := func(wantVisible, wantInFlight int) {
		t.Helper()
		waitFor(t, fmt.Sprintf("depth %d waiting, %d under way", wantVisible, wantInFlight), func() bool {
			visible, inFlight, err := reader.Depth(t.Context(), "alpha")
			return err == nil && visible == wantVisible && inFlight == wantInFlight
		})
	}
	depth(0, 0)
	wantPublished(t, publish(t, transport, attempt(0, "alpha")), 1)
	depth(1, 0)
	entered, leave, over := make(chan struct{}), make(chan struct{}), make(chan struct{})
	r := receive(t, transport, 1, func(lane.Wakeup) error {
		select {
		case entered <- struct{}{}:
		case <-over:
		}
		select {
		case <-leave:
		case <-over:
		}
		return nil
	}, "alpha")
	t.Cleanup(func() { close(over) })
	await(t, "the handler", entered)
	depth(0, 1)
	leave <- struct{}{}
	r.take(1)
	depth(0, 0)

	wantPublished(t, publish(t, transport, attempt(1, "alpha")), 1) // to a receiver that waits for it
	await(t, "the handler, again", entered)
	depth(0, 1)
	leave <- struct{}{}
	r.take(1)
	depth(0, 0)
}

func await(t *testing.T, what string, done <-chan struct{}) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(patience):
		t.Fatalf("waited %s for %s", patience, what)
	}
}

func waitFor(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !condition(); {
		if time.Now().After(deadline) {
			t.Fatalf("waited %s until %s", patience, what)
		}
		select {
		case <-t.Context().Done():
			t.Fatal(t.Context().Err())
		case <-time.After(5 * time.Millisecond):
		}
	}
}
