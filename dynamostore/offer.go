package dynamostore

import (
	"context"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/runlane/runlane-go"
)

// Bounds of one search for the run that a freed slot goes to.
const (
	// offerPages is how many pages of waiting runs are read, and offerRows how many rows such a page has at most.
	offerPages = 3
	offerRows  = 256
	// offerReads is how many runs are read at once when the first one was stale.
	offerReads = 4
)

// How long a slot is worth trying that a scan found for a run, and one that a commit freed, by the clock of the commands.
const (
	offerTime millis = 5_000
	freedTime millis = 30_000
)

// slotOffer is a slot that a scan found for a run: the reservation or claim that follows need not read the partition again. It is a
// reading like any other, and the commit is conditional on it.
type slotOffer struct {
	partition slotPartition
	limit     int
	number    int
	before    *slotItem // a reservation that is over
	at        millis
}

// offers remember slots for a moment: found for a run, by the run's key, and freed by commits of this process, by partition.
type offers struct {
	now   func() time.Time
	moved *recent[string, millis] // rows of runs that wait for a slot there no more, and since when that is known

	mutex sync.Mutex
	found map[string]slotOffer
	freed map[slotPartition][]freedNumber
}

type freedNumber struct {
	number int
	at     millis
	asked  bool // a search has begun for it
}

// offersKept bounds each memory. What is forgotten costs a read.
const offersKept = 4096

func newOffers(now func() time.Time) *offers {
	return &offers{
		now:   now,
		moved: newRecent[string, millis](4096),
		found: map[string]slotOffer{},
		freed: map[slotPartition][]freedNumber{},
	}
}

func (o *offers) find(run string, offer slotOffer) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	if len(o.found) >= offersKept {
		clear(o.found)
	}
	o.found[run] = offer
}

// take returns the slot that was found for a run, once.
func (o *offers) take(run string, p slotPartition, limit int, at millis) (slotOffer, bool) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	offer, ok := o.found[run]
	delete(o.found, run)
	return offer, ok && offer.partition == p && offer.limit == limit && max(at-offer.at, offer.at-at) <= offerTime
}

// settled follows a commit: what it gave up is free, what it took is not.
func (o *offers) settled(p slotPartition, c *slotChange, at millis) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	kept := o.freed[p][:0]
	for _, f := range o.freed[p] {
		if at-f.at <= freedTime && (c.put == nil || c.put.number() != f.number) {
			kept = append(kept, f)
		}
	}
	if c.delete != nil {
		kept = append(kept, freedNumber{number: c.delete.number(), at: at})
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

// next is the newest number that this process freed and that no search has begun for; −1: none.
func (o *offers) next(p slotPartition, at millis) int {
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

// again lets another search begin for a number whose run was lost to someone else.
func (o *offers) again(p slotPartition, number int) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	for i := range o.freed[p] {
		if o.freed[p][i].number == number {
			o.freed[p][i].asked = false
		}
	}
}

// declined is a run that is not to be reserved for: what was found for it is for another.
func (o *offers) declined(run string) {
	o.mutex.Lock()
	offer, ok := o.found[run]
	delete(o.found, run)
	o.mutex.Unlock()
	if ok {
		o.again(offer.partition, offer.number)
	}
}

// offer finds one run of a partition for one free slot. Many may be freed at the same moment, by any number of processes, and each of
// those who freed one searches: the number's rank among the free ones is the run's rank among those that wait, so that no two searches
// come to the same run. With a single free number that is the run that has waited longest. A large limit is divided into its windows first,
// and the runs by a hash of their ids.
//
// The index is read before the slots: a row whose run has got a slot since is dropped by what the slots say, and the ranks agree, however
// late the index is. Rows of runs that have ended since cost a read each, unless this process knows it; those are the first ones, so that the
// reads go further and further behind. Their number is bounded. What is not found is left to the next finisher and to the tick.
func (d *dispatch) offer(ctx context.Context, p slotPartition, limit int, shard int) error {
	search := &offerSearch{
		dispatch: d, partition: p, index: duePartition(d.q.Environment, slotless, shard), more: true,
		shares: windowsOf(limit),
	}
	if err := search.page(ctx, min(max(2*limit, 16), slotWindow)); err != nil || len(search.rows) == 0 && !search.more {
		return err
	}
	mine := d.store.offers.next(p, d.at)
	reading, err := d.store.readFree(ctx, &slotQuery{partition: p, limit: limit, at: d.at, near: mine, windows: 1})
	if err != nil || len(reading.free) == 0 {
		return err
	}
	search.position, search.stride, search.free = slices.Index(reading.free, mine), len(reading.free), len(reading.free)
	if search.position < 0 { // freed by another process, or lost to someone else
		search.position = rand.IntN(search.free) //nolint:gosec // avoiding conflicts needs no secrecy
	}
	offer := slotOffer{partition: p, limit: limit, number: reading.free[search.position], at: d.at}
	search.share = offer.number / windowWidth(limit)
	found, err := search.find(ctx, reading)
	if err != nil || found == nil {
		return err
	}
	if old, there := reading.replaced[offer.number]; there {
		offer.before = &old
	}
	d.store.offers.find(found.run.PK, offer)
	d.refs = append(d.refs, found.ref())
	return nil
}

// offerSearch is the search for the run of one free number.
type offerSearch struct {
	*dispatch

	partition        slotPartition
	index            string   // where its runs wait
	rows             []dueRow // that were read and not judged yet
	after            item
	more             bool // behind those
	pages            int
	position, stride int // of the next candidate to read, and how far behind it the one after that is
	share, shares    int // of the runs, by a hash
	free             int // numbers that were read
}

// page reads the next rows of runs that may wait, as far as this process knows.
func (o *offerSearch) page(ctx context.Context, size int) error {
	rows, next, err := o.store.waitingRows(ctx, o.index, o.partition, o.after, size)
	for _, row := range rows {
		if !o.store.offers.movedOn(row) {
			o.rows = append(o.rows, row)
		}
	}
	o.after, o.more, o.pages = next, next != nil, o.pages+1
	return err
}

// find reads on until there is a run that waits.
func (o *offerSearch) find(ctx context.Context, reading *slotReading) (*found, error) {
	holders := map[runlane.RunID]bool{}
	for i := range reading.taken {
		if reading.taken[i].occupied(o.at) {
			holders[reading.taken[i].Run] = true
		}
	}
	if o.more && len(o.rows) < 2*o.stride*o.shares { // many search at once
		if err := o.page(ctx, offerRows); err != nil {
			return nil, err
		}
	}
	for {
		found, err := o.among(ctx, o.candidates(holders))
		if found != nil || err != nil || !o.more || o.pages >= offerPages {
			return found, err
		}
		o.rows = nil
		if err := o.page(ctx, offerRows); err != nil {
			return nil, err
		}
	}
}

// candidates are the rows of this search's share, or those of others where it has none, without runs that hold a slot.
func (o *offerSearch) candidates(holders map[runlane.RunID]bool) (own []dueRow) {
	var others []dueRow
	for _, row := range o.rows {
		hash := fnv.New32a()
		_, _ = hash.Write([]byte(row.run))
		switch {
		case holders[row.run]:
		case int(hash.Sum32())%o.shares == o.share:
			own = append(own, row)
		default:
			others = append(others, row)
		}
	}
	if len(own) == 0 {
		return others
	}
	return own
}

// among reads candidates: one, then some at once, each twice as far behind as the one before. On the last page it goes on with those
// that it left out.
func (o *offerSearch) among(ctx context.Context, rows []dueRow) (*found, error) {
	if len(rows) == 0 {
		return nil, nil
	}
	length := len(rows)
	if o.position >= length && o.free > 1 {
		o.position %= length
	}
	for batch := 1; len(rows) > 0 && batch <= offerReads; batch += offerReads - 1 {
		var chosen []dueRow
		for len(chosen) < batch && len(rows) > 0 && (o.position < len(rows) || !o.more) {
			at := o.position
			if at >= len(rows) {
				at = o.beyond(len(rows))
			}
			chosen, rows = append(chosen, rows[at]), slices.Delete(rows, at, at+1)
			o.position, o.stride = o.position+o.stride-1, 2*o.stride
		}
		found, err := o.waits(ctx, chosen)
		if found != nil || err != nil {
			return found, err
		}
	}
	o.position = max(o.position-length, 0) // in the next page
	return nil, nil
}

// beyond is a candidate for a search that has come to the end: where it is alone the last one, because those that moved on are the first
// ones; else any, so as not to meet the others there.
func (o *offerSearch) beyond(rows int) int {
	if o.free == 1 {
		return rows - 1
	}
	return rand.IntN(rows) //nolint:gosec // avoiding conflicts needs no secrecy
}

// waits is the first of some candidates whose run waits for a slot.
func (o *offerSearch) waits(ctx context.Context, chosen []dueRow) (*found, error) {
	if len(chosen) == 0 {
		return nil, nil
	}
	seen, err := o.store.readRows(ctx, o.q.Environment, chosen)
	if err != nil {
		return nil, err
	}
	for i := range seen {
		if seen[i].run == nil {
			o.store.offers.remember(chosen[i])
			continue
		}
		err := o.store.judge(ctx, o.q, seen[i:i+1], o.at)
		if err != nil || seen[i].run != nil && o.accepts(&seen[i]) {
			return &seen[i], err
		}
	}
	return nil, nil
}

// movedTime is how long a row counts as stale by memory. Indexes are seldom late for a second, and a run may come back to the same place
// when the limit of its queue comes and goes.
const movedTime = 30 * time.Second

// memory is what a store remembers a row by.
func (r dueRow) memory() string { return string(r.run) + " " + r.key.partition + " " + r.key.sort }

// remember takes a row for stale from here on.
func (o *offers) remember(row dueRow) { o.moved.put(row.memory(), toMillis(o.now())) }

// movedOn reports a row whose run is known not to wait there any more.
func (o *offers) movedOn(row dueRow) bool {
	since, known := o.moved.get(row.memory())
	return known && toMillis(o.now())-since <= millis(movedTime/time.Millisecond)
}

// waitingRows are the next rows of a partition, and where they end; nil: at the last one.
func (s *Store) waitingRows(ctx context.Context, dp string, p slotPartition, after item, limit int) (rows []dueRow, next item, err error) {
	q := &Query{
		Operation: "scan slots", Index: indexDue, Where: "#dp = :dp AND #da BETWEEN :from AND :until",
		Values: item{":dp": text(dp), ":from": text(p.start()), ":until": text(p.end())}, Limit: limit, Behind: after,
	}
	count := 0
	err = s.db.Query(ctx, q, func(it item) (bool, error) {
		if row, ok := parseDueRow(it); ok {
			rows = append(rows, row)
		}
		if count++; count == limit {
			next = item{attrPK: it[attrPK], attrSK: text(skRun), attrDueP: it[attrDueP], attrDueA: it[attrDueA]}
		}
		return count < limit, nil
	})
	return rows, next, err
}

// follow follows a commit: a run that waited for a slot does not wait there any more, and slots have changed hands.
func (o *offers) follow(c *change, w *built) {
	if c.before != nil && c.before.marker().kind == slotless && c.before.due() != w.run.due() {
		o.remember(dueRow{run: c.before.key().RunID, key: c.before.due()})
	}
	if w.slot.put != nil || w.slot.delete != nil {
		o.settled(w.run.partition(), &w.slot, toMillis(c.Projected.UpdatedAt))
	}
}
