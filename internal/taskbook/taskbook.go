// Package taskbook looks up tasks by name, and runs by the prefix of their ID. It searches the program's tasks first,
// then those that ticks of other programs stored.
package taskbook

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/internal/shown"
)

// Book looks up tasks. All fields but Foreign are required.
type Book struct {
	Runtime *core.Runtime
	Foreign bool
	// Tasks lists the tasks of the environment. It may cache them.
	Tasks func(context.Context) ([]core.TaskState, error)
	// Doubt is called for a trigger that will work but may be a mistake.
	Doubt func(Doubt)
	// Now is the clock that decides whether a task is gone.
	Now func() time.Time
}

// Doubt describes a possible mistake.
type Doubt struct {
	Kind   DoubtKind
	Task   runlane.TaskID
	SeenAt time.Time         // for DoubtGone
	Queue  runlane.QueueName // for DoubtQueue
	Queues []string          // for DoubtQueue: queues of known tasks
}

type DoubtKind string

const (
	// DoubtEmpty: no tick has stored tasks, so the name cannot be checked.
	DoubtEmpty DoubtKind = "empty"
	// DoubtGone: no program with the task ticks anymore.
	DoubtGone DoubtKind = "gone"
	// DoubtQueue: no known task uses the queue.
	DoubtQueue DoubtKind = "queue"
)

// UnknownTaskError: no program has the task.
type UnknownTaskError struct {
	Task  runlane.TaskID
	Names []string // of the known tasks
	Own   bool     // all of them belong to this program
}

// Error implements error.
func (e *UnknownTaskError) Error() string {
	if e.Own {
		return fmt.Sprintf("this program has no task %q", e.Task)
	}
	return fmt.Sprintf("no program of this environment has a task %q", e.Task)
}

const maxNamed = 10

// Known names the first known tasks. more refers to the full list.
func (e *UnknownTaskError) Known(more string) string {
	what := "known are "
	if e.Own {
		what = "its tasks are "
	}
	listed := strings.Join(e.Names[:min(len(e.Names), maxNamed)], ", ")
	if len(e.Names) > maxNamed {
		listed += fmt.Sprintf(" and %d more (%s)", len(e.Names)-maxNamed, more)
	}
	return what + listed
}

// MissingKeysError: keys are missing that only the task's own program can compute. Without them the run could be a
// duplicate.
type MissingKeysError struct {
	Task  runlane.TaskID
	Kinds []string
}

// Error implements error.
func (e *MissingKeysError) Error() string {
	return fmt.Sprintf(
		"task %q computes its %s key from the payload, which only its own program can",
		e.Task,
		strings.Join(e.Kinds, " and its "),
	)
}

// Reserved is the prefix of tasks that only a server triggers, such as those of its webhooks.
const Reserved = "runlane."

func reservedTask(task runlane.TaskID) error {
	return &runlane.Error{
		Code:    runlane.ErrValidationFailed,
		Message: fmt.Sprintf("task %q is reserved: runs of tasks that begin with %s are made by the server", task, Reserved),
		Hint:    "trigger a task of an application",
	}
}

// Call pairs a task with a payload, and adds the policy of the queue in the options. given marks the keys that the call
// has, even empty ones. Errors are [UnknownTaskError], [MissingKeysError] and those of core; a name with the prefix
// [Reserved] is runlane.ErrValidationFailed.
func (b *Book) Call(
	ctx context.Context,
	task runlane.TaskID,
	payload json.RawMessage,
	options *runlane.TriggerOptions,
	given runlane.TaskKeys,
) (runlane.Call, error) {
	if err := task.Validate(); err != nil {
		return runlane.Call{}, err
	}
	if strings.HasPrefix(string(task), Reserved) {
		return runlane.Call{}, reservedTask(task)
	}
	if err := b.settleQueue(ctx, options); err != nil {
		return runlane.Call{}, err
	}
	if slices.ContainsFunc(b.Runtime.Definitions(), func(d *runlane.Definition) bool { return d.ID == task }) {
		return b.Runtime.CallJSON(task, payload)
	}
	asItIs := runlane.NewRawCall(runlane.NewTask[json.RawMessage](task, nil).Definition(), payload)
	if b.Foreign {
		return asItIs, nil
	}
	tasks, err := b.Tasks(ctx)
	if err != nil {
		return runlane.Call{}, err
	}
	index := slices.IndexFunc(tasks, func(known core.TaskState) bool { return known.ID == task })
	switch {
	case len(tasks) == 0:
		b.Doubt(Doubt{Kind: DoubtEmpty})
		return asItIs, nil
	case index < 0:
		return runlane.Call{}, unknownTask(task, tasks)
	}
	known := &tasks[index]
	if err := checkKeys(known, given); err != nil {
		return runlane.Call{}, err
	}
	if err := b.adoptQueue(known, options); err != nil {
		return runlane.Call{}, err
	}
	if known.Gone(b.Now()) {
		b.Doubt(Doubt{Kind: DoubtGone, Task: task, SeenAt: known.SeenAt})
	}
	return runlane.NewRawCall(known.Definition(), payload), nil
}

func unknownTask(task runlane.TaskID, tasks []core.TaskState) error {
	e := &UnknownTaskError{Task: task, Own: true}
	for i := range tasks {
		e.Names = append(e.Names, string(tasks[i].ID))
		e.Own = e.Own && tasks[i].Known
	}
	return e
}

func checkKeys(task *core.TaskState, given runlane.TaskKeys) error {
	missing := shown.KeyNames(runlane.TaskKeys{
		Concurrency: task.Keys.Concurrency && !given.Concurrency,
		Idempotency: task.Keys.Idempotency && !given.Idempotency,
		Singleton:   task.Keys.Singleton && !given.Singleton,
	})
	if len(missing) == 0 {
		return nil
	}
	return &MissingKeysError{Task: task.ID, Kinds: missing}
}

// adoptQueue compares the limit of another program's queue with this program's. Other settings may differ: they only
// affect who reserves a slot, and for how long.
func (b *Book) adoptQueue(task *core.TaskState, options *runlane.TriggerOptions) error {
	if options.Queue != (runlane.Queue{}) {
		return nil // the caller chose another queue
	}
	for _, state := range b.Runtime.Queues().List() {
		switch {
		case state.Queue.Name != task.Queue.Name || !state.Known || state.Queue == runlane.DefaultQueue:
		case state.Queue.Concurrency != task.Queue.Concurrency:
			return &runlane.Error{
				Code: runlane.ErrConfigurationInvalid,
				Message: fmt.Sprintf("queue %q has limit %d here and %d in the program of task %q",
					task.Queue.Name, state.Queue.Concurrency, task.Queue.Concurrency, task.ID),
				Hint: fmt.Sprintf(
					"correct the limit that this program is given; --queue %s uses it",
					task.Queue.Name,
				),
			}
		default:
			options.Queue = state.Queue
		}
	}
	return nil
}

// settleQueue adds the policy of the chosen queue: this program's, or that of another program's task.
func (b *Book) settleQueue(ctx context.Context, options *runlane.TriggerOptions) error {
	name := options.Queue.Name
	if name == "" {
		return nil
	}
	for _, state := range b.Runtime.Queues().List() {
		if state.Known && state.Queue.Name == name {
			options.Queue = state.Queue
			return nil
		}
	}
	if b.Foreign {
		return nil
	}
	tasks, err := b.Tasks(ctx)
	if err != nil {
		return err
	}
	var latest *core.TaskState
	var names []string
	for i := range tasks {
		names = append(names, string(tasks[i].Queue.Name))
		if tasks[i].Queue.Name == name && (latest == nil || tasks[i].SeenAt.After(latest.SeenAt)) {
			latest = &tasks[i]
		}
	}
	switch {
	case latest != nil:
		options.Queue = latest.Queue
	case len(tasks) > 0: // perhaps no program takes the run
		b.Doubt(Doubt{Kind: DoubtQueue, Queue: name, Queues: names})
	}
	return nil
}
