package memlane

import (
	"bytes"
	"maps"
	"sync"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/embedded"
)

// entry is one run. It keeps each payload and output once and shares no memory with commands or results.
type entry struct {
	id          runlane.RunID
	environment runlane.Environment
	shard       *shard // nil until the run is added
	due         place  // in the list of active or finished runs

	*unpacked        // nil if packed
	packed    string // compact data of a finished run, see pack
}

// unpacked is the data of a run that is not packed.
type unpacked struct {
	created *runlane.RunCreated // never modified
	state   state
	events  []event

	outbox embedded.Outbox[uint64] // claims are numbered

	delivery    place // in the index of unpublished, published or dead rows
	undelivered place // in the index of queued runs without a certain delivery

	slot  *partition // nil if the run has no slot or the queue no limit
	wants place      // among the runs of its partition that want a slot, if the queue was ever limited

	// Preallocated memory for a run without retries or releases. Such a run needs no more.
	room          bodyRoom
	eventRoom     [5]event
	createdRoom   runlane.RunCreated
	deliveryRoom  runlane.RunDeliveryRequested
	claimedRoom   runlane.RunLeaseClaimed
	startedRoom   runlane.RunStarted
	succeededRoom runlane.RunSucceeded
	rowRoom       [1]row
}

// state is the part of a projection that commits change.
type state struct {
	embedded.State

	counters                runlane.Counters
	output                  []byte
	startedAt, dispatchedAt embedded.Millis
	failure                 *runlane.Failure
	leaseWorker             string
	debounced               *runlane.Debounced // never modified
	traceCarrier, meta      map[string]string
}

// known returns the state that commands are judged by, nil for a missing run. The run must be unpacked.
func (e *entry) known() *embedded.State {
	if e == nil {
		return nil
	}
	return &e.state.State
}

// unpackedPool recycles the memory of packed runs.
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
	if p.Debounced != nil {
		s.debounced = &runlane.Debounced{Latest: runlane.UTCMillis(p.Debounced.Latest), Triggers: p.Debounced.Triggers}
	}
	s.traceCarrier = keepMap(s.traceCarrier, p.TraceCarrier)
	s.meta = keepMap(s.meta, p.Meta)
}

func keepMap(have, next map[string]string) map[string]string {
	if have == nil && next == nil || have != nil && next != nil && maps.Equal(have, next) {
		return have
	}
	return maps.Clone(next)
}

// project returns a copy of the run for callers.
func (e *entry) project(bulk bool) *runlane.Run {
	run := new(runlane.Run)
	e.fill(run)
	detach(run, bulk)
	return run
}

// fill writes the projection into run. The result shares immutable data with the storage until detach copies it.
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
		Debounced:      s.debounced,
		SingletonKey:   c.SingletonKey,
		Priority:       c.Priority,
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

// detach makes a filled run independent of the storage. It needs no lock.
func detach(run *runlane.Run, bulk bool) {
	run.TraceCarrier, run.Meta = maps.Clone(run.TraceCarrier), maps.Clone(run.Meta)
	run.Waiting, run.Debounced = run.Waiting.Clone(), run.Debounced.Clone()
	run.Failure = run.Failure.Clone()
	if bulk {
		run.Payload, run.Output = bytes.Clone(run.Payload), bytes.Clone(run.Output)
	} else {
		run.Payload, run.Output = nil, nil
	}
}

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
		Priority:          c.Priority,
		DispatchExpiresAt: s.DispatchExpiresAt.Time(),
	}
	if s.failure != nil {
		summary.FailureCode = s.failure.Code
	}
	return summary
}
