package core

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// statsPages limits the pages of runs in one call of [Queues.Stats].
const statsPages = 20

// Queues reads queues for operators. It is stateless; get it from [Runtime.Queues].
type Queues struct{ rt *Runtime }

// Queues returns the operator's view of queues.
func (rt *Runtime) Queues() *Queues { return &Queues{rt: rt} }

// QueueState is a queue as this runtime knows it.
type QueueState struct {
	// Queue is the policy. It has only the name for a queue that is neither Known nor Stored.
	Queue runlane.Queue `json:"queue"`
	// Known reports whether a handler, a schedule or Options.Queues names the queue here, or it is the default queue. A
	// queue that is only bound belongs to another program, and its limit is unknown here.
	Known bool `json:"known"`
	// Stored reports whether the queue is not Known and its policy comes from the catalog of tasks, where another
	// program's task has it: see [Queues.InUse].
	Stored bool `json:"stored,omitempty"`
	// Bound reports whether the transport has a binding for the queue, or takes any queue.
	Bound bool `json:"bound"`
	// Carrier is the binding that carries the queue's wakeups, if it is another queue's. Backlog and InFlight of
	// [QueueStats] then count all queues that share it.
	Carrier runlane.QueueName `json:"carrier,omitempty"`
	// Ordered reports whether the runs of one concurrency key execute one after the other, in the order in which their
	// wakeups were published.
	Ordered bool `json:"ordered,omitempty"`
	// Pause is the queue's pause, or its end while runs get their wakeups. nil: none, or not read: [Queues.List].
	Pause *lane.Pause `json:"pause,omitempty"`
}

// QueueStats counts the active runs of a queue in the list of runs, which lags a little.
type QueueStats struct {
	QueueState
	// At is the time that separates due runs from delayed ones.
	At time.Time `json:"at"`
	// Waiting counts due runs that wait for a worker or for a slot: the depth of the queue.
	Waiting int `json:"waiting"`
	// OldestWaiting is the due time of the first waiting run. Zero when there is none.
	OldestWaiting time.Time `json:"oldestWaiting,omitzero"`
	// Oldest is the first waiting run.
	Oldest runlane.RunID `json:"oldest,omitempty"`
	// Reserved counts the waiting runs that already have a slot of their bounded queue.
	Reserved int `json:"reserved,omitempty"`
	// Running counts runs that a worker has, including runs that were asked to stop. In a bounded queue each has a
	// slot.
	Running int `json:"running"`
	// Delayed counts runs that are not due yet: delayed, to be retried, or released.
	Delayed int `json:"delayed"`
	// NextDue is the earliest due time of the delayed runs. Zero when there are none.
	NextDue time.Time `json:"nextDue,omitzero"`
	// AtLeast reports whether the call reached its limit: the queue and its Keys may have more runs than counted.
	// Running runs are counted first.
	AtLeast bool `json:"atLeast,omitempty"`
	// KeysAtLeast is AtLeast for Keys alone: the storage counted the queue but not its keys.
	KeysAtLeast bool `json:"keysAtLeast,omitempty"`
	// Keys are the counts by concurrency key, at most [MaxQueueKeys]: keys with the most waiting runs, then with the
	// most slots. A bounded queue applies its limit to each key. nil when no active run has a key.
	Keys []KeyStats `json:"keys,omitempty"`
	// MoreKeys is the number of omitted keys.
	MoreKeys int `json:"moreKeys,omitempty"`
	// Backlog counts the transport's waiting wakeups, InFlight the received and unacknowledged ones. -1 when the
	// transport does not know.
	Backlog  int `json:"backlog"`
	InFlight int `json:"inFlight"`
}

// MaxQueueKeys limits [QueueStats].Keys.
const MaxQueueKeys = 100

// KeyStats counts the active runs of one concurrency key of a queue. The fields are as in [QueueStats].
type KeyStats struct {
	// Key is the concurrency key, "" for runs without one.
	Key      string `json:"key"`
	Waiting  int    `json:"waiting"`
	Reserved int    `json:"reserved,omitempty"`
	Running  int    `json:"running"`
	Delayed  int    `json:"delayed"`
}

// List returns the queues that this runtime knows or that its transport binds, by name. It makes no request.
func (q *Queues) List() []QueueState {
	names := map[runlane.QueueName]bool{}
	for name := range q.rt.queues {
		names[name] = true
	}
	for _, name := range q.rt.bindings {
		names[name] = true
	}
	if q.rt.bindings == nil {
		names[runlane.DefaultQueue.Name] = true // any program may use it without naming it
	}
	states := make([]QueueState, 0, len(names))
	for _, name := range slices.Sorted(maps.Keys(names)) {
		states = append(states, q.state(name))
	}
	return states
}

// InUse returns the queues of List, with their pauses, the paused ones, and those of the tasks that other programs' ticks store, by name. Without a catalog of
// tasks in the storage it equals List. If tasks give one queue different limits, the task seen last wins.
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
	p, err := q.rt.readPauses(ctx, false)
	if err != nil {
		return nil, err
	}
	for i := range p.Entries {
		e := &p.Entries[i]
		at := slices.IndexFunc(states, func(s QueueState) bool { return s.Queue.Name == e.Queue })
		if at < 0 && e.Queue != "" {
			at = len(states)
			states = append(states, q.state(e.Queue))
		}
		if at >= 0 {
			states[at].Pause = e
		}
	}
	slices.SortFunc(states, func(a, b QueueState) int { return cmp.Compare(a.Queue.Name, b.Queue.Name) })
	return states, nil
}

// queueInUse returns the policy of a queue as [Queues.InUse] has it. A queue that cannot be read is unknown.
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

// Stats counts the active runs of a queue. Its cost is bounded: at most 20 pages of active runs and one request to the
// transport. On DynamoDB the first page is a query for each kind of marker in each shard (56, half a unit each while
// there are few runs), one read for up to 100 runs of the queue, and one of the pauses; runs of other queues cost only their keys. If one
// page is not enough, up to 5,000 running runs are counted first, which takes one more page. Beyond some 9,000 runs of
// the queue, or 18,000 active runs of all queues, less while thousands are running, the counts are lower bounds and
// AtLeast is set. The lanes in memory and in a file count all runs of the queue.
//
// Any queue is allowed, even an unknown one. An invalid name is runlane.ErrValidationFailed. A lane that does not show
// runs to operators is runlane.ErrCapabilityUnsupported. If the transport does not answer, its error comes with stats
// that lack only Backlog and InFlight.
func (q *Queues) Stats(ctx context.Context, name runlane.QueueName) (*QueueStats, error) {
	if err := q.rt.gate.enterLate(); err != nil {
		return nil, err
	}
	defer q.rt.gate.leave()
	if err := firstError(name.Validate(), q.rt.operatorReads()); err != nil {
		return nil, err
	}
	stats := &QueueStats{QueueState: q.state(name), At: q.rt.now(), Backlog: -1, InFlight: -1}
	if err := q.count(ctx, stats); err != nil {
		return nil, err
	}
	p, err := q.rt.readPauses(ctx, false)
	if err != nil {
		return nil, err
	}
	if at := findPause(&p, &lane.Pause{Queue: name}); at >= 0 {
		stats.Pause = &p.Entries[at]
	}
	if !stats.Bound {
		return stats, nil
	}
	backlog, inFlight, err := q.rt.lane.Transport.Depth(ctx, name)
	if errors.Is(err, runlane.ErrCapabilityUnsupported) {
		return stats, nil
	}
	if err != nil {
		return stats, err
	}
	stats.Backlog, stats.InFlight = backlog, inFlight
	return stats, nil
}

// count counts the runs of a queue. The list has waiting runs first, so when a page does not hold all, running runs are
// counted before it is continued.
func (q *Queues) count(ctx context.Context, stats *QueueStats) error {
	keys, owned, left := map[string]*KeyStats{}, map[runlane.RunID]bool{}, statsPages
	each := func(statuses []runlane.Status, after runlane.Cursor, pages int, add func(*runlane.RunSummary)) error {
		filter := RunFilter{Queue: stats.Queue.Name, Statuses: statuses}
		for ; pages > 0; pages-- {
			page, err := q.rt.listRuns(ctx, &filter, runlane.MaxPageLimit, after)
			if err != nil {
				return err
			}
			left--
			for i := range page.Items {
				add(&page.Items[i])
			}
			if after = page.Next; after == "" {
				return nil
			}
		}
		stats.AtLeast = true
		return nil
	}
	filter := RunFilter{Queue: stats.Queue.Name, Statuses: activeStatuses}
	first, err := q.rt.listRuns(ctx, &filter, runlane.MaxPageLimit, "")
	if err != nil {
		return err
	}
	left--
	if first.Next != "" {
		err := each(ownedStatuses, "", statsPages/2, func(run *runlane.RunSummary) {
			owned[run.ID] = true
			stats.add(run, keys)
		})
		if err != nil {
			return err
		}
	}
	rest := func(run *runlane.RunSummary) {
		if !owned[run.ID] && (first.Next == "" || !run.Status.Owned()) {
			stats.add(run, keys)
		}
	}
	for i := range first.Items {
		rest(&first.Items[i])
	}
	if first.Next != "" {
		if err := each(activeStatuses, first.Next, left, rest); err != nil {
			return err
		}
	}
	stats.byKey(keys)
	if stats.AtLeast {
		return q.countAll(ctx, stats)
	}
	return nil
}

// countAll takes exact counts from a storage that has them. The counts by key stay as read.
func (q *Queues) countAll(ctx context.Context, stats *QueueStats) error {
	counts, err := q.rt.storage().CountRuns(ctx, &lane.CountQuery{
		Environment: q.rt.environment, Queue: stats.Queue.Name, At: stats.At, QueuedAt: stats.At.Add(clockSkew),
	})
	if errors.Is(err, runlane.ErrCapabilityUnsupported) {
		return nil
	}
	if err != nil {
		return err
	}
	stats.AtLeast, stats.KeysAtLeast = false, true
	stats.Waiting, stats.OldestWaiting, stats.Oldest = counts.Due, counts.First, counts.FirstID
	stats.Reserved, stats.Running = counts.Reserved, counts.Owned
	stats.Delayed, stats.NextDue = counts.Later, counts.Next
	return nil
}

func (s *QueueStats) add(run *runlane.RunSummary, keys map[string]*KeyStats) {
	key := keys[run.ConcurrencyKey]
	if key == nil {
		key = &KeyStats{Key: run.ConcurrencyKey}
		keys[run.ConcurrencyKey] = key
	}
	due := run.RunAt // for queued runs by the writer's clock, which may be ahead
	if due.IsZero() {
		due = run.CreatedAt // queued without a delivery request: it waits for its first slot
	}
	switch {
	case run.Status.Owned():
		s.Running++
		key.Running++
	case due.After(s.At) && (run.Status != runlane.StatusQueued || due.After(s.At.Add(clockSkew))):
		s.Delayed++
		key.Delayed++
		s.NextDue = earliest(s.NextDue, due)
	default:
		s.Waiting++
		key.Waiting++
		if s.At.Before(run.DispatchExpiresAt) {
			s.Reserved++
			key.Reserved++
		}
		if s.Oldest == "" || due.Before(s.OldestWaiting) {
			s.OldestWaiting, s.Oldest = due, run.ID
		}
	}
}

// byKey keeps the keys' counts, sorted.
func (s *QueueStats) byKey(keys map[string]*KeyStats) {
	if keyless := keys[""]; len(keys) == 0 || len(keys) == 1 && keyless != nil {
		return
	}
	for _, key := range keys {
		s.Keys = append(s.Keys, *key)
	}
	slices.SortFunc(s.Keys, func(a, b KeyStats) int {
		return cmp.Or(
			cmp.Compare(b.Waiting, a.Waiting),
			cmp.Compare(b.Running+b.Reserved, a.Running+a.Reserved),
			cmp.Compare(a.Key, b.Key),
		)
	})
	s.MoreKeys = max(0, len(s.Keys)-MaxQueueKeys)
	s.Keys = s.Keys[:len(s.Keys)-s.MoreKeys]
}
