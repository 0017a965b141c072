package runlane

import (
	"context"
	"time"
)

// TriggerOptions override a task's rules for one run. nil means none.
type TriggerOptions struct {
	Actor          Actor             // the zero value means SystemActor
	ConcurrencyKey string            // "" means what the task computes
	Deferred       bool              // commit only: the wakeup is left to the relay, or to the tick where none runs
	Delay          time.Duration     // or RunAt; both is ErrValidationFailed
	IdempotencyKey string            // "" means what the task computes
	IdempotencyTTL time.Duration     // 0 means the task's
	Meta           map[string]string // with the trace carrier at most MaxMetaBytes
	Queue          Queue             // the zero value means the task's
	// a held singleton key returns its holder; never the run that is triggering: that is a conflict
	ReturnActive bool
	RunAt        time.Time // not before this instant, from 1970 to 2286; the past means at once
	// "" means a generated one; one that exists returns its run when task and payload are equal
	RunID         RunID
	SingletonKey  string            // "" means what the task computes
	StrictPayload bool              // an idempotent duplicate with another payload is ErrValidationFailed
	TraceCarrier  map[string]string // for example a W3C traceparent; handed to the attempt
}

// TriggerOutcome says whether the call made the run.
type TriggerOutcome string

// The outcomes of a trigger.
const (
	// TriggerCreated: the call made the run.
	TriggerCreated TriggerOutcome = "created"
	// TriggerReturnedExisting: a run with the same key (or id) was there already.
	TriggerReturnedExisting TriggerOutcome = "returned_existing"
)

// TriggerResult is a run that is durable now, made by this call or an earlier one.
type TriggerResult struct {
	Run            *Run
	Outcome        TriggerOutcome
	PayloadDiffers bool // only for TriggerReturnedExisting
}

// Triggerer starts runs. *core.Runtime does, *Attempt does (with lineage). Code that triggers depends on this and needs
// no runtime in its tests.
type Triggerer interface {
	Trigger(ctx context.Context, call Call, options *TriggerOptions) (*TriggerResult, error)
}
