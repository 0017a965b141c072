package core

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core/internal/remote"
	"github.com/runlane/runlane-go/lane"
)

// lookAfter is when a claim without a wakeup reads the storage, once: wakeups can be lost, and dead clients have
// theirs.
const lookAfter = time.Second

// MaxClaimLease is the longest lease of a client. A run waits that long when its client dies.
const MaxClaimLease = 15 * time.Minute

// ClaimOptions of [Runtime.Claim]. nil means the defaults.
type ClaimOptions struct {
	// Lease is how long the client keeps the run without a heartbeat, from MinLease to MaxClaimLease. 0 means
	// runlane.DefaultLease. It never extends beyond the task's timeout.
	Lease time.Duration
	// Queues to receive from. nil means the queues of Tasks.
	Queues []runlane.QueueName
	// RunID claims this run instead of the next one, for a client that has received the wakeup itself: Wait is ignored.
	// Without an error acknowledge the wakeup, even without a claim; otherwise let it be redelivered. "" means the next
	// run.
	RunID runlane.RunID
	// Tasks that the client executes, out of Options.Tasks. nil means all of these. Wakeups of other tasks in the same
	// queues are handed back for another client.
	Tasks []runlane.TaskID
	// Wait is how long to wait for a run. 0 means until the context ends. Less than 0, such as runlane.NoWait, takes a run
	// that the storage has due now, without waiting.
	Wait time.Duration
	// ClaimID makes the call repeatable after a lost answer: a second one with it returns the same claim while its attempt
	// lasts, from the same runtime. It is a secret, random, new for each claim, from MinClaimID to MaxClaimID bytes. ""
	// makes another claim.
	ClaimID string
	// WorkerID names the client in leases, events and logs. "" means this runtime's.
	WorkerID string
}

// Claim is one attempt that a client outside this process executes. Every method checks who owns the run: if another
// attempt does, or the run has ended, it writes nothing and returns runlane.ErrStorageConflict of the kind
// runlane.ConflictLeaseOwnership. A method that waits may end the attempt, with an error that [runlane.Suspended]
// reports: the run is claimed again when the wait is over.
//
// The state is in the storage and the token: a claim outlives this process, and any runtime of the environment with the
// task can continue it ([Runtime.ByToken]). Methods of one value may not be called concurrently; several values of one
// token may.
type Claim struct {
	// Token proves the claim: its holder may end the attempt. No answer of the operator API contains it.
	Token string
	// Run is the run after the claim, or after the last method. It has its payload only after [Runtime.Claim].
	Run *runlane.Run

	x      *execution
	judged bool // the lease was just read; no method was called since
}

// Claim takes a run of Options.Tasks for a client: it waits for a wakeup of the queues, judges it as
// [Runtime.ExecuteDelivery] does, starts the attempt and returns it. nil without an error means that none came in time.
// After a second it also reads the storage, once, for runs with a lost wakeup or a dead client. The wakeup is
// acknowledged, since the lease replaces it. The attempt is the client's until a method ends it, or the lease ends;
// then another claim finds the run, or a tick sends a wakeup.
//
// A run claimed as ctx ends is released at once, since no one would receive it. Hooks and metrics see these attempts;
// middleware does not.
//
// With ClaimOptions.RunID it judges that run alone, and the error is the reason to hand the wakeup back.
//
// Errors: runlane.ErrConfigurationInvalid for impossible options, and for ordered queues ([ErrOrdered]), which hold
// their wakeups until the attempt has ended; runlane.ErrCapabilityUnsupported if the transport delivers no wakeups to
// this process; errors of storage and transport. Safe for concurrent use: each run goes to one caller.
func (rt *Runtime) Claim(ctx context.Context, options *ClaimOptions) (*Claim, error) {
	c, err := rt.newClaiming(options)
	if err != nil {
		return nil, err
	}
	if err := rt.gate.enter(); err != nil {
		return nil, err
	}
	if claim, err := c.again(ctx); claim != nil || err != nil {
		rt.gate.leave()
		return claim, err
	}
	if c.options.RunID != "" || c.options.Wait < 0 {
		defer rt.gate.leave()
		return c.takeNow(ctx)
	}
	if err := c.search.Run(ctx, c, c.options.Wait); err != nil && !c.search.HasFound() {
		return nil, err
	}
	return c.answer(ctx)
}

func (c *claiming) answer(ctx context.Context) (*Claim, error) {
	if !c.search.HasFound() {
		return nil, nil // ignored, or nothing is due
	}
	return c.claim.returnOrRelease(ctx)
}

// returnOrRelease returns the claim to its caller, or releases it if the caller is gone.
func (c *Claim) returnOrRelease(ctx context.Context) (*Claim, error) {
	if ctx.Err() == nil {
		return c, nil
	}
	c.x.ctx = context.WithoutCancel(ctx)
	return nil, firstError(c.Release(c.x.ctx, nil), cancelled(ctx, c.Run.ID))
}

// claiming is one call of Claim. It implements remote.Host for its search.
type claiming struct {
	rt       *Runtime
	options  ClaimOptions
	receiver lane.Receiver
	handlers map[runlane.TaskID]runlane.Handler
	search   *remote.Search
	claim    *Claim // once the search has found it
}

func (c *claiming) Receive(ctx, receiving context.Context) error {
	return c.receiver.Receive(receiving, c.options.Queues, 1, func(own context.Context, w lane.Wakeup) error {
		return c.take(ctx, w.RunID, func(d *delivery) error {
			d.wakeup, d.byWakeup = w, true
			_, err := d.deliver(own)
			return err
		})
	})
}

func (c *claiming) Look(receiving context.Context) {
	if pause(receiving, c.rt.world.around(lookAfter)) {
		_ = c.take(receiving, "", func(d *delivery) error { // logged; wakeups still come
			_, err := d.next(context.WithoutCancel(receiving), c.options.Queues)
			return err
		})
	}
}

func (c *claiming) OnClose(f func()) (unhook func()) { return c.rt.gate.onClose(f) }

func (c *claiming) Leave() { c.rt.gate.leave() }

func (rt *Runtime) newClaiming(options *ClaimOptions) (*claiming, error) {
	c := &claiming{rt: rt, handlers: map[runlane.TaskID]runlane.Handler{}, search: remote.NewSearch()}
	if options != nil {
		c.options = *options
	}
	o := &c.options
	if err := o.check(rt); err != nil {
		return nil, err
	}
	if o.Tasks == nil {
		o.Tasks = slices.Collect(maps.Keys(rt.clientTasks))
	}
	queues := o.Queues
	for _, id := range o.Tasks {
		task, ok := rt.clientTasks[id]
		if !ok {
			return nil, remote.Undefined(id)
		}
		c.handlers[id] = runlane.Handler{Task: task.Definition}
		if o.Queues == nil {
			queues = append(queues, task.Definition.Queue.Name)
		}
	}
	slices.Sort(queues)
	o.Queues = slices.Compact(queues)
	if len(c.handlers) == 0 {
		return nil, invalidOption("define some in core.Options.Tasks, or in the file of \"runlane serve --tasks\"",
			"this runtime has no tasks whose runs clients claim")
	}
	if err := rt.refuseOrdered("a client", o.Queues...); err != nil {
		return nil, err
	}
	if o.RunID != "" || o.Wait < 0 {
		return c, nil
	}
	var ok bool
	if c.receiver, ok = lane.As[lane.Receiver](rt.lane.Transport); !ok {
		return nil, unsupported("the transport delivers no wakeups to this process")
	}
	return c, nil
}

func (o *ClaimOptions) check(rt *Runtime) error {
	if err := remote.CheckLease(o.Lease, MinLease, MaxClaimLease); err != nil {
		return err
	}
	if err := checkClaimID(o.ClaimID); err != nil {
		return err
	}
	if o.WorkerID == "" {
		o.WorkerID = rt.workerID
	}
	if o.RunID != "" {
		if err := o.RunID.Validate(); err != nil {
			return err
		}
	}
	return firstError(runlane.ValidateKey("worker", o.WorkerID), rt.checkQueues("ClaimOptions.Queues", o.Queues))
}

// take lets a delivery claim a run, unless one was claimed or the caller is gone.
func (c *claiming) take(ctx context.Context, id runlane.RunID, deliver func(d *delivery) error) error {
	return c.search.Take(ctx, id, func() error {
		secret := cmp.Or(c.options.ClaimID, rand.Text())
		err := deliver(&delivery{
			rt:       c.rt,
			lease:    c.options.Lease,
			workerID: c.options.WorkerID,
			only:     c.options.Queues,
			handlers: c.handlers,
			token:    remote.LeaseOf(secret),
			give: func(x *execution) {
				c.claim = &Claim{Token: remote.Token(x.run.ID, secret), Run: x.run.Clone(), x: x.rejoin()}
				if c.options.ClaimID != "" {
					c.rt.claimIDs.add(remote.LeaseOf(secret), x.run.ID, c.rt.now())
				}
				c.search.Found()
			},
		})
		c.logUntaken(ctx, id, err)
		return err
	})
}

func (c *claiming) logUntaken(ctx context.Context, id runlane.RunID, err error) {
	if err == nil {
		return
	}
	level := slog.LevelWarn
	if errors.Is(err, runlane.ErrTaskNotFound) { // another client takes it
		level = slog.LevelDebug
	}
	attrs := untakenAttrs(&lane.Wakeup{RunKey: lane.RunKey{RunID: id}}, c.options.WorkerID, err)
	c.rt.logger.LogAttrs(ctx, level, "run not claimed", attrs...)
}

// takeNow takes the run of ClaimOptions.RunID, or one that is due, without waiting.
func (c *claiming) takeNow(ctx context.Context) (*Claim, error) {
	err := c.take(ctx, c.options.RunID, func(d *delivery) error {
		if c.options.RunID == "" {
			_, err := d.next(ctx, c.options.Queues)
			return err
		}
		key := lane.RunKey{Environment: c.rt.environment, RunID: c.options.RunID}
		d.wakeup, d.byWakeup = lane.Wakeup{RunKey: key, RequestedAt: c.rt.now()}, true
		_, err := d.deliver(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	return c.answer(ctx)
}
