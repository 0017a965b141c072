package main

// Stages of maintenance, as dynamostore/internal/rows/classify.go names them.
const (
	noStage int8 = iota
	finalizing
	delivering
	publishing
	redelivering
	dispatching
	stageCount
	blind // a removed rule: the inspection does nothing
)

// sight is what an inspection finds: a stage with something to do, or the marker of the moment at which there will be.
type sight struct {
	stage    int8
	outbox   bool // the row is to be published
	kind, at int8 // where there is no stage
}

func dueOr(stage, at, skew, kind int8) sight {
	if at <= skew {
		return sight{stage: stage}
	}
	return sight{kind: kind, at: at}
}

// look is the inspection of dynamostore (rows.Classify): cancellation, lease, waiting time, reservation, outbox row.
func (w *world) look(run *item, skew int8, bounded bool) sight {
	recovering := delivering
	if bounded {
		recovering = dispatching
	}
	switch run.status {
	case cancelRequested:
		return dueOr(finalizing, run.lease, skew, leased)
	case running:
		return dueOr(recovering, run.lease, skew, leased)
	case waiting:
		return dueOr(recovering, run.runAt, skew, timed)
	case scheduled:
		if bounded || run.row == noRow || run.row == published {
			return dueOr(recovering, run.runAt, skew, timed)
		}
		seen := w.lookAtRow(run, skew)
		switch {
		case seen.stage == publishing:
			seen.stage = delivering
		case seen.stage == noStage && seen.kind == unpublished && seen.at == run.runAt:
			seen.kind = timed
		}
		return seen
	case queued:
		return w.lookAtQueued(run, skew, bounded)
	default:
		return sight{stage: blind}
	}
}

func (w *world) lookAtQueued(run *item, skew int8, bounded bool) sight {
	reserved := run.reserved > skew
	if !reserved && (bounded || run.slot != 0 || run.row == noRow) {
		if bounded {
			return sight{stage: dispatching}
		}
		if w.holds(unlimitedRedelivers) {
			return sight{stage: redelivering} // its queue has no limit any more
		}
	}
	if reserved && !w.holds(rowFirst) {
		return sight{kind: leased, at: run.reserved}
	}
	seen := w.lookAtRow(run, skew)
	if reserved && (seen.stage == noStage && seen.at > run.reserved || seen.stage == redelivering || run.row == noRow) {
		return sight{kind: leased, at: run.reserved}
	}
	return seen
}

func (w *world) lookAtRow(run *item, skew int8) sight {
	switch run.row {
	case noRow:
		if !w.holds(unlimitedRedelivers) {
			return sight{stage: blind}
		}
		return sight{stage: redelivering}
	case dead:
		if !w.holds(deadLookMoves) {
			return sight{stage: blind}
		}
		return sight{kind: deadLetter}
	case published:
		return dueOr(redelivering, run.rowAt, skew, parked)
	default:
		if run.row == claimed && run.rowAt > skew && !w.holds(liveClaimMoves) {
			return sight{stage: blind}
		}
		seen := dueOr(publishing, run.rowAt, skew, unpublished)
		seen.outbox = seen.stage == publishing
		return seen
	}
}

// scanKinds are the kinds that each stage reads; of dispatching those with a time, the partitions in d come on top.
var scanKinds = [stageCount][]int8{
	finalizing:   {deliverable, timed, leased},
	delivering:   {deliverable, timed, leased, slotless},
	publishing:   {unpublished, deliverable, timed},
	redelivering: {parked, deliverable, leased, slotless},
	dispatching:  {deliverable, timed, leased, unpublished, parked, slotless},
}

func reads(stage, kind int8) bool {
	for _, k := range scanKinds[stage] {
		if k == kind {
			return true
		}
	}
	return false
}

// scanned reports a stage that reads markers of the run's kind, in a queue with or without a limit.
func scanned(run *item, stage, limit int8) bool {
	switch stage {
	case delivering, redelivering:
		return limit == 0 && reads(stage, run.kind)
	case dispatching:
		return limit != 0 && reads(stage, run.kind)
	default:
		return reads(stage, run.kind)
	}
}

// due reports that the stage reads the run's marker now.
func (w *world) due(run *item, stage, limit int8) bool {
	if !scanned(run, stage, limit) {
		return false
	}
	switch {
	case run.kind == slotless:
		return true
	case run.kind == deliverable, run.kind == timed && w.native && stage != publishing:
		return run.at <= -patience
	default:
		return run.at <= 0
	}
}

// scan is what a stage of the tick does about a run: none means nothing.
func (w *world) scan(s *state, r, stage, skew int8, out []process) []process {
	run, limit := &s.runs[r], w.limit(s)
	base := process{kind: tick, run: r, limit: limit, sequence: true, marker: true, slots: true, held: true}
	add := func(op, at int8) []process {
		base.op, base.at = op, at
		return append(out, base)
	}
	seen := w.look(run, skew, limit != 0 && stage != publishing) // the outbox scan knows no limits
	switch {
	case seen.stage == noStage && (run.kind != slotless || stage != dispatching):
		return add(opMove+seen.kind, seen.at)
	case stage == publishing && seen.outbox:
		return add(opFlush, 0)
	case stage == publishing && run.kind == unpublished && w.holds(scanReadsKind) &&
		(seen.stage == delivering || seen.stage == redelivering):
		return add(opMove+adopting(seen.stage), 0)
	case seen.stage == publishing && run.kind == slotless && w.holds(scanReadsKind):
		return add(opMove+unpublished, run.rowAt)
	case seen.stage == redelivering && (stage == finalizing || stage == delivering) && run.kind == deliverable:
		return add(opMove+parked, 0)
	case seen.stage != stage:
		return out
	}
	switch stage {
	case finalizing:
		return add(opFinalize, 0)
	case delivering:
		switch {
		case seen.outbox:
			return add(opFlush, 0)
		case run.status == running && run.abandoned+1 >= w.maxAbandoned:
			return add(opFailAbandoned, 0)
		}
		return add(opRequest, 0)
	case redelivering:
		if run.row == published && run.reserved == 0 && run.slot == 0 && !w.holds(redeliverParked) {
			return out
		}
		return add(opRedeliver, 0)
	default:
		return w.dispatch(s, base, skew, out)
	}
}

// adopting is the kind to which a row in o moves that is due for a stage which does not read o.
func adopting(stage int8) int8 {
	if stage == delivering {
		return timed
	}
	return parked
}

// dispatch reserves a slot for a run, or lets it wait for one.
func (w *world) dispatch(s *state, base process, skew int8, out []process) []process {
	run := &s.runs[base.run]
	if run.status == running {
		if run.abandoned+1 >= w.maxAbandoned {
			base.op = opFailAbandoned
			return append(out, base)
		}
		if !w.holds(dispatchRunning) {
			return out
		}
	}
	var room [maxSlots]choice
	// a tick reads a partition whole, and says which numbers it gives out
	choices := w.chooseSlot(s, base.run, base.limit, skew, room[:0])
	for _, c := range choices {
		p := base
		p.op, p.at, p.slot, p.own = opReserve, w.reservationTime(run), c.slot, c.own
		out = append(out, p)
	}
	switch {
	case len(choices) > 0 && (run.status == running || w.othersWant(s, base.run, skew) < len(choices)):
		// else the scan may have given them out
	case run.status == running && w.holds(recoverToQueued):
		base.op = opRecover
		out = append(out, base)
	case run.status != running && run.kind != slotless:
		base.op = opMove + slotless
		out = append(out, base)
	}
	return out
}

// othersWant counts the other runs that a scan for slots may have given one to.
func (w *world) othersWant(s *state, r, skew int8) (n int) {
	for i := range int8(w.runs) {
		o := &s.runs[i]
		if i != r &&
			(o.status == queued && o.reserved <= skew ||
				(o.status == waiting || o.status == scheduled) && o.runAt <= skew) {
			n++
		}
	}
	return n
}
