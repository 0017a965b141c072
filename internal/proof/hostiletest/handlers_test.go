package hostiletest_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/internal/proof/hostiletest"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/memlane"
)

// hostileLog is a log's handler that panics wherever it can.
type hostileLog struct{}

func (hostileLog) Enabled(_ context.Context, level slog.Level) bool {
	if level < slog.LevelInfo {
		panic("enabled")
	}
	return true
}
func (hostileLog) Handle(context.Context, slog.Record) error { panic("handle") }
func (hostileLog) WithAttrs([]slog.Attr) slog.Handler        { panic("attributes") }
func (hostileLog) WithGroup(string) slog.Handler             { panic("group") }

// exitingLog is a log's handler that ends the goroutine on which it is called.
type exitingLog struct{ lines *atomic.Int64 }

func (exitingLog) Enabled(context.Context, slog.Level) bool { return true }
func (l exitingLog) Handle(context.Context, slog.Record) error {
	l.lines.Add(1)
	runtime.Goexit()
	return nil
}
func (l exitingLog) WithAttrs([]slog.Attr) slog.Handler { runtime.Goexit(); return l }
func (l exitingLog) WithGroup(string) slog.Handler      { runtime.Goexit(); return l }

// hostileMetrics panic too.
type hostileMetrics struct{}

func (hostileMetrics) Count(core.Metric, int64, core.Labels)           { panic("count") }
func (hostileMetrics) Observe(core.Metric, time.Duration, core.Labels) { panic("observe") }

func TestHandlers_Memlane_EachEndsItsOwnRunAndNothingElse(t *testing.T) {
	t.Parallel()
	hostiletest.OpenProgram(t, memlane.NewStorage(nil), &core.Options{Logger: slog.New(slog.DiscardHandler)}).Attack()
}

// The same with a log, metrics, hooks and middleware that panic, or end their goroutine, whenever they are called.
func TestHandlers_AmongHostileNeighbours_EachEndsItsOwnRunAndNothingElse(t *testing.T) {
	t.Parallel()
	seen := make(chan struct{}, 1<<16)
	hostiletest.OpenProgram(t, memlane.NewStorage(nil), &core.Options{
		Logger: slog.New(hostileLog{}), Metrics: hostileMetrics{},
		Hooks: []core.Hook{
			func(core.Change) { panic("hook") },
			func(core.Change) { seen <- struct{}{}; runtime.Goexit() },
		},
		Middleware: []runlane.Middleware{func(ctx context.Context, _ *runlane.Attempt, next func(context.Context) error) error {
			return next(ctx)
		}},
	}).Attack()
	if len(seen) < 100 {
		t.Errorf("a hook that ends its goroutine saw %d changes", len(seen))
	}
}

// A log that ends the goroutine of whatever writes a line costs the line: not the attempt that writes it, nor a worker.
func TestHandlers_LogThatEndsGoroutines_CostsItsLinesAlone(t *testing.T) {
	t.Parallel()
	lines := &atomic.Int64{}
	hostiletest.OpenProgram(t, memlane.NewStorage(nil), &core.Options{Logger: slog.New(exitingLog{lines})}).Attack()
	if n := lines.Load(); n < int64(len(hostiletest.Handlers())) {
		t.Errorf("%d lines were written", n)
	}
	h := hostiletest.OpenProgram(t, memlane.NewStorage(nil), &core.Options{
		Logger: slog.New(exitingLog{lines}),
		Middleware: []runlane.Middleware{func(ctx context.Context, a *runlane.Attempt, next func(context.Context) error) error {
			a.Logger().With("key", "value").WithGroup("group").InfoContext(ctx, "a line of the attempt")
			return next(ctx)
		}},
	})
	before := lines.Load()
	result, err := h.RunNow(t.Context(), h.Polite.With(1), nil)
	if err != nil || result.Run.Status != runlane.StatusSucceeded || lines.Load() == before {
		t.Errorf("%+v, %v, %d lines", result, err, lines.Load()-before)
	}
}

// Each hostile middleware fails the runs that it wraps, by a code.
func TestHandlers_HostileMiddleware_FailsItsRun(t *testing.T) {
	t.Parallel()
	type step = func(context.Context) error
	for name, wrap := range map[string]func(ctx context.Context, next step) error{
		"panics before": func(context.Context, step) error { panic("before") },
		"panics behind": func(ctx context.Context, next step) error { defer panic("behind"); return next(ctx) },
		"exits":         func(context.Context, step) error { runtime.Goexit(); return nil },
		"returns a nil": func(context.Context, step) error { return (*runlane.Error)(nil) },
		"calls twice":   func(ctx context.Context, next step) error { return errors.Join(next(ctx), next(ctx)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := hostiletest.OpenProgram(t, memlane.NewStorage(nil), &core.Options{
				Logger: slog.New(slog.DiscardHandler),
				Middleware: []runlane.Middleware{func(ctx context.Context, _ *runlane.Attempt, next func(context.Context) error) error {
					return wrap(ctx, next)
				}},
			})
			result, err := h.RunNow(t.Context(), h.Polite.With(1), nil)
			if err != nil {
				t.Fatal(err)
			}
			if run := result.Run; run.Status != runlane.StatusFailed || run.Failure.Code == "" {
				t.Errorf("the run is %s %+v", run.Status, run.Failure)
			}
		})
	}
}

// hostileCodec panics, ends its goroutine, or returns what panics, for payloads and outputs that say so.
type hostileCodec struct{}

func attack(plain []byte, stage string) error {
	switch string(plain) {
	case `"` + stage + ` panics"`:
		panic(stage)
	case `"` + stage + ` exits"`:
		runtime.Goexit()
	case `"` + stage + ` nil"`:
		return (*runlane.Error)(nil)
	}
	return nil
}

// Encode implements runlane.Codec.
func (hostileCodec) Encode(_ context.Context, of runlane.BodyRef, plain []byte) ([]byte, string, error) {
	if err := attack(plain, "encode"); err != nil {
		return nil, "", err
	}
	return plain, "k", nil
}

// Decode implements runlane.Codec.
func (hostileCodec) Decode(_ context.Context, _ runlane.BodyRef, _ string, stored []byte) ([]byte, error) {
	if err := attack(stored, "decode"); err != nil {
		return nil, err
	}
	return stored, nil
}

// A codec that breaks with the bytes of one run fails that call, or that run, by a code. Runs that it cannot open are handed back, and
// can still be listed.
func TestCodec_ThatBreaks_FailsItsOwnCallAndNothingElse(t *testing.T) {
	t.Parallel()
	outputs := runlane.NewTask[string]("outputs", nil)
	rt, err := core.Open(t.Context(), memlane.New(), &core.Options{
		Codec: hostileCodec{}, Logger: slog.New(slog.DiscardHandler),
		Handlers: []runlane.Handler{outputs.Handle(func(_ context.Context, a *runlane.Attempt, output string) error { return a.SetOutput(output[1:]) })},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = rt.Close(context.Background()) })
	for _, how := range []string{"panics", "exits"} {
		if _, err := rt.Trigger(t.Context(), outputs.With("encode "+how), nil); !errors.Is(err, runlane.ErrValidationFailed) {
			t.Errorf("a payload with which Encode %s: %v", how, err)
		}
		result, err := rt.RunNow(t.Context(), outputs.With("_encode "+how), nil)
		if err != nil || result.Run.Status != runlane.StatusFailed || result.Run.Failure.Code != runlane.ErrValidationFailed {
			t.Errorf("an output with which Encode %s: %+v, %v", how, result, err)
		}
		result, err = rt.Trigger(t.Context(), outputs.With("decode "+how), nil)
		if err != nil {
			t.Fatal(err)
		}
		w := lane.Wakeup{RunKey: lane.RunKey{Environment: rt.Environment(), RunID: result.Run.ID}, Queue: "default", RequestedAt: noon}
		if _, err := rt.ExecuteDelivery(t.Context(), w, nil); !errors.Is(err, runlane.ErrPayloadUnreadable) {
			t.Errorf("a payload with which Decode %s was delivered: %v", how, err)
		}
		if run, err := rt.Runs().Get(t.Context(), result.Run.ID); err != nil || run.PayloadError() == nil {
			t.Errorf("a payload with which Decode %s was read: %+v, %v", how, run, err)
		}
	}
	if _, err := rt.Trigger(t.Context(), outputs.With("encode nil"), nil); !errors.Is(err, runlane.ErrStorageUnavailable) {
		t.Errorf("an Encode that returns a nil *Error: %v", err)
	}
}

// Items of a batch whose code panics, or ends the goroutine, fail alone; every other one is made.
func TestTriggerBatch_ItemsThatBreak_FailAlone(t *testing.T) {
	t.Parallel()
	rt := open(t, memlane.New())
	task := runlane.NewTask("batch", &runlane.TaskOptions[int]{IdempotencyKey: func(n int) string {
		switch n % 5 {
		case 1:
			panic("key")
		case 2:
			runtime.Goexit()
		}
		return fmt.Sprint(n)
	}})
	marshals := runlane.NewTask[badJSON]("marshals", nil)
	var items []core.BatchItem
	for n := range 100 {
		call := task.With(n)
		if n%5 == 3 {
			call = marshals.With(badJSON{})
		}
		items = append(items, core.BatchItem{Call: call})
	}
	results, err := rt.TriggerBatch(t.Context(), items)
	if err != nil {
		t.Fatal(err)
	}
	for n, result := range results {
		switch bad := n%5 != 0 && n%5 != 4; {
		case bad && !errors.Is(result.Err, runlane.ErrValidationFailed), bad && result.Result != nil:
			t.Errorf("item %d: %+v", n, result)
		case !bad && (result.Err != nil || result.Result == nil):
			t.Errorf("item %d: %+v", n, result)
		}
	}
}

type badJSON struct{}

// MarshalJSON implements json.Marshaler.
func (badJSON) MarshalJSON() ([]byte, error) { panic("encoding") }
