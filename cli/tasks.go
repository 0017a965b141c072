package cli

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/internal/shown"
)

func tasksCommand() *command {
	return &command{
		name: "tasks", short: "Look at the tasks of the environment, pause and resume them",
		below: []*command{tasksListCommand(), pauseCommand("task"), resumeCommand("task")},
	}
}

func tasksListCommand() *command {
	return &command{
		name:  "list",
		short: "List the tasks of this program, and those that ticks have stored",
		long: "A task computes its KEYS from the payload: a program without the task must give them. SEEN is when " +
			"a tick stored the definition: less than a day ago, or the program does not tick. A note follows for each " +
			"paused task.",
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
				if err := s.showTasks(tasks); err != nil || s.json {
					return err
				}
				return s.noteUnknownTasks(ctx, rt, tasks)
			}
		},
	}
}

func (s *session) showTasks(tasks []core.TaskState) error {
	if len(tasks) == 0 {
		s.note("no tick has stored the tasks of this environment yet")
	}
	t := &table{header: []string{"TASK", "QUEUE", "LIMIT", "ATTEMPTS", "TIMEOUT", "KEYS", "KNOWN", "SEEN"}, shrink: 5}
	for i := range tasks {
		task := &tasks[i]
		seenTask := shown.TaskOf(task, s.now())
		if s.json {
			if err := s.emit("task", seenTask); err != nil {
				return err
			}
			continue
		}
		limit, seen := policyText(&task.Queue), s.when(task.SeenAt)
		if seenTask.Gone {
			seen += ", gone"
		}
		t.add(
			string(task.ID),
			string(task.Queue.Name),
			limit,
			fmt.Sprint(task.MaxAttempts),
			seenTask.Timeout,
			strings.Join(seenTask.Keys, ","),
			yesNo(task.Known),
			seen,
		)
	}
	if !s.json {
		s.write(t)
		for i := range tasks {
			s.notePause(tasks[i].Pause)
		}
	}
	return nil
}

// noteUnknownTasks names the paused tasks that the list lacks, like a name that was spelled wrong.
func (s *session) noteUnknownTasks(ctx context.Context, rt *core.Runtime, tasks []core.TaskState) error {
	pauses, err := rt.Queues().Pauses(ctx)
	if errors.Is(err, runlane.ErrCapabilityUnsupported) {
		return nil // nothing can be paused
	}
	for i := range pauses {
		p := &pauses[i]
		listed := slices.ContainsFunc(tasks, func(t core.TaskState) bool { return t.ID == p.Task })
		if p.Task != "" && !listed && p.Active(s.now()) {
			s.notePause(p)
		}
	}
	return err
}

func taskNames(ctx context.Context, s *session) []string {
	rt, err := s.rt(ctx)
	if err != nil {
		return nil // completion shows no errors
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
