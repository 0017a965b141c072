package lane

import (
	"fmt"
	"time"

	"github.com/runlane/runlane-go"
)

// StepRecord is what a run remembers under a name, see [runlane.StepRecord]. Its Result is bytes like a payload: under
// a codec no JSON.
type StepRecord = runlane.StepRecord

// KeepCommand keeps a record beside a run's history.
type KeepCommand struct {
	RunKey
	// CreatedAt is when the run was created. An id that is used again names another run, which has none of the records
	// of the one before.
	CreatedAt time.Time
	// Record is what to keep.
	Record StepRecord
	// Replace puts the record in the place of one of its kind that was recorded before it: by an earlier attempt, or
	// by the same and not later. Without it the first record of the name stays for ever.
	Replace bool
}

// maxStepKindBytes bounds a kind, also one of a newer program.
const maxStepKindBytes = 32

// Validate finds a record that cannot be kept: runlane.ErrContractViolation. Storages judge before anything else.
func (c *KeepCommand) Validate() error {
	r := &c.Record
	if err := c.RunID.Validate(); err != nil {
		return malformed(err, "record of a run without a usable id")
	}
	if err := runlane.ValidateKey("name", r.Name); err != nil {
		return malformed(err, "record without a usable name")
	}
	switch {
	case r.Name == "" || len(r.Name) > runlane.MaxStepNameBytes:
		return malformed(nil, "name has %d bytes", len(r.Name))
	case r.Kind == "" || len(r.Kind) > maxStepKindBytes || runlane.ValidateKey("kind", string(r.Kind)) != nil:
		return malformed(nil, "kind is %q", r.Kind)
	case len(r.Type) > runlane.MaxStepTypeBytes || runlane.ValidateKey("type", r.Type) != nil:
		return malformed(nil, "type has %d bytes, or is no text", len(r.Type))
	case r.Attempt < 0:
		return malformed(nil, "attempt is %d", r.Attempt)
	case c.CreatedAt.IsZero() || r.At.IsZero():
		return malformed(nil, "record without the time of its run, or its own")
	default:
		return nil
	}
}

// Replaces reports whether the command's record takes the place of the one that is kept.
func (c *KeepCommand) Replaces(kept *StepRecord) bool {
	r := &c.Record
	if !c.Replace || r.Kind != kept.Kind {
		return false
	}
	return kept.Attempt < r.Attempt ||
		kept.Attempt == r.Attempt && !kept.At.After(runlane.UTCMillis(r.At))
}

// TooLarge is the error of a storage that cannot hold a record's result: runlane.ErrValidationFailed. form says of
// which form the size is, such as " compressed".
func (c *KeepCommand) TooLarge(form string, size, limit int) error {
	return &runlane.Error{
		Code:    runlane.ErrValidationFailed,
		RunID:   c.RunID,
		Message: fmt.Sprintf("result of %q has %d bytes%s, more than %d", c.Record.Name, size, form, limit),
		Hint:    "store the bulk elsewhere and record a reference",
	}
}

// RecordQuery pages the records of one run by name.
type RecordQuery struct {
	PageQuery
	// RunID names the run; required.
	RunID runlane.RunID
	// CreatedAt is when the run was created, as in [KeepCommand]; required.
	CreatedAt time.Time
}
