package memlane

import (
	"hash/maphash"
	"maps"
	"slices"
	"sync"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// shardCount is the number of shards of an environment: more than most machines have processors, so that commits
// rarely contend.
const shardCount = 16

// shard is a part of an environment's runs with their indexes. Its lock is taken after the storage's, see [held].
type shard struct {
	mu      sync.Mutex
	runs    map[runlane.RunID]*entry
	records map[runlane.RunID]map[recordName]*lane.StepRecord // nil if empty
	indexes indexes
	mail    map[runlane.RunID]*mailbox                 // nil until the first signal
	calls   map[runlane.RunID]map[string]*lane.RunCall // by name; nil until the first call
}

var shardSeed = maphash.MakeSeed()

func (env *environment) shard(id runlane.RunID) *shard {
	return &env.shards[maphash.String(shardSeed, string(id))%shardCount]
}

func (env *environment) add(e *entry) {
	e.shard = env.shard(e.id)
	e.shard.runs[e.id] = e
}

func (env *environment) ids() []runlane.RunID {
	var ids []runlane.RunID
	for n := range env.shards {
		ids = slices.AppendSeq(ids, maps.Keys(env.shards[n].runs))
	}
	slices.Sort(ids)
	return ids
}

func (env *environment) sets(choose func(*indexes) []*ordered) []*ordered {
	var sets []*ordered
	for n := range env.shards {
		sets = append(sets, choose(&env.shards[n].indexes)...)
	}
	return sets
}

func unpublished(ix *indexes) []*ordered { return []*ordered{&ix.unpublished} }

func dead(ix *indexes) []*ordered { return []*ordered{&ix.dead} }

// held is a lock on one run's shard, or on everything if shard is nil. Calls that concern no key, slot or other run
// lock one shard; all others, scans included, lock everything.
type held struct {
	storage *Storage
	shard   *shard
}

func (h held) unlock() {
	if h.shard == nil {
		h.storage.mu.Unlock()
		return
	}
	h.shard.mu.Unlock()
	h.storage.mu.RUnlock()
}

// lockRun locks the shard of a run, or everything if the environment does not exist.
func (s *Storage) lockRun(name runlane.Environment, id runlane.RunID) (held, *environment) {
	s.mu.RLock()
	if env := s.find(name); env != nil {
		h := held{s, env.shard(id)}
		h.shard.mu.Lock()
		return h, env
	}
	s.mu.RUnlock()
	return s.lockAll(), s.find(name)
}

// lockUnlimited is lockRun for changing a run. If its queue was ever limited, the change affects other runs and locks
// everything. queue is the queue of a new run.
func (s *Storage) lockUnlimited(name runlane.Environment, id runlane.RunID, queue runlane.QueueName) held {
	h, env := s.lockRun(name, id)
	if h.shard == nil || len(env.limited) == 0 {
		return h
	}
	if e := h.shard.runs[id]; e != nil && e.unpacked != nil {
		queue = e.created.Queue
	}
	if !env.limited[queue] {
		return h
	}
	h.unlock()
	return s.lockAll()
}

func (s *Storage) lockAll() held {
	s.mu.Lock()
	return held{storage: s}
}
