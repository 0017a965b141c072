package main

import (
	"math"
	"time"
)

// fullKey is what one concurrency key carries whose slots are never free for long: more runs wait for one all the time.
type fullKey struct {
	Limit   int     `json:"limit"`
	Handler float64 `json:"handlerSeconds"`
	keyRate
	Ceiling float64 `json:"ceiling"` // by arithmetic: of the cycle or of the writes, whichever is less
	Before  keyRate `json:"slotsReadWhole"`
}

// keyRate is what a key carries, and what of it.
type keyRate struct {
	Carries    float64 `json:"carriesRunsPerSecond"`
	Held       string  `json:"heldBackBy"`
	Writes     float64 `json:"writeUnitsPerSecond"` // of the slots' partition key
	Reads      float64 `json:"readUnitsPerSecond"`
	Failed     float64 `json:"failedSlotConditionsPerRun"`
	TurnedAway float64 `json:"turnedAway"` // part of the triggers that failed
}

const (
	// cycleTime holds a key back that no limit of its partition does.
	cycleTime = "cycle time"
	// longHandler is a handler that keeps all slots of the largest limit busy.
	longHandler = 5 * time.Second
	// fullTime is how long a full key is watched; a third of it is not measured.
	fullTime = 3 * time.Minute
	// waitBehind is how many of its runs wait for a slot.
	waitBehind = 1000
)

// fullKeys lets keys of these limits be full, with handlers of these times.
func fullKeys(seed uint64, limits []int, handlers []time.Duration) []fullKey {
	var list []fullKey
	for _, handler := range handlers {
		for _, limit := range limits {
			k := fullKey{
				Limit: limit, Handler: handler.Seconds(), keyRate: carriesFull(seed, limit, handler, false),
				Before: carriesFull(seed, limit, handler, true),
			}
			k.Ceiling = math.Min(
				float64(limit)/slotCycle(handler).Seconds(),
				ceilings(freshDeployment(), handler)[limitSlots],
			)
			list = append(list, k)
		}
	}
	return list
}

// slotCycle is how long one run has a slot, with the search for the next one: without a wait in between, since polls
// are long.
func slotCycle(handler time.Duration) time.Duration {
	search := scanSlots.takes + readSlots.takes + 2*readRuns.takes
	return search + reserveSlot.takes + sendTime + pollTime + readRun.takes + claimWithSlot.takes + handler +
		succeedWithSlot.takes
}

// carriesFull is what a full key carries: as many runs are triggered as end, and whose trigger fails tries again.
func carriesFull(seed uint64, limit int, handler time.Duration, whole bool) keyRate {
	d := sizedFor(2000)
	d.Unlimited = true // the bridge
	w := simulate(seed, d, load{
		Limit: limit, Waiting: waitBehind, Whole: whole, Handler: handler, During: fullTime, Weight: 1, Attempts: 1,
	})
	o := &w.outcome
	during := w.now.Seconds()
	ended := o.succeeded + o.failed
	k := keyRate{
		Carries:    o.carried(),
		Held:       cycleTime,
		Writes:     w.slots.written / during,
		Reads:      w.slots.read / during,
		Failed:     w.slots.failed / ended,
		TurnedAway: o.turnedAway / o.offered,
	}
	most := 0.05 * ended
	for _, limit := range []string{limitSlots, limitSlotReads} {
		if refused := o.refusals[limit].runs; refused > most {
			k.Held, most = limit, refused
		}
	}
	return k
}
