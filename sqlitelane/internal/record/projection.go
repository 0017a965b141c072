package record

import (
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/embedded"
)

// projection reads a field of a run. It returns false for an unknown field.
func projection(p *runlane.Run, f field, base embedded.Millis, in *reader) bool {
	switch f.number {
	case fieldSequence:
		p.EventSequence = f.n
	case fieldTask:
		p.TaskID = runlane.TaskID(f.bytes)
	case fieldQueue:
		p.Queue = runlane.QueueName(f.bytes)
	case fieldAttempts:
		p.Counters.Attempts = int(f.n)
	case fieldFailures:
		p.Counters.Failures = int(f.n)
	case fieldRetries:
		p.Counters.Retries = int(f.n)
	case fieldReleases:
		p.Counters.Releases = int(f.n)
	case fieldLeaseToken:
		p.Lease.Token = string(f.bytes)
	case fieldLeaseWorker:
		p.Lease.WorkerID = string(f.bytes)
	case fieldConcurrencyKey:
		p.ConcurrencyKey = string(f.bytes)
	case fieldIdempotencyKey:
		p.IdempotencyKey = string(f.bytes)
	case fieldRetention:
		p.Retention.WhileActive, p.Retention.Window = f.n&keptWhileActive != 0, f.n&keptForWindow != 0
		p.Retention.UntilDue = f.n&keptUntilDue != 0
	case fieldDebounceTriggers:
		p.Debounced = &runlane.Debounced{Triggers: int(f.n)}
	case fieldTTL:
		p.Retention.TTL += time.Duration(f.n) * time.Millisecond
	case fieldTTLNanos:
		p.Retention.TTL += time.Duration(f.n)
	case fieldSingletonKey:
		p.SingletonKey = string(f.bytes)
	case fieldSourceType:
		p.Source.Type = runlane.SourceType(f.bytes)
	case fieldSourceRun:
		p.Source.RunID = runlane.RunID(f.bytes)
	case fieldSourceSchedule:
		p.Source.ScheduleID = runlane.ScheduleID(f.bytes)
	case fieldSourceCall:
		p.Source.Call = string(f.bytes)
	case fieldSourceFlow:
		p.Source.FlowID = runlane.FlowID(f.bytes)
	case fieldSourceNode:
		p.Source.Node = string(f.bytes)
	case fieldSourceRound:
		p.Source.Round = int(f.n)
	case fieldSourceDepth:
		p.Source.Depth = int(f.n)
	case fieldSourceOrigin:
		p.Source.OriginID = runlane.RunID(f.bytes)
	case fieldPriority:
		p.Priority = int(f.n)
	case fieldTraceCarrier:
		p.TraceCarrier = in.textsIn(f.bytes)
	case fieldMeta:
		p.Meta = in.textsIn(f.bytes)
	case fieldFailureCode:
		p.Failure.Code = runlane.ErrorCode(f.bytes)
	case fieldFailureMessage:
		p.Failure.Message = string(f.bytes)
	case fieldFailureMeta:
		p.Failure.Meta = in.textsIn(f.bytes)
	case fieldWaiting:
		p.Waiting = in.waiting(f.bytes)
	case fieldPayload:
		p.Payload = f.bytes
	case fieldOutput:
		p.Output = f.bytes
	default:
		return instants(p, f, base)
	}
	return true
}

func instants(p *runlane.Run, f field, base embedded.Millis) bool {
	at := instantFrom(base, f.n)
	switch f.number {
	case fieldRunAt:
		p.RunAt = at.Time()
	case fieldStartedAt:
		p.StartedAt = at.Time()
	case fieldFinishedAt:
		p.FinishedAt = at.Time()
	case fieldDispatchedAt:
		p.DispatchedAt = at.Time()
	case fieldDispatchExpiresAt:
		p.DispatchExpiresAt = at.Time()
	case fieldUpdatedAt:
		p.UpdatedAt = at.Time()
	case fieldLeaseExpiresAt:
		p.Lease.ExpiresAt = at.Time()
	case fieldSourceFireTime:
		p.Source.FireTime = at.Time()
	case fieldDebounceLatest: // after the triggers
		if p.Debounced == nil {
			return false
		}
		p.Debounced.Latest = at.Time()
	case fieldSourceCreatedAt:
		p.Source.CreatedAt = at.Time()
	default:
		return false
	}
	return true
}
