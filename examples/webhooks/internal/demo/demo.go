// Package demo delivers webhooks to a receiver that fails now and then, and proves from both ends that none was lost.
// cmd/demo is its command line.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/examples/webhooks"
	"github.com/runlane/runlane-go/examples/webhooks/receiver"
)

// Options of [Run]. All but Input are required.
type Options struct {
	Engine   Engine
	Die      bool      // end this process, as nothing can prevent, in the middle of its deliveries
	Input    string    // a file of webhooks; "" means the project's own
	NoOps    int       // runs that do nothing, to be measured before the webhooks where the engine has a meter
	Resume   bool      // finish an interrupted demo instead of starting anew
	Seed     uint64    // of the receiver's faults
	State    string    // the folder of ledger, log and what Resume has to know
	Terminal bool      // Stderr is one: progress is one line that changes
	Stdout   io.Writer // results
	Stderr   io.Writer // news
}

// A hurried version of what the application does: the demo is to end soon.
const (
	requestTimeout = 500 * time.Millisecond
	backoffBase    = 100 * time.Millisecond
	backoffMax     = 2 * time.Second
	triggersAtOnce = 8
)

// demo is one call of Run.
type demo struct {
	Options
	folder   string
	input    input
	state    *state
	receiver *receiver.Receiver
	log      *slog.Logger
	closers  []func()

	deliver  *runlane.Task[webhooks.Delivery]
	noOp     *runlane.Task[struct{}]
	sender   *webhooks.Sender
	webhooks *board
	noOps    *board
	meter    meter

	good      int          // lines of the input that are webhooks
	delivered atomic.Int64 // attempts of this process that the receiver accepted

	mu           sync.Mutex
	badLines     int
	notTriggered []error
}

// Run plays the demo to its end and prints the result. An error means that it could not be played, or was interrupted:
// then ctx has ended, and the error says how to go on.
func Run(ctx context.Context, options Options) (*Summary, error) {
	d := &demo{
		Options:  options,
		folder:   filepath.Join(options.State, options.Engine.Name),
		webhooks: newBoard(),
		noOps:    newBoard(),
		deliver:  webhooks.Task(runlane.Exponential{Base: backoffBase, Max: backoffMax}),
		noOp:     runlane.NewTask("demo.noop", &runlane.TaskOptions[struct{}]{Queue: webhooks.Queue}),
	}
	defer d.close()
	if err := d.prepare(ctx); err != nil {
		return nil, err
	}
	application, err := d.open(ctx, Application)
	if err != nil {
		return nil, err
	}
	look := application
	if d.Engine.Separate {
		if look, err = d.open(ctx, observer); err != nil {
			return nil, errors.Join(err, application.Close(ctx))
		}
		defer func() { _ = look.Close(context.WithoutCancel(ctx)) }() // it only reads
	}
	summary, err := d.play(ctx, application, look)
	return summary, errors.Join(err, application.Close(context.WithoutCancel(ctx)))
}

// play has the workers running from before the first trigger until the last run has ended.
func (d *demo) play(ctx context.Context, application, look *core.Runtime) (*Summary, error) {
	playing, stopWorkers := d.startWorkers(ctx, application)
	begin, before := time.Now(), d.meter.read()
	err := d.runNoOps(playing, application, look)
	between := d.meter.read()
	if err == nil {
		err = d.runWebhooks(playing, application, look)
	}
	after, took := d.meter.read(), time.Since(begin)
	if err := errors.Join(err, stopWorkers()); err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, d.interrupted()
	}
	s := d.summarize()
	d.print(s, took, between.since(before), after.since(between))
	return s, nil
}

// prepare reads the input once, loads or makes the state, and starts the receiver.
func (d *demo) prepare(ctx context.Context) (err error) {
	if err := os.MkdirAll(d.folder, 0o750); err != nil {
		return badState("state folder cannot be made", err)
	}
	if _, err := d.Engine.Lane(ctx); err != nil {
		return err // before the state of an interrupted demo is thrown away
	}
	if d.Resume && !d.Engine.Durable {
		return &runlane.Error{
			Code:    runlane.ErrValidationFailed,
			Message: "the " + d.Engine.Name + " lane keeps nothing that could be resumed",
			Hint:    "use RUNLANE_LANE=sqlite:PATH, or start without -resume",
		}
	}
	if err := d.holdFolder(); err != nil {
		return err
	}
	if d.Resume {
		d.state, err = readState(d.folder)
	} else {
		d.state, err = newState(d.folder, &d.Options)
	}
	if err != nil {
		return err
	}
	log, err := os.OpenFile(filepath.Join(d.folder, logFile), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return badState("log cannot be opened", err)
	}
	d.closers = append(d.closers, func() { _ = log.Close() })
	d.log = slog.New(slog.NewTextHandler(log, nil))
	d.input = input{d.state.Input}

	secret := []byte("the demo's secret")
	d.receiver, err = receiver.Open(receiver.Options{
		Faults:   receiver.DefaultFaults,
		Lateness: time.Minute,
		Ledger:   filepath.Join(d.folder, ledgerFile),
		Secret:   secret,
		Seed:     d.state.Seed,
	})
	if err != nil {
		return err
	}
	d.closers = append(d.closers, func() { _ = d.receiver.Close() })
	if err := d.expectInput(); err != nil {
		return err
	}
	url, stop, err := serve(d.receiver)
	if err != nil {
		return err
	}
	d.closers = append(d.closers, stop)
	d.sender = &webhooks.Sender{
		Client: webhooks.NewClient(requestTimeout), Secret: secret,
		Endpoints: func(string) (string, error) { return url, nil }, // whatever the name: nothing leaves this machine
	}
	d.closers = append(d.closers, d.sender.Client.CloseIdleConnections)
	return nil
}

// expectInput tells the receiver of every delivery and reports bad lines.
func (d *demo) expectInput() error {
	hash, err := d.input.each(func(line webhooks.Line) bool {
		if line.Err != nil {
			d.badLines++
			fmt.Fprintf(d.Stderr, "demo: skipped: %v\n", line.Err)
			return true
		}
		d.good++
		d.receiver.Expect(line.Delivery.ID, []byte(line.Delivery.Payload))
		return true
	})
	switch {
	case err != nil:
		return err
	case d.good == 0:
		return &runlane.Error{
			Code:    runlane.ErrValidationFailed,
			Message: "input holds no webhook",
			Hint:    "name a file of JSON lines with -input",
		}
	case d.Resume && hash != d.state.InputSHA256:
		return badState("the input is not that of the interrupted demo", nil)
	}
	d.state.InputSHA256 = hash
	return d.state.write(d.folder)
}

func (d *demo) close() {
	for i := len(d.closers) - 1; i >= 0; i-- {
		d.closers[i]()
	}
}

// open opens one role's runtime. The endpoint's URL is part of its configuration, not of the runs: a resumed demo has
// another one.
func (d *demo) open(ctx context.Context, role Role) (*core.Runtime, error) {
	l, err := d.Engine.Lane(ctx)
	if err != nil {
		return nil, err
	}
	d.meter.add(role, l)
	return core.Open(ctx, l, &core.Options{
		Environment: d.state.Environment,
		Handlers: []runlane.Handler{
			d.deliver.Handle(d.sender.Deliver),
			d.noOp.Handle(func(context.Context, *runlane.Attempt, struct{}) error { return nil }),
		},
		Logger:     d.log.With("role", role),
		Middleware: []runlane.Middleware{d.watch},
	})
}

func (d *demo) watch(ctx context.Context, a *runlane.Attempt, next func(context.Context) error) error {
	if a.Run.TaskID == d.noOp.Definition().ID {
		return d.noOps.watch(ctx, a, next)
	}
	err := d.webhooks.watch(ctx, a, next)
	if err == nil && d.delivered.Add(1) == int64(d.good+1)/2 && d.Die {
		die()
	}
	return err
}

// die ends this process by SIGKILL. The receiver has accepted a webhook, and that is not recorded yet.
func die() {
	if self, err := os.FindProcess(os.Getpid()); err == nil {
		_ = self.Kill()
	}
	select {} // until it arrives
}

// startWorkers returns a context that also ends when the workers fail, and a function that stops them and says how they
// ended.
func (d *demo) startWorkers(
	ctx context.Context, application *core.Runtime,
) (playing context.Context, stop func() error) {
	playing, fail := context.WithCancelCause(ctx)
	working, stopWork := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { // the workers, until stop
		err := d.Engine.Work(working, &Workplace{
			Application: application,
			Log:         d.log,
			Resume:      d.Resume,
			Open:        d.open,
		})
		if working.Err() == nil { // they stopped by themselves
			fail(err)
		}
		ended <- err
	}()
	return playing, func() error {
		defer fail(nil)
		stopWork()
		return <-ended
	}
}

func (d *demo) interrupted() error {
	f := d.webhooks.figures()
	e := &runlane.Error{
		Code:    runlane.ErrOperationCancelled,
		Message: fmt.Sprintf("stopped with %d runs triggered, %d of them ended, %d left", f.runs, len(f.ended), f.open),
		Hint:    "finish it with the same command of make and RESUME=1, or with -resume",
	}
	if !d.Engine.Durable {
		e.Hint = "a lane in memory ends with its process: start again"
	}
	return e
}
