package demo

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/runlane/runlane-go"
)

// Files in the state folder, which has one subfolder for each engine.
const (
	stateFile  = "state.json"
	ledgerFile = "ledger.ndjson"
	logFile    = "demo.log"
	lockFile   = "lock"    // of the demo that runs here
	runsFile   = "runs.db" // of the lane on SQLite, unless another is named
)

// RunsFile is the path of the file of runs in a state folder: each demo begins with an empty one.
func RunsFile(folder string) string { return filepath.Join(folder, "sqlite", runsFile) }

// state is what a resumed demo has to know of the interrupted one.
type state struct {
	Environment runlane.Environment `json:"environment"`
	Seed        uint64              `json:"seed"`
	Input       string              `json:"input"` // "" means the project's own data
	InputSHA256 string              `json:"inputSha256"`
}

// holdFolder keeps other demos out of the state folder until this one ends, however it ends: they would take its files.
func (d *demo) holdFolder() error {
	f, err := os.OpenFile(filepath.Join(d.folder, lockFile), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return badState("lock of the state folder cannot be opened", err)
	}
	d.closers = append(d.closers, func() { _ = f.Close() })
	if err := lock(f); err != nil {
		return &runlane.Error{
			Code:    runlane.ErrConfigurationInvalid,
			Message: "another demo runs in " + d.folder,
			Hint:    "wait for its end, or name another folder with -state",
			Cause:   err,
		}
	}
	return nil
}

// newState begins anew: another environment, so that runs of earlier demos cannot interfere, and an empty ledger.
func newState(folder string, o *Options) (*state, error) {
	for _, name := range []string{stateFile, ledgerFile, logFile, runsFile, runsFile + "-wal", runsFile + "-shm"} {
		if err := os.Remove(filepath.Join(folder, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, badState("state of the last demo cannot be removed", err)
		}
	}
	s := &state{Seed: o.Seed, Input: o.Input}
	s.Environment = runlane.Environment(fmt.Sprintf(
		"demo-%s-%d",
		time.Now().UTC().Format("20060102T150405.000"),
		os.Getpid(),
	))
	if s.Input == "" {
		return s, nil
	}
	var err error
	if s.Input, err = filepath.Abs(o.Input); err != nil { // it may be resumed from another folder
		return nil, badState("path of the input is unknown", err)
	}
	return s, nil
}

func readState(folder string) (*state, error) {
	text, err := os.ReadFile(filepath.Join(folder, stateFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, badState("there is no interrupted demo to resume", err)
	}
	if err != nil {
		return nil, badState("state of the interrupted demo cannot be read", err)
	}
	s := &state{}
	if err := json.Unmarshal(text, s); err != nil || s.Environment == "" {
		return nil, badState("state of the interrupted demo is damaged", err)
	}
	return s, nil
}

func (s *state) write(folder string) error {
	text, err := json.MarshalIndent(s, "", "  ")
	if err == nil {
		err = os.WriteFile(filepath.Join(folder, stateFile), append(text, '\n'), 0o600)
	}
	if err != nil {
		return badState("state cannot be written", err)
	}
	return nil
}

func badState(message string, cause error) error {
	return &runlane.Error{
		Code:    runlane.ErrConfigurationInvalid,
		Message: message,
		Hint:    "start without -resume, or name another folder with -state",
		Cause:   cause,
	}
}
