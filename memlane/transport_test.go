package memlane_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/memlane"
)

func wakeup(id runlane.RunID, queue runlane.QueueName) lane.Wakeup {
	return lane.Wakeup{RunKey: lane.RunKey{RunID: id}, Queue: queue}
}

// arrival is a delivery and how long after the start of the test it came.
type arrival struct {
	ID    runlane.RunID
	After time.Duration
}

// listen receives until the returned function is called, which waits for the end of Receive.
func listen(t *testing.T, transport *memlane.Transport, concurrency int, handle func(lane.Wakeup) error, queues ...runlane.QueueName) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { // ends with ctx
		done <- transport.Receive(ctx, queues, concurrency, func(_ context.Context, w lane.Wakeup) error { return handle(w) })
	}()
	return func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Receive returned %v", err)
		}
	}
}

func send(t *testing.T, transport *memlane.Transport, wakeups ...lane.Wakeup) {
	t.Helper()
	c := &lane.PublishCommand{}
	for _, w := range wakeups {
		c.Attempts = append(c.Attempts, lane.PublishAttempt{Wakeup: w})
	}
	if _, err := transport.PublishWakeups(t.Context(), c); err != nil {
		t.Fatal(err)
	}
}

func TestTransport_DelayedWakeupsComeAtTheirExactTimes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		transport := memlane.NewTransport(nil)
		start := time.Now()
		var got []arrival
		stop := listen(t, transport, 1, func(w lane.Wakeup) error {
			got = append(got, arrival{w.RunID, time.Since(start)})
			return nil
		}, "q")
		var delayed []lane.DelayedWakeup
		for _, seconds := range []int{30, 10, 20, 900} {
			delayed = append(delayed, lane.DelayedWakeup{
				Wakeup: wakeup(runlane.RunID(fmt.Sprint(seconds)), "q"), Delay: time.Duration(seconds) * time.Second,
			})
		}
		if _, err := transport.SendWakeups(t.Context(), delayed); err != nil {
			t.Fatal(err)
		}
		<-time.After(5 * time.Second) // virtual
		if _, err := transport.SendWakeups(t.Context(), []lane.DelayedWakeup{{Wakeup: wakeup("8", "q"), Delay: 3 * time.Second}}); err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Hour)
		stop()
		want := []arrival{{"8", 8 * time.Second}, {"10", 10 * time.Second}, {"20", 20 * time.Second}, {"30", 30 * time.Second}, {"900", 900 * time.Second}}
		if d := cmp.Diff(want, got); d != "" {
			t.Error(d)
		}
	})
}

func wantDepth(t *testing.T, transport *memlane.Transport, queue runlane.QueueName, visible, inFlight int) {
	t.Helper()
	v, f, err := transport.Depth(t.Context(), queue)
	if err != nil || v != visible || f != inFlight {
		t.Fatalf("depth is %d and %d (%v), want %d and %d", v, f, err, visible, inFlight)
	}
}

// An idle receiver does nothing at all: with every goroutine blocked, virtual time can only move to the end of the wait.
func TestTransport_IdleReceiversWaitWithoutTimers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		transport := memlane.NewTransport(nil)
		calls := 0
		stop := listen(t, transport, 5, func(lane.Wakeup) error {
			calls++
			return nil
		}, "q", "r")
		before := time.Now()
		<-time.After(24 * time.Hour)
		synctest.Wait()
		if waited := time.Since(before); waited != 24*time.Hour || calls != 0 {
			t.Fatalf("%s, %d calls", waited, calls)
		}
		send(t, transport, wakeup("a", "r"))
		synctest.Wait()
		if calls != 1 {
			t.Fatal("an idle receiver was not woken at once")
		}
		stop()
	})
}

func TestTransport_ABusyQueueDoesNotStarveAnother(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		transport := memlane.NewTransport(nil)
		for n := range 100 {
			send(t, transport, wakeup(runlane.RunID(fmt.Sprint(n)), "busy"))
		}
		send(t, transport, wakeup("rare", "quiet"))
		place := 0
		var handled int
		stop := listen(t, transport, 1, func(w lane.Wakeup) error {
			handled++
			if w.Queue == "quiet" {
				place = handled
			}
			return nil
		}, "busy", "quiet")
		synctest.Wait()
		stop()
		if handled != 101 || place > 2 {
			t.Fatalf("%d wakeups, that of the quiet queue came as number %d", handled, place)
		}
	})
}

func TestTransport_CloseEndsReceiveAndForgetsWakeups(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		transport := memlane.NewTransport(nil)
		done := make(chan error)
		go func() { // ends with the transport
			done <- transport.Receive(t.Context(), []runlane.QueueName{"q"}, 3, func(context.Context, lane.Wakeup) error {
				return errors.New("refused")
			})
		}()
		send(t, transport, wakeup("a", "q"))
		if _, err := transport.SendWakeups(t.Context(), []lane.DelayedWakeup{{Wakeup: wakeup("b", "q"), Delay: time.Minute}}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		for range 2 { // twice is once
			if err := transport.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if err := <-done; err != nil {
			t.Fatalf("Receive returned %v", err)
		}
		_, err := transport.PublishWakeups(t.Context(), &lane.PublishCommand{})
		if !errors.Is(err, runlane.ErrTransportUnavailable) {
			t.Fatalf("publishing after Close: %v", err)
		}
		_, err = transport.SendWakeups(t.Context(), nil)
		if !errors.Is(err, runlane.ErrTransportUnavailable) {
			t.Fatalf("sending after Close: %v", err)
		}
	})
}

func TestTransport_RefusesWhatItCannotReceive(t *testing.T) {
	t.Parallel()
	transport := memlane.NewTransport(&memlane.TransportOptions{Queues: []runlane.QueueName{"q"}})
	for name, c := range map[string]struct {
		queues      []runlane.QueueName
		concurrency int
	}{"no queue": {nil, 1}, "unbound queue": {[]runlane.QueueName{"q", "r"}, 1}, "no workers": {[]runlane.QueueName{"q"}, 0}} {
		err := transport.Receive(t.Context(), c.queues, c.concurrency, nil)
		if !errors.Is(err, runlane.ErrConfigurationInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, _, err := transport.Depth(t.Context(), "r"); !errors.Is(err, runlane.ErrConfigurationInvalid) {
		t.Errorf("depth of an unbound queue: %v", err)
	}
}

func TestTransport_DelayBeyondTheLongestIsRefusedForGood(t *testing.T) {
	t.Parallel()
	transport := memlane.NewTransport(&memlane.TransportOptions{MaxDelay: time.Minute})
	outcomes, err := transport.SendWakeups(t.Context(), []lane.DelayedWakeup{{Wakeup: wakeup("a", "q"), Delay: time.Minute + 1}})
	if err != nil || len(outcomes) != 1 || outcomes[0].Type != lane.PublishFailed || !outcomes[0].Permanent {
		t.Fatalf("%+v, %v", outcomes, err)
	}
	if transport.MaxDelay("q") != time.Minute {
		t.Fatal("the longest delay is not what was asked for")
	}
}
