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

// When is Once, Every or Cron.
type When struct {
	once, anchor time.Time
	every        time.Duration
	cron, zone   string
}

func Once(at time.Time) When { return When{once: at} }

// Every fires at multiples of d since the Unix epoch. d is at least one second.
func Every(d time.Duration) When { return When{every: d} }

// From moves the grid of Every; the first fire is at the anchor.
func (w When) From(anchor time.Time) When { w.anchor = anchor; return w }

// Cron fires by a five-field expression in UTC; In changes the zone. Errors surface in core.Open.
func Cron(expression string) When { return When{cron: expression, zone: "UTC"} }

// In reads the cron expression in an IANA zone.
func (w When) In(zone string) When { w.zone = zone; return w }

// Misfire is what happens to occurrences that were missed.
type Misfire struct {
	Policy    MisfirePolicy
	Tolerance time.Duration // skip: how late is still on time
	Limit     int           // catch_up: at most this many
	Window    time.Duration // catch_up: not older than this
}

// MisfirePolicy is what happens to occurrences that were missed.
type MisfirePolicy string

const (
	MisfireLatest  MisfirePolicy = "latest"
	MisfireSkip    MisfirePolicy = "skip"
	MisfireCatchUp MisfirePolicy = "catch_up"
)

// Overlap is what happens when the last occurrence's run is still active.
type Overlap string

const (
	OverlapAllow       Overlap = "allow"
	OverlapForbid      Overlap = "forbid"
	OverlapReplace     Overlap = "replace"
	OverlapQueueLatest Overlap = "queue_latest"
)

// ScheduleRecord is what storage remembers of a schedule. An occurrence at or before LastFire is never claimed; one before
// RegisteredAt never fires.
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
	Version        int64      `json:"version"` // storage's; every change is conditional on it
}

// Occurrence is one fire time and what became of it. Kept 40 days.
type Occurrence struct {
	ScheduleID ScheduleID `json:"scheduleId"`
	FireTime   time.Time  `json:"fireTime"`
	RunID      RunID      `json:"runId,omitempty"`
	Skipped    SkipReason `json:"skipped,omitempty"`
}

// SkipReason is why an occurrence made no run.
type SkipReason string

const (
	SkippedMisfire   SkipReason = "misfire"
	SkippedOverlap   SkipReason = "overlap"
	SkippedSingleton SkipReason = "singleton"
	SkippedPaused    SkipReason = "paused"
)
