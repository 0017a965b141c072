package dynamostore

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"maps"
	"reflect"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// change is one logical commit of a run: what core projected, and how the store has to treat it.
type change struct {
	*lane.Transition
	before     *runItem // nil for a creation
	leaseToken string   // fences owner writes
	birth      lane.OutboxBirth
	byWakeup   bool
	owners     []ownerItem // of a creation
	slot       slotChange  // what it takes; what it gives up follows from the run item

	withoutSlot bool // repeated without the slot, which was somebody else's by now
}

// commit writes the change: run, log, owners, bulk, in this order, all or none. Conditions that fail are returned for the caller
// to classify; a marker that was moved meanwhile is no conflict for the caller and is repeated here on the item as it is now.
func (s *Store) commit(ctx context.Context, c *change) (*lane.Commit, []lost, error) {
	const maxMarkerRaces = 8
	c.Transition = atRest(c.Transition)
	for race := 1; ; race++ {
		members, written, err := s.build(ctx, c)
		if err != nil {
			return nil, nil, err
		}
		operation := string(c.Events[len(c.Events)-1].Type())
		failed, err := s.transact(ctx, operation, written.log.Commit, members, func(ctx context.Context, old item) (bool, error) {
			return s.wrote(ctx, written.log, old)
		})
		if err != nil {
			return nil, nil, err
		}
		if len(failed) == 0 {
			s.snapshots.put(written.run.PK, written.run)
			s.follow(c, written)
			return written.commit(c), nil, nil
		}
		for i := range failed {
			failed[i].slot = failed[i].index >= written.slots
		}
		if onlySlots(failed) && written.optional {
			c.withoutSlot = true
			continue
		}
		current := oldOf(failed, runMember)
		if c.before == nil || current == nil || race == maxMarkerRaces || !onlyMarkerMoved(c, current) {
			return nil, failed, nil
		}
		if c.before, err = unmarshalRun(current); err != nil {
			return nil, nil, err
		}
	}
}

// onlyMarkerMoved reports that sequence and lease are what the change expects: a look moved the marker in between.
func onlyMarkerMoved(c *change, current item) bool {
	return number(current["sq"]) == c.ExpectedSequence && (c.leaseToken == "" || textOf(current["lt"]) == c.leaseToken)
}

// written is what a commit puts down.
type written struct {
	run *runItem
	log *logItem
	ids []string // of the log item's delivery rows

	slot     slotChange
	slots    int  // the index of the first member about slots: they come last
	optional bool // the commit may go on without them
}

// build makes the members of one commit. It is built once and re-sent unchanged; a repetition is a new commit with a new id.
func (s *Store) build(ctx context.Context, c *change) ([]member, *written, error) {
	shards, err := s.shardCounts(ctx, c.Projected.Environment)
	if err != nil {
		return nil, nil, err
	}
	run := projected(c.Transition, c.before)
	bulk, err := run.placeBulk(c.Transition)
	if err != nil {
		return nil, nil, err
	}
	log, err := s.buildLog(ctx, c)
	if err != nil {
		return nil, nil, err
	}
	w := &written{run: run, log: log}
	first := c.ExpectedSequence + 1
	for i := range log.Deliveries {
		w.ids = append(w.ids, outboxID(c.Projected.ID, first, i))
	}
	run.latestDelivery(c, len(log.Deliveries))
	slot := c.slotChange(run)
	at, keep := markerAfter(c.Transition, c.markerBefore(), c.birth, c.byWakeup)
	run.index(at, shards)
	if keep && c.before != nil && !c.Projected.Status.Terminal() {
		run.DueP, run.DueA = c.before.DueP, c.before.DueA
	}
	if err := run.marshal(); err != nil {
		return nil, nil, err
	}
	logRaw, err := marshalItem(log)
	if err != nil {
		return nil, nil, err
	}
	members := []member{{after: run.raw, condition: absent}, {after: logRaw, condition: absent}}
	if c.before != nil {
		keepUnknown(run.raw, c.before.raw)
		members[runMember].before = c.before.raw
		members[runMember].condition = c.expected()
	}
	for _, owner := range c.owners {
		owner.Commit = log.Commit
		m, err := owner.member()
		if err != nil {
			return nil, nil, err
		}
		members = append(members, m)
	}
	for _, b := range bulk {
		b.Commit = log.Commit
		raw, err := marshalItem(b)
		if err != nil {
			return nil, nil, err
		}
		members = append(members, member{after: raw, condition: absent})
	}
	slots, err := slot.members()
	w.slot, w.slots, w.optional = slot, len(members), slot.optional
	return append(members, slots...), w, err
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
func (s *Store) buildLog(ctx context.Context, c *change) (*logItem, error) {
	events, err := encodeEvents(c.Transition)
	if err != nil {
		return nil, err
	}
	log := &logItem{PK: runPK(c.Key()), SK: logSK(c.ExpectedSequence + 1), Commit: randomID(), Events: events}
	for _, e := range c.Events {
		request, ok := e.Body.(*runlane.RunDeliveryRequested)
		if !ok {
			continue
		}
		row := newDelivery(&request.Delivery, c, toMillis(e.OccurredAt))
		sent, err := s.firstSent(ctx, c)
		if err != nil {
			return nil, err
		}
		if sent != 0 {
			row.FirstSent = sent
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
		row.Status, row.ClaimUntil, row.Token = string(lane.OutboxClaimed), toMillis(c.birth.ClaimUntil), randomID()
	}
	return row
}

// firstSent carries the first publication of a queued run's row to the one that replaces it, so that the distance of
// redeliveries grows.
func (s *Store) firstSent(ctx context.Context, c *change) (millis, error) {
	if c.before == nil || c.before.status() != runlane.StatusQueued || c.before.DeliveryLog == 0 {
		return 0, nil
	}
	row, err := s.readDelivery(ctx, c.Key(), c.before.DeliveryLog, c.before.DeliveryIndex)
	if err != nil || row == nil {
		return 0, err
	}
	return row.FirstSent, nil
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
func (w *written) commit(c *change) *lane.Commit {
	out := &lane.Commit{Run: c.Projected}
	for i, e := range c.Events {
		sequence := c.ExpectedSequence + 1 + int64(i)
		out.Events = append(out.Events, runlane.EventRecord{ID: eventID(c.Projected.ID, sequence), Sequence: sequence, Event: e})
	}
	for i := range w.log.Deliveries {
		row := w.log.Deliveries[i]
		m := row.message(c.Key(), c.Projected.Queue, w.ids[i])
		m.Wakeup.TraceCarrier = maps.Clone(m.Wakeup.TraceCarrier)
		if m.ClaimToken != "" {
			m.ClaimToken = claimToken(row.Token, w.run)
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

// wrote reports whether the log item of this sequence is ours. old is its image where one came with the answer.
func (s *Store) wrote(ctx context.Context, log *logItem, old item) (bool, error) {
	if old == nil {
		var err error
		if old, err = s.getItem(ctx, "settle commit", log.PK, log.SK); err != nil {
			return false, err
		}
	}
	return textOf(old["ci"]) == log.Commit, nil
}

// getItem reads one item strongly; nil when absent.
func (s *Store) getItem(ctx context.Context, operation, pk, sk string) (item, error) {
	var out *dynamodb.GetItemOutput
	err := s.send(ctx, func(ctx context.Context) (err error) {
		out, err = s.client.GetItem(ctx, &dynamodb.GetItemInput{TableName: &s.table, Key: itemKey(pk, sk), ConsistentRead: aws.Bool(true)})
		return err
	})
	if err != nil {
		s.used(ctx, operation, Usage{Requests: 1})
		return nil, s.failure(ctx, operation, err)
	}
	s.used(ctx, operation, Usage{Requests: 1, ReadUnits: readUnits(itemSize(out.Item), true)})
	if len(out.Item) == 0 {
		return nil, nil
	}
	return out.Item, nil
}

// snapshot is the run item at the given sequence, from a recent read or commit, else read now. It may be at another sequence:
// the caller judges. nil: there is no run.
func (s *Store) snapshot(ctx context.Context, key lane.RunKey, sequence int64) (*runItem, error) {
	if known, ok := s.snapshots.get(runPK(key)); ok && known.Sequence == sequence {
		return known, nil
	}
	return s.readRun(ctx, key)
}

func (s *Store) readRun(ctx context.Context, key lane.RunKey) (*runItem, error) {
	raw, err := s.getItem(ctx, "read run", runPK(key), skRun)
	if err != nil || raw == nil {
		return nil, err
	}
	r, err := unmarshalRun(raw)
	if err == nil {
		s.snapshots.put(r.PK, r)
	}
	return r, err
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

// randomID is 128 bits in hex: commit ids (also the request token, at most 36 characters) and claim tokens.
func randomID() string {
	var b [16]byte
	rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}
