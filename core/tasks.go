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

// Tasks is the view of the tasks of an environment, of this program and of others. Stateless: get one with
// [Runtime.Tasks] when you need it.
type Tasks struct{ rt *Runtime }

// Tasks returns the view.
func (rt *Runtime) Tasks() *Tasks { return &Tasks{rt: rt} }

// TaskState is what is known of a task.
type TaskState struct {
	// TaskRecord is the task's definition: this runtime's own where it has one. SeenAt is when a tick of any program
	// stored the definition that is in the catalog, zero when none has. While a program that has the task ticks, it is
	// never more than a day ago.
	lane.TaskRecord
	// Known says that this runtime has the task.
	Known bool
	// Schema is the ClientTask's of this runtime: what payloads of the task are. nil means that none is known.
	Schema json.RawMessage
}

// Definition is for programs without the task, which trigger it with runlane.NewRawCall. That makes the same run as the
// task's own program does, but keys that the task computes (Keys) have to be given. It has no backoff, which only the
// task's own program uses.
func (t TaskState) Definition() *runlane.Definition {
	return t.TaskRecord.Definition()
}

// List returns the tasks of this runtime and those in the environment's catalog, by id. The ticks of a program store
// its tasks there. A task that no program has any more stays, and SeenAt shows it. Where the storage keeps no catalog,
// only the runtime's own tasks are listed.
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
	return slices.SortedFunc(maps.Values(states), func(a, b TaskState) int { return cmp.Compare(a.ID, b.ID) }), nil
}

// gone is how long a definition must not have been stored to count as one that no program has any more.
const gone = 2 * 2 * catalogEvery

// Gone reports whether no program with the task has ticked for two days, so that there is probably none any more. A
// task that no tick has stored yet, and a task of this runtime, are not gone.
func (t TaskState) Gone(now time.Time) bool {
	return !t.Known && !t.SeenAt.IsZero() && now.Sub(t.SeenAt) > gone
}
