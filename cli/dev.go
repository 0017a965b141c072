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
)

// devGrace is shorter than a worker's: somebody waits at the terminal.
const devGrace = 5 * time.Second

func devCommand() *command {
	return &command{
		name: "dev", short: "Run everything in this process: worker, tick, schedules", local: true,
		long: "Every transition of a run is printed as it happens. While it runs, other terminals in the same folder, or below it, reach it: " +
			"any command that names no table is done by this session. With the program's memory as lane, runs end with the session.\n\n" +
			"The program is not rebuilt when its source changes: stop it, and start it again. A binary without tasks of its own builds " +
			"the program in the current folder and runs its dev.\n\n" +
			"An interrupt lets attempts in progress finish for the grace, then hands them back, and says what was left.",
		examples: []string{"dev", "dev --json | jq -c .type"},
		act: func(flags *flag.FlagSet) action {
			options := core.WorkOptions{Grace: devGrace}
			flags.IntVar(&options.Concurrency, "concurrency", 0, "NUMBER of attempts at once; 10 unless given")
			durationFlag(flags, &options.Grace, "grace", "DURATION attempts may take to finish after an interrupt; 5s unless given")
			return func(ctx context.Context, s *session, _ []string) error {
				if s.project {
					return s.devProject(ctx)
				}
				return s.dev(ctx, &options)
			}
		},
	}
}

// devState is what dev says of itself.
type devState struct {
	State       string              `json:"state"` // started or stopped
	Lane        string              `json:"lane"`
	Environment runlane.Environment `json:"environment"`
	Tasks       []runlane.TaskID    `json:"tasks,omitempty"`
	Schedules   int                 `json:"schedules,omitempty"`
	PID         int                 `json:"pid,omitempty"`
	*devLeft
}

// devLeft is what a session left. Lost says that what waits is gone with it.
type devLeft struct {
	Finished   int  `json:"finished"`
	HandedBack int  `json:"handedBack"`
	Waiting    int  `json:"waiting"`
	AtLeast    bool `json:"atLeast,omitempty"`
	Lost       bool `json:"lost"`
}

func (s *session) dev(ctx context.Context, options *core.WorkOptions) error {
	folder, err := s.callFolder()
	if err != nil {
		return err
	}
	if err := s.alreadyRuns(ctx, folder); err != nil { // before anything is opened for nothing
		return err
	}
	rt, err := s.rt(core.WithMetrics(ctx, ignored{})) // commits then come with their records
	if err != nil {
		return err
	}
	if len(rt.Definitions()) == 0 {
		return &runlane.Error{
			Code: runlane.ErrConfigurationInvalid, Message: "this program has no tasks to execute",
			Hint: "pass handlers to core.Open in its opener",
		}
	}
	control, err := s.listen(ctx, folder)
	if err != nil {
		return err
	}
	seen := watchCommits(rt)
	stop := control.serve(context.WithoutCancel(ctx), rt)
	defer stop()
	if err := s.devStarts(ctx, rt); err != nil {
		return err
	}
	tally, err := s.devWorks(ctx, rt, seen, options)
	if err != nil {
		return err
	}
	return s.devStops(ctx, rt, tally)
}

func (s *session) devStarts(ctx context.Context, rt *core.Runtime) error {
	state := devState{State: "started", Lane: rt.Lane().Name, Environment: rt.Environment(), PID: os.Getpid()}
	var names []string
	for _, d := range rt.Definitions() {
		state.Tasks = append(state.Tasks, d.ID)
		names = append(names, string(d.ID))
	}
	for schedule, err := range rt.Schedules().List(ctx) {
		if err != nil {
			break // what the storage cannot list is no reason not to start; doctor tells more
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
	for _, line := range []string{
		fmt.Sprintf("executing %s; %s; lane %s", strings.Join(names, ", "), plural(state.Schedules, "schedule", "schedules"), state.Lane),
		fmt.Sprintf("other terminals reach this session from this folder: %s trigger %s", s.name, names[0]),
	} {
		if ok {
			line = wrapped(line, "", columns)
		}
		s.note("%s", line)
	}
	s.note("an interrupt stops it")
	return nil
}

// devWorks works until the context ends, or until nobody reads the transitions any more.
func (s *session) devWorks(ctx context.Context, rt *core.Runtime, seen *commits, options *core.WorkOptions) (*devLeft, error) {
	working, stop := context.WithCancel(ctx)
	defer stop()
	worked := make(chan error, 1)
	go func() { worked <- rt.Work(working, options) }() // ends after the context, at latest a few seconds after the grace
	left, running := &devLeft{}, map[runlane.RunID]bool{}
	interrupted := working.Done()
	var fault error
	show := func(record *runlane.EventRecord, task runlane.TaskID) {
		left.count(record, running, interrupted == nil)
		if fault != nil {
			return
		}
		if fault = s.showTransition(record, task); fault != nil {
			stop()
		}
	}
	for {
		select {
		case c := <-seen.all:
			c.each(show)
		case <-interrupted:
			interrupted = nil
			if n := len(running); n > 0 {
				s.note("stopping: %s in progress may take %s; a second interrupt ends them", plural(n, "attempt", "attempts"), options.Grace)
			}
		case err := <-worked:
			for len(seen.all) > 0 {
				(<-seen.all).each(show)
			}
			if n := seen.dropped.Load(); n > 0 {
				s.note("%s not shown: there were too many at once", plural(int(n), "transition was", "transitions were"))
			}
			if fault == nil {
				fault = err
			}
			return left, fault
		}
	}
}

// count keeps the runs whose attempts are in progress, and, once the session stops, how these end.
func (left *devLeft) count(record *runlane.EventRecord, running map[runlane.RunID]bool, stopping bool) {
	switch record.Body.(type) {
	case *runlane.RunStarted:
		running[record.RunID] = true
		return
	case *runlane.RunSucceeded, *runlane.RunFailed, *runlane.RunCancelled, *runlane.RunRetryScheduled:
		if stopping && running[record.RunID] {
			left.Finished++
		}
	case *runlane.RunReleased:
		if stopping && running[record.RunID] {
			left.HandedBack++
		}
	default:
		return
	}
	delete(running, record.RunID)
}

// devStops says what is left.
func (s *session) devStops(ctx context.Context, rt *core.Runtime, left *devLeft) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
	defer cancel()
	var active statuses
	_ = active.Set("active") // it is a status
	options := &core.ListOptions{RunFilter: core.RunFilter{Statuses: active}, Limit: runlane.MaxPageLimit}
	for range prefixRuns / runlane.MaxPageLimit {
		page, err := rt.Runs().List(ctx, options)
		if err != nil {
			s.note("stopped; the runs that wait could not be counted")
			break
		}
		left.Waiting += len(page.Items)
		if options.After = page.Next; options.After == "" {
			break
		}
	}
	left.AtLeast = options.After != ""
	left.Lost = rt.Lane().Storage.Capabilities().ProcessLocalState
	if s.json {
		return s.emit("dev", &devState{State: "stopped", Lane: rt.Lane().Name, Environment: rt.Environment(), devLeft: left})
	}
	if left.Finished+left.HandedBack > 0 {
		s.note("while it stopped: %s finished, %d handed back", plural(left.Finished, "attempt", "attempts"), left.HandedBack)
	}
	waiting := plural(left.Waiting, "run", "runs")
	if left.AtLeast {
		waiting = "at least " + waiting
	}
	switch {
	case left.Waiting == 0:
		s.note("stopped; no run was waiting")
	case left.Lost:
		s.note("stopped; what waited in memory is gone: %s", waiting)
	default:
		s.note("stopped; %s left for the next worker", waiting)
	}
	return nil
}
