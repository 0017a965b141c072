package main

import (
	"math"
	"time"
)

// mapping is what lies between the queue and the bridge: how many batches are handled at once, and the environments
// that handle them. Several queues with a mapping each act as one that is so many times as large.
type mapping struct {
	world   *world
	allowed float64 // batches at once, as far as the mapping has scaled
	busy    float64
	warm    float64 // environments there are
	fresh   bucket  // of new ones

	saturated time.Duration // how long messages waited while all that is allowed was busy
	limit     string        // what kept it from more at the last look
}

// scaleEvery is how often the simulation looks at the mapping's scale: AWS says how much it grows in a minute.
const scaleEvery = time.Second

func (b *mapping) start() {
	n := float64(b.world.Mappings)
	b.allowed = math.Min(firstBatches*n, b.most())
	b.fresh = newBucket(newEnvironments/environmentsWindow.Seconds(), environmentsWindow)
	if b.world.Scaled {
		b.allowed, b.warm = b.most(), b.most()
	}
	if b.world.Unlimited {
		b.allowed, b.warm = math.Inf(1), math.Inf(1)
	}
	b.world.after(scaleEvery, b.scale)
}

// most is the least of the limits.
func (b *mapping) most() float64 {
	w := b.world
	own := float64(w.Mappings) * math.Min(float64(w.Concurrency), mostBatches)
	if w.Concurrency == 0 {
		own = float64(w.Mappings) * mostBatches
	}
	return math.Min(own, float64(w.Account))
}

// scale lets a mapping grow while messages wait, and shrink while half of it is idle.
func (b *mapping) scale() {
	w := b.world
	grown := batchesAMinute * float64(w.Mappings) * scaleEvery.Minutes()
	switch {
	case w.Unlimited:
	case w.queue.visible > 0 && b.busy >= b.allowed-1:
		if b.allowed < b.most() {
			b.limit = limitPollers
		} else if b.most() == float64(w.Account) {
			b.limit = limitAccount
		} else {
			b.limit = limitBridge
		}
		b.saturated += scaleEvery
		w.outcome.refuse(w.now, b.limit, w.queue.visible)
		b.allowed = math.Min(b.most(), b.allowed+grown)
	case b.busy < b.allowed/2:
		b.allowed = math.Max(math.Min(firstBatches*float64(w.Mappings), b.most()), b.allowed-grown)
	}
	b.look()
	w.after(scaleEvery, b.scale)
}

// look starts batches while there are messages and room.
func (b *mapping) look() {
	w := b.world
	for w.queue.visible > 0 && b.busy < b.allowed {
		if b.busy >= b.warm && !b.fresh.admits(w.now) {
			w.outcome.refuse(w.now, limitEnvironments, 1)
			return // the next look is a second away at most
		}
		batch, weight := w.queue.receive(bridgeBatchSize)
		if len(batch) == 0 {
			return
		}
		environments := 1.0
		if w.load.Weight > 1 { // the batches of a cohort are full
			environments = weight / bridgeBatchSize
		}
		b.handle(batch, environments)
	}
}

// handle gives a batch to environments and has it executed, all records at once.
func (b *mapping) handle(batch []message, environments float64) {
	w := b.world
	wait := pollTime
	if cold := b.busy + environments - b.warm; cold > 0 {
		b.warm += cold
		b.fresh.take(cold)
		wait += coldStart
	}
	b.busy += environments
	w.outcome.busy = math.Max(w.outcome.busy, b.busy)
	left := len(batch)
	w.after(wait, func() {
		deadline := w.now + bridgeTimeout
		for _, m := range batch {
			w.deliver(m, deadline, func(back bool, after time.Duration) {
				if back {
					w.queue.handBack(m, after)
				} else {
					w.queue.delete(m)
				}
				if left--; left == 0 {
					b.busy -= environments
					b.look()
				}
			})
		}
	})
}
