package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
)

// taskBook finds tasks by name for one command: the program's tasks first, then those that other programs stored.
type taskBook struct {
	s       *session
	rt      *core.Runtime
	foreign bool // names are taken as they are, without a lookup
	lines   bool // keys are given in the lines of a batch

	read  bool
	tasks []core.TaskState
	warn  map[runlane.TaskID]bool // what was said once
}

func (s *session) taskBook(rt *core.Runtime, foreign, lines bool) *taskBook {
	return &taskBook{s: s, rt: rt, foreign: foreign, lines: lines, warn: map[runlane.TaskID]bool{}}
}

// list reads the catalog, once.
func (b *taskBook) list(ctx context.Context) (tasks []core.TaskState, err error) {
	if !b.read {
		if b.tasks, err = b.rt.Tasks().List(ctx); err != nil {
			return nil, err
		}
		b.read = true
	}
	return b.tasks, nil
}

// call pairs a task with a payload, and gives the options the policy of the queue that they name. given are the keys
// that the call has, even if they are empty.
func (b *taskBook) call(
	ctx context.Context,
	task runlane.TaskID,
	payload json.RawMessage,
	options *runlane.TriggerOptions,
	given runlane.TaskKeys,
) (runlane.Call, error) {
	if err := b.settleQueue(ctx, options); err != nil {
		return runlane.Call{}, err
	}
	if slices.ContainsFunc(b.rt.Definitions(), func(d *runlane.Definition) bool { return d.ID == task }) {
		return b.rt.CallJSON(task, payload)
	}
	asItIs := runlane.NewRawCall(runlane.NewTask[json.RawMessage](task, nil).Definition(), payload)
	if b.foreign {
		return asItIs, nil
	}
	tasks, err := b.list(ctx)
	if err != nil {
		return runlane.Call{}, err
	}
	index := slices.IndexFunc(tasks, func(known core.TaskState) bool { return known.ID == task })
	switch {
	case len(tasks) == 0:
		b.note("", "no tick has stored this environment's tasks yet: the name is taken as it is, in the queue default")
		return asItIs, nil
	case index < 0:
		return runlane.Call{}, unknownTask(task, tasks)
	}
	known := &tasks[index]
	if err := firstError(b.checkKeys(known, given), b.adoptQueue(known, options)); err != nil {
		return runlane.Call{}, err
	}
	if known.Gone(b.s.now()) {
		b.note(
			task,
			"no program with task %q has ticked since %s: the run waits until one does",
			task,
			b.s.at(known.SeenAt),
		)
	}
	return runlane.NewRawCall(known.Definition(), payload), nil
}

// note shows a message once.
func (b *taskBook) note(about runlane.TaskID, format string, args ...any) {
	if !b.warn[about] {
		b.warn[about] = true
		b.s.note(format, args...)
	}
}

// maxNamed is how many tasks an error names.
const maxNamed = 10

func unknownTask(task runlane.TaskID, tasks []core.TaskState) error {
	var names []string
	own := true
	for i := range tasks {
		names = append(names, string(tasks[i].ID))
		own = own && tasks[i].Known
	}
	e := &runlane.Error{
		Code:    runlane.ErrTaskNotFound,
		Message: fmt.Sprintf("no program of this environment has a task %q", task),
	}
	what := "known are "
	if own {
		e.Message, what = fmt.Sprintf("this program has no task %q", task), "its tasks are "
	}
	listed := strings.Join(names[:min(len(names), maxNamed)], ", ")
	if len(names) > maxNamed {
		listed += fmt.Sprintf(" and %d more (\"tasks list\")", len(names)-maxNamed)
	}
	e.Hint = didYouMean(string(task), names) + what + listed + "; --foreign takes the name as it is"
	return e
}

// checkKeys refuses a task that computes keys which the call does not give: without them the run could be a duplicate.
func (b *taskBook) checkKeys(task *core.TaskState, given runlane.TaskKeys) error {
	missing := keyNames(runlane.TaskKeys{
		Concurrency: task.Keys.Concurrency && !given.Concurrency,
		Idempotency: task.Keys.Idempotency && !given.Idempotency,
		Singleton:   task.Keys.Singleton && !given.Singleton,
	})
	if len(missing) == 0 {
		return nil
	}
	var places []string
	for _, kind := range missing {
		if b.lines {
			places = append(places, kind+"Key")
		} else {
			places = append(places, "--"+kind+"-key")
		}
	}
	return usagef(
		fmt.Sprintf("give %s, empty for none, or use the program that has the task", strings.Join(places, " and ")),
		"task %q computes its %s key from the payload, which only its own program can",
		task.ID,
		strings.Join(missing, " and its "),
	)
}

// adoptQueue checks the queue of another program's task against what this program knows about it. Only the limit
// matters: who reserves a slot, and for how long, may differ.
func (b *taskBook) adoptQueue(task *core.TaskState, options *runlane.TriggerOptions) error {
	if options.Queue != (runlane.Queue{}) {
		return nil // another one was named
	}
	for _, state := range b.rt.Queues().List() {
		switch {
		case state.Queue.Name != task.Queue.Name || !state.Known || state.Queue == runlane.DefaultQueue:
		case state.Queue.Concurrency != task.Queue.Concurrency:
			return &runlane.Error{
				Code: runlane.ErrConfigurationInvalid,
				Message: fmt.Sprintf("queue %q has limit %d here and %d in the program of task %q",
					task.Queue.Name, state.Queue.Concurrency, task.Queue.Concurrency, task.ID),
				Hint: fmt.Sprintf(
					"correct the limit that this program is told; --queue %s goes by it",
					task.Queue.Name,
				),
			}
		default:
			options.Queue = state.Queue
		}
	}
	return nil
}

// settleQueue gives a named queue its policy: that of this program, or that of another program's task which uses the
// queue.
func (b *taskBook) settleQueue(ctx context.Context, options *runlane.TriggerOptions) error {
	name := options.Queue.Name
	if name == "" {
		return nil
	}
	for _, state := range b.rt.Queues().List() {
		if state.Known && state.Queue.Name == name {
			options.Queue = state.Queue
			return nil
		}
	}
	if b.foreign {
		return nil
	}
	tasks, err := b.list(ctx)
	if err != nil {
		return err
	}
	var latest *core.TaskState
	for i := range tasks {
		if tasks[i].Queue.Name == name && (latest == nil || tasks[i].SeenAt.After(latest.SeenAt)) {
			latest = &tasks[i]
		}
	}
	switch {
	case latest != nil:
		options.Queue = latest.Queue
	case len(tasks) > 0:
		b.noteStrangeQueue(name, tasks)
	}
	return nil
}

// noteStrangeQueue says that no task is known which uses a queue: nothing may ever take the run.
func (b *taskBook) noteStrangeQueue(name runlane.QueueName, tasks []core.TaskState) {
	var names []string
	for i := range tasks {
		names = append(names, string(tasks[i].Queue.Name))
	}
	b.note(
		runlane.TaskID("queue "+string(name)),
		"no task that is known uses queue %s: the run waits until a program that knows the queue takes it; %s"+
			"\"queues list\" shows them",
		quoted(string(name)),
		didYouMean(string(name), names),
	)
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
