package dynamostore

import (
	"maps"
	"sync"
	"time"

	"github.com/runlane/runlane-go/dynamostore/internal/rows"
	"github.com/runlane/runlane-go/lane"
)

// How long a remembered slot is worth trying, by the clock of the commands: one that a scan found for a run, and one
// that a commit freed.
const (
	offerTime rows.Millis = 5_000
	freedTime rows.Millis = 30_000
)

// slotOffer is a slot that a scan found for a run: the reservation or claim that follows need not read the partition
// again. It is a reading like any other, and the commit is conditional on it.
type slotOffer struct {
	partition rows.Partition
	limit     int
	number    int
	before    *rows.SlotItem // a reservation that is over
	at        rows.Millis
}

// offers remember slots for a moment: those found for a run, by the run's key, and those freed by this process, by
// partition.
type offers struct {
	now   func() time.Time
	moved *recent[string, rows.Millis] // rows of runs that no longer wait for a slot there, and when that was learned

	mutex sync.Mutex
	byRun map[string]slotOffer
	freed map[rows.Partition][]freedNumber
}

type freedNumber struct {
	number int
	at     rows.Millis
	asked  bool // a search has begun for it
}

// offersKept bounds each memory. A forgotten entry costs a read.
const offersKept = 4096

func newOffers(now func() time.Time) *offers {
	return &offers{
		now:   now,
		moved: newRecent[string, rows.Millis](4096),
		byRun: map[string]slotOffer{},
		freed: map[rows.Partition][]freedNumber{},
	}
}

func (o *offers) find(run string, offer slotOffer) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	if len(o.byRun) >= offersKept {
		clear(o.byRun)
	}
	o.byRun[run] = offer
}

// take returns the slot that was found for a run, once.
func (o *offers) take(run string, p rows.Partition, limit int, at rows.Millis) (slotOffer, bool) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	offer, ok := o.byRun[run]
	delete(o.byRun, run)
	return offer, ok && offer.partition == p && offer.limit == limit && max(at-offer.at, offer.at-at) <= offerTime
}

// settled records a commit: the slots that it gave up are free, those that it took are not.
func (o *offers) settled(p rows.Partition, c *rows.SlotChange, at rows.Millis) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	kept := o.freed[p][:0]
	for _, f := range o.freed[p] {
		if at-f.at <= freedTime && (c.Put == nil || c.Put.Number() != f.number) {
			kept = append(kept, f)
		}
	}
	if c.Delete != nil {
		kept = append(kept, freedNumber{number: c.Delete.Number(), at: at})
	}
	switch {
	case len(kept) == 0:
		delete(o.freed, p)
	case o.freed[p] == nil && len(o.freed) >= offersKept:
		clear(o.freed)
		fallthrough
	default:
		o.freed[p] = kept
	}
}

// next is the newest number that this process freed and for which no search has begun; −1: none.
func (o *offers) next(p rows.Partition, at rows.Millis) int {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	all := o.freed[p]
	for i := len(all) - 1; i >= 0; i-- {
		if !all[i].asked && at-all[i].at <= freedTime {
			all[i].asked = true
			return all[i].number
		}
	}
	return -1
}

// again lets another search begin for a number whose run another process took.
func (o *offers) again(p rows.Partition, number int) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	for i := range o.freed[p] {
		if o.freed[p][i].number == number {
			o.freed[p][i].asked = false
		}
	}
}

// declined records a run that gets no reservation: the slot found for it goes to another run.
func (o *offers) declined(run string) {
	o.mutex.Lock()
	offer, ok := o.byRun[run]
	delete(o.byRun, run)
	o.mutex.Unlock()
	if ok {
		o.again(offer.partition, offer.number)
	}
}

// movedTime is how long a row counts as stale by memory. Indexes seldom lag by a second, and a run may return to the
// same place when its queue gains and loses a limit.
const movedTime = 30 * time.Second

// remember treats a row as stale from now on.
func (o *offers) remember(row rows.DueRow) { o.moved.put(row.Memory(), rows.ToMillis(o.now())) }

// movedOn reports a row whose run is known to wait there no longer.
func (o *offers) movedOn(row rows.DueRow) bool {
	since, known := o.moved.get(row.Memory())
	return known && rows.ToMillis(o.now())-since <= rows.Millis(movedTime/time.Millisecond)
}

// remember records a commit: the run as it is now, and what the commit did to slots.
func (s *Store) remember(c *rows.Change, w *rows.Built) {
	s.snapshots.put(w.Run.PK, w.Run)
	s.offers.follow(c, w)
}

// remembered is the run that the transition expects, from a recent read or commit; nil: it is not known.
func (s *Store) remembered(t *lane.Transition) *rows.Run {
	if known, ok := s.snapshots.get(rows.RunPK(t.Key())); ok && known.ExpectedBy(t) {
		return known
	}
	return nil
}

// follow records a commit: a run that waited for a slot no longer does, and slots have changed hands.
func (o *offers) follow(c *rows.Change, w *rows.Built) {
	if c.Before != nil && c.Before.Marker().Kind == rows.Slotless && c.Before.Due() != w.Run.Due() {
		o.remember(rows.DueRow{Run: c.Before.Key().RunID, Key: c.Before.Due()})
	}
	if w.Slot.Put != nil || w.Slot.Delete != nil {
		o.settled(w.Run.Partition(), &w.Slot, rows.ToMillis(c.Projected.UpdatedAt))
	}
}

// cachedShards are numbers of shards, and when they were read.
type cachedShards struct {
	rows.Shards
	at time.Time
}

// recent keeps the newest entries of a map, bounded; the entry replaced is the oldest one written.
type recent[K comparable, V any] struct {
	mutex sync.Mutex
	byKey map[K]V
	ring  []K
	next  int
}

func newRecent[K comparable, V any](limit int) *recent[K, V] {
	return &recent[K, V]{byKey: make(map[K]V, limit), ring: make([]K, 0, limit)}
}

func (r *recent[K, V]) get(key K) (V, bool) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	v, ok := r.byKey[key]
	return v, ok
}

func (r *recent[K, V]) put(key K, v V) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if _, known := r.byKey[key]; !known {
		if len(r.ring) < cap(r.ring) {
			r.ring = append(r.ring, key)
		} else {
			delete(r.byKey, r.ring[r.next])
			r.ring[r.next] = key
			r.next = (r.next + 1) % len(r.ring)
		}
	}
	r.byKey[key] = v
}

func (r *recent[K, V]) become(other *recent[K, V]) {
	clear(r.byKey)
	maps.Copy(r.byKey, other.byKey)
	r.ring, r.next = append(r.ring[:0], other.ring...), other.next
}
