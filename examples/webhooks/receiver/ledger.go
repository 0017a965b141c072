package receiver

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/runlane/runlane-go"
)

// Entry is one line of the ledger: a request and its outcome.
type Entry struct {
	At      time.Time `json:"at"`
	ID      string    `json:"id"`      // of the delivery
	Request int       `json:"request"` // the delivery's n-th, from 1
	SHA256  string    `json:"sha256"`  // of the body
	Verdict Verdict   `json:"verdict"`
	Late    bool      `json:"late,omitempty"`
}

// ledger is a file of one JSON object a line that only grows. Each entry is one write, so it is whole even when the
// process is killed; it is not synced, so a machine that loses power may lose entries.
type ledger struct{ file *os.File }

// openLedger hands every entry that is there already to replay. What stands behind the last newline was never answered:
// it is cut off. Any other damage is [runlane.ErrConfigurationInvalid].
func openLedger(path string, replay func(Entry)) (*ledger, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, badLedger("ledger cannot be opened", err)
	}
	if err := replayLedger(file, replay); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &ledger{file}, nil
}

func replayLedger(file *os.File, replay func(Entry)) error {
	input, whole := bufio.NewReader(file), int64(0)
	for number := 1; ; number++ {
		line, err := input.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			if err := file.Truncate(whole); err != nil {
				return badLedger("ledger cannot be repaired", err)
			}
			return nil
		}
		if err != nil {
			return badLedger("ledger cannot be read", err)
		}
		var e Entry
		if err := json.Unmarshal(line, &e); err != nil {
			return badLedger(fmt.Sprintf("ledger is damaged in line %d", number), err)
		}
		whole += int64(len(line))
		replay(e)
	}
}

func (l *ledger) append(e Entry) error {
	line, err := json.Marshal(e)
	if err != nil {
		return badLedger("ledger entry does not encode", err)
	}
	if _, err := l.file.Write(append(line, '\n')); err != nil {
		return badLedger("ledger cannot be written", err)
	}
	return nil
}

func (l *ledger) close() error { return l.file.Close() }

func badLedger(message string, cause error) error {
	return &runlane.Error{
		Code:    runlane.ErrConfigurationInvalid,
		Message: message,
		Hint:    "name a file that can be written, or remove it to start anew",
		Cause:   cause,
	}
}
