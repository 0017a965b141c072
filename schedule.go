package runlane

import "time"

// Schedule makes a run at each time of When. Its runs use no idempotency key: the occurrence is their identity.
type Schedule struct {
	ID      ScheduleID
	When    When
	Call    Call
	Misfire Misfire // zero means latest
	Overlap Overlap // zero means allow
}

// Misfire is what happens to occurrences that were missed.
type Misfire struct {
	Policy    MisfirePolicy
	Tolerance time.Duration // skip: how late is still on time
	Limit     int           // catch_up: at most this many
	Window    time.Duration // catch_up: not older than this
}

// MisfirePolicy is what happens to occurrences that were missed.
type MisfirePolicy string

// The policies for missed occurrences. Occurrences that they leave out are recorded with [SkippedMisfire].
const (
	// MisfireLatest runs the latest missed occurrence and skips those before it. The default.
	MisfireLatest MisfirePolicy = "latest"
	// MisfireSkip runs what is late by at most Misfire.Tolerance and skips the rest.
	MisfireSkip MisfirePolicy = "skip"
	// MisfireCatchUp runs every missed occurrence, bounded by Misfire.Limit and Misfire.Window.
	MisfireCatchUp MisfirePolicy = "catch_up"
)

// Overlap is what happens when the last occurrence's run, or one that was triggered by hand, is still active.
type Overlap string

// The policies for an occurrence whose predecessor's run is still active.
const (
	// OverlapAllow runs it beside the other. The default.
	OverlapAllow Overlap = "allow"
	// OverlapForbid skips it, recorded with [SkippedOverlap].
	OverlapForbid Overlap = "forbid"
	// OverlapReplace cancels the other run, or all of them, and runs it.
	OverlapReplace Overlap = "replace"
	// OverlapQueueLatest keeps the latest such occurrence pending until the other run ends, and runs it however late it
	// is by then; those before it are skipped.
	OverlapQueueLatest Overlap = "queue_latest"
)

// ScheduleRecord is what storage remembers of a schedule. An occurrence at or before LastFire is never claimed; one
// before RegisteredAt never fires.
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
	// triggered by hand, oldest first; at most 10, also ended ones
	ManualRunIDs []RunID `json:"manualRunIds,omitempty"`
	Version      int64   `json:"version"` // storage's; every change is conditional on it
}

// Occurrence is one fire time and its outcome, or several fire times that one evaluation skipped for one reason.
// FireTime is the last of them then. An occurrence is kept for 40 days.
type Occurrence struct {
	ScheduleID ScheduleID `json:"scheduleId"`
	FireTime   time.Time  `json:"fireTime"`
	RunID      RunID      `json:"runId,omitempty"`
	Skipped    SkipReason `json:"skipped,omitempty"`
	First      time.Time  `json:"first,omitzero"`  // of several: the first's fire time
	Count      int        `json:"count,omitempty"` // of several: how many
}

// SkipReason is why an occurrence made no run.
type SkipReason string

// The reasons for skipping an occurrence.
const (
	// SkippedMisfire: it was missed, and the misfire policy leaves it out.
	SkippedMisfire SkipReason = "misfire"
	// SkippedOverlap: the last occurrence's run, or one that was triggered by hand, was still active.
	SkippedOverlap SkipReason = "overlap"
	// SkippedSingleton: another active run held the singleton key.
	SkippedSingleton SkipReason = "singleton"
	// SkippedPaused: the schedule was paused.
	SkippedPaused SkipReason = "paused"
	// SkippedIDTaken: a run of another origin has the id of the occurrence's run.
	SkippedIDTaken SkipReason = "id_taken"
)
