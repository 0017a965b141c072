package core

import (
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

// lookAfter is when a claim that got no wakeup looks into the storage, once: wakeups may be lost, and those of a client
// that died are gone.
const lookAfter = time.Second

// MaxClaimLease is the longest lease that a client may ask for: a run whose client died waits that long.
const MaxClaimLease = 15 * time.Minute

// ClaimOptions say what a client takes. nil means the defaults.
type ClaimOptions struct {
	// Lease is how long the run is the client's without a heartbeat, from MinLease to MaxClaimLease. 0 means
	// runlane.DefaultLease. It never goes beyond the task's timeout.
	Lease time.Duration
	// Queues to take work from. nil means the queues of Tasks.
	Queues []runlane.QueueName
	// RunID is the run whose wakeup the client has received itself, in place of the next run: nothing is received here,
	// and Wait is not looked at. Without an error the wakeup is acknowledged, also where nothing was claimed; with one
	// it is left to come again. "" means the next run.
	RunID runlane.RunID
	// Tasks that the client executes, of Options.Tasks. nil means all of these. Wakeups of other tasks in the same
	// queues are handed back, and come again to another client.
	Tasks []runlane.TaskID
	// Wait is how long to wait for a run. 0 means until the context ends; less than 0, such as runlane.NoWait, that what
	// the storage says is due now is taken, and nothing is waited for.
	Wait time.Duration
	// WorkerID names the client in leases, events and logs. "" means this runtime's.
	WorkerID string
}

// Claim is one attempt that a client outside this process executes. Every method judges anew who owns the run: once
// another attempt does, or the run has ended, each returns runlane.ErrStorageConflict of the kind
// runlane.ConflictLeaseOwnership, and nothing is written. A claim is kept by the storage alone, and by the token: it
// outlives this process, and any runtime of the environment that has the task can go on with it ([Runtime.ByToken]).
// Methods of one value may not be called at once; several values of one token may.
type Claim struct {
	// Token proves the claim. Who has it may end the attempt; it is in no answer of the operator API.
	Token string
	// Run is the run as the claim, or the last method, left it. Its payload is there only after [Runtime.Claim].
	Run *runlane.Run

	x      *execution
	judged bool // the lease was read just now, and no method was called since
}

// Claim takes a run of Options.Tasks for a client: it waits for a wakeup of the queues, judges it as
// [Runtime.ExecuteDelivery] does, starts the attempt and returns it. Nil and no error mean that nothing came in the
// time. A claim that has waited for a second looks into the storage, too, once: for runs whose wakeup was lost, or
// whose client died. The attempt is the client's until a method of the claim ends it, or until its lease ends: then
// another claim finds the run, or a tick sends a wakeup. The wakeup is acknowledged with the claim, since the lease
// stands for it from then on.
//
// A run that is claimed as ctx ends is released at once, since no one hears of it. Middleware does not see these
// attempts; hooks and metrics do.
//
// With ClaimOptions.RunID it judges that run alone, and what would hand its wakeup back is the error.
//
// Errors: runlane.ErrConfigurationInvalid for options that cannot be, and for ordered queues ([ErrOrdered]), whose
// order is that of wakeups which are held until their attempt has ended; runlane.ErrCapabilityUnsupported where the
// transport delivers no wakeups to this process; those of the storage and the transport. Safe for concurrent use: each
// run goes to one caller.
func (rt *Runtime) Claim(ctx context.Context, options *ClaimOptions) (*Claim, error) {
	c, err := rt.newClaiming(options)
	if err != nil {
		return nil, err
	}
	if err := rt.gate.enter(); err != nil {
		return nil, err
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

// answer is the claim that was found, nil for none.
func (c *claiming) answer(ctx context.Context) (*Claim, error) {
	if !c.search.HasFound() {
		return nil, nil // the wakeup leads to nothing, or nothing is due
	}
	return c.claim.given(ctx)
}

// given returns a claim to a caller that is still there.
func (c *Claim) given(ctx context.Context) (*Claim, error) {
	if ctx.Err() == nil {
		return c, nil
	}
	c.x.ctx = context.WithoutCancel(ctx)
	return nil, firstError(c.Release(c.x.ctx, nil), cancelled(ctx, c.Run.ID))
}

// claiming is one call of Claim. It is the remote.Host of its search.
type claiming struct {
	rt       *Runtime
	options  ClaimOptions
	receiver lane.Receiver
	handlers map[runlane.TaskID]runlane.Handler
	search   *remote.Search
	claim    *Claim // once the search has found it
}

// Receive implements remote.Host.
func (c *claiming) Receive(ctx, receiving context.Context) error {
	return c.receiver.Receive(receiving, c.options.Queues, 1, func(own context.Context, w lane.Wakeup) error {
		return c.take(ctx, w.RunID, func(d *delivery) error {
			d.wakeup, d.byWakeup = w, true
			_, err := d.deliver(own)
			return err
		})
	})
}

// Look implements remote.Host.
func (c *claiming) Look(receiving context.Context) {
	if pause(receiving, c.rt.world.around(lookAfter)) {
		_ = c.take(receiving, "", func(d *delivery) error { // logged; wakeups come all the same
			_, err := d.next(context.WithoutCancel(receiving), c.options.Queues)
			return err
		})
	}
}

// OnClose implements remote.Host.
func (c *claiming) OnClose(f func()) (unhook func()) { return c.rt.gate.onClose(f) }

// Leave implements remote.Host.
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
		return nil, invalidOption("define some in core.Options.Tasks, or in the file of \"serve --tasks\"",
			"this runtime has no tasks whose runs clients claim")
	}
	if err := rt.inAnyOrder("a client", o.Queues...); err != nil {
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

// take lets a delivery claim a run, unless one was claimed, or the caller is gone.
func (c *claiming) take(ctx context.Context, id runlane.RunID, deliver func(d *delivery) error) error {
	return c.search.Take(ctx, id, func() error {
		secret := rand.Text()
		err := deliver(&delivery{
			rt:       c.rt,
			lease:    c.options.Lease,
			workerID: c.options.WorkerID,
			only:     c.options.Queues,
			handlers: c.handlers,
			token:    remote.LeaseOf(secret),
			give: func(x *execution) {
				c.claim = &Claim{Token: remote.Token(x.run.ID, secret), Run: x.run.Clone(), x: x.rejoin()}
				c.search.Found()
			},
		})
		c.logUntaken(ctx, id, err)
		return err
	})
}

// logUntaken logs that a run was not claimed.
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

// takeNow takes the run whose wakeup the client has, or what is due, without waiting.
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
