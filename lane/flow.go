package lane

import (
	"bytes"
	"time"

	"github.com/runlane/runlane-go"
)

// FlowRecord is what a storage keeps of a flow beside its runs. Which runs there are, and which go after which, is in
// Plan, which only core reads.
type FlowRecord struct {
	// ID is unique within the environment.
	ID runlane.FlowID
	// Version counts the writes of the record, from 1. Zero in a command: there is none yet.
	Version int64
	// CreatedAt is when the flow was started. It never changes.
	CreatedAt time.Time
	// Round is how often the flow was retried.
	Round int
	// Closed is 1 when the flow was cancelled in this round, 2 when everything of it was. It gets no more runs then.
	Closed int
	// TendAt is when a tick has to look at the flow: one whose runs are not all made yet, or not all asked to end.
	// Zero: never.
	TendAt time.Time
	// FinishedAt is when its last run was seen to have ended. Zero: not yet.
	FinishedAt time.Time
	// Status is that of a finished flow; "" of any other.
	Status runlane.FlowStatus
	// Plan is the graph, at most [MaxFlowPlanBytes].
	Plan []byte
}

// MaxFlowPlanBytes bounds the plan of a flow.
const MaxFlowPlanBytes = 350_000

// FlowKey names one flow.
type FlowKey struct {
	// Environment scopes the flow.
	Environment runlane.Environment
	// FlowID is unique within it.
	FlowID runlane.FlowID
}

// FlowRead reads the record of one flow.
type FlowRead struct {
	FlowKey
	// WithoutPlan leaves the plan out: it changes only with the round, and may be large.
	WithoutPlan bool
}

// FlowCommand writes the record of a flow.
type FlowCommand struct {
	// Environment holds the flow.
	Environment runlane.Environment
	// Flow has Version as read, 0 for a new one. Its plan may be left out where it does not change.
	Flow FlowRecord
	// Remove takes the record away.
	Remove bool
}

// FlowQuery pages flows: those that have not finished, by id, or with Before by when they are to be tended; or those
// that have, by when, the latest first.
type FlowQuery struct {
	PageQuery
	// Finished asks for flows that have finished.
	Finished bool
	// Before leaves out what is to be tended, or has finished, at this instant or later, and of those that have not
	// finished also what is never to be tended. Zero: no bound.
	Before time.Time
}

// FlowCheck makes the creation of a run depend on its flow: it is in this round and not closed.
type FlowCheck struct {
	// FlowID names the flow, of the run's environment.
	FlowID runlane.FlowID
	// CreatedAt is when this flow was started: a flow that was pruned leaves its id to another one.
	CreatedAt time.Time
	// Round is the one that the run is of.
	Round int
}

// Open reports a flow to which a run of the check may be added.
func (c *FlowCheck) Open(f *FlowRecord) bool {
	return f != nil && f.CreatedAt.Equal(runlane.UTCMillis(c.CreatedAt)) && f.Round == c.Round && f.Closed == 0
}

// Closed is the error of a storage for a run whose flow is closed, in another round, or gone: runlane.ConflictFlow.
func (c *FlowCheck) Closed(id runlane.RunID) error {
	e := runlane.NewConflict(runlane.ConflictFlow, "the flow of the run is closed, or is in another round")
	e.RunID, e.Hint = id, "read the flow again"
	return e
}

// Tended reports a flow that is to be tended before an instant.
func (f *FlowRecord) Tended(before time.Time) bool {
	return !f.TendAt.IsZero() && f.TendAt.Before(before)
}

// Finished reports a flow whose last run was seen to have ended.
func (f *FlowRecord) Finished() bool { return !f.FinishedAt.IsZero() }

// AtRest is the record as storages keep it: times in whole milliseconds, sharing nothing with f.
func (f *FlowRecord) AtRest() *FlowRecord {
	c := *f
	for _, at := range []*time.Time{&c.CreatedAt, &c.TendAt, &c.FinishedAt} {
		*at = runlane.UTCMillis(*at)
	}
	c.Plan = bytes.Clone(f.Plan)
	return &c
}

// Validate finds a command that contradicts itself: runlane.ErrContractViolation.
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

// Changed is the error of a storage for a flow that is not at the version of the command: runlane.ConflictFlow.
func (c *FlowCommand) Changed() error {
	e := runlane.NewConflict(runlane.ConflictFlow, "the flow has changed since it was read")
	e.Hint, e.Meta = "read it again", map[string]string{"flow": string(c.Flow.ID)}
	return e
}

// FlowNotFound is the error of a storage for a flow that is not there: runlane.ErrFlowNotFound.
func FlowNotFound(id runlane.FlowID) error {
	return &runlane.Error{
		Code:    runlane.ErrFlowNotFound,
		Message: "there is no such flow",
		Hint:    "check the flow's id and the environment",
		Meta:    map[string]string{"flow": string(id)},
	}
}
