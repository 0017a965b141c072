package lane

import (
	"time"

	"github.com/runlane/runlane-go"
)

// PutScheduleCommand writes a schedule's record.
type PutScheduleCommand struct {
	Environment runlane.Environment
	// Record has Version as read, 0 for a new one.
	Record runlane.ScheduleRecord
}

// ClaimOccurrenceCommand asks for the right to make an occurrence's run.
type ClaimOccurrenceCommand struct {
	ScheduleKey
	// OccurrenceID is deterministic: "occ_" and a hash of environment, schedule and fire time.
	OccurrenceID string
	FireTime     time.Time
	At           time.Time
	ClaimUntil   time.Time
}

// OccurrenceClaim has a token exactly when Outcome is [Acquired].
type OccurrenceClaim struct {
	Outcome Outcome
	Token   string
}

// CompleteOccurrenceCommand has runs or a skip reason, never both.
type CompleteOccurrenceCommand struct {
	ScheduleKey
	OccurrenceID string
	FireTime     time.Time
	Token        string
	RunIDs       []runlane.RunID
	Skipped      runlane.SkipReason
}

// OccurrenceQuery pages a schedule's occurrences.
type OccurrenceQuery struct {
	PageQuery
	ScheduleID  runlane.ScheduleID
	SkippedOnly bool
}
