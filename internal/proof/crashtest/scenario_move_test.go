package crashtest

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/memlane"
)

// resumeScenarios make runs due that wait for an hour.
func resumeScenarios() []scenario {
	later := &runlane.TriggerOptions{Delay: time.Hour}
	inLine := operating("resume a run of a bounded queue",
		func(w *world) { w.arguments["run"] = string(w.trigger(lined.With(act{Name: "a"}), later)) },
		nil, func(a *account) { a.all(runlane.StatusSucceeded) })
	inLine.act = func(ctx context.Context, c *child) error {
		_, err := c.rt.Runs().Resume(ctx, runlane.RunID(c.Arguments["run"]), nil)
		return err
	}
	inLine.repeat = func(w *world) {
		// A run that was resumed before its caller died waits no more: then the call is refused, and the run has ended already.
		_, err := w.rt.Runs().Resume(w.t.Context(), runlane.RunID(w.arguments["run"]), nil)
		if err != nil && runlane.CodeOf(err) != runlane.ErrValidationFailed {
			w.must(err)
		}
		w.deliver()
	}
	return []scenario{inLine, operating("resume all", func(w *world) {
		for range 2 {
			w.trigger(play.With(act{Name: "a"}), later)
		}
	}, func(ctx context.Context, rt *core.Runtime) error {
		_, err := rt.Runs().ResumeAll(ctx, everything())
		return err
	}, func(a *account) { a.all(runlane.StatusSucceeded) })}
}

// imported are the runs of the environment that the import scenario moves.
const imported = 3

// importScenario moves an environment of the embedded lane: a run that ended and whose key was reset, one that ended and has its key,
// and one that waits; with a schedule and the catalog.
func importScenario() scenario {
	s := operating("import", exportFirst, nil, func(a *account) {
		a.count(imported)
		a.all(runlane.StatusSucceeded)
	})
	s.act = func(ctx context.Context, c *child) error { return importFile(ctx, c.rt, c.Arguments["file"]) }
	s.repeat = func(w *world) {
		w.must(importFile(w.t.Context(), w.rt, w.arguments["file"]))
		_, err := w.rt.Tick(w.t.Context(), nil) // sends what an import leaves to it
		w.must(err)
		w.deliver()
	}
	return s
}

func importFile(ctx context.Context, rt *core.Runtime, path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	_, err = rt.Import(ctx, bytes.NewReader(text))
	return err
}

func exportFirst(w *world) {
	w.t.Helper()
	options := (&program{ledger: w.ledger, mark: func(string) {}}).options()
	options.World = &core.World{Now: w.now}
	options.Schedules = []runlane.Schedule{{ID: "yearly", When: runlane.Every(365 * 24 * time.Hour), Call: play.With(act{Name: "a"})}}
	l := memlane.New()
	l.Environment = w.environment
	rt, err := core.Open(w.t.Context(), l, options)
	w.must(err)
	defer func() { w.must(rt.Close(context.Background())) }()
	trigger := func(options *runlane.TriggerOptions) {
		w.t.Helper()
		_, err := rt.Trigger(w.t.Context(), play.With(act{Name: "a"}), options)
		w.must(err)
	}
	finish := func() { w.must(rt.Work(w.t.Context(), &core.WorkOptions{Drain: true})) }
	trigger(keyed())
	finish()
	_, err = rt.Tick(w.t.Context(), nil)
	w.must(err)
	w.must(l.Storage.ResetIdempotencyKey(w.t.Context(), lane.OwnerKey{Environment: w.environment, TaskID: "play", Key: "order"}))
	trigger(keyed())
	finish()
	trigger(nil)
	var file bytes.Buffer
	_, err = rt.Export(w.t.Context(), &file, nil)
	w.must(err)
	w.arguments["file"] = filepath.Join(w.t.TempDir(), "export.ndjson")
	w.must(os.WriteFile(w.arguments["file"], file.Bytes(), 0o600))
}
