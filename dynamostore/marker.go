package dynamostore

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// markerKind says who has to look at an active run (docs/layout.md, Indexes).
type markerKind string

const (
	deliverable markerKind = "q" // queued, its wakeup handed over or in a publisher's hands; and what was claimed from there
	unpublished markerKind = "o" // its delivery is still to be handed over
	deadLetter  markerKind = "x" // its delivery was given up
	waiting     markerKind = "w" // waits for a time
	slotless    markerKind = "d" // of a bounded queue, waits for a slot; ordered by partition, not by time
	parked      markerKind = "p" // queued and published, looked at once already
	leased      markerKind = "l" // owned, and claimed elsewhere than from q or w, or looked at once already
)

// marker is a run's place in the index due: who looks, and the true moment from which on there is something to see. It is never
// a moment at which somebody plans to look: patience is the reader's.
type marker struct {
	kind markerKind
	at   millis
}

// dueKey are the index attributes of a marker.
type dueKey struct{ partition, sort string }

func (m marker) key(e runlane.Environment, shard int, queue runlane.QueueName) dueKey {
	return dueKey{duePartition(e, m.kind, shard), fmt.Sprintf("%013d:%s", m.at, queue)}
}

// entry is all that is known of an item with this marker by the marker alone.
func (k dueKey) entry() item { return item{attrDueP: text(k.partition), attrDueA: text(k.sort)} }

func duePartition(e runlane.Environment, kind markerKind, shard int) string {
	return e.Name() + ":" + string(kind) + ":" + strconv.Itoa(shard)
}

func donePartition(e runlane.Environment, status runlane.Status, shard int) string {
	return e.Name() + ":" + string(status) + ":" + strconv.Itoa(shard)
}

// markerUpdate moves the marker of a run, if nothing about the run has changed since it was read.
func markerUpdate(pk string, sequence int64, from, to dueKey, before item) *update {
	unchanged := equal("sq", num(sequence)).and(equal(attrDueP, text(from.partition)), equal(attrDueA, text(from.sort)))
	return &update{
		key: itemKey(pk, skRun), expression: "SET #dp = :dp, #da = :da",
		values: item{":dp": text(to.partition), ":da": text(to.sort)}, condition: unchanged, before: before,
		wrote: func(now item) bool {
			return number(now["sq"]) == sequence && textOf(now[attrDueP]) == to.partition && textOf(now[attrDueA]) == to.sort
		},
	}
}

// parse is the inverse of marker.key.
func (k dueKey) parse() (m marker, queue runlane.QueueName, ok bool) {
	partition, sort := strings.Split(k.partition, ":"), strings.Split(k.sort, ":")
	switch {
	case len(partition) == 3 && markerKind(partition[1]) == slotless && len(sort) == 3:
		return marker{slotless, parseMillis(sort[2])}, runlane.QueueName(sort[0]), true
	case len(partition) == 3 && len(sort) == 2:
		return marker{markerKind(partition[1]), parseMillis(sort[0])}, runlane.QueueName(sort[1]), true
	default:
		return marker{}, "", false
	}
}

// cutPartition takes a slotless marker's moment apart: queue and hash of the concurrency key.
func cutPartition(sort string) (queue runlane.QueueName, hash string, ok bool) {
	parts := strings.Split(sort, ":")
	if len(parts) != 3 {
		return "", "", false
	}
	return runlane.QueueName(parts[0]), parts[1], true
}

// markerAfter is the marker table of the layout: where a commit leaves an active run. keep means unchanged.
func markerAfter(t *lane.Transition, before marker, birth lane.OutboxBirth, byWakeup bool) (after marker, keep bool) {
	run := t.Projected
	dueAt, _ := lane.RunnableAt(run)
	switch run.Status {
	case runlane.StatusScheduled, runlane.StatusRetrying, runlane.StatusReleased:
		return marker{waiting, toMillis(run.RunAt)}, false
	case runlane.StatusQueued:
		if t.Queue.Bounded() && !t.Reserves() {
			return marker{slotless, toMillis(dueAt)}, false
		}
		if _, requested := t.Events[len(t.Events)-1].Body.(*runlane.RunDeliveryRequested); requested && bornPending(birth) {
			return marker{unpublished, toMillis(run.UpdatedAt)}, false
		}
		return marker{deliverable, toMillis(dueAt)}, false
	case runlane.StatusRunning, runlane.StatusCancellationRequested:
		if !claims(t) {
			return before, true // a heartbeat or a request: too early is allowed
		}
		leaseEnd := toMillis(run.Lease.ExpiresAt)
		if byWakeup && (before.kind == deliverable || before.kind == waiting) && before.at <= leaseEnd {
			return before, true
		}
		return marker{leased, leaseEnd}, false
	default:
		return before, true
	}
}

func bornPending(b lane.OutboxBirth) bool { return b.ClaimUntil.IsZero() && !b.Published }

func claims(t *lane.Transition) bool {
	for _, e := range t.Events {
		if _, ok := e.Body.(*runlane.RunLeaseClaimed); ok {
			return true
		}
	}
	return false
}
