package embedded

import (
	"slices"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// occurrenceKept is how long an occurrence stays listed after its claim.
const occurrenceKept = 40 * 24 * time.Hour

// Result is the result of an occurrence: runs or a reason to skip, never both. sqlitelane stores it as JSON.
type Result struct {
	Runs    []runlane.RunID    `json:"runs,omitempty"`
	Skipped runlane.SkipReason `json:"skipped,omitempty"`
	First   time.Time          `json:"first,omitzero"` // if several were skipped together
	Count   int                `json:"count,omitempty"`
}

// ResultOf returns the result that the command records.
func ResultOf(c *lane.CompleteOccurrenceCommand) *Result {
	return &Result{
		Runs: slices.Clone(c.RunIDs), Skipped: c.Skipped, First: runlane.UTCMillis(c.First), Count: c.Count,
	}
}

func (r *Result) equal(other *Result) bool {
	return slices.Equal(r.Runs, other.Runs) && r.Skipped == other.Skipped && r.Count == other.Count &&
		r.First.Equal(other.First)
}

// Occurrence is claimed until it has a result.
type Occurrence struct {
	Fire, ClaimUntil, KeptUntil Millis
	Token                       string
	Result                      *Result
}

// Holds reports whether the occurrence cannot be claimed: it has a result or a valid claim.
func (o *Occurrence) Holds(c *lane.ClaimOccurrenceCommand) bool {
	return o.Result != nil || o.ClaimUntil > At(c.At) && c.Trusts(o.ClaimUntil.Time())
}

// Claim gives the occurrence to the command's caller.
func (o *Occurrence) Claim(c *lane.ClaimOccurrenceCommand, token string, now Millis) {
	o.Token, o.ClaimUntil = token, At(c.ClaimUntil)
	o.KeptUntil = max(now, o.ClaimUntil).Add(occurrenceKept)
}

// JudgeCompletion returns done if the occurrence has this result already. It refuses a missing occurrence (nil),
// another claim and another result.
func (o *Occurrence) JudgeCompletion(c *lane.CompleteOccurrenceCommand, became *Result) (done bool, err error) {
	switch {
	case o == nil || o.Token != c.Token:
		return false, OccurrenceConflict("the occurrence is not under this claim")
	case o.Result == nil:
		return false, nil
	case o.Result.equal(became):
		return true, nil
	default:
		return false, OccurrenceConflict("the occurrence was completed with another result")
	}
}

// Listed reports whether the occurrence is completed and matches the query.
func (o *Occurrence) Listed(q *lane.OccurrenceQuery, now Millis) bool {
	return o.Result != nil && o.KeptUntil > now && (o.Result.Skipped != "" || !q.SkippedOnly)
}

// Shown returns a completed occurrence as lists show it.
func (o *Occurrence) Shown(id runlane.ScheduleID) runlane.Occurrence {
	shown := runlane.Occurrence{
		ScheduleID: id, FireTime: o.Fire.Time(),
		Skipped: o.Result.Skipped, First: o.Result.First, Count: o.Result.Count,
	}
	if n := len(o.Result.Runs); n > 0 {
		shown.RunID = o.Result.Runs[n-1]
	}
	return shown
}

// MoveLastFire moves the schedule's last fire forward to the completed occurrence. It returns false if that is not
// later.
func MoveLastFire(r *runlane.ScheduleRecord, c *lane.CompleteOccurrenceCommand) bool {
	if !c.Moves(r.LastFire) {
		return false
	}
	r.LastFire = runlane.UTCMillis(c.FireTime)
	if n := len(c.RunIDs); n > 0 {
		r.LastRunID = c.RunIDs[n-1]
	}
	r.Version++
	return true
}

// Fired reports whether the occurrence is at or before the last fire. Such an occurrence is never claimed.
func Fired(r *runlane.ScheduleRecord, c *lane.ClaimOccurrenceCommand) bool {
	return At(c.FireTime) <= At(r.LastFire) && c.Trusts(r.LastFire)
}

// JudgeSchedule returns why put cannot replace known, which is nil if there is no record.
func JudgeSchedule(known *runlane.ScheduleRecord, put *runlane.ScheduleRecord) error {
	switch {
	case known == nil && put.Version != 0:
		return OccurrenceConflict("schedule %q has no record at version %d", put.ID, put.Version)
	case known != nil && known.Version != put.Version:
		return OccurrenceConflict("schedule %q is at version %d, not %d", put.ID, known.Version, put.Version)
	case known != nil && put.LastFire.Before(known.LastFire):
		return Violation("", "schedule %q fired last at %v, which the record moves back", put.ID, known.LastFire)
	default:
		return nil
	}
}

// ScheduleAtRest returns a copy of the record as storages keep it: times in UTC and whole milliseconds.
func ScheduleAtRest(r runlane.ScheduleRecord) runlane.ScheduleRecord {
	for _, t := range []*time.Time{&r.RegisteredAt, &r.LastEvaluated, &r.LastFire, &r.PendingFire} {
		*t = runlane.UTCMillis(*t)
	}
	r.ManualRunIDs = slices.Clone(r.ManualRunIDs)
	return r
}
