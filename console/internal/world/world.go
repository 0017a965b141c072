// Package world provides data for the console's tests: runs in every state that a page shows, with hostile payloads.
package world

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
)

// Hostile is text that would change a page that does not escape it. It also has a right-to-left mark.
const Hostile = `</pre><script>document.title="owned"</script><img src=x onerror=alert(1)>"'` + "\u202etxt.exe"

// Tasks and signals of the world.
var (
	Welcome = runlane.NewTask[json.RawMessage]("mail.welcome", nil)
	Broken  = runlane.NewTask[json.RawMessage]("mail.broken", &runlane.TaskOptions[json.RawMessage]{
		Queue: runlane.Queue{Name: "slow", Concurrency: 1},
	})
	Part     = runlane.NewFunc[json.RawMessage, json.RawMessage]("report.part", nil)
	Refund   = runlane.NewTask("order.refund", &runlane.TaskOptions[json.RawMessage]{KeepLogs: true})
	Ship     = runlane.NewTask[json.RawMessage]("order.ship", nil)
	Later    = runlane.NewTask[json.RawMessage]("report.later", nil)
	Fanned   = runlane.NewTask[int]("report.fanned", nil)
	Invite   = runlane.NewTask[json.RawMessage]("mail.invite", nil)
	Approved = runlane.NewSignal[json.RawMessage]("approved")
	Packed   = runlane.NewSignal[json.RawMessage]("packed")
)

// InviteSchema has a property of each kind that forms support, and one with a hostile name.
const InviteSchema = `{"type":"object","required":["to","seats"],"properties":{
	"to":{"type":"string","title":"Address","description":"Who is invited","format":"email"},
	"seats":{"type":"integer","default":1},
	"plan":{"enum":["free","team",3]},
	"trial":{"type":"boolean"},
	"labels":{"type":"array","items":{"type":"string"}},
	"anything":true,
	"\"><script>":{"type":"string"}}}`

// World is a runtime and its runs.
type World struct {
	*core.Runtime

	Succeeded, Failed, Asking, Blocked, Delayed, Hostile runlane.RunID

	// Made by Work.
	FailedFlow, WaitingFlow runlane.FlowID
	Caller                  runlane.RunID
}

// Open creates the world on a lane.
func Open(ctx context.Context, l *lane.Lane) (*World, error) {
	w := &World{}
	var later atomic.Int64 // each reading of the clock is a millisecond later than the last
	rt, err := core.Open(ctx, l, &core.Options{
		Logger: slog.New(slog.DiscardHandler),
		World: &core.World{Now: func() time.Time {
			return time.Now().Add(time.Duration(later.Add(1)) * time.Millisecond)
		}},
		TokenKeys: [][]byte{bytes.Repeat([]byte("k"), 32)},
		Handlers:  handlers(),
		Tasks:     []core.ClientTask{{Definition: Invite.Definition(), Schema: json.RawMessage(InviteSchema)}},
		Schedules: nightly(),
	})
	if err != nil {
		return nil, err
	}
	w.Runtime = rt
	hostile, err := json.Marshal(map[string]any{
		"text":   Hostile,
		"long":   strings.Repeat("x", 100_000),
		"number": json.Number("12345678901234567890.10"),
		Hostile:  []int{1, 2},
	})
	if err != nil {
		return nil, err
	}
	for _, made := range []struct {
		id   *runlane.RunID
		call runlane.Call
	}{
		{&w.Succeeded, Welcome.With(json.RawMessage(`{"to":"ada"}`))},
		{&w.Failed, Broken.With(json.RawMessage(`{"to":"bob"}`))},
		{&w.Asking, Refund.With(json.RawMessage(`{"order":7}`))},
		{&w.Blocked, Later.With(json.RawMessage(`1`))},
		{&w.Hostile, Welcome.With(hostile)},
	} {
		result, err := rt.RunNow(ctx, made.call, nil)
		if err != nil {
			return nil, err
		}
		*made.id = result.Run.ID
	}
	inAnHour := &runlane.TriggerOptions{Delay: time.Hour}
	delayed, err := rt.Trigger(ctx, Welcome.With(json.RawMessage(`{"to":"eve"}`)), inAnHour)
	if err != nil {
		return nil, err
	}
	w.Delayed = delayed.Run.ID
	_, err = rt.Tick(ctx, nil)
	return w, err
}

func handlers() []runlane.Handler {
	return []runlane.Handler{
		Welcome.Handle(func(ctx context.Context, a *runlane.Attempt, payload json.RawMessage) error {
			if err := a.Progress(ctx, "half way"); err != nil {
				return err
			}
			return a.SetOutput(payload)
		}),
		Broken.Handle(func(context.Context, *runlane.Attempt, json.RawMessage) error {
			return runlane.Permanent(errors.New("the mail server refused it: " + Hostile))
		}),
		Refund.Handle(func(ctx context.Context, a *runlane.Attempt, _ json.RawMessage) error {
			a.Logger().Info("asks for the refund", "order", 7, "from", Hostile)
			_, err := runlane.Step(ctx, a, "looked up", func(context.Context) (int, error) { return 7, nil })
			if err != nil {
				return err
			}
			_, err = Approved.Wait(ctx, a, &runlane.WaitOptions{Prompt: "Refund 40 euros?"})
			return err
		}),
		Ship.Handle(func(ctx context.Context, a *runlane.Attempt, _ json.RawMessage) error {
			_, err := Packed.Wait(ctx, a, nil)
			return err
		}),
		Later.Handle(func(context.Context, *runlane.Attempt, json.RawMessage) error {
			return runlane.Block("raise the quota, then resume")
		}),
		Fanned.Handle(func(ctx context.Context, a *runlane.Attempt, n int) error {
			payloads := make([]json.RawMessage, n)
			for i := range payloads {
				payloads[i] = json.RawMessage("1")
			}
			_, err := runlane.CallAll(ctx, a, Part, payloads, nil)
			return err
		}),
		Part.Handle(func(context.Context, *runlane.Attempt, json.RawMessage) (json.RawMessage, error) {
			return json.RawMessage("1"), nil
		}),
	}
}

func nightly() []runlane.Schedule {
	call := Welcome.With(json.RawMessage(`{"to":"all"}`))
	return []runlane.Schedule{{ID: "nightly", When: runlane.Cron("0 2 * * *"), Call: call}}
}

// Work adds two flows, of which one fails and one waits for a person, and a run that calls others. Then it executes all
// due runs.
func (w *World) Work(ctx context.Context) error {
	w.FailedFlow, w.WaitingFlow, w.Caller = "release-42", "release-43", "run_caller"
	for _, f := range []*runlane.Flow{Release(w.FailedFlow, Broken), Release(w.WaitingFlow, Refund)} {
		if _, err := w.StartFlow(ctx, f, nil); err != nil {
			return err
		}
	}
	if _, err := w.Trigger(ctx, Fanned.With(40), &runlane.TriggerOptions{RunID: w.Caller}); err != nil {
		return err
	}
	return w.Runtime.Work(ctx, &core.WorkOptions{Drain: true})
}

// Release is a flow with a build, two tests, a deployment that waits for both, and an undo. Its outcome depends on the
// task of one test.
func Release(id runlane.FlowID, test *runlane.Task[json.RawMessage]) *runlane.Flow {
	f, payload := runlane.NewFlow(id), json.RawMessage(`1`)
	after := func(nodes ...runlane.Node) *runlane.NodeOptions { return &runlane.NodeOptions{After: nodes} }
	build := f.Add("build", Welcome.With(payload), nil)
	linux := f.Add("test/linux", Welcome.With(payload), after(build))
	darwin := f.Add("test/darwin", test.With(payload), after(build))
	deploy := f.Add("deploy to all of the machines", Welcome.With(payload), after(linux, darwin))
	f.Add("undo", Welcome.With(payload), &runlane.NodeOptions{
		After: []runlane.Node{linux, darwin, deploy}, If: runlane.IfFailed,
	})
	f.Add("tell", Welcome.With(payload), &runlane.NodeOptions{
		After: []runlane.Node{deploy}, If: runlane.Always,
	})
	return f
}
