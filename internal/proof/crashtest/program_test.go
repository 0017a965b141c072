package crashtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/internal/proof/waiting"
)

// What an attempt does, beside what package waiting has. But for the cancellation and what fails for good, the second
// attempt of a run succeeds.
const (
	fail    = "fail"
	refuse  = waiting.Refuse
	follow  = "follow" // triggers another run
	report  = "report" // a progress note, and an output that stands in a separate item
	cancels = "cancel" // asks for its own cancellation, and gives in
	ignore  = "ignore" // its context, for ever
)

// act is the payload.
type act = waiting.Act

// narrow holds one run at a time.
var narrow = waiting.Narrow

var (
	play, lined = waiting.Play, waiting.Lined
	// timed gives an attempt a second.
	timed = runlane.NewTask("timed", &runlane.TaskOptions[act]{
		Timeout: time.Second, Retry: runlane.Retry{MaxAttempts: 3, Backoff: runlane.Fixed(20 * time.Second), NoJitter: true},
	})
)

// program is the application, in the process that dies and in the one that takes over.
type program struct {
	dies   bool // this is the process that dies
	ledger string
	mark   func(string)
	cancel func(context.Context, runlane.RunID) error
}

func (p *program) options() *core.Options {
	o := &core.Options{Handlers: []runlane.Handler{play.Handle(p.execute), lined.Handle(p.execute), timed.Handle(p.execute)}}
	waiting.Prepare(o)
	return o
}

// execute has one side effect: a line in the ledger.
func (p *program) execute(ctx context.Context, a *runlane.Attempt, what act) error {
	p.mark("the handler begins")
	enterOnce := func() error { return enter(p.ledger, entry{run: a.Run.ID, attempt: a.Number}) }
	if done, err := waiting.Execute(ctx, a, what, enterOnce); done {
		p.mark("the handler returns")
		return err
	}
	if err := enterOnce(); err != nil {
		return err
	}
	if a.Number > 1 && what.Do != follow && what.Do != cancels {
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
	case cancels:
		if err := p.cancel(ctx, a.Run.ID); err != nil {
			return err
		}
		return runlane.Release(time.Second, "asked to stop")
	}
	return nil
}

// noise is text that does not get smaller.
func noise(n int) []byte { return waiting.Noise(n) }

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
