package lives

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// modelTransport keeps what it is given until a step delivers, repeats or loses it.
type modelTransport struct {
	lane.UnimplementedTransport

	mu    sync.Mutex
	fault string
	sent  []modelWakeup // since the last step looked
}

// modelWakeup is a message for a run, to arrive after a delay.
type modelWakeup struct {
	run   runlane.RunID
	delay time.Duration
}

// What the transport does with messages.
const (
	modeSound    = "sound"
	modeRefuses  = "refuses"  // each message, for now
	modeRejects  = "rejects"  // each message, for good
	modeOut      = "out"      // says so for each message
	modeBroken   = "broken"   // fails as a whole
	modeUnmarked = "unmarked" // takes messages; no process can record it
)

var modelFaults = []string{modeRefuses, modeRejects, modeOut, modeBroken, modeUnmarked}

func (t *modelTransport) mode() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return cmp.Or(t.fault, modeSound)
}

func (t *modelTransport) set(fault string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.fault = fault
}

// takeSent returns what was sent since the last call, in a separate order: a tick publishes side by side.
func (t *modelTransport) takeSent() []modelWakeup {
	t.mu.Lock()
	defer t.mu.Unlock()
	sent := t.sent
	t.sent = nil
	slices.SortFunc(sent, modelWakeup.compare)
	return sent
}

func (a modelWakeup) compare(b modelWakeup) int {
	return cmp.Or(cmp.Compare(a.run, b.run), cmp.Compare(a.delay, b.delay))
}

func (t *modelTransport) Capabilities() lane.TransportCapabilities {
	return lane.TransportCapabilities{NativeDelay: true}
}

func (t *modelTransport) Queues() []runlane.QueueName { return nil }

func (t *modelTransport) MaxDelay(runlane.QueueName) time.Duration { return maxDelay }

func (t *modelTransport) PublishWakeups(_ context.Context, c *lane.PublishCommand) ([]lane.PublishOutcome, error) {
	outcomes := make([]lane.PublishOutcome, len(c.Attempts))
	for i := range c.Attempts {
		var err error
		if outcomes[i], err = t.send(c.Attempts[i].RunID, 0); err != nil {
			return nil, err
		}
	}
	return outcomes, nil
}

func (t *modelTransport) SendWakeups(_ context.Context, wakeups []lane.DelayedWakeup) ([]lane.PublishOutcome, error) {
	outcomes := make([]lane.PublishOutcome, len(wakeups))
	for i := range wakeups {
		var err error
		if outcomes[i], err = t.send(wakeups[i].RunID, wakeups[i].Delay); err != nil {
			return nil, err
		}
	}
	return outcomes, nil
}

func (t *modelTransport) send(run runlane.RunID, delay time.Duration) (lane.PublishOutcome, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	refused := lane.PublishOutcome{Type: lane.PublishFailed, Failure: runlane.Failure{Code: runlane.ErrTransportPublishFailed, Message: "refused"}}
	switch t.fault {
	case modeRefuses:
		return refused, nil
	case modeRejects:
		refused.Permanent = true
		return refused, nil
	case modeOut:
		refused.Failure.Code = runlane.ErrTransportUnavailable
		return refused, nil
	case modeBroken:
		return lane.PublishOutcome{}, &runlane.Error{Code: runlane.ErrTransportUnavailable, Message: "no connection", Retryable: true}
	default:
		t.sent = append(t.sent, modelWakeup{run, delay})
		return lane.PublishOutcome{Type: lane.Published}, nil
	}
}
