package main

import (
	"hash/fnv"
	"time"
)

// What the product does. product_test.go compares each with the product's source, template.yaml or
// docs/internals/layout.md.
const (
	defaultShards    = 8
	maxConflictTries = 8
	throttleBackoff  = 250 * time.Millisecond
	maxScanChunk     = 1000
	batchKeys        = 100
	maxParallel      = 8

	defaultTickLimit  = 100
	queuedPatience    = time.Minute
	shortWaitPatience = 30 * time.Second
	backlogDepth      = 100
	maxBacklogWait    = 6 * time.Hour
	publishBatch      = 100
	tickParallel      = 8
	aheadTime         = 70 * time.Second
	aheadPages        = 10

	minTickRound     = 5 * time.Second
	minTickReserve   = time.Second
	tickReserveShare = 20

	outcomeBackoffBase = 50 * time.Millisecond
	outcomeBackoffMax  = 2 * time.Second
	leaseAfterDeadline = 5 * time.Second

	firstHandBack = 10 * time.Second
	lastHandBack  = 5 * time.Minute

	defaultBackoffBase = time.Second
	defaultBackoffMax  = 5 * time.Minute

	firstRedelivery = 10 * time.Minute
	lastRedelivery  = 6 * time.Hour
	maxAbandoned    = 3

	// How slots are read, and offered.
	maxLimit           = 1000
	slotWindow         = 64
	creationWindows    = 2
	reservationWindows = 1
	slotTries          = 4
	slotPatience       = 4
	requestTimeout     = 5 * time.Second
	afterCommitTime    = 5 * time.Second
	handOverRounds     = 5
	offerPages         = 3
	offerRows          = 256
	offerReads         = 4
	// readUnit is what a read unit reads, slotBytes the item of a slot, untilBytes more of it while it is a
	// reservation, and rowBytes the index entry of a run that waits, all of a queue "bounded" in environment "default".
	readUnit   = 4096
	slotBytes  = 93
	untilBytes = 10
	rowBytes   = 118

	// idleTickReads is what a tick with nothing to do reads for each shard.
	idleTickReads = 76.0 / defaultShards

	// The template's.
	bridgeConcurrency = 50
	bridgeBatchSize   = 10
	bridgeTimeout     = 60 * time.Second
	tickTimeout       = 55 * time.Second
	maxReceiveCount   = 5
	relayBatchSize    = 100
)

// shardOf is the product's: the hash of a run's id, or of a slot partition's name.
func shardOf(id string, n int) int {
	h := fnv.New32a()
	h.Write([]byte(id))
	return int(h.Sum32() % uint32(n))
}

// stageShares are the shares of a tick's time: cancellations, abandoned, ends told, deliver, redeliver, schedules,
// dispatch, flush.
var stageShares = []int{2, 2, 1, 4, 1, 2, 2, 3}

// jittered is the runtime's: 20 % more or less.
func jittered(d time.Duration, fraction float64) time.Duration {
	return time.Duration(float64(d) * (0.8 + 0.4*fraction))
}

// exponential is the delay after failure number n of a task that asks for no other.
func exponential(n int) time.Duration {
	delay := defaultBackoffBase
	for ; n > 1 && delay < defaultBackoffMax; n-- {
		delay *= 2
	}
	return min(delay, defaultBackoffMax)
}

// handBackDelay is when a message that was handed back comes again.
func handBackDelay(receives int) time.Duration {
	delay := firstHandBack
	for ; receives > 1 && delay < lastHandBack; receives-- {
		delay *= 2
	}
	return min(delay, lastHandBack)
}

// redeliveryAt is when a wakeup that no worker followed is asked for again: as long after its publication as that was
// after the first one, and ten minutes more.
func redeliveryAt(first, published time.Duration) time.Duration {
	return published + min(published-first+firstRedelivery, lastRedelivery)
}
