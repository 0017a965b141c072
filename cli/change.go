package cli

import (
	"context"
	"flag"
	"math"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/internal/shown"
)

// change is who changes something and why.
type change struct{ actor, reason string }

func (c *change) define(set *flag.FlagSet) {
	set.StringVar(&c.actor, "actor", "", "NAME of who does it, kept with the change; else RUNLANE_ACTOR, else USER")
	set.StringVar(&c.reason, "reason", "", "TEXT that says why, kept with the change")
}

// options checks what core would refuse, so that a refusal of core is about the run.
func (c *change) options(s *session) (core.ChangeOptions, error) {
	actor, err := s.actor(c.actor)
	if err == nil && len(c.reason) > runlane.MaxReasonBytes {
		err = usagef("shorten it; ", "--reason has %d bytes, more than %d", len(c.reason), runlane.MaxReasonBytes)
	}
	return core.ChangeOptions{Actor: actor, Reason: c.reason}, err
}

// actor is the person at the keyboard.
func (s *session) actor(given string) (runlane.Actor, error) {
	for _, id := range []string{given, s.getenv("RUNLANE_ACTOR"), s.getenv("USER")} {
		if id == "" {
			continue
		}
		if runlane.RunID(id).Validate() != nil { // the rules of ids hold for actors too
			return runlane.Actor{}, usagef(
				"use --actor with printable text without ':'; ",
				"%s cannot name who does it",
				quoted(id),
			)
		}
		return runlane.Actor{Type: runlane.ActorOperator, ID: id}, nil
	}
	return runlane.OperatorActor, nil
}

// operation is an operation on one run, or on all runs that match a filter.
type operation struct {
	verb, done string // "cancel", "cancelled"
	one        operateOne
	all        func(context.Context, *core.Runtime, *core.BulkOptions) (*core.BulkResult, error)
}

// operateOne returns the changed run, or the run that was made from it, which alone has an outcome.
type operateOne func(
	context.Context, *core.Runtime, runlane.RunID, *core.ChangeOptions,
) (*runlane.Run, runlane.TriggerOutcome, error)

// runsOperation is one of core's on runs.
func runsOperation(
	verb, done string,
	one operateOne,
	all func(*core.Runs, context.Context, *core.BulkOptions) (*core.BulkResult, error),
) operation {
	return operation{
		verb: verb,
		done: done,
		one:  one,
		all: func(ctx context.Context, rt *core.Runtime, o *core.BulkOptions) (*core.BulkResult, error) {
			return all(rt.Runs(), ctx, o)
		},
	}
}

func cancelOne(
	ctx context.Context, rt *core.Runtime, id runlane.RunID, o *core.ChangeOptions,
) (*runlane.Run, runlane.TriggerOutcome, error) {
	run, err := rt.Runs().Cancel(ctx, id, o)
	return run, "", err
}

// repeatOne makes a run from another, or finds the one that was made before.
func repeatOne(kind runlane.SourceType) operateOne {
	return func(
		ctx context.Context, rt *core.Runtime, id runlane.RunID, o *core.ChangeOptions,
	) (*runlane.Run, runlane.TriggerOutcome, error) {
		result, err := rt.Runs().Repeat(ctx, id, kind, o)
		if err != nil {
			return nil, "", err
		}
		return result.Run, result.Outcome, nil
	}
}

func runsCancelCommand() *command {
	return operationCommand("cancel", "Stop runs",
		"A waiting run ends at once. A running one is asked to stop: its worker ends the handler's context.",
		[]string{"runs cancel run_01J8ZQ4T --reason \"wrong customer\"", "runs cancel --task emails.welcome --dry-run"},
		runsOperation("cancel", "cancelled", cancelOne, (*core.Runs).CancelAll))
}

func resumeOne(
	ctx context.Context, rt *core.Runtime, id runlane.RunID, o *core.ChangeOptions,
) (*runlane.Run, runlane.TriggerOutcome, error) {
	run, err := rt.Runs().Resume(ctx, id, o)
	return run, "", err
}

func runsResumeCommand() *command {
	return operationCommand("resume", "Let waiting runs go on now",
		"What is left of a delay, of the backoff of a retry, or of a release is skipped. Counters and failures stay. "+
			"A handler that sleeps or waits for something looks again, and waits on where it has not come.",
		[]string{
			"runs resume run_01J8ZQ4T --reason \"the quota was raised\"",
			"runs resume --status retrying --queue emails --dry-run",
		},
		runsOperation("resume", "resumed", resumeOne, (*core.Runs).ResumeAll))
}

const askTwice = "Asking twice makes one run, and the second answer says so: to repeat once more, repeat the run " +
	"that was made."

func runsRetryCommand() *command {
	return operationCommand("retry", "Repeat failed runs, as new runs",
		"The new run has the task's whole retry budget, takes over the idempotency key, and names the old one as its "+
			"source. "+askTwice,
		[]string{"runs retry run_01J8ZQ4T", "runs retry --task emails.welcome --yes"},
		runsOperation("retry", "retried", repeatOne(runlane.SourceManualRetry), (*core.Runs).RetryAll))
}

func runsRerunCommand() *command {
	return operationCommand("rerun", "Repeat finished runs, as new runs",
		"The new run has the payload of the old one and names it as its source. "+askTwice,
		[]string{"runs rerun run_01J8ZQ4T", "runs rerun --status cancelled --queue emails --dry-run"},
		runsOperation("rerun", "repeated", repeatOne(runlane.SourceRerun), (*core.Runs).RerunAll))
}

func operationCommand(name, short, long string, examples []string, op operation) *command {
	return &command{
		name:     name,
		usage:    "[RUN...]",
		short:    short,
		long:     long + bulkHelp,
		examples: examples,
		max:      -1,
		act: func(flags *flag.FlagSet) action {
			var selected filter
			var by change
			var many bulk
			selected.define(flags)
			by.define(flags)
			many.define(flags)
			return func(ctx context.Context, s *session, args []string) error {
				changes, err := by.options(s)
				if err != nil {
					return err
				}
				if err := many.judge(&selected, args); err != nil {
					return err
				}
				if len(args) > 0 {
					return s.each(ctx, op, args, &changes, many.dryRun)
				}
				return s.inBulk(ctx, op, &selected, &many, changes)
			}
		},
	}
}

// each does the operation on the named runs. A failure does not stop the others; the first failure's code is the
// command's.
func (s *session) each(
	ctx context.Context, op operation, args []string, changes *core.ChangeOptions, dryRun bool,
) error {
	code := ExitOK
	for n, given := range args {
		err := s.toOne(ctx, op, given, changes, dryRun)
		if err == nil {
			continue
		}
		if ctx.Err() != nil {
			s.note("left undone: %d of %d", len(args)-n, len(args))
			return err
		}
		if len(args) == 1 {
			return err
		}
		if code == ExitOK {
			code = exitCode(err)
		}
		if !s.json {
			s.note("%s:", given)
		}
		s.report(err)
	}
	if code != ExitOK {
		return &told{code: code}
	}
	return nil
}

func (s *session) toOne(
	ctx context.Context, op operation, given string, changes *core.ChangeOptions, dryRun bool,
) error {
	run, err := s.findRun(ctx, given, true)
	if err != nil {
		return err
	}
	done := shown.Change{Run: run.ID, Now: run.Status, Dry: dryRun}
	if dryRun {
		if s.json {
			return s.emit("change", &done)
		}
		s.line("%s would be %s; it is %s", run.ID, op.done, run.Status)
		return nil
	}
	after, outcome, err := op.one(ctx, s.runtime, run.ID, changes)
	if err != nil {
		return refused(err)
	}
	done.Now, done.Outcome = after.Status, outcome
	if after.ID != run.ID {
		done.Made = after.ID
	}
	switch {
	case s.json:
		return s.emit("change", &done)
	case outcome == runlane.TriggerReturnedExisting:
		s.line("%s was %s before, as %s, which is %s: nothing was made", run.ID, op.done, done.Made, after.Status)
	case done.Made != "":
		s.line("%s %s as %s", run.ID, op.done, done.Made)
	default:
		s.line("%s is %s", run.ID, after.Status)
	}
	return nil
}

// notGiven is a duration that a flag cannot have by accident.
const notGiven = time.Duration(math.MinInt64)

func runsPruneCommand() *command {
	return &command{
		name:  "prune",
		short: "Remove runs that ended long enough ago, with their histories",
		long: "The oldest go first. What was removed is gone. --older-than 0 means every run that has ended. Runs " +
			"that still retain an idempotency key stay, unless --release-owners is given: without them a duplicate " +
			"trigger would be let through." + askHelp,
		examples: []string{
			"runs prune --older-than 90d --dry-run",
			"runs prune --older-than 90d --status succeeded --yes",
		},
		act: func(flags *flag.FlagSet) action {
			var options core.PruneOptions
			var which statuses
			options.OlderThan = notGiven
			durationFlag(
				flags,
				&options.OlderThan,
				"older-than",
				"DURATION since the runs ended, like 90d; 0 is all that ended; required",
			)
			flags.Var(&which, "status", "STATUSES of finished runs, with commas between; all three unless given")
			flags.BoolVar(&options.ReleaseOwners, "release-owners", false, "also runs that retain an idempotency key")
			after := flags.String("after", "", "CURSOR with which an interrupted call said it could go on")
			dryRun := flags.Bool("dry-run", false, "count, and remove nothing")
			limit := flags.Int("limit", 0, "NUMBER of runs at most; all unless given")
			yes := flags.Bool("yes", false, "do not ask")
			return func(ctx context.Context, s *session, _ []string) error {
				switch {
				case options.OlderThan == notGiven:
					return usagef(
						"give a duration like 90d, or 0 for all runs that have ended; ",
						"--older-than is required",
					)
				case options.OlderThan < 0:
					return usagef("give 0 or more; ", "--older-than is %s", runlane.FormatDuration(options.OlderThan))
				case options.OlderThan == 0:
					options.OlderThan = 1 // core takes 0 for not set
				}
				if *limit < 0 {
					return usagef("", "--limit is %d", *limit)
				}
				rt, err := s.rt(ctx)
				if err != nil {
					return err
				}
				options.Statuses, options.After = which, runlane.Cursor(*after)
				call := func(ctx context.Context, after runlane.Cursor, limit int, dry bool) (*core.BulkResult, error) {
					o := options
					if dry && after == options.After {
						after = "" // the removal's cursor does not fit the count, which sees no removed runs
					}
					if dry {
						limit = runlane.MaxPageLimit // of the list; the limit applies to the runs found in it
					}
					o.After, o.Limit, o.DryRun = after, min(limit, runlane.MaxPageLimit), dry
					return rt.Runs().Prune(ctx, &o)
				}
				return s.countAndDo(ctx, bulkCall{
					call:   call,
					verb:   "remove",
					done:   "removed",
					after:  options.After,
					limit:  *limit,
					dryRun: *dryRun,
					yes:    *yes,
					stay:   "retain an idempotency key and stay",
				})
			}
		},
	}
}
