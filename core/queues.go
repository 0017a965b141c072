package core

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// statsPages bounds the pages of runs that one call of [Queues.Stats] reads.
const statsPages = 20

// Queues is the operator's view of queues. Stateless: get one with [Runtime.Queues] when you need it.
type Queues struct{ rt *Runtime }

// Queues returns the view.
func (rt *Runtime) Queues() *Queues { return &Queues{rt: rt} }

// QueueState is a queue as this runtime knows it.
type QueueState struct {
	// Queue is its policy. For a queue that is neither Known nor Stored it has only the name.
	Queue runlane.Queue `json:"queue"`
	// Known says that a handler, a schedule or Options.Queues names it here, or that it is the default one. A queue
	// that is only bound is another program's, and this runtime does not know whether it has a limit.
	Known bool `json:"known"`
	// Stored says that the queue is not Known, and that its policy is that of another program's task, from the catalog
	// of tasks: see [Queues.InUse].
	Stored bool `json:"stored,omitempty"`
	// Bound says that the transport has a binding for it, or takes any queue.
	Bound bool `json:"bound"`
	// Carrier is the binding that carries its wakeups, where that is another queue's. Backlog and InFlight of
	// [QueueStats] are then of all queues that share it.
	Carrier runlane.QueueName `json:"carrier,omitempty"`
	// Ordered says that the runs of one concurrency key execute one after the other, in the order in which their
	// wakeups were published ([lane.Orderer]).
	Ordered bool `json:"ordered,omitempty"`
}

// QueueStats counts the active runs of a queue, as the list of runs shows them: it lags a little.
type QueueStats struct {
	QueueState
	// At is the instant by which due-ness was judged.
	At time.Time `json:"at"`
	// Waiting counts the runs that are due and wait for a worker, or for a slot first: the depth of the queue.
	Waiting int `json:"waiting"`
	// OldestWaiting is since when the first of them is due. Zero when there is none.
	OldestWaiting time.Time `json:"oldestWaiting,omitzero"`
	// Oldest is that run.
	Oldest runlane.RunID `json:"oldest,omitempty"`
	// Running counts the runs that a worker has, also those that were asked to stop.
	Running int `json:"running"`
	// Delayed counts the runs that are not due yet: delayed, to be retried, or released.
	Delayed int `json:"delayed"`
	// NextDue is when the first of them will be due. Zero when there is none.
	NextDue time.Time `json:"nextDue,omitzero"`
	// AtLeast says that the call reached its bound first: the queue has more runs than were counted.
	AtLeast bool `json:"atLeast,omitempty"`
	// Backlog and InFlight count the transport's wakeups: those that wait, and those that were received and not
	// acknowledged. -1 where the transport does not know.
	Backlog  int `json:"backlog"`
	InFlight int `json:"inFlight"`
}

// List returns the queues that this runtime knows and those that its transport has bindings for, by name. It makes no
// request.
func (q *Queues) List() []QueueState {
	names := map[runlane.QueueName]bool{}
	for name := range q.rt.queues {
		names[name] = true
	}
	for _, name := range q.rt.bindings {
		names[name] = true
	}
	if q.rt.bindings == nil {
		names[runlane.DefaultQueue.Name] = true // which any program may use without naming it
	}
	states := make([]QueueState, 0, len(names))
	for _, name := range slices.Sorted(maps.Keys(names)) {
		states = append(states, q.state(name))
	}
	return states
}

// InUse returns the queues of List, and those of the tasks that other programs' ticks store, by name. Where the
// storage keeps no catalog of tasks, it is List. Tasks of one queue with different limits are a fault of their
// programs; the one that was seen last counts.
func (q *Queues) InUse(ctx context.Context) ([]QueueState, error) {
	states := q.List()
	tasks, err := q.rt.Tasks().List(ctx)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(tasks, func(a, b TaskState) int { return b.SeenAt.Compare(a.SeenAt) })
	for i := range tasks {
		if tasks[i].Gone(q.rt.now()) {
			continue
		}
		name := tasks[i].Queue.Name
		at := slices.IndexFunc(states, func(s QueueState) bool { return s.Queue.Name == name })
		if at < 0 {
			at = len(states)
			states = append(states, q.state(name))
		}
		if s := &states[at]; !s.Known && !s.Stored {
			s.Queue, s.Stored = tasks[i].Queue, true
		}
	}
	slices.SortFunc(states, func(a, b QueueState) int { return cmp.Compare(a.Queue.Name, b.Queue.Name) })
	return states, nil
}

// queueInUse is the policy of a queue as [Queues.InUse] has it. What cannot be read is unknown.
func (rt *Runtime) queueInUse(ctx context.Context, name runlane.QueueName) (q runlane.Queue, known bool) {
	states, err := rt.Queues().InUse(ctx)
	if err != nil {
		return runlane.Queue{Name: name}, false
	}
	for i := range states {
		if s := &states[i]; s.Queue.Name == name {
			return s.Queue, s.Known || s.Stored
		}
	}
	return runlane.Queue{Name: name}, false
}

func (q *Queues) state(name runlane.QueueName) QueueState {
	policy, known := q.rt.knownQueue(name)
	state := QueueState{Queue: policy, Known: known, Ordered: q.rt.ordered(name)}
	carrier, bound := lane.CarrierOf(q.rt.lane.Transport, name)
	if state.Bound = bound; bound && carrier != name {
		state.Carrier = carrier
	}
	return state
}

// Stats counts the active runs of a queue. It reads no finished run. Its price is bounded whatever the environment
// holds: at most 20 pages of active runs and one request to the transport. On DynamoDB the first page is a query for
// each kind of marker in each shard (56, half a unit each while there are few runs) and one read for up to 100 runs of
// the queue; runs of other queues cost only their keys. Beyond 10,000 runs of the queue, or 20,000 active runs of all
// queues, the counts are lower bounds and AtLeast is set.
//
// Any queue may be asked about, also one that this runtime does not know. An invalid name is
// runlane.ErrValidationFailed. A lane that does not show runs to operators is runlane.ErrCapabilityUnsupported. When a
// transport does not answer, its error comes with stats that have everything but Backlog and InFlight.
func (q *Queues) Stats(ctx context.Context, name runlane.QueueName) (*QueueStats, error) {
	if err := q.rt.gate.enterLate(); err != nil {
		return nil, err
	}
	defer q.rt.gate.leave()
	if err := firstError(name.Validate(), q.rt.operatorReads()); err != nil {
		return nil, err
	}
	stats := &QueueStats{QueueState: q.state(name), At: q.rt.now(), Backlog: -1, InFlight: -1}
	filter, after := RunFilter{Queue: name, Statuses: activeStatuses}, runlane.Cursor("")
	for range statsPages {
		page, err := q.rt.listRuns(ctx, &filter, runlane.MaxPageLimit, after)
		if err != nil {
			return nil, err
		}
		for i := range page.Items {
			stats.add(&page.Items[i])
		}
		if after = page.Next; after == "" {
			break
		}
	}
	stats.AtLeast = after != ""
	reader, ok := lane.As[lane.DepthReader](q.rt.lane.Transport)
	if !ok || !stats.Bound {
		return stats, nil
	}
	backlog, inFlight, err := reader.Depth(ctx, name)
	if err != nil {
		return stats, err
	}
	stats.Backlog, stats.InFlight = backlog, inFlight
	return stats, nil
}

func (s *QueueStats) add(run *runlane.RunSummary) {
	due := run.RunAt // of a queued run by its writer's clock, which may be ahead
	if due.IsZero() {
		due = run.CreatedAt // queued without a delivery request: it waits for its first slot
	}
	switch {
	case run.Status.Owned():
		s.Running++
	case due.After(s.At) && (run.Status != runlane.StatusQueued || due.After(s.At.Add(clockSkew))):
		s.Delayed++
		s.NextDue = earliest(s.NextDue, due)
	default:
		s.Waiting++
		if s.Oldest == "" || due.Before(s.OldestWaiting) {
			s.OldestWaiting, s.Oldest = due, run.ID
		}
	}
}
