package main

import (
	"math"
	"slices"
	"time"
)

// shardStep is what a number of shards carries when nothing else limits, and how late runs begin on the way there.
type shardStep struct {
	Shards  int     `json:"shards"`
	Carries float64 `json:"carriesRunsPerSecond"`
	Limit   string  `json:"limit"`
	Ceiling float64 `json:"ceiling"` // by arithmetic
	Half99  float64 `json:"startSecondsP99AtHalf"`
	Most99  float64 `json:"startSecondsP99AtNineTenths"`
	Tick    float64 `json:"idleTickReadUnits"`
	Looking float64 `json:"idleTickSeconds"` // that its scans take
}

// shardCounts finds what numbers of shards carry, each shard on a separate partition.
func shardCounts(seed uint64, counts []int) []shardStep {
	var steps []shardStep
	for _, n := range counts {
		ceiling := float64(n) * partitionWrites / dueUnits
		d := deployment{
			Shards:          n,
			Mappings:        1,
			Unlimited:       true,
			TablePartitions: int(math.Ceil(ceiling * 2 * tableUnits / partitionWrites)),
		}
		s := shardStep{Shards: n, Ceiling: ceiling}
		kind := load{Handler: handlerTime}
		s.Carries, s.Limit = carries(seed, d, kind, ceiling*0.8, ceiling*1.6)
		late := func(part float64) float64 {
			rate := part * s.Carries
			l := load{
				Rate:     rate,
				During:   30 * time.Second,
				Then:     10 * time.Second,
				Handler:  handlerTime,
				Weight:   weightFor(rate),
				Attempts: 1,
			}
			w := simulate(seed, d, l)
			return w.outcome.starts.at(0.99).Seconds()
		}
		s.Half99, s.Most99 = late(0.5), late(0.9)
		s.Tick = idleTickReads * float64(n)
		s.Looking = s.Tick / scanSlots.reads / tickParallel * indexTime.Seconds()
		steps = append(steps, s)
	}
	return steps
}

// young is what a new index carries before it has split: its shards share a few partitions, by chance.
type young struct {
	Partitions int     `json:"partitions"`
	Shards     int     `json:"shards"`
	Least      float64 `json:"leastRunsPerSecond"`
	Median     float64 `json:"medianRunsPerSecond"`
	Most       float64 `json:"mostRunsPerSecond"`
}

// youngIndex looks at so many ways in which the names of shards may fall to partitions, without simulating what
// follows.
func youngIndex(seed uint64, ways int) young {
	d := freshDeployment()
	y := young{Partitions: d.IndexPartitions, Shards: d.Shards}
	var rates []float64
	for way := range ways {
		w := newWorld(seed+uint64(way), d, load{Weight: 1})
		crowd := map[*part]int{}
		most := 0
		for _, key := range w.dueKeys[deliverable] {
			p := w.due.part(key)
			crowd[p]++
			most = max(most, crowd[p])
		}
		rates = append(rates, partitionWrites*float64(d.Shards)/dueUnits/float64(most))
	}
	slices.Sort(rates)
	y.Least, y.Median, y.Most = rates[0], rates[len(rates)/2], rates[len(rates)-1]
	return y
}

// oneKey is what one concurrency key of a bounded queue carries while there is room: its slots are one partition key.
func oneKey(seed uint64) (rate float64, limit string) {
	d := sizedFor(2000)
	return carries(seed, d, load{Handler: handlerTime, Limit: maxLimit}, 50, 400)
}

// warming is a rate that a new table grows into.
type warming struct {
	Rate       float64 `json:"runsPerSecond"`
	Minutes    float64 `json:"minutesUntilCarried"` // negative: not within the time that was watched
	TurnedAway float64 `json:"triggersTurnedAway"`
	Waiting    float64 `json:"mostWaiting"`
	Dead       float64 `json:"deadLetters"`
	Partitions int     `json:"tablePartitionsAfterwards"`
}

// warm starts a rate on a new table at once.
func warm(seed uint64, rate, weight float64) warming {
	l := load{Rate: rate, During: 70 * time.Minute, Handler: handlerTime, Weight: weight, Attempts: 1}
	d := freshDeployment()
	d.Concurrency = batchesFor(2*rate, handlerTime)
	w := simulate(seed, d, l)
	result := warming{
		Rate:       rate,
		Minutes:    -1,
		TurnedAway: w.outcome.turnedAway,
		Waiting:    w.outcome.visible,
		Dead:       w.queue.dead,
		Partitions: len(w.table.parts),
	}
	for i, m := range w.outcome.minutes {
		switch {
		case m.active > 2*rate:
			result.Minutes = -1
		case result.Minutes < 0:
			result.Minutes = float64(i + 1)
		}
	}
	return result
}
