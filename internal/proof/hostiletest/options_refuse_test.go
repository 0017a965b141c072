package hostiletest_test

import (
	"context"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"log/slog"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/lanetest"
	"github.com/runlane/runlane-go/memlane"
)

// rule is what holds for one field: either any value is legal, with a reason, or there are values that are refused.
type rule struct {
	legal   string
	refused []refusal
}

// refusal is one illegal value.
type refusal struct {
	what string
	code runlane.ErrorCode
	// calls make it; each of them has to refuse.
	calls func(w *world) []error
	// names is how the error names the field, when not by its name.
	names string
}

func legal(why string) rule { return rule{legal: why} }

func refuses(refused ...refusal) rule { return rule{refused: refused} }

// invalid is a refusal of the configuration, failed one of a call's input.
func invalid(what string, calls func(w *world) []error) refusal {
	return refusal{what: what, code: runlane.ErrConfigurationInvalid, calls: calls}
}

func failed(what string, calls func(w *world) []error) refusal {
	return refusal{what: what, code: runlane.ErrValidationFailed, calls: calls}
}

// as changes how the error names the field.
func (r refusal) as(names string) refusal {
	r.names = names
	return r
}

type payload struct {
	Key string `json:"key"`
}

// world is a runtime whose storage refuses every call, and counts them.
type world struct {
	t    *testing.T
	plan *lanetest.FaultPlan
	lane *lane.Lane
	rt   *core.Runtime
	task *runlane.Task[payload]
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, plan: lanetest.NewFaultPlan(t, 1, lanetest.FaultRule{Kind: lanetest.FaultBefore, Rate: 1})}
	w.task = runlane.NewTask[payload]("task", nil)
	w.lane = w.newLane()
	rt, err := core.Open(w.ctx(), w.lane, &core.Options{
		Handlers: []runlane.Handler{w.handler()}, Logger: slog.New(slog.DiscardHandler),
		Schedules: []runlane.Schedule{w.schedule()},
	})
	if err != nil {
		t.Fatal(err)
	}
	w.rt = rt
	t.Cleanup(func() { _ = rt.Close(context.Background()) })
	return w
}

func (w *world) ctx() context.Context { return w.t.Context() }

func (w *world) handler() runlane.Handler {
	return w.task.Handle(func(context.Context, *runlane.Attempt, payload) error { return nil })
}

func (w *world) schedule() runlane.Schedule {
	return runlane.Schedule{ID: "schedule", When: runlane.Cron("@daily"), Call: w.task.With(payload{})}
}

func (w *world) newLane() *lane.Lane {
	transport := memlane.NewTransport(&memlane.TransportOptions{Queues: []runlane.QueueName{"default", "bound"}})
	l, err := lane.New(lanetest.FaultyStorage(memlane.NewStorage(nil), w.plan), lanetest.FaultyTransport(transport, w.plan), nil)
	if err != nil {
		w.t.Fatal(err)
	}
	return l
}

// open opens another runtime. It must not come to start the lane.
func (w *world) open(options core.Options) []error {
	rt, err := core.Open(w.ctx(), w.newLane(), &options)
	if err == nil {
		_ = rt.Close(w.ctx())
	}
	return []error{err}
}

func errorOf[T any](_ T, err error) error { return err }

// prove runs one row: every call refuses with code, name and hint, and no request was made.
func (r refusal) prove(t *testing.T, field string) {
	t.Helper()
	w := newWorld(t)
	before := w.plan.Struck(lanetest.FaultBefore)
	name := r.names
	if name == "" {
		name = field
	}
	errs := r.calls(w)
	if len(errs) == 0 {
		t.Fatal("nothing was called")
	}
	for i, err := range errs {
		if err == nil {
			t.Errorf("call %d accepted it", i+1)
			continue
		}
		e, ok := errors.AsType[*runlane.Error](err)
		if !ok || e.Code != r.code {
			t.Errorf("call %d: the error is %v, want %s", i+1, err, r.code)
			continue
		}
		sources := naming(err, name)
		if len(sources) == 0 {
			t.Errorf("call %d: the error does not name %s: %v", i+1, name, err)
		}
		for _, source := range sources {
			if source.Hint == "" {
				t.Errorf("call %d: no hint in %v", i+1, source)
			}
		}
	}
	if n := w.plan.Struck(lanetest.FaultBefore) - before; n != 0 {
		t.Errorf("%d requests were made", n)
	}
}

// naming are the errors closest to the source whose message names the field.
func naming(err error, name string) []*runlane.Error {
	var below []*runlane.Error
	switch wrapper := err.(type) { //nolint:errorlint // the tree is walked by hand
	case interface{ Unwrap() []error }:
		for _, inner := range wrapper.Unwrap() {
			below = append(below, naming(inner, name)...)
		}
	case interface{ Unwrap() error }:
		if inner := wrapper.Unwrap(); inner != nil {
			below = naming(inner, name)
		}
	}
	if e, ok := err.(*runlane.Error); ok && len(below) == 0 && strings.Contains(letters(e.Message), letters(name)) { //nolint:errorlint // as above
		return []*runlane.Error{e}
	}
	return below
}

// letters drops what differs between a field's name and the words for it.
func letters(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, text)
}

// fields are the exported fields of the option structs, also promoted ones.
func fields() []string {
	var names []string
	for prefix, of := range optionStructs() {
		for _, field := range reflect.VisibleFields(of) {
			if field.IsExported() && !field.Anonymous {
				names = append(names, prefix+"."+field.Name)
			}
		}
	}
	return names
}

func TestOptions_EveryFieldHasARule(t *testing.T) {
	t.Parallel()
	known, all := rules(), fields()
	for _, field := range all {
		r, ok := known[field]
		switch {
		case !ok:
			t.Errorf("%s has no rule: say what is refused, or why any value is legal", field)
		case (r.legal == "") == (len(r.refused) == 0):
			t.Errorf("%s needs either refusals or a reason why there are none", field)
		}
	}
	for field := range known {
		if !slices.Contains(all, field) {
			t.Errorf("there is a rule for %s, which does not exist", field)
		}
	}
	if len(all) < 100 {
		t.Errorf("only %d fields were found", len(all))
	}
}

// Whatever is called options is in the table.
func TestOptions_EveryStructIsInTheTable(t *testing.T) {
	t.Parallel()
	structs := optionStructs()
	for folder, name := range map[string]string{
		".": "runlane", "core": "core", "lane": "lane", "memlane": "memlane", "dynamostore": "dynamostore", "sqstransport": "sqstransport",
		"awslane": "awslane",
	} {
		files, err := filepath.Glob(filepath.Join("..", "..", "..", folder, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatal(folder, err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(parsed, func(node ast.Node) bool {
				spec, ok := node.(*ast.TypeSpec)
				if !ok || !spec.Name.IsExported() || !strings.HasSuffix(spec.Name.Name, "Options") {
					return true
				}
				if _, known := structs[name+"."+spec.Name.Name]; !known {
					t.Errorf("%s.%s is not in the table", name, spec.Name.Name)
				}
				return true
			})
		}
	}
}

func TestOptions_EveryIllegalValueIsRefused(t *testing.T) {
	t.Parallel()
	all := rules()
	for _, field := range slices.Sorted(maps.Keys(all)) {
		for _, r := range all[field].refused {
			t.Run(field+"/"+r.what, func(t *testing.T) {
				t.Parallel()
				r.prove(t, field[strings.LastIndex(field, ".")+1:])
			})
		}
	}
}

// The counter counts: with legal options the same calls get as far as the storage, whose refusal they return.
func TestOptions_LegalOnesReachTheStorage(t *testing.T) {
	t.Parallel()
	o := core.ChangeOptions{Actor: runlane.Actor{Type: runlane.ActorOperator, ID: "ada"}, Reason: "asked for"}
	for name, call := range map[string]func(w *world) error{
		"Trigger": func(w *world) error { return errorOf(w.rt.Trigger(w.ctx(), w.task.With(payload{}), nil)) },
		"RunNow":  func(w *world) error { return errorOf(w.rt.RunNow(w.ctx(), w.task.With(payload{}), nil)) },
		"List":    func(w *world) error { return errorOf(w.rt.Runs().List(w.ctx(), &core.ListOptions{Limit: 1})) },
		"Cancel":  func(w *world) error { return errorOf(w.rt.Runs().Cancel(w.ctx(), "run_1", &o)) },
		"CancelAll": func(w *world) error {
			return errorOf(w.rt.Runs().CancelAll(w.ctx(), &core.BulkOptions{ChangeOptions: o, AllRuns: true}))
		},
		"Requeue": func(w *world) error { return w.rt.DeadLetters().Requeue(w.ctx(), "run_1", &o) },
		"Prune":   func(w *world) error { return errorOf(w.rt.Runs().Prune(w.ctx(), &core.PruneOptions{OlderThan: 1})) },
		"Pause":   func(w *world) error { return w.rt.Schedules().Pause(w.ctx(), "schedule", &o) },
		"Tick":    func(w *world) error { return errorOf(w.rt.Tick(w.ctx(), &core.TickOptions{Limit: 1})) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			err := call(w)
			if !errors.Is(err, runlane.ErrStorageUnavailable) || w.plan.Struck(lanetest.FaultBefore) == 0 {
				t.Errorf("the error is %v after %d requests", err, w.plan.Struck(lanetest.FaultBefore))
			}
		})
	}
}
