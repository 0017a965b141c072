package dynamostore

import (
	"maps"
	"reflect"
	"strings"
	"sync"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// change is one logical commit of a run: what core projected, how the store has to treat it, and what was read for it.
type change struct {
	*lane.Transition
	before     *runItem // nil for a creation
	leaseToken string   // fences owner writes
	birth      lane.OutboxBirth
	byWakeup   bool
	owners     []ownerItem // of a creation
	slot       slotChange  // what it takes; what it gives up follows from the run item

	withoutSlot bool // repeated without the slot, which was another run's by now

	id        string // of this very commit: a repetition has another one
	claim     string // the claim token of rows that are claimed from the beginning
	shards    shardCounts
	firstSent millis // when the row that a delivery request replaces was first published; 0: none was
}

// built are the writes of a commit, and what they put down.
type built struct {
	writes []member
	run    *runItem
	log    *logItem
	ids    []string // of the log item's delivery rows

	slot  slotChange
	slots int // the index of the first write about slots: they come last
}

// Every commit begins with the run and the log item. Owners come next, in the order of the change, then payload and output, then slots.
const (
	runWrite   = 0
	firstOwner = 2
)

// build makes the writes of one commit: run, log, owners, bulk, slots. It reads nothing; what is built is sent again unchanged.
func build(c *change) (*built, error) {
	run := projected(c.Transition, c.before)
	bulk, err := run.placeBulk(c.Transition)
	if err != nil {
		return nil, err
	}
	log, err := c.buildLog()
	if err != nil {
		return nil, err
	}
	b := &built{run: run, log: log}
	for i := range log.Deliveries {
		b.ids = append(b.ids, outboxID(c.Projected.ID, c.ExpectedSequence+1, i))
	}
	run.latestDelivery(c, len(log.Deliveries))
	b.slot = c.slotChange(run)
	at, keep := markerAfter(c.Transition, c.markerBefore(), c.birth, c.byWakeup)
	run.index(at, c.shards)
	if keep && c.before != nil && !c.Projected.Status.Terminal() {
		run.DueP, run.DueA = c.before.DueP, c.before.DueA
	}
	if err := run.marshal(); err != nil {
		return nil, err
	}
	logRaw, err := marshalItem(log)
	if err != nil {
		return nil, err
	}
	b.writes = []member{{after: run.raw, condition: absent}, {after: logRaw, condition: absent}}
	if c.before != nil {
		keepUnknown(run.raw, c.before.raw)
		b.writes[runWrite].before = c.before.raw
		b.writes[runWrite].condition = c.expected()
	}
	if err := b.put(c, bulk); err != nil {
		return nil, err
	}
	slots, err := b.slot.members()
	b.slots = len(b.writes)
	b.writes = append(b.writes, slots...)
	return b, err
}

// put adds owners, payload and output.
func (b *built) put(c *change, bulk []bulkItem) error {
	for _, owner := range c.owners {
		owner.Commit = c.id
		write, err := owner.member()
		if err != nil {
			return err
		}
		b.writes = append(b.writes, write)
	}
	for _, one := range bulk {
		one.Commit = c.id
		raw, err := marshalItem(one)
		if err != nil {
			return err
		}
		b.writes = append(b.writes, member{after: raw, condition: absent})
	}
	return nil
}

// refusal is what kept a commit from happening.
type refusal struct {
	lost  []lost
	slots int // the index of the first write about slots
}

func (b *built) refusal(lost []lost) *refusal { return &refusal{lost, b.slots} }

// run is the run item that the commit did not expect; nil where its condition held, or there is none.
func (r *refusal) run() item { return oldOf(r.lost, runWrite) }

// owner is the item that an owner of the change met; failed tells that its condition did not hold, be there an item or not.
func (r *refusal) owner(i int) (met item, failed bool) {
	for _, l := range r.lost {
		if l.index == firstOwner+i {
			return l.old, true
		}
	}
	return nil, false
}

// onlySlots reports that nothing but slots was in the way.
func (r *refusal) onlySlots() bool {
	for _, l := range r.lost {
		if l.index < r.slots {
			return false
		}
	}
	return true
}

// onlyMarkerMoved reports that sequence and lease are what the change expects: the marker was moved in between.
func (c *change) onlyMarkerMoved(current item) bool {
	return c.before != nil && number(current["sq"]) == c.ExpectedSequence && (c.leaseToken == "" || textOf(current["lt"]) == c.leaseToken)
}

// requestsDelivery reports a change that brings a delivery row.
func (c *change) requestsDelivery() bool {
	for _, e := range c.Events {
		if _, ok := e.Body.(*runlane.RunDeliveryRequested); ok {
			return true
		}
	}
	return false
}

// slotChange settles which slot the run names afterwards, and what happens to the one it named. That follows the run item,
// whatever the queue's policy is by now.
func (c *change) slotChange(run *runItem) slotChange {
	switch {
	case c.slot.put != nil:
		run.Slot = c.slot.put.number() + 1
		return c.slot
	case c.before == nil || c.before.Slot == 0:
		return slotChange{}
	case lane.HoldsSlot(c.Projected) && c.slot.delete == nil:
		run.Slot = c.before.Slot
		return slotChange{}
	case c.withoutSlot:
		return slotChange{}
	default:
		own := c.before.slot()
		return slotChange{delete: &own, optional: true}
	}
}

// expected is the condition on an existing run: its sequence, the owner's token, and the marker as read, because a look moves
// that without changing the sequence.
func (c *change) expected() condition {
	cond := equal("sq", num(c.ExpectedSequence))
	if c.leaseToken != "" {
		cond = cond.and(equal("lt", text(c.leaseToken)))
	}
	return cond.and(equal(attrDueP, text(c.before.DueP)), equal(attrDueA, text(c.before.DueA)))
}

func (c *change) markerBefore() marker {
	if c.before == nil {
		return marker{}
	}
	return c.before.marker()
}

// buildLog makes the commit's log item with the delivery rows of its events.
func (c *change) buildLog() (*logItem, error) {
	events, err := encodeEvents(c.Transition)
	if err != nil {
		return nil, err
	}
	log := &logItem{PK: runPK(c.Key()), SK: logSK(c.ExpectedSequence + 1), Commit: c.id, Events: events}
	for _, e := range c.Events {
		request, ok := e.Body.(*runlane.RunDeliveryRequested)
		if !ok {
			continue
		}
		row := newDelivery(&request.Delivery, c, toMillis(e.OccurredAt))
		if c.firstSent != 0 { // the distance of redeliveries grows from there
			row.FirstSent = c.firstSent
		}
		if row.status() == lane.OutboxPending && row.AvailableAt <= toMillis(e.OccurredAt) {
			log.Relay = "1"
		}
		log.Deliveries = append(log.Deliveries, row)
	}
	return log, nil
}

func newDelivery(d *runlane.Delivery, c *change, occurredAt millis) delivery {
	row := delivery{
		Status: string(lane.OutboxPending), AvailableAt: toMillis(d.AvailableAt), RequestedAt: toMillis(d.RequestedAt),
		Group: c.Projected.ConcurrencyKey, Trace: c.Projected.TraceCarrier,
	}
	switch due := row.AvailableAt <= occurredAt; {
	case c.birth.Published && due:
		row.Status, row.Published, row.FirstSent = string(lane.OutboxPublished), occurredAt, occurredAt
	case !c.birth.ClaimUntil.IsZero() && due:
		row.Status, row.ClaimUntil, row.Token = string(lane.OutboxClaimed), toMillis(c.birth.ClaimUntil), c.claim
	}
	return row
}

// latestDelivery names the row that may be claimed. A later request, a claim of the run and its end supersede it; of a run that
// waits for a slot none may be.
func (r *runItem) latestDelivery(c *change, rows int) {
	switch {
	case rows > 0:
		r.DeliveryLog, r.DeliveryIndex = c.ExpectedSequence+1, rows-1
	case c.before != nil && (r.status() == runlane.StatusQueued || r.status() == runlane.StatusScheduled):
		r.DeliveryLog, r.DeliveryIndex = c.before.DeliveryLog, c.before.DeliveryIndex
	}
	slotless := c.Queue.Bounded() && !c.Reserves() && r.status() == runlane.StatusQueued
	if slotless || r.status() != runlane.StatusQueued && r.status() != runlane.StatusScheduled {
		r.DeliveryLog, r.DeliveryIndex = 0, 0
	}
}

// commit is what the caller gets: exactly what reads will return.
func (b *built) commit(c *change) *lane.Commit {
	out := &lane.Commit{Run: c.Projected}
	for i, e := range c.Events {
		sequence := c.ExpectedSequence + 1 + int64(i)
		out.Events = append(out.Events, runlane.EventRecord{ID: eventID(c.Projected.ID, sequence), Sequence: sequence, Event: e})
	}
	for i := range b.log.Deliveries {
		row := b.log.Deliveries[i]
		m := row.message(c.Key(), c.Projected.Queue, b.ids[i])
		m.Wakeup.TraceCarrier = maps.Clone(m.Wakeup.TraceCarrier)
		if m.ClaimToken != "" {
			m.ClaimToken = claimToken(row.Token, b.run)
		}
		out.Outbox = append(out.Outbox, m)
	}
	return out
}

// atRest is a copy of the transition in the form that is stored and returned, sharing nothing with the caller's.
func atRest(t *lane.Transition) *lane.Transition {
	out := *t
	out.Projected = lane.RunAtRest(t.Projected)
	out.Events = make([]runlane.Event, len(t.Events))
	for i, e := range t.Events {
		out.Events[i] = lane.EventAtRest(e)
	}
	return &out
}

// keepUnknown carries attributes that a newer version wrote.
func keepUnknown(after, before item) {
	known := runAttributes()
	for name, v := range before {
		if _, ok := known[name]; !ok {
			after[name] = v
		}
	}
}

var runAttributes = sync.OnceValue(func() map[string]struct{} {
	names := map[string]struct{}{}
	t := reflect.TypeFor[runItem]()
	for i := range t.NumField() {
		if tag := t.Field(i).Tag.Get("dynamodbav"); tag != "" {
			name, _, _ := strings.Cut(tag, ",")
			names[name] = struct{}{}
		}
	}
	return names
})
