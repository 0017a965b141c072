package core

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/runlane/runlane-go"
)

// Options of [Open]. nil means none: such a runtime can trigger, read and maintain, but executes nothing.
type Options struct {
	// Codec stands between this runtime and the storage, for payloads and outputs: package sealed encrypts with one.
	// Every process that triggers, executes or shows the runs of an environment needs it. nil means that they are
	// stored unchanged. Runs that were stored with a codec are then read without payload and output, and not executed
	// (docs/encryption.md).
	Codec runlane.Codec

	// Environment scopes everything that the runtime reads and writes. "" means the lane's own environment, or, if the
	// lane names none, runlane.DefaultEnvironment.
	Environment runlane.Environment

	// Handlers are the tasks that execute in this process. A task id may appear once.
	Handlers []runlane.Handler

	// HideErrorTexts keeps the texts of errors that handlers return, and of values that they panic with, out of the log
	// and out of the runs, because they may quote payloads and credentials. By default the log has them, with the
	// outcome of the attempt. A run has them where its task says so (runlane.TaskOptions.ErrorMessages, which this
	// option does not change) and on a lane whose state only this process can reach. A runtime with a Codec hides them.
	// Messages of *runlane.Error are always kept.
	HideErrorTexts bool

	// Hooks see every commit of this process after it is durable.
	Hooks []Hook

	// Logger gets what an operator may have to act on. Attributes are run_id, task, queue, attempt, worker_id, code and
	// error. Payloads are never among them, unless an error quotes one: see HideErrorTexts. nil means slog.Default().
	Logger *slog.Logger

	// MaxAbandoned is how many attempts of a run in a row may end without an outcome (their worker died) before the run
	// fails with runlane.ErrLeaseExpired. 0 means runlane.DefaultMaxAbandoned, -1 no bound.
	MaxAbandoned int

	// Metrics receives counts and durations. nil means none.
	Metrics Metrics

	// Middleware wraps every attempt, the first one outermost.
	Middleware []runlane.Middleware

	// Queues names queues that no handler here names, so that triggers on them are checked when the runtime opens.
	Queues []runlane.Queue

	// Schedules make runs when they are due. Each tick of a runtime that has them makes the runs that became due since
	// the last one. On a lane whose state only this process can reach, workers that tick also do so at the times
	// themselves. On other lanes an interval shorter than a minute is logged as a warning when the runtime opens. Their
	// tasks need no handler here. Ids are unique.
	Schedules []runlane.Schedule

	// Tasks have no handler here: clients in any language claim their runs ([Runtime.Claim]), through package server or
	// a program of your own. A task stands here or among the Handlers, once.
	Tasks []ClientTask

	// TokenKeys sign answer tokens (runlane.Signal.Token): the first one signs, each verifies, so that a key can be
	// replaced while tokens are on their way. Each has at least 32 random bytes. nil means no tokens: making and taking
	// one is runlane.ErrCapabilityUnsupported. Who has a key can answer every wait of the environment.
	// [TokenKeysFromEnv] reads them from a variable.
	TokenKeys [][]byte

	// World replaces clock, randomness and ids. nil means the real ones.
	World *World
}

// DeliveryOptions say how long this process may work on a delivery. nil means the rules of a long-lived worker: a lease
// of runlane.DefaultLease that heartbeats extend.
type DeliveryOptions struct {
	// Began is when the invocation that Deadline ends began. From it the runtime knows how long an invocation is, so
	// which tasks it never has time for, and how much time an attempt is due. Zero means that this is not known.
	Began time.Time
	// Beside says that this process executes other deliveries at the same time, which a handler that kills the process
	// would end too. A run whose last attempt ended without an outcome is then handed back with [ErrSuspect], before
	// anything is claimed.
	Beside bool
	// Deadline is when this process will be stopped, as in Lambda. The lease then ends 5 s after it, no heartbeat is
	// written, and the handler's context ends before it by max(2 s, 5 % of the time left), so that the outcome still
	// fits.
	Deadline time.Time
	// Follows says that earlier wakeups of the same FIFO group used some of the invocation's time. A task without a
	// timeout then begins only while nine tenths of the handler's time are left. A task with a timeout begins, as
	// always, when that much is left.
	Follows bool
	// Queues to take work from. nil means the queues of this process's handlers. [Runtime.ExecuteDelivery] ignores it,
	// because its wakeup names the queue.
	Queues []runlane.QueueName
	// WorkerID names this process in leases and logs. "" means <host>-<pid>-<ulid>, the same for the life of the
	// runtime.
	WorkerID string
}

// DeliveryResult is the outcome of a wakeup. In every case the wakeup may be acknowledged.
type DeliveryResult struct {
	// Run is the run after the delivery. nil for IgnoredNotFound. Without payload and output where maintenance read it.
	Run *runlane.Run
	// Ignored is why nothing was executed, or, for IgnoredAbandoned, why nothing was recorded. "" means that an attempt
	// was executed and its outcome recorded: read Run.Status and Run.Failure.
	Ignored Ignored
}

// Ignored is why a wakeup led to nothing.
type Ignored string

// The reasons.
const (
	// IgnoredNotFound: there is no such run.
	IgnoredNotFound Ignored = "not_found"
	// IgnoredTerminal: the run has ended.
	IgnoredTerminal Ignored = "terminal"
	// IgnoredNotDue: the run waits for a later time. Where the transport can delay that long, the wakeup was sent
	// again.
	IgnoredNotDue Ignored = "not_due"
	// IgnoredWrongQueue: the run is in another queue than the wakeup says.
	IgnoredWrongQueue Ignored = "wrong_queue"
	// IgnoredLeased: another worker owns the run.
	IgnoredLeased Ignored = "already_leased"
	// IgnoredClaimLost: another worker was faster, several times.
	IgnoredClaimLost Ignored = "claim_lost"
	// IgnoredNoCapacity: the bounded queue is full; the run waits for a slot.
	IgnoredNoCapacity Ignored = "no_capacity"
	// IgnoredCancellation: the run's cancellation was requested; it is finished elsewhere.
	IgnoredCancellation Ignored = "cancellation_requested"
	// IgnoredAbandoned: the bound on abandoned attempts failed the run, or the attempt lost its lease and recorded
	// nothing.
	IgnoredAbandoned Ignored = "abandoned"
	// IgnoredSuspect: the run's last attempt was abandoned, and this process executes another such run. The wakeup was
	// sent again.
	IgnoredSuspect Ignored = "suspect"
)

// WorkOptions of [Runtime.Work]. nil means the defaults.
type WorkOptions struct {
	// Concurrency is how many attempts execute at once. 0 means runlane.DefaultConcurrency.
	Concurrency int
	// Drain returns nil once nothing is due and nothing becomes due within DrainWait. It reads storage instead of
	// receiving wakeups. It also returns nil when it is interrupted: DrainReport tells the two apart.
	Drain bool
	// DrainReport, where it is not nil, is filled in with what a drain leaves before the drain returns nil, interrupted
	// or not. A drain that was interrupted, or leaves runs, also logs that.
	DrainReport *DrainReport
	// DrainWait is how far ahead a drain that has nothing to do searches for what becomes due, such as a retry, and
	// waits for it. 0 means DefaultDrainWait; less than 0 means that it does not wait. Under a clock that stands still
	// (Options.World) it never waits.
	DrainWait time.Duration
	// Grace is how long attempts may finish after the context ended. 0 means runlane.DefaultGrace; less than 0, such as
	// runlane.NoWait, that it does not wait.
	Grace time.Duration
	// Lease is how long a run is this worker's without another sign of life, of which it gives three in that time.
	// When it is over, the next tick finds what a worker that died had, and others take it over: runs whose worker
	// died are executed one at a time in a process, and the others of them come again after about half a minute each
	// time. A shorter one is over sooner, but an attempt costs a commit for each third of it, and a worker that stands
	// still for longer loses its attempts to others. 0 means runlane.DefaultLease; less than MinLease is
	// runlane.ErrConfigurationInvalid.
	Lease time.Duration
	// NoTick leaves maintenance, schedules included, to another process. By default this process ticks at the start and
	// every minute, on a lane in a file about every ten seconds.
	NoTick bool
	// Queues to take work from. nil means the queues of this process's handlers, and others that it knows
	// ([Options].Queues) whose wakeups come because they share a binding with these. Wakeups of other queues are handed
	// back. The transport must have bindings for all of them.
	Queues []runlane.QueueName
	// WorkerID names this worker in leases and logs. "" means <host>-<pid>-<ulid>.
	WorkerID string
}

// MinLease is the shortest WorkOptions.Lease: leases are renewed by a clock of a second.
const MinLease = 5 * time.Second

// DefaultDrainWait is the default of WorkOptions.DrainWait: a first retry comes after about a second.
const DefaultDrainWait = 2 * time.Second

// DrainReport is what a drain leaves in its queues: runs that wait for a later time, for a slot, or for a handler that
// is not here, and those that have the lease of another worker, also of one that died. An interrupted drain also leaves
// runs that are due.
type DrainReport struct {
	// Interrupted says that the context ended, or the runtime was closed, before the drain found nothing due.
	Interrupted bool
	// Left is how many of the first 50 active runs of the environment are in the queues of the drain.
	Left int
	// More says that there may be more: there are active runs beyond those, or they could not be read within two
	// seconds.
	More bool
	// NextDue is the earliest time for which one of them waits. It includes the delayed runs of a bounded queue, whose
	// status is queued. Zero when none waits for a time.
	NextDue time.Time
}

// check judges the options by themselves and by the transport's bindings.
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

// TickOptions bound one tick. nil means the defaults.
type TickOptions struct {
	// Deadline is when the tick must be over. The stages share the time until then by quota. Zero means a minute from
	// now.
	Deadline time.Time
	// Limit is how many runs a stage of one round does something with. 0 means 100; at most runlane.MaxPageLimit.
	Limit int
	// Repeat makes further rounds as long as more is waiting, the last round made progress, whatever failed, and five
	// seconds are left.
	Repeat bool
}

// TickResult has the stages in their order.
type TickResult struct {
	// Cancelled counts finalized cancellations.
	Cancelled StageResult
	// Abandoned counts runs failed by the bound on abandoned attempts.
	Abandoned StageResult
	// Told counts ends of called runs that were told to the runs that called them, and cancellations to those called.
	Told StageResult
	// Delivered counts due and recovered runs, and delayed wakeups sent ahead.
	Delivered StageResult
	// Redelivered counts lost wakeups asked for again. Zero where the storage cannot find them.
	Redelivered StageResult
	// Scheduled counts runs made by schedules. Skipped are occurrences that are recorded as skipped or belong to
	// another process.
	Scheduled StageResult
	// Dispatched counts reserved slots of bounded queues.
	Dispatched StageResult
	// Flushed counts published wakeups.
	Flushed StageResult
	// More means that another tick would find more to do at once.
	More bool
}

// StageResult counts what a stage did. Races lost to another process are Skipped, not Failed. Stale index rows are not
// counted at all.
type StageResult struct {
	// Done, Skipped and Failed count runs, or wakeups.
	Done, Skipped, Failed int
	// Passed counts pages on which no row led to anything, so that the stage read the next: rows of other queues, rows
	// that were moved to their time, rows that other processes dealt with. The next tick meets fewer of them.
	Passed int
	// More means that the stage left something for which another round would be worth it.
	More bool
	// Err joins what went wrong.
	Err error
}
