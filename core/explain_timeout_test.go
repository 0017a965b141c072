package core_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
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
		task := runlane.NewTask("report", &runlane.TaskOptions[payload]{Timeout: timeout})
		rt := openOn(t, memlane.NewStorage(nil), functionQueues{memlane.NewTransport(nil)}, task.Handle(noop))
		triggered := trigger(t, rt, task.With(payload{}))
		e, err := rt.Runs().Explain(t.Context(), triggered.ID)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"a timeout of 2m", "run for 1m", "56s for a handler"} {
			if strings.Contains(e.Next, want) != says {
				t.Errorf("with %s it says %q", timeout, e.Next)
			}
		}
	}
}
