package crashtest

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/internal/proof/waiting"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/memlane"
)

// imported are the runs of the environment that the import scenario moves.
const imported = 8

// importScenario moves an environment of the embedded lane: a run that ended and whose key was reset, one that ended and has its key,
// one that waits, one that waits for what it called, and two flows that no one was told the ends of; with a schedule and the catalog. The lane on
// SQLite has the same scenario on a file (sqlitelane/crash_import_test.go).
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
		w.advance(2 * time.Minute) // who waits for what it called looks each minute
		w.tick()
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

// deaf is a storage whose flows cannot be read for a while: no end is told.
type deaf struct {
	*memlane.Storage

	on bool
}

func (d *deaf) GetFlow(ctx context.Context, q *lane.FlowRead) (*lane.FlowRecord, error) {
	if d.on {
		return nil, errors.New("deaf")
	}
	return d.Storage.GetFlow(ctx, q)
}

func exportFirst(w *world) {
	w.t.Helper()
	options := (&program{ledger: w.ledger, mark: func(string) {}}).options()
	options.World = &core.World{Now: w.now}
	options.Schedules = []runlane.Schedule{{ID: "yearly", When: runlane.Every(365 * 24 * time.Hour), Call: play.With(act{Name: "a"})}}
	storage := &deaf{Storage: memlane.NewStorage(nil)}
	l, err := lane.New(storage, memlane.NewTransport(nil), &lane.Options{Environment: w.environment})
	w.must(err)
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
	f := runlane.NewFlow("release")
	build := f.Add("build", play.With(act{Name: "a"}), nil)
	f.Add("deploy", play.With(act{Name: "a"}), &runlane.NodeOptions{After: []runlane.Node{build}})
	over := runlane.NewFlow("over")
	over.Add("all", play.With(act{Name: "a"}), nil)
	for _, flow := range []*runlane.Flow{f, over} {
		_, err = rt.StartFlow(w.t.Context(), flow, nil)
		w.must(err)
	}
	storage.on = true
	w.must(rt.Work(w.t.Context(), &core.WorkOptions{Drain: true, NoTick: true}))
	storage.on = false
	_, err = rt.Trigger(w.t.Context(), lined.With(act{Name: "a", Do: waiting.Single}), nil)
	w.must(err)
	w.must(rt.Work(w.t.Context(), &core.WorkOptions{Drain: true, NoTick: true, Queues: []runlane.QueueName{lined.Definition().Queue.Name}}))
	waiting, err := rt.Trigger(w.t.Context(), play.With(act{Name: "a"}), nil)
	w.must(err)
	_, err = l.Storage.KeepRecord(w.t.Context(), &lane.KeepCommand{
		RunKey:    lane.RunKey{Environment: w.environment, RunID: waiting.Run.ID},
		CreatedAt: waiting.Run.CreatedAt,
		Record: lane.StepRecord{
			Name: "charge", Kind: runlane.StepKindStep, Attempt: 1, At: waiting.Run.CreatedAt, Result: []byte(`1`),
		},
	})
	w.must(err)
	var file bytes.Buffer
	_, err = rt.Export(w.t.Context(), &file, nil)
	w.must(err)
	w.arguments["file"] = filepath.Join(w.t.TempDir(), "export.ndjson")
	w.must(os.WriteFile(w.arguments["file"], file.Bytes(), 0o600))
}
