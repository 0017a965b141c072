package dynamostore

import (
	"context"
	"math/rand/v2"
	"slices"

	"github.com/runlane/runlane-go/dynamostore/internal/ddb"
	"github.com/runlane/runlane-go/dynamostore/internal/item"
	"github.com/runlane/runlane-go/dynamostore/internal/rows"
)

// takeSlot plans to take a slot at an instant: the run's own while it is held, or else a free one, at random. A reservation of its own
// that is about to end is no reason to have the same slot again: it may be over when the commit happens, and the limit lower than its
// number. until 0 holds the slot. windows bounds what is read of a large limit. ok is false when there is none.
func (s *Store) takeSlot(ctx context.Context, r *rows.Run, limit int, at, until rows.Millis, windows int) (change rows.SlotChange, ok bool, err error) {
	p := r.Partition()
	mine := rows.Slot{PK: p.PK(), Run: r.Key().RunID, Until: until}
	if offer, ok := s.offers.take(r.PK, p, limit, at); ok && r.Slot == 0 {
		mine.SK = rows.SlotSK(offer.number)
		return rows.SlotChange{Put: &mine, Before: offer.before}, true, nil
	}
	reading, err := s.readFree(ctx, &rows.SlotQuery{Partition: p, Limit: limit, At: at, Run: r.Key().RunID, Near: r.Slot - 1, Windows: windows})
	if err != nil {
		return change, false, err
	}
	own := reading.Own
	if own != nil && own.Outlasts(at) {
		mine.SK = own.SK
		return rows.SlotChange{Put: &mine, Before: own}, true, nil
	}
	if len(reading.Free) == 0 {
		return change, false, nil
	}
	n := reading.Free[rand.IntN(len(reading.Free))] //nolint:gosec // avoiding conflicts needs no secrecy
	mine.SK = rows.SlotSK(n)
	change = rows.SlotChange{Put: &mine, Delete: own}
	if own != nil && own.SK == mine.SK {
		change.Before, change.Delete = own, nil
	} else if old, there := reading.Replaced[n]; there {
		change.Before = &old
	}
	return change, true, nil
}

// How many windows a reserver reads at most before it takes a partition of a large limit for full. A trigger reads for its creation and
// then once more for the run that it made without a slot.
const (
	creationWindows    = 2
	reservationWindows = 1
	claimWindows       = 3
)

// readFree reads a partition, strongly, as far as it takes to find numbers that a run may take.
//
// Where no number at or above the limit is occupied, none will be: all commits with this limit take lower ones. Then any unused number
// below the limit may be taken without knowing the others, because there are no more numbers than the limit. So of a large limit only
// some numbers are read, and a partition that is nearly full may be taken for full: its run waits, and gets a slot from a finisher or
// the tick. Where a limit was lowered and higher numbers are still occupied, the partition is read whole.
func (s *Store) readFree(ctx context.Context, q *rows.SlotQuery) (*rows.SlotReading, error) {
	if q.Limit <= rows.SlotWindow {
		return s.readWholeSlots(ctx, q)
	}
	order := windowOrder(q.Limit, q.Near)
	var above, window []rows.Slot
	err := ddb.AllOf(ctx, 2, []func(context.Context) error{
		func(ctx context.Context) (err error) {
			above, err = s.slotsBetween(ctx, q.Partition, q.Limit, -1)
			return err
		},
		func(ctx context.Context) (err error) {
			window, err = s.readWindow(ctx, q, order[0])
			return err
		},
	})
	if err != nil {
		return nil, err
	}
	reading := &rows.SlotReading{Replaced: map[int]rows.Slot{}}
	if reading.Add(above, q) > 0 {
		return s.readWholeSlots(ctx, q)
	}
	for n := 0; ; n++ {
		reading.Add(window, q)
		for number := order[n] * rows.WindowWidth(q.Limit); number < q.End(order[n]); number++ {
			if !slices.ContainsFunc(window, func(slot rows.Slot) bool { return slot.Number() == number && q.Counts(&slot) }) {
				reading.Free = append(reading.Free, number)
			}
		}
		if len(reading.Free) > 0 || n+1 >= min(q.Windows, len(order)) {
			return reading, nil
		}
		if window, err = s.readWindow(ctx, q, order[n+1]); err != nil {
			return nil, err
		}
	}
}

// windowOrder are the windows of a limit, that of a number first, the others at random.
func windowOrder(limit, near int) []int {
	order := rand.Perm(rows.Windows(limit)) //nolint:gosec // avoiding conflicts needs no secrecy
	if near >= 0 && near < limit {
		i := slices.Index(order, near/rows.WindowWidth(limit))
		order[0], order[i] = order[i], order[0]
	}
	return order
}

// readWholeSlots reads all slots of a partition, and judges by the rule that holds whatever is occupied.
func (s *Store) readWholeSlots(ctx context.Context, q *rows.SlotQuery) (*rows.SlotReading, error) {
	slots, err := s.slots(ctx, q.Partition)
	if err != nil {
		return nil, err
	}
	r := &rows.SlotReading{Replaced: map[int]rows.Slot{}}
	r.Add(slots, q)
	r.Free, _ = rows.FreeNumbers(r.Taken, q.Limit, q.At)
	return r, nil
}

func (s *Store) readWindow(ctx context.Context, q *rows.SlotQuery, window int) ([]rows.Slot, error) {
	return s.slotsBetween(ctx, q.Partition, window*rows.WindowWidth(q.Limit), q.End(window)-1)
}

// slotsBetween reads the slots of a partition from one number to another, −1 for the last, strongly.
func (s *Store) slotsBetween(ctx context.Context, p rows.Partition, from, until int) (taken []rows.Slot, err error) {
	where, values := "#pk = :pk AND #sk >= :from", item.Item{":pk": item.Text(p.PK()), ":from": item.Text(rows.SlotSK(from))}
	if until >= 0 {
		where = "#pk = :pk AND #sk BETWEEN :from AND :until"
		values[":until"] = item.Text(rows.SlotSK(until))
	}
	return s.querySlots(ctx, where, values)
}

// slots reads a partition strongly.
func (s *Store) slots(ctx context.Context, p rows.Partition) (taken []rows.Slot, err error) {
	return s.querySlots(ctx, "#pk = :pk", item.Item{":pk": item.Text(p.PK())})
}

func (s *Store) querySlots(ctx context.Context, where string, values item.Item) (taken []rows.Slot, err error) {
	err = s.db.Query(ctx, &ddb.Query{Operation: "read slots", Where: where, Values: values}, func(it item.Item) (bool, error) {
		var slot rows.Slot
		err := rows.Unmarshal(it, &slot)
		taken = append(taken, slot)
		return true, err
	})
	return taken, err
}
