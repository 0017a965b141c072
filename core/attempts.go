package core

import (
	"context"
	"time"

	"github.com/runlane/runlane-go"
)

// AttemptSummary is one attempt of a run.
type AttemptSummary struct {
	// Number counts from 1.
	Number int `json:"attempt"`
	// Status is the attempt's outcome so far.
	Status runlane.AttemptStatus `json:"status"`
	// WorkerID is the worker that claimed the run.
	WorkerID string `json:"workerId"`
	// StartedAt is when the handler was called.
	StartedAt time.Time `json:"startedAt"`
	// FinishedAt is zero while the attempt runs. An abandoned attempt has the time of recovery, until then the end of the
	// lease.
	FinishedAt time.Time `json:"finishedAt,omitzero"`
	// Failure of a failed or retried attempt.
	Failure runlane.Failure `json:"failure,omitzero"`
}

// Attempts derives a run's attempts from its history, oldest first. Only run.started begins an attempt: a run cancelled
// while it waited has none. An attempt with a lease that ended without an outcome is runlane.AttemptAbandoned. An
// unknown run is runlane.ErrRunNotFound.
func (r *Runs) Attempts(ctx context.Context, id runlane.RunID) ([]AttemptSummary, error) {
	var attempts attemptList
	for record, err := range r.Events(ctx, id, nil) {
		if err != nil {
			return nil, err
		}
		attempts.add(&record)
	}
	return attempts.at(r.rt.now()), nil
}

// attemptList folds events into attempts.
type attemptList struct {
	all   []AttemptSummary
	lease runlane.Lease // the latest, as claimed or extended
}

func (l *attemptList) add(record *runlane.EventRecord) {
	effect := effectOf(record)
	switch effect.attempt {
	case attemptBegins:
		l.all = append(l.all, AttemptSummary{
			Number:    startedAttempt(record),
			Status:    runlane.AttemptRunning,
			WorkerID:  l.lease.WorkerID,
			StartedAt: record.OccurredAt,
		})
	case attemptAbandoned:
		l.end(record.OccurredAt, runlane.AttemptAbandoned, runlane.Failure{})
	case attemptEnds:
		outcome := effect.outcome
		if outcome == runlane.AttemptFailed {
			outcome = failedStatus(record)
		}
		l.end(record.OccurredAt, outcome, failureOf(record))
	case attemptStays:
	}
	switch body := record.Body.(type) {
	case *runlane.RunLeaseClaimed:
		l.lease = body.Lease
	case *runlane.RunLeaseHeartbeat:
		l.lease = body.Lease
	default: // no other carries a lease
	}
}

// at returns the list as of now: an attempt with an expired lease is abandoned, see runlane.Run.Abandoned.
func (l *attemptList) at(now time.Time) []AttemptSummary {
	if l.lease.Expired(now) {
		l.end(l.lease.ExpiresAt, runlane.AttemptAbandoned, runlane.Failure{})
	}
	return l.all
}

// failedStatus distinguishes a failure of the attempt from one recorded after its worker was gone.
func failedStatus(record *runlane.EventRecord) runlane.AttemptStatus {
	body, ok := record.Body.(*runlane.RunFailed)
	if ok && body.Failure.Code == runlane.ErrLeaseExpired && record.Actor.Type != runlane.ActorWorker {
		return runlane.AttemptAbandoned
	}
	return runlane.AttemptFailed
}

// end closes the latest attempt if it is still open.
func (l *attemptList) end(at time.Time, status runlane.AttemptStatus, failure runlane.Failure) {
	if len(l.all) == 0 {
		return
	}
	a := &l.all[len(l.all)-1]
	if a.Status == runlane.AttemptRunning {
		a.Status, a.FinishedAt, a.Failure = status, at, failure
	}
}
