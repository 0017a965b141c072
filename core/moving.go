package core

import (
	"context"
	"encoding/json"
	"io"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core/internal/move"
	"github.com/runlane/runlane-go/lane"
)

// ExportOptions of [Runtime.Export]. nil means none.
type ExportOptions struct {
	// Wait waits for attempts to end; otherwise Export refuses while one executes. The context bounds it.
	Wait bool
	// LeaveSignals leaves unread signals behind; otherwise Export refuses them. A run that waits for one then waits
	// until it is sent again.
	LeaveSignals bool
}

// Moved counts the objects that [Runtime.Export] wrote or [Runtime.Import] read.
type Moved struct {
	// Runs, Schedules, Tasks and Flows count the objects in the file.
	Runs, Schedules, Tasks, Flows int
	// Written counts the runs that Import wrote. The others were there from an earlier import.
	Written int
	// Unordered are queues that were ordered at the Export and are not at the Import: their runs of one concurrency key
	// may execute here at once, in any order.
	Unordered []runlane.QueueName
}

// Export writes the environment as JSON, one object a line (docs/moving.md): its tasks, its schedules, its runs by
// creation time with their histories, and its flows. First stop the programs that trigger and execute runs. A run with
// an executing attempt is [runlane.ErrStorageConflict], unless options wait for it; runs that it creates meanwhile
// follow after the others.
//
// Every history is folded and must give the stored run, else [runlane.ErrInvariantViolation]. Payloads and outputs are
// written as stored: encoded ones stay encoded and need the codec's keys later. Dead letters, progress notes, past
// occurrences and signals are not written; a run has the signals that a wait has read. An active run with other signals
// is [runlane.ErrStorageConflict], unless options leave them.
func (rt *Runtime) Export(ctx context.Context, to io.Writer, options *ExportOptions) (*Moved, error) {
	o := move.Options{At: rt.now()}
	if options != nil {
		o.Wait, o.LeaveSignals = options.Wait, options.LeaveSignals
	}
	moved, err := rt.mover().Export(ctx, to, o)
	return (*Moved)(moved), err
}

// Import reads a file from [Runtime.Export] into the runtime's environment, which must have the same name. It reads the
// whole file first: if the file is truncated or changed, a history does not fold, an id occurs twice or a key has two
// owners, it writes nothing and returns [runlane.ErrValidationFailed].
//
// A run keeps its history, its times and its keys, but no reserved slot. A waiting run goes on here; the next tick
// sends its wakeup at the latest. Repeat an interrupted import with the same file: existing objects are compared and
// left alone. A run with the same id and another history, or a key that a run holds here, is
// [runlane.ErrStorageConflict]. Let no other program trigger into the environment until Import returns.
func (rt *Runtime) Import(ctx context.Context, from io.ReadSeeker) (*Moved, error) {
	moved, err := rt.mover().Import(ctx, from)
	return (*Moved)(moved), err
}

// CheckImport validates a file as [Runtime.Import] does before it writes, and returns the file's environment. It is for
// callers that create a lane only for a valid file. A file that Import would refuse is [runlane.ErrValidationFailed].
func CheckImport(from io.Reader) (runlane.Environment, error) { return move.Check(from) }

func (rt *Runtime) mover() *move.Mover {
	return &move.Mover{Host: moveHost{rt}, Environment: rt.environment, Limits: rt.storage()}
}

// moveHost implements move.Host.
type moveHost struct{ rt *Runtime }

func (h moveHost) Storage() lane.Storage { return h.rt.storage() }

func (h moveHost) Stored() lane.Storage { return h.rt.codec.Storage }

func (h moveHost) Bare(ctx context.Context, id runlane.RunID) (*runlane.Run, error) {
	return h.rt.bare(ctx, id)
}

func (h moveHost) Resume(ctx context.Context, run *runlane.Run, body *runlane.RunResumed) error {
	return h.rt.resumeWaiting(ctx, run, body)
}

func (h moveHost) Ordered(queue runlane.QueueName) bool { return h.rt.ordered(queue) }

func (h moveHost) OrderedInUse(ctx context.Context) (names []runlane.QueueName, err error) {
	states, err := h.rt.Queues().InUse(ctx)
	for i := range states {
		if states[i].Ordered {
			names = append(names, states[i].Queue.Name)
		}
	}
	return names, err
}

func (h moveHost) SupportsFlows() error { return h.rt.suspends() }

func (h moveHost) Flow(ctx context.Context, id runlane.FlowID) (*lane.FlowRecord, error) {
	return h.rt.flows.Record(ctx, id)
}

func (h moveHost) SettleFlow(ctx context.Context, record *lane.FlowRecord, there bool) error {
	return h.rt.flows.Settle(ctx, record, there)
}

// PayloadHash returns "" with a codec.
func (h moveHost) PayloadHash(payload []byte) string {
	if h.rt.coded || isCoded(payload) {
		return ""
	}
	return payloadHash(payload)
}

func (h moveHost) NamesSignals(answer json.RawMessage) bool {
	return json.Unmarshal(answer, new(answerRefs)) == nil
}
