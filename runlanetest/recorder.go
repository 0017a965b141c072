package runlanetest

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/memlane"
)

// Recorder is a runlane.Triggerer for testing code that triggers: it records calls and executes no runs. The zero value
// is ready.
//
// A real runtime in memory answers: invalid calls get the same errors, a second call with the same idempotency key
// returns the first run, a held singleton key is a conflict, delays become due times. IDs are counted: run_000001 and
// so on. Recorded runs stay active. Safe for concurrent use; set the fields first.
type Recorder struct {
	// Fail is called before every valid call. Its error goes to the caller, and no run starts. nil never fails. It has
	// one caller at a time.
	Fail func(call *Recorded) error

	// Now is the recorder's clock. nil means time.Now.
	Now func() time.Time

	mu      sync.Mutex
	rt      *core.Runtime
	calls   []Recorded
	signals []SentSignal
}

// Recorded is one call of Trigger.
type Recorded struct {
	TaskID runlane.TaskID
	// Prepared is the stored payload and the keys, from the task or the options.
	runlane.Prepared
	// Options of the caller. The zero value for nil.
	Options runlane.TriggerOptions
	// Result for the caller. The zero value in Recorder.Fail.
	Result runlane.TriggerResult
}

var _ runlane.Triggerer = (*Recorder)(nil)

// Trigger records the call and answers like core.Runtime.Trigger. A refused call is not recorded.
func (r *Recorder) Trigger(
	ctx context.Context, call runlane.Call, options *runlane.TriggerOptions,
) (*runlane.TriggerResult, error) {
	return r.trigger(ctx, call, options, nil)
}

// Calls returns the accepted calls in order.
func (r *Recorder) Calls() []Recorded {
	r.mu.Lock()
	defer r.mu.Unlock()
	calls := make([]Recorded, len(r.calls))
	for i := range r.calls {
		calls[i] = r.calls[i]
		calls[i].Result.Run = r.calls[i].Result.Run.Clone()
	}
	return calls
}

// trigger serves code that triggers (parent is nil) and attempts.
func (r *Recorder) trigger(
	ctx context.Context, call runlane.Call, options *runlane.TriggerOptions, parent *runlane.Run,
) (*runlane.TriggerResult, error) {
	prepared, err := call.Prepare()
	if err != nil {
		return nil, err
	}
	made := Recorded{TaskID: call.Task.ID, Prepared: prepared}
	if options != nil {
		made.Options = *options
	}
	made.override()

	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.open(ctx); err != nil {
		return nil, err
	}
	asked := made.Options
	asked.Deferred = true // there is no worker to wake
	if parent != nil && asked.TraceCarrier == nil {
		asked.TraceCarrier = parent.TraceCarrier
	}
	if r.Fail != nil {
		if err := r.Fail(&made); err != nil {
			return nil, err
		}
	}
	result, err := r.rt.Trigger(ctx, call, &asked)
	if err != nil {
		return nil, err
	}
	if parent != nil && result.Outcome == runlane.TriggerCreated {
		result.Run.Source.RunID = parent.ID
	}
	made.Result = *result
	made.Result.Run = result.Run.Clone()
	r.calls = append(r.calls, made)
	return result, nil
}

func (c *Recorded) override() {
	o := &c.Options
	for _, key := range []struct {
		given string
		kept  *string
	}{
		{o.ConcurrencyKey, &c.ConcurrencyKey}, {o.IdempotencyKey, &c.IdempotencyKey}, {o.SingletonKey, &c.SingletonKey},
	} {
		if key.given != "" {
			*key.kept = key.given
		}
	}
	if o.IdempotencyTTL != 0 {
		c.IdempotencyTTL = o.IdempotencyTTL
	}
}

// open makes the runtime behind the recorder. Without handlers and hooks it starts no goroutines, so it needs no Close.
func (r *Recorder) open(ctx context.Context) error {
	if r.rt != nil {
		return nil
	}
	now := r.Now
	if now == nil {
		now = time.Now
	}
	l, err := lane.New(
		tableLimits{memlane.NewStorage(&memlane.StorageOptions{Now: now})},
		memlane.NewTransport(nil),
		&lane.Options{Name: "recorder"},
	)
	if err != nil {
		return err
	}
	r.rt, err = core.Open(context.WithoutCancel(ctx), l, &core.Options{
		Logger: slog.New(slog.DiscardHandler),
		World:  counted(now),
	})
	return err
}

// Payloads decodes the payloads of a task's new runs in order. Calls that returned an existing run are omitted. A
// payload that does not decode ends the test.
func Payloads[P any](t testing.TB, r *Recorder, task *runlane.Task[P]) []P {
	t.Helper()
	var payloads []P
	for _, raw := range r.started(task.Definition().ID) {
		payload, err := task.Decode(raw)
		if err != nil {
			t.Fatalf("runlanetest: a recorded payload of task %q does not decode: %v", task.Definition().ID, err)
		}
		payloads = append(payloads, payload)
	}
	return payloads
}

// RequirePayloads ends the test unless exactly these runs of a task were started, in this order. Payloads are compared
// in their stored form, as JSON.
func RequirePayloads[P any](t testing.TB, r *Recorder, task *runlane.Task[P], want ...P) {
	t.Helper()
	id := task.Definition().ID
	wanted := make([]string, len(want))
	for i, payload := range want {
		prepared, err := task.With(payload).Prepare()
		if err != nil {
			t.Fatalf("runlanetest: the wanted payload %d of task %q cannot be triggered: %v", i+1, id, err)
		}
		wanted[i] = string(prepared.Payload)
	}
	got := make([]string, 0, len(want))
	for _, raw := range r.started(id) {
		got = append(got, string(raw))
	}
	if slices.Equal(wanted, got) {
		return
	}
	t.Fatalf(
		"runlanetest: other runs of task %q were started (-want +got)\n%s%s",
		id,
		diff(wanted, got, same),
		r.others(id),
	)
}

func (r *Recorder) started(id runlane.TaskID) []json.RawMessage {
	var payloads []json.RawMessage
	for _, call := range r.Calls() {
		if call.TaskID == id && call.Result.Outcome == runlane.TriggerCreated {
			payloads = append(payloads, call.Payload)
		}
	}
	return payloads
}

// others lists runs of other tasks: a wrong task is the usual reason for a missing run.
func (r *Recorder) others(id runlane.TaskID) string {
	text := ""
	for _, call := range r.Calls() {
		if call.TaskID != id && call.Result.Outcome == runlane.TriggerCreated {
			text += "\n    (task " + string(call.TaskID) + ": " + string(call.Payload) + ")"
		}
	}
	return text
}
