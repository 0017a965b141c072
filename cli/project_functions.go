package cli

import (
	"context"
	"flag"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/cli/internal/samfile"
	"github.com/runlane/runlane-go/internal/doctor"
)

const samconfigFile = "samconfig.toml"

// functionName is the syntax of a bridge's name. It becomes part of logical IDs and of alarm names.
var functionName = regexp.MustCompile(`^[a-z]([a-z0-9-]{0,18}[a-z0-9])?$`)

func functionsCommand() *command {
	return &command{
		name: "functions", short: "Add functions to the project in this folder",
		below: []*command{functionsAddCommand()},
	}
}

func functionsAddCommand() *command {
	return &command{
		name:  "add",
		usage: "NAME",
		short: "Give the project one more bridge, with limits of its queues",
		min:   1, max: 1,
		local: true,
		long: "Adds a function to template.yaml for runs of the given queues: the same program with a separate " +
			"timeout, memory, concurrency, role, log and alarms. Limits that are not given are the bridge's. " +
			"Declare the queues first (queues add); each gets an SQS queue unless it has one. A queue taken from " +
			"another function stays readable for that one until the next call after the deployment. The difference " +
			"is shown first.",
		examples: []string{
			"functions add slow --queues reports,exports --timeout 900",
			"functions add wide --queues thumbnails --memory 2048 --concurrency 200",
		},
		act: func(flags *flag.FlagSet) action {
			f := samfile.Function{}
			flags.Func("queues", "NAMES of the queues, with commas between them", func(text string) error {
				f.Queues = strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })
				return nil
			})
			flags.IntVar(
				&f.Timeout, "timeout", 0,
				"SECONDS of an invocation: 30, 60, 120, 300, 600 or 900",
			)
			flags.IntVar(&f.Memory, "memory", 0, "MEGABYTES of memory, 128 to 10240")
			flags.IntVar(
				&f.BatchSize, "batch-size", 0,
				"NUMBER of wakeups in an invocation at most, 1 to 10",
			)
			flags.IntVar(
				&f.Concurrency, "concurrency", 0,
				"NUMBER of invocations of a queue at once, 2 to 1000",
			)
			dryRun, yes := editFlags(flags)
			return func(ctx context.Context, s *session, args []string) error {
				f.Name = args[0]
				if err := judgeFunction(&f); err != nil {
					return err
				}
				e, err := s.newProjectEdit()
				if err != nil {
					return err
				}
				if err := e.addFunction(&f); err != nil {
					return err
				}
				template, err := e.template()
				if err != nil {
					return err
				}
				if samfile.Forgets(e.before[templateFile], template) {
					s.note("this removes the right to receive that a function kept for a queue that moved: deploy it only after " +
						"the deployment that moved the queue, or the queue has no reader during a canary")
				}
				if err := e.apply(ctx, s, *dryRun, *yes); err != nil || *dryRun {
					return err
				}
				s.note("next: deploy. An existing stack keeps its limits until %s sets others", samconfigFile)
				if samfile.Moved(template) {
					s.note("after the deployment call this again, and deploy: until then the queue's former function " +
						"keeps its right to receive, because its mapping is removed last")
				}
				return nil
			}
		},
	}
}

func judgeFunction(f *samfile.Function) error {
	switch {
	case !functionName.MatchString(f.Name) || slices.Contains([]string{"bridge", "relay", "tick", "server", "events", "value"}, f.Name):
		return usagef(
			"use up to 20 small letters, digits and '-', with a letter first; ",
			"%s cannot name a further function", quoted(f.Name),
		)
	case len(f.Queues) == 0:
		return usagef("name them with --queues a,b", "the function has no queues")
	case f.Timeout != 0 && !slices.Contains(doctor.FunctionTimeouts, f.Timeout):
		return usagef("use 30, 60, 120, 300, 600 or 900; ", "--timeout does not take %d", f.Timeout)
	case f.Memory != 0 && (f.Memory < 128 || f.Memory > 10240):
		return usagef("use 128 to 10240; ", "--memory does not take %d", f.Memory)
	case f.BatchSize != 0 && (f.BatchSize < 1 || f.BatchSize > 10):
		return usagef("use 1 to 10; ", "--batch-size does not take %d", f.BatchSize)
	case f.Concurrency != 0 && (f.Concurrency < 2 || f.Concurrency > 1000):
		return usagef("use 2 to 1000; ", "--concurrency does not take %s", strconv.Itoa(f.Concurrency))
	}
	slices.Sort(f.Queues)
	f.Queues = slices.Compact(f.Queues) // a duplicate would look like a queue that the function already has
	for _, name := range f.Queues {
		if err := (runlane.Queue{Name: runlane.QueueName(name)}).Validate(); err != nil {
			return err
		}
	}
	return nil
}

func (e *projectEdit) addFunction(f *samfile.Function) error {
	declared, _, _, _, err := e.queuesInCode()
	if err != nil {
		return err
	}
	for _, name := range f.Queues {
		template, err := e.template()
		if err != nil {
			return err
		}
		has := samfile.HasQueue(template, name)
		if _, known := declared[name]; !known && !has { // probably a typing error: no task would use the queue
			return usagef(
				"correct the name, or first: queues add "+name, "the project has no queue %s", quoted(name),
			)
		}
		if !has {
			if err := e.addQueueToTemplate(name, false); err != nil {
				return err
			}
			f.New = append(f.New, name)
		}
	}
	template, err := e.template()
	if err != nil {
		return err
	}
	after, err := samfile.AddFunction(template, *f)
	if err != nil {
		return templateFault(err)
	}
	e.write(templateFile, after)
	return nil
}
