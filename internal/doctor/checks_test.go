package doctor

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

// forFunctions is a transport whose queues are made for functions of a minute.
type forFunctions struct{ lane.Transport }

func (f forFunctions) Unwrap() lane.Transport { return f.Transport }

func (forFunctions) InvocationTime(context.Context, runlane.QueueName) (time.Duration, error) {
	return time.Minute, nil
}

func TestTimeoutBeyondTheQueuesFunctions_IsNamedWithBothNumbers(t *testing.T) {
	t.Parallel()
	for timeout, want := range map[time.Duration]string{
		56 * time.Second: "",
		2 * time.Minute:  `task "report" has a timeout of 2m, and the functions of queue "default" have 1m, of which a handler may use 56s`,
	} {
		transport := forFunctions{memlane.NewTransport(&memlane.TransportOptions{Queues: []runlane.QueueName{"default"}})}
		l, err := lane.New(memlane.NewStorage(nil), transport, nil)
		if err != nil {
			t.Fatal(err)
		}
		task := runlane.NewTask("report", &runlane.TaskOptions[string]{Timeout: timeout})
		rt, err := core.Open(t.Context(), l, &core.Options{Handlers: []runlane.Handler{
			task.Handle(func(context.Context, *runlane.Attempt, string) error { return nil }),
		}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err = checkTimeouts(t.Context(), rt, transport); (err == nil) != (want == "") || err != nil && err.Error() != want {
			t.Errorf("with %s doctor finds %v", timeout, err)
		}
		if err := rt.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

func TestTimeoutTooLong_SaysHowAQueueMoves(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		queue   runlane.QueueName
		timeout time.Duration
		moves   string // "" where no function would do
	}{
		{"reports", 2 * time.Minute, "\"runlane functions add NAME --queues reports --timeout 300\""},
		{"reports", time.Hour, ""},
		{"default", 2 * time.Minute, ""},
	} {
		fix := longerFunction(c.queue, c.timeout)
		if strings.Contains(fix, "functions add") != (c.moves != "") || !strings.Contains(fix, c.moves) {
			t.Errorf("queue %s, %s: %s", c.queue, c.timeout, fix)
		}
	}
}

type refused [2]int

func (r refused) RefusedEvents(context.Context) (again, givenUp int, err error) {
	if r[0] < 0 {
		return 0, 0, &runlane.Error{Code: runlane.ErrTransportUnavailable}
	}
	return r[0], r[1], nil
}

func TestEventsThatABusRefused_AreCounted(t *testing.T) {
	t.Parallel()
	for counts, want := range map[refused]string{
		{0, 0}: "", {3, 0}: "the bus refused 3 events, which are sent again every 15 minutes for a day",
		{3, 2}: "2 events or batches of events could not be sent, and 3 are sent again", {-1, 0}: "transport_unavailable",
	} {
		if _, err := checkEvents(t.Context(), counts); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("with %v doctor finds %v", counts, err)
		}
	}
}
