package cli_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/cli"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/memlane"
)

type order struct {
	ID     string `json:"id"`
	Tenant string `json:"tenant"`
}

// orderHandlers are those of another program of the environment.
func orderHandlers() []runlane.Handler {
	shipping := runlane.Queue{Name: "shipping", Concurrency: 2, DispatchTimeout: 90 * time.Second}
	ship := runlane.NewTask("orders.ship", &runlane.TaskOptions[order]{
		ConcurrencyKey: func(o order) string { return o.Tenant }, IdempotencyKey: func(o order) string { return o.ID },
		IdempotencyTTL: 36 * time.Hour, Queue: shipping, Timeout: time.Minute,
		Retry: runlane.Retry{MaxAttempts: 5, Backoff: runlane.Exponential{Base: 10 * time.Second}},
	})
	count := runlane.NewTask("orders.count", &runlane.TaskOptions[order]{
		SingletonKey: func(order) string { return "all" }, IdempotencyTTL: runlane.WhileActive, ErrorMessages: true,
	})
	nothing := func(context.Context, *runlane.Attempt, order) error { return nil }
	return []runlane.Handler{ship.Handle(nothing), count.Handle(nothing)}
}

// A program that is told of another limit than the task's own program has would break that limit: it is refused before anything is
// written, unless the caller names the queue.
func TestTrigger_AnotherLimitHereThanInTheTasksProgram_IsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.orders = true
	mustRun(t, w, "tick")
	w.orders, w.plain = false, true
	ship := []string{"trigger", "orders.ship", "{}", "--idempotency-key", "", "--concurrency-key", "", "--id"}
	for _, c := range []struct {
		queues []runlane.Queue
		args   []string
		code   int
		stderr string
	}{
		{[]runlane.Queue{{Name: "shipping", Concurrency: 3}}, append(ship, "more"), 2, `queue "shipping" has limit 3 here and 2 in the program of task "orders.ship"`},
		{[]runlane.Queue{{Name: "shipping"}}, append(ship, "none"), 2, `queue "shipping" has limit 0 here and 2`},
		{[]runlane.Queue{{Name: "shipping", Concurrency: 3}}, append(ship, "named", "--queue", "shipping"), 0, ""},
		{[]runlane.Queue{{Name: "shipping", Concurrency: 2}}, append(ship, "equal"), 0, ""}, // which says nothing of the dispatch timeout
		{[]runlane.Queue{{Name: "other", Concurrency: 3}}, append(ship, "other"), 0, ""},
	} {
		w.queues = c.queues
		got := w.run(t.Context(), c.args...)
		if got.code != c.code || !strings.Contains(got.stderr, c.stderr) {
			t.Errorf("%v with %v: code %d, %s", c.args, c.queues, got.code, got.stderr)
		}
		id := c.args[len(ship)]
		if found := w.run(t.Context(), "runs", "get", id); (found.code == 0) != (c.code == 0) {
			t.Errorf("run %s is there: %t", id, found.code == 0)
		}
	}
}

// A catalog that cannot be read ends a batch: no line is to blame, and nothing is made twice when it is repeated.
func TestTrigger_ACatalogThatCannotBeRead_EndsTheCommand(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.plain = true
	w.wrap = func(s lane.Storage) lane.Storage { return unreadable{s.(*memlane.Storage)} }
	w.stdin = "{}\n{}\n"
	for _, args := range [][]string{{"tasks", "list"}, {"trigger", "any.task", "--id", "never"}, {"trigger", "any.task", "--batch", "-", "--batch-id", "b"}} {
		if got := w.run(t.Context(), args...); got.code != cli.ExitUnavailable || !strings.Contains(got.stderr, "no page today") {
			t.Errorf("%v: code %d, %s", args, got.code, got.stderr)
		}
	}
	if got := w.run(t.Context(), "runs", "list"); got.stdout != "" {
		t.Errorf("runs were made: %s", got.stdout)
	}
	if got := w.run(t.Context(), "trigger", "any.task", "--foreign"); got.code != 0 {
		t.Errorf("what needs no look-up: %s", got.stderr)
	}
}

type unreadable struct{ *memlane.Storage }

func (unreadable) ListTasks(context.Context, *lane.PageQuery) (*runlane.Page[lane.TaskRecord], error) {
	return nil, &runlane.Error{Code: runlane.ErrStorageUnavailable, Message: "no page today", Hint: "come back tomorrow"}
}
