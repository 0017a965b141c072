package runlane

import (
	"context"
	"time"
)

// TriggerOptions override a task's rules for one run. nil means none.
type TriggerOptions struct {
	Actor          Actor             // the zero value means SystemActor
	ConcurrencyKey string            // "" means the task's
	Deferred       bool              // commit only and leave the wakeup to the relay, or without one to the tick
	Delay          time.Duration     // or RunAt; setting both is ErrValidationFailed
	IdempotencyKey string            // "" means the task's
	IdempotencyTTL time.Duration     // 0 means the task's
	Meta           map[string]string // with the trace carrier at most MaxMetaBytes
	// Priority from -MaxPriority to MaxPriority, where the highest goes first. It orders the runs that wait for a slot of
	// a bounded queue, and those that polling workers take. Each step counts as PriorityStep of waiting, so a low priority
	// is overtaken for a while, and never for good. Wakeups of an unbounded queue are delivered in the order of its
	// transport, which knows no priorities: give such a queue a limit, or urgent runs a queue of their own.
	Priority int
	Queue    Queue // the zero value means the task's
	// if the singleton key is held, return its holder; if the holder is the triggering run itself, that is still a
	// conflict
	ReturnActive bool
	RunAt        time.Time // earliest start, from 1970 to 2286; the past means at once
	// "" means a generated one; an existing ID returns its run if task and payload are equal
	RunID         RunID
	SingletonKey  string            // "" means the task's
	StrictPayload bool              // a duplicate with a different payload is ErrValidationFailed
	TraceCarrier  map[string]string // for example a W3C traceparent; passed to the attempt
	// Writes of the application, in the transaction that creates the run: both or neither. An existing run that is
	// returned makes none. The storage takes its own kind, like dynamostore.Writes, or is ErrCapabilityUnsupported;
	// writes that it refuses are ErrStorageConflict with ConflictWrites.
	Writes Writes
}

// Writes are changes to the application's own data that a storage commits together with a new run. Kind names the
// storage, for errors.
type Writes interface{ Kind() string }

// TriggerOutcome tells new runs from existing ones.
type TriggerOutcome string

// The outcomes of a trigger.
const (
	// TriggerCreated: the call made the run.
	TriggerCreated TriggerOutcome = "created"
	// TriggerReturnedExisting: a run with the same key or ID already existed.
	TriggerReturnedExisting TriggerOutcome = "returned_existing"
)

// TriggerResult is a durable run, made by this call or an earlier one.
type TriggerResult struct {
	Run            *Run
	Outcome        TriggerOutcome
	PayloadDiffers bool // only for TriggerReturnedExisting
}

// Triggerer starts runs: *core.Runtime, or *Attempt with lineage. Code that triggers should depend on it, so that its
// tests need no runtime.
type Triggerer interface {
	Trigger(ctx context.Context, call Call, options *TriggerOptions) (*TriggerResult, error)
}
