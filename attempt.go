package runlane

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
)

// Attempt is one execution of a run's handler. The zero value works: in a unit test pass &runlane.Attempt{}.
type Attempt struct {
	Run    Run // as it was when the attempt started
	Number int // from 1

	host AttemptHost
}

// AttemptHost is the runtime's side of an Attempt. Any field may be nil.
type AttemptHost struct {
	Logger  *slog.Logger
	Reports ReportHost
	Trigger Triggerer
	Steps   StepHost
	// Receipts keeps the receipt of SetReceipt.
	Receipts ReceiptHost
	Signal   Signaler
	Waits    WaitHost
	Calls    Caller
	Nodes    NodeWaiter
}

// ReportHost stores reports of an attempt. It is for runtimes and test helpers.
type ReportHost interface {
	// ReportOutput keeps a JSON output and replaces an earlier one.
	ReportOutput(output json.RawMessage) error
	// ReportProgress keeps a note for operators.
	ReportProgress(ctx context.Context, note string) error
}

// NewAttempt is for runtimes and test helpers; applications receive attempts.
func NewAttempt(run Run, number int, host AttemptHost) *Attempt {
	return &Attempt{Run: run, Number: number, host: host}
}

type attemptKey struct{}

// WithAttempt is for runtimes: a handler's context carries its attempt.
func WithAttempt(ctx context.Context, a *Attempt) context.Context {
	return context.WithValue(ctx, attemptKey{}, a)
}

// AttemptFrom finds the attempt deep in a call stack, for log handlers and clients that add the run ID. It returns nil
// outside of an attempt.
func AttemptFrom(ctx context.Context) *Attempt {
	a, _ := ctx.Value(attemptKey{}).(*Attempt)
	return a
}

// EffectID is a key for effects outside, such as the idempotency key of a payment: equal in every attempt of this run and
// of its retries. A rerun is new work with a new one. Parts tell apart the effects of one run and follow after a slash,
// as in EffectID("charge").
func (a *Attempt) EffectID(parts ...string) string {
	return strings.Join(append([]string{a.Run.EffectID()}, parts...), "/")
}

// Logger carries run_id, task, queue and attempt. It is never nil.
func (a *Attempt) Logger() *slog.Logger {
	if a == nil || a.host.Logger == nil {
		return slog.New(slog.DiscardHandler)
	}
	return a.host.Logger
}

// SetOutput keeps a JSON result, stored with the success event and read with [Run.DecodeOutput]. json.RawMessage keeps
// its bytes. The last call wins; an attempt that does not succeed stores none. If v does not encode or the storage
// cannot hold it, the error is [ErrValidationFailed].
func (a *Attempt) SetOutput(v any) error {
	b, err := encodeOutput(v)
	if err != nil || a.host.Reports == nil {
		return err
	}
	return a.host.Reports.ReportOutput(b)
}

// encodeOutput recovers from a panic in v's own encoding.
func encodeOutput(v any) (b json.RawMessage, err error) {
	defer func() {
		if value := recover(); value != nil {
			b, err = nil, recovered(
				fmt.Sprintf("encoding an output of type %T panicked", v),
				"look at the encoding of that type",
				value,
			)
		}
	}()
	return encodePayload("output", v)
}

// Progress shows operators a note; only the last one is kept. Best effort: an error does not affect the run.
func (a *Attempt) Progress(ctx context.Context, note string) error {
	if a.host.Reports == nil {
		return nil
	}
	return a.host.Reports.ReportProgress(ctx, note)
}

// Trigger starts another run with this one as its source. Handlers run at least once, so give follow-ups an idempotency
// key.
func (a *Attempt) Trigger(ctx context.Context, call Call, options *TriggerOptions) (*TriggerResult, error) {
	if a.host.Trigger == nil {
		return nil, &Error{
			Code: ErrConfigurationInvalid, Message: "this attempt has no runtime to trigger with",
			Hint: "build the attempt with NewAttempt and a Trigger host",
		}
	}
	return a.host.Trigger.Trigger(ctx, call, options)
}

// Middleware wraps every attempt, for transactions, tracing or metrics. It may change ctx and must call next at most
// once.
type Middleware func(ctx context.Context, a *Attempt, next func(context.Context) error) error
