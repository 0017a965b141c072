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

// letter is a wakeup that the transport has.
type letter struct {
	wakeup  lane.Wakeup
	arrives time.Time
}

func compareLetters(a, b letter) int {
	return cmp.Or(
		a.arrives.Compare(b.arrives),
		cmp.Compare(a.wakeup.RunID, b.wakeup.RunID),
		a.wakeup.RequestedAt.Compare(b.wakeup.RequestedAt),
	)
}

// mail is what all processes send into, and steps take from.
type mail struct {
	mu      sync.Mutex
	letters []letter
}

func (m *mail) put(l letter) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.letters = append(m.letters, l)
}

// sorted is what there is, in a separate order: some are sent side by side.
func (m *mail) sorted() []letter {
	m.mu.Lock()
	defer m.mu.Unlock()
	slices.SortFunc(m.letters, compareLetters)
	return slices.Clone(m.letters)
}

// take removes one of those that sorted returned last.
func (m *mail) take(i int) letter {
	m.mu.Lock()
	defer m.mu.Unlock()
	l := m.letters[i]
	m.letters = slices.Delete(m.letters, i, i+1)
	return l
}

// post is a process's way to the mail.
type post struct {
	lane.UnimplementedTransport

	p *process
}

// Capabilities implements lane.Transport.
func (t *post) Capabilities() lane.TransportCapabilities {
	return lane.TransportCapabilities{NativeDelay: true}
}

// MaxDelay implements lane.Transport.
func (t *post) MaxDelay(runlane.QueueName) time.Duration { return maxDelay }

// PublishWakeups implements lane.Transport.
func (t *post) PublishWakeups(_ context.Context, c *lane.PublishCommand) ([]lane.PublishOutcome, error) {
	wakeups := make([]lane.DelayedWakeup, len(c.Attempts))
	for i := range c.Attempts {
		wakeups[i].Wakeup = c.Attempts[i].Wakeup
	}
	return t.send("PublishWakeups", wakeups)
}

// SendWakeups implements lane.Transport.
func (t *post) SendWakeups(_ context.Context, wakeups []lane.DelayedWakeup) ([]lane.PublishOutcome, error) {
	return t.send("SendWakeups", wakeups)
}

func (t *post) send(method string, wakeups []lane.DelayedWakeup) ([]lane.PublishOutcome, error) {
	p, about := t.p, ""
	if len(wakeups) > 0 {
		about = string(wakeups[0].RunID)
	}
	if p.dies(deathBefore, method, about) {
		return nil, errDead()
	}
	if p.meets(transportOut, method, about) {
		return nil, &runlane.Error{Code: runlane.ErrTransportUnavailable, Message: "no connection", Retryable: true}
	}
	outcomes := make([]lane.PublishOutcome, len(wakeups))
	for i := range wakeups {
		outcomes[i] = t.sendOne(method, &wakeups[i])
	}
	if p.dies(deathAfter, method, about) {
		return nil, errDead()
	}
	if p.meets(transportUnheard, method, about) {
		return nil, &runlane.Error{Code: runlane.ErrTransportUnavailable, Message: "connection reset", Retryable: true}
	}
	return outcomes, nil
}

func (t *post) sendOne(method string, w *lane.DelayedWakeup) lane.PublishOutcome {
	p, about := t.p, string(w.RunID)
	no := lane.PublishOutcome{
		Type:    lane.PublishFailed,
		Failure: runlane.Failure{Code: runlane.ErrTransportPublishFailed, Message: "refused"},
	}
	switch {
	case p.meets(refused, method, about):
		return no
	case p.meets(rejected, method, about):
		no.Permanent = true
		return no
	}
	yes, copies := lane.PublishOutcome{Type: lane.Published}, 1
	arrives := p.life.clock.Now().Add(w.Delay)
	switch {
	case p.meets(lostWakeup, method, about):
		copies = 0
	case p.meets(doubledWakeup, method, about):
		copies = 2
	case p.meets(lateWakeup, method, about):
		arrives = arrives.Add(20 * time.Minute)
	}
	for range copies {
		p.life.mail.put(letter{w.Wakeup, arrives})
	}
	return yes
}
