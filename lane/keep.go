package lane

import (
	"time"

	"github.com/runlane/runlane-go"
)

// KeepRecord is where the removal of old runs of an environment stands, for the ticks of all its programs.
type KeepRecord struct {
	// Rule was said by a program. Programs that say none follow it.
	Rule runlane.Keep `json:",omitzero"`
	// RuleAt is when it was said.
	RuleAt time.Time `json:",omitzero"`
	// At is when ticks last ended with all passes.
	At time.Time `json:",omitzero"`
	// Passes are the ways through the finished runs.
	Passes []KeepPass `json:",omitempty"`
}

// KeepPass goes through the finished runs of a status, of some tasks, that are older than a time.
type KeepPass struct {
	// Name says which runs, in at most 100 bytes.
	Name string
	// At is when the last pass ended.
	At time.Time `json:",omitzero"`
	// Whole is when a pass last began with the oldest run.
	Whole time.Time `json:",omitzero"`
	// Since is where the next begins: all that finished before was looked at.
	Since time.Time `json:",omitzero"`
	// Until is the cutoff of a pass that has not ended.
	Until time.Time `json:",omitzero"`
	// After is its place.
	After runlane.Cursor `json:",omitempty"`
}

// PutKeepCommand stores the Record of an Environment and replaces an existing one.
type PutKeepCommand struct {
	Environment runlane.Environment
	Record      KeepRecord
}
