package main

import (
	"encoding/binary"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"strconv"
	"time"
)

// deployment is what runs on AWS: template.yaml's parameters, quotas, and the state of the table.
type deployment struct {
	Shards      int `json:"shards"`
	Concurrency int `json:"bridgeConcurrency"`  // MaximumConcurrency of the mapping
	Account     int `json:"accountConcurrency"` // of the account
	Mappings    int `json:"mappings"`           // queues with a mapping each
	// write units a second of the table, and of each index; 0: no limit
	Quota           float64 `json:"tableQuota"`
	TablePartitions int     `json:"tablePartitions"`     // at first
	IndexPartitions int     `json:"indexPartitions"`     // of each index, at first; 0: every shard has its own
	Scaled          bool    `json:"scaled,omitempty"`    // the mapping has grown already
	Unlimited       bool    `json:"unlimited,omitempty"` // the bridge takes whatever comes
}

// freshDeployment is what template.yaml makes in a new account.
func freshDeployment() deployment {
	const parts = freshWrites / partitionWrites
	return deployment{
		Shards:          defaultShards,
		Concurrency:     bridgeConcurrency,
		Account:         accountConcurrency,
		Mappings:        1,
		Quota:           tableQuota,
		TablePartitions: parts,
		IndexPartitions: parts,
	}
}

// load is what is asked of it.
type load struct {
	Rate     float64       `json:"runsPerSecond"`
	During   time.Duration `json:"during"`            // runs are triggered for so long
	Then     time.Duration `json:"then"`              // and what follows is watched for so long
	Handler  time.Duration `json:"handler"`           // what an attempt takes, ± 20 %
	Weight   float64       `json:"weight"`            // runs of a cohort
	Backlog  float64       `json:"backlog,omitempty"` // runs whose wakeups wait in the queue when it begins
	Attempts int           `json:"attempts"`          // most of a run
	// Failing tells whether attempts that begin at an instant fail; nil: none does.
	Failing func(now time.Duration, attempt int) bool `json:"-"`
	// Delay is how far ahead runs are triggered for. Deferred leaves the publishing to the relay.
	Delay    time.Duration `json:"delay,omitempty"`
	Deferred bool          `json:"deferred,omitempty"`
	// Limit is that of a bounded queue with one concurrency key; 0: no limit. Waiting is how many of its runs wait for
	// a slot beside those that have one, from the beginning on: for each that ends another is triggered. Whole reads
	// slots as it was before windows.
	Limit   int  `json:"limit,omitempty"`
	Waiting int  `json:"waiting,omitempty"`
	Whole   bool `json:"whole,omitempty"`
	// Full is how many due runs of a bounded queue without room there are when it begins; a run of another queue is due
	// a second later, and its wakeup is lost.
	Full float64 `json:"full,omitempty"`
	// Lost is when one worker dies in the middle of an attempt; 0: none does.
	Lost time.Duration `json:"lost,omitempty"`
}

// world is one simulation.
type world struct {
	clock
	seed   uint64
	random *rand.Rand
	deployment
	load load

	table, due, done *keyspace
	dueKeys          map[marker][]uint64
	doneKeys         map[status][]uint64
	index            dueIndex
	queue            queue
	bridge           mapping
	relay            relay
	slots            *slots // nil: no queue has a limit

	cohorts  int // so far
	requests map[string]spent
	total    spent
	outcome  outcome
}

func newWorld(seed uint64, d deployment, l load) *world {
	w := &world{
		seed:       seed,
		random:     rand.New(rand.NewPCG(seed, 0)),
		deployment: d,
		load:       l,
		requests:   map[string]spent{},
	}
	// All requests of a cohort meet one partition, those of its runs would meet many: a wider spread makes up for that.
	spread := func(units float64) time.Duration {
		return max(burstTime, time.Duration(l.Weight*units/partitionWrites*float64(time.Second)))
	}
	w.table = newKeyspace("table", false, d.TablePartitions, d.Quota, spread(2*tableUnits))
	w.due = newKeyspace("due", true, max(d.IndexPartitions, 1), d.Quota, spread(3*dueUnits))
	w.done = newKeyspace("done", true, max(d.IndexPartitions, 1), d.Quota, spread(3*dueUnits))
	w.dueKeys, w.doneKeys = map[marker][]uint64{}, map[status][]uint64{}
	var dueKeys, doneKeys []uint64
	for _, m := range []marker{deliverable, unpublished, waiting, parked, leased, ended} {
		for shard := range d.Shards {
			w.dueKeys[m] = append(w.dueKeys[m], w.hash(string(m)+":"+strconv.Itoa(shard)))
		}
		dueKeys = append(dueKeys, w.dueKeys[m]...)
	}
	if l.Full > 0 || l.Limit > 0 {
		key := w.hash(string(slotless) + ":full") // one partition of slots waits in one shard
		for range d.Shards {
			w.dueKeys[slotless] = append(w.dueKeys[slotless], key)
		}
		dueKeys = append(dueKeys, key)
	}
	for s, name := range map[status]string{succeeded: "succeeded", failed: "failed"} {
		for shard := range d.Shards {
			w.doneKeys[s] = append(w.doneKeys[s], w.hash(name+":"+strconv.Itoa(shard)))
		}
	}
	doneKeys = append(append(doneKeys, w.doneKeys[succeeded]...), w.doneKeys[failed]...)
	if d.IndexPartitions == 0 {
		w.due.isolate(dueKeys)
		w.done.isolate(doneKeys)
	}
	w.index.rows = map[marker]*heap[row, *row]{}
	w.queue.world, w.bridge.world, w.relay.world = w, w, w
	w.outcome = newOutcome(l)
	if l.Limit > 0 {
		w.slots = newSlots(w, l.Limit)
		w.slots.whole = l.Whole
	}
	return w
}

// hash is where a partition key lies among the partitions. DynamoDB's own function is not published, so each seed has
// another.
func (w *world) hash(key string) uint64 {
	h := fnv.New64a()
	h.Write(binary.BigEndian.AppendUint64(nil, w.seed))
	h.Write([]byte(key))
	x := h.Sum64() // FNV leaves the high bits of alike keys alike: mix them
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}

// newCohort deals places and shards: to single runs by hashes, to large cohorts in turn, since the runs of one are
// spread as evenly.
func (w *world) newCohort(weight float64) *cohort {
	w.cohorts++
	c := &cohort{weight: weight, created: w.now}
	if weight == 1 {
		var id [16]byte
		binary.BigEndian.PutUint64(id[:], w.random.Uint64())
		binary.BigEndian.PutUint64(id[8:], w.random.Uint64())
		c.shard, c.place, c.hash = shardOf(string(id[:]), w.Shards), w.random.Uint64(), int(id[15])<<8+int(id[14])
	} else {
		const golden = 0.6180339887498949
		_, fraction := math.Modf(float64(w.cohorts) * golden)
		c.shard, c.place = w.cohorts%w.Shards, uint64(fraction*math.MaxUint64)
	}
	return c
}

// uniform is in [0, 1).
func (w *world) uniform() float64 { return w.random.Float64() }

// simulate runs a world to its end: until nothing is left to do, or what was asked for is over.
func simulate(seed uint64, d deployment, l load) *world {
	w := newWorld(seed, d, l)
	w.bridge.start()
	w.ticks()
	w.everyMinute()
	if l.Backlog > 0 {
		w.fill()
	}
	if l.Rate > 0 {
		w.arrive()
	}
	if l.Waiting > 0 {
		w.slots.fill()
	}
	w.run(l.During+l.Then, func() bool {
		return w.now > l.During && w.outcome.active == 0 && w.outcome.offered == w.outcome.created+w.outcome.turnedAway
	})
	return w
}

// arrive triggers runs at even distances, as many callers together do.
func (w *world) arrive() {
	distance := time.Duration(w.load.Weight / w.load.Rate * float64(time.Second))
	var next func()
	next = func() {
		if w.now < w.load.During {
			w.trigger(w.load.Weight)
			w.after(distance, next)
		}
	}
	next()
}

// fill is the backlog: runs that were created and published long ago, while no worker executed any.
func (w *world) fill() {
	for left := w.load.Backlog; left > 0; left -= w.load.Weight {
		c := w.newCohort(min(left, w.load.Weight))
		c.firstSent, c.sent = 1, 1
		w.index.move(c, &move{to: deliverable, at: 0})
		w.outcome.offered += c.weight
		w.outcome.created += c.weight
		w.outcome.active += c.weight
		w.queue.send(c, 0)
	}
}

// everyMinute lets the partitions split, and notes what the minute was like.
func (w *world) everyMinute() {
	before := w.outcome.count(w)
	w.after(time.Minute, func() {
		for _, k := range []*keyspace{w.table, w.due, w.done} {
			k.split(w.now, time.Minute)
		}
		w.outcome.minutes = append(w.outcome.minutes, w.outcome.count(w).minus(before))
		w.everyMinute()
	})
}
