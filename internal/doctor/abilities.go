package doctor

import (
	"context"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// Optional abilities of adapters, found with lane.As.

// stateExaminer is implemented by storages that can examine the place of their state. A managed service does not need
// it.
type stateExaminer interface {
	// Examine changes nothing. It may read everything and take long. Problems are findings; an error means that it
	// could not examine.
	Examine(ctx context.Context) ([]lane.Finding, error)
}

// writeProber is implemented by storages that can commit without changing anything: only that detects a full disk.
type writeProber interface {
	// ProbeWrite returns when the commit is as durable as any other.
	ProbeWrite(ctx context.Context) error
}

// indexReader is implemented by storages with indexes that are created, changed and deleted while programs run. Safe
// for concurrent use.
type indexReader interface {
	// Indexes lists the indexes that the program uses, existing or not, and then all others. A state holds its index's
	// problem.
	Indexes(ctx context.Context) ([]lane.IndexState, error)
}

// eventReader is implemented by transports that know the queues of events that a bus refused.
type eventReader interface {
	// RefusedEvents counts the events that are sent again, and those given up.
	RefusedEvents(ctx context.Context) (again, givenUp int, err error)
}

// invocationReader is implemented by transports that know how long a function may work on a queue's wakeups. Tasks'
// timeouts are compared with it.
type invocationReader interface {
	// InvocationTime returns 0 if the queue has no such limit.
	InvocationTime(ctx context.Context, queue runlane.QueueName) (time.Duration, error)
}
