// Package record encodes a run for the file: its projection, outbox state and latest events, in few bytes. It also
// derives the run's places in the file's indexes. It does no I/O.
package record

import (
	"fmt"
	"slices"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/embedded"
	"github.com/runlane/runlane-go/lane"
)

// Record is a run as stored. Its row has environment and ID.
type Record struct {
	// Run is the projection. Payload and Output are set only if Inline.
	Run runlane.Run
	// Payload and Output are the places of the bytes.
	Payload, Output Place
	// PayloadSum is compared with the checksum of a caller's payload: the stored one may be compressed or apart.
	PayloadSum int64
	embedded.Outbox[string]
	// Events are the latest events, encoded, from sequence First on. Earlier ones are in chunks.
	Events []byte
	First  int64
	// Chunks counts the history's chunks.
	Chunks int64
	// Calls reports that the run has called others.
	Calls bool

	unknown []byte // fields from newer programs
}

// The fields of a record. Never reuse a number.
const (
	fieldCreatedAt = iota + 1
	fieldStatus
	fieldSequence
	fieldTask
	fieldQueue
	fieldAttempts
	fieldFailures
	fieldRetries
	fieldReleases
	fieldRunAt
	fieldStartedAt
	fieldFinishedAt
	fieldDispatchedAt
	fieldDispatchExpiresAt
	fieldUpdatedAt
	fieldLeaseToken
	fieldLeaseWorker
	fieldLeaseExpiresAt
	fieldConcurrencyKey
	fieldIdempotencyKey
	fieldRetention // flags
	fieldTTL
	fieldSingletonKey
	fieldSourceType
	fieldSourceRun
	fieldSourceSchedule
	fieldSourceFireTime
	fieldTraceCarrier
	fieldMeta
	fieldFailureCode
	fieldFailureMessage
	fieldFailureMeta
	fieldPayloadPlace
	fieldPayload
	fieldOutputPlace
	fieldOutput
	fieldDelivery
	fieldFirstPublished
	fieldWokenKind
	fieldWokenDue
	fieldEvents
	fieldFirst
	fieldChunks
	fieldTTLNanos
	fieldPayloadSum
	fieldWaiting // JSON
	fieldCalls
	fieldSourceCall
	fieldSourceCreatedAt
	fieldSourceFlow
	fieldSourceNode
	fieldSourceRound
	fieldSourceDepth
	fieldSourceOrigin
	fieldPriority
	fieldDebounceTriggers
	fieldDebounceLatest
)

// statuses are stored as index plus 1. Only append. A status not listed is stored as text and found by no index; a
// test requires all.
var statuses = []runlane.Status{
	runlane.StatusQueued, runlane.StatusScheduled, runlane.StatusRunning, runlane.StatusCancellationRequested,
	runlane.StatusRetrying, runlane.StatusReleased,
	runlane.StatusSucceeded, runlane.StatusFailed, runlane.StatusCancelled,
}

// StatusNumber returns a status as stored in records and indexes.
func StatusNumber(s runlane.Status) int64 { return int64(slices.Index(statuses, s) + 1) }

// notifies is added to the status of a run that calls or was called. A program that knows no calls refuses this number:
// its commit of the run's end would notify nobody.
const notifies = 64

func (r *Record) status() int64 {
	n := StatusNumber(r.Run.Status)
	if n > 0 && (r.Calls || lane.NotifiesAtEnd(r.Run.Source.Type)) {
		n += notifies
	}
	return n
}

// The flags of a key's retention. 0 is that by time alone.
const (
	keptWhileActive = 1 << iota
	keptForWindow
	keptUntilDue
)

func retentionNumber(k runlane.KeyRetention) (flags int64) {
	for i, is := range [...]bool{k.WhileActive, k.Window, k.UntilDue} {
		if is {
			flags |= 1 << i
		}
	}
	return flags
}

// Encode appends the encoded record.
func (r *Record) Encode(to []byte) []byte {
	p := &r.Run
	base := embedded.At(p.CreatedAt)
	w := writer{b: to}
	w.number(fieldCreatedAt, int64(base))
	if n := r.status(); n > 0 {
		w.number(fieldStatus, n)
	} else {
		w.text(fieldStatus, string(p.Status))
	}
	w.number(fieldSequence, p.EventSequence)
	w.text(fieldTask, string(p.TaskID))
	w.text(fieldQueue, string(p.Queue))
	w.number(fieldAttempts, int64(p.Counters.Attempts))
	w.number(fieldFailures, int64(p.Counters.Failures))
	w.number(fieldRetries, int64(p.Counters.Retries))
	w.number(fieldReleases, int64(p.Counters.Releases))
	w.instant(fieldRunAt, base, embedded.At(p.RunAt))
	w.instant(fieldStartedAt, base, embedded.At(p.StartedAt))
	w.instant(fieldFinishedAt, base, embedded.At(p.FinishedAt))
	w.instant(fieldDispatchedAt, base, embedded.At(p.DispatchedAt))
	w.instant(fieldDispatchExpiresAt, base, embedded.At(p.DispatchExpiresAt))
	w.instant(fieldUpdatedAt, base, embedded.At(p.UpdatedAt))
	w.text(fieldLeaseToken, p.Lease.Token)
	w.text(fieldLeaseWorker, p.Lease.WorkerID)
	w.instant(fieldLeaseExpiresAt, base, embedded.At(p.Lease.ExpiresAt))
	w.text(fieldConcurrencyKey, p.ConcurrencyKey)
	w.text(fieldIdempotencyKey, p.IdempotencyKey)
	w.number(fieldRetention, retentionNumber(p.Retention))
	w.number(fieldTTL, int64(p.Retention.TTL/time.Millisecond))
	w.number(fieldTTLNanos, int64(p.Retention.TTL%time.Millisecond))
	w.text(fieldSingletonKey, p.SingletonKey)
	w.text(fieldSourceType, string(p.Source.Type))
	w.text(fieldSourceRun, string(p.Source.RunID))
	w.text(fieldSourceSchedule, string(p.Source.ScheduleID))
	w.instant(fieldSourceFireTime, base, embedded.At(p.Source.FireTime))
	w.texts(fieldTraceCarrier, p.TraceCarrier)
	w.texts(fieldMeta, p.Meta)
	w.failure(p.Failure)
	w.number(fieldPayloadPlace, int64(r.Payload))
	if r.Payload.inline() {
		w.bytes(fieldPayload, p.Payload)
	}
	w.number(fieldPayloadSum, r.PayloadSum)
	w.number(fieldOutputPlace, int64(r.Output))
	if r.Output.inline() {
		w.bytes(fieldOutput, p.Output)
	}
	for i := range r.Deliveries {
		w.nested(fieldDelivery, func(in *writer) { encodeDelivery(&r.Deliveries[i], in, base) })
	}
	w.instant(fieldFirstPublished, base, r.FirstPublished)
	w.number(fieldWokenKind, int64(r.Woken.Kind))
	if r.Woken.Kind != embedded.NoWakeup {
		w.instant(fieldWokenDue, base, r.Woken.Due)
	}
	w.bytes(fieldEvents, r.Events)
	w.number(fieldFirst, r.First)
	w.number(fieldChunks, r.Chunks)
	w.json(fieldWaiting, p.Waiting)
	w.flag(fieldCalls, r.Calls)
	w.text(fieldSourceCall, p.Source.Call)
	w.instant(fieldSourceCreatedAt, base, embedded.At(p.Source.CreatedAt))
	w.text(fieldSourceFlow, string(p.Source.FlowID))
	w.text(fieldSourceNode, p.Source.Node)
	w.number(fieldSourceRound, int64(p.Source.Round))
	w.number(fieldSourceDepth, int64(p.Source.Depth))
	w.text(fieldSourceOrigin, string(p.Source.OriginID))
	w.number(fieldPriority, int64(p.Priority))
	if p.Debounced != nil {
		w.number(fieldDebounceTriggers, int64(p.Debounced.Triggers))
		w.instant(fieldDebounceLatest, base, embedded.At(p.Debounced.Latest))
	}
	return append(w.b, r.unknown...)
}

func (w *writer) failure(f runlane.Failure) {
	w.text(fieldFailureCode, string(f.Code))
	w.text(fieldFailureMessage, f.Message)
	w.texts(fieldFailureMeta, f.Meta)
}

// Decode decodes a record, which keeps b.
func Decode(environment runlane.Environment, id runlane.RunID, b []byte) (*Record, error) {
	r := &Record{Outbox: embedded.Outbox[string]{FirstPublished: embedded.Absent}}
	p := &r.Run
	p.Environment, p.ID = environment, id
	base := embedded.Millis(0) // 0 is not written
	p.CreatedAt = base.Time()
	in := reader{b: b}
	for {
		f, ok := in.next()
		if !ok {
			break
		}
		switch f.number {
		case fieldCreatedAt: // first, because other times are relative to it
			base = embedded.Millis(f.n)
			p.CreatedAt = base.Time()
		case fieldStatus:
			if p.Status = runlane.Status(f.bytes); p.Status != "" {
				continue
			}
			if f.n > notifies {
				f.n -= notifies
			}
			if f.n < 1 || f.n > int64(len(statuses)) {
				return nil, damaged(id, fmt.Errorf("status %d", f.n))
			}
			p.Status = statuses[f.n-1]
		case fieldDelivery:
			d, err := decodeDelivery(f.bytes, base)
			if err != nil {
				return nil, damaged(id, err)
			}
			r.Deliveries = append(r.Deliveries, d)
		case fieldFirstPublished:
			r.FirstPublished = instantFrom(base, f.n)
		case fieldWokenKind:
			r.Woken.Kind = embedded.WaitKind(f.n)
		case fieldWokenDue:
			r.Woken.Due = instantFrom(base, f.n)
		case fieldEvents:
			r.Events = f.bytes
		case fieldFirst:
			r.First = f.n
		case fieldChunks:
			r.Chunks = f.n
		case fieldPayloadPlace:
			r.Payload = Place(f.n)
		case fieldPayloadSum:
			r.PayloadSum = f.n
		case fieldOutputPlace:
			r.Output = Place(f.n)
		case fieldCalls:
			r.Calls = f.n != 0
		default:
			if !projection(p, f, base, &in) {
				r.unknown = append(r.unknown, f.raw...)
			}
		}
	}
	if in.err != nil {
		return nil, damaged(id, in.err)
	}
	return r, nil
}

func damaged(id runlane.RunID, cause error) error {
	return &runlane.Error{
		Code: runlane.ErrInvariantViolation, Message: "the stored run does not decode", RunID: id, Cause: cause,
		Hint: "update this program; if it is the newest, restore a backup of the file",
	}
}
