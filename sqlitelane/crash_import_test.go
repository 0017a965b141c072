package sqlitelane_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/internal/proof/waiting"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/memlane"
)

// imported are the runs of the environment that the import scenario moves.
const imported = 8

// moving imports an environment of the embedded lane into the file: what exportTo leaves.
func moving() map[string]crashScenario {
	return map[string]crashScenario{"import": {
		prepare: func(s *site) {
			s.Arguments["file"] = s.Path + ".ndjson"
			exportTo(s, s.Arguments["file"])
		},
		act: importFrom,
		repeat: func(s *site) {
			s.must(importFrom(context.Background(), s))
			s.tick() // sends what an import leaves to it
			s.deliver()
			s.advance(2 * time.Minute) // who waits for what it called looks each minute
			s.tick()
			s.deliver()
			s.trigger(play.With(act{}), ownsOrder()) // the key has its owner: this makes no run
		},
		judge: ends(runlane.StatusSucceeded, imported),
	}}
}

func importFrom(ctx context.Context, s *site) error {
	text, err := os.ReadFile(s.Arguments["file"])
	if err != nil {
		return err
	}
	_, err = s.rt.Import(ctx, bytes.NewReader(text))
	return err
}

func ownsOrder() *runlane.TriggerOptions { return &runlane.TriggerOptions{IdempotencyKey: "order"} }

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

// exportTo exports an environment of the embedded lane: a run that ended and whose key was reset, one that ended and has
// its key, one that waits and remembers a step, one that waits for what it called, and two flows that no one was told
// the ends of; with a schedule and the catalog.
func exportTo(s *site, path string) {
	s.t.Helper()
	ctx := context.Background()
	storage := &deaf{Storage: memlane.NewStorage(nil)}
	l, err := lane.New(storage, memlane.NewTransport(nil), nil)
	s.must(err)
	o := &core.Options{Handlers: s.handlers()}
	waiting.Prepare(o)
	o.Logger, o.World = slog.New(slog.DiscardHandler), &core.World{Now: s.now}
	o.Schedules = []runlane.Schedule{{ID: "yearly", When: runlane.Every(365 * 24 * time.Hour), Call: play.With(act{})}}
	rt, err := core.Open(ctx, l, o)
	s.must(err)
	defer func() { s.must(rt.Close(ctx)) }()
	trigger := func(call runlane.Call, options *runlane.TriggerOptions) *runlane.Run {
		s.t.Helper()
		result, err := rt.Trigger(ctx, call, options)
		s.must(err)
		return result.Run
	}
	drain := func(queues ...runlane.QueueName) {
		s.t.Helper()
		s.must(rt.Work(ctx, &core.WorkOptions{Drain: true, NoTick: true, Queues: queues}))
	}
	environment := runlane.DefaultEnvironment
	_, err = rt.Tick(ctx, nil)
	s.must(err)
	trigger(play.With(act{}), ownsOrder())
	drain(unordered...)
	s.must(storage.ResetIdempotencyKey(ctx, lane.OwnerKey{Environment: environment, TaskID: "play", Key: "order"}))
	trigger(play.With(act{}), ownsOrder())
	drain(unordered...)

	f, over := runlane.NewFlow("release"), runlane.NewFlow("over")
	build := f.Add("build", play.With(act{}), nil)
	f.Add("deploy", play.With(act{}), &runlane.NodeOptions{After: []runlane.Node{build}})
	over.Add("all", play.With(act{}), nil)
	for _, flow := range []*runlane.Flow{f, over} {
		_, err = rt.StartFlow(ctx, flow, nil)
		s.must(err)
	}
	storage.on = true
	drain(unordered...)
	storage.on = false
	trigger(lined.With(act{Do: waiting.Single}), nil)
	drain(narrow.Name)
	run := trigger(play.With(act{}), nil)
	_, err = storage.KeepRecord(ctx, &lane.KeepCommand{
		RunKey:    lane.RunKey{Environment: environment, RunID: run.ID},
		CreatedAt: run.CreatedAt,
		Record: lane.StepRecord{
			Name:    "charge",
			Kind:    runlane.StepKindStep,
			Attempt: 1,
			At:      run.CreatedAt,
			Result:  []byte(`1`),
		},
	})
	s.must(err)
	var text bytes.Buffer
	_, err = rt.Export(ctx, &text, nil)
	s.must(err)
	s.must(os.WriteFile(path, text.Bytes(), 0o600))
}
