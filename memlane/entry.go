package memlane

import (
	"bytes"
	"maps"
	"sync"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/embedded"
)

// entry is one run. It holds instants as millis and each payload and output once, and shares no memory with commands or
// results.
type entry struct {
	id          runlane.RunID
	environment runlane.Environment
	shard       *shard // nil until the run is the storage's
	due         place  // among the active runs, or among the finished ones

	*unpacked        // nil once the run is packed
	packed    string // of a finished run: its data in few bytes, see pack
}

// unpacked is all data of a run that is not packed: what its creation fixed, its projection, its history and its
// deliveries.
type unpacked struct {
	created *runlane.RunCreated // task, queue, payload, keys and source never change after it
	state   state
	events  []event

	outbox embedded.Outbox[uint64] // its claims are numbered

	delivery    place // among the deliveries to publish, published or given up
	undelivered place // among the queued runs that no delivery brings to a worker

	slot  *partition // where the run has a slot; nil for runs without one, and in queues without a limit
	wants place      // among the runs of its partition that want a slot, when its queue was ever limited

	// Room for the history and the delivery of a run without retries or releases, which needs no other memory then.
	room          bodyRoom
	eventRoom     [5]event
	createdRoom   runlane.RunCreated
	deliveryRoom  runlane.RunDeliveryRequested
	claimedRoom   runlane.RunLeaseClaimed
	startedRoom   runlane.RunStarted
	succeededRoom runlane.RunSucceeded
	rowRoom       [1]row
}

// state is what commits change of a projection.
type state struct {
	embedded.State

	counters                runlane.Counters
	output                  []byte
	startedAt, dispatchedAt embedded.Millis
	failure                 *runlane.Failure
	leaseWorker             string
	traceCarrier, meta      map[string]string
}

// known is what judgements look at, nil for a run that does not exist. The run is not packed.
func (e *entry) known() *embedded.State {
	if e == nil {
		return nil
	}
	return &e.state.State
}

// unpackedPool has those of packed runs, for new ones.
var unpackedPool = sync.Pool{New: func() any { return new(unpacked) }}

func newUnpacked() *unpacked {
	l := unpackedPool.Get().(*unpacked)
	l.outbox.FirstPublished = embedded.Absent
	l.events, l.outbox.Deliveries = l.eventRoom[:0], l.rowRoom[:0]
	l.room = bodyRoom{
		created:   &l.createdRoom,
		delivery:  &l.deliveryRoom,
		claimed:   &l.claimedRoom,
		started:   &l.startedRoom,
		succeeded: &l.succeededRoom,
	}
	return l
}

func newEntry(p *runlane.Run) *entry {
	return &entry{id: p.ID, environment: runlane.Environment(p.Environment.Name()), unpacked: newUnpacked()}
}

// keep takes over the projection of a commit.
func (e *entry) keep(p *runlane.Run) {
	s := &e.state
	s.Status, s.Sequence, s.counters = p.Status, p.EventSequence, p.Counters
	s.RunAt, s.startedAt, s.FinishedAt = embedded.At(p.RunAt), embedded.At(p.StartedAt), embedded.At(p.FinishedAt)
	s.dispatchedAt, s.DispatchExpiresAt = embedded.At(p.DispatchedAt), embedded.At(p.DispatchExpiresAt)
	s.CreatedAt, s.UpdatedAt = embedded.At(p.CreatedAt), embedded.At(p.UpdatedAt)
	s.LeaseToken, s.leaseWorker, s.LeaseExpiresAt = p.Lease.Token, p.Lease.WorkerID, embedded.At(p.Lease.ExpiresAt)
	if !bytes.Equal(s.output, p.Output) {
		s.output = bytes.Clone(p.Output)
	}
	s.failure = nil
	if !p.Failure.IsZero() {
		failure := p.Failure.Clone()
		s.failure = &failure
	}
	s.Waiting = p.Waiting.AtRest()
	s.traceCarrier = keepMap(s.traceCarrier, p.TraceCarrier)
	s.meta = keepMap(s.meta, p.Meta)
}

// keepMap returns have if next equals it, else a clone of next.
func keepMap(have, next map[string]string) map[string]string {
	if have == nil && next == nil || have != nil && next != nil && maps.Equal(have, next) {
		return have
	}
	return maps.Clone(next)
}

// project is the run as callers get it: their own copy.
func (e *entry) project(bulk bool) *runlane.Run {
	run := new(runlane.Run)
	e.fill(run)
	own(run, bulk)
	return run
}

// fill writes the projection into run. It shares what never changes with the storage: the caller has to copy that, see
// own.
func (e *entry) fill(run *runlane.Run) {
	s, c := &e.state, e.created
	*run = runlane.Run{
		ID:                e.id,
		Environment:       e.environment,
		TaskID:            c.TaskID,
		Queue:             c.Queue,
		Status:            s.Status,
		EventSequence:     s.Sequence,
		Counters:          s.counters,
		RunAt:             s.RunAt.Time(),
		StartedAt:         s.startedAt.Time(),
		FinishedAt:        s.FinishedAt.Time(),
		DispatchedAt:      s.dispatchedAt.Time(),
		DispatchExpiresAt: s.DispatchExpiresAt.Time(),
		Lease: runlane.Lease{
			Token:     s.LeaseToken,
			WorkerID:  s.leaseWorker,
			ExpiresAt: s.LeaseExpiresAt.Time(),
		},
		Waiting:        s.Waiting,
		ConcurrencyKey: c.ConcurrencyKey,
		IdempotencyKey: c.IdempotencyKey,
		Retention:      c.Retention,
		SingletonKey:   c.SingletonKey,
		Source:         c.Source,
		TraceCarrier:   s.traceCarrier,
		Meta:           s.meta,
		Payload:        c.Payload,
		Output:         s.output,
		CreatedAt:      s.CreatedAt.Time(),
		UpdatedAt:      s.UpdatedAt.Time(),
	}
	if s.failure != nil {
		run.Failure = *s.failure
	}
}

// own makes a filled run share nothing. It needs no lock.
func own(run *runlane.Run, bulk bool) {
	run.TraceCarrier, run.Meta = maps.Clone(run.TraceCarrier), maps.Clone(run.Meta)
	run.Waiting = run.Waiting.Clone()
	run.Failure = run.Failure.Clone()
	if bulk {
		run.Payload, run.Output = bytes.Clone(run.Payload), bytes.Clone(run.Output)
	} else {
		run.Payload, run.Output = nil, nil
	}
}

// summary is the run as lists show it.
func (e *entry) summary() runlane.RunSummary {
	s, c := &e.state, e.created
	summary := runlane.RunSummary{
		ID:         e.id,
		TaskID:     c.TaskID,
		Queue:      c.Queue,
		Status:     s.Status,
		Counters:   s.counters,
		Waiting:    s.Waiting.Clone(),
		Source:     c.Source,
		RunAt:      s.RunAt.Time(),
		CreatedAt:  s.CreatedAt.Time(),
		FinishedAt: s.FinishedAt.Time(),

		ConcurrencyKey:    c.ConcurrencyKey,
		DispatchExpiresAt: s.DispatchExpiresAt.Time(),
	}
	if s.failure != nil {
		summary.FailureCode = s.failure.Code
	}
	return summary
}
