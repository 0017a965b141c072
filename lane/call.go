package lane

import (
	"time"

	"github.com/runlane/runlane-go"
)

// RunCall stands beside a run that has called others, which name it as their Source: how many it called, and how many
// of their ends were counted.
type RunCall struct {
	// Name is unique among the calls of the run.
	Name string
	// TaskID is the task of each of the runs.
	TaskID runlane.TaskID
	// Count is how many runs there are, from 1.
	Count int
	// Ended is how many of their ends were counted.
	Ended int
	// Sum tells other payloads under the same name; "" where that cannot be told.
	Sum string
	// At is when it was called.
	At time.Time
}

// Whole reports that every end was counted.
func (c *RunCall) Whole() bool { return c.Ended >= c.Count }

// Same reports the same call, whatever was counted of it. Payloads are compared where both tell of them: a codec may
// have been given since.
func (c *RunCall) Same(other *RunCall) bool {
	return c.Name == other.Name && c.TaskID == other.TaskID && c.Count == other.Count &&
		(c.Sum == other.Sum || c.Sum == "" || other.Sum == "")
}

// CallCommand puts a call beside a run, before the first run that is called is made.
type CallCommand struct {
	RunKey
	// CreatedAt is when the run was created.
	CreatedAt time.Time
	// LeaseToken proves that the run's owner calls.
	LeaseToken string
	// Call is what to put. Nothing of it has ended.
	Call RunCall
}

// CallQuery reads the calls of a run.
type CallQuery struct {
	RunKey
	// Name asks for one call. "" asks for all.
	Name string
}

// CallsRead are the calls of a run, and whether its own end is still to be told.
type CallsRead struct {
	// Run is the run without payload and output.
	Run *runlane.Run
	// Calls that are there, by name.
	Calls []RunCall
	// Untold says that the run has ended, and that its end was not told yet, see [Untold].
	Untold bool
}

// TellCommand tells the end of a run: it removes the mark that the end is untold, and counts the end in the call of
// the run that waits for it.
type TellCommand struct {
	// RunKey names the run that has ended.
	RunKey
	// CreatedAt is when it was created.
	CreatedAt time.Time
	// To is the call that counts the end, as it was read. nil where there is none, or none any more: its run has ended
	// or is gone.
	To *CallRead
	// Resume, of the last end, is the transition that ends the wait of the run that called; nil for none.
	Resume *AppendCommand
}

// CallRead is a call as a teller has read it.
type CallRead struct {
	// RunID names the run that called.
	RunID runlane.RunID
	// CreatedAt is when that run was created.
	CreatedAt time.Time
	// Name is that of the call.
	Name string
	// Count is how many runs it has.
	Count int
	// Ended is how many of their ends were counted.
	Ended int
	// Wait is the sequence of the run whose wait was read and does not end with this; 0 where no wait was read.
	Wait int64
}

// Last reports that no other end of the call is missing.
func (c *CallRead) Last() bool { return c.Ended+1 >= c.Count }

// Untold reports that a run has ended and leaves something to be told: its end to the run that called it or to its
// flow, or its cancellation to the runs that it has called. called says whether it has called any.
func Untold(run *runlane.Run, called bool) bool {
	return run.Status.Terminal() && (Tells(run.Source.Type) || called && run.Status == runlane.StatusCancelled)
}

// Tells reports a source whose runs tell their ends.
func Tells(source runlane.SourceType) bool {
	return source == runlane.SourceCall || source == runlane.SourceFlow
}

// Validate finds a command that contradicts itself: runlane.ErrContractViolation.
func (c *CallCommand) Validate() error {
	fault := ""
	switch {
	case c.RunID.Validate() != nil || c.Environment.Validate() != nil:
		fault = "call of a run without a usable id or environment"
	case c.CreatedAt.IsZero() || c.LeaseToken == "":
		fault = "call without the time of its run, or without a lease"
	case runlane.ValidateCallName(c.Call.Name) != nil:
		fault = "call without a usable name"
	case c.Call.TaskID == "" || c.Call.Count < 1 || c.Call.Count > runlane.MaxCalled || c.Call.Ended != 0:
		fault = "call of no task, of no runs, of too many, or of some that have ended"
	}
	return callFault(c.RunID, fault)
}

// Validate finds a command that contradicts itself: runlane.ErrContractViolation.
func (c *TellCommand) Validate() error {
	fault := ""
	switch {
	case c.RunID.Validate() != nil || c.Environment.Validate() != nil || c.CreatedAt.IsZero():
		fault = "end of a run without a usable id, environment or time"
	case c.To == nil && c.Resume != nil:
		fault = "end that resumes a run which counts it in no call"
	case c.To == nil:
	case c.To.RunID.Validate() != nil || c.To.RunID == c.RunID || c.To.CreatedAt.IsZero() || c.To.Name == "":
		fault = "end that is told to no usable call"
	case c.To.Ended < 0 || c.To.Ended >= c.To.Count:
		fault = "end beyond the number of the called runs"
	case c.Resume != nil && !c.To.Last():
		fault = "end that resumes a run before the last one"
	case c.Resume != nil && (c.Resume.Projected == nil || c.Resume.Creates() ||
		c.Resume.Projected.ID != c.To.RunID ||
		c.Resume.Projected.Environment.Name() != c.Environment.Name()):
		fault = "end that resumes another run than it is told to"
	}
	return callFault(c.RunID, fault)
}

func callFault(id runlane.RunID, fault string) error {
	if fault == "" {
		return nil
	}
	return &runlane.Error{Code: runlane.ErrContractViolation, Message: fault, RunID: id}
}

// NotTold is the error of a storage for an end that is not untold, or a call or a wait that is not as it was read:
// runlane.ConflictWait.
func (c *TellCommand) NotTold() error {
	e := runlane.NewConflict(runlane.ConflictWait, "the end was told, or the run that called is not as it was read")
	e.RunID, e.Hint = c.RunID, "look again"
	return e
}
