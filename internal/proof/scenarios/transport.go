package scenarios

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// ScriptedTransport delivers nothing by itself: it records what it is asked to send and gives the answers that the test
// sets. Tests take a wakeup from it and pass it to ExecuteDelivery, when and as often as they like. It is
// safe for concurrent use.
type ScriptedTransport struct {
	lane.UnimplementedTransport

	mu        sync.Mutex
	longest   time.Duration
	ordered   []runlane.QueueName
	bindings  []runlane.QueueName
	depth     map[runlane.QueueName]int // "" is of every queue that is not named
	publish   func(*lane.PublishCommand) ([]lane.PublishOutcome, error)
	send      func([]lane.DelayedWakeup) ([]lane.PublishOutcome, error)
	published []lane.PublishAttempt
	delayed   []lane.DelayedWakeup
	closed    bool
}

var _ lane.Transport = (*ScriptedTransport)(nil)

// NewScriptedTransport accepts everything, delays up to 15 minutes and has a binding for any queue.
func NewScriptedTransport() *ScriptedTransport {
	return &ScriptedTransport{longest: 15 * time.Minute, depth: map[runlane.QueueName]int{}}
}

// OnPublish replaces the answer of PublishWakeups; nil accepts everything.
func (s *ScriptedTransport) OnPublish(answer func(*lane.PublishCommand) ([]lane.PublishOutcome, error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.publish = answer
}

// OnSend replaces the answer of SendWakeups; nil accepts everything.
func (s *ScriptedTransport) OnSend(answer func([]lane.DelayedWakeup) ([]lane.PublishOutcome, error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.send = answer
}

// scripts reports a method whose answer was replaced.
func (s *ScriptedTransport) scripts(method string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return method == "PublishWakeups" && s.publish != nil || method == "SendWakeups" && s.send != nil
}

// SetMaxDelay sets the longest delay of every queue; 0: none.
func (s *ScriptedTransport) SetMaxDelay(longest time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.longest = longest
}

// Order makes queues ordered ones, which cannot delay. Nothing orders what tests take from it.
func (s *ScriptedTransport) Order(queues ...runlane.QueueName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ordered = queues
}

// Ordered is what Order said.
func (s *ScriptedTransport) Ordered(queue runlane.QueueName) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Contains(s.ordered, queue)
}

// SetDepth sets how many wakeups seem to wait in each of the queues; without queues, in all for which it was not
// called.
func (s *ScriptedTransport) SetDepth(visible int, queues ...runlane.QueueName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(queues) == 0 {
		queues = []runlane.QueueName{""}
	}
	for _, queue := range queues {
		s.depth[queue] = visible
	}
}

// Bind names the queues it has; before that it has any.
func (s *ScriptedTransport) Bind(queues ...runlane.QueueName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bindings = queues
}

// TakePublished returns and forgets what was accepted since it was asked last.
func (s *ScriptedTransport) TakePublished() []lane.PublishAttempt {
	s.mu.Lock()
	defer s.mu.Unlock()
	taken := s.published
	s.published = nil
	return taken
}

// TakeDelayed returns and forgets the delayed wakeups that were accepted since it was asked last.
func (s *ScriptedTransport) TakeDelayed() []lane.DelayedWakeup {
	s.mu.Lock()
	defer s.mu.Unlock()
	taken := s.delayed
	s.delayed = nil
	return taken
}

// putDelayed puts back delayed wakeups that were taken too early.
func (s *ScriptedTransport) putDelayed(wakeups []lane.DelayedWakeup) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.delayed = append(wakeups, s.delayed...)
}

// Closed reports whether Close was called.
func (s *ScriptedTransport) Closed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// Capabilities promises native delay.
func (s *ScriptedTransport) Capabilities() lane.TransportCapabilities {
	return lane.TransportCapabilities{NativeDelay: true}
}

// Queues are those that Bind named.
func (s *ScriptedTransport) Queues() []runlane.QueueName {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.bindings)
}

// Close only sets what Closed reports.
func (s *ScriptedTransport) Close(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return nil
}

// PublishWakeups answers as told and records what it accepted.
func (s *ScriptedTransport) PublishWakeups(_ context.Context, c *lane.PublishCommand) ([]lane.PublishOutcome, error) {
	s.mu.Lock()
	answer := s.publish
	s.mu.Unlock()
	outcomes, err := accepted(len(c.Attempts)), error(nil)
	if answer != nil {
		outcomes, err = answer(c)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range outcomes {
		if err == nil && i < len(c.Attempts) && outcomes[i].Type == lane.Published {
			s.published = append(s.published, c.Attempts[i])
		}
	}
	return outcomes, err
}

// MaxDelay is what SetMaxDelay set, but 0 for ordered queues.
func (s *ScriptedTransport) MaxDelay(queue runlane.QueueName) time.Duration {
	if s.Ordered(queue) {
		return 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.longest
}

// SendWakeups answers as told and records what it accepted.
func (s *ScriptedTransport) SendWakeups(
	_ context.Context, wakeups []lane.DelayedWakeup,
) ([]lane.PublishOutcome, error) {
	s.mu.Lock()
	answer := s.send
	s.mu.Unlock()
	outcomes, err := accepted(len(wakeups)), error(nil)
	if answer != nil {
		outcomes, err = answer(wakeups)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range outcomes {
		if err == nil && outcomes[i].Type == lane.Published {
			s.delayed = append(s.delayed, wakeups[i])
		}
	}
	return outcomes, err
}

// Depth is what SetDepth set.
func (s *ScriptedTransport) Depth(_ context.Context, queue runlane.QueueName) (visible, inFlight int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	visible, named := s.depth[queue]
	if !named {
		visible = s.depth[""]
	}
	return visible, 0, nil
}

func accepted(n int) []lane.PublishOutcome {
	return slices.Repeat([]lane.PublishOutcome{{Type: lane.Published}}, n)
}

// refused is the answer that refuses every message, each as unacceptable or because of an outage.
func refused(code runlane.ErrorCode, permanent bool) func(*lane.PublishCommand) ([]lane.PublishOutcome, error) {
	return func(c *lane.PublishCommand) ([]lane.PublishOutcome, error) {
		outcomes := make([]lane.PublishOutcome, len(c.Attempts))
		for i := range outcomes {
			outcomes[i] = lane.PublishOutcome{
				Type: lane.PublishFailed, Failure: runlane.NewFailure(code, "scripted", nil), Permanent: permanent,
			}
		}
		return outcomes, nil
	}
}
