package core_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/internal/proof/scenarios"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/memlane"
)

type payload struct{}

func handle(id runlane.TaskID, options *runlane.TaskOptions[payload]) runlane.Handler {
	return runlane.NewTask(id, options).Handle(func(context.Context, *runlane.Attempt, payload) error { return nil })
}

func TestOpen_ReportsEveryFaultAtOnce(t *testing.T) {
	t.Parallel()
	transport := scenarios.NewScriptedTransport()
	transport.Bind("default", "emails")
	storage := &startedStorage{Storage: memlane.NewStorage(nil)}
	limited := limitedStorage{Storage: storage, capabilities: storage.Capabilities()}
	limited.capabilities.EnforcesQueueConcurrency = false
	l := newLane(t, limited, transport)
	noExecute := handle("no.execute", nil)
	noExecute.Execute = nil
	_, err := core.Open(t.Context(), l, &core.Options{
		Environment:  "a:b",
		MaxAbandoned: -2,
		Middleware:   []runlane.Middleware{nil},
		Handlers: []runlane.Handler{
			{}, noExecute, handle("twice", nil), handle("twice", nil), handle("bad:id", nil),
			handle("bounded", &runlane.TaskOptions[payload]{Queue: runlane.Queue{Name: "narrow", Concurrency: 1}}),
			handle("unbound", &runlane.TaskOptions[payload]{Queue: runlane.Queue{Name: "elsewhere"}}),
			handle("one", &runlane.TaskOptions[payload]{Queue: runlane.Queue{Name: "emails"}}),
		},
		Queues: []runlane.Queue{{Name: "emails", Concurrency: 5}},
	})
	if runlane.CodeOf(err) != runlane.ErrConfigurationInvalid || !errors.Is(err, runlane.ErrCapabilityUnsupported) {
		t.Fatalf("error is %v", err)
	}
	for _, part := range []string{
		"environment contains", "MaxAbandoned is -2", "Middleware[0] is nil", "Handlers[0] has no task", `"no.execute" has no function`,
		`"twice" has two handlers`, `task "bad:id"`, `"narrow" is bounded`, `no binding for queue "elsewhere"`,
		`two different queues are named "emails"`,
	} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the error does not name %q:\n%v", part, err)
		}
	}
	if storage.starts != 0 {
		t.Error("the lane was started")
	}
}

// A fault is told once, and its hint stands where every error has one. Of several, a number joins the two.
func TestOpen_TellsFaultsAndHintsOnce(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		options core.Options
		want    string
	}{
		{
			core.Options{MaxAbandoned: -2},
			"configuration_invalid: the runtime cannot open: Options.MaxAbandoned is -2 (use -1 for no bound, 0 for the default, or a bound)",
		},
		{
			core.Options{MaxAbandoned: -2, Middleware: []runlane.Middleware{nil}},
			"configuration_invalid: the runtime cannot open: 1. Options.MaxAbandoned is -2; 2. Options.Middleware[0] is nil " +
				"(1. use -1 for no bound, 0 for the default, or a bound; 2. leave it out)",
		},
	} {
		_, err := core.Open(t.Context(), memlane.New(), &c.options)
		if err == nil || err.Error() != c.want {
			t.Errorf("the error is\n%v\nwant\n%s", err, c.want)
		}
	}
}

func TestOpen_WithoutALaneOrHandlers(t *testing.T) {
	t.Parallel()
	for _, l := range []*lane.Lane{nil, {}} {
		if _, err := core.Open(t.Context(), l, nil); runlane.CodeOf(err) != runlane.ErrConfigurationInvalid {
			t.Errorf("error is %v", err)
		}
	}
	rt := openOn(t, lane.UnimplementedStorage{}, scenarios.NewScriptedTransport()) // it executes nothing and needs nothing
	if err := rt.Work(t.Context(), nil); runlane.CodeOf(err) != runlane.ErrConfigurationInvalid {
		t.Errorf("work without handlers returned %v", err)
	}
}

// startedStorage counts.
type startedStorage struct {
	lane.Storage
	starts, closes int
}

func (s *startedStorage) Unwrap() lane.Storage { return s.Storage }

func (s *startedStorage) Start(ctx context.Context) error {
	s.starts++
	return s.Storage.Start(ctx)
}

func (s *startedStorage) Close(ctx context.Context) error {
	s.closes++
	return s.Storage.Close(ctx)
}

// refusingTransport does not start.
type refusingTransport struct{ *scenarios.ScriptedTransport }

func (refusingTransport) Start(context.Context, lane.StartOptions) error {
	return &runlane.Error{Code: runlane.ErrConfigurationInvalid, Message: "no such queue"}
}

func TestOpen_LeavesNothingHalfOpen(t *testing.T) {
	t.Parallel()
	storage := &startedStorage{Storage: memlane.NewStorage(nil)}
	l := newLane(t, storage, refusingTransport{scenarios.NewScriptedTransport()})
	if _, err := core.Open(t.Context(), l, nil); runlane.CodeOf(err) != runlane.ErrConfigurationInvalid {
		t.Fatalf("error is %v", err)
	}
	if storage.starts != 1 || storage.closes != 1 {
		t.Fatalf("storage was started %d times and closed %d times", storage.starts, storage.closes)
	}
}

func TestOpen_Environment(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ lane, option, want runlane.Environment }{
		{"", "", "default"}, {"staging", "", "staging"}, {"staging", "test", "test"},
	} {
		l := memlane.New()
		l.Environment = c.lane
		rt, err := core.Open(t.Context(), l, &core.Options{Environment: c.option})
		if err != nil {
			t.Fatal(err)
		}
		if rt.Environment() != c.want || rt.Lane().Transport != l.Transport {
			t.Errorf("environment is %q, want %q", rt.Environment(), c.want)
		}
		if err := rt.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if err := rt.Close(t.Context()); err != nil {
			t.Errorf("second close: %v", err)
		}
	}
}

func TestDefinitions_AndCallJSON(t *testing.T) {
	t.Parallel()
	rt := openQuiet(t, memlane.New(), core.Options{}, handle("b", nil), handle("c", nil), handle("a", nil))
	var ids []string
	for _, d := range rt.Definitions() {
		ids = append(ids, string(d.ID))
	}
	if strings.Join(ids, "") != "abc" {
		t.Errorf("definitions are %v", ids)
	}
	call, err := rt.CallJSON("b", json.RawMessage(`{ }`))
	if err != nil {
		t.Fatal(err)
	}
	result, err := rt.Trigger(t.Context(), call, nil)
	if err != nil || result.Run.TaskID != "b" || string(result.Run.Payload) != `{ }` {
		t.Errorf("result is %+v, %v", result, err)
	}
	if _, err := rt.CallJSON("unknown", nil); runlane.CodeOf(err) != runlane.ErrTaskNotFound {
		t.Errorf("error is %v", err)
	}
	if call, err = rt.CallJSON("b", json.RawMessage(`{`)); err != nil {
		t.Fatal(err)
	}
	if _, err := rt.Trigger(t.Context(), call, nil); runlane.CodeOf(err) != runlane.ErrValidationFailed {
		t.Errorf("error is %v", err)
	}
}
