package lane

import (
	"fmt"
	"time"

	"github.com/runlane/runlane-go"
)

// RunCall is a call stored for the run that made it: how many children it has (they name the caller as their Source),
// and how many of their ends were counted.
type RunCall struct {
	// Name is unique among the calls of the run.
	Name string
	// TaskID is the task of each child.
	TaskID runlane.TaskID
	// Count of children, from 1.
	Count int
	// Ended is how many of their ends were counted.
	Ended int
	// Sum is a checksum of the payloads; "" if unknown.
	Sum string
	// At is the time of the call.
	At time.Time
}

// Whole reports whether every end was counted.
func (c *RunCall) Whole() bool { return c.Ended >= c.Count }

// Same reports whether both are the same call; Ended is ignored. Sums are compared only if both are known, because a
// codec may have been added since.
func (c *RunCall) Same(other *RunCall) bool {
	return c.Name == other.Name && c.TaskID == other.TaskID && c.Count == other.Count &&
		(c.Sum == other.Sum || c.Sum == "" || other.Sum == "")
}

// CallCommand stores a call of a run, before its first child is made.
type CallCommand struct {
	RunKey
	// CreatedAt is the run's creation time.
	CreatedAt time.Time
	// LeaseToken of the run's owner.
	LeaseToken string
	// Call to store. Its Ended is 0.
	Call RunCall
}

// CallQuery reads the calls of a run. Name selects one; "" means all.
type CallQuery struct {
	RunKey
	Name string
}

// CallsRead holds the Calls of a run, by name, and the Run without payload and output.
type CallsRead struct {
	Run   *runlane.Run
	Calls []RunCall
	// NotificationPending: the run has ended and its notification is pending, see [MustNotify].
	NotificationPending bool
}

// NotifyCommand notifies the parent of an ended run: it removes the mark for the pending notification and counts the
// end in the parent's call. RunKey and CreatedAt identify the ended run.
type NotifyCommand struct {
	RunKey
	CreatedAt time.Time
	// To is the call that counts the end, as read. nil if there is none, or if its run has ended or is gone.
	To *CallRead
	// Resume ends the parent's wait, after the last end; nil for none.
	Resume *AppendCommand
}

// CallRead is a call as it was read. RunID and CreatedAt identify the calling run, Name the call in it; Count and Ended
// are the counts of the [RunCall].
type CallRead struct {
	RunID     runlane.RunID
	CreatedAt time.Time
	Name      string
	Count     int
	Ended     int
	// Wait is the sequence of the calling run if its wait was read and does not end with this; otherwise 0.
	Wait int64
}

// Last reports whether this is the last missing end of the call.
func (c *CallRead) Last() bool { return c.Ended+1 >= c.Count }

// MustNotify reports whether a run has ended and must notify others: of its end, its parent or its flow; of its
// cancellation, the children that it has called. called is true if it has any.
func MustNotify(run *runlane.Run, called bool) bool {
	return run.Status.Terminal() && (NotifiesAtEnd(run.Source.Type) || called && run.Status == runlane.StatusCancelled)
}

// NotifiesAtEnd reports whether runs of this source notify a parent or a flow of their ends.
func NotifiesAtEnd(source runlane.SourceType) bool {
	return source == runlane.SourceCall || source == runlane.SourceFlow
}

// Validate returns runlane.ErrContractViolation if the command contradicts itself.
func (c *CallCommand) Validate() error {
	fault := ""
	switch {
	case c.RunID.Validate() != nil || c.Environment.Validate() != nil:
		fault = "call of a run without a usable id or environment"
	case c.CreatedAt.IsZero() || c.LeaseToken == "":
		fault = "call without the time of its run, or without a lease"
	case runlane.ValidateCallName(c.Call.Name) != nil:
		fault = "call without a usable name"
	case c.Call.TaskID == "":
		fault = "call without a task"
	case c.Call.Count < 1 || c.Call.Count > runlane.MaxCalled:
		fault = fmt.Sprintf("call of %d runs, not 1 to %d", c.Call.Count, runlane.MaxCalled)
	case c.Call.Ended != 0:
		fault = fmt.Sprintf("new call with %d ended runs", c.Call.Ended)
	}
	return callFault(c.RunID, fault)
}

// Validate returns runlane.ErrContractViolation if the command contradicts itself.
func (c *NotifyCommand) Validate() error {
	fault := ""
	switch {
	case c.RunID.Validate() != nil || c.Environment.Validate() != nil || c.CreatedAt.IsZero():
		fault = "end of a run without a usable id, environment or time"
	case c.To == nil && c.Resume != nil:
		fault = "end that resumes a run without a parent call"
	case c.To == nil:
	case c.To.RunID.Validate() != nil || c.To.RunID == c.RunID || c.To.CreatedAt.IsZero() || c.To.Name == "":
		fault = "end with an unusable parent call"
	case c.To.Ended < 0 || c.To.Ended >= c.To.Count:
		fault = "end beyond the number of the called runs"
	case c.Resume != nil && !c.To.Last():
		fault = "end that resumes a run before the last one"
	case c.Resume != nil && (c.Resume.Projected == nil || c.Resume.Creates() ||
		c.Resume.Projected.ID != c.To.RunID ||
		c.Resume.Projected.Environment.Name() != c.Environment.Name()):
		fault = "end that resumes a run other than the parent"
	}
	return callFault(c.RunID, fault)
}

func callFault(id runlane.RunID, fault string) error {
	if fault == "" {
		return nil
	}
	return &runlane.Error{Code: runlane.ErrContractViolation, Message: fault, RunID: id}
}

// AlreadyNotified returns runlane.ConflictWait for an end without its mark, or a changed call or wait.
func (c *NotifyCommand) AlreadyNotified() error {
	e := runlane.NewConflict(runlane.ConflictWait, "the parent was already notified, or it has changed since it was read")
	e.RunID, e.Hint = c.RunID, "read it again"
	return e
}
