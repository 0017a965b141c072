package cli

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/internal/host"
	"github.com/runlane/runlane-go/server"
)

// devGrace is shorter than a worker's: a user waits at the terminal.
const devGrace = 5 * time.Second

// devListen lets the system choose a free port: several projects may have sessions at once.
const devListen = "127.0.0.1:0"

func devCommand() *command {
	return &command{
		name:  "dev",
		short: "Run everything in this process: worker, tick, schedules",
		local: true,
		long: "Prints each transition of a run. Without RUNLANE_LANE and RUNLANE_TABLE, runs are kept in " +
			".runlane/dev.db of the folder for the next session and for commands that name no lane. Without " +
			"RUNLANE_TOKEN_KEYS it makes a key for answer tokens and keeps it beside the file.\n\nThe program is " +
			"not rebuilt when its source changes: start it again. A binary without tasks builds the program of the " +
			"current folder and becomes its dev. An interrupt lets attempts finish for the grace, hands the others " +
			"back, and lists them.",
		examples:  []string{"dev", "dev --memory", "dev --json | jq -c .type"},
		makesFile: true,
		act: func(flags *flag.FlagSet) action {
			options := core.WorkOptions{Grace: devGrace}
			flags.IntVar(&options.Concurrency, "concurrency", 0, "NUMBER of attempts at once; 10 unless given")
			graceFlag(
				flags,
				&options.Grace,
				"grace",
				"DURATION attempts may take to finish after an interrupt; 5s unless given",
			)
			listen := flags.String("listen", devListen, "ADDRESS on which HTTP API and console answer; a free port of "+
				"this machine unless given, and nowhere with an empty one")
			memory := flags.Bool("memory", false, "keep runs in memory only")
			return func(ctx context.Context, s *session, _ []string) error {
				if s.project {
					return s.devProject(ctx)
				}
				return s.dev(ctx, &options, *memory, *listen)
			}
		},
	}
}

type devState struct {
	State       string              `json:"state"` // started or stopped
	Lane        string              `json:"lane"`
	Environment runlane.Environment `json:"environment"`
	Tasks       []runlane.TaskID    `json:"tasks,omitempty"`
	Schedules   int                 `json:"schedules,omitempty"`
	PID         int                 `json:"pid,omitempty"`
	URL         string              `json:"url,omitempty"`
	*workLeft
}

func (s *session) dev(ctx context.Context, options *core.WorkOptions, memory bool, listen string) error {
	folder, err := s.callFolder()
	if err != nil {
		return err
	}
	defer leaveDevFolder(folder)
	if err := s.chooseDevState(folder, memory); err != nil {
		return err
	}
	metrics, seen := &server.Metrics{}, newCommits() // with metrics, commits include their events
	given := host.Host{Metrics: metrics}
	if !s.json && !s.verbose {
		given.Failed = seen.failed // a transition is the one line of a failure
	}
	rt, err := s.rt(host.With(ctx, given))
	if err == nil {
		err = s.keepDevKey(folder)
	}
	if err != nil {
		return err
	}
	if len(rt.Definitions()) == 0 {
		return &runlane.Error{
			Code: runlane.ErrConfigurationInvalid, Message: "this program has no tasks to execute",
			Hint: "pass handlers to core.Open in its opener",
		}
	}
	seen.watch(rt)
	url := ""
	if listen != "" {
		var end func()
		if url, end, err = s.serveBeside(ctx, rt, listen, metrics); err != nil {
			return err
		}
		defer end()
	}
	if err := s.devStarts(ctx, rt, url); err != nil {
		return err
	}
	left, err := s.work(ctx, rt, seen, options, s.showTransition)
	if err != nil {
		return err
	}
	return s.devStops(ctx, rt, left)
}

func (s *session) devStarts(ctx context.Context, rt *core.Runtime, url string) error {
	state := devState{
		State:       "started",
		Lane:        rt.Lane().Name,
		Environment: rt.Environment(),
		PID:         os.Getpid(),
		URL:         url,
	}
	var names []string
	for _, d := range rt.Definitions() {
		state.Tasks = append(state.Tasks, d.ID)
		names = append(names, string(d.ID))
	}
	for schedule, err := range rt.Schedules().List(ctx) {
		if err != nil {
			break // dev starts even if the storage cannot list; doctor reports why
		}
		if schedule.Known {
			state.Schedules++
		}
	}
	if s.json {
		if err := s.emit("dev", &state); err != nil {
			return err
		}
		return s.results.Flush()
	}
	columns, ok := s.width(s.stderr)
	lines := []string{
		fmt.Sprintf(
			"executing %s; %s; lane %s",
			strings.Join(names, ", "),
			plural(state.Schedules, "schedule", "schedules"),
			state.Lane,
		),
	}
	if s.keepsFile {
		lines = append(lines, fmt.Sprintf(
			"other terminals work on its runs from this folder: %s trigger %s, %s runs explain RUN", s.name, names[0], s.name,
		))
	}
	if url != "" {
		lines = append(lines, fmt.Sprintf("console and HTTP API answer on %s, for any user of this machine", url))
	}
	for _, line := range lines {
		if ok {
			line = wrapped(line, "", columns)
		}
		s.note("%s", line)
	}
	s.note("an interrupt stops it")
	return nil
}

func (s *session) devStops(ctx context.Context, rt *core.Runtime, left *workLeft) error {
	left.count(ctx, rt, nil)
	if s.json {
		if left.unread {
			s.note("the runs that wait could not be counted")
		}
		return s.emit("dev", &devState{
			State:       "stopped",
			Lane:        rt.Lane().Name,
			Environment: rt.Environment(),
			workLeft:    left,
		})
	}
	s.sayLeft(left)
	return nil
}
