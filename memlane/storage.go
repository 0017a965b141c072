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
	// Now decides whether an idempotency key has expired, for lookups and new runs. nil means time.Now.
	Now func() time.Time
}

// Storage keeps runs in memory. It is safe for concurrent use: locks make each method atomic, see held.
type Storage struct {
	lane.UnimplementedStorage

	now    func() time.Time
	tokens atomic.Uint64 // for outbox claims
	feed   feed

	mu           sync.RWMutex // read-locked while a shard is locked, see held
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

// Capabilities includes everything but durability.
func (s *Storage) Capabilities() lane.StorageCapabilities {
	return lane.StorageCapabilities{
		EnforcesIdempotency:       true,
		EnforcesQueueConcurrency:  true,
		EnforcesQueueRate:         true,
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

// environment is the data of one environment. No method reads two.
type environment struct {
	shards [shardCount]shard
	// Owners of keys. idempotency may keep a finished run after its key has expired: lookups check the time.
	idempotency map[scopedKey]*entry
	singletons  map[scopedKey]*entry
	schedules   map[runlane.ScheduleID]*schedule    // nil if empty
	progress    map[runlane.RunID]runlane.Progress  // the last notes; nil if empty
	tasks       map[runlane.TaskID]lane.TaskRecord  // nil if empty
	pauses      lane.Pauses                         // never changed in place
	flows       map[runlane.FlowID]*lane.FlowRecord // nil if empty
	keep        lane.KeepRecord

	// Queues that were ever limited, and their used partitions. nil if empty.
	limited    map[runlane.QueueName]bool
	partitions map[partitionKey]*partition

	// Paces of queues with a rate. nil if empty.
	paces     map[partitionKey]*lane.Pace
	pacesLeft int // of them, twice as many as were not over at the last cleaning
}

// find returns the environment, nil before the first write to it.
func (s *Storage) find(name runlane.Environment) *environment { return s.environments[name.Name()] }

// open returns the environment. It is created if missing.
func (s *Storage) open(name runlane.Environment) *environment {
	env := s.environments[name.Name()]
	if env == nil {
		env = &environment{
			idempotency: map[scopedKey]*entry{}, singletons: map[scopedKey]*entry{},
		}
		for n := range env.shards {
			env.shards[n].runs = map[runlane.RunID]*entry{}
		}
		s.environments[name.Name()] = env
	}
	return env
}

// run returns a run, or nil. env may be nil.
func (env *environment) run(id runlane.RunID) *entry {
	if env == nil {
		return nil
	}
	return env.shard(id).runs[id]
}

// GetRun returns a run.
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
	detach(run, true)
	return run, nil
}

// GetRuns implements [lane.Storage].
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

// InspectRun implements [lane.Storage]. Runs with an expired reservation hold their slots until other runs take them.
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
		inspection.RedeliverAt = e.outbox.Redelivery(e.known()).Time()
	}
	if q.Queue.Bounded() {
		env := s.find(q.Environment)
		inspection.Holders = env.slotHolders(e)
		inspection.Pace = env.pacing(e.partitionKey())
	}
	return inspection, nil
}
