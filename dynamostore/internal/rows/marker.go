package rows

import (
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/dynamostore/internal/item"
	"github.com/runlane/runlane-go/lane"
)

// WalkPosition is a place in the markers of runs that wait for a slot: a shard, and the marker after which to continue.
// Several runs of a partition may have started to wait at the same instant and have the same marker: run is the key of
// the one after which to continue; without it, the position is after all of them.
type WalkPosition struct {
	Shard int    `json:"s" dynamodbav:"sh"`
	After string `json:"a,omitempty" dynamodbav:"af,omitempty"`
	Run   string `json:"p,omitempty" dynamodbav:"-"` // of a cursor only: a new pass begins after all of them
}

// Behind is the position of a row.
func (r DueRow) Behind(e runlane.Environment, shard int) WalkPosition {
	return WalkPosition{shard, r.Key.Sort, RunPK(lane.RunKey{Environment: e, RunID: r.Run})}
}

// SlotPartition is the partition that a marker of a waiting run names.
func (r DueRow) SlotPartition(e runlane.Environment) (Partition, bool) {
	queue, hash, ok := CutPartition(r.Key.Sort)
	return Partition{e, queue, hash}, ok
}

// Start is before every marker of the partition.
func (p Partition) Start() string { return fmt.Sprintf("%s:%s:", p.Queue, p.Hash) }

// End is behind every marker of the partition.
func (p Partition) End() string { return p.Start() + "~" }

// MarkerKind says which inspection an active run needs (docs/internals/layout.md, Indexes).
type MarkerKind string

// The kinds of markers.
const (
	Deliverable MarkerKind = "q" // queued, its wakeup handed over or with a publisher; or claimed from there
	Unpublished MarkerKind = "o" // its delivery is still to be handed over
	DeadLetter  MarkerKind = "x" // its delivery was given up
	Waiting     MarkerKind = "w" // waits for a time
	Slotless    MarkerKind = "d" // of a bounded queue, waits for a slot; ordered by partition, not by time
	Parked      MarkerKind = "p" // queued and published, inspected once already
	Ended       MarkerKind = "e" // has ended, and its end is to be told
	Leased      MarkerKind = "l" // owned, and claimed while its marker was neither q nor w, or inspected once already
)

// Marker is a run's place in the index due: which inspection the run needs, and the exact time from which there is
// work. Readers add their own grace period.
type Marker struct {
	Kind MarkerKind
	At   Millis
}

// DueKey are the index attributes of a marker.
type DueKey struct{ Partition, Sort string }

// Key is the marker's place in the index.
func (m Marker) Key(e runlane.Environment, shard int, queue runlane.QueueName) DueKey {
	return DueKey{DuePartition(e, m.Kind, shard), fmt.Sprintf("%013d:%s", m.At, queue)}
}

// Entry has the attributes of a run item that its marker determines.
func (k DueKey) Entry() item.Item {
	return item.Item{AttrDueP: item.Text(k.Partition), AttrDueA: item.Text(k.Sort)}
}

// DuePartition is a partition of the index due.
func DuePartition(e runlane.Environment, kind MarkerKind, shard int) string {
	return e.Name() + ":" + string(kind) + ":" + strconv.Itoa(shard)
}

// DonePartition is a partition of the index done.
func DonePartition(e runlane.Environment, status runlane.Status, shard int) string {
	return e.Name() + ":" + string(status) + ":" + strconv.Itoa(shard)
}

// MarkerUpdate moves the marker of a run, if the run has not changed since it was read.
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

// Parse is the inverse of Marker.Key.
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

// CutPartition splits a slotless marker's sort key into queue and hash of the concurrency key.
func CutPartition(sort string) (queue runlane.QueueName, hash string, ok bool) {
	parts := strings.Split(sort, ":")
	if len(parts) != 3 {
		return "", "", false
	}
	return runlane.QueueName(parts[0]), parts[1], true
}

// Due is the place of the run's marker.
func (r *Run) Due() DueKey { return DueKey{r.DueP, r.DueA} }

// Marker is the run's marker.
func (r *Run) Marker() Marker {
	m, _, _ := r.Due().Parse()
	return m
}

// Partition is the group of runs with which the queue's limit counts the run.
func (r *Run) Partition() Partition {
	return Partition{r.Key().Environment, runlane.QueueName(r.Queue), Hash(r.ConcurrencyKey)}
}

// Shards say how many partitions each kind of marker is spread over. When a number grows, readers learn it before
// writers.
type Shards struct {
	Write int `dynamodbav:"wr"`
	Read  int `dynamodbav:"rd"`
}

// DefaultShards are the numbers of shards unless the config item says otherwise.
const DefaultShards = 8

// ShardOf is the shard of an id, out of n.
func ShardOf(id string, n int) int {
	h := fnv.New32a()
	h.Write([]byte(id))
	return int(h.Sum32() % uint32(n)) // n is a small positive count
}

// Index sets the index attributes: the marker of an active run, the summary key of a finished one.
func (r *Run) Index(m Marker, shards Shards) {
	key := r.Key()
	if r.State().Terminal() {
		r.DueP, r.DueA = "", ""
		if r.Leaves() {
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

// DueKey is the place of a marker of this run. Runs that wait for a slot lie together, by partition.
func (r *Run) DueKey(m Marker, shards Shards) DueKey {
	key := r.Key()
	if m.Kind == Slotless {
		p := r.Partition()
		return DueKey{
			DuePartition(key.Environment, Slotless, ShardOf(string(p.Queue)+":"+p.Hash, shards.Write)),
			fmt.Sprintf("%s:%s:%013d", p.Queue, p.Hash, m.At),
		}
	}
	return m.Key(key.Environment, ShardOf(string(key.RunID), shards.Write), runlane.QueueName(r.Queue))
}

// mark sets the run's index attributes: its new marker, or the one that the commit leaves as it is.
func (c *Change) mark(run *Run) {
	at, keep := c.markerAfter(run)
	run.Index(at, c.Shards)
	if keep && c.Before != nil && !c.Projected.Status.Terminal() {
		run.DueP, run.DueA = c.Before.DueP, c.Before.DueA
	}
}

// markerAfter is the marker table of the layout: the marker that a commit leaves on an active run. keep means
// unchanged.
func (c *Change) markerAfter(run *Run) (after Marker, keep bool) {
	var before Marker
	if c.Before != nil {
		before = c.Before.Marker()
	}
	due, _ := run.RunnableAt()
	switch status := run.State(); {
	case status.Waiting():
		if c.resumes() && c.Queue.Bounded() {
			return Marker{Slotless, due}, false // where a hand-over looks
		}
		return Marker{Waiting, run.RunAt}, false
	case status == runlane.StatusQueued:
		if c.Queue.Bounded() && !c.Reserves() {
			return Marker{Slotless, due}, false
		}
		_, requested := c.Events[len(c.Events)-1].Body.(*runlane.RunDeliveryRequested)
		if pending := c.Initial.ClaimUntil.IsZero() && !c.Initial.Published; requested && pending {
			return Marker{Unpublished, run.UpdatedAt}, false
		}
		return Marker{Deliverable, due}, false
	case status.Owned():
		if !Claims(c.Transition) {
			return before, true // a heartbeat or a request: a marker may be too early
		}
		if c.ByWakeup && (before.Kind == Deliverable || before.Kind == Waiting) && before.At <= run.LeaseUntil {
			return before, true
		}
		return Marker{Leased, run.LeaseUntil}, false
	default:
		return before, true
	}
}

// RunnableAt is when a worker may take the run; ok is false if time alone does not make it runnable.
func (r *Run) RunnableAt() (since Millis, ok bool) {
	return runlane.RunnableSince(r.State(), r.UpdatedAt, r.RunAt, r.LeaseUntil, 0)
}

// DispatchableAt is when a run of a bounded queue needs a slot: a queued one as soon as it has no live reservation, any
// other when it is runnable.
func (r *Run) DispatchableAt() (since Millis, ok bool) {
	since, ok = r.RunnableAt()
	if r.State() == runlane.StatusQueued {
		since = max(since, r.DispatchExpiresAt)
	}
	return since, ok
}

// Memory is the text by which a store remembers a row.
func (r DueRow) Memory() string { return string(r.Run) + " " + r.Key.Partition + " " + r.Key.Sort }

// DueRow is an entry of the index due.
type DueRow struct {
	Run    runlane.RunID
	Key    DueKey
	Marker Marker
	Queue  runlane.QueueName
}

// ParseDueRow reads an entry of the index due.
func ParseDueRow(it item.Item) (DueRow, bool) {
	row := DueRow{Key: DueKey{item.TextOf(it[AttrDueP]), item.TextOf(it[AttrDueA])}}
	key, ok1 := ParseRunPK(item.TextOf(it[item.PK]))
	m, queue, ok2 := row.Key.Parse()
	row.Run, row.Marker, row.Queue = key.RunID, m, queue
	return row, ok1 && ok2
}

// Partition is the group that a limit counts: the runs of one concurrency key, or of a queue if there are no keys.
type Partition struct {
	Environment runlane.Environment
	Queue       runlane.QueueName
	Hash        string // of the concurrency key
}

// PK is the partition key of the partition's slots.
func (p Partition) PK() string {
	return p.Environment.Name() + ":slot:" + string(p.Queue) + ":" + p.Hash
}
