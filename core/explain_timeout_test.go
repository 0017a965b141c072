package core_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/memlane"
)

// functionQueues is a transport whose queues are made for functions of a minute.
type functionQueues struct{ lane.Transport }

func (q functionQueues) Unwrap() lane.Transport { return q.Transport }

func (functionQueues) InvocationTime(context.Context, runlane.QueueName) (time.Duration, error) {
	return time.Minute, nil
}

func TestExplain_TimeoutBeyondTheQueuesFunctions_IsSaidWithBothNumbers(t *testing.T) {
	t.Parallel()
	for timeout, says := range map[time.Duration]bool{0: false, 56 * time.Second: false, 2 * time.Minute: true} {
		l := newLane(t, memlane.NewStorage(nil), functionQueues{memlane.NewTransport(nil)})
		task := runlane.NewTask("report", &runlane.TaskOptions[payload]{Timeout: timeout})
		rt, err := core.Open(t.Context(), l, &core.Options{Handlers: []runlane.Handler{
			task.Handle(func(context.Context, *runlane.Attempt, payload) error { return nil }),
		}})
		if err != nil {
			t.Fatal(err)
		}
		triggered, err := rt.Trigger(t.Context(), task.With(payload{}), nil)
		if err != nil {
			t.Fatal(err)
		}
		e, err := rt.Runs().Explain(t.Context(), triggered.Run.ID)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"a timeout of 2m", "run for 1m", "56s for a handler"} {
			if strings.Contains(e.Next, want) != says {
				t.Errorf("with %s it says %q", timeout, e.Next)
			}
		}
		if err := rt.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}
