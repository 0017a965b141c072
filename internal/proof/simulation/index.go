package main

import "time"

// dueIndex is what the tick reads: the markers by kind, in the order of their instants over all shards.
type dueIndex struct {
	rows  map[marker]*heap[row, *row]
	asked uint64
}

type row struct {
	at     time.Duration
	order  uint64
	cohort *cohort
	marker marker
}

func (r *row) before(other *row) bool {
	return r.at < other.at || r.at == other.at && r.order < other.order
}

// stale reports that the run has another marker by now. DynamoDB has no such row any more: it costs nothing.
func (r *row) stale() bool { return r.cohort.marker != r.marker || r.cohort.at != r.at }

// move gives a cohort another marker, or none.
func (x *dueIndex) move(c *cohort, m *move) {
	c.marker, c.at = m.to, m.at
	if m.to == noMarker {
		return
	}
	x.asked++
	x.put(row{at: m.at, order: x.asked, cohort: c, marker: m.to})
}

func (x *dueIndex) put(r row) {
	list := x.rows[r.marker]
	if list == nil {
		list = &heap[row, *row]{}
		x.rows[r.marker] = list
	}
	list.push(r)
}

// next takes the first row of the kinds that is due, in due order. The stage that takes it puts it back unless it has
// moved.
func (x *dueIndex) next(now time.Duration, kinds []marker) (row, bool) {
	var best *heap[row, *row]
	for _, kind := range kinds {
		list := x.rows[kind]
		if list == nil {
			continue
		}
		for len(list.items) > 0 && list.items[0].stale() {
			list.pop()
		}
		if len(list.items) > 0 && list.items[0].at <= now && (best == nil || list.items[0].before(&best.items[0])) {
			best = list
		}
	}
	if best == nil {
		return row{}, false
	}
	return best.pop(), true
}
