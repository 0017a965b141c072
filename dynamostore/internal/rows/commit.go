package rows

import (
	"maps"
	"slices"

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
	Owners     []Owner             // of a creation
	Slot       SlotChange          // the slot that it takes; the run item tells which one it gives up
	Signal     *lane.SignalCommand // that it puts beside the run
	Telling    *ToldEnd            // the end that it tells
	Missing    []string            // calls of which ends have to be missing
	Flow       *lane.FlowCheck     // what the flow of a run that is made has to be
	Looked     *int64              // how many signals stand beside the run, where the change depends on it

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
	Proof  item.Proof
	ids    []string // of the log item's delivery rows

	Slot  SlotChange
	slots int // the index of the first write about slots: they come last

	signal int // the index of the write of a signal; 0 for none
	calls  int // the index of the first write about calls; behind them come those about slots
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
	b := &Built{}
	bulk, err := b.addRun(c)
	if err != nil {
		return nil, err
	}
	if err := b.addLog(c); err != nil {
		return nil, err
	}
	if err := b.put(c, bulk); err != nil {
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

// addRun adds the run item after the change, and returns the separate items that its payload and its output need.
func (b *Built) addRun(c *Change) (bulk []Bulk, err error) {
	run := Projected(c.Transition, c.Before)
	if bulk, err = run.placeBulk(c.Transition); err != nil {
		return nil, err
	}
	run.latestDelivery(c)
	b.Slot = c.settleSlot(run)
	if c.Signal != nil {
		run.Signals = c.Signal.Signal.Number
	}
	c.mark(run)
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

// Projected is the item after a transition, except for payload, output, delivery and index attributes, which it takes
// from before. before is nil for a creation.
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
		Trace:             run.TraceCarrier,
		Meta:              run.Meta,
	}
	r.keepSource(&run.Source)
	r.keepFailure(t, before)
	r.keepWait(run.Waiting)
	if before != nil {
		r.Payload, r.PayloadPlace = before.Payload, before.PayloadPlace
		r.Output, r.OutputPlace = before.Output, before.OutputPlace
		r.Signals, r.Calls = before.Signals, before.Calls
	}
	return r
}

// addLog adds the commit's log item.
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

// addSignal adds the signal that the change puts beside the run.
func (b *Built) addSignal(c *Change) error {
	signal, err := NewSignal(c.Signal, c.ID)
	if err != nil {
		return err
	}
	put, err := signal.Put()
	b.signal, b.Writes = len(b.Writes), append(b.Writes, put)
	return err
}

// addCalls adds what the change tells, and the flow and the calls on which it depends.
func (b *Built) addCalls(c *Change) {
	b.calls = len(b.Writes)
	if c.Telling != nil {
		b.Writes = append(b.Writes, c.Telling.Ended.Told(), c.Telling.Call.Counted())
	}
	if c.Flow != nil {
		b.Writes = append(b.Writes, open(c.Projected.Environment, c.Flow))
	}
	// A transaction has each item once.
	for _, name := range slices.Compact(slices.Sorted(slices.Values(c.Missing))) {
		b.Writes = append(b.Writes, missing(c.Key(), ToMillis(c.Projected.CreatedAt), name))
	}
}

// Refusal is what prevented a commit.
type Refusal struct {
	lost   []item.Lost
	slots  int // the index of the first write about slots
	calls  int // and about calls
	signal int
}

// Refusal is what prevented the commit.
func (b *Built) Refusal(lost []item.Lost) *Refusal { return &Refusal{lost, b.slots, b.calls, b.signal} }

// Counted reports a call that is whole although ends of it had to be missing, or a flow that takes no run.
func (r *Refusal) Counted() bool {
	for _, l := range r.lost {
		if l.Index >= r.calls && l.Index < r.slots {
			return true
		}
	}
	return false
}

// Signal is the signal that the commit did not expect; nil if there is none.
func (r *Refusal) Signal() item.Item {
	if r.signal == 0 {
		return nil
	}
	return item.OldOf(r.lost, r.signal)
}

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
		(c.LeaseToken == "" || item.TextOf(current["lt"]) == c.LeaseToken) && !c.Mailed(current)
}

// Mailed reports a run with other mail than the change depends on.
func (c *Change) Mailed(current item.Item) bool {
	return c.Looked != nil && item.Number(current["mb"]) != *c.Looked
}

// requested is how many delivery rows the change brings.
func (c *Change) requested() (n int) {
	for _, e := range c.Events {
		if _, ok := e.Body.(*runlane.RunDeliveryRequested); ok {
			n++
		}
	}
	return n
}

// resumes reports a run whose wait ends and that has no delivery yet: it waits for a slot first.
func (c *Change) resumes() bool {
	_, last := c.Events[len(c.Events)-1].Body.(*runlane.RunResumed)
	return last
}

// Replaces reports that the change brings a delivery row instead of the run's latest one.
func (c *Change) Replaces() bool {
	return c.Before != nil && c.Before.State() == runlane.StatusQueued && c.Before.DeliveryLog != 0 && c.requested() > 0
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

// Result is the commit as the caller gets it: exactly as reads will return it.
func (b *Built) Result(c *Change) *lane.Commit {
	out := &lane.Commit{Run: c.Projected, Untold: b.Run.Untold()}
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
