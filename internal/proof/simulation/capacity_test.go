package main

import (
	"math"
	"testing"
	"time"
)

func TestClock_KeepsTheOrderOfOneInstant(t *testing.T) {
	t.Parallel()
	var c clock
	var order []int
	for i := range 50 {
		c.after(time.Duration(i%3)*time.Second, func() { order = append(order, i) })
	}
	c.run(time.Minute, nil)
	for i := 1; i < len(order); i++ {
		a, b := order[i-1], order[i]
		if a%3 > b%3 || a%3 == b%3 && a > b {
			t.Fatalf("%d happened before %d: %v", a, b, order)
		}
	}
	if len(order) != 50 || c.now != 2*time.Second {
		t.Errorf("%d events until %s", len(order), c.now)
	}
}

// A bucket lets exactly its rate pass over time, whatever the size of the requests.
func TestBucket_LetsItsRatePass(t *testing.T) {
	t.Parallel()
	for _, lump := range []float64{1, 7, 400, 3000} {
		b := newBucket(1000, time.Second)
		passed := 0.0
		for now := time.Duration(0); now < 100*time.Second; now += time.Millisecond {
			for b.admits(now) {
				b.take(lump)
				passed += lump
			}
		}
		if low, high := 100_000.0, 101_000+lump+1; passed < low || passed > high {
			t.Errorf("in requests of %v: %v units in 100 s, want %v to %v", lump, passed, low, high)
		}
	}
}

// use writes to keys at a rate each for some minutes, and says what part was refused in the last one.
func use(k *keyspace, keys []uint64, rate float64, minutes int) (refused float64) {
	asked, denied := 0.0, 0.0
	for minute := range minutes {
		asked, denied = 0, 0
		for moment := range 600 {
			now := time.Duration(minute)*time.Minute + time.Duration(moment)*100*time.Millisecond
			for _, key := range keys {
				asked += rate / 10
				if k.refuses(now, key, rate/10) != "" {
					denied += rate / 10
					continue
				}
				k.write(key, rate/10)
			}
		}
		k.split(time.Duration(minute+1)*time.Minute, time.Minute)
	}
	return denied / asked
}

func TestTable_SplitsForHeat(t *testing.T) {
	t.Parallel()
	var keys []uint64
	for i := range 64 {
		keys = append(keys, uint64(i)*(math.MaxUint64/64)+5)
	}
	k := newKeyspace("table", false, 1, 0, burstTime)
	if refused := use(k, keys, 50, 9); refused < 0.6 {
		t.Errorf("3,200 units a second in one partition: %v refused before it splits", refused)
	}
	if refused := use(newKeyspace("table", false, 1, 0, burstTime), keys, 50, 45); refused > 0 {
		t.Errorf("%v refused after several splits", refused)
	}
}

// Splitting gives each of the hot shards a separate partition, and never splits one.
func TestIndex_SplitsBetweenShardsOnly(t *testing.T) {
	t.Parallel()
	keys := []uint64{10, 20, 30, 1 << 60}
	k := newKeyspace("due", true, 1, 0, burstTime)
	if refused := use(k, keys, 900, 60); refused > 0 {
		t.Errorf("%v refused although each shard could have a partition", refused)
	}
	parts := map[*part]bool{}
	for _, key := range keys {
		parts[k.part(key)] = true
	}
	if len(parts) != len(keys) {
		t.Errorf("%d partitions for %d hot shards", len(parts), len(keys))
	}
	k = newKeyspace("due", true, 1, 0, burstTime)
	if refused := use(k, keys[:1], 2000, 60); refused < 0.45 || refused > 0.55 {
		t.Errorf("one shard at twice a partition's limit: %v refused", refused)
	}
	if len(k.parts) != 1 {
		t.Errorf("%d partitions for one shard", len(k.parts))
	}
	if limit := k.refuses(2*time.Hour, keys[0], 1); limit != "" {
		t.Errorf("refused by %s after a pause", limit)
	}
	k.write(keys[0], 5000)
	if limit := k.refuses(2*time.Hour, keys[0], 1); limit != limitDueShard {
		t.Errorf("refused by %q", limit)
	}
}

func TestIndex_IsolatedShards_ShareNothing(t *testing.T) {
	t.Parallel()
	k := newKeyspace("due", true, 1, 0, burstTime)
	keys := []uint64{7, 99, 3, 1 << 50}
	k.isolate(keys)
	k.write(99, 1e6)
	for _, key := range keys {
		limit := k.refuses(0, key, 1)
		if (limit != "") != (key == 99) {
			t.Errorf("key %d: %q", key, limit)
		}
	}
}
