package dynamostore

import (
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"log/slog"
	"strconv"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/dynamostore/internal/rows"
	"github.com/runlane/runlane-go/internal/proof/scenarios"
	"github.com/runlane/runlane-go/lane"
)

// A run under every kind of marker is explained, by what the run waits for and never by where its marker lies.
func TestExplain_ARunUnderEveryKindOfMarker(t *testing.T) {
	t.Parallel()
	kinds := declaredMarkers(t)
	for kind, row := range map[rows.MarkerKind]struct {
		steps func(w *world)
		want  core.Wait
	}{
		rows.Deliverable: {func(w *world) { w.create(eager, 0, nil).ack() }, core.WaitWakeup},
		rows.Unpublished: {func(w *world) { w.create(deferred, 0, nil) }, core.WaitPublish},
		rows.DeadLetter:  {func(w *world) { w.create(eager, 0, nil).bury() }, core.WaitOperator},
		rows.Waiting:     {func(w *world) { w.create(eager, time.Hour, nil) }, core.WaitTime},
		rows.Slotless: {func(w *world) {
			w.bounded(1)
			holder := w.must(w.enter(0))
			holder.wantOutcome(holder.claimFor(time.Hour, true), lane.Acquired)
			w.run = w.must(w.enter(0)).run
		}, core.WaitSlot},
		rows.Parked: {func(w *world) { w.create(eager, 0, nil).ack().pass(61 * time.Second).inspect() }, core.WaitWakeup},
		rows.Leased: {func(w *world) { w.create(eager, 0, nil).claim(time.Hour, false) }, core.WaitLease},
		rows.Ended:  {func(w *world) { *w = *w.create(eager, 0, nil).ack().claim(time.Hour, true).call(1).ended() }, core.WaitNone},
	} {
		delete(kinds, kind)
		t.Run(string(kind), func(t *testing.T) {
			w := newWorld(t)
			row.steps(w)
			if m, _, ok := w.item().Due().Parse(); !ok || m.Kind != kind {
				t.Fatalf("the marker is %q", m.Kind)
			}
			l, err := lane.New(w.store, scenarios.NewScriptedTransport(), nil)
			if err != nil {
				t.Fatal(err)
			}
			options := core.Options{
				Environment: "test", World: &core.World{Now: func() time.Time { return w.now }}, Logger: slog.New(slog.DiscardHandler),
			}
			if w.queue.Bounded() {
				options.Queues = []runlane.Queue{w.queue}
			}
			rt, err := core.Open(t.Context(), l, &options)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = rt.Close(context.WithoutCancel(t.Context())) })
			e, err := rt.Runs().Explain(t.Context(), w.run.ID)
			if err != nil || e.Wait != row.want || e.Next == "" {
				t.Errorf("explained as %+v, %v; want %q", e, err, row.want)
			}
		})
	}
	for kind, name := range kinds {
		t.Errorf("no run is explained under the marker %q, %s", kind, name)
	}
}

// declaredMarkers are the constants of the type, with their names.
func declaredMarkers(t *testing.T) map[rows.MarkerKind]string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "internal/rows/marker.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	declared := map[rows.MarkerKind]string{}
	ast.Inspect(file, func(node ast.Node) bool {
		spec, ok := node.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			return true
		}
		kind, named := spec.Type.(*ast.Ident)
		if value, literal := spec.Values[0].(*ast.BasicLit); named && literal && kind.Name == "MarkerKind" {
			text, err := strconv.Unquote(value.Value)
			if err != nil {
				t.Fatal(err)
			}
			declared[rows.MarkerKind(text)] = spec.Names[0].Name
		}
		return true
	})
	if len(declared) == 0 {
		t.Fatal("no kind of marker was found")
	}
	return declared
}
