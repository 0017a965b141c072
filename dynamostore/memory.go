package dynamostore

import (
	"sync"
	"time"

	"github.com/runlane/runlane-go/dynamostore/internal/rows"
	"github.com/runlane/runlane-go/lane"
)

// How long a slot is remembered, by the clock of the commands: found by a scan, and freed by a commit.
const (
	offerTime rows.Millis = 5_000
	freedTime rows.Millis = 30_000
)

// slotOffer is a slot that a scan found for a run, so that the reservation or claim need not read the partition. The
// commit is conditional on it.
type slotOffer struct {
	partition rows.Partition
	limit     int
	number    int
	before    *rows.SlotItem // an expired reservation
	at        rows.Millis
}

// offers remembers slots found for runs, by the run's partition key, and slots freed by this process, by partition.
type offers struct {
	now   func() time.Time
	stale *recent[string, rows.Millis] // stale rows of waiting runs, and when each was found stale

	mutex sync.Mutex
	byRun map[string]slotOffer
	freed map[rows.Partition][]freedNumber
}

type freedNumber struct {
	number int
	at     rows.Millis
	asked  bool // a search for it has begun
}

// offersKept limits each map. A forgotten entry costs a read.
const offersKept = 4096

func newOffers(now func() time.Time) *offers {
	return &offers{
		now:   now,
		stale: newRecent[string, rows.Millis](4096),
		byRun: map[string]slotOffer{},
		freed: map[rows.Partition][]freedNumber{},
	}
}

func (o *offers) add(run string, offer slotOffer) {
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

// recordSlots records a commit: slots that it gave up are free, slots that it took are not.
func (o *offers) recordSlots(p rows.Partition, c *rows.SlotChange, at rows.Millis) {
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

// next is the newest number freed by this process without a search, or −1.
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

// reopen allows another search for a number after another process took the run.
func (o *offers) reopen(p rows.Partition, number int) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	for i := range o.freed[p] {
		if o.freed[p][i].number == number {
			o.freed[p][i].asked = false
		}
	}
}

// decline offers the slot of a run without a reservation to another run.
func (o *offers) decline(run string) {
	o.mutex.Lock()
	offer, ok := o.byRun[run]
	delete(o.byRun, run)
	o.mutex.Unlock()
	if ok {
		o.reopen(offer.partition, offer.number)
	}
}

// staleTime is how long a row is remembered as stale. Indexes seldom lag by a second, and a run may return to the same
// place when its queue's limit changes.
const staleTime = 30 * time.Second

func (o *offers) markStale(row rows.DueRow) { o.stale.put(row.Memory(), rows.ToMillis(o.now())) }

func (o *offers) isStale(row rows.DueRow) bool {
	since, known := o.stale.get(row.Memory())
	return known && rows.ToMillis(o.now())-since <= rows.Millis(staleTime/time.Millisecond)
}

func (s *Store) remember(c *rows.Change, w *rows.Built) {
	s.snapshots.put(w.Run.PK, w.Run)
	s.spans.wrote(w.Run.Due())
	s.offers.recordCommit(c, w)
}

// knownRun is the run that the transition expects, from a recent read or commit, or nil.
func (s *Store) knownRun(t *lane.Transition) *rows.Run {
	if known, ok := s.snapshots.get(rows.RunPK(t.Key())); ok && known.ExpectedBy(t) {
		return known
	}
	return nil
}

// recordCommit records that a run stopped waiting for a slot, and slots that changed hands.
func (o *offers) recordCommit(c *rows.Change, w *rows.Built) {
	if c.Before != nil && c.Before.Marker().Kind == rows.Slotless && c.Before.Due() != w.Run.Due() {
		o.markStale(rows.DueRow{Run: c.Before.Key().RunID, Key: c.Before.Due()})
	}
	if w.Slot.Put != nil || w.Slot.Delete != nil {
		o.recordSlots(w.Run.Partition(), &w.Slot, rows.ToMillis(c.Projected.UpdatedAt))
	}
}

type cachedShards struct {
	rows.Shards
	at time.Time
}

// recent is a bounded map. It drops the entry that was added first.
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
