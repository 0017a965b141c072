package main

import (
	"fmt"
	"math"
	"time"
)

// rung is one simulation of a rate: what a deployment carries of it, and the limit that keeps it from more.
type rung struct {
	Deployment deployment `json:"deployment"`
	Limit      string     `json:"limit"` // "" when all is carried
	Ceiling    float64    `json:"ceiling"`
	Carried    float64    `json:"carriedPerSecond"`
	TurnedAway float64    `json:"turnedAway"` // part of the triggers that failed
	Start50    float64    `json:"startSecondsP50"`
	Start99    float64    `json:"startSecondsP99"`
	Batches    float64    `json:"batchesAtOnce"`
	Remedy     string     `json:"remedy,omitempty"`
}

// ladder is how a rate is reached: rung by rung, each with the limit of the one before raised.
type ladder struct {
	Rate  float64 `json:"runsPerSecond"`
	Rungs []rung  `json:"rungs"`
	// Scaling is how long after a start from nothing the mapping of the last rung still has wakeups waiting for more
	// than a second.
	Scaling float64 `json:"scalingSeconds"`
}

// handlerTime is what an attempt of these experiments takes.
const handlerTime = 100 * time.Millisecond

// Units that a simple run writes to the table and to each index: docs/internals/layout.md, Budget.
const (
	tableUnits = 13
	dueUnits   = 2
	doneUnits  = 1
)

// batchTime is how long a batch keeps an environment when nothing is refused.
func batchTime(handler time.Duration) time.Duration {
	return pollTime + readRun.takes + claim.takes + handler + succeed.takes
}

// ceilings are the rates of simple runs that each limit allows, by arithmetic alone.
func ceilings(d deployment, handler time.Duration) map[string]float64 {
	second := batchTime(handler).Seconds()
	found := map[string]float64{
		limitSlots:     partitionWrites / float64(createWithSlot.slot+claimWithSlot.slot+succeedWithSlot.slot),
		limitTable:     float64(d.TablePartitions) * partitionWrites / tableUnits,
		limitDueShard:  float64(d.Shards) * partitionWrites / dueUnits,
		limitDoneShard: float64(d.Shards) * partitionWrites / doneUnits,
		limitInFlight:  mostInFlight * float64(d.Mappings) / second,
		limitBridge:    bridgeBatchSize * float64(d.Mappings) * math.Min(float64(d.Concurrency), mostBatches) / second,
		limitAccount:   bridgeBatchSize * float64(d.Account) / second,
	}
	if d.IndexPartitions > 0 {
		found[limitDue] = float64(min(d.IndexPartitions, d.Shards)) * partitionWrites / dueUnits
		found[limitDone] = float64(min(d.IndexPartitions, d.Shards)) * partitionWrites / doneUnits
	}
	if d.Quota > 0 {
		found[limitTableQuota] = d.Quota / tableUnits
		found[limitDueQuota], found[limitDoneQuota] = d.Quota/dueUnits, d.Quota/doneUnits
	}
	return found
}

// room is how much more than its rate a deployment is given.
const room = 1.25

// shardsFor is the smallest power of two of shards that carries a rate with room.
func shardsFor(rate float64) int {
	shards := 1
	for float64(shards)*partitionWrites < rate*dueUnits*room {
		shards *= 2
	}
	return shards
}

// batchesFor is how many batches at once carry a rate with room.
func batchesFor(rate float64, handler time.Duration) int {
	return int(math.Ceil(rate * room * batchTime(handler).Seconds() / bridgeBatchSize))
}

// raise takes a limit away as far as the rate needs, with room, and says how that is done. ok is false when it was
// already.
func raise(d *deployment, limit string, l *load) (remedy string, ok bool) {
	before := *d
	units := l.Rate * tableUnits * room
	switch limit {
	case limitTable:
		d.TablePartitions = int(math.Ceil(units / partitionWrites))
		remedy = fmt.Sprintf("warm the table up to %d write units a second", d.TablePartitions*partitionWrites)
	case limitTableQuota, limitDueQuota, limitDoneQuota:
		d.Quota = math.Ceil(units/1e4) * 1e4
		remedy = fmt.Sprintf("have the quota of write units raised to %.0f", d.Quota)
	case limitDue, limitDone:
		d.IndexPartitions = 0
		remedy = "let the indexes split until each shard has its own partition"
	case limitDueShard, limitDoneShard:
		d.Shards = shardsFor(l.Rate)
		remedy = fmt.Sprintf("%d shards", d.Shards)
	case limitBridge, limitPollers, limitInFlight:
		need := batchesFor(l.Rate, l.Handler)
		d.Mappings = (need + mostConcurrency - 1) / mostConcurrency
		d.Concurrency = (need + d.Mappings - 1) / d.Mappings
		remedy = fmt.Sprintf("BridgeConcurrency %d", d.Concurrency)
		if d.Mappings > 1 {
			remedy = fmt.Sprintf(
				"%d queues with a mapping each, BridgeConcurrency %d, or provisioned pollers",
				d.Mappings,
				d.Concurrency,
			)
		}
	case limitAccount:
		d.Account = batchesFor(l.Rate, l.Handler)
		remedy = fmt.Sprintf("have the account's concurrency raised to %d", d.Account)
	}
	return remedy, *d != before
}

// climb finds the limits of a rate one after the other, from a fresh deployment on.
func climb(seed uint64, rate float64) ladder {
	const mostRungs = 12 // more than there are limits
	result := ladder{Rate: rate}
	d := freshDeployment()
	d.Scaled = true
	l := load{
		Rate:     rate,
		During:   45 * time.Second,
		Then:     15 * time.Second,
		Handler:  handlerTime,
		Weight:   weightFor(rate),
		Attempts: 1,
	}
	for range mostRungs {
		w := simulate(seed, d, l)
		o := &w.outcome
		r := rung{
			Deployment: d, Limit: o.binding(rate), Carried: o.carried(), TurnedAway: o.turnedAway / o.offered,
			Start50: o.starts.at(0.5).Seconds(), Start99: o.starts.at(0.99).Seconds(), Batches: o.busy,
		}
		r.Ceiling = ceilings(d, handlerTime)[r.Limit]
		more := false
		if r.Limit != "" {
			r.Remedy, more = raise(&d, r.Limit, &l)
		}
		result.Rungs = append(result.Rungs, r)
		if !more {
			break
		}
	}
	d.Scaled = false
	result.Scaling = scalingTime(seed, d, l)
	return result
}

// scalingTime simulates the same rate while the mapping is still small.
func scalingTime(seed uint64, d deployment, l load) float64 {
	w := newWorld(seed, d, l)
	w.load.During, w.load.Then = 30*time.Minute, 0
	late := time.Duration(0)
	var look func()
	look = func() {
		if w.queue.oldest() > time.Second {
			late = w.now
		}
		if w.now-late < 20*time.Second {
			w.after(time.Second, look)
			return
		}
		w.load.During = w.now
	}
	look()
	w.bridge.start()
	w.arrive()
	w.run(w.load.During, func() bool { return w.now >= w.load.During })
	return late.Seconds()
}
