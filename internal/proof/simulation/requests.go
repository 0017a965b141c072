package main

import "time"

// marker is the kind of a run's entry in the index due (docs/internals/layout.md, Indexes).
type marker byte

const (
	noMarker    marker = 0
	deliverable marker = 'q'
	unpublished marker = 'o'
	waiting     marker = 'w'
	parked      marker = 'p'
	leased      marker = 'l'
	slotless    marker = 'd'
	ended       marker = 'e' // an end that is to be told: no run here was called
)

// request is one request that the product sends to DynamoDB for a run, by the name that the product's own meter gives
// it. Units are for items of at most 1 KB, as in docs/internals/layout.md, Budget.
type request struct {
	name  string
	takes time.Duration
	table int     // write units of items in the run's partition
	slot  int     // write units of the slot's item, in its partition
	reads float64 // strong read units
	// ofIndex reads where runs wait for a slot instead.
	ofIndex bool
	// What it does to the index due is decided where it is sent: a marker that stays costs nothing, one that goes or
	// comes a unit each.
	done bool // it writes the run's entry in the index done
}

// The requests of a run's life.
var (
	create = request{name: "run.delivery_requested", takes: transactionTime, table: 4}
	// createWithSlot takes a slot of a bounded queue in the commit that creates the run.
	createWithSlot = request{name: "run.delivery_requested", takes: transactionTime, table: 4, slot: 2}
	// createWaiting makes a run that waits for a slot.
	createWaiting = request{name: "run.created", takes: transactionTime, table: 4}
	// What these two read depends on what stands there.
	readSlots       = request{name: "read slots", takes: readTime, reads: 1}
	scanSlots       = request{name: "scan slots", takes: indexTime, reads: 0.5, ofIndex: true}
	reserveSlot     = request{name: "run.delivery_requested", takes: transactionTime, table: 4, slot: 2}
	acknowledge     = request{name: "acknowledge", takes: writeTime, table: 1}
	readRun         = request{name: "read run", takes: readTime, reads: 1}
	claim           = request{name: "run.started", takes: transactionTime, table: 4}
	claimWithSlot   = request{name: "run.started", takes: transactionTime, table: 4, slot: 2}
	succeed         = request{name: "run.succeeded", takes: transactionTime, table: 4, done: true}
	succeedWithSlot = request{name: "run.succeeded", takes: transactionTime, table: 4, slot: 2, done: true}
	retry           = request{name: "run.retry_scheduled", takes: transactionTime, table: 4}
	fail            = request{name: "run.failed", takes: transactionTime, table: 4, done: true}

	// The tick's and the relay's.
	recoverRun     = request{name: "run.delivery_requested", takes: transactionTime, table: 4}
	abandon        = request{name: "run.failed", takes: transactionTime, table: 4, done: true}
	moveMarker     = request{name: "move marker", takes: writeTime, table: 1}
	claimOutbox    = request{name: "claim outbox", takes: writeTime, table: 1}
	readRuns       = request{name: "read runs", takes: readTime, reads: 1}
	readDelivery   = request{name: "read log", takes: readTime, reads: 1}
	readDeliveries = request{name: "read deliveries", takes: readTime, reads: 1}
)

// spent is what was sent of a request.
type spent struct {
	Requests float64 `json:"requests"`
	Writes   float64 `json:"writeUnits"`
	Reads    float64 `json:"readUnits"`
}

func (s *spent) add(other spent) {
	s.Requests += other.Requests
	s.Writes += other.Writes
	s.Reads += other.Reads
}
