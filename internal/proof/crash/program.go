package crash

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/runlane/runlane-go"
)

// What an attempt does, beside what the attempts of runs that wait do. But for what is cancelled and what fails for good,
// the second attempt of a run succeeds.
const (
	doFail   = "fail"
	doFollow = "follow" // triggers another run
	doReport = "report" // progress notes, and an output that stands apart
	doCancel = "cancel" // asks for its own cancellation, and gives in
	doIgnore = "ignore" // its context, for ever
)

// Act is the payload.
type Act struct {
	Name string `json:"name,omitempty"`
	Do   string `json:"do,omitempty"`
	Bulk []byte `json:"bulk,omitempty"`
}

// Narrow holds one run at a time.
var Narrow = runlane.Queue{Name: "line", Concurrency: 1}

// Paced starts a run every two seconds.
var Paced = runlane.Queue{Name: "paced", Rate: runlane.PerMinute(30)}

// Play, Lined, Timed and Rated are the tasks. Runs of Lined are in [Narrow], those of Rated in [Paced], and an attempt of
// Timed has a second.
var (
	Play  = newTask("play", runlane.DefaultQueue, 0)
	Lined = newTask("lined", Narrow, 0)
	Timed = newTask("timed", runlane.DefaultQueue, time.Second)
	Rated = newTask("rated", Paced, 0)
)

func newTask(id runlane.TaskID, queue runlane.Queue, timeout time.Duration) *runlane.Task[Act] {
	return runlane.NewTask(id, &runlane.TaskOptions[Act]{
		KeepLogs: true,
		Version:  1,
		Queue:    queue,
		Retry:    Retry,
		Timeout:  timeout,
	})
}

// Retry is that of all tasks.
var Retry = runlane.Retry{MaxAttempts: 3, Backoff: runlane.Fixed(20 * time.Second), NoJitter: true}

func (p *Process) handlers() []runlane.Handler {
	return []runlane.Handler{Play.Handle(p.Execute), Lined.Handle(p.Execute), Timed.Handle(p.Execute), Rated.Handle(p.Execute)}
}

// Execute is the handler of all tasks. It has one side effect: a line in the ledger.
func (p *Process) Execute(ctx context.Context, a *runlane.Attempt, what Act) error {
	p.Mark("the handler begins")
	defer p.Mark("the handler returns")
	enter := func() error { return p.Enter(Effect{a.Run.ID, a.Number}) }
	if do := attempts[what.Do]; do != nil {
		first, then := enter, func() error { return do(ctx, a) }
		if calledTwice[what.Do] { // the side effect is behind the wait
			first, then = then, first
		}
		if err := first(); err != nil {
			return err
		}
		return then()
	}
	if err := enter(); err != nil {
		return err
	}
	switch what.Do {
	case doFollow:
		_, err := a.Trigger(ctx, Play.With(Act{}), &runlane.TriggerOptions{IdempotencyKey: string(a.Run.ID)})
		return err
	case doCancel:
		if _, err := p.Runtime.Runs().Cancel(ctx, a.Run.ID, nil); err != nil {
			return err
		}
		return runlane.Release(time.Second, "asked to stop")
	}
	if a.Number > 1 {
		return nil
	}
	switch what.Do {
	case doFail:
		return errors.New("as asked")
	case doReport:
		for _, note := range []string{"half", "nearly all"} { // the second waits for the end of the attempt
			if err := a.Progress(ctx, note); err != nil {
				return err
			}
		}
		a.SetReceipt(runlane.Receipt{Target: runlane.ReceiptCommand})
		return a.SetOutput(noise(3000))
	case doIgnore:
		if p.Dies() {
			select {} // ends with the process
		}
	}
	return nil
}

// noise is bytes that do not get smaller.
func noise(n int) []byte {
	b := make([]byte, n)
	x := uint32(1)
	for i := range b {
		x = x*1664525 + 1013904223
		b[i] = byte(x >> 24)
	}
	return b
}

// Effect is an attempt that had its side effect.
type Effect struct {
	Run     runlane.RunID
	Attempt int
}

// Enter adds a line to the ledger, in one write.
func (p *Process) Enter(e Effect) error {
	p.note(e)
	file, err := os.OpenFile(p.Ledger, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(file, "%s %d\n", e.Run, e.Attempt)
	return errors.Join(err, file.Close())
}

// Effects are the side effects, in their order. No file is an empty ledger.
func (p *Process) Effects() (all []Effect) {
	p.TB.Helper()
	text, err := os.ReadFile(p.Ledger)
	if err != nil && !os.IsNotExist(err) {
		p.Must(err)
	}
	for l := range strings.Lines(string(text)) {
		var e Effect
		_, err := fmt.Sscanf(l, "%s %d", &e.Run, &e.Attempt)
		p.Must(err)
		all = append(all, e)
	}
	return all
}
