package rows

import (
	"fmt"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/dynamostore/internal/item"
	"github.com/runlane/runlane-go/lane"
)

// ClaimMargin is how long before its end a claim treats its own reservation as over, so that its commit still happens
// within it.
const ClaimMargin = 5 * time.Second

// SlotItem is one occupied place of a bounded queue's partition. Until is set only while it is a reservation: a held
// slot is freed by the commit that ends the running state, never by time.
type SlotItem struct {
	PK    string        `dynamodbav:"pk"`
	SK    string        `dynamodbav:"sk"`
	Run   runlane.RunID `dynamodbav:"ru"`
	Until Millis        `dynamodbav:"un,omitempty"`
}

// SlotSK is the sort key of a slot number.
func SlotSK(number int) string { return fmt.Sprintf("%04d", number) }

// Number is the number of the slot.
func (i SlotItem) Number() int { return int(ParseMillis(i.SK)) }

// HeldSlot is the item of the slot that the run item names.
func (r *Run) HeldSlot() SlotItem {
	return SlotItem{PK: r.Partition().PK(), SK: SlotSK(r.Slot - 1), Run: r.Key().RunID}
}

// Occupied reports a slot that counts at an instant: held, or reserved until later.
func (i *SlotItem) Occupied(at Millis) bool { return i.Until == 0 || i.Until > at }

// SlotChange is what a commit does to slots.
type SlotChange struct {
	Put    *SlotItem // taken or kept, as it is after the commit
	Before *SlotItem // what is there now; nil: nothing
	Delete *SlotItem // given up
	// optional: when only the slot's condition fails, the commit is repeated without it. A slot never stops an outcome,
	// a cancellation or a recovery.
	Optional bool
	// yields: a refusal of the slot by a throttle or another transaction counts as a taken slot. No creation fails
	// because of it.
	Yields bool
}

// Outlasts reports a slot that is held, or reserved for longer than a commit that begins at an instant may take.
func (i *SlotItem) Outlasts(at Millis) bool {
	return i.Until == 0 || i.Until-Millis(ClaimMargin.Milliseconds()) > at
}

// Writes are the change's parts of the transaction.
func (c *SlotChange) Writes() (members []item.Write, err error) {
	if c.Put != nil {
		after, err := Marshal(c.Put)
		if err != nil {
			return nil, err
		}
		m := item.Write{After: after, Condition: item.Absent, Yields: c.Yields}
		if c.Before != nil {
			if m.Before, err = Marshal(c.Before); err != nil {
				return nil, err
			}
			m.Condition = c.Before.Unchanged()
		}
		members = append(members, m)
	}
	if c.Delete != nil {
		before, err := Marshal(c.Delete)
		if err != nil {
			return nil, err
		}
		members = append(members, item.Write{
			Before:    before,
			Condition: item.Equal("ru", item.Text(string(c.Delete.Run))),
		})
	}
	return members, nil
}

// Is reports an item that is this slot.
func (i SlotItem) Is(read item.Item) bool {
	return item.TextOf(read["ru"]) == string(i.Run) && Millis(item.Number(read["un"])) == i.Until
}

// Unchanged is the condition that the slot is as it was read.
func (i SlotItem) Unchanged() item.Condition {
	held := item.Equal("ru", item.Text(string(i.Run)))
	if i.Until == 0 {
		return held.And(item.Condition{Text: "attribute_not_exists(#un)"})
	}
	return held.And(item.Equal("un", item.Num(int64(i.Until))))
}

// SlotWindow is how many numbers are read at once. A partition of a larger limit is not read whole: two units read that
// many slots of the usual size, but a thousand slots are 25 units of one partition key.
const SlotWindow = 64

// SlotQuery asks for numbers that a run may take.
type SlotQuery struct {
	Partition Partition
	Limit     int
	At        Millis
	Run       runlane.RunID // whose own slot does not count; "" of a reader that has none
	Near      int           // a number whose window is read first; −1: any
	Windows   int           // how many are read at most
	Until     Millis        // the end of the wanted reservation; 0: the slot is to be held
}

// SlotReading is what a reserver knows about a partition.
type SlotReading struct {
	Own *SlotItem
	// Taken are the slots of others that were read.
	Taken []SlotItem
	// Free are numbers that may be taken, at least one if there is any among those read.
	Free []int
	// Replaced are reservations that are over, by the number that each still has.
	Replaced map[int]SlotItem
}

// Counts reports a slot that is occupied by another run.
func (q *SlotQuery) Counts(slot *SlotItem) bool {
	return slot.Occupied(q.At) && (q.Run == "" || slot.Run != q.Run)
}

// End is the number after the last one of a window.
func (q *SlotQuery) End(window int) int { return min((window+1)*WindowWidth(q.Limit), q.Limit) }

// Windows is how many windows a limit has: of nearly equal size, so that all cost the same.
func Windows(limit int) int { return max((limit+SlotWindow-1)/SlotWindow, 1) }

// WindowWidth is how many numbers each window of a limit has, except the last.
func WindowWidth(limit int) int { return (limit + Windows(limit) - 1) / Windows(limit) }

// Add adds slots, and counts those that are occupied.
func (r *SlotReading) Add(slots []SlotItem, q *SlotQuery) (occupied int) {
	for i := range slots {
		slot := &slots[i]
		switch {
		case q.Run != "" && slot.Run == q.Run:
			r.Own = slot
			continue
		case q.Counts(slot):
			occupied++
		default:
			r.Replaced[slot.Number()] = *slot
		}
		r.Taken = append(r.Taken, *slot)
	}
	return occupied
}

// FreeNumbers are the numbers that a run may take at an instant: the lowest (limit − occupied) unused ones below the
// limit. "Any unused number" would let two reservers with stale reads exceed a limit that was lowered. Occupied counts
// every number, also those at or above the limit. replaced are the expired reservations at these numbers.
func FreeNumbers(taken []SlotItem, limit int, at Millis) (numbers []int, replaced map[int]SlotItem) {
	occupied := 0
	used := map[int]bool{}
	replaced = map[int]SlotItem{}
	for _, slot := range taken {
		if slot.Occupied(at) {
			occupied++
			used[slot.Number()] = true
		} else {
			replaced[slot.Number()] = slot
		}
	}
	for n := 0; n < limit && len(numbers) < limit-occupied; n++ {
		if !used[n] {
			numbers = append(numbers, n)
		}
	}
	return numbers, replaced
}

// SlotQuery asks for a slot for the run at an instant, of a queue with a limit.
func (r *Run) SlotQuery(limit int, at, until Millis, windows int) *SlotQuery {
	return &SlotQuery{
		Partition: r.Partition(),
		Limit:     limit,
		At:        at,
		Run:       r.Key().RunID,
		Near:      r.Slot - 1,
		Windows:   windows,
		Until:     until,
	}
}

// CreationSlotQuery asks for a slot for a run that is to be created.
func CreationSlotQuery(run *runlane.Run, limit, windows int) *SlotQuery {
	return &SlotQuery{
		Partition: Partition{run.Environment, run.Queue, Hash(run.ConcurrencyKey)},
		Limit:     limit,
		At:        ToMillis(run.UpdatedAt),
		Run:       run.ID,
		Near:      -1,
		Windows:   windows,
		Until:     ToMillis(run.DispatchExpiresAt),
	}
}

// RunPK is the partition key of the run that asks.
func (q *SlotQuery) RunPK() string {
	return RunPK(lane.RunKey{Environment: q.Partition.Environment, RunID: q.Run})
}

// Take is the change by which the run gets a slot of a number.
func (q *SlotQuery) Take(number int, before *SlotItem) SlotChange {
	return SlotChange{
		Put:    &SlotItem{PK: q.Partition.PK(), SK: SlotSK(number), Run: q.Run, Until: q.Until},
		Before: before,
	}
}

// Choose is the change by which the run gets a slot: its own while it is held, else a free one that pick chooses by
// index. A reservation of the run that is about to end does not count as its own slot: it may be over when the commit
// happens, and the limit may by then be lower than its number. ok is false when there is no slot.
func (r *SlotReading) Choose(q *SlotQuery, pick func(n int) int) (change SlotChange, ok bool) {
	if r.Own != nil && r.Own.Outlasts(q.At) {
		return q.Take(r.Own.Number(), r.Own), true
	}
	if len(r.Free) == 0 {
		return change, false
	}
	n := r.Free[pick(len(r.Free))]
	if r.Own != nil && r.Own.Number() == n {
		return q.Take(n, r.Own), true
	}
	change = q.Take(n, nil)
	change.Delete = r.Own
	if old, there := r.Replaced[n]; there {
		change.Before = &old
	}
	return change, true
}
