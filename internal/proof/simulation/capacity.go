package main

import (
	"math"
	"slices"
	"time"
)

// bucket refills at a rate. It admits a request while anything is left, and goes into debt for what the request is
// larger: on average exactly the rate passes, in lumps of any size.
type bucket struct {
	rate, depth, level float64
	at                 time.Duration
}

func newBucket(rate float64, depth time.Duration) bucket {
	return bucket{rate: rate, depth: rate * depth.Seconds(), level: rate * depth.Seconds()}
}

// admits reports that something is left. A bucket without a rate has no limit.
func (b *bucket) admits(now time.Duration) bool {
	if b.rate == 0 {
		return true
	}
	b.level = min(b.depth, b.level+b.rate*(now-b.at).Seconds())
	b.at = now
	return b.level > 0
}

func (b *bucket) take(units float64) {
	if b.rate > 0 {
		b.level -= units
	}
}

// keyspace is a table or an index: partitions over the hashes of partition keys, and an account's quota above them. It
// is split for heat, but never within one key whose items are ordered by time.
type keyspace struct {
	name  string
	few   bool // of its keys are few, and its items within one are ordered by time: the shards of an index
	parts []*part
	quota bucket
	burst time.Duration

	writes  float64 // units so far
	refused map[string]float64
}

// part is one partition: the hashes from its first one on, up to the next partition's.
type part struct {
	from          uint64
	writes, reads bucket

	used    float64            // write units since the last look
	refused float64            // write units since the last look
	loads   map[uint64]float64 // of few keys: write units since the last look
	hot     time.Duration      // when it began to be hot; negative: it is not
}

// The names of what may refuse a request.
const (
	limitTable      = "table partitions"
	limitDue        = "due partitions"
	limitDone       = "done partitions"
	limitDueShard   = "due shards"
	limitDoneShard  = "done shards"
	limitTableQuota = "table quota"
	limitDueQuota   = "due quota"
	limitDoneQuota  = "done quota"
)

func newKeyspace(name string, few bool, parts int, quota float64, burst time.Duration) *keyspace {
	k := &keyspace{name: name, few: few, quota: newBucket(quota, burst), burst: burst, refused: map[string]float64{}}
	width := math.MaxUint64 / uint64(parts)
	for i := range parts {
		k.parts = append(k.parts, k.newPart(uint64(i)*width, 0))
	}
	return k
}

func (k *keyspace) newPart(from uint64, now time.Duration) *part {
	p := &part{
		from:   from,
		writes: newBucket(partitionWrites, k.burst),
		reads:  newBucket(partitionReads, k.burst),
		hot:    -1,
	}
	p.writes.at, p.reads.at = now, now
	if k.few {
		p.loads = map[uint64]float64{}
	}
	return p
}

// isolate gives each of the keys a separate partition: where splitting for heat ends.
func (k *keyspace) isolate(keys []uint64) {
	slices.Sort(keys)
	k.parts = nil
	for i, key := range slices.Compact(keys) {
		if i == 0 {
			key = 0
		}
		k.parts = append(k.parts, k.newPart(key, 0))
	}
}

func (k *keyspace) part(key uint64) *part {
	i, found := slices.BinarySearchFunc(k.parts, key, func(p *part, key uint64) int {
		switch {
		case p.from < key:
			return -1
		case p.from > key:
			return 1
		default:
			return 0
		}
	})
	if !found {
		i--
	}
	return k.parts[i]
}

// refuses names what refuses a write to a key, "" nothing.
func (k *keyspace) refuses(now time.Duration, key uint64, units float64) string {
	p := k.part(key)
	limit := ""
	switch {
	case !k.quota.admits(now):
		limit = k.name + " quota"
	case !p.writes.admits(now):
		limit = k.name + " partitions"
		if k.few && p.single(key) {
			limit = k.name + " shards"
		}
		p.refused += units
		if k.few {
			p.loads[key] += 0 // it is one of those that are wanted
		}
	}
	if limit != "" {
		k.refused[limit] += units
	}
	return limit
}

// single reports that no other key of the partition is used much: splitting it does not help.
func (p *part) single(key uint64) bool {
	total := 0.0
	for _, load := range p.loads {
		total += load
	}
	return p.loads[key] >= 0.9*total
}

func (k *keyspace) write(key uint64, units float64) {
	p := k.part(key)
	p.writes.take(units)
	k.quota.take(units)
	k.writes += units
	p.used += units
	if k.few {
		p.loads[key] += units
	}
}

// split looks at each partition, once so often, and splits those that have been hot for long enough.
func (k *keyspace) split(now, since time.Duration) {
	var parts []*part
	for i, p := range k.parts {
		parts = append(parts, p)
		isHot := p.refused > 0 || p.used > heatShare*partitionWrites*since.Seconds()
		switch {
		case !isHot:
			p.hot = -1
		case p.hot < 0:
			p.hot = now - since
		}
		if isHot && now-p.hot >= heatTime {
			until := uint64(math.MaxUint64)
			if i+1 < len(k.parts) {
				until = k.parts[i+1].from
			}
			if at, ok := k.middle(p, until); ok {
				parts = append(parts, k.newPart(at, now))
			}
			p.hot = -1
		}
		p.used, p.refused = 0, 0
		if k.few {
			clear(p.loads)
		}
	}
	slices.SortFunc(parts, func(a, b *part) int {
		if a.from < b.from {
			return -1
		}
		return 1
	})
	k.parts = parts
}

// middle is where a partition is split: in the middle of its hashes, or of the load of its few keys, between two of
// them.
func (k *keyspace) middle(p *part, until uint64) (at uint64, ok bool) {
	if !k.few {
		return p.from + (until-p.from)/2, true
	}
	keys := make([]uint64, 0, len(p.loads))
	total := 0.0
	for key, load := range p.loads {
		keys = append(keys, key)
		total += load
	}
	slices.Sort(keys)
	best, half := 0.0, 0.0
	for i := 0; i+1 < len(keys); i++ {
		half += p.loads[keys[i]]
		if smaller := min(half, total-half); smaller > best {
			at, best = keys[i+1], smaller
		}
	}
	return at, best > 0.01*total
}
