package dynamostore

import (
	"context"
	"hash/fnv"
	"math/rand/v2"
	"slices"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/dynamostore/internal/ddb"
	"github.com/runlane/runlane-go/dynamostore/internal/item"
	"github.com/runlane/runlane-go/dynamostore/internal/rows"
)

// Bounds of one search for the run that a freed slot goes to.
const (
	// offerPages is how many pages of waiting runs are read, and offerRows how many rows such a page has at most.
	offerPages = 3
	offerRows  = 256
	// offerReads is how many runs are read at once after the first one was stale.
	offerReads = 4
)

// offer finds one run of a partition for one free slot. Any number of processes may free slots at the same moment, and
// each of them searches. The number's rank among the free ones is the run's rank among the waiting ones, so that no two
// searches choose the same run. With a single free number that is the run that has waited longest. A large limit is
// divided into its windows first, and the runs by a hash of their ids.
//
// The index is read before the slots. So a row whose run got a slot meanwhile is dropped by the slots' content, and the
// ranks agree however late the index is. Rows of runs that have ended meanwhile cost one read each, unless this process
// knows about them. They come first, so each next read goes further behind. The number of reads is bounded. A run that
// is not found is left to the next finisher and to the tick.
func (d *dispatch) offer(ctx context.Context, p rows.Partition, limit int, shard int) error {
	search := &offerSearch{
		dispatch:  d,
		partition: p,
		index:     rows.DuePartition(d.q.Environment, rows.Slotless, shard),
		more:      true,
		shares:    rows.Windows(limit),
	}
	if err := search.page(
		ctx,
		min(max(2*limit, 16), rows.SlotWindow),
	); err != nil || len(search.rows) == 0 && !search.more {
		return err
	}
	mine := d.store.offers.next(p, d.at)
	reading, err := d.store.readFree(ctx, &rows.SlotQuery{Partition: p, Limit: limit, At: d.at, Near: mine, Windows: 1})
	if err != nil || len(reading.Free) == 0 {
		return err
	}
	search.position, search.stride, search.free = slices.Index(reading.Free, mine), len(reading.Free), len(reading.Free)
	if search.position < 0 { // freed by another process, or its run was taken by one
		search.position = rand.IntN(search.free) // avoiding conflicts needs no secrecy
	}
	offer := slotOffer{partition: p, limit: limit, number: reading.Free[search.position], at: d.at}
	search.share = offer.number / rows.WindowWidth(limit)
	found, err := search.find(ctx, reading)
	if err != nil || found == nil {
		return err
	}
	if old, there := reading.Replaced[offer.number]; there {
		offer.before = &old
	}
	d.store.offers.find(found.run.PK, offer)
	d.refs = append(d.refs, found.ref())
	return nil
}

// offerSearch is the search for the run of one free number.
type offerSearch struct {
	*dispatch

	partition        rows.Partition
	index            string        // where its runs wait
	rows             []rows.DueRow // that were read and not yet judged
	after            item.Item
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

// find reads until it finds a run that waits.
func (o *offerSearch) find(ctx context.Context, reading *rows.SlotReading) (*found, error) {
	holders := map[runlane.RunID]bool{}
	for i := range reading.Taken {
		if reading.Taken[i].Occupied(o.at) {
			holders[reading.Taken[i].Run] = true
		}
	}
	if o.more && len(o.rows) < 2*o.stride*o.shares { // many searches run at once
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

// candidates are the rows of this search's share, or those of other shares if its share is empty, without runs that
// hold a slot.
func (o *offerSearch) candidates(holders map[runlane.RunID]bool) (own []rows.DueRow) {
	var others []rows.DueRow
	for _, row := range o.rows {
		hash := fnv.New32a()
		_, _ = hash.Write([]byte(row.Run))
		switch {
		case holders[row.Run]:
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

// among reads candidates: one, then some at once, each twice as far behind as the one before. On the last page it
// continues with those that it left out.
func (o *offerSearch) among(ctx context.Context, entries []rows.DueRow) (*found, error) {
	if len(entries) == 0 {
		return nil, nil
	}
	length := len(entries)
	if o.position >= length && o.free > 1 {
		o.position %= length
	}
	for batch := 1; len(entries) > 0 && batch <= offerReads; batch += offerReads - 1 {
		var chosen []rows.DueRow
		for len(chosen) < batch && len(entries) > 0 && (o.position < len(entries) || !o.more) {
			at := o.position
			if at >= len(entries) {
				at = o.beyond(len(entries))
			}
			chosen, entries = append(chosen, entries[at]), slices.Delete(entries, at, at+1)
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

// beyond is a candidate for a search that has reached the end: the last one if the search is alone, because runs that
// moved on come first; else a random one, to avoid the choices of other searches.
func (o *offerSearch) beyond(rows int) int {
	if o.free == 1 {
		return rows - 1
	}
	return rand.IntN(rows) // avoiding conflicts needs no secrecy
}

// waits is the first of some candidates whose run waits for a slot.
func (o *offerSearch) waits(ctx context.Context, chosen []rows.DueRow) (*found, error) {
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
		err := o.store.classify(ctx, o.q, seen[i:i+1], o.at)
		if err != nil || seen[i].run != nil && o.accepts(&seen[i]) {
			return &seen[i], err
		}
	}
	return nil, nil
}

// waitingRows are the next rows of a partition, and the key where they end; nil: there are no more.
func (s *Store) waitingRows(
	ctx context.Context, dp string, p rows.Partition, after item.Item, limit int,
) (entries []rows.DueRow, next item.Item, err error) {
	q := &ddb.Query{
		Operation: "scan slots",
		Index:     rows.IndexDue,
		Where:     "#dp = :dp AND #da BETWEEN :from AND :until",
		Values:    item.Item{":dp": item.Text(dp), ":from": item.Text(p.Start()), ":until": item.Text(p.End())},
		Limit:     limit,
		Behind:    after,
	}
	count := 0
	err = s.db.Query(ctx, q, func(it item.Item) (bool, error) {
		if row, ok := rows.ParseDueRow(it); ok {
			entries = append(entries, row)
		}
		if count++; count == limit {
			next = item.Item{
				item.PK:       it[item.PK],
				item.SK:       item.Text(rows.RunSK),
				rows.AttrDueP: it[rows.AttrDueP],
				rows.AttrDueA: it[rows.AttrDueA],
			}
		}
		return count < limit, nil
	})
	return entries, next, err
}
