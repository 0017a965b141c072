package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/internal/shown"
)

type tasksFile struct {
	Tasks []taskEntry `json:"tasks"`
}

type taskEntry struct {
	Task            runlane.TaskID    `json:"task"`
	Queue           runlane.QueueName `json:"queue"`
	Concurrency     int               `json:"concurrency"`
	DispatchTimeout *span             `json:"dispatchTimeout"`
	Rate            runlane.Rate      `json:"rate"`
	Burst           int               `json:"burst"`
	MaxAttempts     int               `json:"maxAttempts"`
	Backoff         *span             `json:"backoff"`
	MaxBackoff      *span             `json:"maxBackoff"`
	NoJitter        bool              `json:"noJitter"`
	Timeout         *span             `json:"timeout"`
	IdempotencyTTL  retention         `json:"idempotencyTtl"`
	Keep            keeping           `json:"keep"`
	ErrorMessages   bool              `json:"errorMessages"`
	Version         int               `json:"version"`
	Schema          json.RawMessage   `json:"schema"`
}

// SchemaCompiler returns a function that checks payloads by a schema. Its errors do not quote the payload.
type SchemaCompiler func(schema json.RawMessage) (check func(payload json.RawMessage) error, err error)

// ReadTasks reads a file that defines tasks for core.Options.Tasks (docs/workers.md). compile is schema.Compile of package
// server/schema, or nil to refuse schemas. Errors, such as unknown fields, are runlane.ErrConfigurationInvalid and name
// each problem.
func ReadTasks(text []byte, compile SchemaCompiler) ([]core.ClientTask, error) {
	var file tasksFile
	if err := parseBody(text, &file); err != nil {
		p := problemOf(err)
		return nil, invalid("the file of tasks cannot be read: "+p.Detail,
			`write {"tasks":[{"task":"images.resize"}]}; docs/workers.md has all fields`)
	}
	if len(file.Tasks) == 0 {
		return nil, invalid("the file of tasks has no tasks", `write {"tasks":[{"task":"images.resize"}]}`)
	}
	var faults []error
	tasks := make([]core.ClientTask, len(file.Tasks))
	for i := range file.Tasks {
		var err error
		if tasks[i], err = file.Tasks[i].built(compile); err != nil {
			faults = append(faults, err)
		}
	}
	return tasks, errors.Join(faults...)
}

func (e *taskEntry) built(compile SchemaCompiler) (core.ClientTask, error) {
	dispatch, err1 := e.above("dispatchTimeout", e.DispatchTimeout)
	timeout, err2 := e.above("timeout", e.Timeout)
	longest, err3 := e.above("maxBackoff", e.MaxBackoff)
	if err := errors.Join(err1, err2, err3); err != nil {
		return core.ClientTask{}, err
	}
	o := &runlane.TaskOptions[json.RawMessage]{
		ErrorMessages:  e.ErrorMessages,
		IdempotencyTTL: time.Duration(e.IdempotencyTTL),
		Keep: runlane.Keep{
			Succeeded: time.Duration(e.Keep.Succeeded),
			Failed:    time.Duration(e.Keep.Failed),
			Cancelled: time.Duration(e.Keep.Cancelled),
		},
		Retry:   runlane.Retry{MaxAttempts: e.MaxAttempts, NoJitter: e.NoJitter},
		Timeout: timeout,
		Version: e.Version,
	}
	queue := runlane.Queue{
		Name: e.Queue, Concurrency: e.Concurrency, DispatchTimeout: dispatch, Rate: e.Rate, Burst: e.Burst,
	}
	if queue != (runlane.Queue{}) {
		o.Queue = queue
	}
	switch {
	case longest > 0 && e.Backoff != nil:
		o.Retry.Backoff = runlane.Exponential{Base: time.Duration(*e.Backoff), Max: longest}
	case longest > 0:
		o.Retry.Backoff = runlane.Exponential{Max: longest}
	case e.Backoff != nil:
		o.Retry.Backoff = runlane.Fixed(*e.Backoff)
	}
	task := core.ClientTask{Definition: runlane.NewTask(e.Task, o).Definition()}
	if err := task.Definition.Err(); err != nil || e.Schema == nil {
		return task, err
	}
	if compile == nil {
		return task, invalid(fmt.Sprintf("task %q has a schema", e.Task), "give server.ReadTasks the function schema.Compile")
	}
	var err error
	if task.Check, err = compile(e.Schema); err != nil {
		return task, invalid(fmt.Sprintf("task %q has no sound schema: %s", e.Task, err),
			"write JSON Schema, draft 2020-12 or 7, without references to other documents")
	}
	task.Schema = e.Schema
	return task, nil
}

// above returns a time that must be more than 0 if it is given.
func (e *taskEntry) above(name string, given *span) (time.Duration, error) {
	if given == nil {
		return 0, nil
	}
	if *given == 0 {
		return 0, invalid(fmt.Sprintf("task %q has a %s of 0s", e.Task, name), "give a time, or leave it out")
	}
	return time.Duration(*given), nil
}

type keeping struct {
	Succeeded keepTime `json:"succeeded"`
	Failed    keepTime `json:"failed"`
	Cancelled keepTime `json:"cancelled"`
}

// UnmarshalJSON reads one time for all runs, or one by status.
func (k *keeping) UnmarshalJSON(text []byte) error {
	if strings.HasPrefix(string(text), "{") {
		type plain keeping
		return parseBody(text, (*plain)(k))
	}
	var all keepTime
	if err := all.UnmarshalJSON(text); err != nil {
		return err
	}
	*k = keeping{all, all, all}
	return nil
}

type keepTime time.Duration

// UnmarshalJSON reads a duration or "forever".
func (t *keepTime) UnmarshalJSON(text []byte) error {
	if string(text) == strconv.Quote(shown.KeepForever) {
		*t = keepTime(runlane.KeepForever)
		return nil
	}
	if err := (*span)(t).UnmarshalJSON(text); err != nil {
		return err
	}
	if *t <= 0 {
		return badInput("the time to keep runs is not more than 0", "give a time like 30d, forever, or leave it out")
	}
	return nil
}
