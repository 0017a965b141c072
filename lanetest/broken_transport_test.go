package lanetest_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/proof/patience"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/lanetest"
	"github.com/runlane/runlane-go/memlane"
)

// Transports that are wrong in one thing, like the storages of broken_test.go.

// brokenTransport changes what a sound transport does, or what its harness promises.
type brokenTransport struct {
	harness func(*lanetest.TransportHarness)
	publish func([]lane.PublishOutcome, error) ([]lane.PublishOutcome, error)
	send    func(lane.DelayedWakeup) lane.DelayedWakeup
	receive func(concurrency int, handle func(context.Context, lane.Wakeup) error) (int, func(context.Context, lane.Wakeup) error)
	fails   string
}

var brokenTransports = map[string]brokenTransport{
	"reverses": {fails: "RefusedWakeupsFailAloneEachAtItsPlace", publish: func(o []lane.PublishOutcome, err error) ([]lane.PublishOutcome, error) {
		slices.Reverse(o)
		return o, err
	}},
	"forgetsOne": {fails: "OneOutcomeForEachAttemptInOrder", publish: func(o []lane.PublishOutcome, err error) ([]lane.PublishOutcome, error) {
		return o[:max(len(o)-1, 0)], err
	}},
	"allOrNothing": {fails: "UnboundQueueFailsAlone", publish: func(o []lane.PublishOutcome, err error) ([]lane.PublishOutcome, error) {
		if slices.ContainsFunc(o, func(o lane.PublishOutcome) bool { return o.Type != lane.Published }) {
			return nil, &runlane.Error{Code: runlane.ErrTransportPublishFailed, Message: "one of them failed"}
		}
		return o, err
	}},
	"blamesMessages": {fails: "AnOutageFailsEveryAttemptAndCountsForNone", publish: func(o []lane.PublishOutcome, err error) ([]lane.PublishOutcome, error) {
		if errors.Is(err, runlane.ErrTransportUnavailable) {
			return nil, &runlane.Error{Code: runlane.ErrTransportPublishFailed, Message: "refused"}
		}
		return o, err
	}},
	"takesEverything": {fails: "AWakeupThatIsTooLargeFailsAloneForGood", harness: func(h *lanetest.TransportHarness) { h.MaxBytes = 1000 }},
	"repeats":         {fails: "ARepeatedPublicationArrivesOnce", harness: func(h *lanetest.TransportHarness) { h.Deduplicates = true }},
	"promisesOrder": {fails: "GroupsKeepTheirOrder", harness: func(h *lanetest.TransportHarness) {
		h.Capabilities.MessageGrouping, h.Capabilities.OrderedDelivery = true, true
	}},
	"delaysSecretly": {fails: "WithoutNativeDelayNothingIsDelayed", harness: func(h *lanetest.TransportHarness) { h.Capabilities.NativeDelay = false }},
	"isEarly": {fails: "DelayedWakeupsArriveAfterTheirDelay", send: func(w lane.DelayedWakeup) lane.DelayedWakeup {
		w.Delay /= 2
		return w
	}},
	"losesTraces": {fails: "WakeupsArriveAsTheyWereSent", receive: func(n int, handle func(context.Context, lane.Wakeup) error) (int, func(context.Context, lane.Wakeup) error) {
		return n, func(ctx context.Context, w lane.Wakeup) error {
			w.TraceCarrier = nil
			return handle(ctx, w)
		}
	}},
	"oneTooMany": {fails: "NoMoreHandlersThanConcurrency", receive: func(n int, handle func(context.Context, lane.Wakeup) error) (int, func(context.Context, lane.Wakeup) error) {
		return n + 1, handle
	}},
	"comesTwice": {fails: "ARefusedWakeupComesAgainAndAnAcknowledgedOneDoesNot", receive: func(n int, handle func(context.Context, lane.Wakeup) error) (int, func(context.Context, lane.Wakeup) error) {
		var seen sync.Map
		return n, func(ctx context.Context, w lane.Wakeup) error {
			if _, again := seen.LoadOrStore(w.RunID, true); !again {
				_ = handle(ctx, w)
				return errors.New("once more")
			}
			return handle(ctx, w)
		}
	}},
}

// flawed is a transport of memlane with one of them.
type flawed struct {
	*memlane.Transport
	brokenTransport
	capabilities lane.TransportCapabilities
	refused      []runlane.RunID
}

func (f flawed) Capabilities() lane.TransportCapabilities { return f.capabilities }

func (f flawed) PublishWakeups(ctx context.Context, c *lane.PublishCommand) ([]lane.PublishOutcome, error) {
	taken := &lane.PublishCommand{}
	for i := range c.Attempts {
		if !slices.Contains(f.refused, c.Attempts[i].RunID) {
			taken.Attempts = append(taken.Attempts, c.Attempts[i])
		}
	}
	outcomes, err := f.Transport.PublishWakeups(ctx, taken)
	if err == nil {
		all := make([]lane.PublishOutcome, 0, len(c.Attempts))
		for i := range c.Attempts {
			if slices.Contains(f.refused, c.Attempts[i].RunID) {
				all = append(all, lane.PublishOutcome{Type: lane.PublishFailed, Failure: runlane.NewFailure(runlane.ErrTransportPublishFailed, "refused", nil)})
			} else {
				all, outcomes = append(all, outcomes[0]), outcomes[1:]
			}
		}
		outcomes = all
	}
	if f.publish != nil {
		return f.publish(outcomes, err)
	}
	return outcomes, err
}

func (f flawed) SendWakeups(ctx context.Context, wakeups []lane.DelayedWakeup) ([]lane.PublishOutcome, error) {
	if f.send != nil {
		wakeups = slices.Clone(wakeups)
		for i := range wakeups {
			wakeups[i] = f.send(wakeups[i])
		}
	}
	return f.Transport.SendWakeups(ctx, wakeups)
}

func (f flawed) Receive(ctx context.Context, queues []runlane.QueueName, n int, handle func(context.Context, lane.Wakeup) error) error {
	if f.receive != nil {
		n, handle = f.receive(n, handle)
	}
	return f.Transport.Receive(ctx, queues, n, handle)
}

// TestBrokenTransport is the second process. Without its variable it runs the sound transport.
func TestBrokenTransport(t *testing.T) {
	t.Parallel()
	flaw := brokenTransports[os.Getenv(brokenVariable)]
	h := lanetest.TransportHarness{Capabilities: lane.TransportCapabilities{NativeDelay: true}, Receives: true, Depth: true}
	if flaw.harness != nil {
		flaw.harness(&h)
	}
	made := func(t testing.TB, refused []runlane.RunID, queues []runlane.QueueName) flawed {
		t.Helper()
		transport := memlane.NewTransport(&memlane.TransportOptions{HandBack: 10 * time.Millisecond, Queues: queues})
		t.Cleanup(func() { _ = transport.Close(context.Background()) })
		return flawed{transport, flaw, h.Capabilities, refused}
	}
	h.New = func(t testing.TB, queues ...runlane.QueueName) lane.Transport { return made(t, nil, queues) }
	h.Refusing = func(t testing.TB, refused []runlane.RunID, queues ...runlane.QueueName) lane.Transport {
		return made(t, refused, queues)
	}
	h.Down = func(t testing.TB, queues ...runlane.QueueName) lane.Transport {
		down := made(t, nil, queues)
		_ = down.Close(t.Context())
		return down
	}
	lanetest.RunTransport(t, h)
}

func TestRunTransport_CatchesEachBrokenTransport(t *testing.T) {
	t.Parallel()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range brokenTransports {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if !slices.Contains(lanetest.TransportCases(), b.fails) {
				t.Fatalf("there is no case %s", b.fails)
			}
			second := exec.CommandContext(t.Context(), program, "-test.run", "^TestBrokenTransport$/^"+b.fails+"$", "-test.timeout", (2 * patience.Limit).String())
			second.Env = append(os.Environ(), brokenVariable+"="+name)
			out, err := second.CombinedOutput()
			if err == nil || !strings.Contains(string(out), "--- FAIL: TestBrokenTransport/"+b.fails) {
				t.Fatalf("the suite did not fail %s (%v):\n%s", b.fails, err, out)
			}
		})
	}
}

// Each group of cases catches something.
func TestRunStorage_EveryGroupCatchesABrokenStorage(t *testing.T) {
	t.Parallel()
	caught := map[string]bool{}
	for _, b := range broken {
		group, _, _ := strings.Cut(b.fails, "/")
		caught[group] = true
	}
	for _, group := range lanetest.StorageGroups() {
		if !caught[group] {
			t.Errorf("no broken storage fails a case of the group %s", group)
		}
	}
}
