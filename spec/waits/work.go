package waits

import "math/bits"

// branch is one wait for signals: its record, what it is for, and whether it has a time limit.
type branch struct {
	record  uint8
	names   uint8
	all     bool
	limited bool
}

// branches are the waits of a word of a script.
func branches(word byte) []branch {
	switch word {
	case 'W', 'Q':
		return []branch{{record: 0, names: 1}}
	case 'X':
		return []branch{{record: 1, names: 2}}
	case 'L':
		return []branch{{record: 0, names: 1, limited: true}}
	case 'A':
		return []branch{{record: 2, names: 3}}
	case 'B':
		return []branch{{record: 2, names: 3, all: true}}
	case 'P':
		return []branch{{record: 0, names: 1}, {record: 1, names: 2}}
	}
	return nil
}

// Outcomes of a wait: the names that were there, or the time.
const timeOver uint8 = 4

// job is a worker's next request: the state that it makes, and what of it is the worker's.
type job struct {
	w *world
	t *state
	r *run
	p *process
	k uint8
}

// work is a worker's next request.
func (w *world) work(s *state, k uint8, emit emitter) {
	i := s.procs[k].run
	do := func(text string, change func(j job) (bad string)) {
		t := *s
		bad := change(job{w: w, t: &t, r: &t.runs[i], p: &t.procs[k], k: k})
		emit(label{text, i, byWork}, t, bad)
	}
	switch s.procs[k].phase {
	case phClaim:
		do("claim", job.claim)
	case phWork:
		script := w.scripts[i]
		if at := int(s.procs[k].at); at < len(script) && script[at] != 'E' {
			do("handler: "+string(script[at]), job.call)
			return
		}
		do("handler succeeds", func(j job) string { return j.becomes(succeeded) })
		if s.runs[i].fails < w.fails {
			do("handler fails", func(j job) string { return j.becomes(retrying) })
		}
		if w.fails > 0 {
			do("handler fails for good", func(j job) string { return j.becomes(failed) })
		}
	case phPut:
		do("put step", job.putStep)
	case phMoment:
		do("record the moment", func(j job) string { j.r.timed = true; j.p.phase = phWork; return "" })
	case phVerdict:
		do("record the outcome of a wait", job.putVerdict)
	case phCall:
		do("record a call", job.putCall)
	case phListen:
		do("register as a listener", job.register)
	case phSuspend:
		do("release with a wait", job.suspend)
	case phEnd:
		do("outcome", job.outcome)
	case phRead, phCommit, phWake, phChildren, phTend, phLook, phJudge, phFinish, phHead: // of others
	}
}

func (j job) becomes(how status) string {
	j.p.phase, j.p.val = phEnd, uint8(how)
	return ""
}

func (j job) claim() string {
	p, r := j.p, j.r
	switch {
	case !p.current:
		*p = process{}
	case p.stopped && j.w.holds(childChecks):
		j.w.end(j.t, p.run, cancelled)
		*p = process{}
	default:
		j.w.commit(j.t, p.run)
		r.status, r.owner, r.over, r.begun = running, j.k+1, false, true
		r.slot = j.w.isBounded(p.run)
		p.phase, p.current, p.parity = phWork, true, r.attempt
		r.attempt ^= 1
		if !j.w.holds(momentOnce) {
			r.timed, r.late = false, false
		}
	}
	return ""
}

// call is a call of the handler that may have to wait.
func (j job) call() string {
	word := j.w.scripts[j.p.run][j.p.at]
	switch word {
	case 'S':
		return j.step()
	case 'Z', 'L':
		if !j.r.timed {
			j.p.phase = phMoment
			return ""
		}
	}
	j.p.counted, j.p.ended, j.p.have, j.p.missing = j.r.counted, j.r.ended, j.r.have, 0
	if j.taken(word) && j.w.holds(inboxOnce) {
		return j.becomes(failed)
	}
	asks, bad, wait := j.signals(word)
	if wait || bad != "" {
		return bad
	}
	switch {
	case word == 'Z' && !j.r.late:
		asks.kinds |= forTime
	case word == 'R' && !j.listen(&asks):
		return ""
	case word == 'C' || word == 'Q':
		answered, bad := j.children(&asks)
		if !answered || bad != "" {
			return bad
		}
	}
	if asks.kinds == 0 {
		j.p.at++
		return ""
	}
	j.p.asks, j.p.phase = asks, phSuspend
	return ""
}

// taken reports that a call before this one in the handler is a wait for some of the same signals, under another name.
func (j job) taken(word byte) bool {
	for _, before := range []byte(j.w.scripts[j.p.run][:j.p.at]) {
		for _, b := range branches(before) {
			for _, c := range branches(word) {
				if b.record != c.record && b.names&c.names != 0 {
					return true
				}
			}
		}
	}
	return false
}

// signals looks at the inboxes; recording: an outcome has to be recorded first.
func (j job) signals(word byte) (asks wait, bad string, recording bool) {
	for _, b := range branches(word) {
		v := j.r.verdict[b.record]
		if v != 0 && j.w.holds(verdictOnce) {
			bad = j.hear(b, v)
			continue
		}
		switch v = j.answer(b); {
		case v == 0:
			asks.kinds |= forSignal
			asks.names |= b.names
			asks.all = b.all
			j.p.missing |= b.names &^ j.there()
			if b.limited {
				asks.kinds |= forTime
			}
		case j.w.holds(verdictOnce):
			j.p.phase, j.p.val = phVerdict, b.record<<4|v
			return asks, "", true
		default:
			bad = j.hear(b, v)
		}
	}
	return asks, bad, false
}

// there are the inboxes that have something.
func (j job) there() (names uint8) {
	for k := range inboxes {
		if j.r.inbox[k] != 0 {
			names |= 1 << k
		}
	}
	return names
}

// answer is what a branch finds: 0 is nothing.
func (j job) answer(b branch) uint8 {
	if b.record == 1 && !j.w.holds(inboxOfWait) && bits.OnesCount8(j.r.inbox[0]) > 1 {
		return 1 // one that the wait before did not take
	}
	v := j.there() & b.names
	switch {
	case b.all && v == b.names, !b.all && v != 0:
		if !b.all {
			v &= -v
		}
		return v
	case b.limited && j.r.late:
		return timeOver
	}
	return 0
}

func (j job) hear(b branch, v uint8) string {
	if v&3&^b.names != 0 {
		return "an answer to one wait is given to another"
	}
	if !j.r.status.active() || j.p.life != j.r.life {
		return ""
	}
	told := &j.r.told[b.record]
	if *told != 0 && *told != v {
		return "two attempts are told two outcomes of one wait"
	}
	*told = v
	for record, other := range j.r.told {
		if record != int(b.record) && other&v&3 != 0 {
			return "one signal answers two waits"
		}
	}
	return ""
}

func (j job) putVerdict() string {
	if at := &j.r.verdict[j.p.val>>4]; *at == 0 && j.r.life == j.p.life && j.r.status.active() {
		*at = j.p.val & 15
	}
	j.p.phase = phWork // which reads it again
	return ""
}

// step is the key that a worker of this life looks under.
func (j job) key() uint8 {
	if j.w.holds(stepOfLife) {
		return j.p.life
	}
	return 0
}

func (j job) step() string {
	if at := j.key(); j.r.kept[at] != 0 {
		j.p.at++
		return j.given(j.r.kept[at], j.r.keptOf[at])
	}
	j.p.phase, j.p.val = phPut, 1+j.p.parity
	return ""
}

func (j job) putStep() string {
	at := j.key()
	j.p.phase = phWork
	j.p.at++
	switch {
	case j.r.kept[at] == 0 || !j.w.holds(stepFirst):
		j.r.kept[at], j.r.keptOf[at] = j.p.val, j.p.life
	case j.w.holds(adoptWinner):
		return j.given(j.r.kept[at], j.r.keptOf[at])
	}
	return j.given(j.p.val, j.p.life)
}

// given is what a handler gets of a step: a value, and the life that recorded it.
func (j job) given(v, of uint8) string {
	switch {
	case of != j.p.life:
		return "a handler is given a step of an earlier run of this id"
	case !j.r.status.active() || j.p.life != j.r.life: // nothing comes of it
		return ""
	case j.r.seen != 0 && j.r.seen != v:
		return "two attempts are given two values of one step"
	}
	j.r.seen = v
	return ""
}

// children makes the children that are not there; answered: all are.
func (j job) children(asks *wait) (answered bool, bad string) {
	i, n := j.p.run, j.w.children(j.p.run)
	if !j.r.hasCall {
		j.p.phase = phCall
		return false, ""
	}
	for c := range uint8(maxRuns) {
		if j.w.parent[c] != i+1 {
			continue
		}
		switch st := j.t.runs[c].status; {
		case j.r.ended >= n && st == pruned && j.r.owner == j.k+1:
			return true, "the output of a child was pruned before its parent read it"
		case j.r.ended < n && st == pruned:
			return false, "a child is made a second time"
		case j.r.ended < n && st == absent:
			j.t.runs[c] = run{status: queued}
			return false, ""
		}
	}
	if j.r.ended < n {
		asks.kinds |= forChildren
	}
	return true, ""
}

// listen looks at run 0; false: it registers first.
func (j job) listen(asks *wait) bool {
	x := &j.t.runs[0]
	switch {
	case j.r.have > 0, x.status.ended() && j.w.holds(listenEnded):
	case !j.r.listens:
		j.p.phase = phListen
		return false
	default:
		asks.kinds |= forEnds
	}
	return true
}

func (j job) register() string {
	x := &j.t.runs[0]
	j.p.phase = phWork
	if x.status.active() || !j.w.holds(listenEnded) {
		x.listened, j.r.listens = true, true
	}
	return ""
}

// fenced reports that an owner's write goes through; what it read of the sequence it reads again.
func (j job) fenced() bool {
	switch {
	case !j.r.status.active(), j.r.owner != j.k+1 && j.w.holds(leaseToken):
		*j.p = process{}
		return false
	case !j.p.current:
		j.p.current = true
		return false
	}
	return true
}

func (j job) putCall() string {
	if j.w.holds(callFenced) {
		if !j.fenced() {
			return ""
		}
		j.r.knowsIt = true
	}
	j.r.hasCall, j.p.phase = true, phWork
	return ""
}

func (j job) suspend() string {
	if !j.fenced() {
		return ""
	}
	w, r, p := j.w, j.r, j.p
	switch {
	case r.status == cancelling:
		w.end(j.t, p.run, cancelled)
	case p.asks.kinds&forSignal != 0 && r.counted != p.counted && w.holds(lookCounter),
		p.asks.kinds&forChildren != 0 && r.ended != p.ended && w.holds(callCheck),
		p.asks.kinds&forEnds != 0 && r.have != p.have && w.holds(endsCheck):
		p.phase = phWork
		return ""
	default:
		w.suspend(j.t, p.run, p.asks)
		if p.asks.all && w.holds(namesLowered) {
			r.stored.names = p.missing
		}
	}
	*p = process{}
	return ""
}

func (j job) outcome() string {
	if !j.fenced() {
		return ""
	}
	w, r, p := j.w, j.r, j.p
	if r.listened != p.listened && w.holds(listenCondition) {
		p.listened = r.listened
		return ""
	}
	bad := ""
	if r.owner != j.k+1 {
		bad = "an outcome was committed by another than the owner"
	}
	how := status(p.val)
	if how == retrying && r.status == cancelling {
		how = cancelled
	}
	if how == retrying {
		w.commit(j.t, p.run)
		r.status, r.owner, r.over, r.slot = retrying, 0, false, false
		r.fails++
	} else {
		listened := r.listened
		r.listened = p.listened
		w.end(j.t, p.run, how)
		r.listened = listened
	}
	*p = process{}
	return bad
}
