package crash

import (
	"bytes"
	"context"
	"errors"
	"os"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/memlane"
)

// importing moves an environment of the embedded lane, which [export] leaves in a file.
func importing() Scenario {
	s := operating("import", export, func(ctx context.Context, p *Process) error {
		text, err := os.ReadFile(p.Arguments["file"])
		if err != nil {
			return err
		}
		_, err = p.Runtime.Import(ctx, bytes.NewReader(text))
		return err
	}, succeeded(8))
	s.Repeat = func(p *Process) {
		p.Must(s.Act(context.Background(), p))
		p.Tick() // sends what an import leaves to it
		p.Deliver()
		p.Advance(2 * time.Minute) // who waits for what it called looks each minute
		p.Tick()
		p.Deliver()
		p.Trigger(Play.With(doing("")), ownsOrder()) // the key has its owner: this makes no run
	}
	return s
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

// export exports an environment of the embedded lane: a run that ended and whose key was reset, one that ended and has
// its key, one that waits and remembers a step, one that waits for what it called, and two flows that no one was told the
// ends of; with a schedule and the catalog.
func export(p *Process) {
	p.TB.Helper()
	ctx, environment := context.Background(), p.Runtime.Environment()
	storage := &deaf{Storage: memlane.NewStorage(nil)}
	l, err := lane.New(storage, memlane.NewTransport(nil), &lane.Options{Environment: environment})
	p.Must(err)
	o := p.options(&Scenario{})
	o.Schedules = []runlane.Schedule{{ID: "yearly", When: runlane.Every(365 * 24 * time.Hour), Call: Play.With(doing(""))}}
	rt, err := core.Open(ctx, l, o)
	p.Must(err)
	defer func() { p.Must(rt.Close(ctx)) }()
	trigger := func(call runlane.Call, options *runlane.TriggerOptions) *runlane.Run {
		p.TB.Helper()
		result, err := rt.Trigger(ctx, call, options)
		p.Must(err)
		return result.Run
	}
	drain := func(queues ...runlane.QueueName) {
		p.TB.Helper()
		p.Must(rt.Work(ctx, &core.WorkOptions{Drain: true, NoTick: true, Queues: queues}))
	}
	_, err = rt.Tick(ctx, nil)
	p.Must(err)
	plain := Play.With(doing(""))
	trigger(plain, ownsOrder())
	drain()
	p.Must(storage.ResetIdempotencyKey(ctx, lane.OwnerKey{Environment: environment, TaskID: "play", Key: "order"}))
	trigger(plain, ownsOrder())
	drain()

	f, over := runlane.NewFlow("release"), runlane.NewFlow("over")
	build := f.Add("build", plain, nil)
	f.Add("deploy", plain, &runlane.NodeOptions{After: []runlane.Node{build}})
	over.Add("all", plain, nil)
	for _, flow := range []*runlane.Flow{f, over} {
		_, err = rt.StartFlow(ctx, flow, nil)
		p.Must(err)
	}
	storage.on = true
	drain()
	storage.on = false
	trigger(Lined.With(doing(doCallOne)), nil)
	drain(Narrow.Name)
	run := trigger(plain, nil)
	_, err = storage.KeepRecord(ctx, &lane.KeepCommand{
		RunKey:    p.key(run.ID),
		CreatedAt: run.CreatedAt,
		Record: lane.StepRecord{
			Name: "charge", Kind: runlane.StepKindStep, Attempt: 1, At: run.CreatedAt, Result: []byte(`1`),
		},
	})
	p.Must(err)
	p.Arguments["file"] = p.Ledger + ".ndjson"
	file, err := os.Create(p.Arguments["file"])
	p.Must(err)
	_, err = rt.Export(ctx, file, nil)
	p.Must(errors.Join(err, file.Close()))
}
