package dynamostore

import (
	"context"
	"math/rand/v2"
	"slices"

	"github.com/runlane/runlane-go/dynamostore/internal/ddb"
	"github.com/runlane/runlane-go/dynamostore/internal/item"
	"github.com/runlane/runlane-go/dynamostore/internal/rows"
)

// chooseSlot chooses the slot that the commit of a creation, a reservation or a claim takes: the one found for the run
// a moment ago, or one that a read of the partition shows. It writes nothing: another commit may take the slot first.
// ok is false when there is none.
func (s *Store) chooseSlot(ctx context.Context, q *rows.SlotQuery) (change rows.SlotChange, ok bool, err error) {
	if offer, ok := s.offers.take(q.RunPK(), q.Partition, q.Limit, q.At); ok && q.Near < 0 {
		return q.Take(offer.number, offer.before), true, nil
	}
	reading, err := s.readFree(ctx, q)
	if err != nil {
		return change, false, err
	}
	change, ok = reading.Choose(q, rand.IntN) // avoiding conflicts needs no secrecy
	return change, ok, nil
}

// How many windows a reserver reads at most before it treats a partition of a large limit as full. A trigger reads for
// its creation, and once more for the run that it created without a slot.
const (
	creationWindows    = 2
	reservationWindows = 1
	claimWindows       = 3
)

// readFree reads a partition strongly until it finds numbers that a run may take.
//
// Where no number at or above the limit is occupied, none will be: all commits with this limit take lower ones. Then
// any unused number below the limit may be taken without knowing the others, because there are no more numbers than the
// limit. So of a large limit only some numbers are read, and a nearly full partition may count as full: its run waits,
// and gets a slot from a finisher or the tick. Where a limit was lowered and higher numbers are still occupied, the
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

// windowOrder lists the windows of a limit: first the window of near, then the others at random.
func windowOrder(limit, near int) []int {
	order := rand.Perm(rows.Windows(limit)) // avoiding conflicts needs no secrecy
	if near >= 0 && near < limit {
		i := slices.Index(order, near/rows.WindowWidth(limit))
		order[0], order[i] = order[i], order[0]
	}
	return order
}

// readWholeSlots reads all slots of a partition, and finds free numbers by the rule that holds whatever is occupied.
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

// slotsBetween reads the slots of a partition from one number to another, −1 for the last, strongly.
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

// slots reads a partition strongly.
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
