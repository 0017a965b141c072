package lane

import (
	"time"

	"github.com/runlane/runlane-go"
)

// Signal is a signal stored for a run. Its Body is opaque bytes like a payload: with a codec it is not JSON.
type Signal struct {
	// Name and ID together are unique for one run.
	Name, ID string
	// Number is the signal's place in the order of arrival, from 1.
	Number int64
	// SentAt is the time of sending.
	SentAt time.Time
	Body   []byte
}

// MailQuery reads signals of a run with these Names.
type MailQuery struct {
	RunKey
	Names []string
	// ID selects one signal of each name. "" selects the first of each, with the smallest Number.
	ID string
	// WithoutBodies omits the bodies.
	WithoutBodies bool
}

// Mail holds the requested Signals of a run, in the order of the names, and the Run without payload and output.
type Mail struct {
	Run *runlane.Run
	// Count is the number of all signals of the run. It is read before the signals: a signal missing in Signals may be
	// newer than Count, but every counted one is there.
	Count   int64
	Signals []Signal
}

// SignalCommand stores a signal for an active run and ends the wait that it satisfies.
type SignalCommand struct {
	RunKey
	// CreatedAt is the run's creation time as read.
	CreatedAt time.Time
	// Count of the mail as read.
	Count int64
	// Wait is the sequence of the run if its wait was read and this signal does not satisfy it; otherwise 0.
	Wait int64
	// Signal to store. Its Number is Count + 1.
	Signal Signal
	// Resume ends the wait; nil for none. Its Outbox is the initial state of the delivery's row.
	Resume *AppendCommand
}

// Look is the state that a suspension has read before it asked for the end of the attempt.
type Look struct {
	// Signals is the count of the mail; -1 if it was not read.
	Signals int64
	// Calls are the names of calls with missing ends: a set of at most [MaxLookCalls].
	Calls []string
}

// MaxLookCalls bounds the calls on which a suspension depends. Every storage can check this many in one commit.
const MaxLookCalls = 64

// Mailed reports whether the count of the mail has changed. l may be nil.
func (l *Look) Mailed(count int64) bool { return l != nil && l.Signals >= 0 && l.Signals != count }

// Validate returns runlane.ErrContractViolation if the command contradicts itself.
func (c *SignalCommand) Validate() error {
	fault := ""
	switch {
	case c.RunID.Validate() != nil || c.Environment.Validate() != nil:
		fault = "signal to a run without a usable id or environment"
	case runlane.ValidateSignalName(c.Signal.Name) != nil:
		fault = "signal without a usable name"
	case c.Signal.ID == "" || len(c.Signal.ID) > runlane.MaxSignalIDBytes ||
		runlane.ValidateKey("id", c.Signal.ID) != nil:
		fault = "signal without a usable id"
	case c.CreatedAt.IsZero() || c.Signal.SentAt.IsZero():
		fault = "signal without the time of its run, or its own"
	case c.Count < 0 || c.Signal.Number != c.Count+1:
		fault = "signal with another number than the next"
	case c.Resume != nil && (c.Resume.Projected == nil || c.Resume.Creates() ||
		c.Resume.Projected.ID != c.RunID ||
		c.Resume.Projected.Environment.Name() != c.Environment.Name()):
		fault = "signal that resumes another run"
	}
	if fault == "" {
		return nil
	}
	return &runlane.Error{Code: runlane.ErrContractViolation, Message: fault, RunID: c.RunID}
}

// TooLarge returns runlane.ErrValidationFailed for a body that the storage cannot hold.
func (c *SignalCommand) TooLarge(err error) error {
	return &runlane.Error{
		Code:    runlane.ErrValidationFailed,
		RunID:   c.RunID,
		Message: "the body of signal " + c.Signal.Name + " is larger than the storage can hold",
		Hint:    "store the bulk elsewhere and send a reference",
		Cause:   err,
	}
}

// Exists returns runlane.ConflictSignal for an existing signal of that name and ID.
func (c *SignalCommand) Exists() error {
	e := runlane.NewConflict(runlane.ConflictSignal, "a signal of this name and id exists with another body")
	e.RunID, e.Retryable = c.RunID, false
	return e
}

// Moved returns runlane.ConflictWait for mail or a wait that has changed since it was read.
func Moved(id runlane.RunID) error {
	e := runlane.NewConflict(runlane.ConflictWait, "the run's mail or wait has changed since it was read")
	e.RunID, e.Hint = id, "read it again"
	return e
}
