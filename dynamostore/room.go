package dynamostore

import (
	"context"
	"math/rand/v2"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/dynamostore/internal/rows"
	"github.com/runlane/runlane-go/lane"
)

type dispatch struct {
	store *Store
	q     *lane.DueQuery
	at    rows.Millis
	rooms map[rows.Partition]*room // of this scan
	limit int
	jumps int
	refs  []lane.RunRef

	polling bool // for workers: runs that can be claimed now, also of queues without a limit
}

func newDispatch(s *Store, q *lane.DueQuery, limit int) *dispatch {
	return &dispatch{store: s, q: q, at: rows.ToMillis(q.At), rooms: map[rows.Partition]*room{}, limit: limit}
}

func (d *dispatch) wants(queue runlane.QueueName) bool {
	return d.q.Wants(queue) && (d.polling || isBounded(d.q.Bounded, queue))
}

// accepts reports whether a run waits for a slot, or waited for one when its queue had a limit.
func (d *dispatch) accepts(f *found) bool {
	if !d.polling {
		return f.finding.Stage == rows.Dispatching
	}
	var ok bool
	f.finding.Since, ok = f.run.RunnableAt()
	return ok && f.finding.Since <= d.at
}

// take adds a run that needs a slot if one is free. A running run is always added: it holds a slot, or it must become
// waiting, or it would stay where full partitions are never read.
func (d *dispatch) take(ctx context.Context, f found) (taken bool, err error) {
	if f.run.State() != runlane.StatusRunning {
		p := f.run.Partition()
		room, err := d.room(ctx, p)
		if err != nil || room.left == 0 {
			return false, err
		}
		d.give(f.run, p, room)
	}
	d.refs = append(d.refs, f.ref())
	return true, nil
}

type room struct {
	left    int
	limit   int
	numbers []int // free ones, shuffled: other scans see the same numbers
	over    map[int]rows.SlotItem
}

// room returns the free slots of a partition, without those given out by this scan.
func (d *dispatch) room(ctx context.Context, p rows.Partition) (*room, error) {
	if known := d.rooms[p]; known != nil {
		return known, nil
	}
	if !isBounded(d.q.Bounded, p.Queue) {
		return &room{left: d.limit}, nil
	}
	d.jumps++
	queue := d.policy(p.Queue)
	r := &room{limit: queue.Concurrency, left: d.limit}
	if queue.Rated() {
		left, err := d.paceRoom(ctx, p, queue)
		if err != nil {
			return nil, err
		}
		r.left = left
	}
	if r.left > 0 && r.limit > 0 {
		taken, err := d.store.slots(ctx, p)
		if err != nil {
			return nil, err
		}
		r.numbers, r.over = rows.FreeNumbers(taken, r.limit, d.at)
		rand.Shuffle(len(r.numbers), func(i, j int) { r.numbers[i], r.numbers[j] = r.numbers[j], r.numbers[i] })
		if r.left = min(r.left, len(r.numbers)); !queue.Rated() {
			r.left = len(r.numbers)
		}
	}
	d.rooms[p] = r
	return r, nil
}

// policy is the query's policy of a queue.
func (d *dispatch) policy(name runlane.QueueName) (queue runlane.Queue) {
	for _, q := range d.q.Bounded {
		if q.Name == name {
			queue = q
		}
	}
	return queue
}

// give takes one of the free slots for a run and offers it to the reservation or claim that follows.
func (d *dispatch) give(r *rows.Run, p rows.Partition, from *room) {
	from.left--
	if from.left >= len(from.numbers) {
		return
	}
	offer := slotOffer{partition: p, limit: from.limit, number: from.numbers[from.left], at: d.at}
	if old, there := from.over[offer.number]; there {
		offer.before = &old
	}
	d.store.offers.add(r.PK, offer)
}
