package core

import (
	"context"
	"iter"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

const (
	// Wait asks again after waitFirst, then at growing distance up to waitLast.
	waitFirst = 10 * time.Millisecond
	waitLast  = 5 * time.Second
)

// Runs is the operator's view of runs. Stateless: get one with [Runtime.Runs] when you need it.
type Runs struct{ rt *Runtime }

// Runs returns the view.
func (rt *Runtime) Runs() *Runs { return &Runs{rt: rt} }

// Wait returns the run once it is terminal. It asks the storage again and again, at growing distance. A run that does not exist
// is runlane.ErrRunNotFound; when ctx ends first the error is runlane.ErrOperationCancelled with ctx's own in its chain.
func (rt *Runtime) Wait(ctx context.Context, id runlane.RunID) (*runlane.Run, error) {
	if err := rt.gate.enterLate(); err != nil {
		return nil, err
	}
	defer rt.gate.leave()
	for wait := waitFirst; ; wait = min(wait*3/2, waitLast) {
		run, err := rt.get(ctx, id)
		if err != nil {
			if ctx.Err() != nil {
				return nil, cancelled(ctx, id)
			}
			return nil, err
		}
		if run.Status.Terminal() {
			return run, nil
		}
		if !pause(ctx, rt.world.around(wait)) {
			return nil, cancelled(ctx, id)
		}
	}
}

// Get returns one run exactly as it is now. Absent: runlane.ErrRunNotFound.
func (r *Runs) Get(ctx context.Context, id runlane.RunID) (*runlane.Run, error) {
	if err := r.rt.gate.enterLate(); err != nil {
		return nil, err
	}
	defer r.rt.gate.leave()
	return r.rt.get(ctx, id)
}

func (rt *Runtime) get(ctx context.Context, id runlane.RunID) (*runlane.Run, error) {
	if err := id.Validate(); err != nil {
		return nil, err
	}
	return rt.lane.Storage.GetRun(ctx, lane.RunKey{Environment: rt.environment, RunID: id})
}

// Events walks the history of one run, page by page. An error is the last thing it yields: runlane.ErrRunNotFound for a run that
// does not exist, runlane.ErrValidationFailed for a cursor of another request.
func (r *Runs) Events(ctx context.Context, id runlane.RunID, options *EventOptions) iter.Seq2[runlane.EventRecord, error] {
	if options == nil {
		options = &EventOptions{}
	}
	return func(yield func(runlane.EventRecord, error) bool) {
		if err := r.rt.gate.enterLate(); err != nil {
			yield(runlane.EventRecord{}, err)
			return
		}
		defer r.rt.gate.leave()
		if err := id.Validate(); err != nil {
			yield(runlane.EventRecord{}, err)
			return
		}
		q := lane.EventQuery{
			PageQuery: lane.PageQuery{Environment: r.rt.environment, Limit: runlane.MaxPageLimit, After: options.After},
			RunID:     id, Descending: options.Descending,
		}
		for {
			page, err := r.rt.lane.Storage.ListRunEvents(ctx, &q)
			if err != nil {
				yield(runlane.EventRecord{}, err)
				return
			}
			for i := range page.Items {
				if !yield(page.Items[i], nil) {
					return
				}
			}
			if page.Next == "" {
				return
			}
			q.After = page.Next
		}
	}
}

// Attempts derives the attempts of a run from its history, oldest first. One whose lease ended without an outcome is
// runlane.AttemptAbandoned.
func (r *Runs) Attempts(ctx context.Context, id runlane.RunID) ([]AttemptSummary, error) {
	var attempts attemptList
	for record, err := range r.Events(ctx, id, nil) {
		if err != nil {
			return nil, err
		}
		attempts.add(&record)
	}
	return attempts.all, nil
}

// attemptList folds events into attempts.
type attemptList struct {
	all      []AttemptSummary
	workerID string // of the latest claim
}

func (l *attemptList) add(record *runlane.EventRecord) {
	at := record.OccurredAt
	switch body := record.Body.(type) {
	case *runlane.RunLeaseClaimed:
		l.end(at, runlane.AttemptAbandoned, runlane.Failure{})
		l.workerID = body.Lease.WorkerID
	case *runlane.RunDeliveryRequested:
		l.end(at, runlane.AttemptAbandoned, runlane.Failure{}) // recovered: only a run without a live owner can be asked for
	case *runlane.RunStarted:
		l.all = append(l.all, AttemptSummary{
			Number: body.Attempt, Status: runlane.AttemptRunning, WorkerID: l.workerID, StartedAt: at,
		})
	case *runlane.RunSucceeded:
		l.end(at, runlane.AttemptSucceeded, runlane.Failure{})
	case *runlane.RunFailed:
		l.end(at, failedStatus(record), body.Failure)
	case *runlane.RunRetryScheduled:
		l.end(at, runlane.AttemptRetrying, body.Failure)
	case *runlane.RunReleased:
		l.end(at, runlane.AttemptReleased, runlane.Failure{})
	case *runlane.RunCancelled:
		l.end(at, runlane.AttemptCancelled, runlane.Failure{})
	case *runlane.RunCreated, *runlane.RunLeaseHeartbeat, *runlane.RunCancellationRequested, *runlane.UnknownEvent:
		// neither begin nor end an attempt
	}
}

// failedStatus tells a failure that the attempt returned from one that was recorded for it when its worker was gone.
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
