package waits

// noOwner is of a run whose worker died.
const noOwner = 9

// Canon clears what no longer matters and sorts the processes, which are interchangeable.
func (w *world) Canon(s *state) {
	for i := range s.runs {
		r := &s.runs[i]
		if o := r.owner; o > 0 && o != noOwner {
			if p := &s.procs[o-1]; p.kind != worker || int(p.run) != i || p.phase == phClaim {
				r.owner = noOwner
			}
		}
		if r.status.ended() {
			w.forget(r)
		}
	}
	for a := 1; a < w.procs; a++ {
		for b := a; b > 0 && s.procs[b].key().above(s.procs[b-1].key()); b-- {
			s.procs[b], s.procs[b-1] = s.procs[b-1], s.procs[b]
			for i := range s.runs {
				switch int(s.runs[i].owner) {
				case b:
					s.runs[i].owner = uint8(b + 1) // at most maxProcs
				case b + 1:
					s.runs[i].owner = uint8(b) // at most maxProcs
				}
			}
		}
	}
}

// forget clears what is not asked of a run that has ended.
func (w *world) forget(r *run) {
	keep := *r
	*r = run{
		status:   keep.status,
		kept:     keep.kept,
		keptOf:   keep.keptOf,
		life:     keep.life,
		inbox:    keep.inbox,
		hasCall:  keep.hasCall,
		knowsIt:  keep.knowsIt,
		ended:    keep.ended,
		listened: keep.listened,
		untold:   keep.untold,
		begun:    keep.begun,
		attempt:  keep.attempt,
	}
}

func (p *process) key() (k key) {
	for _, v := range [...]uint8{
		uint8(p.kind), uint8(p.phase), p.run, p.at, p.n, p.counted, p.ended, p.have, p.life, p.parity, p.closed,
	} {
		k[0] = k[0]<<4 | uint64(v)
	}
	for _, v := range [...]uint8{p.val, p.asks.kinds, p.asks.names<<4 | p.missing, p.last, p.wakes} {
		k[1] = k[1]<<8 | uint64(v)
	}
	for _, on := range [...]bool{
		p.asks.all, p.current, p.peers, p.counts, p.stopped, p.satisfied, p.listened, p.over, p.head,
	} {
		k[1] <<= 1
		if on {
			k[1]++
		}
	}
	return k
}

type key [2]uint64

func (k key) above(other key) bool {
	if k[0] != other[0] {
		return k[0] > other[0]
	}
	return k[1] > other[1]
}
