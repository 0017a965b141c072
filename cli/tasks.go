package cli

import (
	"context"
	"flag"
	"fmt"
	"strings"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
)

func tasksCommand() *command {
	return &command{name: "tasks", short: "Look at the tasks of the environment", below: []*command{tasksListCommand()}}
}

func tasksListCommand() *command {
	return &command{
		name:  "list",
		short: "List the tasks of this program, and those that ticks have stored",
		long: "Each program that ticks stores the definitions of its tasks, so that others can trigger them. KEYS " +
			"are those that a task computes from its payload: a program without the task has to give them. SEEN is " +
			"when a tick stored the definition; while its program ticks, that is less than a day ago.",
		examples: []string{"tasks list", "tasks list --json"},
		act: func(*flag.FlagSet) action {
			return func(ctx context.Context, s *session, _ []string) error {
				rt, err := s.rt(ctx)
				if err != nil {
					return err
				}
				tasks, err := rt.Tasks().List(ctx)
				if err != nil {
					return err
				}
				return s.showTasks(tasks)
			}
		},
	}
}

// shownTask is a task in JSON.
type shownTask struct {
	ID              runlane.TaskID    `json:"taskId"`
	Queue           runlane.QueueName `json:"queue"`
	Concurrency     int               `json:"concurrency"`
	DispatchTimeout string            `json:"dispatchTimeout,omitempty"`
	MaxAttempts     int               `json:"maxAttempts"`
	Backoff         string            `json:"backoff,omitempty"`
	Timeout         string            `json:"timeout,omitempty"`
	IdempotencyTTL  string            `json:"idempotencyTtl"`
	Keys            []string          `json:"keys"`
	ErrorMessages   bool              `json:"errorMessages"`
	Known           bool              `json:"known"`
	SeenAt          time.Time         `json:"seenAt,omitzero"`
	Gone            bool              `json:"gone,omitempty"`
}

func (s *session) showTasks(tasks []core.TaskState) error {
	if len(tasks) == 0 {
		s.note("no tick has stored the tasks of this environment yet")
	}
	t := &table{header: []string{"TASK", "QUEUE", "LIMIT", "ATTEMPTS", "TIMEOUT", "KEYS", "KNOWN", "SEEN"}, shrink: 5}
	for i := range tasks {
		task := &tasks[i]
		keys := keyNames(task.Keys)
		timeout, dispatch, ttl := durationText(task.Timeout), durationText(task.Queue.DispatchTimeout), "while-active"
		if task.IdempotencyTTL != runlane.WhileActive {
			ttl = runlane.FormatDuration(task.IdempotencyTTL)
		}
		if s.json {
			if err := s.emit("task", &shownTask{
				ID:              task.ID,
				Queue:           task.Queue.Name,
				Concurrency:     task.Queue.Concurrency,
				DispatchTimeout: dispatch,
				MaxAttempts:     task.MaxAttempts,
				Backoff:         task.Backoff,
				Timeout:         timeout,
				IdempotencyTTL:  ttl,
				Keys:            keys,
				ErrorMessages:   task.ErrorMessages,
				Known:           task.Known,
				SeenAt:          task.SeenAt,
				Gone:            task.Gone(s.now()),
			}); err != nil {
				return err
			}
			continue
		}
		limit, seen := "none", s.when(task.SeenAt)
		if task.Queue.Bounded() {
			limit = fmt.Sprint(task.Queue.Concurrency)
		}
		if task.Gone(s.now()) {
			seen += ", gone"
		}
		t.add(
			string(task.ID),
			string(task.Queue.Name),
			limit,
			fmt.Sprint(task.MaxAttempts),
			timeout,
			strings.Join(keys, ","),
			yesNo(task.Known),
			seen,
		)
	}
	if !s.json {
		s.write(t)
	}
	return nil
}

// durationText is "" for none.
func durationText(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return runlane.FormatDuration(d)
}

// keyNames are the kinds of keys as flags and JSON call them.
func keyNames(keys runlane.TaskKeys) []string {
	names := []string{}
	for _, key := range []struct {
		has  bool
		name string
	}{{keys.Concurrency, "concurrency"}, {keys.Idempotency, "idempotency"}, {keys.Singleton, "singleton"}} {
		if key.has {
			names = append(names, key.name)
		}
	}
	return names
}

func taskNames(ctx context.Context, s *session) []string {
	rt, err := s.rt(ctx)
	if err != nil {
		return nil // a shell that completes shows no errors
	}
	var names []string
	tasks, err := rt.Tasks().List(ctx)
	if err != nil {
		for _, d := range rt.Definitions() {
			names = append(names, string(d.ID))
		}
		return names
	}
	for i := range tasks {
		names = append(names, string(tasks[i].ID))
	}
	return names
}
