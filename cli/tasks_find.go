package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/internal/taskbook"
)

// taskBook looks up tasks by name for one command. It phrases errors and warnings for the command line.
type taskBook struct {
	taskbook.Book

	s     *session
	lines bool // keys come from the lines of a batch
	read  bool
	tasks []core.TaskState
	said  map[string]bool // warnings already shown
}

func (s *session) taskBook(rt *core.Runtime, foreign, lines bool) *taskBook {
	b := &taskBook{s: s, lines: lines, said: map[string]bool{}}
	b.Book = taskbook.Book{
		Runtime: rt,
		Foreign: foreign,
		Tasks:   b.list,
		Doubt:   b.note,
		Now:     s.now,
	}
	return b
}

func (b *taskBook) list(ctx context.Context) (tasks []core.TaskState, err error) {
	if !b.read {
		if b.tasks, err = b.Runtime.Tasks().List(ctx); err != nil {
			return nil, err
		}
		b.read = true
	}
	return b.tasks, nil
}

// call pairs a task with a payload, and adds the policy of the queue in the options. given marks the keys that the call
// has, even empty ones.
func (b *taskBook) call(
	ctx context.Context,
	task runlane.TaskID,
	payload json.RawMessage,
	options *runlane.TriggerOptions,
	given runlane.TaskKeys,
) (runlane.Call, error) {
	call, err := b.Call(ctx, task, payload, options, given)
	if unknown, ok := errors.AsType[*taskbook.UnknownTaskError](err); ok {
		next := didYouMean(string(task), unknown.Names) + unknown.Known(`"tasks list"`) +
			"; --foreign takes the name as it is"
		return call, &runlane.Error{Code: runlane.ErrTaskNotFound, Message: unknown.Error(), Hint: next}
	}
	if missing, ok := errors.AsType[*taskbook.MissingKeysError](err); ok {
		return call, b.missingKeys(missing)
	}
	return call, err
}

func (b *taskBook) note(d taskbook.Doubt) {
	about := string(d.Kind) + string(d.Task) + string(d.Queue)
	if b.said[about] {
		return
	}
	b.said[about] = true
	switch d.Kind {
	case taskbook.DoubtEmpty:
		b.s.note("no tick has stored this environment's tasks yet: the name is taken as it is, in the queue default")
	case taskbook.DoubtGone:
		b.s.note(
			"no program with task %q has ticked since %s: the run waits until one does",
			d.Task,
			b.s.at(d.SeenAt),
		)
	case taskbook.DoubtQueue:
		b.s.note(
			"no task that is known uses queue %s: the run waits until a program that knows the queue takes it; %s"+
				"\"runlane queues list\" shows them",
			quoted(string(d.Queue)),
			didYouMean(string(d.Queue), d.Queues),
		)
	}
}

// missingKeys is the error of a call without keys that its task would compute.
func (b *taskBook) missingKeys(e *taskbook.MissingKeysError) error {
	var places []string
	for _, kind := range e.Kinds {
		if b.lines {
			places = append(places, kind+"Key")
		} else {
			places = append(places, "--"+kind+"-key")
		}
	}
	return usagef(
		fmt.Sprintf("give %s, empty for none, or use the program that has the task: go run . trigger, in its folder", strings.Join(places, " and ")),
		"%s",
		e.Error(),
	)
}
