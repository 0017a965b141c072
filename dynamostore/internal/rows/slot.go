package rows

import (
	"fmt"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/dynamostore/internal/item"
	"github.com/runlane/runlane-go/lane"
)

// ClaimMargin is how long before its end a claim treats its own reservation as over, to commit in time.
const ClaimMargin = 5 * time.Second

// SlotItem is one occupied slot of a partition. Only a reservation has Until: a held slot is freed by the commit that
// ends the attempt, never by time.
type SlotItem struct {
	PK    string        `dynamodbav:"pk"`
	SK    string        `dynamodbav:"sk"`
	Run   runlane.RunID `dynamodbav:"ru"`
	Until Millis        `dynamodbav:"un,omitempty"`
}

func SlotSK(number int) string { return fmt.Sprintf("%04d", number) }

func (i SlotItem) Number() int { return int(ParseMillis(i.SK)) }

func (r *Run) HeldSlot() SlotItem {
	return SlotItem{PK: r.Partition().PK(), SK: SlotSK(r.Slot - 1), Run: r.Key().RunID}
}

// Occupied reports a slot that counts at an instant: held, or reserved until later.
func (i *SlotItem) Occupied(at Millis) bool { return i.Until == 0 || i.Until > at }

type SlotChange struct {
	Put    *SlotItem // taken or kept, as after the commit
	Before *SlotItem // the stored slot; nil for none
	Delete *SlotItem // given up
	// If only this slot's condition fails, the commit is repeated without it. A slot never stops an outcome, a
	// cancellation or a recovery.
	Optional bool
	// A throttle or another transaction on the slot counts as a taken slot, so that no creation fails because of it.
	Yields bool
}

// Outlasts reports a slot that is held, or reserved for longer than a commit may take.
func (i *SlotItem) Outlasts(at Millis) bool {
	return i.Until == 0 || i.Until-Millis(ClaimMargin.Milliseconds()) > at
}

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

func (i SlotItem) Is(read item.Item) bool {
	return item.TextOf(read["ru"]) == string(i.Run) && Millis(item.Number(read["un"])) == i.Until
}

func (i SlotItem) Unchanged() item.Condition {
	held := item.Equal("ru", item.Text(string(i.Run)))
	if i.Until == 0 {
		return held.And(item.Condition{Text: "attribute_not_exists(#un)"})
	}
	return held.And(item.Equal("un", item.Num(int64(i.Until))))
}

// SlotWindow is how many numbers are read at once. 64 slots of the usual size take two units; a thousand take 25, of
// one partition key.
const SlotWindow = 64

// SlotQuery asks for numbers that a run may take.
type SlotQuery struct {
	Partition Partition
	Limit     int
	At        Millis
	Run       runlane.RunID // its own slot does not count; "" for a reader without one
	Near      int           // number of the first window to read; −1: any
	Windows   int           // most windows to read
	Until     Millis        // end of the wanted reservation; 0: hold the slot
}

// SlotReading is a reserver's view of a partition.
type SlotReading struct {
	Own   *SlotItem
	Taken []SlotItem
	// Free are numbers that may be taken, at least one if any of those read is free.
	Free     []int
	Replaced map[int]SlotItem
}

func (q *SlotQuery) Counts(slot *SlotItem) bool {
	return slot.Occupied(q.At) && (q.Run == "" || slot.Run != q.Run)
}

// End is the number after the last one of a window.
func (q *SlotQuery) End(window int) int { return min((window+1)*WindowWidth(q.Limit), q.Limit) }

// Windows is the number of windows for a limit, all nearly equal in size.
func Windows(limit int) int { return max((limit+SlotWindow-1)/SlotWindow, 1) }

// WindowWidth is the size of each window of a limit, except the last.
func WindowWidth(limit int) int { return (limit + Windows(limit) - 1) / Windows(limit) }

// Add adds slots and returns how many are occupied.
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

// FreeNumbers returns the numbers that a run may take: the lowest (limit − occupied) unused ones below the limit, where
// every occupied number counts, also above the limit. Taking any unused number would let two reservers with stale reads
// exceed a lowered limit. replaced has the expired reservations by number.
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

// SlotQuery asks for a slot for the run at an instant, in a queue with a limit.
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

func (q *SlotQuery) RunPK() string {
	return RunPK(lane.RunKey{Environment: q.Partition.Environment, RunID: q.Run})
}

func (q *SlotQuery) Take(number int, before *SlotItem) SlotChange {
	return SlotChange{
		Put:    &SlotItem{PK: q.Partition.PK(), SK: SlotSK(number), Run: q.Run, Until: q.Until},
		Before: before,
	}
}

// Choose returns the change that gives the run a slot: its own while it is held, else the free one of pick's index.
// Shortly before its end the run's reservation does not count: it may be over at the commit, and the limit lower by
// then. ok is false if there is no slot.
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

// Partition is the group to which a limit applies: the runs of one concurrency key, or of the queue without keys.
type Partition struct {
	Environment runlane.Environment
	Queue       runlane.QueueName
	Hash        string // of the concurrency key
}

func (p Partition) PK() string {
	return p.Environment.Name() + ":slot:" + string(p.Queue) + ":" + p.Hash
}
