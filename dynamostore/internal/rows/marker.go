package rows

import (
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/dynamostore/internal/item"
	"github.com/runlane/runlane-go/lane"
)

// WalkPosition is a position in the markers of slotless runs. Runs of a partition that started to wait at the same
// instant have the same marker: Run is the one to continue after. Without it the position is after all of them.
type WalkPosition struct {
	Shard int    `json:"s" dynamodbav:"sh"`
	After string `json:"a,omitempty" dynamodbav:"af,omitempty"`
	Run   string `json:"p,omitempty" dynamodbav:"-"` // in cursors only: a new pass starts after all of them
}

func (r DueRow) Behind(e runlane.Environment, shard int) WalkPosition {
	return WalkPosition{shard, r.Key.Sort, RunPK(lane.RunKey{Environment: e, RunID: r.Run})}
}

// SlotPartition is the partition that the marker of a slotless run names.
func (r DueRow) SlotPartition(e runlane.Environment) (Partition, bool) {
	queue, hash, ok := CutPartition(r.Key.Sort)
	return Partition{e, queue, hash}, ok
}

// Start and End are around all markers of the partition.
func (p Partition) Start() string { return fmt.Sprintf("%s:%s:", p.Queue, p.Hash) }

func (p Partition) End() string { return p.Start() + "~" }

// MarkerKind is which inspection a run needs (docs/internals/layout.md, Indexes).
type MarkerKind string

const (
	Deliverable MarkerKind = "q" // queued, wakeup published or with a publisher; or claimed from there
	Unpublished MarkerKind = "o" // delivery still to be published
	DeadLetter  MarkerKind = "x" // delivery given up
	Waiting     MarkerKind = "w" // waits for a time
	Slotless    MarkerKind = "d" // waits for a slot of a bounded queue; ordered by partition, not by time
	Parked      MarkerKind = "p" // queued and published, inspected once
	Ended       MarkerKind = "e" // ended, still has to notify another run
	Leased      MarkerKind = "l" // leased or reserved: claimed while neither in q nor w, or inspected once
)

// Marker is a run's place in the index due: the inspection it needs, and the exact time when there is work. Readers add
// their own patience. The key of a slotless run has its rank instead: that time, less the precedence of its priority.
type Marker struct {
	Kind MarkerKind
	At   Millis
}

type DueKey struct{ Partition, Sort string }

func (m Marker) Key(e runlane.Environment, shard int, queue runlane.QueueName) DueKey {
	return DueKey{DuePartition(e, m.Kind, shard), fmt.Sprintf("%013d:%s", m.At, queue)}
}

// Entry has the run item's attributes for the marker.
func (k DueKey) Entry() item.Item {
	return item.Item{AttrDueP: item.Text(k.Partition), AttrDueA: item.Text(k.Sort)}
}

func DuePartition(e runlane.Environment, kind MarkerKind, shard int) string {
	return e.Name() + ":" + string(kind) + ":" + strconv.Itoa(shard)
}

func DonePartition(e runlane.Environment, status runlane.Status, shard int) string {
	return e.Name() + ":" + string(status) + ":" + strconv.Itoa(shard)
}

func MarkerUpdate(pk string, sequence int64, from, to DueKey, before item.Item) *item.Update {
	unchanged := item.Equal("sq", item.Num(sequence)).And(
		item.Equal(AttrDueP, item.Text(from.Partition)), item.Equal(AttrDueA, item.Text(from.Sort)))
	return &item.Update{
		Key:        item.Key(pk, RunSK),
		Expression: "SET #dp = :dp, #da = :da",
		Values:     item.Item{":dp": item.Text(to.Partition), ":da": item.Text(to.Sort)},
		Condition:  unchanged,
		Before:     before,
		Wrote: func(now item.Item) bool {
			return item.Number(now["sq"]) == sequence && item.TextOf(now[AttrDueP]) == to.Partition &&
				item.TextOf(now[AttrDueA]) == to.Sort
		},
	}
}

func (k DueKey) Parse() (m Marker, queue runlane.QueueName, ok bool) {
	partition, sort := strings.Split(k.Partition, ":"), strings.Split(k.Sort, ":")
	switch {
	case len(partition) == 3 && MarkerKind(partition[1]) == Slotless && len(sort) == 3:
		return Marker{Slotless, ParseMillis(sort[2])}, runlane.QueueName(sort[0]), true
	case len(partition) == 3 && len(sort) == 2:
		return Marker{MarkerKind(partition[1]), ParseMillis(sort[0])}, runlane.QueueName(sort[1]), true
	default:
		return Marker{}, "", false
	}
}

// CutPartition splits a slotless marker's sort key into the queue and the hash of the concurrency key.
func CutPartition(sort string) (queue runlane.QueueName, hash string, ok bool) {
	parts := strings.Split(sort, ":")
	if len(parts) != 3 {
		return "", "", false
	}
	return runlane.QueueName(parts[0]), parts[1], true
}

func (r *Run) Due() DueKey { return DueKey{r.DueP, r.DueA} }

func (r *Run) Marker() Marker {
	m, _, _ := r.Due().Parse()
	return m
}

// Partition groups the runs that share the queue's limit.
func (r *Run) Partition() Partition {
	return Partition{r.Key().Environment, runlane.QueueName(r.Queue), Hash(r.ConcurrencyKey)}
}

// Shards are the numbers of partitions of each kind of marker. To grow them, raise Read before Write.
type Shards struct {
	Write int `dynamodbav:"wr"`
	Read  int `dynamodbav:"rd"`
}

const DefaultShards = 8

func ShardOf(id string, n int) int {
	h := fnv.New32a()
	h.Write([]byte(id))
	return int(h.Sum32() % uint32(n)) // n is small and positive
}

// Index sets the index attributes: the marker of an active run, the summary key of a finished one.
func (r *Run) Index(m Marker, shards Shards) {
	key := r.Key()
	if r.State().Terminal() {
		r.DueP, r.DueA = "", ""
		if r.MustNotify() {
			due := r.DueKey(Marker{Ended, r.FinishedAt}, shards)
			r.DueP, r.DueA = due.Partition, due.Sort
		}
		r.DoneP = DonePartition(key.Environment, r.State(), ShardOf(string(key.RunID), shards.Write))
		r.DoneA = fmt.Sprintf("%013d:%s", r.FinishedAt, key.RunID)
		return
	}
	due := r.DueKey(m, shards)
	r.DueP, r.DueA = due.Partition, due.Sort
}

// DueKey is the place of a marker of this run. Slotless runs are grouped by partition.
func (r *Run) DueKey(m Marker, shards Shards) DueKey {
	key := r.Key()
	if m.Kind == Slotless {
		p := r.Partition()
		return DueKey{
			DuePartition(key.Environment, Slotless, ShardOf(string(p.Queue)+":"+p.Hash, shards.Write)),
			fmt.Sprintf("%s:%s:%013d", p.Queue, p.Hash, max(m.At-r.precedence(), 0)),
		}
	}
	return m.Key(key.Environment, ShardOf(string(key.RunID), shards.Write), runlane.QueueName(r.Queue))
}

func (r *Run) precedence() Millis { return Millis(lane.Precedence(r.Priority) / time.Millisecond) }

func (c *Change) setMarker(run *Run) {
	at, keep := c.markerAfter(run)
	run.Index(at, c.Shards)
	if keep && c.Before != nil && !c.Projected.Status.Terminal() {
		run.DueP, run.DueA = c.Before.DueP, c.Before.DueA
	}
}

// markerAfter implements the marker table of the layout for active runs. keep means unchanged.
func (c *Change) markerAfter(run *Run) (after Marker, keep bool) {
	var before Marker
	if c.Before != nil {
		before = c.Before.Marker()
	}
	due, _ := run.RunnableAt()
	switch status := run.State(); {
	case status.Waiting():
		if c.resumes() && c.Queue.Bounded() {
			return Marker{Slotless, due}, false // where a freed slot is offered
		}
		return Marker{Waiting, run.RunAt}, false
	case status == runlane.StatusQueued:
		switch {
		case c.Queue.Bounded() && !c.Reserves() && run.Priority > 0 && due > run.UpdatedAt:
			return Marker{Leased, due}, false // its rank would be ahead of those that are due
		case c.Queue.Bounded() && !c.Reserves():
			return Marker{Slotless, due}, false
		}
		_, requested := c.Events[len(c.Events)-1].Body.(*runlane.RunDeliveryRequested)
		if pending := c.Initial.ClaimUntil.IsZero() && !c.Initial.Published; requested && pending {
			return Marker{Unpublished, run.UpdatedAt}, false
		}
		if c.Reserves() {
			due = max(due, ToMillis(lane.TicketTime(c.Projected, c.Queue)))
		}
		return Marker{Deliverable, due}, false
	case status.Owned():
		if !Claims(c.Transition) {
			return before, true // heartbeat or cancellation request: the marker may be too early
		}
		if c.ByWakeup && (before.Kind == Deliverable || before.Kind == Waiting) && before.At <= run.LeaseUntil {
			return before, true
		}
		return Marker{Leased, run.LeaseUntil}, false
	default:
		return before, true
	}
}

// AfterPublished is the marker of a run whose latest wakeup was published.
func AfterPublished(row *Delivery) Marker { return Marker{Deliverable, row.AvailableAt} }

// AfterFailed is the marker of a run whose latest wakeup is tried again at next. A run with a reservation that ends
// earlier waits for a slot from then on, and needs no wakeup.
func AfterFailed(next, reserved Millis) Marker {
	if reserved != 0 && next > reserved {
		return Marker{Leased, reserved}
	}
	return Marker{Unpublished, next}
}

// AfterGivenUp is the marker of a run whose latest wakeup became a dead letter at that time.
func AfterGivenUp(at Millis) Marker { return Marker{DeadLetter, at} }

// AfterRequeue is the marker of a run whose dead letter was requeued at that time.
func AfterRequeue(at Millis) Marker { return Marker{Unpublished, at} }

// AfterFullQueue is the marker of a run that wants a slot of a full queue, and wanted it since that time.
func AfterFullQueue(since Millis) Marker { return Marker{Slotless, since} }

// RunnableAt is when a worker may take the run; ok is false if time alone does not make it runnable.
func (r *Run) RunnableAt() (since Millis, ok bool) {
	return runlane.RunnableSince(r.State(), r.UpdatedAt, r.RunAt, r.LeaseUntil, 0)
}

// DispatchableAt is when a run of a bounded queue needs a slot: a queued run once it has no live reservation, any other
// once it is runnable.
func (r *Run) DispatchableAt() (since Millis, ok bool) {
	since, ok = r.RunnableAt()
	if r.State() == runlane.StatusQueued {
		since = max(since, r.DispatchExpiresAt)
	}
	return since, ok
}

func (r DueRow) Memory() string { return string(r.Run) + " " + r.Key.Partition + " " + r.Key.Sort }

type DueRow struct {
	Run    runlane.RunID
	Key    DueKey
	Marker Marker
	Queue  runlane.QueueName
}

func ParseDueRow(it item.Item) (DueRow, bool) {
	row := DueRow{Key: DueKey{item.TextOf(it[AttrDueP]), item.TextOf(it[AttrDueA])}}
	key, ok1 := ParseRunPK(item.TextOf(it[item.PK]))
	m, queue, ok2 := row.Key.Parse()
	row.Run, row.Marker, row.Queue = key.RunID, m, queue
	return row, ok1 && ok2
}
