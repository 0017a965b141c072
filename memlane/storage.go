package memlane

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/embedded"
	"github.com/runlane/runlane-go/lane"
)

// StorageOptions of [NewStorage]. nil means none.
type StorageOptions struct {
	// Now tells whether the time of an idempotency key is over: where it is looked up, and where a run wants it. nil
	// means time.Now.
	Now func() time.Time
}

// Storage keeps runs in memory. It is safe for concurrent use. Locks make every method atomic, see held; copies for
// callers are made outside of them.
type Storage struct {
	lane.UnimplementedStorage

	now    func() time.Time
	tokens atomic.Uint64 // outbox claims are numbered
	feed   feed

	mu           sync.RWMutex // read-locked by holders of a shard, see held
	environments map[string]*environment
}

var _ lane.Storage = (*Storage)(nil)

// NewStorage returns an empty storage.
func NewStorage(options *StorageOptions) *Storage {
	s := &Storage{now: time.Now, environments: map[string]*environment{}}
	if options != nil && options.Now != nil {
		s.now = options.Now
	}
	return s
}

// Capabilities promises what is implemented: all but durability.
func (s *Storage) Capabilities() lane.StorageCapabilities {
	return lane.StorageCapabilities{
		EnforcesIdempotency:       true,
		EnforcesQueueConcurrency:  true,
		EnforcesSingleton:         true,
		LeasesRuns:                true,
		PersistsOutbox:            true,
		ProcessLocalState:         true,
		PrunesRuns:                true,
		ReadsRunHistory:           true,
		FindsLostWakeups:          true,
		KeepsDeadLetters:          true,
		ClaimsScheduleOccurrences: true,
		KeepsSchedules:            true,
		FeedsCommits:              true,
		KeepsProgress:             true,
		KeepsTasks:                true,
		SuspendsRuns:              true,
	}
}

// environment is everything of one environment: no method ever reads two.
type environment struct {
	shards [shardCount]shard
	// Owners of keys. A finished run stays in idempotency while it retains its key, and longer: lookups check the time.
	idempotency map[scopedKey]*owner
	singletons  map[scopedKey]*entry
	schedules   map[runlane.ScheduleID]*schedule    // nil until there is one
	progress    map[runlane.RunID]runlane.Progress  // the last notes; nil until there is one
	tasks       map[runlane.TaskID]lane.TaskRecord  // nil until there is one
	flows       map[runlane.FlowID]*lane.FlowRecord // nil until there is one

	// Queues that any command ever limited, and the partitions of those that are in use. nil until there is one.
	limited    map[runlane.QueueName]bool
	partitions map[partitionKey]*partition
}

// find returns the environment, nil when nothing was ever written to it.
func (s *Storage) find(name runlane.Environment) *environment { return s.environments[name.Name()] }

// open returns the environment for writing.
func (s *Storage) open(name runlane.Environment) *environment {
	env := s.environments[name.Name()]
	if env == nil {
		env = &environment{
			idempotency: map[scopedKey]*owner{}, singletons: map[scopedKey]*entry{},
		}
		for n := range env.shards {
			env.shards[n].runs = map[runlane.RunID]*entry{}
		}
		s.environments[name.Name()] = env
	}
	return env
}

// run returns one run, nil when it is absent. env may be nil.
func (env *environment) run(id runlane.RunID) *entry {
	if env == nil {
		return nil
	}
	return env.shard(id).runs[id]
}

// GetRun returns one run as it is now.
func (s *Storage) GetRun(ctx context.Context, key lane.RunKey) (*runlane.Run, error) {
	if err := embedded.Ended(ctx); err != nil {
		return nil, err
	}
	run := new(runlane.Run)
	h, env := s.lockRun(key.Environment, key.RunID)
	e := env.run(key.RunID)
	if e != nil {
		e.view().fill(run)
	}
	h.unlock()
	if e == nil {
		return nil, embedded.NotFound(key.RunID)
	}
	own(run, true)
	return run, nil
}

// GetRuns returns the given runs in the caller's order, repeats included and missing ones left out.
func (s *Storage) GetRuns(ctx context.Context, q *lane.RunsQuery) ([]*runlane.Run, error) {
	if err := embedded.Ended(ctx); err != nil {
		return nil, err
	}
	runs := make([]*runlane.Run, 0, len(q.IDs))
	for _, id := range q.IDs {
		h, env := s.lockRun(q.Environment, id)
		if e := env.run(id); e != nil {
			runs = append(runs, e.view().project(!q.WithoutPayload))
		}
		h.unlock()
	}
	return runs, nil
}

// InspectRun returns a run with its latest delivery, unless that was superseded, and the runs with a slot of its
// partition. A run whose reservation is over is among them until another run takes the slot.
func (s *Storage) InspectRun(ctx context.Context, q *lane.InspectQuery) (*lane.Inspection, error) {
	if err := embedded.Ended(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.find(q.Environment).run(q.RunID)
	if e == nil {
		return nil, embedded.NotFound(q.RunID)
	}
	e = e.view()
	inspection := &lane.Inspection{Run: e.project(true)}
	if r := e.liveRow(); r != nil {
		message := e.message(r)
		inspection.Delivery = &message
		if r.Status == lane.OutboxPublished && inspection.Run.Status == runlane.StatusQueued {
			inspection.RedeliverAt = e.outbox.RedeliverAt(r).Time()
		}
	}
	if q.Queue.Bounded() {
		inspection.Holders = s.find(q.Environment).slotHolders(e)
	}
	return inspection, nil
}
