package main

// Statuses. waiting is retrying and released: a time decides, and there is no outbox row.
const (
	absent int8 = iota
	queued
	scheduled
	waiting
	running
	cancelRequested
	terminal
)

// States of a run's latest outbox row. A superseded row is noRow here; who holds its claim knows by process.held.
const (
	noRow int8 = iota
	pending
	claimed
	published
	failed
	dead
)

// Marker kinds, as dynamostore/internal/rows/marker.go names them.
const (
	noMarker    int8 = iota
	deliverable      // q
	unpublished      // o
	deadLetter       // x
	timed            // w
	slotless         // d
	parked           // p
	leased           // l
)

// Kinds of processes.
const (
	idle      int8 = iota
	bridge         // serves a wakeup or a poll: has read the run and decided on op
	tick           // maintenance: likewise
	worker         // executes the handler under a lease
	publisher      // holds the claim on an outbox row
)

// What bridge and tick have decided and not yet committed. opMove + kind is a plain move of the marker.
const (
	opNone int8 = iota
	opClaim
	opFailAbandoned
	opFinalize
	opRequest   // run.delivery_requested without a reservation: a due or recovered run
	opRedeliver // the same for a queued run
	opReserve   // run.delivery_requested with a reservation
	opRecover   // an expired running run without a slot: made queued, into d
	opFlush     // claim of the outbox row
	opGiveBack  // the slot of a reserved run that is not executed here
	opMove
)

// Phases of a publisher. pubMove + kind is the move that follows a mark.
const (
	pubSend int8 = iota
	pubMarkPublished
	pubMarkFailed
	pubMarkDead
	pubMove
)

// Durations, in units. A time is relative to now: positive lies ahead, 0 is reached.
const (
	held        int8 = 99 // a slot without until
	leaseFor    int8 = 2
	claimFor    int8 = 1
	waitFor     int8 = 1
	backoff     int8 = 2
	redeliverIn int8 = 4
	patience    int8 = 1 // of the tick for q and short waits in w
)

const (
	maxRuns      = 3
	maxSlots     = 3
	maxProcesses = 3
)

// item is a run with its latest outbox row and its marker.
type item struct {
	status, runAt, lease, reserved, slot int8 // slot: number + 1
	abandoned, failures, rounds          int8 // rounds: reservations in a row that ended unclaimed
	row, rowAt, kind, at                 int8
}

// slot is a place of the queue's partition.
type slot struct{ holder, until int8 } // holder: run + 1

// process is a process between two requests, with what it knows. Its flags say whether that is still so.
type process struct {
	kind, run, op, at int8
	slot, own, limit  int8 // slot to take and own to give up: number + 1; the limit carried
	sequence          bool // the run's sequence is as read
	marker            bool // its marker is as read
	slots             bool // slot and own are as read
	held              bool // it holds the lease token, or the claim on the latest row
	keep              bool // the claim leaves the marker, by what was read
	poll              bool // not by a wakeup
	inTime            bool // slot is its own live reservation
	choosing          bool // nothing is at or above the limit; which number to take is still to be read
}

// state is everything. It is compared and hashed as a whole.
type state struct {
	runs      [maxRuns]item
	slots     [maxSlots]slot
	processes [maxProcesses]process
	wakeups   [maxRuns]uint8 // bit k: one that becomes visible in k units
	deployed  int8           // index of the limit in force
}

// label names a step.
type label struct {
	text string
	run  int8
}

// Begin is a world without runs.
func (w *world) Begin() state { return state{} }

// down lets one unit of time pass.
func down(at, floor int8) int8 {
	if at > floor && at != held {
		return at - 1
	}
	return at
}

// later is the state one unit of time on.
func (w *world) later(s state) state {
	for i := range s.runs {
		r := &s.runs[i]
		if r.status == absent || r.status == terminal {
			continue
		}
		r.runAt, r.lease = down(r.runAt, 0), down(r.lease, 0)
		r.reserved, r.rowAt = down(r.reserved, 0), down(r.rowAt, 0)
		if r.kind != noMarker && r.kind != slotless && r.kind != deadLetter {
			r.at = down(r.at, -patience)
		}
	}
	for i := range s.slots {
		if s.slots[i].holder != 0 {
			s.slots[i].until = down(s.slots[i].until, 0)
		}
	}
	for i := range s.processes {
		s.processes[i].at = down(s.processes[i].at, 0)
	}
	if w.latency > 0 {
		for i := range s.wakeups {
			s.wakeups[i] >>= 1
		}
	}
	return s
}

// reads reports a process that acts on what it has read of a run.
func (p *process) reads(r int8) bool {
	return p.run == r && (p.kind == bridge || p.kind == tick || p.kind == publisher)
}

// moved tells the others that the run has another sequence.
func (s *state) moved(r int8, self int) {
	for i := range s.processes {
		if p := &s.processes[i]; i != self && p.reads(r) {
			p.sequence = false
		}
	}
}

// mark sets a marker and tells the others.
func (s *state) mark(r int8, self int, kind, at int8) {
	if kind == slotless || kind == deadLetter || kind == noMarker {
		at = 0
	}
	run := &s.runs[r]
	if run.kind == kind && run.at == at {
		return
	}
	run.kind, run.at = kind, at
	for i := range s.processes {
		if p := &s.processes[i]; i != self && p.reads(r) {
			p.marker = false
		}
	}
}

// put sets a slot and tells the others.
func (s *state) put(n int8, self int, v slot) {
	s.slots[n] = v
	for i := range s.processes {
		if p := &s.processes[i]; i != self && (p.slot == n+1 || p.own == n+1) {
			p.slots = false
		}
	}
}

// disown ends the owner's token.
func (s *state) disown(r int8, self int) {
	s.runs[r].lease = 0
	for i := range s.processes {
		if p := &s.processes[i]; i != self && p.kind == worker && p.run == r {
			p.held = false
		}
	}
}

// setRow changes the row and tells those who hold its claim, or are about to.
func (s *state) setRow(r int8, self int, row, at int8) {
	s.runs[r].row, s.runs[r].rowAt = row, at
	for i := range s.processes {
		if p := &s.processes[i]; i != self && p.run == r && (p.kind == publisher || p.kind == tick && p.op == opFlush) {
			p.held = false
		}
	}
}
