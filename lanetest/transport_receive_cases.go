package lanetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/proof/scenarios/patience"
	"github.com/runlane/runlane-go/lane"
)

// docs/internals/contract.md, Receiving.
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

// docs/internals/contract.md, Receiving.
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

// docs/internals/contract.md, Receiving. Ten thousand wakeups of one key wait before three of another.
func transportFair(t *testing.T, h TransportHarness) {
	transport := h.New(t, "alpha")
	const crowd = 10_000
	attempts := make([]lane.PublishAttempt, crowd+3)
	for n := range attempts {
		attempts[n] = attempt(n, "alpha")
		attempts[n].GroupKey = map[bool]string{true: "crowd", false: "few"}[n < crowd]
	}
	wantPublished(t, publish(t, transport, attempts...), len(attempts))
	receiver, _ := lane.As[lane.Receiver](transport)
	ctx, stop := patience.Context(t)
	var got []runlane.RunID
	err := receiver.Receive(ctx, []runlane.QueueName{"alpha"}, 1, func(_ context.Context, w lane.Wakeup) error {
		if got = append(got, w.RunID); len(got) == 6 {
			stop()
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	others := slices.DeleteFunc(got, func(id runlane.RunID) bool { return len(id) < len("run_10000") })
	if len(others) != 3 {
		t.Errorf("of the first 6 wakeups %d are those behind the crowd, want 3", len(others))
	}
}

// docs/internals/contract.md, Receiving.
func transportReceiveUnbound(t *testing.T, h TransportHarness) {
	r, _ := lane.As[lane.Receiver](h.New(t, "alpha"))
	err := r.Receive(
		t.Context(),
		[]runlane.QueueName{"alpha", "nowhere"},
		1,
		func(context.Context, lane.Wakeup) error { return nil },
	)
	wantError(t, err, runlane.ErrConfigurationInvalid)
}

// docs/internals/contract.md, Receiving.
func transportConcurrency(t *testing.T, h TransportHarness) {
	transport := h.New(t, "alpha")
	const concurrency, wakeups = 3, 9
	var mu sync.Mutex
	running, most := 0, 0
	full, leave := make(chan struct{}, 2*wakeups), make(chan struct{}, wakeups)
	r := receive(t, transport, concurrency, func(lane.Wakeup) error {
		mu.Lock()
		running++
		most = max(most, running)
		if running >= concurrency {
			full <- struct{}{}
		}
		mu.Unlock()
		<-leave
		mu.Lock()
		defer mu.Unlock()
		running--
		return nil
	}, "alpha")
	release := sync.OnceFunc(func() { close(leave) })
	t.Cleanup(release) // before the receiver is stopped
	var attempts []lane.PublishAttempt
	for n := range wakeups {
		attempts = append(attempts, attempt(n, "alpha"))
	}
	wantPublished(t, publish(t, transport, attempts...), wakeups)
	for range wakeups - concurrency { // one leaves after the other, and one too many may come meanwhile
		await(t, "as many handlers as there may be", full)
		yield()
		leave <- struct{}{}
		r.take(1)
	}
	release()
	r.take(concurrency)
	mu.Lock()
	defer mu.Unlock()
	if most != concurrency {
		t.Fatalf("%d handlers at once, want %d", most, concurrency)
	}
}

// docs/internals/contract.md, Receiving.
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

// docs/internals/contract.md, Receiving.
func transportFinish(t *testing.T, h TransportHarness) {
	transport := h.New(t, "alpha")
	r, _ := lane.As[lane.Receiver](transport)
	wantPublished(t, publish(t, transport, attempt(0, "alpha")), 1)
	ctx, cancel := context.WithCancel(t.Context())
	entered, leave, returned := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	release := sync.OnceFunc(func() { close(leave) })
	t.Cleanup(release)
	var left atomic.Bool
	go func() { // ends when the handler may leave
		err := r.Receive(ctx, []runlane.QueueName{"alpha"}, 1, func(ctx context.Context, _ lane.Wakeup) error {
			close(entered)
			<-leave
			left.Store(true)
			return ctx.Err() // must not have ended with Receive's
		})
		if err == nil && !left.Load() {
			err = errors.New("and a handler was under way")
		}
		returned <- err
	}()
	await(t, "the handler", entered)
	cancel()
	yield()
	release()
	select {
	case err := <-returned:
		if err != nil {
			t.Fatalf("Receive returned %v", err)
		}
	case <-time.After(patience.Limit):
		t.Fatal("Receive did not return after its handler had")
	}
	if h.Depth {
		waitFor(t, "the wakeup is acknowledged", func() bool {
			visible, inFlight, err := transport.Depth(t.Context(), "alpha")
			return err == nil && visible == 0 && inFlight == 0
		})
	}
}

// docs/internals/contract.md, Delayed wakeups.
func transportDelay(t *testing.T, h TransportHarness) {
	transport := h.New(t, "alpha")
	longest := transport.MaxDelay("alpha")
	if longest < time.Second {
		t.Fatalf("the longest delay is %s", longest)
	}
	const delay = 300 * time.Millisecond
	r := receive(t, transport, 1, accept, "alpha")
	sent := time.Now()
	outcomes := must(transport.SendWakeups(t.Context(), []lane.DelayedWakeup{
		{Wakeup: attempt(0, "alpha").Wakeup, Delay: delay},
		{Wakeup: attempt(1, "alpha").Wakeup, Delay: longest + time.Second},
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

// docs/internals/contract.md, Receiving.
func transportDepth(t *testing.T, h TransportHarness) {
	transport := h.New(t, "alpha")
	depth := func(wantVisible, wantInFlight int) {
		t.Helper()
		waitFor(t, fmt.Sprintf("depth %d waiting, %d under way", wantVisible, wantInFlight), func() bool {
			visible, inFlight, err := transport.Depth(t.Context(), "alpha")
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
