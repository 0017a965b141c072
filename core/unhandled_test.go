package core_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/memlane"
)

// A worker reads a queue that carries tasks of another program: it says at its start which handlers it lacks.
func TestWork_TasksWithoutAHandlerHere_AreNamedAtTheStart(t *testing.T) {
	t.Parallel()
	shared := func() lane.Transport { return newOneBinding() }
	separate := func() lane.Transport { return memlane.NewTransport(nil) }
	for name, c := range map[string]struct {
		transport func() lane.Transport
		queues    []runlane.QueueName // of the worker
		gone      bool
		want      string
	}{
		"shared":     {transport: shared, want: "tasks=report,"},
		"of another": {transport: separate, queues: []runlane.QueueName{"mail"}},
		"asked for":  {transport: separate, queues: []runlane.QueueName{"mail", "reports"}, want: "tasks=report,"},
		"gone":       {transport: shared, gone: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				storage, transport := memlane.NewStorage(nil), c.transport()
				report := runlane.NewTask[payload]("report", &runlane.TaskOptions[payload]{Queue: runlane.Queue{Name: "reports"}})
				other := openOn(t, storage, transport, report.Handle(noop))
				if _, err := other.Tick(t.Context(), nil); err != nil { // stores its tasks
					t.Fatal(err)
				}
				if c.gone {
					time.Sleep(72 * time.Hour)
				}
				l := newLane(t, storage, transport)
				var text bytes.Buffer
				mail := runlane.NewTask[payload]("mail", &runlane.TaskOptions[payload]{Queue: runlane.Queue{Name: "mail"}})
				here, err := core.Open(t.Context(), l, &core.Options{
					Handlers: []runlane.Handler{mail.Handle(noop)},
					Queues:   []runlane.Queue{{Name: "reports"}},
					Logger:   slog.New(slog.NewTextHandler(&text, nil)),
				})
				if err != nil {
					t.Fatal(err)
				}
				ctx, stop := context.WithCancel(t.Context())
				done := make(chan error, 1)
				go func() { done <- here.Work(ctx, &core.WorkOptions{Queues: c.queues}) }() // ends with stop
				time.Sleep(3 * time.Minute)
				stop()
				if err := <-done; err != nil {
					t.Fatal(err)
				}
				if err := here.Close(context.Background()); err != nil {
					t.Fatal(err)
				}
				said := strings.ReplaceAll(text.String(), "tasks=report ", "tasks=report,")
				if n := strings.Count(said, "no handler for"); n > 1 || (n == 1) != (c.want != "") || !strings.Contains(said, c.want) {
					t.Errorf("said %d times: %s", n, said)
				}
			})
		})
	}
}
