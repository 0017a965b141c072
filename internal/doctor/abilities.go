package doctor

import (
	"context"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// What adapters may be able to tell, found with lane.As.

// stateExaminer is the optional ability of a storage to examine the place where it keeps its state. A storage whose
// place others look after, like a service, does without.
type stateExaminer interface {
	// Examine looks and changes nothing; it may read everything, and take long. An error is a look that could not be
	// taken: findings are no errors.
	Examine(ctx context.Context) ([]lane.Finding, error)
}

// writeProber is the optional ability of a storage to make a commit that changes nothing: that alone finds a full disk.
type writeProber interface {
	// ProbeWrite returns when the commit is as durable as any.
	ProbeWrite(ctx context.Context) error
}

// indexReader is the optional ability of a storage to tell in what state the indexes are that it reads by, while they
// are made, changed and deleted beside running programs. Safe for concurrent use.
type indexReader interface {
	// Indexes are those that the program reads, whether there or not, and then the others that the storage has. The
	// error is of the looking, as of any other read; what is wrong with an index stands in its state.
	Indexes(ctx context.Context) ([]lane.IndexState, error)
}

// invocationReader is the optional ability to tell how long an invocation may take that executes a queue's wakeups, for
// queues that functions read. Tasks are compared with it.
type invocationReader interface {
	// InvocationTime is 0 where the queue does not tell.
	InvocationTime(ctx context.Context, queue runlane.QueueName) (time.Duration, error)
}
