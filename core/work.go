package core

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// tickEvery is the time between two ticks of a worker, unless the storage is near.
const tickEvery = time.Minute

// Work executes runs until ctx ends, gives attempts in progress the Grace to finish, and then ends them with
// runlane.ErrShutdown: they are released, resume at once elsewhere and cost the run nothing. Like http.Server.Serve it
// blocks, and returns nil after an orderly stop. Several may run at once, in one process or many.
//
// A handler that ignores the end of its context delays Work only a few seconds beyond the grace. Its goroutine is left
// behind, its outcome is not recorded, and its run resumes when the lease would have ended.
//
// At the start Work logs tasks of other programs that send their wakeups to this worker and have no handler here.
//
// Wakeups come from the lane's transport if it can deliver them to this process. Otherwise, and with Drain, Work polls
// the storage: every second, and down to once a minute while no run is due. It then refuses ordered queues
// ([ErrOrdered], runlane.ErrConfigurationInvalid): name the other queues in WorkOptions.Queues.
func (rt *Runtime) Work(ctx context.Context, options *WorkOptions) error {
	w, err := rt.newWorker(options)
	if err != nil {
		return err
	}
	if err := rt.gate.enter(); err != nil {
		return err
	}
	defer rt.gate.leave()
	return w.work(ctx)
}

type worker struct {
	rt         *Runtime
	options    WorkOptions
	receiver   lane.Receiver       // nil: poll
	only       []runlane.QueueName // the requested queues; nil: all known here
	executions executionSet
	drained    atomic.Bool // the source ended because no run was due
}

func (rt *Runtime) newWorker(options *WorkOptions) (*worker, error) {
	w := &worker{rt: rt}
	if options != nil {
		w.options = *options
	}
	o := &w.options
	if err := o.check(rt); err != nil {
		return nil, err
	}
	if len(rt.handlers) == 0 {
		return nil, invalidOption(
			"pass them to core.Open, as Options.Handlers",
			"this runtime has no handlers to work with",
		)
	}
	if o.Concurrency == 0 {
		o.Concurrency = runlane.DefaultConcurrency
	}
	if o.DrainWait == 0 {
		o.DrainWait = DefaultDrainWait
	}
	if o.Grace == 0 {
		o.Grace = runlane.DefaultGrace
	}
	if o.WorkerID == "" {
		o.WorkerID = rt.workerID
	}
	if w.only = o.Queues; o.Queues == nil {
		o.Queues = rt.handlerQueues()
	}
	if !o.Drain {
		w.receiver, _ = lane.As[lane.Receiver](rt.lane.Transport)
	}
	if w.receiver == nil {
		if err := rt.refuseOrdered("a worker that polls or drains", o.Queues...); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// work owns three goroutines: the source of work, the ticks and the shutdown. It returns once they have ended, or when
// their time is over.
func (w *worker) work(ctx context.Context) error {
	acquiring, stop := context.WithCancel(ctx)
	defer stop()
	unhook := w.rt.gate.onClose(stop)
	defer unhook()

	ticked := make(chan struct{})
	go func() { // the ticks: end with acquiring
		defer close(ticked)
		w.warnUnhandled(acquiring)
		if !w.options.NoTick {
			w.rt.tickLoop(acquiring, w.options.WorkerID)
		}
	}()
	source := make(chan error, 1)
	go func() { // the source: ends with acquiring, once its attempts have ended
		if w.receiver != nil {
			source <- w.receiver.Receive(acquiring, w.options.Queues, w.options.Concurrency, w.handle)
		} else {
			source <- w.poll(acquiring)
		}
	}()

	var err error
	select {
	case err = <-source: // drained, or the source gave up
		stop()
	case <-acquiring.Done():
		err = w.shutDown(context.WithoutCancel(ctx), source)
	}
	<-ticked
	if err == nil && w.options.Drain {
		w.reportLeft(ctx)
	}
	return err
}

// shutDown waits for the attempts in progress: first for the grace, then for their end after ErrShutdown, then no
// longer.
func (w *worker) shutDown(ctx context.Context, source <-chan error) error {
	timer := time.NewTimer(w.options.Grace)
	defer timer.Stop()
	select {
	case err := <-source:
		return err
	case <-timer.C:
	case <-w.rt.forceClose:
	}
	w.executions.shutDown()
	timer.Reset(unwindTime + 2*commitTime)
	select {
	case err := <-source:
		return err
	case <-timer.C:
		w.rt.logger.LogAttrs(ctx, slog.LevelError, "worker stopped without waiting any longer for its attempts",
			slog.String(attrWorkerID, w.options.WorkerID))
		return nil
	}
}

// handle executes the run of one wakeup. An error, logged here, makes the receiver hand the wakeup back.
func (w *worker) handle(ctx context.Context, wakeup lane.Wakeup) error {
	_, err := w.deliver(ctx, wakeup, true)
	return err
}

func (w *worker) deliver(ctx context.Context, wakeup lane.Wakeup, byWakeup bool) (*DeliveryResult, error) {
	d := delivery{
		rt:         w.rt,
		wakeup:     wakeup,
		byWakeup:   byWakeup,
		lease:      w.options.Lease,
		workerID:   w.options.WorkerID,
		executions: &w.executions,
		suspects:   w.rt.suspects,
		only:       w.only,
	}
	result, err := d.deliver(ctx)
	if err != nil {
		attrs := untakenAttrs(&wakeup, w.options.WorkerID, err)
		switch {
		case errors.Is(err, ErrOwned), errors.Is(err, errReleased), errors.Is(err, ErrSuspect), errors.Is(err, errPaused): // redelivered
			w.rt.logger.LogAttrs(ctx, slog.LevelDebug, "wakeup handed back", attrs...)
		case byWakeup:
			w.rt.logger.LogAttrs(ctx, slog.LevelWarn, "wakeup handed back", attrs...)
		default: // the storage lists it again
			w.rt.logger.LogAttrs(ctx, slog.LevelWarn, passedOver, attrs...)
		}
	}
	return result, err
}

// passedOver is the log message for a run that the storage lists again.
const passedOver = "due run passed over for now"

func untakenAttrs(wakeup *lane.Wakeup, workerID string, err error) []slog.Attr {
	return append([]slog.Attr{
		slog.String(attrRunID, string(wakeup.RunID)), slog.String(attrQueue, string(wakeup.Queue)),
		slog.String(attrWorkerID, workerID),
	}, errorAttrs(err)...)
}

// Maintain ticks until ctx ends, like [Runtime.Work] at once and then about every minute, on a lane in a file about
// every ten seconds. It is for a program that executes nothing itself while its clients do. Failed ticks are logged.
// The only error is a closed runtime's.
func (rt *Runtime) Maintain(ctx context.Context) error {
	if err := rt.gate.enter(); err != nil {
		return err
	}
	defer rt.gate.leave()
	ticking, stop := context.WithCancel(ctx)
	defer stop()
	unhook := rt.gate.onClose(stop)
	defer unhook()
	rt.tickLoop(ticking, rt.workerID)
	return nil
}

// tickLoop ticks at once and then about every minute, or as often as the storage wants. The interval varies, so that
// processes which started together do not tick together.
func (rt *Runtime) tickLoop(ctx context.Context, workerID string) {
	for {
		tickedAt := rt.now()
		_, err := rt.tick(ctx, &TickOptions{Deadline: rt.world.Now().Add(tickEvery), Repeat: true})
		if err != nil && ctx.Err() == nil {
			attrs := append([]slog.Attr{slog.String(attrWorkerID, workerID)}, errorAttrs(err)...)
			rt.logger.LogAttrs(ctx, slog.LevelWarn, "tick failed in part", attrs...)
		}
		if !rt.rest(ctx, workerID, tickedAt) {
			return
		}
	}
}

// firesBetweenTicks reports whether workers here fire schedules at the exact times. They do so if reading the state
// costs almost nothing: in this process's memory, or near it. Of several processes one creates each run. See
// docs/internals/design.md, Schedules.
func (rt *Runtime) firesBetweenTicks() bool {
	if len(rt.schedules.All()) == 0 {
		return false
	}
	_, near := lane.As[nearStorage](rt.storage())
	return near || rt.storage().Capabilities().ProcessLocalState
}

// tickDistance is the approximate time between two ticks: a minute, unless the storage is near.
func (rt *Runtime) tickDistance() time.Duration {
	if near, ok := lane.As[nearStorage](rt.storage()); ok {
		return near.TickEvery()
	}
	return tickEvery
}

// rest waits for the next tick. Meanwhile it fires schedules on time, if [Runtime.firesBetweenTicks] allows it.
// tickedAt is a time before the last tick read the schedules. It returns false once ctx has ended.
func (rt *Runtime) rest(ctx context.Context, workerID string, tickedAt time.Time) bool {
	whole := rt.world.around(rt.tickDistance())
	if !rt.firesBetweenTicks() {
		return pause(ctx, whole)
	}
	for end := time.Now().Add(whole); ; {
		left := time.Until(end)
		fire, ok := rt.schedules.NextFire(tickedAt)
		wait := fire.Sub(rt.world.Now())
		if !ok || wait >= left {
			return pause(ctx, left)
		}
		if !pause(ctx, wait) {
			return false
		}
		tickedAt = rt.now()
		if result := rt.schedules.Fire(ctx); result.Err != nil && ctx.Err() == nil { // the tick tries again
			attrs := append([]slog.Attr{slog.String(attrWorkerID, workerID)}, errorAttrs(result.Err)...)
			rt.logger.LogAttrs(ctx, slog.LevelWarn, "schedules could not be fired at their time", attrs...)
		}
	}
}

// nearStorage is an optional ability of storages with very cheap reads: workers tick more often than once a minute, and
// fire schedules on time.
type nearStorage interface {
	// TickEvery is the approximate time between two ticks: more than 0, and less than a minute.
	TickEvery() time.Duration
}
