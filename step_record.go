package runlane

import (
	"encoding/json"
	"time"
)

// Bounds of a run's records.
const (
	// MaxSteps is the maximum number of a run's records: steps, sleeps, waits, calls, checkpoints and snapshots
	// together.
	MaxSteps = 1000
	// MaxStepsBytes bounds all results of a run together.
	MaxStepsBytes    = 64 << 20
	MaxStepNameBytes = 200
	// MaxStepTypeBytes bounds [StepRecord].Type; longer text is cut.
	MaxStepTypeBytes = 120
	// MaxLogBytes bounds the log that is kept of an attempt ([TaskOptions].KeepLogs): its first 48 KiB and its last 16
	// KiB. Lines between these, and lines of more than 16 KiB, are dropped and counted.
	MaxLogBytes = 64 << 10
)

// StepRecord is a named record of a run, stored apart from its history. Names are unique in a run. Only checkpoints
// change after they are recorded.
type StepRecord struct {
	Name      string          `json:"name"`
	Kind      StepKind        `json:"stepKind"`
	Attempt   int             `json:"attempt"`            // the attempt that recorded it
	StartedAt time.Time       `json:"startedAt,omitzero"` // when its work began; zero without work
	At        time.Time       `json:"at"`                 // when it was recorded
	Type      string          `json:"type,omitempty"`     // Go's name of the result's type, for display
	Result    json.RawMessage `json:"result,omitempty"`   // JSON, byte for byte as recorded

	// Fault is the reason why this process could not decode a result that a [Codec] encoded; Result is nil then. It is
	// never stored.
	Fault string `json:"fault,omitempty"`
}

// StepKind is the kind of a [StepRecord]. A storage may return kinds of a newer program.
type StepKind string

// The kinds of records.
const (
	// StepKindStep: work that succeeded, with its result.
	StepKindStep StepKind = "step"
	// StepKindSleep: a pause. The result is its end.
	StepKindSleep StepKind = "sleep"
	// StepKindSnapshot: a value of [Attempt.Snapshot].
	StepKindSnapshot StepKind = "snapshot"
	// StepKindWait: the answer of a wait. The result is a [WaitAnswer].
	StepKindWait StepKind = "wait"
	// StepKindLimit: the time limit of a wait. The result is its end.
	StepKindLimit StepKind = "limit"
	// StepKindVersion: a version of the task's code continued the run. The result is a [TaskVersion].
	StepKindVersion StepKind = "version"
	// StepKindCall: runs called by this run. It has no record; the storage keeps the call itself.
	StepKindCall StepKind = "call"
	// StepKindCheckpoint: the progress of a loop. The only kind with replaceable records.
	StepKindCheckpoint StepKind = "checkpoint"
	// StepKindLog: lines that an attempt logged. A storage keeps these apart: no attempt and no list of steps reads
	// them.
	StepKindLog StepKind = "log"
	// StepKindReceipt: the [Receipt] of an attempt. Runs.Receipts lists them, Runs.Steps does not.
	StepKindReceipt StepKind = "receipt"
)

// TaskVersion records a version of the code that executes the run, see [TaskOptions]: one record for each version.
type TaskVersion struct {
	// Version of the code that recorded it.
	Version int `json:"version"`
	// Began is the version with which the run began.
	Began int `json:"began"`
}
