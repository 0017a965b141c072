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
	// Wait waits for the end of attempts, where Export else refuses. The context bounds it.
	Wait bool
	// LeaveSignals leaves signals behind that no wait has read, where Export else refuses: a run that waits for one of
	// them then waits until it is sent again.
	LeaveSignals bool
}

// Moved counts what [Runtime.Export] wrote, or [Runtime.Import] read.
type Moved struct {
	// Runs, Schedules, Tasks and Flows are in the file.
	Runs, Schedules, Tasks, Flows int
	// Written are those of the runs that Import had to write: the others were there, from an import before.
	Written int
	// Unordered are the queues that were ordered ones where Export was, and are none where Import is: their runs of one
	// concurrency key may execute at once here, in any order.
	Unordered []runlane.QueueName
}

// Export writes the environment as JSON, one object a line: its tasks, its schedules, its runs by the time of their
// creation, each with its whole history, and its flows. docs/moving.md has the format. Stop what triggers and executes
// first. A run that an attempt executes is [runlane.ErrStorageConflict], unless options wait for it; runs that it makes
// until its end follow behind the others.
//
// Every history is folded, and has to give the run that the storage shows, else [runlane.ErrInvariantViolation].
// Payloads and outputs are written as the storage keeps them: those of a codec stay as they are, and need its keys
// later. Dead letters, progress notes and the list of past occurrences are not written. Nor are signals: what a wait
// has read is remembered by its run and written, and a run that is active with others is
// [runlane.ErrStorageConflict], unless options leave them.
func (rt *Runtime) Export(ctx context.Context, to io.Writer, options *ExportOptions) (*Moved, error) {
	o := move.Options{At: rt.now()}
	if options != nil {
		o.Wait, o.LeaveSignals = options.Wait, options.LeaveSignals
	}
	moved, err := rt.mover().Export(ctx, to, o)
	return (*Moved)(moved), err
}

// Import writes what [Runtime.Export] wrote into the runtime's environment, which has to have the same name. The whole
// file is read first: one that was cut off or changed, a history that does not fold, an id that is there twice, or two
// owners of a key, is [runlane.ErrValidationFailed], and nothing is written.
//
// A run is written with its history, its times and its keys; a run that waits goes on here, its wakeup is sent by the
// next tick at the latest. A slot that it had reserved stays behind. An import that was interrupted is repeated with
// the same file: what is there is compared and left alone. A run with the same id and another history, or a key that a
// run has here, is [runlane.ErrStorageConflict]. Until it has ended, let nothing else trigger into the environment.
func (rt *Runtime) Import(ctx context.Context, from io.ReadSeeker) (*Moved, error) {
	moved, err := rt.mover().Import(ctx, from)
	return (*Moved)(moved), err
}

// CheckImport judges a file as [Runtime.Import] does before it writes, and returns the environment that it is of: for
// callers that make a lane only for a file that can be imported. What Import would refuse is
// [runlane.ErrValidationFailed].
func CheckImport(from io.Reader) (runlane.Environment, error) { return move.Check(from) }

func (rt *Runtime) mover() *move.Mover {
	return &move.Mover{Host: moveHost{rt}, Environment: rt.environment, Limits: rt.storage()}
}

// moveHost is what moving needs of the runtime.
type moveHost struct{ rt *Runtime }

// Storage implements move.Host.
func (h moveHost) Storage() lane.Storage { return h.rt.storage() }

// Stored implements move.Host.
func (h moveHost) Stored() lane.Storage { return h.rt.codec.Storage }

// Bare implements move.Host.
func (h moveHost) Bare(ctx context.Context, id runlane.RunID) (*runlane.Run, error) {
	return h.rt.bare(ctx, id)
}

// Resume implements move.Host.
func (h moveHost) Resume(ctx context.Context, run *runlane.Run, body *runlane.RunResumed) error {
	return h.rt.resumeWaiting(ctx, run, body)
}

// Ordered implements move.Host.
func (h moveHost) Ordered(queue runlane.QueueName) bool { return h.rt.ordered(queue) }

// OrderedInUse implements move.Host.
func (h moveHost) OrderedInUse(ctx context.Context) (names []runlane.QueueName, err error) {
	states, err := h.rt.Queues().InUse(ctx)
	for i := range states {
		if states[i].Ordered {
			names = append(names, states[i].Queue.Name)
		}
	}
	return names, err
}

// SupportsFlows implements move.Host.
func (h moveHost) SupportsFlows() error { return h.rt.suspends() }

// Flow implements move.Host.
func (h moveHost) Flow(ctx context.Context, id runlane.FlowID) (*lane.FlowRecord, error) {
	return h.rt.flows.Record(ctx, id)
}

// SettleFlow implements move.Host.
func (h moveHost) SettleFlow(ctx context.Context, record *lane.FlowRecord, there bool) error {
	return h.rt.flows.Settle(ctx, record, there)
}

// PayloadHash implements move.Host. Where there is a codec, none is kept.
func (h moveHost) PayloadHash(payload []byte) string {
	if h.rt.coded || isCoded(payload) {
		return ""
	}
	return payloadHash(payload)
}

// NamesSignals implements move.Host.
func (h moveHost) NamesSignals(answer json.RawMessage) bool {
	return json.Unmarshal(answer, new(answerRefs)) == nil
}
