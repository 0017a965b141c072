package lanetest

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
)

// Defaults of the runs that a [Factory] makes.
const (
	// TaskID is the task of runs that name none.
	TaskID runlane.TaskID = "lanetest.task"
	// Queue is the queue of runs that name none.
	Queue runlane.QueueName = "lanetest"
)

// Factory builds commands for runs of one environment, projected by core. It fails the test where core refuses an
// event. It is safe for concurrent use.
type Factory struct {
	environment runlane.Environment
	runs        atomic.Int64
	tokens      atomic.Int64
}

// NewFactory makes runs of the environment.
func NewFactory(environment runlane.Environment) *Factory { return &Factory{environment: environment} }

// RunOptions describe a new run. Zero fields have defaults; the zero value is a queued run that asks for its delivery
// at once.
type RunOptions struct {
	ID             runlane.RunID // default: a new one
	Environment    runlane.Environment
	TaskID         runlane.TaskID    // default: TaskID
	Queue          runlane.QueueName // default: Queue
	Payload        []byte            // default: {}
	RunAt          time.Time         // later than the creation: the run is scheduled
	ConcurrencyKey string
	IdempotencyKey string
	Retention      runlane.KeyRetention
	Debounced      *runlane.Debounced
	SingletonKey   string
	Priority       int
	Source         runlane.Source // default: a trigger
	Meta           map[string]string
	TraceCarrier   map[string]string
	NoDelivery     bool               // run.created alone
	Outbox         lane.InitialOutbox // how the delivery's row begins
	Concurrency    int                // the limit of the queue in force; 0: none
	ReservedUntil  time.Time          // the delivery comes with a reservation
}

// NewRunID is unique within the factory's environment.
func (f *Factory) NewRunID() runlane.RunID {
	return runlane.RunID(fmt.Sprintf("run_%05d", f.runs.Add(1)))
}

// NewToken is a lease token that was not used before.
func (f *Factory) NewToken() string { return fmt.Sprintf("token_%d", f.tokens.Add(1)) }

// Creation is the command that makes a run at the instant.
func (f *Factory) Creation(t testing.TB, at time.Time, o RunOptions) *lane.AppendCommand {
	t.Helper()
	if o.ID == "" {
		o.ID = f.NewRunID()
	}
	if o.Environment == "" {
		o.Environment = f.environment
	}
	if o.TaskID == "" {
		o.TaskID = TaskID
	}
	if o.Queue == "" {
		o.Queue = Queue
	}
	if o.Payload == nil {
		o.Payload = []byte(`{}`)
	}
	if o.Source.Type == "" {
		o.Source.Type = runlane.SourceTrigger
	}
	events := []runlane.Event{{
		RunID:        o.ID,
		Environment:  o.Environment,
		OccurredAt:   at,
		Actor:        runlane.SystemActor,
		Meta:         o.Meta,
		TraceCarrier: o.TraceCarrier,
		Body: &runlane.RunCreated{
			TaskID:         o.TaskID,
			Queue:          o.Queue,
			Payload:        o.Payload,
			RunAt:          o.RunAt,
			ConcurrencyKey: o.ConcurrencyKey,
			IdempotencyKey: o.IdempotencyKey,
			Retention:      o.Retention,
			Debounced:      o.Debounced,
			SingletonKey:   o.SingletonKey,
			Priority:       o.Priority,
			Source:         o.Source,
		},
	}}
	if !o.NoDelivery {
		available := at
		if o.RunAt.After(at) {
			available = o.RunAt
		}
		events = append(events, runlane.Event{
			RunID:       o.ID,
			Environment: o.Environment,
			OccurredAt:  at,
			Actor:       runlane.SystemActor,
			Body: &runlane.RunDeliveryRequested{Delivery: runlane.Delivery{
				Environment:       o.Environment,
				RunID:             o.ID,
				Queue:             o.Queue,
				AvailableAt:       available,
				RequestedAt:       at,
				DispatchExpiresAt: o.ReservedUntil,
			}},
		})
	}
	projected, err := core.ProjectRunEvents(nil, 0, events...)
	if err != nil {
		t.Fatalf("factory: %v", err)
	}
	return &lane.AppendCommand{
		Transition: lane.Transition{
			Events: events, Projected: projected, Queue: runlane.Queue{Name: o.Queue, Concurrency: o.Concurrency},
		},
		Outbox: o.Outbox,
	}
}

// Transition appends bodies to a run, all at one instant.
func (f *Factory) Transition(
	t testing.TB, run *runlane.Run, at time.Time, bodies ...runlane.EventBody,
) lane.Transition {
	t.Helper()
	events := make([]runlane.Event, len(bodies))
	for i, body := range bodies {
		events[i] = runlane.Event{
			RunID:       run.ID,
			Environment: run.Environment,
			OccurredAt:  at,
			Actor:       actorOf(body),
			Body:        body,
		}
	}
	projected, err := core.ProjectRunEvents(run, run.EventSequence, events...)
	if err != nil {
		t.Fatalf("factory: %v", err)
	}
	return lane.Transition{
		ExpectedSequence: run.EventSequence,
		Events:           events,
		Projected:        projected,
		Queue:            runlane.Queue{Name: run.Queue},
	}
}

// Append is a command that appends bodies to a run.
func (f *Factory) Append(
	t testing.TB, run *runlane.Run, at time.Time, bodies ...runlane.EventBody,
) *lane.AppendCommand {
	t.Helper()
	return &lane.AppendCommand{Transition: f.Transition(t, run, at, bodies...)}
}

// Claim takes a run at the instant, until leaseEnd, and starts its next attempt.
func (f *Factory) Claim(t testing.TB, run *runlane.Run, at, leaseEnd time.Time, token string) *lane.ClaimCommand {
	t.Helper()
	return &lane.ClaimCommand{
		Transition: f.Transition(t, run, at, Claimed(token, leaseEnd), &runlane.RunStarted{
			Attempt: run.Counters.Attempts + 1,
		}),
		At: at, ByWakeup: true,
	}
}

// Reserve takes a slot of the run's queue at the instant, until the reservation's end, under a limit.
func (f *Factory) Reserve(t testing.TB, run *runlane.Run, at, until time.Time, concurrency int) *lane.ReserveCommand {
	t.Helper()
	delivery := Delivery(run, at, at)
	delivery.Delivery.DispatchExpiresAt = until
	c := &lane.ReserveCommand{Transition: f.Transition(t, run, at, delivery), At: at}
	c.Queue.Concurrency = concurrency
	return c
}

// Heartbeat extends the lease of a run as its projection has it.
func (f *Factory) Heartbeat(t testing.TB, run *runlane.Run, at, leaseEnd time.Time) *lane.HeartbeatCommand {
	t.Helper()
	lease := run.Lease
	lease.ExpiresAt = leaseEnd
	return &lane.HeartbeatCommand{Transition: f.Transition(t, run, at, &runlane.RunLeaseHeartbeat{Lease: lease})}
}

func actorOf(body runlane.EventBody) runlane.Actor {
	switch body.(type) {
	case *runlane.RunCreated, *runlane.RunDeliveryRequested:
		return runlane.SystemActor
	case *runlane.RunCancellationRequested, *runlane.RunCancelled:
		return runlane.OperatorActor
	default:
		return runlane.Actor{Type: runlane.ActorWorker, ID: worker}
	}
}

const worker = "lanetest-worker"

// Claimed is the body of a claim.
func Claimed(token string, leaseEnd time.Time) *runlane.RunLeaseClaimed {
	return &runlane.RunLeaseClaimed{Lease: runlane.Lease{Token: token, WorkerID: worker, ExpiresAt: leaseEnd}}
}

// Delivery is the body of a delivery request made at the instant, for available.
func Delivery(run *runlane.Run, at, available time.Time) *runlane.RunDeliveryRequested {
	return &runlane.RunDeliveryRequested{Delivery: runlane.Delivery{
		Environment: run.Environment,
		RunID:       run.ID,
		Queue:       run.Queue,
		AvailableAt: available,
		RequestedAt: at,
	}}
}

// Succeeded ends the current attempt and the run well.
func Succeeded(run *runlane.Run, output []byte) *runlane.RunSucceeded {
	return &runlane.RunSucceeded{Attempt: run.Counters.Attempts, Output: output}
}

// Failed ends the current attempt and the run with a failure.
func Failed(run *runlane.Run) *runlane.RunFailed {
	return &runlane.RunFailed{
		Attempt: run.Counters.Attempts,
		Failure: runlane.NewFailure(runlane.ErrTaskFailed, "it broke", nil),
	}
}

// Retried ends the current attempt with a failure and plans another.
func Retried(run *runlane.Run, retryAt time.Time) *runlane.RunRetryScheduled {
	return &runlane.RunRetryScheduled{
		Attempt: run.Counters.Attempts,
		RetryAt: retryAt,
		Failure: runlane.NewFailure(runlane.ErrTaskFailed, "it broke", map[string]string{"try": "again"}),
	}
}

// Resumed ends the wait of a run before its time.
func Resumed() *runlane.RunResumed { return &runlane.RunResumed{Reason: "the quota was raised"} }

// Released ends the current attempt and lets the run wait.
func Released(run *runlane.Run, resumeAt time.Time) *runlane.RunReleased {
	return &runlane.RunReleased{Attempt: run.Counters.Attempts, ResumeAt: resumeAt, Reason: "not yet"}
}
