package rows

import (
	"maps"
	"reflect"
	"strings"
	"sync"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/dynamostore/internal/item"
	"github.com/runlane/runlane-go/lane"
)

// Change is one logical commit of a run: core's projection, how the store has to treat it, and what was read for it.
type Change struct {
	*lane.Transition
	Before     *Run   // nil for a creation
	LeaseToken string // fences owner writes
	Initial    lane.InitialOutbox
	ByWakeup   bool
	Owners     []Owner    // of a creation
	Slot       SlotChange // the slot that it takes; the run item tells which one it gives up

	WithoutSlot bool // repeated without the slot, because another run took it

	ID         string // of this very commit: a repetition has another one
	ClaimToken string // of rows that are claimed from the beginning
	Shards     Shards
	FirstSent  Millis // when the row that a delivery request replaces was first published; 0: none was
}

// Built are the writes of a commit and their content.
type Built struct {
	Writes []item.Write
	Run    *Run
	Log    *Log
	ids    []string // of the log item's delivery rows

	Slot  SlotChange
	slots int // the index of the first write about slots: they come last
}

// Every commit begins with the run and the log item. Owners come next, in the order of the change, then payload and
// output, then slots.
const (
	runWrite   = 0
	firstOwner = 2
)

// Build makes the writes of one commit: run, log, owners, bulk, slots. It reads nothing; the result is sent again
// unchanged.
func Build(c *Change) (*Built, error) {
	run := Projected(c.Transition, c.Before)
	bulk, err := run.placeBulk(c.Transition)
	if err != nil {
		return nil, err
	}
	log, err := c.buildLog()
	if err != nil {
		return nil, err
	}
	b := &Built{Run: run, Log: log}
	for i := range log.Deliveries {
		b.ids = append(b.ids, OutboxID(c.Projected.ID, c.ExpectedSequence+1, i))
	}
	run.latestDelivery(c, len(log.Deliveries))
	b.Slot = c.settleSlot(run)
	at, keep := c.markerAfter(run)
	run.Index(at, c.Shards)
	if keep && c.Before != nil && !c.Projected.Status.Terminal() {
		run.DueP, run.DueA = c.Before.DueP, c.Before.DueA
	}
	if err := run.Marshal(); err != nil {
		return nil, err
	}
	logRaw, err := Marshal(log)
	if err != nil {
		return nil, err
	}
	b.Writes = []item.Write{{After: run.Raw, Condition: item.Absent}, {After: logRaw, Condition: item.Absent}}
	if c.Before != nil {
		keepUnknown(run.Raw, c.Before.Raw)
		b.Writes[runWrite].Before = c.Before.Raw
		b.Writes[runWrite].Condition = c.expected()
	}
	if err := b.put(c, bulk); err != nil {
		return nil, err
	}
	slots, err := b.Slot.Writes()
	b.slots = len(b.Writes)
	b.Writes = append(b.Writes, slots...)
	return b, err
}

// put adds owners, payload and output.
func (b *Built) put(c *Change, bulk []Bulk) error {
	for _, owner := range c.Owners {
		owner.Commit = c.ID
		write, err := owner.write()
		if err != nil {
			return err
		}
		b.Writes = append(b.Writes, write)
	}
	for _, one := range bulk {
		one.Commit = c.ID
		raw, err := Marshal(one)
		if err != nil {
			return err
		}
		b.Writes = append(b.Writes, item.Write{After: raw, Condition: item.Absent})
	}
	return nil
}

// Refusal is what prevented a commit.
type Refusal struct {
	lost  []item.Lost
	slots int // the index of the first write about slots
}

// Refusal is what prevented the commit.
func (b *Built) Refusal(lost []item.Lost) *Refusal { return &Refusal{lost, b.slots} }

// Run is the run item that the commit did not expect; nil if its condition held or there is no item.
func (r *Refusal) Run() item.Item { return item.OldOf(r.lost, runWrite) }

// Owner is the item that the write of an owner found; failed tells that its condition did not hold, whether there is an
// item or not.
func (r *Refusal) Owner(i int) (met item.Item, failed bool) {
	for _, l := range r.lost {
		if l.Index == firstOwner+i {
			return l.Old, true
		}
	}
	return nil, false
}

// OnlySlots reports that the conditions of slots alone failed.
func (r *Refusal) OnlySlots() bool {
	for _, l := range r.lost {
		if l.Index < r.slots {
			return false
		}
	}
	return true
}

// OnlyMarkerMoved reports that run, sequence and lease are as the change expects: only the marker moved meanwhile.
func (c *Change) OnlyMarkerMoved(current item.Item) bool {
	return c.Before != nil && SameRun(c.Transition, current) && item.Number(current["sq"]) == c.ExpectedSequence &&
		(c.LeaseToken == "" || item.TextOf(current["lt"]) == c.LeaseToken)
}

// SameRun reports that the item is of the run that the transition changes. Once that run is pruned, another may have
// its id, and be at the same sequence under the same marker; it was created at another instant.
func SameRun(t *lane.Transition, current item.Item) bool {
	return item.Number(current["ca"]) == int64(ToMillis(t.Projected.CreatedAt))
}

// ExpectedBy reports that this is the run that the transition changes, at the expected sequence.
func (r *Run) ExpectedBy(t *lane.Transition) bool {
	return r.Sequence == t.ExpectedSequence && r.CreatedAt == ToMillis(t.Projected.CreatedAt)
}

// RequestsDelivery reports a change that brings a delivery row.
func (c *Change) RequestsDelivery() bool {
	for _, e := range c.Events {
		if _, ok := e.Body.(*runlane.RunDeliveryRequested); ok {
			return true
		}
	}
	return false
}

// settleSlot decides which slot the run names after the commit, and what happens to the slot that it named before. The
// run item decides this, whatever the queue's policy is by now.
func (c *Change) settleSlot(run *Run) SlotChange {
	switch {
	case c.Slot.Put != nil:
		run.Slot = c.Slot.Put.Number() + 1
		return c.Slot
	case c.Before == nil || c.Before.Slot == 0:
		return SlotChange{}
	case lane.HoldsSlot(c.Projected) && c.Slot.Delete == nil:
		run.Slot = c.Before.Slot
		return SlotChange{}
	case c.WithoutSlot:
		return SlotChange{}
	default:
		own := c.Before.HeldSlot()
		return SlotChange{Delete: &own, Optional: true}
	}
}

// expected is the condition on an existing run: its sequence and creation, the owner's token, and the marker as read,
// because an inspection moves the marker without changing the sequence.
func (c *Change) expected() item.Condition {
	cond := item.Equal("sq", item.Num(c.ExpectedSequence)).And(
		item.Equal("ca", item.Num(int64(ToMillis(c.Projected.CreatedAt)))),
	)
	if c.LeaseToken != "" {
		cond = cond.And(item.Equal("lt", item.Text(c.LeaseToken)))
	}
	return cond.And(item.Equal(AttrDueP, item.Text(c.Before.DueP)), item.Equal(AttrDueA, item.Text(c.Before.DueA)))
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

// Claims reports a transition that claims the run.
func Claims(t *lane.Transition) bool {
	for _, e := range t.Events {
		if _, ok := e.Body.(*runlane.RunLeaseClaimed); ok {
			return true
		}
	}
	return false
}

// buildLog makes the commit's log item with the delivery rows of its events.
func (c *Change) buildLog() (*Log, error) {
	events, err := encodeEvents(c.Transition)
	if err != nil {
		return nil, err
	}
	log := &Log{PK: RunPK(c.Key()), SK: LogSK(c.ExpectedSequence + 1), Commit: c.ID, Events: events}
	for _, e := range c.Events {
		request, ok := e.Body.(*runlane.RunDeliveryRequested)
		if !ok {
			continue
		}
		row := newDelivery(&request.Delivery, c, ToMillis(e.OccurredAt))
		if c.FirstSent != 0 { // redeliveries grow apart from there
			row.FirstSent = c.FirstSent
		}
		if row.State() == lane.OutboxPending && row.AvailableAt <= ToMillis(e.OccurredAt) {
			log.Relay = "1"
		}
		log.Deliveries = append(log.Deliveries, row)
	}
	return log, nil
}

func newDelivery(d *runlane.Delivery, c *Change, occurredAt Millis) Delivery {
	row := Delivery{
		Status:      string(lane.OutboxPending),
		AvailableAt: ToMillis(d.AvailableAt),
		RequestedAt: ToMillis(d.RequestedAt),
		Group:       c.Projected.ConcurrencyKey,
		Trace:       c.Projected.TraceCarrier,
	}
	switch due := row.AvailableAt <= occurredAt; {
	case c.Initial.Published && due:
		row.Status, row.Published, row.FirstSent = string(lane.OutboxPublished), occurredAt, occurredAt
	case !c.Initial.ClaimUntil.IsZero() && due:
		row.Status, row.ClaimUntil, row.Token = string(lane.OutboxClaimed), ToMillis(c.Initial.ClaimUntil), c.ClaimToken
	}
	return row
}

// latestDelivery names the row that may be claimed. A later request, a claim of the run and its end supersede it; while
// a run waits for a slot, no row may be claimed.
func (r *Run) latestDelivery(c *Change, rows int) {
	switch {
	case rows > 0:
		r.DeliveryLog, r.DeliveryIndex = c.ExpectedSequence+1, rows-1
	case c.Before != nil && (r.State() == runlane.StatusQueued || r.State() == runlane.StatusScheduled):
		r.DeliveryLog, r.DeliveryIndex = c.Before.DeliveryLog, c.Before.DeliveryIndex
	}
	slotless := c.Queue.Bounded() && !c.Reserves() && r.State() == runlane.StatusQueued
	if slotless || r.State() != runlane.StatusQueued && r.State() != runlane.StatusScheduled {
		r.DeliveryLog, r.DeliveryIndex = 0, 0
	}
}

// Result is the commit as the caller gets it: exactly as reads will return it.
func (b *Built) Result(c *Change) *lane.Commit {
	out := &lane.Commit{Run: c.Projected}
	for i, e := range c.Events {
		sequence := c.ExpectedSequence + 1 + int64(i)
		out.Events = append(out.Events, runlane.EventRecord{
			ID:       eventID(c.Projected.ID, sequence),
			Sequence: sequence,
			Event:    e,
		})
	}
	for i := range b.Log.Deliveries {
		row := b.Log.Deliveries[i]
		m := row.Message(c.Key(), c.Projected.Queue, b.ids[i])
		m.Wakeup.TraceCarrier = maps.Clone(m.Wakeup.TraceCarrier)
		if m.ClaimToken != "" {
			m.ClaimToken = TokenOf(row.Token, b.Run)
		}
		out.Outbox = append(out.Outbox, m)
	}
	return out
}

// AtRest is a copy of the transition in the form that is stored and returned. It shares nothing with the caller's.
func AtRest(t *lane.Transition) *lane.Transition {
	out := *t
	out.Projected = lane.RunAtRest(t.Projected)
	out.Events = make([]runlane.Event, len(t.Events))
	for i, e := range t.Events {
		out.Events[i] = lane.EventAtRest(e)
	}
	return &out
}

// keepUnknown carries over attributes that a newer version wrote.
func keepUnknown(after, before item.Item) {
	known := runAttributes()
	for name, v := range before {
		if _, ok := known[name]; !ok {
			after[name] = v
		}
	}
}

var runAttributes = sync.OnceValue(func() map[string]struct{} {
	names := map[string]struct{}{}
	t := reflect.TypeFor[Run]()
	for i := range t.NumField() {
		if tag := t.Field(i).Tag.Get("dynamodbav"); tag != "" {
			name, _, _ := strings.Cut(tag, ",")
			names[name] = struct{}{}
		}
	}
	return names
})
