package core

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// Tasks lists the tasks of an environment, of this program and of others. It is stateless; get it from [Runtime.Tasks].
type Tasks struct{ rt *Runtime }

// Tasks returns the view of the environment's tasks.
func (rt *Runtime) Tasks() *Tasks { return &Tasks{rt: rt} }

// TaskState is a task of this program or of the catalog.
type TaskState struct {
	// TaskRecord is the task's definition, this runtime's own if it has one. SeenAt is when a tick of any program last
	// stored the definition, zero for never. It is at most a day ago while a program with the task ticks.
	lane.TaskRecord
	// Known reports whether this runtime has the task.
	Known bool
	// Schema is the payload schema of this runtime's ClientTask. nil means unknown.
	Schema json.RawMessage
	// Pause is the task's pause, or its end while runs get their wakeups. nil: none.
	Pause *lane.Pause
}

// Definition is for programs without the task: with runlane.NewRawCall they create the same run, but must pass the
// computed keys (Keys). It has no backoff, which only the task's own program uses.
func (t TaskState) Definition() *runlane.Definition {
	return t.TaskRecord.Definition()
}

// List returns the tasks of this runtime and of the environment's catalog, by id. Each program's ticks store its tasks
// there. A task without any program stays; SeenAt shows it. Without a catalog, only the runtime's own tasks are listed.
func (t *Tasks) List(ctx context.Context) ([]TaskState, error) {
	if err := t.rt.gate.enterLate(); err != nil {
		return nil, err
	}
	defer t.rt.gate.leave()
	var stored map[runlane.TaskID]lane.TaskRecord
	if t.rt.keepsTasks() {
		var err error
		if stored, err = t.rt.storedTasks(ctx); err != nil {
			return nil, err
		}
	}
	states := make(map[runlane.TaskID]TaskState, len(stored)+len(t.rt.definitions))
	for id, record := range stored {
		states[id] = TaskState{TaskRecord: record}
	}
	for _, d := range t.rt.definitions {
		states[d.ID] = TaskState{
			TaskRecord: taskRecord(d, stored[d.ID].SeenAt),
			Known:      true,
			Schema:     t.rt.clientTasks[d.ID].Schema,
		}
	}
	p, err := t.rt.readPauses(ctx, false)
	if err != nil {
		return nil, err
	}
	for i := range p.Entries {
		if state, ok := states[p.Entries[i].Task]; ok {
			state.Pause = &p.Entries[i]
			states[state.ID] = state
		}
	}
	return slices.SortedFunc(maps.Values(states), func(a, b TaskState) int { return cmp.Compare(a.ID, b.ID) }), nil
}

// gone is the age of a definition that probably belongs to no program any more.
const gone = 2 * 2 * catalogEvery

// Gone reports whether no program with the task has ticked for two days, so that probably none has it. Tasks of this
// runtime and tasks that no tick has stored yet are not gone.
func (t TaskState) Gone(now time.Time) bool {
	return !t.Known && !t.SeenAt.IsZero() && now.Sub(t.SeenAt) > gone
}
