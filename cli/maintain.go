package cli

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/internal/host"
	"github.com/runlane/runlane-go/internal/shown"
	"github.com/runlane/runlane-go/target"
)

func tickCommand() *command {
	return &command{
		name:  "tick",
		short: "Do one round of maintenance",
		long: "Delivers due and recovered runs, asks again for lost wakeups, fires schedules, reserves slots and " +
			"flushes the outbox. Deployments tick by themselves. A program ticks for the queues that it knows: " +
			"RUNLANE_LIMITS (--limits) makes others known, 0 for no limit.",
		examples: []string{"tick", "tick --drain --json"},
		act: func(flags *flag.FlagSet) action {
			var options core.TickOptions
			flags.IntVar(&options.Limit, "limit", 0, "NUMBER of rows a stage takes, at most 500; 100 unless given")
			drain := flags.Bool("drain", false, "repeat while another round would find more to do")
			return func(ctx context.Context, s *session, _ []string) error {
				rt, err := s.rt(ctx)
				if err != nil {
					return err
				}
				if !slices.ContainsFunc(rt.Queues().List(), func(q core.QueueState) bool { return q.Bound }) {
					return &runlane.Error{
						Code:    runlane.ErrConfigurationInvalid,
						Message: "no queue is bound: a tick could send no wakeup",
						Hint:    "set RUNLANE_QUEUES (--queues) to name=url pairs with commas between",
					}
				}
				for {
					result, err := rt.Tick(ctx, &options)
					if result != nil {
						if showErr := s.showTick(result); showErr != nil {
							return showErr
						}
					}
					if err != nil || !*drain || !result.More {
						return err
					}
				}
			}
		},
	}
}

func (s *session) showTick(result *core.TickResult) error {
	seen := shown.TickOf(result)
	if s.json {
		return s.emit("tick", seen)
	}
	t := &table{header: []string{"STAGE", "DONE", "SKIPPED", "FAILED"}}
	for _, one := range seen.Stages {
		t.add(one.Name, fmt.Sprint(one.Done), fmt.Sprint(one.Skipped), fmt.Sprint(one.Failed))
	}
	s.write(t)
	if result.More {
		s.note("there is more to do: tick again, or --drain")
	}
	return nil
}

func workerCommand() *command {
	return &command{
		name:  "worker",
		local: true, makesFile: true,
		short: "Execute runs until interrupted",
		long: "This needs a program with handlers: embed these commands in yours with cli.Main. Or give --file a file " +
			"of HTTP requests and commands, which are tasks then, with their schedules: docs/targets.md. After an " +
			"interrupt, attempts get the grace to finish; the rest are handed back at no cost to their runs, and " +
			"reported. An interrupted drain exits with 130.",
		examples: []string{"worker --concurrency 20", "worker --drain", "worker --file runlane.yaml"},
		act: func(flags *flag.FlagSet) action {
			var options core.WorkOptions
			var queues words[runlane.QueueName]
			flags.IntVar(&options.Concurrency, "concurrency", 0, "NUMBER of attempts at once; 10 unless given")
			flags.BoolVar(&options.Drain, "drain", false, "end when nothing is due, nor becomes due within two seconds")
			graceFlag(
				flags,
				&options.Grace,
				"grace",
				"DURATION attempts may take to finish after an interrupt; 30s unless given",
			)
			timeoutFlag(
				flags,
				&options.Lease,
				"lease",
				"DURATION after which others take over a dead worker's runs; 1m unless given, at least 5s",
			)
			file := flags.String("file", "", "FILE of tasks that are HTTP requests and commands, like runlane.yaml")
			flags.BoolVar(&options.NoTick, "no-tick", false, "leave maintenance to another process")
			flags.Var(&queues, "queue", "QUEUES with commas between; those of the handlers unless given")
			flags.StringVar(&options.WorkerID, "worker-id", "", "NAME of the worker in leases and logs")
			return func(ctx context.Context, s *session, _ []string) error {
				options.Queues = queues
				return s.worker(ctx, &options, *file)
			}
		},
	}
}

// noteKeys warns once if there are no keys for answer tokens, before each attempt that makes one fails.
func (s *session) noteKeys(rt *core.Runtime) {
	if _, err := rt.ReadToken(""); runlane.CodeOf(err) == runlane.ErrCapabilityUnsupported {
		s.note("there are no keys for answer tokens: attempts that make one fail (%s)", core.TokenKeysVariable)
	}
}

// readTargets reads a file of tasks that need no program.
func (s *session) readTargets(file string) (*target.Targets, error) {
	text, err := os.ReadFile(s.path(file))
	if err != nil {
		return nil, usagef("name a file of tasks; docs/targets.md has one", "--file: %v", err)
	}
	return target.Read(text, &target.Options{Getenv: s.getenv})
}

func (s *session) worker(ctx context.Context, options *core.WorkOptions, file string) error {
	ofFile := 0
	around := host.Host{Metrics: ignored{}} // with metrics, commits include their events
	if file != "" {
		targets, err := s.readTargets(file)
		if err != nil {
			return err
		}
		around.Handlers, around.Schedules, ofFile = targets.Handlers, targets.Schedules, len(targets.Handlers)
	}
	rt, err := s.rt(host.With(ctx, around))
	if err != nil {
		return err
	}
	definitions := rt.Definitions()
	if len(definitions) == 0 {
		return &runlane.Error{
			Code: runlane.ErrConfigurationInvalid, Message: "this program has no tasks to execute",
			Hint: "give --file a file of tasks, or embed the commands in the program that has them: " +
				"func main() { os.Exit(cli.Main(ctx, open)) }",
		}
	}
	seen := watchCommits(rt)
	var names []string
	served := options.Queues
	for _, d := range definitions {
		names = append(names, string(d.ID))
		if options.Queues == nil {
			served = append(served, d.Queue.Name)
		}
	}
	s.note("working on %s; an interrupt stops", strings.Join(names, ", "))
	if rt.Lane().Storage.Capabilities().ProcessLocalState {
		s.note("runs are in this process's memory: they end with it, and no other program sees them. RUNLANE_LANE " +
			"and RUNLANE_TABLE name another place")
	}
	if len(definitions) > ofFile { // tasks of a file make no tokens
		s.noteKeys(rt)
	}
	for _, queue := range options.Queues {
		(&filter{queue: string(queue)}).doubt(ctx, s)
	}
	report := core.DrainReport{}
	options.DrainReport = &report
	left, err := s.work(ctx, rt, seen, options, nil)
	switch {
	case err != nil:
		return err
	case ctx.Err() == nil || options.Drain && !report.Interrupted:
		s.note("stopped")
		return nil
	}
	left.count(ctx, rt, served)
	s.sayLeft(left)
	if options.Drain {
		return ctx.Err() // a drain promises that nothing is due
	}
	return nil
}
