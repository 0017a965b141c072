package core

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// policy is the queue's current policy as far as this process knows it.
func (rt *Runtime) policy(name runlane.QueueName) runlane.Queue {
	if q, ok := rt.queues[name]; ok {
		return q
	}
	return runlane.Queue{Name: name}
}

// knownQueue returns the policy of a queue. The default queue needs no declaration.
func (rt *Runtime) knownQueue(name runlane.QueueName) (q runlane.Queue, known bool) {
	if q, known = rt.queues[name]; known {
		return q, true
	}
	if name == runlane.DefaultQueue.Name {
		return runlane.DefaultQueue, true
	}
	return runlane.Queue{Name: name}, false
}

func (rt *Runtime) registerQueue(q runlane.Queue) error {
	if known, ok := rt.queues[q.Name]; ok && known == q {
		return nil
	}
	if err := rt.checkQueue(q); err != nil {
		return err
	}
	rt.queues[q.Name] = q
	if q.Bounded() {
		at, _ := slices.BinarySearchFunc(rt.bounded, q.Name, func(q runlane.Queue, name runlane.QueueName) int {
			return cmp.Compare(q.Name, name)
		})
		rt.bounded = slices.Insert(rt.bounded, at, q)
	}
	return nil
}

func (rt *Runtime) checkQueue(q runlane.Queue) error {
	if known, ok := rt.queues[q.Name]; ok {
		if known == q {
			return nil
		}
		return &runlane.Error{
			Code: runlane.ErrConfigurationInvalid, Message: fmt.Sprintf("two different queues are named %q", q.Name),
			Hint: "declare each queue once, as a package variable",
		}
	}
	if err := q.Validate(); err != nil {
		return err
	}
	if q.Bounded() && !rt.storage().Capabilities().EnforcesQueueConcurrency {
		return unsupported(fmt.Sprintf("queue %q is bounded and the storage does not enforce limits", q.Name))
	}
	if q.Rated() && !rt.storage().Capabilities().EnforcesQueueRate {
		return unsupported(fmt.Sprintf("queue %q has a rate and the storage does not enforce rates", q.Name))
	}
	if q.Rated() && rt.ordered(q.Name) {
		return &runlane.Error{
			Code:    runlane.ErrConfigurationInvalid,
			Message: fmt.Sprintf("queue %q has a rate and is ordered: its wakeups cannot be delayed", q.Name),
			Hint:    "bind it to a queue that is not ordered, or limit it by Concurrency",
		}
	}
	if _, bound := lane.CarrierOf(rt.lane.Transport, q.Name); !bound {
		return &runlane.Error{
			Code:    runlane.ErrConfigurationInvalid,
			Message: fmt.Sprintf("the transport has no binding for queue %q", q.Name),
			Hint:    "bind the queue in the transport's configuration, or name one that is bound",
		}
	}
	return nil
}

// unknownHere reports whether this process does not know the queue, but gets its wakeups through a shared binding. Its
// limit is unknown, so its runs are left to processes that know it.
func (rt *Runtime) unknownHere(name runlane.QueueName) bool {
	if _, known := rt.knownQueue(name); known {
		return false
	}
	carrier, bound := lane.CarrierOf(rt.lane.Transport, name)
	if !bound || carrier != name {
		return bound
	}
	return slices.ContainsFunc(rt.bindings, func(other runlane.QueueName) bool {
		shared, _ := lane.CarrierOf(rt.lane.Transport, other)
		return other != name && shared == carrier
	})
}

func (rt *Runtime) checkQueues(option string, names []runlane.QueueName) error {
	if names != nil && len(names) == 0 {
		return invalidOption(
			"leave it nil for the queues of this process's handlers",
			"%s is empty: nothing would be done",
			option,
		)
	}
	for _, name := range names {
		if err := name.Validate(); err != nil {
			return invalidOption(hintOf(err), "%s: %s", option, messageOf(err))
		}
		if _, bound := lane.CarrierOf(rt.lane.Transport, name); !bound {
			const hint = "bind it in the transport's configuration, or leave it out"
			return invalidOption(hint, "%s: the transport has no binding for queue %q", option, name)
		}
	}
	return nil
}

func (rt *Runtime) handlerQueues() []runlane.QueueName {
	var names []runlane.QueueName
	for _, h := range rt.handlers {
		names = append(names, h.Task.Queue.Name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
