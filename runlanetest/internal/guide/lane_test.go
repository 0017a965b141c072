package guide

import (
	"context"
	"log/slog"
	"testing"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/awslane"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/internal/proof/awstest"
	"github.com/runlane/runlane-go/runlanetest"
)

// open is what docs/testing.md leaves to the reader.
func open(t *testing.T) *core.Runtime {
	t.Helper()
	l, err := awslane.New(awstest.Config(t), awslane.Options{
		Table:  awstest.Table(t, awstest.LocalStackDynamoDB(t)),
		Queues: map[runlane.QueueName]string{"default": awstest.Queue(t, awstest.SQS(t), false).URL},
		Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	rt, err := core.Open(t.Context(), l, &core.Options{Handlers: []runlane.Handler{MakeReport.Handle(new(App).MakeReport)}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := rt.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return rt
}

func TestOnALane(t *testing.T) {
	rt := open(t) // as your program does, for example with awslane.FromEnv; closed with the test
	result, err := rt.Trigger(t.Context(), MakeReport.With("2026-01"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := rt.Work(t.Context(), &core.WorkOptions{Drain: true}); err != nil {
		t.Fatal(err)
	}
	run := runlanetest.HistoryOf(t, rt, result.Run.ID)
	runlanetest.RequireTransitions(t, run, "triggered", "attempt 1 started", "attempt 1 succeeded")
}
