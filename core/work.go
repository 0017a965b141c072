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

// tickEvery is the time between two ticks of a worker, where the storage is not near.
const tickEvery = time.Minute

// Work executes runs until ctx ends, lets the attempts in progress finish for Grace, and then ends them with
// runlane.ErrShutdown: they are released, resume at once elsewhere and cost the run nothing. It blocks, like
// http.Server.Serve, and returns nil after an orderly stop. Several may run side by side, in one process or many.
//
// A handler that ignores the end of its context cannot delay Work for long: a few seconds after the grace Work returns
// without it. Its goroutine is left behind, nothing more of it is recorded, and its run is released to resume when the
// lease would have ended.
//
// Where other programs have tasks whose wakeups come to this worker too, and it lacks their handlers, a line of the log
// names them at the start.
//
// Wakeups come from the lane's transport if it can deliver them to this process. Otherwise, and to Drain, Work asks the
// storage for due work: every second, and less often, down to once a minute, while there is none. It refuses ordered
// queues then ([ErrOrdered], runlane.ErrConfigurationInvalid): name the others in WorkOptions.Queues.
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

// worker is one call of Work.
type worker struct {
	rt         *Runtime
	options    WorkOptions
	receiver   lane.Receiver       // nil: poll
	only       []runlane.QueueName // that were asked for; nil: all that are known here
	executions executionSet
	drained    atomic.Bool // the source ended because nothing was due
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
		if err := rt.inAnyOrder("a worker that polls or drains", o.Queues...); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// work owns three goroutines: the source of work, the ticks and the shutdown. It returns when they have ended, or when
// the time for that is over.
func (w *worker) work(ctx context.Context) error {
	acquiring, stop := context.WithCancel(ctx)
	defer stop()
	unhook := w.rt.gate.onClose(stop)
	defer unhook()

	ticked := make(chan struct{})
	go func() { // what no run waits for, and the ticks: end with acquiring
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
		w.leave(ctx)
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

// handle executes what one wakeup asks for. An error tells the receiver to hand the wakeup back; it is logged here.
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
		case errors.Is(err, ErrOwned), errors.Is(err, errReleased), errors.Is(err, ErrSuspect): // they come again
			w.rt.logger.LogAttrs(ctx, slog.LevelDebug, "wakeup handed back", attrs...)
		case byWakeup:
			w.rt.logger.LogAttrs(ctx, slog.LevelWarn, "wakeup handed back", attrs...)
		default: // the storage lists it again
			w.rt.logger.LogAttrs(ctx, slog.LevelWarn, passedOver, attrs...)
		}
	}
	return result, err
}

// passedOver is logged of a run that the storage lists again.
const passedOver = "due run passed over for now"

// untakenAttrs say why a run was not taken.
func untakenAttrs(wakeup *lane.Wakeup, workerID string, err error) []slog.Attr {
	return append([]slog.Attr{
		slog.String(attrRunID, string(wakeup.RunID)), slog.String(attrQueue, string(wakeup.Queue)),
		slog.String(attrWorkerID, workerID),
	}, errorAttrs(err)...)
}

// Maintain ticks until ctx ends, at once and then about every minute, on a lane in a file about every ten seconds, as
// [Runtime.Work] does beside its attempts: for a program that executes nothing itself and whose clients do. What a tick
// cannot do is logged, and the next one tries it again. The error is that of a closed runtime.
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

// tickLoop ticks at once and then about every minute, or as often as the storage says, so that processes which started
// together do not tick together.
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

// firesBetweenTicks reports that workers here wait for the times of schedules themselves. They do so where reading the
// state costs almost nothing: in the memory of this process, or near it. Of several processes one makes each run. See
// docs/internals/design.md, Schedules.
func (rt *Runtime) firesBetweenTicks() bool {
	if len(rt.schedules.All()) == 0 {
		return false
	}
	_, near := lane.As[nearStorage](rt.storage())
	return near || rt.storage().Capabilities().ProcessLocalState
}

// tickDistance is about how long workers here wait between two ticks: a minute, unless the storage is near.
func (rt *Runtime) tickDistance() time.Duration {
	if near, ok := lane.As[nearStorage](rt.storage()); ok {
		return near.TickEvery()
	}
	return tickEvery
}

// rest waits for the next tick. Meanwhile it makes the runs of schedules at their times, if [Runtime.firesBetweenTicks]
// says so. tickedAt is an instant before the last tick read the schedules. It returns false when ctx has ended.
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

// nearStorage is the optional ability of a storage whose reads cost so little that workers tick more often than once a minute,
// and make the runs of their schedules at their times.
type nearStorage interface {
	// TickEvery is about how long a worker waits between two ticks: more than 0, and less than a minute.
	TickEvery() time.Duration
}
