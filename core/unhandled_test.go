package core_test

import (
	"bytes"
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
				tick(t, other) // stores its tasks
				if c.gone {
					time.Sleep(72 * time.Hour)
				}
				l := newLane(t, storage, transport)
				var text bytes.Buffer
				mail := runlane.NewTask[payload]("mail", &runlane.TaskOptions[payload]{Queue: runlane.Queue{Name: "mail"}})
				here := openQuiet(t, l, core.Options{
					Queues: []runlane.Queue{{Name: "reports"}},
					Logger: slog.New(slog.NewTextHandler(&text, nil)),
				}, mail.Handle(noop))
				stop := startWork(t, here, &core.WorkOptions{Queues: c.queues})
				time.Sleep(3 * time.Minute)
				stop()
				said := strings.ReplaceAll(text.String(), "tasks=report ", "tasks=report,")
				if n := strings.Count(said, "have no handler here"); n > 1 || (n == 1) != (c.want != "") || !strings.Contains(said, c.want) {
					t.Errorf("said %d times: %s", n, said)
				}
			})
		})
	}
}
