package lambdatest

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/runlane/runlane-go"
)

// The environment variables of testdata/program, beside those of every function.
const (
	// LedgerVariable names the file that attempts write a line into when they begin.
	LedgerVariable = "LEDGER"
	// ClockVariable is how far the clock of the chaos program is ahead, as a duration; it may be negative.
	ClockVariable = "CLOCK"
)

// What an attempt does. Whatever it is, but for Poison, the second attempt of a run succeeds.
const (
	Succeed = ""
	Ignore  = "ignore" // its context, for ever
	Wait    = "wait"   // until its context ends
	Die     = "die"    // with the whole process
	// dies with the whole process, each time; the first time when as many attempts have begun as Act.Party says
	Poison = "poison"
	Linger = "linger" // waits until its context ends; the second attempt takes a moment
)

// Act is the payload.
type Act struct {
	Name  string `json:"name"`
	Do    string `json:"do,omitempty"`
	Party int    `json:"party,omitempty"`
}

// Play is the task.
var Play = runlane.NewTask("play", &runlane.TaskOptions[Act]{
	Retry: runlane.Retry{MaxAttempts: 3, Backoff: runlane.Fixed(time.Second), NoJitter: true},
})

// Entry is one attempt that began.
type Entry struct {
	Name    string
	Attempt int
	Process int
}

// Write adds a line to the ledger, in one write, so that lines of different processes stay whole.
func (e Entry) Write(ledger string) error {
	file, err := os.OpenFile(ledger, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(file, "%s %d %d\n", e.Name, e.Attempt, e.Process)
	if closing := file.Close(); err == nil {
		err = closing
	}
	return err
}

// ReadLedger returns the entries in the order in which they were written. No file is an empty ledger.
func ReadLedger(ledger string) ([]Entry, error) {
	text, err := os.ReadFile(ledger)
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var entries []Entry
	for line := range strings.Lines(string(text)) {
		var e Entry
		if _, err := fmt.Sscanf(line, "%s %d %d", &e.Name, &e.Attempt, &e.Process); err != nil {
			return nil, fmt.Errorf("ledger: %q: %w", line, err)
		}
		entries = append(entries, e)
	}
	return entries, nil
}
