package cli

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
)

func exportCommand() *command {
	return &command{
		name:  "export",
		short: "Write an environment as JSON, to move it to another lane",
		long: "Writes one JSON object a line to stdout: tasks, schedules, each run with its whole history, and " +
			"flows. First stop everything that triggers and executes: docs/moving.md. A run with an attempt in " +
			"progress is refused, or waited for with --wait; one with unread signals is refused, unless " +
			"--leave-signals is given.",
		examples: []string{
			"export --lane sqlite:state.db > state.ndjson", "export --wait --timeout 10m > state.ndjson",
		},
		act: func(flags *flag.FlagSet) action {
			wait := flags.Bool("wait", false, "wait for the end of attempts, and do not refuse them")
			leave := flags.Bool("leave-signals", false, "leave signals behind that no wait has read")
			return func(ctx context.Context, s *session, _ []string) error {
				rt, err := s.rt(ctx)
				if err != nil {
					return err
				}
				moved, err := rt.Export(ctx, s.results, &core.ExportOptions{Wait: *wait, LeaveSignals: *leave})
				if err != nil {
					return err
				}
				s.note("wrote %s, %s, %s, %s", plural(moved.Runs, "run", "runs"),
					plural(moved.Schedules, "schedule", "schedules"), plural(moved.Tasks, "task", "tasks"),
					plural(moved.Flows, "flow", "flows"))
				return nil
			}
		},
	}
}

type moved struct {
	Runs      int `json:"runs"`
	Written   int `json:"written"`
	Schedules int `json:"schedules"`
	Tasks     int `json:"tasks"`
	Flows     int `json:"flows,omitempty"`

	Unordered []runlane.QueueName `json:"unordered,omitempty"`
}

func importCommand() *command {
	return &command{
		name:  "import",
		usage: "FILE|-",
		short: "Read what \"export\" wrote into the environment of this lane",
		long: "A truncated or changed file is refused before anything is written. Waiting runs go on here. Repeat " +
			"an interrupted import with the same file, and let nothing trigger into the environment meanwhile.",
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
			return usagef("name a file that \"runlane export\" wrote, or -", "%s cannot be read: %v", name, err)
		}
		defer file.Close()
		from = file
	}
	draft, err := copied(from) // since it is read twice
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, draft.Close()) }()
	if err := s.judgeBeforeMaking(draft); err != nil {
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
		return s.emit("import", &moved{
			Runs:      m.Runs,
			Written:   m.Written,
			Schedules: m.Schedules,
			Tasks:     m.Tasks,
			Flows:     m.Flows,
			Unordered: m.Unordered,
		})
	}
	s.line("read %s, of which %d had to be written; %s, %s, %s", plural(m.Runs, "run", "runs"), m.Written,
		plural(m.Schedules, "schedule", "schedules"), plural(m.Tasks, "task", "tasks"),
		plural(m.Flows, "flow", "flows"))
	for _, name := range m.Unordered {
		s.note("queue %s was an ordered queue where this was exported, and is none here: runs of one concurrency key "+
			"may execute at once. To keep the order, import into a lane whose queue is ordered, before a worker "+
			"starts", name)
	}
	return nil
}

// judgeBeforeMaking checks a file before a new lane is created for it.
func (s *session) judgeBeforeMaking(draft io.ReadSeeker) error {
	if !s.laneIsNew() {
		return nil // Import checks it
	}
	environment, err := core.CheckImport(draft)
	if err != nil {
		return err
	}
	own := runlane.Environment(s.getenv(lane.EnvironmentVariable)).Name()
	if s.project && environment.Name() != own { // other programs may set theirs in code
		return &runlane.Error{
			Code:    runlane.ErrValidationFailed,
			Message: fmt.Sprintf("the file has environment %q, this is %q: nothing was written", environment, own),
			Hint:    "name the file's with --env",
		}
	}
	_, err = draft.Seek(0, io.SeekStart)
	return err
}

// scratch is a temporary file. If named is true, it must be removed after it is closed.
type scratch struct {
	*os.File

	named bool
}

// copied copies the input to a scratch file, unlinked at once if possible: it holds payloads, and this process may be
// killed.
func copied(from io.Reader) (*scratch, error) {
	file, err := os.CreateTemp("", "runlane-import")
	if err != nil {
		return nil, err
	}
	draft := &scratch{file, os.Remove(file.Name()) != nil}
	if _, err = io.Copy(file, from); err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		return nil, errors.Join(err, draft.Close())
	}
	return draft, nil
}

func (f *scratch) Close() error {
	err := f.File.Close()
	if f.named {
		err = errors.Join(err, os.Remove(f.Name()))
	}
	return err
}
