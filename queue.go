package runlane

import (
	"fmt"
	"time"
)

// Priorities, see [TriggerOptions].Priority.
const (
	// MaxPriority is the highest priority of a run, and -MaxPriority the lowest.
	MaxPriority = 8
	// PriorityStep is the time of waiting for which one step of priority counts.
	PriorityStep = 10 * time.Minute
)

// MaxQueueConcurrency is the largest limit of a bounded queue.
const MaxQueueConcurrency = 1000

// Queue is a plain comparable value: declare each once as a package variable and name it in the tasks that use it. Two
// different values with one name make opening a runtime fail with [ErrConfigurationInvalid].
type Queue struct {
	Name QueueName

	// Concurrency bounds how many runs of one concurrency key (without keys, of the whole queue) execute or hold a slot
	// at once, across all processes. 0 means unbounded; at most MaxQueueConcurrency.
	Concurrency int

	// DispatchTimeout is how long a reserved slot waits for its worker. 0 means DefaultDispatchTimeout. Only for
	// bounded queues.
	DispatchTimeout time.Duration
}

// DefaultQueue serves every task that names no queue. It is unbounded.
var DefaultQueue = Queue{Name: "default"}

// Bounded reports whether the queue limits concurrency.
func (q Queue) Bounded() bool { return q.Concurrency > 0 }

// Validate returns [ErrConfigurationInvalid] if the queue cannot work.
func (q Queue) Validate() error {
	if err := q.Name.Validate(); err != nil {
		return &Error{
			Code:    ErrConfigurationInvalid,
			Message: "queue has a bad name",
			Hint:    "name it with printable text without ':'",
			Cause:   err,
		}
	}
	fault := ""
	switch {
	case q.Concurrency < 0 || q.Concurrency > MaxQueueConcurrency:
		fault = fmt.Sprintf("has Concurrency %d: use 0 (unbounded) to %d", q.Concurrency, MaxQueueConcurrency)
	case q.DispatchTimeout < 0:
		fault = "has a negative DispatchTimeout"
	case q.DispatchTimeout > 0 && !q.Bounded():
		fault = "has a DispatchTimeout but no Concurrency: only bounded queues reserve slots"
	}
	if fault == "" {
		return nil
	}
	return &Error{
		Code:    ErrConfigurationInvalid,
		Message: fmt.Sprintf("queue %q %s", q.Name, fault),
		Hint:    "correct the runlane.Queue value",
	}
}
