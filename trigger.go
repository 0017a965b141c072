package runlane

import (
	"context"
	"time"
)

// TriggerOptions override a task's rules for one run. nil means none.
type TriggerOptions struct {
	Actor          Actor             // the zero value means SystemActor
	ConcurrencyKey string            // "" means the task's
	Debounce       Debounce          // the latest of several triggers makes the run; the zero value means each does
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
	Throttle      Throttle          // the first of several triggers makes the run; the zero value means each does
	TraceCarrier  map[string]string // for example a W3C traceparent; passed to the attempt
	// Writes of the application, in the transaction that creates the run: both or neither. An existing run that is
	// returned makes none. The storage takes its own kind, like dynamostore.Writes, or is ErrCapabilityUnsupported;
	// writes that it refuses are ErrStorageConflict with ConflictWrites.
	Writes Writes
}

// Debounce lets a run wait for the last of several triggers of its task. The run starts once no trigger with Key came
// for Window; each one replaces the run's payload, nothing else, and is answered with that run ([TriggerDebounced]). The
// payload that was answered last is the one that executes. A trigger that comes when the run may start, or after
// [MaxDebounced] events, makes a new run, and so does one after the run was cancelled.
//
// A trigger that is repeated because its answer was lost counts again: it delays the run, and replaces a payload that
// came between. Delay, RunAt, Writes, IdempotencyKey, IdempotencyTTL and StrictPayload cannot be combined with it, and
// the task's idempotency key is not used.
type Debounce struct {
	Key    string        // "" means one for all triggers of the task
	Window time.Duration // above 0
	Max    time.Duration // from the first trigger on, after which none delays the run; 0 means no limit
}

// Throttle makes one run of all triggers of a task with Key within Window, counted from the first, whatever becomes of
// that run. The others are answered with it ([TriggerReturnedExisting]), and their payloads are dropped.
// IdempotencyKey, IdempotencyTTL and StrictPayload cannot be combined with it, and the task's idempotency key is not
// used.
type Throttle struct {
	Key    string        // "" means one for all triggers of the task
	Window time.Duration // above 0
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
	// TriggerDebounced: a run of the same [Debounce] key waits, and has this call's payload now.
	TriggerDebounced TriggerOutcome = "debounced"
)

// TriggerResult is a durable run, made by this call or an earlier one.
type TriggerResult struct {
	Run            *Run
	Outcome        TriggerOutcome
	PayloadDiffers bool // from the run's, or for TriggerDebounced from its earlier one; false for TriggerCreated
}

// Triggerer starts runs: *core.Runtime, or *Attempt with lineage. Code that triggers should depend on it, so that its
// tests need no runtime.
type Triggerer interface {
	Trigger(ctx context.Context, call Call, options *TriggerOptions) (*TriggerResult, error)
}
