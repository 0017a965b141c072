package crash

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/internal/proof/scenarios/patience"
	"github.com/runlane/runlane-go/lane"
)

// Lane is one process's way to what it shares with the others of its scenario.
type Lane interface {
	// Open makes the lane, once.
	Open(p *Process) (*lane.Lane, error)
	// Deliver executes what is delivered: all of it until there is nothing more, or once what there is now.
	Deliver(ctx context.Context, p *Process, once bool) error
	// Tick maintains as a program on this lane does.
	Tick(ctx context.Context, p *Process) error
	// Advance moves the clocks that are not the process's.
	Advance(d time.Duration)
	// Lose loses every wakeup that was sent.
	Lose() error
	// Runs are those that are there, whatever lists say, and faults what only a look at the records finds.
	Runs(p *Process) ([]runlane.RunID, error)
	Faults(e *End)
	// Place is what a child has to know to open the same lane, and Environ its environment.
	Place() map[string]string
	Environ() []string
}

// Job is what a process has to know.
type Job struct {
	Scenario  string
	Target    *Point `json:",omitempty"`
	Ledger    string
	Ahead     time.Duration // of its clock, at the beginning
	Place     map[string]string
	Arguments map[string]string
}

// Process is one process of a scenario: the one that prepares and takes over, or the one that dies.
type Process struct {
	Job

	TB       testing.TB
	Lane     Lane
	Runtime  *core.Runtime
	Promised []runlane.RunID        // by calls that returned: these must not be lost
	Gone     map[runlane.RunID]bool // pruned
	// Note, where it is not nil, hears of promises, whose attempt is 0, and of side effects.
	Note func(Effect)

	trap   *Trap // nil in the process that does not die
	ahead  atomic.Int64
	faults []string
}

// NewProcess is one that prepares, and takes over.
func NewProcess(t testing.TB, scenario, ledger string, l Lane) *Process {
	t.Helper()
	return &Process{TB: t, Lane: l, Gone: map[runlane.RunID]bool{}, Job: Job{
		Scenario: scenario, Ledger: ledger, Arguments: map[string]string{},
	}}
}

// Open starts the process's runtime.
func (p *Process) Open(s *Scenario) {
	p.TB.Helper()
	p.ahead.Store(int64(p.Ahead))
	l, err := p.Lane.Open(p)
	p.Must(err)
	o := p.options(s)
	p.Runtime, err = core.Open(context.Background(), l, o)
	p.Must(err)
}

func (p *Process) options(s *Scenario) *core.Options {
	o := &core.Options{Handlers: p.handlers(), TokenKeys: [][]byte{make([]byte, 32)}}
	if s.Options != nil {
		s.Options(p, o)
	}
	o.Logger, o.World = p.Logger(), &core.World{Now: p.Now}
	return o
}

// Logger is for what tells why a child failed.
func (p *Process) Logger() *slog.Logger {
	if p.Dies() {
		return slog.New(slog.NewTextHandler(os.Stderr, nil))
	}
	return slog.New(slog.DiscardHandler)
}

// Close ends the process's runtime.
func (p *Process) Close() { p.Must(p.Runtime.Close(context.Background())) }

// Dies reports that this process is a child.
func (p *Process) Dies() bool { return p.trap != nil }

// Must ends the test with an error that is not nil.
func (p *Process) Must(err error) {
	p.TB.Helper()
	if err != nil {
		p.TB.Fatal(err)
	}
}

// Fault notes what must not be.
func (p *Process) Fault(format string, arguments ...any) {
	p.faults = append(p.faults, fmt.Sprintf(format, arguments...))
}

// Now is the process's time.
func (p *Process) Now() time.Time { return time.Now().Add(p.Moved()) }

// Moved is how far its clock is ahead.
func (p *Process) Moved() time.Duration { return time.Duration(p.ahead.Load()) }

// Advance moves the clock of everything in this scenario.
func (p *Process) Advance(d time.Duration) {
	p.ahead.Add(int64(d))
	p.Lane.Advance(d)
}

// Mark is a moment that is no effect on the storage or the transport.
func (p *Process) Mark(name string) {
	if p.trap != nil {
		p.trap.mark(name)
	}
}

func (p *Process) note(e Effect) {
	if p.Note != nil {
		p.Note(e)
	}
}

// Promise says that a call has returned: from now on the run must not be lost.
func (p *Process) Promise(id runlane.RunID) {
	if p.trap != nil {
		p.trap.say(Line{Promised: id})
	}
	p.note(Effect{Run: id})
	p.Promised = append(p.Promised, id)
}

// Trigger triggers a run that must not be lost.
func (p *Process) Trigger(call runlane.Call, options *runlane.TriggerOptions) runlane.RunID {
	p.TB.Helper()
	result, err := p.Runtime.Trigger(context.Background(), call, options)
	p.Must(err)
	p.Promise(result.Run.ID)
	return result.Run.ID
}

// Tick maintains once.
func (p *Process) Tick() {
	p.TB.Helper()
	_, err := p.Runtime.Tick(context.Background(), nil)
	p.Must(err)
}

// Lose loses every wakeup that was sent.
func (p *Process) Lose() {
	p.TB.Helper()
	p.Must(p.Lane.Lose())
}

// Deliver executes what is delivered until there is nothing more; DeliverOnce what there is now.
func (p *Process) Deliver() {
	p.TB.Helper()
	p.Must(p.Lane.Deliver(context.Background(), p, false))
}

// DeliverOnce executes what is delivered now.
func (p *Process) DeliverOnce() {
	p.TB.Helper()
	p.Must(p.Lane.Deliver(context.Background(), p, true))
}

// Work is a worker until a condition holds, which is asked for again and again.
func (p *Process) Work(
	ctx context.Context, options *core.WorkOptions, pace time.Duration, over func(context.Context, *Process) (bool, error),
) error {
	ctx, cancel := context.WithTimeout(ctx, patience.Limit)
	defer cancel()
	working, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- p.Runtime.Work(working, options) }()
	ticker := time.NewTicker(pace)
	defer ticker.Stop()
	for {
		select {
		case err := <-ended:
			return errors.Join(err, errors.New("the worker stopped by itself"))
		case <-ctx.Done():
			return errors.New("the worker is not done")
		case <-ticker.C:
		}
		if done, err := over(ctx, p); err != nil {
			return err
		} else if done {
			stop()
			return <-ended
		}
	}
}

// Recover is what goes on without the process that died: two ticks pass, and what is delivered is executed.
func (p *Process) Recover(s *Scenario) {
	p.TB.Helper()
	for range 2 {
		p.Advance(Between)
		p.Deliver()
		p.Tick()
		p.Deliver()
	}
	if s.Repeat != nil {
		s.Repeat(p)
	}
}

func (p *Process) get(id runlane.RunID) *runlane.Run {
	p.TB.Helper()
	run, err := p.Runtime.Runs().Get(context.Background(), id)
	p.Must(err)
	return run
}

func (p *Process) argument() runlane.RunID { return runlane.RunID(p.Arguments["run"]) }

// fresh triggers a run that needs what may have been left behind, and wants it through at once, without a tick.
func (p *Process) fresh(call runlane.Call, options *runlane.TriggerOptions) {
	p.TB.Helper()
	id := p.Trigger(call, options)
	p.Deliver()
	if run := p.get(id); run.Status != runlane.StatusSucceeded {
		p.Fault("a run that came afterwards is %s", run.Status)
	}
}

func (p *Process) storage() lane.Storage { return p.Runtime.Lane().Storage }

func (p *Process) key(id runlane.RunID) lane.RunKey {
	return lane.RunKey{Environment: p.Runtime.Environment(), RunID: id}
}

// abandon makes a run one whose worker has died: its lease is over in a second.
func (p *Process) abandon(id runlane.RunID) {
	p.TB.Helper()
	queue := runlane.Queue{Name: p.get(id).Queue}
	if queue.Name == Narrow.Name {
		queue = Narrow
	}
	p.claim(id, queue, time.Second)
}

// occupy lets a run have its slot until after the next tick: it runs, and its worker dies.
func (p *Process) occupy(id runlane.RunID) {
	p.TB.Helper()
	p.claim(id, Narrow, Between+time.Minute)
}

// claim starts an attempt that no worker executes, under a lease of a length.
func (p *Process) claim(id runlane.RunID, queue runlane.Queue, length time.Duration) {
	p.TB.Helper()
	run, at := p.get(id), runlane.UTCMillis(p.Now())
	header := runlane.Event{
		RunID: id, Environment: run.Environment, OccurredAt: at, Actor: runlane.Actor{Type: runlane.ActorWorker, ID: "dead"},
	}
	claimed, started := header, header
	claimed.Body = &runlane.RunLeaseClaimed{
		Lease: runlane.Lease{Token: "lease_dead", WorkerID: "dead", ExpiresAt: at.Add(length)},
	}
	started.Body = &runlane.RunStarted{Attempt: run.Counters.Attempts + 1}
	happened := []runlane.Event{claimed, started}
	projected, err := core.ProjectRunEvents(run, run.EventSequence, happened...)
	p.Must(err)
	got, err := p.storage().ClaimRunLease(context.Background(), &lane.ClaimCommand{
		At: at, ByWakeup: true, Slot: queue.Bounded(), Transition: lane.Transition{
			ExpectedSequence: run.EventSequence, Events: happened, Projected: projected, Queue: queue,
		},
	})
	p.Must(err)
	if got.Outcome != lane.Acquired {
		p.TB.Fatalf("the claim was %s", got.Outcome)
	}
}

// hold claims the wakeup of a new run, as a publisher.
func (p *Process) hold(id runlane.RunID, length time.Duration) lane.OutboxMessage {
	p.TB.Helper()
	seen, err := p.storage().InspectRun(context.Background(), &lane.InspectQuery{RunKey: p.key(id)})
	p.Must(err)
	at := runlane.UTCMillis(p.Now())
	rows, err := p.storage().ClaimOutboxMessages(context.Background(), &lane.ClaimOutboxCommand{
		Environment: p.Runtime.Environment(), IDs: []string{seen.Delivery.ID}, At: at, ClaimUntil: at.Add(length), Limit: 1,
	})
	p.Must(err)
	if len(rows) != 1 {
		p.TB.Fatalf("%d rows were claimed", len(rows))
	}
	return rows[0]
}

// giveUp makes a run one whose wakeup was given up.
func (p *Process) giveUp(id runlane.RunID) {
	p.TB.Helper()
	row := p.hold(id, time.Second)
	p.Must(p.storage().MarkOutboxMessagesDeadLettered(context.Background(), &lane.MarkDeadLetteredCommand{
		Environment: p.Runtime.Environment(), At: runlane.UTCMillis(p.Now()), Messages: []lane.OutboxFailure{{
			OutboxRef: row.OutboxRef, Attempts: 10, Failure: runlane.NewFailure(runlane.ErrTransportPublishFailed, "refused", nil),
		}},
	}))
}
