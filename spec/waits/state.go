// Package waits models runs that wait: signals, sleeps, steps, children, listeners and flows, with everything that may
// stop, repeat or overlap. docs/internals/design.md, Waiting, has the rules; package explore goes through its states.
//
// A handler is a script: each attempt executes it from its beginning, and its calls answer from what is recorded. No run
// sleeps through a wait that is satisfied; every attempt gets the same outcome of a wait and the same value of a step; no
// answer to one wait is another's; after a cancellation no child and no ordinary node goes on; a node runs after its
// dependencies, on its condition, once at a time; nothing stands beside a pruned run. Not covered: which of several
// signals a wait takes, outbox rows, shards, older programs, the codec, flows with children. Listeners are modelled and
// not built.
package waits

import (
	"fmt"
	"math/bits"

	"github.com/runlane/runlane-go/spec/explore"
)

const (
	maxRuns  = 4
	maxProcs = 4
	inboxes  = 2
	verdicts = 3 // one for each inbox, and one of waits for both
)

type status uint8

const (
	absent status = iota
	queued
	scheduled
	running
	cancelling
	retrying
	released
	succeeded
	failed
	cancelled
	pruned
)

func (s status) terminal() bool { return s == succeeded || s == failed || s == cancelled }
func (s status) ended() bool    { return s.terminal() || s == pruned }
func (s status) waiting() bool  { return s == scheduled || s == retrying || s == released }
func (s status) active() bool   { return s != absent && !s.ended() }
func (s status) owned() bool    { return s == running || s == cancelling }

// What a run may wait for, several at once.
const (
	forSignal   uint8 = 1 << iota // names say of which inboxes
	forChildren                   // all of a call
	forEnds                       // of what a node goes after, or of a run that it listens to
	forTime
	forAnything // more than a run item has room for: any signal, any call, the time
)

// wait is what a run waits for: any of kinds. For signals, any of names, or all of them.
type wait struct {
	kinds, names uint8
	all          bool
}

// run is a run item with what stands beside it. Ghosts are known to the checks alone.
type run struct {
	status  status
	due     bool // its moment has come
	timed   bool // the moment of its sleep or time limit is recorded
	late    bool // and has passed
	stored  wait // as the item has it; names lose what came meanwhile
	inForce bool // no event came since
	truly   wait // ghost: what the handler asked for

	inbox   [inboxes]uint8  // ids of the signals beside it
	counted uint8           // signals, as the item counts them
	verdict [verdicts]uint8 // recorded outcomes of its waits
	told    [verdicts]uint8 // ghost: as a handler was told

	kept   [2]uint8 // the value of its step, under the key of each life
	keptOf [2]uint8 // ghost: the life that put it there
	seen   uint8    // ghost: the value that a handler was given
	life   uint8    // 1: its id is used again

	hasCall  bool // the record of a call stands beside it
	knowsIt  bool // and the item says so
	ended    uint8
	have     uint8 // ends told to it, of what it listens to
	listened bool  // its end is listened to
	listens  bool  // it does, to run 0
	untold   bool  // marker e: its end is to be told

	begun   bool  // it was claimed once
	owner   uint8 // process + 1 under whose lease token it is
	over    bool  // the lease is over
	slot    bool
	fails   uint8
	attempt uint8 // parity
}

type kind uint8

const (
	idle kind = iota
	worker
	signaller
	operator
	canceller
	teller
	starter // of a flow, or of its next round
	closer  // of a flow: who cancels it, or a tick
	pruner
)

type phase uint8

const (
	phRead phase = iota
	phClaim
	phWork
	phPut
	phMoment
	phVerdict
	phCall
	phListen
	phSuspend
	phEnd
	phCommit
	phWake
	phChildren
	phTend
	phLook
	phJudge
	phFinish
	phHead
)

// process is a process between two requests, with what it knows. Its flags say whether that is still so.
type process struct {
	kind    kind
	phase   phase
	run     uint8
	at      uint8 // how far it is in its script, or in the nodes of a flow
	val     uint8
	n       uint8 // of a flow, its round as read
	closed  uint8 // and how often it was cancelled
	counted uint8 // as looked at
	ended   uint8
	have    uint8
	life    uint8
	parity  uint8
	asks    wait
	missing uint8 // of a wait for all, as looked at
	last    uint8 // tellers: addressees that need no other end, or the node that is judged
	wakes   uint8 // and those of them that wait and are to go on

	current   bool // nothing was committed to run since it was read
	peers     bool // nor to its addressees
	counts    bool // nor were they told of other ends
	stopped   bool // the parent was cancelled, as read with the claim
	satisfied bool // a signal: the run waits, and this is what it waits for
	listened  bool // as known
	over      bool // all nodes that it looked at have ended
	head      bool // the flow is as it was read
}

// flow is the record of a flow.
type flow struct {
	begun    bool
	tend     bool  // a tick looks at it: not all is made, or not all is asked
	closed   uint8 // how often it was cancelled
	finished bool
	round    uint8 // 1: its failed part was retried
	complete bool  // ghost: all was made, and its starter was told
}

type state struct {
	runs   [maxRuns]run
	procs  [maxProcs]process
	flow   flow
	did    uint16 // what begins outside, each once
	deaths uint8
}

// order tells steps that lead on from what the outside does, and from faults.
type order uint8

const (
	byWork order = iota // processes that are there
	byTick              // the tick, and processes that come
	byTime              // moments come, leases end
	outside
)

// label names a step.
type label struct {
	text  string
	run   uint8
	order order
}

func (l label) String() string { return fmt.Sprintf("run %d: %s", l.run, l.text) }

// emitter takes one step: what it is, where it leads, and a violation that only the step shows.
type emitter = func(l label, s state, bad string)

// satisfied reports that a wait is over, apart from its time. A node's is over when it is judged.
func (w *world) satisfied(s *state, i uint8, what wait) bool {
	r := &s.runs[i]
	has := uint8(0)
	for k := range r.inbox {
		if r.inbox[k] != 0 {
			has |= 1 << k
		}
	}
	switch {
	case what.kinds&forSignal != 0 && !what.all && has&what.names != 0,
		what.kinds&forSignal != 0 && what.all && has&what.names == what.names,
		what.kinds&forChildren != 0 && r.ended >= w.children(i),
		what.kinds&forEnds != 0 && r.have > 0:
		return true
	}
	return false
}

// commit is what every event does to those who read the run before, and to its wait.
func (w *world) commit(s *state, i uint8) {
	w.moved(s, i, func(p *process) { p.peers = false })
	for k := range s.procs {
		if p := &s.procs[k]; p.kind != idle && p.run == i {
			p.current = false
		}
	}
	r := &s.runs[i]
	r.due, r.truly = false, wait{}
	if w.holds(waitEnds) {
		r.stored, r.inForce = wait{}, false
	}
}

// moved tells the tellers of run i's children, and who judges it.
func (w *world) moved(s *state, i uint8, what func(*process)) {
	for k := range s.procs {
		p := &s.procs[k]
		if (p.kind == teller || p.kind == closer) && (w.addressees(s, p.run)|p.last)&(1<<i) != 0 {
			what(p)
		}
	}
}

// end is a terminal event. The marker stays where an end is to be told, or children are to be asked.
func (w *world) end(s *state, i uint8, how status) {
	w.commit(s, i)
	r := &s.runs[i]
	r.status, r.owner, r.over, r.slot = how, 0, false, false
	_, _, isNode := w.place(i)
	r.untold = w.holds(endMarker) && (isNode || w.addressees(s, i) != 0) ||
		how == cancelled && r.knowsIt && w.holds(cascadeMarker)
}

// ask is a request to cancel.
func (w *world) ask(s *state, i uint8) {
	switch r := &s.runs[i]; {
	case r.status == running:
		w.commit(s, i)
		r.status = cancelling
	case r.status.active() && r.status != cancelling:
		w.end(s, i, cancelled)
	}
}

// resume is run.resumed, with a delivery where the queue has no limit. by is what it is resumed by; 0: an operator.
func (w *world) resume(s *state, i, by uint8) (bad string) {
	r := &s.runs[i]
	switch {
	case !r.status.waiting():
		return "a run is resumed that does not wait"
	case by != 0 && r.truly.kinds&by == 0:
		return "a run is resumed by what it does not wait for"
	}
	w.commit(s, i)
	if w.isBounded(i) {
		r.due = w.holds(boundedDue)
	} else {
		r.status = queued
	}
	return ""
}

// suspend is run.released with a wait.
func (w *world) suspend(s *state, i uint8, what wait) {
	w.commit(s, i)
	r := &s.runs[i]
	r.status, r.owner, r.over = released, 0, false
	if w.holds(releaseFrees) {
		r.slot = false
	}
	r.truly, r.stored, r.inForce = what, w.fit(what), true
}

// fit makes a wait as small as the run item has room for.
func (w *world) fit(what wait) wait {
	many := bits.OnesCount8(what.kinds) > 1 || bits.OnesCount8(what.names) > 1 && !what.all
	switch {
	case many && w.narrow && w.holds(anythingElse):
		return wait{kinds: forAnything | what.kinds&forTime}
	case many && !w.holds(unionOfAll), many && w.narrow: // the first of them alone
		if what.kinds&forSignal != 0 {
			return wait{kinds: forSignal | what.kinds&forTime, names: what.names & -what.names, all: what.all}
		}
		return wait{kinds: what.kinds & -what.kinds}
	}
	return what
}

var _ explore.World[state, label] = (*world)(nil)
