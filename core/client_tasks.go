package core

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/host"
)

// ClientTask is a task without a handler here: clients, in any language, claim its runs ([Runtime.Claim]). Otherwise it
// is like other tasks: triggered by name, in a known queue, with a definition that ticks store.
type ClientTask struct {
	// Definition has the task's rules; Retry and Timeout apply as with a handler. See runlane.NewTask. Required.
	Definition *runlane.Definition
	// Check validates the JSON payload of each call that this runtime triggers, before anything is written. Its error
	// rejects the call: runlane.ErrValidationFailed unless it is a *runlane.Error. Its text must not quote the payload. It
	// is called concurrently. nil accepts any payload.
	Check func(payload json.RawMessage) error
	// Schema is the JSON Schema behind Check, for people who write payloads (TaskState). It is neither evaluated nor
	// stored here. nil means none.
	Schema json.RawMessage
}

// withHostTasks adds the tasks of the embedding program.
func withHostTasks(ctx context.Context, own []ClientTask) []ClientTask {
	given, _ := host.Of(ctx).Tasks.([]ClientTask)
	return slices.Concat(own, given)
}

// withHostHandlers adds the handlers of the embedding program.
func withHostHandlers(ctx context.Context, own []runlane.Handler) []runlane.Handler {
	given, _ := host.Of(ctx).Handlers.([]runlane.Handler)
	return slices.Concat(own, given)
}

func withHostSchedules(ctx context.Context, own []runlane.Schedule) []runlane.Schedule {
	given, _ := host.Of(ctx).Schedules.([]runlane.Schedule)
	return slices.Concat(own, given)
}

func (rt *Runtime) registerClientTask(i int, t ClientTask) error {
	if t.Definition == nil {
		return invalidOption("give it what runlane.NewTask defines", "Options.Tasks[%d] has no definition", i)
	}
	if err := t.Definition.Err(); err != nil {
		return err
	}
	id := t.Definition.ID
	_, handled := rt.handlers[id]
	if _, twice := rt.clientTasks[id]; twice || handled {
		return invalidOption(
			"let one program claim a task's runs, or handle them",
			"Options.Tasks: task %q is there twice, or has a handler",
			id,
		)
	}
	rt.clientTasks[id] = t
	rt.define(t.Definition)
	return rt.registerQueue(t.Definition.Queue)
}

func (rt *Runtime) define(task *runlane.Definition) {
	at, _ := slices.BinarySearchFunc(rt.definitions, task.ID, func(d *runlane.Definition, id runlane.TaskID) int {
		return cmp.Compare(d.ID, id)
	})
	rt.definitions = slices.Insert(rt.definitions, at, task)
}

// checkPayload runs the task's Check. A panic fails this call alone.
func (rt *Runtime) checkPayload(task runlane.TaskID, payload json.RawMessage) error {
	if err := rt.checkSize("payload", payload); err != nil {
		return err
	}
	t, ok := rt.clientTasks[task]
	if !ok || t.Check == nil {
		return nil
	}
	var err error
	if fault := caught(func() { err = t.Check(payload) }); fault != nil {
		err = errors.New("the check panicked")
	}
	if err == nil {
		return nil
	}
	if e, typed := asError(err); typed {
		return e
	}
	return &runlane.Error{
		Code:    runlane.ErrValidationFailed,
		Message: fmt.Sprintf("the payload does not fit task %q: %s", task, err),
		Hint:    "compare the payload with what the task takes",
	}
}
