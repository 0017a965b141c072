package dynamostore

import (
	"context"
	"math/rand/v2"
	"slices"

	"github.com/runlane/runlane-go"
)

// slotWindow is how many numbers are read at once. A partition of a larger limit is not read whole: two units show so many slots of the
// usual size, and a thousand slots are 25 units of one partition key.
const slotWindow = 64

// How many windows a reserver reads at most before it takes a partition of a large limit for full. A trigger reads for its creation and
// then once more for the run that it made without a slot.
const (
	creationWindows    = 2
	reservationWindows = 1
	claimWindows       = 3
)

// slotQuery asks for numbers that a run may take.
type slotQuery struct {
	partition slotPartition
	limit     int
	at        millis
	run       runlane.RunID // whose own slot does not count; "" of a reader that has none
	near      int           // a number whose window is read first; −1: any
	windows   int           // how many are read at most
}

// slotReading is what a reserver knows of a partition.
type slotReading struct {
	own *slotItem
	// taken are the slots of others that were read.
	taken []slotItem
	// free are numbers that may be taken, at least one where there is any among those that were read.
	free []int
	// replaced are reservations that are over, by the number that each still has.
	replaced map[int]slotItem
}

// readFree reads a partition, strongly, as far as it takes to find numbers that a run may take.
//
// Where no number at or above the limit is occupied, none will be: all commits with this limit take lower ones. Then any unused number
// below the limit may be taken without knowing the others, because there are no more numbers than the limit. So of a large limit only
// some numbers are read, and a partition that is nearly full may be taken for full: its run waits, and gets a slot from a finisher or
// the tick. Where a limit was lowered and higher numbers are still occupied, the partition is read whole.
func (s *Store) readFree(ctx context.Context, q *slotQuery) (*slotReading, error) {
	if q.limit <= slotWindow {
		return s.readWholeSlots(ctx, q)
	}
	order := windowOrder(q.limit, q.near)
	var above, window []slotItem
	err := AllOf(ctx, 2, []func(context.Context) error{
		func(ctx context.Context) (err error) {
			above, err = s.slotsBetween(ctx, q.partition, q.limit, -1)
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
	reading := &slotReading{replaced: map[int]slotItem{}}
	if reading.add(above, q) > 0 {
		return s.readWholeSlots(ctx, q)
	}
	for n := 0; ; n++ {
		reading.add(window, q)
		for number := order[n] * windowWidth(q.limit); number < q.end(order[n]); number++ {
			if !slices.ContainsFunc(window, func(slot slotItem) bool { return slot.number() == number && q.counts(&slot) }) {
				reading.free = append(reading.free, number)
			}
		}
		if len(reading.free) > 0 || n+1 >= min(q.windows, len(order)) {
			return reading, nil
		}
		if window, err = s.readWindow(ctx, q, order[n+1]); err != nil {
			return nil, err
		}
	}
}

// counts reports a slot that is occupied, and not by the run itself.
func (q *slotQuery) counts(slot *slotItem) bool {
	return slot.occupied(q.at) && (q.run == "" || slot.Run != q.run)
}

// end is behind the last number of a window.
func (q *slotQuery) end(window int) int { return min((window+1)*windowWidth(q.limit), q.limit) }

// windowsOf is how many windows a limit has, and windowWidth how many numbers each has but the last: as equal as can be, so that all cost
// the same.
func windowsOf(limit int) int   { return max((limit+slotWindow-1)/slotWindow, 1) }
func windowWidth(limit int) int { return (limit + windowsOf(limit) - 1) / windowsOf(limit) }

// add takes slots in, and counts those that are occupied.
func (r *slotReading) add(slots []slotItem, q *slotQuery) (occupied int) {
	for i := range slots {
		slot := &slots[i]
		switch {
		case q.run != "" && slot.Run == q.run:
			r.own = slot
			continue
		case q.counts(slot):
			occupied++
		default:
			r.replaced[slot.number()] = *slot
		}
		r.taken = append(r.taken, *slot)
	}
	return occupied
}

// windowOrder are the windows of a limit, that of a number first, the others at random.
func windowOrder(limit, near int) []int {
	order := rand.Perm(windowsOf(limit)) //nolint:gosec // avoiding conflicts needs no secrecy
	if near >= 0 && near < limit {
		i := slices.Index(order, near/windowWidth(limit))
		order[0], order[i] = order[i], order[0]
	}
	return order
}

// readWholeSlots reads all slots of a partition, and judges by the rule that holds whatever is occupied.
func (s *Store) readWholeSlots(ctx context.Context, q *slotQuery) (*slotReading, error) {
	slots, err := s.slots(ctx, q.partition)
	if err != nil {
		return nil, err
	}
	r := &slotReading{replaced: map[int]slotItem{}}
	r.add(slots, q)
	r.free, _ = free(r.taken, q.limit, q.at)
	return r, nil
}

func (s *Store) readWindow(ctx context.Context, q *slotQuery, window int) ([]slotItem, error) {
	return s.slotsBetween(ctx, q.partition, window*windowWidth(q.limit), q.end(window)-1)
}

// slotsBetween reads the slots of a partition from one number to another, −1 for the last, strongly.
func (s *Store) slotsBetween(ctx context.Context, p slotPartition, from, until int) (taken []slotItem, err error) {
	where, values := "#pk = :pk AND #sk >= :from", item{":pk": text(p.pk()), ":from": text(slotSK(from))}
	if until >= 0 {
		where = "#pk = :pk AND #sk BETWEEN :from AND :until"
		values[":until"] = text(slotSK(until))
	}
	return s.querySlots(ctx, where, values)
}

// slots reads a partition strongly.
func (s *Store) slots(ctx context.Context, p slotPartition) (taken []slotItem, err error) {
	return s.querySlots(ctx, "#pk = :pk", item{":pk": text(p.pk())})
}

func (s *Store) querySlots(ctx context.Context, where string, values item) (taken []slotItem, err error) {
	err = s.db.Query(ctx, &Query{Operation: "read slots", Where: where, Values: values}, func(it item) (bool, error) {
		var slot slotItem
		err := unmarshalItem(it, &slot)
		taken = append(taken, slot)
		return true, err
	})
	return taken, err
}

// free are the numbers that a run may take at an instant: the lowest (limit − occupied) unused ones below the limit. "Any unused
// number" would let two reservers with stale reads exceed a limit that was lowered. Occupied counts every number, also those at
// or above the limit. replaced is what stands there: a reservation that is over.
func free(taken []slotItem, limit int, at millis) (numbers []int, replaced map[int]slotItem) {
	occupied := 0
	used := map[int]bool{}
	replaced = map[int]slotItem{}
	for _, slot := range taken {
		if slot.occupied(at) {
			occupied++
			used[slot.number()] = true
		} else {
			replaced[slot.number()] = slot
		}
	}
	for n := 0; n < limit && len(numbers) < limit-occupied; n++ {
		if !used[n] {
			numbers = append(numbers, n)
		}
	}
	return numbers, replaced
}
