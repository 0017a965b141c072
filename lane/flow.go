package lane

import (
	"bytes"
	"time"

	"github.com/runlane/runlane-go"
)

// FlowRecord is a flow's stored state, apart from its runs. The graph is in Plan, which only core reads.
type FlowRecord struct {
	// ID is unique within the environment.
	ID runlane.FlowID
	// Version counts the writes of the record, from 1. Zero in a command: a new record.
	Version int64
	// CreatedAt is when the flow was started. It never changes.
	CreatedAt time.Time
	// Round is the number of retries of the flow.
	Round int
	// Closed is 1 if the flow was cancelled in this round, 2 if that includes the nodes that undo (runlane.IfFailed). A
	// closed flow takes no more runs.
	Closed int
	// TendAt is when a tick must continue the flow, because some runs are not made yet or not asked to end yet. Zero:
	// never.
	TendAt time.Time
	// FinishedAt is when the end of the last run was noticed. Zero: not yet.
	FinishedAt time.Time
	// Status of a finished flow, otherwise "".
	Status runlane.FlowStatus
	// Plan is the graph, at most [MaxFlowPlanBytes].
	Plan []byte
}

// MaxFlowPlanBytes bounds the plan of a flow.
const MaxFlowPlanBytes = 350_000

// FlowKey names one flow: FlowID is unique within Environment.
type FlowKey struct {
	Environment runlane.Environment
	FlowID      runlane.FlowID
}

// FlowRead reads the record of one flow.
type FlowRead struct {
	FlowKey
	// WithoutPlan omits the plan, which changes only with the round and may be large.
	WithoutPlan bool
}

// FlowCommand writes the record of a flow in an Environment.
type FlowCommand struct {
	Environment runlane.Environment
	// Flow has Version as read, 0 for a new one. Its plan may be omitted if it does not change.
	Flow FlowRecord
	// Remove deletes the record.
	Remove bool
}

// FlowQuery pages flows: unfinished ones by ID, or with Before by TendAt; or finished ones, latest first.
type FlowQuery struct {
	PageQuery
	// Finished selects finished flows.
	Finished bool
	// Before omits flows with TendAt or FinishedAt at this instant or later, and unfinished flows without TendAt. Zero:
	// no bound.
	Before time.Time
}

// FlowCheck makes the creation of a run depend on its flow FlowID, which must be open and in the run's Round.
type FlowCheck struct {
	FlowID runlane.FlowID
	// CreatedAt is when the flow was started: the ID of a pruned flow may be reused.
	CreatedAt time.Time
	Round     int
}

// Open reports whether the flow takes the run.
func (c *FlowCheck) Open(f *FlowRecord) bool {
	return f != nil && f.CreatedAt.Equal(runlane.UTCMillis(c.CreatedAt)) && f.Round == c.Round && f.Closed == 0
}

// Closed returns runlane.ConflictFlow for a run of a flow that is closed, in another round, or gone.
func (c *FlowCheck) Closed(id runlane.RunID) error {
	e := runlane.NewConflict(runlane.ConflictFlow, "the flow of the run is closed, or is in another round")
	e.RunID, e.Hint = id, "read the flow again"
	return e
}

// Tended reports whether the flow is due for a tick before an instant.
func (f *FlowRecord) Tended(before time.Time) bool {
	return !f.TendAt.IsZero() && f.TendAt.Before(before)
}

// Finished reports whether the flow's last run is known to have ended.
func (f *FlowRecord) Finished() bool { return !f.FinishedAt.IsZero() }

// AtRest returns a deep copy in the form that storages keep: times in whole milliseconds.
func (f *FlowRecord) AtRest() *FlowRecord {
	c := *f
	for _, at := range []*time.Time{&c.CreatedAt, &c.TendAt, &c.FinishedAt} {
		*at = runlane.UTCMillis(*at)
	}
	c.Plan = bytes.Clone(f.Plan)
	return &c
}

// Validate returns runlane.ErrContractViolation if the command contradicts itself.
func (c *FlowCommand) Validate() error {
	f := &c.Flow
	switch {
	case f.ID.Validate() != nil || c.Environment.Validate() != nil:
		return malformed(nil, "flow without a usable id or environment")
	case c.Remove && f.Version < 1:
		return malformed(nil, "removal of a flow without its version")
	case c.Remove:
		return nil
	case f.Version < 0 || f.Round < 0 || f.Closed < 0 || f.CreatedAt.IsZero():
		return malformed(nil, "flow with a version, round or closing below 0, or without a time")
	case f.Version == 0 && len(f.Plan) == 0 || len(f.Plan) > MaxFlowPlanBytes:
		return malformed(nil, "flow with a plan of %d bytes", len(f.Plan))
	case f.Finished() == (f.Status == ""):
		return malformed(nil, "flow with the status %q that finished at %v", f.Status, f.FinishedAt)
	}
	return nil
}

// Changed returns runlane.ConflictFlow for a flow at another version than the command's.
func (c *FlowCommand) Changed() error {
	e := runlane.NewConflict(runlane.ConflictFlow, "the flow has changed since it was read")
	e.Hint, e.Meta = "read it again", map[string]string{"flow": string(c.Flow.ID)}
	return e
}

// FlowNotFound returns runlane.ErrFlowNotFound.
func FlowNotFound(id runlane.FlowID) error {
	return &runlane.Error{
		Code:    runlane.ErrFlowNotFound,
		Message: "there is no such flow",
		Hint:    "check the flow's id and the environment",
		Meta:    map[string]string{"flow": string(id)},
	}
}
