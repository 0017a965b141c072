package core_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/memlane"
)

type spanKey struct{}

// spans is a tracer whose carrier is the path of a span: "root/create/attempt 1/step a".
type spans struct {
	mu    sync.Mutex
	ended []string
}

func (s *spans) start(ctx context.Context, w *core.Work) (context.Context, func(core.WorkEnd)) {
	parent, _ := ctx.Value(spanKey{}).(string)
	if own := w.Carrier["span"]; own != "" && !strings.HasPrefix(parent, own) {
		parent = own
	}
	name := string(w.Kind)
	if w.Attempt > 0 {
		name += fmt.Sprint(" ", w.Attempt)
	}
	path := strings.Trim(parent+"/"+strings.Trim(name+" "+w.Name, " "), "/")
	if w.Kind == core.WorkCreate {
		w.Carrier = map[string]string{"span": path}
	}
	return context.WithValue(ctx, spanKey{}, path), func(e core.WorkEnd) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if e.Run != nil && w.Kind == core.WorkAttempt {
			path += " " + string(e.Run.Status)
		}
		if e.Err != nil {
			path += " failed"
		}
		s.ended = append(s.ended, path)
	}
}

// One trace has the caller, the trigger, its attempts, steps and children, the retry of an operator, and a flow.
func TestTracer_JoinsEverythingThatATriggerLeadsTo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		seen, log := &spans{}, &bytes.Buffer{}
		child, parent := runlane.NewTask[int]("child", nil), runlane.NewTask("parent", &runlane.TaskOptions[int]{Retry: runlane.Retry{MaxAttempts: 2}})
		rt := openQuiet(t, memlane.New(), core.Options{Tracer: seen.start, Logger: slog.New(spanHandler{slog.NewTextHandler(log, nil)})},
			child.Handle(func(_ context.Context, a *runlane.Attempt, fail int) error {
				a.Logger().With("n", 1).Info("child")
				if fail > 0 {
					return runlane.Permanent(errors.New("no"))
				}
				return nil
			}),
			parent.Handle(func(ctx context.Context, a *runlane.Attempt, _ int) error {
				if _, err := runlane.Step(ctx, a, "s", func(context.Context) (int, error) { return 1, nil }); err != nil {
					return err
				}
				a.Logger().Info("parent")
				if a.Number == 1 {
					return errors.New("again")
				}
				_, err := a.Trigger(context.Background(), child.With(1), &runlane.TriggerOptions{RunID: "run_child"})
				return err
			}),
		)
		ctx := context.WithValue(t.Context(), spanKey{}, "caller")
		if _, err := rt.Trigger(ctx, parent.With(0), nil); err != nil {
			t.Fatal(err)
		}
		flow := runlane.NewFlow("flow")
		flow.Add("one", child.With(0), nil)
		if _, err := rt.StartFlow(ctx, flow, nil); err != nil {
			t.Fatal(err)
		}
		drainAll(t, rt)
		if _, err := rt.Runs().Retry(t.Context(), "run_child", nil); err != nil {
			t.Fatal(err)
		}
		drainAll(t, rt)
		if _, err := rt.RunNow(ctx, child.With(0), nil); err != nil {
			t.Fatal(err)
		}
		slices.Sort(seen.ended)
		want := []string{
			"caller/create",
			"caller/create/attempt 1 succeeded", // of RunNow, which publishes nothing
			"caller/create",
			"caller/create/attempt 1 retrying",
			"caller/create/attempt 1/claim 1",
			"caller/create/attempt 1/publish",
			"caller/create/attempt 1/step 1 s",
			"caller/create/attempt 2 succeeded",
			"caller/create/attempt 2/claim 2",
			"caller/create/create",
			"caller/create/create/attempt 1 failed",
			"caller/create/create/attempt 1/claim 1",
			"caller/create/create/create",
			"caller/create/create/create/attempt 1 failed",
			"caller/create/create/create/attempt 1/claim 1",
			"caller/create/create/create/publish",
			"caller/create/create/publish",
			"caller/create/publish",
			"caller/flow flow",
			"caller/flow flow/create",
			"caller/flow flow/create/attempt 1 succeeded",
			"caller/flow flow/create/attempt 1/claim 1",
			"caller/flow flow/create/publish",
		}
		slices.Sort(want)
		if got := strings.Join(seen.ended, "\n"); got != strings.Join(want, "\n") {
			t.Errorf("spans:\n%s", got)
		}
		for _, want := range []string{
			`msg=parent .* span="caller/create/attempt 1"`, `msg=child .* n=1 span="caller/flow flow/create/attempt 1"`,
		} {
			if !regexp.MustCompile(want).MatchString(log.String()) {
				t.Errorf("no line %s in\n%s", want, log)
			}
		}
	})
}

// spanHandler adds the span of a line's context.
type spanHandler struct{ slog.Handler }

func (h spanHandler) Handle(ctx context.Context, r slog.Record) error {
	span, _ := ctx.Value(spanKey{}).(string)
	r.AddAttrs(slog.String("span", span))
	return h.Handler.Handle(ctx, r)
}

func (h spanHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return spanHandler{h.Handler.WithAttrs(attrs)}
}

// A client's claim, its whole attempt, the run of its call, a batch and a schedule's occurrence are told too.
func TestTracer_ClientsBatchesAndSchedules(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		seen := &spans{}
		task := runlane.NewTask[int]("task", nil)
		rt := openQuiet(t, memlane.New(), core.Options{
			Tracer: seen.start, Tasks: []core.ClientTask{{Definition: task.Definition()}},
			Schedules: []runlane.Schedule{{ID: "s", When: runlane.Every(time.Minute), Call: task.With(2)}},
		})
		ctx := context.WithValue(t.Context(), spanKey{}, "caller")
		if _, err := rt.TriggerBatch(ctx, []core.BatchItem{{Call: task.With(1)}}); err != nil {
			t.Fatal(err)
		}
		claim, err := rt.Claim(t.Context(), &core.ClaimOptions{Wait: runlane.NoWait})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := claim.Trigger(t.Context(), task.With(3), &runlane.TriggerOptions{Deferred: true}); err != nil {
			t.Fatal(err)
		}
		if err := claim.Complete(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			tick(t, rt)
			time.Sleep(time.Minute)
		}
		got := strings.Join(slices.Compact(slices.Sorted(slices.Values(seen.ended))), "\n")
		for _, want := range []string{
			"caller/create", "caller/create/publish", "caller/create/claim 1", "caller/create/attempt 1 succeeded", "caller/create/create", "create",
		} {
			if !slices.Contains(seen.ended, want) {
				t.Errorf("no %q in\n%s", want, got)
			}
		}
	})
}

func drainAll(t *testing.T, rt *core.Runtime) {
	t.Helper()
	if err := rt.Work(t.Context(), &core.WorkOptions{Drain: true}); err != nil {
		t.Fatal(err)
	}
}

// A tracer that panics, forgets the context or makes too large a carrier costs no run.
func TestTracer_ThatIsBroken_CostsNoRun(t *testing.T) {
	t.Parallel()
	for name, tracer := range map[string]core.Tracer{
		"panics":         func(context.Context, *core.Work) (context.Context, func(core.WorkEnd)) { panic("no") },
		"has no context": func(context.Context, *core.Work) (context.Context, func(core.WorkEnd)) { return nil, nil }, //nolint:nilnil // broken
		"panics at the end": func(ctx context.Context, w *core.Work) (context.Context, func(core.WorkEnd)) {
			w.Carrier = map[string]string{"big": strings.Repeat("x", runlane.MaxMetaBytes)}
			return ctx, func(core.WorkEnd) { panic("no") }
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				task := runlane.NewTask[int]("task", nil)
				rt := openQuiet(t, memlane.New(), core.Options{Tracer: tracer},
					task.Handle(func(context.Context, *runlane.Attempt, int) error { return nil }))
				given := map[string]string{"span": "given"}
				id := triggerWith(t, rt, task.With(1), &runlane.TriggerOptions{TraceCarrier: given}).ID
				drainAll(t, rt)
				run, err := rt.Runs().Get(t.Context(), id)
				if err != nil || run.Status != runlane.StatusSucceeded || len(run.TraceCarrier) > 1 || len(run.TraceCarrier["big"]) > 0 {
					t.Errorf("%+v, %v", run, err)
				}
			})
		})
	}
}
