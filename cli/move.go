package cli

import (
	"context"
	"errors"
	"flag"
	"io"
	"os"

	"github.com/runlane/runlane-go/core"
)

func exportCommand() *command {
	return &command{
		name:  "export",
		short: "Write an environment as JSON, to move it to another lane",
		long: "What is written to stdout is one object a line: tasks, schedules, and each run with its whole " +
			"history, which is folded on the way. \"import\" reads it on another lane: docs/moving.md. " +
			"Stop what triggers and executes first. A run that an attempt executes is refused, or waited for " +
			"with --wait.",
		examples: []string{
			"export --lane sqlite:state.db > state.ndjson", "export --wait --timeout 10m > state.ndjson",
		},
		act: func(flags *flag.FlagSet) action {
			wait := flags.Bool("wait", false, "wait for the end of attempts, and do not refuse them")
			return func(ctx context.Context, s *session, _ []string) error {
				rt, err := s.rt(ctx)
				if err != nil {
					return err
				}
				moved, err := rt.Export(ctx, s.results, &core.ExportOptions{Wait: *wait})
				if err != nil {
					return err
				}
				s.note("wrote %s, %s, %s", plural(moved.Runs, "run", "runs"),
					plural(moved.Schedules, "schedule", "schedules"), plural(moved.Tasks, "task", "tasks"))
				return nil
			}
		},
	}
}

// moved is the output of import.
type moved struct {
	Runs      int `json:"runs"`
	Written   int `json:"written"`
	Schedules int `json:"schedules"`
	Tasks     int `json:"tasks"`
}

func importCommand() *command {
	return &command{
		name:  "import",
		usage: "FILE|-",
		short: "Read what \"export\" wrote into the environment of this lane",
		long: "The file is read as a whole before anything is written: one that was cut off or changed is refused. " +
			"Runs that wait go on here. An import that was interrupted is repeated with the same file. The " +
			"environment has the name of the exported one; let nothing trigger into it meanwhile.",
		examples: []string{"import state.ndjson --lane aws:", "import - --lane sqlite:new.db < state.ndjson"},
		min:      1, max: 1,
		makesFile: true,
		act: func(*flag.FlagSet) action {
			return func(ctx context.Context, s *session, args []string) error { return s.importFile(ctx, args[0]) }
		},
	}
}

func (s *session) importFile(ctx context.Context, name string) (err error) {
	from := s.typed(ctx)
	if name != "-" {
		file, err := s.input(name)
		if err != nil {
			return usagef("name a file that \"export\" wrote, or -", "%s cannot be read: %v", name, err)
		}
		defer file.Close()
		from = file
	}
	draft, err := os.CreateTemp("", "runlane-import") // it is read twice
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, draft.Close(), os.Remove(draft.Name())) }()
	if _, err := io.Copy(draft, from); err != nil {
		return err
	}
	if _, err := draft.Seek(0, io.SeekStart); err != nil {
		return err
	}
	rt, err := s.rt(ctx)
	if err != nil {
		return err
	}
	m, err := rt.Import(ctx, draft)
	if err != nil {
		return err
	}
	if s.json {
		return s.emit("import", &moved{Runs: m.Runs, Written: m.Written, Schedules: m.Schedules, Tasks: m.Tasks})
	}
	s.line("read %s, of which %d had to be written; %s, %s", plural(m.Runs, "run", "runs"), m.Written,
		plural(m.Schedules, "schedule", "schedules"), plural(m.Tasks, "task", "tasks"))
	return nil
}
