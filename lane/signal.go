package lane

import (
	"time"

	"github.com/runlane/runlane-go"
)

// Signal is a signal beside a run. Its Body is bytes like a payload: under a codec no JSON.
type Signal struct {
	// Name and ID are unique together beside one run.
	Name, ID string
	// Number counts the signals of the run, from 1: the order in which they came.
	Number int64
	// SentAt is when it was sent.
	SentAt time.Time
	// Body is what was sent.
	Body []byte
}

// MailQuery reads what was sent to a run.
type MailQuery struct {
	RunKey
	// Names are those of the signals that are asked for.
	Names []string
	// ID asks for one signal of each name. "" asks for the one of each that came first: that of the smallest Number.
	ID string
	// WithoutBodies leaves the bodies out.
	WithoutBodies bool
}

// Mail is what was sent to a run, as far as it was asked for.
type Mail struct {
	// Run is the run without payload and output.
	Run *runlane.Run
	// Count is how many signals stand beside the run. It is read before the signals: one that is missing among them
	// may have raised it since, and one that has raised it is among them.
	Count int64
	// Signals that are there, in the order of the names.
	Signals []Signal
}

// SignalCommand puts a signal beside an active run, and ends the wait that it satisfies.
type SignalCommand struct {
	RunKey
	// CreatedAt is when the run was created, as it was read.
	CreatedAt time.Time
	// Count is that of the mail that was read.
	Count int64
	// Wait is the sequence of the run whose wait was read and is not satisfied by this; 0 where no wait was read.
	Wait int64
	// Signal is what to put. Its Number is Count + 1.
	Signal Signal
	// Resume is the transition that ends the wait, nil for none. Its Outbox is how the delivery's row begins.
	Resume *AppendCommand
}

// Look is what a suspension had looked at before it asked for the end of the attempt.
type Look struct {
	// Signals is the count of the mail; -1 where it was not looked at.
	Signals int64
	// Calls are the names of calls of which ends were missing: a set of at most [MaxLookCalls].
	Calls []string
}

// MaxLookCalls bounds the calls on which a suspension depends. Every storage can check as many in one commit.
const MaxLookCalls = 64

// Mailed reports another count of the mail than was looked at. l may be nil.
func (l *Look) Mailed(count int64) bool { return l != nil && l.Signals >= 0 && l.Signals != count }

// Validate finds a command that contradicts itself: runlane.ErrContractViolation.
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

// TooLarge is the error of a storage that cannot hold a body: runlane.ErrValidationFailed.
func (c *SignalCommand) TooLarge(err error) error {
	e := &runlane.Error{
		Code:    runlane.ErrValidationFailed,
		RunID:   c.RunID,
		Message: "the body of signal " + c.Signal.Name + " is larger than the storage can hold",
		Hint:    "store the bulk elsewhere and send a reference",
		Cause:   err,
	}
	return e
}

// Exists is the error of a storage that has a signal of that name and id: runlane.ConflictSignal.
func (c *SignalCommand) Exists() error {
	e := runlane.NewConflict(runlane.ConflictSignal, "a signal of this name and id is there")
	e.RunID, e.Retryable = c.RunID, false
	return e
}

// Moved is the error of a storage for mail, or a wait, that is not as it was read: runlane.ConflictWait.
func Moved(id runlane.RunID) error {
	e := runlane.NewConflict(runlane.ConflictWait, "the run has other mail, or another wait, than was read")
	e.RunID, e.Hint = id, "look again"
	return e
}
