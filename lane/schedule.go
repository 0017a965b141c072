package lane

import (
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
}

// OccurrenceQuery pages a schedule's occurrences.
type OccurrenceQuery struct {
	PageQuery
	// ScheduleID names the schedule; required.
	ScheduleID runlane.ScheduleID
	// SkippedOnly leaves out those that made runs.
	SkippedOnly bool
}
