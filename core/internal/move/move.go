// Package move writes an environment to a file, and a file into an environment: every run as its history. Package core
// has the public calls; docs/moving.md has the format.
package move

import (
	"context"
	"encoding/json"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// Host is what moving needs of the runtime.
type Host interface {
	// Storage is the one on which the runtime works. Stored is the same without the codec.
	Storage() lane.Storage
	Stored() lane.Storage
	// Bare reads a run without payload and output.
	Bare(ctx context.Context, id runlane.RunID) (*runlane.Run, error)
	// Resume lets a run that waits go on. One that changed since it was read is runlane.ConflictEventSequence.
	Resume(ctx context.Context, run *runlane.Run, body *runlane.RunResumed) error
	// Ordered reports an ordered queue; OrderedInUse are those that the program or a stored task names.
	Ordered(queue runlane.QueueName) bool
	OrderedInUse(ctx context.Context) ([]runlane.QueueName, error)
	// SupportsFlows refuses a storage that keeps none.
	SupportsFlows() error
	// Flow reads the whole record of a flow, with a graph that can be read.
	Flow(ctx context.Context, id runlane.FlowID) (*lane.FlowRecord, error)
	// SettleFlow looks at the nodes of a flow that was written; there says that it was there before.
	SettleFlow(ctx context.Context, record *lane.FlowRecord, there bool) error
	// PayloadHash is what a later trigger of the same key is compared with, "" where nothing may be kept.
	PayloadHash(payload []byte) string
	// NamesSignals reports an answer that only names its signals.
	NamesSignals(answer json.RawMessage) bool
}

// Mover moves the runs of one environment.
type Mover struct {
	Host        Host
	Environment runlane.Environment
	Limits      lane.Storage // says what it has room for
}

// Moved is core.Moved.
type Moved struct {
	Runs, Schedules, Tasks, Flows int
	Written                       int
	Unordered                     []runlane.QueueName
}

// Options of Export.
type Options struct {
	Wait         bool // for the end of attempts, where Export else refuses
	LeaveSignals bool // that no wait has read, where Export else refuses
	At           time.Time
}

// eachPage goes through a list to its end.
func (m *Mover) eachPage(read func(*lane.PageQuery) (runlane.Cursor, error)) error {
	q := &lane.PageQuery{Environment: m.Environment, Limit: runlane.MaxPageLimit}
	for {
		next, err := read(q)
		if err != nil || next == "" {
			return err
		}
		q.After = next
	}
}

func (m *Mover) keepsTasks() bool { return m.Host.Storage().Capabilities().KeepsTasks }
