package lane

import (
	"fmt"
	"time"

	"github.com/runlane/runlane-go"
)

// PutScheduleCommand writes a schedule's record.
type PutScheduleCommand struct {
	// Environment holds the schedule.
	Environment runlane.Environment
	// Record has Version as read, 0 for a new one.
	Record runlane.ScheduleRecord
}

// Validate finds a record that cannot be put: runlane.ErrContractViolation. Storages judge before anything else.
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

// ClaimOccurrenceCommand asks for the right to make an occurrence's run.
type ClaimOccurrenceCommand struct {
	ScheduleKey
	// OccurrenceID is deterministic: "occ_" and a hash of environment, schedule and fire time.
	OccurrenceID string
	// FireTime is the occurrence's own time.
	FireTime time.Time
	// At is the instant by which older claims are judged.
	At time.Time
	// ClaimUntil ends the claim by itself.
	ClaimUntil time.Time
	// TrustUntil bounds the marks that count: a last fire after it, or a claim that ends after it, was set by a wrong
	// clock, and does not stand in the way. Zero: all count.
	TrustUntil time.Time
}

// Trusts reports a mark that counts.
func (c *ClaimOccurrenceCommand) Trusts(mark time.Time) bool {
	return c.TrustUntil.IsZero() || !mark.After(c.TrustUntil)
}

// Validate finds a command that names no occurrence, or whose claim would be over at once:
// runlane.ErrContractViolation.
func (c *ClaimOccurrenceCommand) Validate() error {
	if err := validOccurrence(c.ScheduleID, c.OccurrenceID, c.FireTime); err != nil {
		return err
	}
	if c.ClaimUntil.UnixMilli() <= c.At.UnixMilli() {
		return malformed(nil, "claim until %v is not after %v", c.ClaimUntil, c.At)
	}
	return nil
}

// OccurrenceClaim has a token exactly when Outcome is [Acquired].
type OccurrenceClaim struct {
	Outcome Outcome
	// Token proves the claim.
	Token string
}

// CompleteOccurrenceCommand has runs or a skip reason, never both.
type CompleteOccurrenceCommand struct {
	ScheduleKey
	// OccurrenceID is the one that was claimed.
	OccurrenceID string
	// FireTime is the occurrence's own time.
	FireTime time.Time
	// Token is the claim's.
	Token string
	// RunIDs are the runs made.
	RunIDs []runlane.RunID
	// Skipped is why none was made.
	Skipped runlane.SkipReason
	// First makes a skip stand for the occurrences from it to FireTime. Zero: for FireTime's alone.
	First time.Time
	// Count is how many those are; 0 with a zero First.
	Count int
	// TrustUntil is that of the claim: a last fire after it is replaced.
	TrustUntil time.Time
}

// Moves reports that the occurrence becomes the last fire in place of the one that is recorded.
func (c *CompleteOccurrenceCommand) Moves(lastFire time.Time) bool {
	fire := c.FireTime.UnixMilli()
	return lastFire.IsZero() || fire > lastFire.UnixMilli() ||
		fire < lastFire.UnixMilli() && !c.TrustUntil.IsZero() && lastFire.After(c.TrustUntil)
}

// Validate returns runlane.ErrContractViolation for a command that names no occurrence, or that has both runs and a
// skip reason, or neither.
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
				"%d occurrences from %v to %v with reason %q are no skip of several",
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

// lastFireTime is the last instant that has 13 digits of milliseconds, in which keys of occurrences are written.
const lastFireTime = 9_999_999_999_999

func validOccurrence(id runlane.ScheduleID, occurrence string, fire time.Time) error {
	if err := id.Validate(); err != nil {
		return malformed(err, "occurrence without a usable schedule id")
	}
	if occurrence == "" {
		return malformed(nil, "occurrence without an id")
	}
	if ms := fire.UnixMilli(); ms <= 0 || ms > lastFireTime {
		return malformed(nil, "fire time %v is out of range", fire)
	}
	return nil
}

func malformed(cause error, format string, args ...any) error {
	return &runlane.Error{Code: runlane.ErrContractViolation, Message: fmt.Sprintf(format, args...), Cause: cause}
}

// OccurrenceQuery pages a schedule's occurrences.
type OccurrenceQuery struct {
	PageQuery
	// ScheduleID names the schedule; required.
	ScheduleID runlane.ScheduleID
	// SkippedOnly leaves out those that made runs.
	SkippedOnly bool
}
