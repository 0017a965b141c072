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

// Limits of one search for the run that gets a freed slot.
const (
	// offerPages is how many pages of waiting runs are read, and offerRows the size of a page.
	offerPages = 3
	offerRows  = 256
	// offerReads is how many runs are read at once after a stale first one.
	offerReads = 4
)

// offer finds one run of a partition for one free slot. Many processes may search at the same moment. So that no two
// choose the same run, a search takes the run with the same rank among the waiting runs as its number has among the
// free ones. A single free number gets the longest waiting run. A large limit is divided into its windows first, and
// the runs by a hash of their IDs.
//
// It reads the index before the slots, which then show the runs that got a slot meanwhile: the ranks agree however late
// the index is. Rows of ended runs cost one read each, unless this process knows about them. They come first, so each
// next read skips further ahead. The number of reads is limited; the next finisher or the tick finds a missed run.
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
	if search.position < 0 { // freed or already used by another process
		search.position = rand.IntN(search.free) // no secrecy needed
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
	d.store.offers.add(found.run.PK, offer)
	d.refs = append(d.refs, found.ref())
	return nil
}

type offerSearch struct {
	*dispatch

	partition        rows.Partition
	index            string        // index partition of its waiting runs
	rows             []rows.DueRow // read and not yet checked
	after            item.Item
	more             bool // more rows follow
	pages            int
	position, stride int // next candidate to read, and the distance to the one after it
	share, shares    int // this search's share of the runs, by a hash
	free             int // count of free numbers that were read
}

// page reads the next rows, without those known as stale.
func (o *offerSearch) page(ctx context.Context, size int) error {
	due, next, err := o.store.waitingRows(ctx, o.index, o.partition, o.after, size)
	for _, row := range due {
		if !o.store.offers.isStale(row) {
			o.rows = append(o.rows, row)
		}
	}
	o.after, o.more, o.pages = next, next != nil, o.pages+1
	return err
}

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
		found, err := o.findAmong(ctx, o.candidates(holders))
		if found != nil || err != nil || !o.more || o.pages >= offerPages {
			return found, err
		}
		o.rows = nil
		if err := o.page(ctx, offerRows); err != nil {
			return nil, err
		}
	}
}

// candidates are the rows of this search's share, or of the others if it is empty, without runs that hold a slot.
func (o *offerSearch) candidates(holders map[runlane.RunID]bool) (own []rows.DueRow) {
	var others []rows.DueRow
	for _, row := range o.rows {
		hash := fnv.New32a()
		_, _ = hash.Write([]byte(row.Run))
		switch {
		case holders[row.Run]:
		case int(hash.Sum32()%uint32(o.shares)) == o.share:
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

// findAmong reads one candidate, then several at once, each twice as far ahead. On the last page it continues with
// those it skipped.
func (o *offerSearch) findAmong(ctx context.Context, entries []rows.DueRow) (*found, error) {
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
				at = o.chooseFarther(len(entries))
			}
			chosen, entries = append(chosen, entries[at]), slices.Delete(entries, at, at+1)
			o.position, o.stride = o.position+o.stride-1, 2*o.stride
		}
		found, err := o.firstWaiting(ctx, chosen)
		if found != nil || err != nil {
			return found, err
		}
	}
	o.position = max(o.position-length, 0) // in the next page
	return nil, nil
}

// chooseFarther is a candidate for a search at the end of the rows: the last one, because stale rows come first, or a
// random one if others search too.
func (o *offerSearch) chooseFarther(rows int) int {
	if o.free == 1 {
		return rows - 1
	}
	return rand.IntN(rows) // no secrecy needed
}

func (o *offerSearch) firstWaiting(ctx context.Context, chosen []rows.DueRow) (*found, error) {
	if len(chosen) == 0 {
		return nil, nil
	}
	seen, err := o.store.readRows(ctx, o.q.Environment, chosen)
	if err != nil {
		return nil, err
	}
	for i := range seen {
		if seen[i].run == nil {
			o.store.offers.markStale(chosen[i])
			continue
		}
		err := o.store.classify(ctx, o.q, seen[i:i+1], o.at)
		if err != nil || seen[i].run != nil && o.accepts(&seen[i]) {
			return &seen[i], err
		}
	}
	return nil, nil
}

// waitingRows are the next rows of a partition, and the key to continue after, or nil.
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
