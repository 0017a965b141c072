package core

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/runlane/runlane-go"
)

// Options of [Open]. nil means none: the runtime can trigger, read and maintain, but executes nothing.
type Options struct {
	// Codec encodes payloads and outputs for the storage, for example to encrypt them (package sealed). Every process
	// that triggers, executes or shows the runs of an environment needs it. nil stores them unchanged; runs stored with
	// a codec are then read without payload and output, and not executed (docs/encryption.md).
	Codec runlane.Codec

	// Environment scopes all reads and writes of the runtime. "" means the lane's environment, or
	// runlane.DefaultEnvironment if the lane names none.
	Environment runlane.Environment

	// Handlers are the tasks that execute in this process. A task id may appear once.
	Handlers []runlane.Handler

	// HideErrorTexts keeps the texts of handler errors and panic values out of the log and the runs: they may quote
	// payloads and credentials. By default the log has them. A run has them if its task sets
	// runlane.TaskOptions.ErrorMessages, which this option does not change, or on a lane that only this process can
	// reach. A Codec hides them too. Messages of *runlane.Error are always kept.
	HideErrorTexts bool

	// Hooks see every commit of this process once it is durable.
	Hooks []Hook

	// Keep is how long finished runs are kept: 30 days where it says nothing. runlane.TaskOptions.Keep is another time
	// for a task. Ticks remove older runs by the rule of their own program, so give it to all that tick. Without it a
	// lane that cannot remove runs keeps them.
	Keep runlane.Keep

	// Logger gets messages that an operator may have to act on. Attributes are run_id, task, queue, attempt, worker_id,
	// code and error. Payloads are never logged, unless an error quotes one: see HideErrorTexts. nil means
	// slog.Default().
	Logger *slog.Logger

	// MaxAbandoned is how many attempts in a row may end without an outcome, because their worker died, before the run
	// fails with runlane.ErrLeaseExpired. 0 means runlane.DefaultMaxAbandoned, -1 no limit.
	MaxAbandoned int

	// MaxBodyBytes bounds payloads, outputs, results of steps and bodies of signals. 0 means runlane.MaxPayloadBytes.
	// More, up to runlane.MaxBodyBytes, needs a lane that keeps large bodies apart from its storage (lane.Bodies). A
	// schedule's payload stays bounded by what the storage holds.
	MaxBodyBytes int

	// Metrics receives counts and durations. nil means none.
	Metrics Metrics

	// Middleware wraps every attempt, the first one outermost.
	Middleware []runlane.Middleware

	// Queues names queues without a handler here, so that Open checks triggers on them.
	Queues []runlane.Queue

	// Schedules create runs when they are due. Each tick creates the runs that became due since the last one. On a lane
	// that only this process can reach, workers that tick also create them at the exact time; on other lanes Open logs
	// a warning for an interval shorter than a minute. Their tasks need no handler here. Ids are unique.
	Schedules []runlane.Schedule

	// Tasks have no handler here: clients in any language claim their runs ([Runtime.Claim]), through package server or
	// your own program. A task is in Tasks or in Handlers, once.
	Tasks []ClientTask

	// TokenKeys sign answer tokens (runlane.Signal.Token). The first key signs, each verifies, so that a key can be
	// replaced while its tokens are in use. A key has at least 32 random bytes, and its owner can answer every wait of
	// the environment. nil means no tokens: creating and accepting one is runlane.ErrCapabilityUnsupported. See
	// [TokenKeysFromEnv].
	TokenKeys [][]byte

	// Tracer gets the beginnings and ends of this process's work, and puts a trace into each new run. nil means none.
	Tracer Tracer

	// World replaces clock, randomness and ids. nil means the real ones.
	World *World
}

// DeliveryOptions limit the time of a delivery. nil means the rules of a long-lived worker: a lease of
// runlane.DefaultLease, extended by heartbeats.
type DeliveryOptions struct {
	// Began is the start of the invocation that ends at Deadline. The runtime derives the length of an invocation from
	// it: which tasks never fit, and how much time an attempt should get. Zero means unknown.
	Began time.Time
	// Beside reports whether this process executes other deliveries at the same time. A run with an abandoned last
	// attempt could kill them too, and is handed back with [ErrSuspect], before the claim.
	Beside bool
	// Deadline is when this process will be stopped, as in Lambda. The lease then ends 5 s after it, no heartbeat is
	// written, and the handler's context ends max(2 s, 5 % of the time left) before it, which leaves time for the
	// outcome.
	Deadline time.Time
	// Follows reports whether earlier wakeups of the same FIFO group used part of the invocation's time. A task without
	// a timeout then begins only while nine tenths of the handler's time are left. A task with a timeout begins, as
	// always, while its timeout is left.
	Follows bool
	// Queues to take work from. nil means the queues of this process's handlers. [Runtime.ExecuteDelivery] ignores it
	// and uses the wakeup's queue.
	Queues []runlane.QueueName
	// WorkerID names this process in leases and logs. "" means <host>-<pid>-<ulid>, constant for the runtime.
	WorkerID string
}

// DeliveryResult is the outcome of a wakeup. The wakeup may always be acknowledged.
type DeliveryResult struct {
	// Run is the run after the delivery. nil for IgnoredNotFound. It lacks payload and output if maintenance read it.
	Run *runlane.Run
	// Ignored is why no attempt was executed or, for IgnoredAbandoned, why no outcome was recorded. "" means an
	// executed attempt with a recorded outcome: read Run.Status and Run.Failure.
	Ignored Ignored
}

// Ignored is why a wakeup had no effect.
type Ignored string

// The reasons.
const (
	// IgnoredNotFound: there is no such run.
	IgnoredNotFound Ignored = "not_found"
	// IgnoredTerminal: the run has ended.
	IgnoredTerminal Ignored = "terminal"
	// IgnoredNotDue: the run waits for a later time. The wakeup was sent again if the transport can delay that long.
	IgnoredNotDue Ignored = "not_due"
	// IgnoredWrongQueue: the run is in another queue than the wakeup.
	IgnoredWrongQueue Ignored = "wrong_queue"
	// IgnoredLeased: another worker owns the run.
	IgnoredLeased Ignored = "already_leased"
	// IgnoredClaimLost: another worker was faster, several times.
	IgnoredClaimLost Ignored = "claim_lost"
	// IgnoredNoCapacity: the bounded queue is full; the run waits for a slot.
	IgnoredNoCapacity Ignored = "no_capacity"
	// IgnoredNoRate: the queue's rate allows no start now; the run waits for its time.
	IgnoredNoRate Ignored = "no_rate"
	// IgnoredCancellation: the run's cancellation was requested and is finished elsewhere.
	IgnoredCancellation Ignored = "cancellation_requested"
	// IgnoredAbandoned: the run failed at the limit of abandoned attempts, or the attempt lost its lease and recorded
	// no outcome.
	IgnoredAbandoned Ignored = "abandoned"
	// IgnoredPaused: the queue or the task is paused. Resuming it sends another wakeup.
	IgnoredPaused Ignored = "paused"
	// IgnoredSuspect: the run's last attempt was abandoned, and this process executes another such run. The wakeup was
	// sent again.
	IgnoredSuspect Ignored = "suspect"
)

// WorkOptions of [Runtime.Work]. nil means the defaults.
type WorkOptions struct {
	// Concurrency is the maximum number of concurrent attempts. 0 means runlane.DefaultConcurrency.
	Concurrency int
	// Drain returns nil once no run is due or becomes due within DrainWait. It reads the storage instead of receiving
	// wakeups. An interrupted drain also returns nil; DrainReport distinguishes the two.
	Drain bool
	// DrainReport, if not nil, is filled in before the drain returns nil, interrupted or not. A drain that was
	// interrupted or leaves runs also logs that.
	DrainReport *DrainReport
	// DrainWait is how far ahead an idle drain looks for due runs, such as retries, and waits for them. 0 means
	// DefaultDrainWait; less than 0 means no waiting. With a clock that stands still (Options.World) it never waits.
	DrainWait time.Duration
	// Grace is how long attempts may go on after the context ended. 0 means runlane.DefaultGrace; less than 0, such as
	// runlane.NoWait, means no grace.
	Grace time.Duration
	// Lease is how long this worker keeps a run without a heartbeat; it sends three in that time. Once a dead worker's
	// lease has expired, the next tick recovers the run for other workers. A process executes such runs one at a time;
	// the others are redelivered after about half a minute. A shorter lease recovers faster, but an attempt costs a
	// commit per third of it, and a worker that stalls for longer loses its attempts. 0 means runlane.DefaultLease;
	// less than MinLease is runlane.ErrConfigurationInvalid.
	Lease time.Duration
	// NoTick leaves maintenance, including schedules, to another process. By default this process ticks at the start
	// and every minute, on a lane in a file about every four seconds.
	NoTick bool
	// Queues to take work from. nil means the queues of this process's handlers and other known queues
	// ([Options].Queues) that share a binding with them. Wakeups of other queues are handed back. The transport must
	// bind all of them.
	Queues []runlane.QueueName
	// WorkerID names this worker in leases and logs. "" means <host>-<pid>-<ulid>.
	WorkerID string
}

// MinLease is the shortest WorkOptions.Lease: leases are renewed by a clock of one second.
const MinLease = 5 * time.Second

// DefaultDrainWait is the default of WorkOptions.DrainWait. A first retry comes after about a second.
const DefaultDrainWait = 2 * time.Second

// DrainReport describes the runs that a drain leaves in its queues: they wait for a later time, a slot or a handler
// that is missing here, or another worker, dead or alive, has their lease. An interrupted drain also leaves due runs.
type DrainReport struct {
	// Interrupted reports whether the context ended, or the runtime was closed, before the drain was done.
	Interrupted bool
	// Left counts the runs in the drain's queues among the first 50 active runs of the environment.
	Left int
	// More reports whether there may be more: the environment has more active runs, or reading them took over two
	// seconds.
	More bool
	// NextDue is the earliest due time of the runs that wait for a time, including delayed runs of a bounded queue
	// (status queued). Zero when none waits for a time.
	NextDue time.Time
}

// check validates the options and compares them with the transport's bindings.
func (o *WorkOptions) check(rt *Runtime) error {
	switch {
	case o.Concurrency < 0:
		hint := fmt.Sprintf("use 0 for %d, or a number of attempts", runlane.DefaultConcurrency)
		return invalidOption(hint, "WorkOptions.Concurrency is %d", o.Concurrency)
	case o.Lease != 0 && o.Lease < MinLease:
		return invalidOption(
			fmt.Sprintf("use 0 for %s, or at least %s", runlane.DefaultLease, MinLease),
			"WorkOptions.Lease is %s",
			o.Lease,
		)
	}
	if err := rt.checkQueues("WorkOptions.Queues", o.Queues); err != nil {
		return err
	}
	if err := runlane.ValidateKey("WorkOptions.WorkerID", o.WorkerID); err != nil {
		return invalidOption(hintOf(err), "%s", messageOf(err))
	}
	return nil
}

// TickOptions limit one tick. nil means the defaults.
type TickOptions struct {
	// Deadline is when the tick must be over. The stages share the time by quota. Zero means a minute from now.
	Deadline time.Time
	// Limit is how many runs a stage handles in one round. 0 means 100; at most runlane.MaxPageLimit.
	Limit int
	// Repeat runs more rounds while work is left, the last round made progress, and five seconds are left. Failures do
	// not stop it.
	Repeat bool
}

// TickResult has the stages in order.
type TickResult struct {
	// Cancelled counts finalized cancellations.
	Cancelled StageResult
	// Abandoned counts runs that failed at the limit of abandoned attempts.
	Abandoned StageResult
	// Told counts ended children reported to their callers, and cancellations passed to children.
	Told StageResult
	// Delivered counts due and recovered runs, and delayed wakeups sent ahead.
	Delivered StageResult
	// Redelivered counts lost wakeups that were requested again. Zero if the storage cannot find them.
	Redelivered StageResult
	// Woken counts runs that got a new wakeup after a pause of their queue or task.
	Woken StageResult
	// Scheduled counts runs created by schedules. Skipped occurrences were recorded as skipped or belong to another
	// process.
	Scheduled StageResult
	// Dispatched counts reserved slots of bounded queues.
	Dispatched StageResult
	// Flushed counts published wakeups.
	Flushed StageResult
	// Pruned counts removed runs, see [Options].Keep.
	Pruned StageResult
	// More reports whether another tick would find more work now.
	More bool
}

// StageResult counts the work of a stage. Races lost to another process are Skipped, not Failed. Stale index rows are
// not counted.
type StageResult struct {
	// Done, Skipped and Failed count runs, or wakeups.
	Done, Skipped, Failed int
	// Passed counts pages without any usable row, after which the stage read the next: rows of other queues, rows moved
	// to their due time, rows handled by other processes. The next tick meets fewer of them.
	Passed int
	// More reports whether the stage left work for another round.
	More bool
	// Err joins the stage's errors.
	Err error
}
