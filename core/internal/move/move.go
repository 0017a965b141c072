// Package move exports an environment to a file and imports it: every run as its history. Package core has the public
// calls; docs/moving.md has the format.
package move

import (
	"context"
	"encoding/json"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// Host is the runtime's side of moving.
type Host interface {
	// Storage is the runtime's storage. Stored is the same without the codec.
	Storage() lane.Storage
	Stored() lane.Storage
	// Bare reads a run without payload and output.
	Bare(ctx context.Context, id runlane.RunID) (*runlane.Run, error)
	// Resume resumes a waiting run. If it changed since the read: runlane.ConflictEventSequence.
	Resume(ctx context.Context, run *runlane.Run, body *runlane.RunResumed) error
	// Ordered reports whether a queue is ordered; OrderedInUse lists the ordered queues of the program and of stored
	// tasks.
	Ordered(queue runlane.QueueName) bool
	OrderedInUse(ctx context.Context) ([]runlane.QueueName, error)
	// SupportsFlows refuses a storage without flows.
	SupportsFlows() error
	// Flow reads the whole record of a flow and checks that its graph is readable.
	Flow(ctx context.Context, id runlane.FlowID) (*lane.FlowRecord, error)
	// SettleFlow judges the nodes of an imported flow; there means that the flow existed before.
	SettleFlow(ctx context.Context, record *lane.FlowRecord, there bool) error
	// PayloadHash returns the hash with which later triggers of the key are compared; "" if none may be stored.
	PayloadHash(payload []byte) string
	// NamesSignals reports whether an answer only names its signals.
	NamesSignals(answer json.RawMessage) bool
}

// Mover moves the runs of one environment.
type Mover struct {
	Host        Host
	Environment runlane.Environment
	Limits      lane.Storage // checks sizes
}

// Moved is core.Moved.
type Moved struct {
	Runs, Schedules, Tasks, Flows int
	Written                       int
	Unordered                     []runlane.QueueName
}

// Options of Export.
type Options struct {
	Wait         bool // wait for the end of attempts instead of refusing
	LeaveSignals bool // leave unread signals behind instead of refusing
	At           time.Time
}

// eachPage reads all pages of a list.
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
