package crashtest

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
)

// What an attempt does. But for the cancellation and what fails for good, the second attempt of a run succeeds.
const (
	succeed = ""
	fail    = "fail"
	refuse  = "refuse"  // for good
	follow  = "follow"  // triggers another run
	report  = "report"  // a progress note, and an output that stands in a separate item
	cancels = "cancel"  // asks for its own cancellation, and gives in
	ignore  = "ignore"  // its context, for ever
	asks    = "asks"    // waits for a signal
	answers = "answers" // waits for a signal that it sends itself
	large   = "large"   // waits for signals whose bodies no record holds together
	single  = "single"  // calls a run
	calls   = "calls"   // calls two runs
	calling = "calling" // calls a run that waits for a signal
	recall  = "recall"  // steps, a snapshot and checkpoints, which have to be the same in each attempt
)

// act is the payload.
type act struct {
	Name string `json:"name"`
	Do   string `json:"do,omitempty"`
	Bulk []byte `json:"bulk,omitempty"`
}

// narrow holds one run at a time.
var narrow = runlane.Queue{Name: "line", Concurrency: 1}

var (
	play  = newTask("play", runlane.DefaultQueue)
	lined = newTask("lined", narrow)
	// timed gives an attempt a second.
	timed = runlane.NewTask("timed", &runlane.TaskOptions[act]{
		Timeout: time.Second, Retry: runlane.Retry{MaxAttempts: 3, Backoff: runlane.Fixed(20 * time.Second), NoJitter: true},
	})
)

func newTask(id runlane.TaskID, queue runlane.Queue) *runlane.Task[act] {
	return runlane.NewTask(id, &runlane.TaskOptions[act]{
		Version: 1,
		Queue:   queue, Retry: runlane.Retry{MaxAttempts: 3, Backoff: runlane.Fixed(20 * time.Second), NoJitter: true},
	})
}

// program is the application, in the process that dies and in the one that takes over.
type program struct {
	dies   bool // this is the process that dies
	ledger string
	mark   func(string)
	cancel func(context.Context, runlane.RunID) error
}

func (p *program) options() *core.Options {
	return &core.Options{Handlers: []runlane.Handler{play.Handle(p.execute), lined.Handle(p.execute), timed.Handle(p.execute)}}
}

// execute has one side effect: a line in the ledger.
func (p *program) execute(ctx context.Context, a *runlane.Attempt, what act) error {
	p.mark("the handler begins")
	if what.Do == answers { // it is called twice in an attempt: its side effect is behind the wait
		if err := waits(ctx, a, true); err != nil {
			return err
		}
	}
	if err := enter(p.ledger, entry{run: a.Run.ID, attempt: a.Number}); err != nil {
		return err
	}
	if a.Number > 1 && what.Do != refuse && what.Do != follow && what.Do != cancels && what.Do != asks && what.Do != calls &&
		what.Do != single && what.Do != calling && what.Do != large {
		return nil
	}
	err := p.do(ctx, a, what)
	p.mark("the handler returns")
	return err
}

func (p *program) do(ctx context.Context, a *runlane.Attempt, what act) error {
	switch what.Do {
	case fail:
		return errors.New("as asked")
	case refuse:
		return runlane.Permanent(errors.New("as asked"))
	case follow:
		_, err := a.Trigger(ctx, play.With(act{Name: what.Name + "'s"}), &runlane.TriggerOptions{IdempotencyKey: string(a.Run.ID)})
		return err
	case report:
		for _, note := range []string{"half", "nearly all"} { // the second waits for the end of the attempt
			if err := a.Progress(ctx, note); err != nil {
				return err
			}
		}
		return a.SetOutput(noise(2000))
	case ignore:
		if p.dies {
			select {} // ends with the process
		}
	case recall:
		return recalls(ctx, a)
	case single:
		return callsOthers(ctx, a, 1, succeed)
	case calls:
		return callsOthers(ctx, a, 2, succeed)
	case calling:
		return callsOthers(ctx, a, 1, asks)
	case asks:
		return waits(ctx, a, false)
	case large:
		return hears(ctx, a)
	case cancels:
		if err := p.cancel(ctx, a.Run.ID); err != nil {
			return err
		}
		return runlane.Release(time.Second, "asked to stop")
	}
	return nil
}

// recalls is an attempt whose step has the result that the first one recorded, however the process died since. A snapshot beside it has to be of that one.
func recalls(ctx context.Context, a *runlane.Attempt) error {
	charge, err := runlane.Step(ctx, a, "charge", func(context.Context) (string, error) { return fmt.Sprint("by attempt ", a.Number), nil })
	if err != nil {
		return err
	}
	if err := a.Snapshot(ctx, "seen", charge); err != nil {
		return err
	}
	seen, err := a.Snapshots(ctx)
	if err != nil {
		return err
	}
	if len(seen) != 1 || string(seen[0].Result) != fmt.Sprintf("%q", charge) {
		return runlane.Permanent(fmt.Errorf("the step is %q, and was %+v", charge, seen))
	}
	if err := a.Sleep(ctx, "nap", time.Millisecond); err != nil {
		return err
	}
	for n := range 3 { // the first at once, the last when the attempt ends
		if err := a.Checkpoint(ctx, "rows", n); err != nil {
			return err
		}
	}
	return nil
}

// approved is what runs of these scenarios wait for.
var approved = runlane.NewSignal[string]("approved")

// waits is an attempt that waits for an answer, or gives it when it has looked in vain: its suspension finds that it came.
func waits(ctx context.Context, a *runlane.Attempt, itself bool) error {
	by, err := approved.Wait(ctx, a, &runlane.WaitOptions{Timeout: time.Hour})
	switch {
	case runlane.Suspended(err) && itself:
		return errors.Join(err, a.Signal(ctx, a.Run.ID, approved.With("ada"), &runlane.SignalOptions{ID: "1"}))
	case err == nil && by != "ada":
		return runlane.Permanent(fmt.Errorf("answered by %q", by))
	}
	return err
}

// refused is the other signal of those whose bodies are large.
var refused = runlane.NewSignal[[]byte]("refused")

// hears is an attempt that is answered by two bodies, each as large as a record may be.
func hears(ctx context.Context, a *runlane.Attempt) error {
	var yes *string
	var no *[]byte
	err := runlane.WaitAll(ctx, a, nil, approved.Into(&yes), refused.Into(&no))
	if err == nil && (*yes != largeText() || !slices.Equal(*no, noise(largeBytes))) {
		return runlane.Permanent(fmt.Errorf("answered by %d and %d bytes", len(*yes), len(*no)))
	}
	return err
}

// largeBytes are 330 KB as JSON has them.
const largeBytes = 248_000

func largeText() string {
	body := noise(largeBytes)
	slices.Reverse(body)
	return base64.StdEncoding.EncodeToString(body)
}

// noise is text that does not get smaller.
func noise(n int) []byte {
	b := make([]byte, n)
	x := uint32(1)
	for i := range b {
		x = x*1664525 + 1013904223
		b[i] = byte(x >> 24)
	}
	return b
}

// entry is one attempt that had its side effect.
type entry struct {
	run     runlane.RunID
	attempt int
}

// enter adds a line to the ledger, in one write.
func enter(ledger string, e entry) error {
	file, err := os.OpenFile(ledger, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(file, "%s %d\n", e.run, e.attempt)
	return errors.Join(err, file.Close())
}

// readLedger counts the entries. No file is an empty ledger.
func readLedger(ledger string) (map[entry]int, error) {
	text, err := os.ReadFile(ledger)
	if err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	entries := map[entry]int{}
	for l := range strings.Lines(string(text)) {
		var e entry
		if _, err := fmt.Sscanf(l, "%s %d", &e.run, &e.attempt); err != nil {
			return nil, fmt.Errorf("ledger: %q: %w", l, err)
		}
		entries[e]++
	}
	return entries, nil
}
