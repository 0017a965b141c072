package dynamostore

import (
	"context"
	"math/rand/v2"
)

// room is what is free of a partition, for one scan.
type room struct {
	left    int
	limit   int
	numbers []int // to be given out, in any order: other scans see the same ones
	over    map[int]slotItem
}

// room is how many more runs of a partition may be returned: its free slots, less those given out by this scan.
func (d *dispatch) room(ctx context.Context, p slotPartition) (*room, error) {
	if known := d.rooms[p]; known != nil {
		return known, nil
	}
	if !isBounded(d.q.Bounded, p.queue) {
		return &room{left: d.limit}, nil
	}
	d.jumps++
	taken, err := d.store.slots(ctx, p)
	if err != nil {
		return nil, err
	}
	r := &room{}
	for _, queue := range d.q.Bounded {
		if queue.Name == p.queue {
			r.limit = queue.Concurrency
		}
	}
	r.numbers, r.over = free(taken, r.limit, d.at)
	rand.Shuffle(len(r.numbers), func(i, j int) { r.numbers[i], r.numbers[j] = r.numbers[j], r.numbers[i] })
	r.left = len(r.numbers)
	d.rooms[p] = r
	return r, nil
}

// give keeps one of the free slots for a run, and offers it for the reservation or claim that is to follow.
func (d *dispatch) give(r *runItem, p slotPartition, from *room) {
	from.left--
	if from.left >= len(from.numbers) {
		return
	}
	offer := slotOffer{partition: p, limit: from.limit, number: from.numbers[from.left], at: d.at}
	if old, there := from.over[offer.number]; there {
		offer.before = &old
	}
	d.store.offers.find(r.PK, offer)
}
