package runlane

import (
	"encoding/json"
	"time"
)

const (
	// MaxSteps is how many records a run may have: its steps, sleeps, waits, calls, checkpoints and snapshots together.
	MaxSteps = 1000
	// MaxStepsBytes bounds the results of all of them together.
	MaxStepsBytes = 64 << 20
	// MaxStepNameBytes bounds the name of each.
	MaxStepNameBytes = 200
	// MaxStepTypeBytes bounds [StepRecord].Type, which is cut to it.
	MaxStepTypeBytes = 120
)

// StepRecord is what a run remembers under a name, beside its history. No name of a run ever has two records. All but
// a checkpoint's stay as they were first recorded.
type StepRecord struct {
	Name      string          `json:"name"`
	Kind      StepKind        `json:"stepKind"`
	Attempt   int             `json:"attempt"`            // that recorded it
	StartedAt time.Time       `json:"startedAt,omitzero"` // when its work began; zero for what is no work
	At        time.Time       `json:"at"`                 // when it was recorded
	Type      string          `json:"type,omitempty"`     // Go's name of the result's type, for people
	Result    json.RawMessage `json:"result,omitempty"`   // JSON, byte by byte as it was recorded

	// Fault says why this process could not decode a result that a [Codec] encoded. Result is nil then. Storages keep
	// none.
	Fault string `json:"fault,omitempty"`
}

// StepKind is what made a [StepRecord]. A storage may return kinds of a newer program.
type StepKind string

// The kinds of records.
const (
	// StepKindStep: work that has succeeded. Its result is what the work returned.
	StepKindStep StepKind = "step"
	// StepKindSleep: a pause. Its result is the moment at which it is over.
	StepKindSleep StepKind = "sleep"
	// StepKindSnapshot: what a handler wanted to have kept as it was.
	StepKindSnapshot StepKind = "snapshot"
	// StepKindWait: what answered a wait. Its result is a [WaitAnswer].
	StepKindWait StepKind = "wait"
	// StepKindLimit: the moment at which the time limit of a wait is over. Its result is an instant.
	StepKindLimit StepKind = "limit"
	// StepKindVersion: that code of a version of the task went on with the run. Its result is a [TaskVersion].
	StepKindVersion StepKind = "version"
	// StepKindCall: runs that the run has called. It has no record: the call is counted beside the run.
	StepKindCall StepKind = "call"
	// StepKindCheckpoint: how far a loop has come. The only kind whose record is replaced.
	StepKindCheckpoint StepKind = "checkpoint"
)

// TaskVersion is what a run remembers of the code that executes it, see [TaskOptions]: one record for each version.
type TaskVersion struct {
	// Version of the code that recorded it.
	Version int `json:"version"`
	// Began is the version that the run began with.
	Began int `json:"began"`
}
