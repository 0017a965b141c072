package runlanetest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/runlane/runlane-go"
)

// Attempt is an attempt for calling a handler directly. It records the handler's actions. Pass its field Attempt:
//
//	a := runlanetest.NewAttempt(t, nil)
//	err := app.Welcome(t.Context(), a.Attempt, jobs.User{ID: "u_1"})
//
// It is safe for concurrent use.
type Attempt struct {
	*runlane.Attempt

	// Recorder has the runs that the handler triggered and the signals that it sent.
	Recorder *Recorder

	t              testing.TB
	allowSwallowed bool

	logs lineBuffer

	steps stepHost
	mail  mailHost

	mu      sync.Mutex
	output  json.RawMessage
	receipt json.RawMessage
	notes   []string
}

// AttemptOptions of [NewAttempt]. nil means the first attempt of a run without a task.
type AttemptOptions struct {
	// Number of the attempt, from 1. 0 means 1.
	Number int
	// Recorder for the handler's triggers and signals. nil means a new one.
	Recorder *Recorder
	// Run becomes Attempt.Run. Defaults: the ID "run_test", and status and counters of an attempt in progress.
	Run runlane.Run
	// Steps are records of earlier attempts, by name: results of steps, values of checkpoints and snapshots. A sleep in
	// it is over, with any value.
	Steps map[string]any
	// Began is the result of Attempt.Began: the task version with which the run began.
	Began int
	// Signals were sent to the run, in this order. A wait gets the first of each name. Without one it suspends, unless
	// Steps has its answer: a [runlane.WaitAnswer] under the wait's name, for example one that timed out.
	Signals []runlane.SignalValue
	// Children are the ends of called runs, by the name of the call (by default the task's ID), in the order of the
	// payloads. A call with fewer ends than payloads suspends.
	Children map[string][]End
	// Nodes are the ends of nodes of flows, by name, for [runlane.Ref.Wait].
	Nodes map[string]End
	// AllowSwallowed lets a handler return nil after one of its calls was suspended; a runtime lets it wait all the
	// same. Without it [Attempt.Execute] fails the test with the name of the call.
	AllowSwallowed bool
}

// End is the end of a run that the attempt calls, or of a node's run.
type End struct {
	// Task of a node's run. A call has its own.
	Task runlane.TaskID
	// Output is encoded as JSON. nil is none.
	Output any
	// Err is the run's failure. [runlane.ErrRunCancelled] means cancelled; nil means succeeded.
	Err error
}

// NewAttempt returns an attempt that records output, notes, logs and triggers. Its logs are also in the test's log.
func NewAttempt(t testing.TB, options *AttemptOptions) *Attempt {
	t.Helper()
	if options == nil {
		options = &AttemptOptions{}
	}
	number := max(options.Number, 1)
	run := *options.Run.Clone()
	if run.ID == "" {
		run.ID = "run_test"
	}
	if run.Environment == "" {
		run.Environment = runlane.DefaultEnvironment
	}
	if run.Status == "" {
		run.Status = runlane.StatusRunning
	}
	if run.Counters == (runlane.Counters{}) {
		run.Counters = runlane.Counters{Attempts: number, Failures: number - 1, Retries: number - 1}
	}
	a := &Attempt{Recorder: options.Recorder, t: t, allowSwallowed: options.AllowSwallowed}
	if a.Recorder == nil {
		a.Recorder = &Recorder{}
	}
	logger := newLogger(io.MultiWriter(&a.logs, newTestLog(t)), nil)
	a.Attempt = runlane.NewAttempt(run, number, runlane.AttemptHost{
		Logger:   logger,
		Reports:  &reports{a},
		Trigger:  &lineage{a},
		Steps:    &a.steps,
		Receipts: &reports{a},
		Signal:   a.Recorder,
		Waits:    &waitHost{a},
		Calls:    &callHost{a},
		Nodes:    &nodeHost{a},
	})
	a.mail = mailHost{children: options.Children, nodes: options.Nodes}
	for _, value := range options.Signals {
		if err := a.mail.send(value); err != nil {
			t.Fatalf("runlanetest: AttemptOptions.Signals, %q: %v", value.Name(), err)
		}
	}
	a.steps.number, a.steps.began = number, options.Began
	for name, v := range options.Steps {
		if err := a.steps.plant(name, v); err != nil {
			t.Fatalf("runlanetest: AttemptOptions.Steps[%q]: %v", name, err)
		}
	}
	return a
}

// Execute calls a handler like a runtime: with the payload encoded and decoded, and the attempt in its context. It
// fills in task, queue, keys and payload of [runlane.Attempt.Run]. It does not recover a panic. A handler that returns
// nil after one of its calls was suspended fails the test; it must return the error of that call.
func (a *Attempt) Execute(ctx context.Context, handler runlane.Handler, call runlane.Call) error {
	a.t.Helper()
	prepared, err := call.Prepare()
	if err != nil {
		return err
	}
	if handler.Task == nil || handler.Task.ID != call.Task.ID {
		return &runlane.Error{
			Code:    runlane.ErrValidationFailed,
			Message: fmt.Sprintf("the call is of task %q, the handler is not", call.Task.ID),
			Hint:    "pass a call of the handler's own task",
		}
	}
	run := &a.Run
	run.TaskID, run.Queue, run.Payload = call.Task.ID, call.Task.Queue.Name, prepared.Payload
	run.IdempotencyKey, run.SingletonKey = prepared.IdempotencyKey, prepared.SingletonKey
	run.ConcurrencyKey = prepared.ConcurrencyKey
	err = handler.Execute(runlane.WithAttempt(ctx, a.Attempt), a.Attempt, bytes.Clone(prepared.Payload))
	if names := a.steps.suspendedBy(); err == nil && len(names) > 0 && !a.allowSwallowed {
		a.t.Errorf("runlanetest: the handler of task %q returned no error although it was suspended by %s: return the "+
			"errors of waits, sleeps and calls as they are (AttemptOptions.AllowSwallowed)", run.TaskID,
			strings.Join(names, ", "))
	}
	return err
}

// Output returns the handler's last output, or nil. A runtime keeps it only if the attempt succeeds.
func (a *Attempt) Output() json.RawMessage {
	a.mu.Lock()
	defer a.mu.Unlock()
	return bytes.Clone(a.output)
}

// Notes returns all progress notes. (A runtime keeps only the last one.)
func (a *Attempt) Notes() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]string(nil), a.notes...)
}

// Logs returns the handler's log lines from slog.LevelInfo on, in slog's text form, without the time and the run's
// attributes.
func (a *Attempt) Logs() []string { return a.logs.lines() }

type reports struct{ *Attempt }

var _ runlane.ReportHost = (*reports)(nil)

// ReportOutput implements runlane.ReportHost.
func (a *reports) ReportOutput(b json.RawMessage) error {
	if err := tooLarge("output", b, maxStoredOutput, a.Run.ID); err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.output = b
	return nil
}

// ReportReceipt implements runlane.ReceiptHost.
func (a *reports) ReportReceipt(receipt json.RawMessage) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.receipt = receipt
}

// Receipt returns the handler's receipt as it would be stored, or nil without one.
func (a *Attempt) Receipt() *runlane.Receipt {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.receipt == nil {
		return nil
	}
	r := &runlane.Receipt{}
	if err := json.Unmarshal(a.receipt, r); err != nil {
		a.t.Errorf("runlanetest: the receipt does not decode: %v", err)
	}
	return r
}

// ReportProgress implements runlane.ReportHost, with the limits of a runtime.
func (a *reports) ReportProgress(_ context.Context, note string) error {
	if len(note) > runlane.MaxReasonBytes || !utf8.ValidString(note) {
		return &runlane.Error{
			Code:    runlane.ErrValidationFailed,
			Message: fmt.Sprintf("the note has %d bytes, or is not valid UTF-8", len(note)),
			Hint:    fmt.Sprintf("use at most %d bytes of text", runlane.MaxReasonBytes),
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.notes = append(a.notes, note)
	return nil
}

// lineage makes the attempt's run the source of triggered runs.
type lineage struct{ attempt *Attempt }

// Trigger implements runlane.Triggerer.
func (l *lineage) Trigger(
	ctx context.Context, call runlane.Call, options *runlane.TriggerOptions,
) (*runlane.TriggerResult, error) {
	return l.attempt.Recorder.trigger(ctx, call, options, &l.attempt.Run)
}
