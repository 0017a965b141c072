package lane

import (
	"fmt"
	"time"

	"github.com/runlane/runlane-go"
)

// StepRecord is a named record of a run, see [runlane.StepRecord]. Its Result is opaque bytes like a payload: with a
// codec it is not JSON.
type StepRecord = runlane.StepRecord

// KeepCommand keeps a record of a run.
type KeepCommand struct {
	RunKey
	// CreatedAt is the run's creation time. A reused ID names another run, with none of the earlier run's records.
	CreatedAt time.Time
	// Record to keep.
	Record StepRecord
	// Replace replaces an older record of the same kind: of an earlier attempt, or of the same attempt and not later.
	// Without it the first record of the name stays.
	Replace bool
}

// maxStepKindBytes bounds a kind, including kinds of newer programs.
const maxStepKindBytes = 32

// Validate returns runlane.ErrContractViolation if the record cannot be kept. Storages call it first.
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
		return malformed(nil, "type has %d bytes, or is not text", len(r.Type))
	case r.Attempt < 0:
		return malformed(nil, "attempt is %d", r.Attempt)
	case c.CreatedAt.IsZero() || r.At.IsZero():
		return malformed(nil, "record without the time of its run, or its own")
	default:
		return nil
	}
}

// Replaces reports whether the command's record replaces the kept one.
func (c *KeepCommand) Replaces(kept *StepRecord) bool {
	r := &c.Record
	if !c.Replace || r.Kind != kept.Kind {
		return false
	}
	return kept.Attempt < r.Attempt ||
		kept.Attempt == r.Attempt && !kept.At.After(runlane.UTCMillis(r.At))
}

// TooLarge returns runlane.ErrValidationFailed for a result that the storage cannot hold. form qualifies the size, such
// as " compressed".
func (c *KeepCommand) TooLarge(form string, size, limit int) error {
	return &runlane.Error{
		Code:    runlane.ErrValidationFailed,
		RunID:   c.RunID,
		Message: fmt.Sprintf("result of %q has %d bytes%s, more than %d", c.Record.Name, size, form, limit),
		Hint:    "store the bulk elsewhere and record a reference",
	}
}

// RecordQuery pages the records of one run by name. Its RunID and CreatedAt are required, see [KeepCommand].
type RecordQuery struct {
	PageQuery
	RunID     runlane.RunID
	CreatedAt time.Time
	// Logs lists the records of kind runlane.StepKindLog; without it all others. A log and another record may have the
	// same name.
	Logs bool
	// From, unless "", leaves out the names before it, and Until those from it on.
	From, Until string
}

// Includes reports whether the query lists a name, as far as From and Until say.
func (q *RecordQuery) Includes(name string) bool {
	return name >= q.From && (q.Until == "" || name < q.Until)
}
