package rows

import (
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/dynamostore/internal/item"
	"github.com/runlane/runlane-go/lane"
)

// Change is one commit of a run: core's projection, the store's conditions, and the items read for it.
type Change struct {
	*lane.Transition
	Before       *Run   // nil for a creation
	LeaseToken   string // fences owner writes
	Initial      lane.InitialOutbox
	ByWakeup     bool
	Owners       []Owner             // for a creation
	Slot         SlotChange          // the slot to take; the run item has the one to give up
	Signal       *lane.SignalCommand // stored with the commit
	Notification *NotifiedEnd        // the notification that the commit records
	Missing      []string            // calls that must still wait for ends
	Flow         *lane.FlowCheck     // the required state of the flow, for a node's creation
	Looked       *int64              // the number of signals on which the commit depends

	Replaced []byte // the payload that takes the place of the run's; nil: none does

	Beside []types.TransactWriteItem // the application's, for a creation

	WithoutSlot bool // repeated without the slot, which another run took

	ID         string // of this try: a repetition has its own
	ClaimToken string // of delivery rows that are created claimed
	Shards     Shards
	FirstSent  Millis // first publication of the row that a delivery request replaces; 0: none
}

type Built struct {
	Writes []item.Write
	Run    *Run
	Log    *Log
	Proof  item.Proof
	ids    []string // of the log item's delivery rows

	Slot  SlotChange
	slots int // index of the first slot write; these are last

	signal int // index of the signal's write; 0 for none
	calls  int // index of the first call or flow write; before the slots
}

// Every commit starts with the run and the log item, then owners in the order of the change, payload and output, and
// slots at the end.
const (
	runWrite   = 0
	firstOwner = 2
)

// Build returns the writes of one commit. It reads nothing, so the result can be sent again unchanged.
func Build(c *Change) (*Built, error) {
	b := &Built{}
	bulk, err := b.addRun(c)
	if err != nil {
		return nil, err
	}
	if err := b.addLog(c); err != nil {
		return nil, err
	}
	if err := b.addOwnersAndBulk(c, bulk); err != nil {
		return nil, err
	}
	if c.Signal != nil {
		if err := b.addSignal(c); err != nil {
			return nil, err
		}
	}
	b.addCalls(c)
	slots, err := b.Slot.Writes()
	b.slots = len(b.Writes)
	b.Writes = append(b.Writes, slots...)
	return b, err
}

func (b *Built) addRun(c *Change) (bulk []Bulk, err error) {
	run := Projected(c.Transition, c.Before)
	if bulk, err = run.placeBulk(c); err != nil {
		return nil, err
	}
	run.setLatestDelivery(c)
	b.Slot = c.settleSlot(run)
	if c.Signal != nil {
		run.Signals = c.Signal.Signal.Number
	}
	c.setMarker(run)
	if err := run.Marshal(); err != nil {
		return nil, err
	}
	write := item.Write{After: run.Raw, Condition: item.Absent}
	if c.Before != nil {
		keepUnknown(run.Raw, c.Before.Raw)
		write.Before, write.Condition = c.Before.Raw, c.expected()
	}
	b.Run, b.Writes = run, append(b.Writes, write)
	return bulk, nil
}

// Projected returns the item after a transition. Payload, output and counts come from before, nil for a creation; the
// caller sets delivery and index attributes.
func Projected(t *lane.Transition, before *Run) *Run {
	run := t.Projected
	r := &Run{
		PK:                RunPK(t.Key()),
		SK:                RunSK,
		Sequence:          run.EventSequence,
		Status:            string(run.Status),
		Task:              string(run.TaskID),
		Queue:             string(run.Queue),
		CreatedAt:         ToMillis(run.CreatedAt),
		UpdatedAt:         ToMillis(run.UpdatedAt),
		RunAt:             ToMillis(run.RunAt),
		StartedAt:         ToMillis(run.StartedAt),
		FinishedAt:        ToMillis(run.FinishedAt),
		DispatchedAt:      ToMillis(run.DispatchedAt),
		DispatchExpiresAt: ToMillis(run.DispatchExpiresAt),
		Attempts:          run.Counters.Attempts,
		Failures:          run.Counters.Failures,
		Retries:           run.Counters.Retries,
		Releases:          run.Counters.Releases,
		LeaseToken:        run.Lease.Token,
		LeaseWorker:       run.Lease.WorkerID,
		LeaseUntil:        ToMillis(run.Lease.ExpiresAt),
		ConcurrencyKey:    run.ConcurrencyKey,
		IdempotencyKey:    run.IdempotencyKey,
		Retention:         storedRetention(run.Retention),
		SingletonKey:      run.SingletonKey,
		Priority:          run.Priority,
		Trace:             run.TraceCarrier,
		Meta:              run.Meta,
	}
	r.keepSource(&run.Source)
	r.keepDebounced(run.Debounced)
	r.keepFailure(t, before)
	r.keepWait(run.Waiting)
	if before != nil {
		r.Payload, r.PayloadPlace, r.PayloadCommit = before.Payload, before.PayloadPlace, before.PayloadCommit
		r.Output, r.OutputPlace = before.Output, before.OutputPlace
		r.Signals, r.Calls = before.Signals, before.Calls
	}
	return r
}

func (b *Built) addLog(c *Change) (err error) {
	if b.Log, err = c.buildLog(); err != nil {
		return err
	}
	for i := range b.Log.Deliveries {
		b.ids = append(b.ids, OutboxID(c.Projected.ID, c.ExpectedSequence+1, i))
	}
	b.Proof = b.Log.proof()
	raw, err := Marshal(b.Log)
	b.Writes = append(b.Writes, item.Write{After: raw, Condition: item.Absent})
	return err
}

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
		if c.FirstSent != 0 { // the distance of redeliveries grows from there
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

func (b *Built) addOwnersAndBulk(c *Change, bulk []Bulk) error {
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
		condition := item.Absent
		if c.Replaced != nil { // the run item's condition guards it
			condition = item.Condition{}
		}
		b.Writes = append(b.Writes, item.Write{After: raw, Condition: condition})
	}
	return nil
}

func (b *Built) addSignal(c *Change) error {
	signal, err := NewSignal(c.Signal, c.ID)
	if err != nil {
		return err
	}
	put, err := signal.Put()
	b.signal, b.Writes = len(b.Writes), append(b.Writes, put)
	return err
}

func (b *Built) addCalls(c *Change) {
	b.calls = len(b.Writes)
	if c.Notification != nil {
		b.Writes = append(b.Writes, c.Notification.Ended.Notified(), c.Notification.Call.Counted())
	}
	if c.Flow != nil {
		b.Writes = append(b.Writes, checkFlowOpen(c.Projected.Environment, c.Flow))
	}
	// A transaction has each item once.
	for _, name := range slices.Compact(slices.Sorted(slices.Values(c.Missing))) {
		b.Writes = append(b.Writes, checkMissing(c.Key(), ToMillis(c.Projected.CreatedAt), name))
	}
}

type Refusal struct {
	lost   []item.Lost
	slots  int // index of the first slot write
	calls  int // index of the first call or flow write
	signal int
}

func (b *Built) Refusal(lost []item.Lost) *Refusal { return &Refusal{lost, b.slots, b.calls, b.signal} }

// Counted reports that a call is complete although ends had to be missing, or that the flow takes no run.
func (r *Refusal) Counted() bool {
	for _, l := range r.lost {
		if l.Index >= r.calls && l.Index < r.slots {
			return true
		}
	}
	return false
}

// Signal is the unexpected signal that is stored; nil for none.
func (r *Refusal) Signal() item.Item {
	if r.signal == 0 {
		return nil
	}
	return item.OldOf(r.lost, r.signal)
}

// Run is the unexpected run item; nil if its condition held or there is no item.
func (r *Refusal) Run() item.Item { return item.OldOf(r.lost, runWrite) }

// Owner is the item that an owner's write met, nil for none. failed is whether its condition failed.
func (r *Refusal) Owner(i int) (met item.Item, failed bool) {
	for _, l := range r.lost {
		if l.Index == firstOwner+i {
			return l.Old, true
		}
	}
	return nil, false
}

func (r *Refusal) OnlySlots() bool {
	for _, l := range r.lost {
		if l.Index < r.slots {
			return false
		}
	}
	return true
}

// OnlyMarkerMoved reports that run, sequence, lease and signals are as expected, so only the marker has moved.
func (c *Change) OnlyMarkerMoved(current item.Item) bool {
	return c.Before != nil && SameRun(c.Transition, current) && item.Number(current["sq"]) == c.ExpectedSequence &&
		(c.LeaseToken == "" || item.TextOf(current["lt"]) == c.LeaseToken) && !c.Mailed(current)
}

// Mailed reports that the number of signals is not the one on which the change depends.
func (c *Change) Mailed(current item.Item) bool {
	return c.Looked != nil && item.Number(current["mb"]) != *c.Looked
}

func (c *Change) countRequests() (n int) {
	for _, e := range c.Events {
		if _, ok := e.Body.(*runlane.RunDeliveryRequested); ok {
			n++
		}
	}
	return n
}

// resumes reports that the run's wait ends and the run has no delivery yet, because it waits for a slot.
func (c *Change) resumes() bool {
	_, last := c.Events[len(c.Events)-1].Body.(*runlane.RunResumed)
	return last
}

func (c *Change) Replaces() bool {
	return c.Before != nil && c.Before.State() == runlane.StatusQueued && c.Before.DeliveryLog != 0 && c.countRequests() > 0
}

func Claims(t *lane.Transition) bool {
	for _, e := range t.Events {
		if _, ok := e.Body.(*runlane.RunLeaseClaimed); ok {
			return true
		}
	}
	return false
}

// Result returns the commit exactly as reads will return it.
func (b *Built) Result(c *Change) *lane.Commit {
	out := &lane.Commit{Run: c.Projected, NotificationPending: b.Run.NotificationPending()}
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

// AtRest copies the transition in the form that is stored and returned. It shares nothing with t.
func AtRest(t *lane.Transition) *lane.Transition {
	out := *t
	out.Projected = lane.RunAtRest(t.Projected)
	out.Events = make([]runlane.Event, len(t.Events))
	for i, e := range t.Events {
		out.Events[i] = lane.EventAtRest(e)
	}
	return &out
}
