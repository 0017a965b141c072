package core_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/internal/proof/scenarios"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/memlane"
)

// What would silently do nothing is refused, or warned about with what to do.
func TestOpen_SilentTraps_AreSaid(t *testing.T) {
	t.Parallel()
	nothing := func(context.Context, *runlane.Attempt, int) error { return nil }
	none := func(int) string { return "" }
	for name, h := range map[string]runlane.Handler{
		"a task": runlane.NewTask[int]("t", nil).Handle(nil), "a func": runlane.NewFunc[int, int]("t", nil).Handle(nil),
	} {
		rt, err := core.Open(t.Context(), memlane.New(), &core.Options{Handlers: []runlane.Handler{h}})
		if rt != nil || !errors.Is(err, runlane.ErrConfigurationInvalid) || !strings.Contains(err.Error(), "has no function") {
			t.Errorf("%s with a nil handler: %v", name, err)
		}
	}
	var said bytes.Buffer
	tasks := []*runlane.Task[int]{
		runlane.NewTask("keyed", &runlane.TaskOptions[int]{ConcurrencyKey: none}),
		runlane.NewTask("bounded", &runlane.TaskOptions[int]{ConcurrencyKey: none, Queue: runlane.Queue{Name: "b", Concurrency: 1}}),
		runlane.NewTask("given", &runlane.TaskOptions[int]{Queue: runlane.Queue{Name: "g"}}),
		runlane.NewTask("once", &runlane.TaskOptions[int]{IdempotencyKey: none}),
		runlane.NewTask("single", &runlane.TaskOptions[int]{SingletonKey: none}),
	}
	o := &core.Options{Logger: slog.New(slog.NewTextHandler(&said, nil))}
	for _, task := range tasks {
		o.Handlers = append(o.Handlers, task.Handle(nothing))
	}
	unfair, err := lane.New(memlane.NewStorage(nil), scenarios.NewScriptedTransport(), nil)
	if err != nil {
		t.Fatal(err)
	}
	rt, err := core.Open(t.Context(), unfair, o)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		for _, task := range tasks {
			byHand := &runlane.TriggerOptions{}
			if id := task.Definition().ID; id == "given" || id == "bounded" {
				byHand.ConcurrencyKey = "tenant"
			}
			triggerWith(t, rt, task.With(1), byHand)
		}
	}
	if err := rt.Close(t.Context()); err != nil {
		t.Error(err)
	}
	for what, want := range map[string]int{
		"has no limit\" task=keyed": 1, "has no limit\" task=given queue=g": 1, "task=bounded": 0, "task=once key=\"idempotency key\"": 1, "task=single key=\"singleton key\"": 1,
	} {
		if n := strings.Count(said.String(), what); n != want {
			t.Errorf("%d warnings of %q, want %d:\n%s", n, what, want, &said)
		}
	}
}
