package runlane

import "time"

// Schedule makes a run at each time of When. Its runs have no idempotency key: the occurrence is their identity.
type Schedule struct {
	ID      ScheduleID
	When    When
	Call    Call
	Misfire Misfire // zero means latest
	Overlap Overlap // zero means allow
}

// Misfire is the handling of missed occurrences.
type Misfire struct {
	Policy    MisfirePolicy
	Tolerance time.Duration // skip: the largest delay that still runs
	Limit     int           // catch_up: at most this many
	Window    time.Duration // catch_up: the largest age
}

// MisfirePolicy is a policy for missed occurrences.
type MisfirePolicy string

// The policies for missed occurrences. Skipped occurrences are recorded with [SkippedMisfire].
const (
	// MisfireLatest runs the latest missed occurrence and skips earlier ones. The default.
	MisfireLatest MisfirePolicy = "latest"
	// MisfireSkip runs occurrences late by at most Misfire.Tolerance and skips the rest.
	MisfireSkip MisfirePolicy = "skip"
	// MisfireCatchUp runs every missed occurrence, bounded by Misfire.Limit and Misfire.Window.
	MisfireCatchUp MisfirePolicy = "catch_up"
)

// Overlap is the policy if the last occurrence's run, or one triggered by hand, is still active.
type Overlap string

// The policies for an occurrence while an earlier run is still active.
const (
	// OverlapAllow runs both. The default.
	OverlapAllow Overlap = "allow"
	// OverlapForbid skips the occurrence, recorded with [SkippedOverlap].
	OverlapForbid Overlap = "forbid"
	// OverlapReplace cancels all earlier runs and runs the occurrence.
	OverlapReplace Overlap = "replace"
	// OverlapQueueLatest keeps the latest such occurrence pending and runs it when the other run ends, however late
	// that is; earlier ones are skipped.
	OverlapQueueLatest Overlap = "queue_latest"
)

// ScheduleRecord is the stored state of a schedule. Occurrences up to LastFire are never claimed again; occurrences
// before RegisteredAt never fire.
type ScheduleRecord struct {
	ID             ScheduleID `json:"scheduleId"`
	DefinitionHash string     `json:"definitionHash"`
	RegisteredAt   time.Time  `json:"registeredAt"`
	LastEvaluated  time.Time  `json:"lastEvaluated,omitzero"`
	LastFire       time.Time  `json:"lastFire,omitzero"`
	LastRunID      RunID      `json:"lastRunId,omitempty"`
	PendingFire    time.Time  `json:"pendingFire,omitzero"` // queue_latest: fires when the last run ends
	Paused         bool       `json:"paused,omitempty"`
	PauseReason    string     `json:"pauseReason,omitempty"`
	// triggered by hand, oldest first; at most 10, including ended ones
	ManualRunIDs []RunID `json:"manualRunIds,omitempty"`
	Version      int64   `json:"version"` // set by the storage; every change is conditional on it
}

// Occurrence is one fire time and its outcome, or several fire times that one evaluation skipped for the same reason;
// FireTime is then the last of them. Occurrences are kept for 40 days.
type Occurrence struct {
	ScheduleID ScheduleID `json:"scheduleId"`
	FireTime   time.Time  `json:"fireTime"`
	RunID      RunID      `json:"runId,omitempty"`
	Skipped    SkipReason `json:"skipped,omitempty"`
	First      time.Time  `json:"first,omitzero"`  // of several: the first fire time
	Count      int        `json:"count,omitempty"` // of several: their number
}

// SkipReason is the reason why an occurrence made no run.
type SkipReason string

// The reasons for skipping an occurrence.
const (
	// SkippedMisfire: it was missed, and the misfire policy skips it.
	SkippedMisfire SkipReason = "misfire"
	// SkippedOverlap: the last occurrence's run, or one triggered by hand, was still active.
	SkippedOverlap SkipReason = "overlap"
	// SkippedSingleton: another active run held the singleton key.
	SkippedSingleton SkipReason = "singleton"
	SkippedPaused    SkipReason = "paused"
	// SkippedIDTaken: a run of another origin has the ID of the occurrence's run.
	SkippedIDTaken SkipReason = "id_taken"
)
