package lane

import (
	"fmt"
	"time"

	"github.com/runlane/runlane-go"
)

// PutScheduleCommand writes a schedule's record in an Environment.
type PutScheduleCommand struct {
	Environment runlane.Environment
	// Record has Version as read, 0 for a new one.
	Record runlane.ScheduleRecord
}

// Validate returns runlane.ErrContractViolation if the record cannot be stored. Storages call it first.
func (c *PutScheduleCommand) Validate() error {
	if err := c.Record.ID.Validate(); err != nil {
		return malformed(err, "record without a usable schedule id")
	}
	if c.Record.Version < 0 {
		return malformed(nil, "version is %d", c.Record.Version)
	}
	for _, id := range c.Record.ManualRunIDs {
		if err := id.Validate(); err != nil {
			return malformed(err, "record with an unusable id of a manual run")
		}
	}
	return nil
}

// ClaimOccurrenceCommand asks for the right to make the run of the occurrence at FireTime.
type ClaimOccurrenceCommand struct {
	ScheduleKey
	// OccurrenceID is deterministic: "occ_" and a hash of environment, schedule and fire time.
	OccurrenceID string
	FireTime     time.Time
	// At is the time for the expiry check of older claims.
	At time.Time
	// ClaimUntil is the end of the claim.
	ClaimUntil time.Time
	// TrustUntil bounds the trusted times: a last fire or a claim's end after it was set by a wrong clock and is
	// ignored. Zero: trust all.
	TrustUntil time.Time
}

// Trusts reports whether a stored time is trusted.
func (c *ClaimOccurrenceCommand) Trusts(mark time.Time) bool {
	return c.TrustUntil.IsZero() || !mark.After(c.TrustUntil)
}

// Validate returns runlane.ErrContractViolation if the command names no occurrence, or its claim would end at once.
func (c *ClaimOccurrenceCommand) Validate() error {
	if err := validOccurrence(c.ScheduleID, c.OccurrenceID, c.FireTime); err != nil {
		return err
	}
	if c.ClaimUntil.UnixMilli() <= c.At.UnixMilli() {
		return malformed(nil, "claim until %v is not after %v", c.ClaimUntil, c.At)
	}
	return nil
}

// OccurrenceClaim has a Token, which proves the claim, if and only if Outcome is [Acquired].
type OccurrenceClaim struct {
	Outcome Outcome
	Token   string
}

// CompleteOccurrenceCommand has runs or a skip reason, never both. OccurrenceID, FireTime and Token are the claim's.
type CompleteOccurrenceCommand struct {
	ScheduleKey
	OccurrenceID string
	FireTime     time.Time
	Token        string
	// RunIDs of the new runs.
	RunIDs []runlane.RunID
	// Skipped is the reason for making none.
	Skipped runlane.SkipReason
	// First is set if the skip stands for the occurrences from First to FireTime. Zero: only for FireTime.
	First time.Time
	// Count is the number of these; 0 with a zero First.
	Count int
	// TrustUntil of the claim: a last fire after it is replaced.
	TrustUntil time.Time
}

// Moves reports whether the occurrence replaces the recorded last fire.
func (c *CompleteOccurrenceCommand) Moves(lastFire time.Time) bool {
	fire := c.FireTime.UnixMilli()
	return lastFire.IsZero() || fire > lastFire.UnixMilli() ||
		fire < lastFire.UnixMilli() && !c.TrustUntil.IsZero() && lastFire.After(c.TrustUntil)
}

// Validate returns runlane.ErrContractViolation if the command names no occurrence, or has both runs and a skip reason,
// or neither.
func (c *CompleteOccurrenceCommand) Validate() error {
	if err := validOccurrence(c.ScheduleID, c.OccurrenceID, c.FireTime); err != nil {
		return err
	}
	if (len(c.RunIDs) > 0) == (c.Skipped != "") {
		return malformed(
			nil,
			"a completion has either runs or a reason for skipping: %d runs, reason %q",
			len(c.RunIDs),
			c.Skipped,
		)
	}
	if c.Count != 0 || !c.First.IsZero() {
		if c.Skipped == "" || c.Count < 2 || c.First.IsZero() || !c.First.Before(c.FireTime) {
			return malformed(
				nil,
				"invalid skip of %d occurrences from %v to %v with reason %q",
				c.Count,
				c.First,
				c.FireTime,
				c.Skipped,
			)
		}
	}
	for _, id := range c.RunIDs {
		if err := id.Validate(); err != nil {
			return malformed(err, "completion with an unusable run id")
		}
	}
	return nil
}

func validOccurrence(id runlane.ScheduleID, occurrence string, fire time.Time) error {
	if err := id.Validate(); err != nil {
		return malformed(err, "occurrence without a usable schedule id")
	}
	if occurrence == "" {
		return malformed(nil, "occurrence without an id")
	}
	if ms := fire.UnixMilli(); ms <= 0 || ms > runlane.FarMoment().UnixMilli() {
		return malformed(nil, "fire time %v is out of range", fire)
	}
	return nil
}

func malformed(cause error, format string, args ...any) error {
	return &runlane.Error{Code: runlane.ErrContractViolation, Message: fmt.Sprintf(format, args...), Cause: cause}
}

// OccurrenceQuery pages a schedule's occurrences. ScheduleID is required. SkippedOnly omits the ones that made runs.
type OccurrenceQuery struct {
	PageQuery
	ScheduleID  runlane.ScheduleID
	SkippedOnly bool
}
