package dynamostore

import (
	"context"
	"math/rand/v2"
	"slices"

	"github.com/runlane/runlane-go/dynamostore/internal/ddb"
	"github.com/runlane/runlane-go/dynamostore/internal/item"
	"github.com/runlane/runlane-go/dynamostore/internal/rows"
)

// chooseSlot chooses a slot: the one that ListRunsNeedingDispatch found for the run a moment ago, or one from a read of
// the partition. Another commit may take it first, and a run that still names a slot of its own looks there instead
// (q.Near). ok is false if there is none.
func (s *Store) chooseSlot(ctx context.Context, q *rows.SlotQuery) (change rows.SlotChange, ok bool, err error) {
	if offer, ok := s.offers.take(q.RunPK(), q.Partition, q.Limit, q.At); ok && q.Near < 0 {
		return q.Take(offer.number, offer.before), true, nil
	}
	reading, err := s.readFree(ctx, q)
	if err != nil {
		return change, false, err
	}
	change, ok = reading.Choose(q, rand.IntN) // no secrecy needed
	return change, ok, nil
}

// Windows to read before a large partition counts as full. A trigger reads for its creation, and again for a run
// created without a slot.
const (
	creationWindows    = 2
	reservationWindows = 1
	claimWindows       = 3
)

// readFree reads a partition strongly until it finds numbers that a run may take.
//
// If no number at or above the limit is occupied, every unused number below it is free: all commits with this limit
// take lower numbers. So for a large limit only some windows are read. A nearly full partition may then count as full,
// and its run waits for a finisher or the tick. If higher numbers are still occupied, after a limit was lowered, the
// whole partition is read.
func (s *Store) readFree(ctx context.Context, q *rows.SlotQuery) (*rows.SlotReading, error) {
	if q.Limit <= rows.SlotWindow {
		return s.readWholeSlots(ctx, q)
	}
	order := windowOrder(q.Limit, q.Near)
	var above, window []rows.SlotItem
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
	reading := &rows.SlotReading{Replaced: map[int]rows.SlotItem{}}
	if reading.Add(above, q) > 0 {
		return s.readWholeSlots(ctx, q)
	}
	for n := 0; ; n++ {
		reading.Add(window, q)
		for number := order[n] * rows.WindowWidth(q.Limit); number < q.End(order[n]); number++ {
			if !slices.ContainsFunc(window, func(slot rows.SlotItem) bool {
				return slot.Number() == number && q.Counts(&slot)
			}) {
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

// windowOrder lists the windows of a limit: near's first, the others at random.
func windowOrder(limit, near int) []int {
	order := rand.Perm(rows.Windows(limit)) // no secrecy needed
	if near >= 0 && near < limit {
		i := slices.Index(order, near/rows.WindowWidth(limit))
		order[0], order[i] = order[i], order[0]
	}
	return order
}

// readWholeSlots reads all slots of a partition and applies the general rule for free numbers.
func (s *Store) readWholeSlots(ctx context.Context, q *rows.SlotQuery) (*rows.SlotReading, error) {
	slots, err := s.slots(ctx, q.Partition)
	if err != nil {
		return nil, err
	}
	r := &rows.SlotReading{Replaced: map[int]rows.SlotItem{}}
	r.Add(slots, q)
	r.Free, _ = rows.FreeNumbers(r.Taken, q.Limit, q.At)
	return r, nil
}

func (s *Store) readWindow(ctx context.Context, q *rows.SlotQuery, window int) ([]rows.SlotItem, error) {
	return s.slotsBetween(ctx, q.Partition, window*rows.WindowWidth(q.Limit), q.End(window)-1)
}

// slotsBetween reads the slots from one number to another strongly; until −1 means to the end.
func (s *Store) slotsBetween(
	ctx context.Context, p rows.Partition, from, until int,
) (taken []rows.SlotItem, err error) {
	where, values := "#pk = :pk AND #sk >= :from", item.Item{
		":pk":   item.Text(p.PK()),
		":from": item.Text(rows.SlotSK(from)),
	}
	if until >= 0 {
		where = "#pk = :pk AND #sk BETWEEN :from AND :until"
		values[":until"] = item.Text(rows.SlotSK(until))
	}
	return s.querySlots(ctx, where, values)
}

func (s *Store) slots(ctx context.Context, p rows.Partition) (taken []rows.SlotItem, err error) {
	return s.querySlots(ctx, "#pk = :pk", item.Item{":pk": item.Text(p.PK())})
}

func (s *Store) querySlots(ctx context.Context, where string, values item.Item) (taken []rows.SlotItem, err error) {
	err = s.db.Query(
		ctx,
		&ddb.Query{Operation: "read slots", Where: where, Values: values},
		func(it item.Item) (bool, error) {
			var slot rows.SlotItem
			err := rows.Unmarshal(it, &slot)
			taken = append(taken, slot)
			return true, err
		},
	)
	return taken, err
}
