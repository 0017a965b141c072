package main

// Check holds in every state. It returns what is violated.
func (w *world) Check(s *state) string {
	unlimited, most := false, int8(0)
	for _, l := range w.limits[:s.deployed+1] {
		unlimited = unlimited || l == 0
		most = max(most, l)
	}
	if !unlimited && live(s) > most {
		return "running runs and live reservations exceed every limit there ever was"
	}
	for i := range w.runs {
		if bad := w.checkRun(s, int8(i), unlimited); bad != "" {
			return bad
		}
	}
	return ""
}

func (w *world) checkRun(s *state, r int8, unlimited bool) string {
	run := &s.runs[r]
	executing := run.status == running || run.status == cancelRequested
	switch {
	case run.status == absent:
		return ""
	case (run.status == terminal || executing) && run.row != noRow:
		return "a superseded outbox row can be claimed"
	case run.status == terminal && run.kind != noMarker:
		return "a finished run is still in due"
	case run.status == terminal:
		return ""
	case run.kind == noMarker:
		return "an active run is not in due"
	case run.abandoned > w.maxAbandoned:
		return "more abandoned attempts than the bound"
	case executing && run.slot != 0 && !unlimited && s.slots[run.slot-1].holder != r+1:
		return "a running run lost its slot"
	}
	owners := 0
	for _, p := range s.processes {
		if p.kind == worker && p.run == r && p.held {
			owners++
		}
	}
	if owners > 1 {
		return "two owners can commit"
	}
	return w.checkMarker(s, run)
}

// checkMarker is Invariants 2: a marker is never after the next instant at which its run needs inspection.
func (w *world) checkMarker(s *state, run *item) string {
	limit := w.limit(s)
	switch run.kind {
	case deadLetter:
		if run.row == dead && (run.status == queued || run.status == scheduled) {
			return ""
		}
		return "a run whose delivery was not given up is in x, where no scan reads"
	case slotless:
		if run.status == running || run.status == cancelRequested {
			return "a running run is in d, where a full partition is never read"
		}
		return ""
	}
	if run.at > 0 && run.at > nextLook(run, limit) {
		return "the marker is later than the next moment at which the run needs inspection"
	}
	return ""
}

// nextLook is the next instant at which a run needs inspection.
func nextLook(run *item, limit int8) int8 {
	const never = 100
	switch {
	case run.status == running || run.status == cancelRequested:
		return run.lease
	case run.row == dead:
		return never
	case run.row == published && run.kind == unpublished:
		// it was looked at while it was claimed: that claim's end is near
		return max(claimFor, run.runAt, min(run.rowAt, run.reserved))
	case run.status == waiting || run.status == scheduled && (run.row == noRow || run.row == published):
		return run.runAt
	case run.status == scheduled:
		return max(run.runAt, run.rowAt)
	case run.row == noRow:
		return 0
	case run.row != published:
		return run.rowAt
	case run.kind == parked: // also one that was parked when its queue had no limit
		return run.rowAt
	case limit != 0:
		return run.reserved
	default:
		return max(run.rowAt, run.reserved)
	}
}
