package hostiletest

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/internal/proof/scenarios/patience"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/memlane"
)

// Program is a runtime with the handlers of the table, a polite one, and everything else that an application may put
// in.
type Program struct {
	*core.Runtime
	t      *testing.T
	table  []Handler
	tasks  []*runlane.Task[int]
	Polite *runlane.Task[int]
}

// OpenProgram opens one over a storage. It is closed with the test.
func OpenProgram(t *testing.T, storage lane.Storage, options *core.Options) *Program {
	t.Helper()
	h := &Program{t: t, table: Handlers(), Polite: runlane.NewTask[int]("polite", nil)}
	l, err := lane.New(storage, memlane.NewTransport(nil), nil)
	if err != nil {
		t.Fatal(err)
	}
	options.Handlers = []runlane.Handler{
		h.Polite.Handle(func(context.Context, *runlane.Attempt, int) error { return nil }),
	}
	for i, one := range h.table {
		task := runlane.NewTask(runlane.TaskID(fmt.Sprintf("hostile.%d", i)), &runlane.TaskOptions[int]{
			ErrorMessages: true, Timeout: one.Timeout, Retry: one.Retry,
		})
		h.tasks = append(h.tasks, task)
		handler := func(ctx context.Context, a *runlane.Attempt, _ int) error { return one.Execute(ctx, a) }
		options.Handlers = append(options.Handlers, task.Handle(handler))
	}
	if h.Runtime, err = core.Open(t.Context(), l, options); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close(context.Background()) })
	return h
}

// ended waits for the end of a run.
func (h *Program) ended(id runlane.RunID) *runlane.Run {
	h.t.Helper()
	for end := time.Now().Add(patience.Limit); ; runtime.Gosched() {
		run, err := h.Runs().Get(h.t.Context(), id)
		if err != nil {
			h.t.Fatal(err)
		}
		if run.Status.Terminal() {
			return run
		}
		if time.Now().After(end) {
			h.t.Fatalf("%s does not end: it is %s", run.TaskID, run.Status)
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-h.t.Context().Done():
		}
	}
}

func (h *Program) trigger(task *runlane.Task[int]) runlane.RunID {
	h.t.Helper()
	result, err := h.Trigger(h.t.Context(), task.With(1), nil)
	if err != nil {
		h.t.Fatal(err)
	}
	return result.Run.ID
}

// Attack executes each handler of the table beside a polite one: each ends its own run as the table says, and nothing
// else.
func (h *Program) Attack() {
	t := h.t
	ctx, stop := context.WithCancel(t.Context())
	worked := make(chan error, 1)
	go func() { worked <- h.Work(ctx, &core.WorkOptions{Concurrency: 8, Grace: time.Millisecond}) }()
	ids := make([]runlane.RunID, len(h.table))
	for i := range h.table {
		ids[i] = h.trigger(h.tasks[i])
	}
	for i, one := range h.table {
		run := h.ended(ids[i])
		if run.Status != one.Status || run.Failure.Code != one.Code ||
			!strings.HasPrefix(run.Failure.Message, one.Message) {
			t.Errorf(
				"%s: the run is %s, %q %q; want %s, %q %q...",
				one.Name,
				run.Status,
				run.Failure.Code,
				run.Failure.Message,
				one.Status,
				one.Code,
				one.Message,
			)
		}
	}
	if run := h.ended(h.trigger(h.Polite)); run.Status != runlane.StatusSucceeded {
		t.Errorf("the polite run is %s: %+v", run.Status, run.Failure)
	}
	stop()
	if err := <-worked; err != nil {
		t.Error(err)
	}
}
