package cli

import (
	"cmp"
	"context"
	"flag"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/internal/shown"
)

// change holds the actor and reason of a change.
type change struct{ actor, reason string }

func (c *change) define(set *flag.FlagSet) {
	set.StringVar(&c.actor, "actor", "", "NAME of the actor, kept with the change; else RUNLANE_ACTOR, else USER")
	set.StringVar(&c.reason, "reason", "", "TEXT of the reason, kept with the change")
}

// options checks the limits of core here, so that any later refusal by core is about the run.
func (c *change) options(s *session) (core.ChangeOptions, error) {
	actor, err := s.actor(c.actor)
	if err == nil && len(c.reason) > runlane.MaxReasonBytes {
		err = usagef("shorten it; ", "--reason has %d bytes, more than %d", len(c.reason), runlane.MaxReasonBytes)
	}
	return core.ChangeOptions{Actor: actor, Reason: c.reason}, err
}

// begin returns the runtime, and who changes something there and why.
func (c *change) begin(ctx context.Context, s *session) (*core.Runtime, core.ChangeOptions, error) {
	changes, err := c.options(s)
	if err != nil {
		return nil, changes, err
	}
	rt, err := s.rt(ctx)
	return rt, changes, err
}

// actor returns the person at the keyboard.
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

// operation applies to one run, or to all runs that match a filter.
type operation struct {
	verb, done string // "cancel", "cancelled"
	one        operateOne
	all        func(context.Context, *core.Runtime, *core.BulkOptions) (*core.BulkResult, error)
}

// operateOne returns the changed run, or the new run made from it. Only a new run has an outcome.
type operateOne func(
	context.Context, *core.Runtime, runlane.RunID, *core.ChangeOptions,
) (*runlane.Run, runlane.TriggerOutcome, error)

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
		"Skips the rest of a delay, of a retry's backoff, or of a release. Counters and failures stay. A handler "+
			"that sleeps or waits checks again, and may wait on.",
		[]string{
			"runs resume run_01J8ZQ4T --reason \"the quota was raised\"",
			"runs resume --status retrying --queue emails --dry-run",
		},
		runsOperation("resume", "resumed", resumeOne, (*core.Runs).ResumeAll))
}

const askTwice = "Asking twice makes one run: to repeat again, repeat the new run."

func runsRetryCommand() *command {
	return operationCommand("retry", "Repeat failed runs, as new runs",
		"The new run goes on from what the failed one remembers (steps, answers, calls that succeeded; "+
			"docs/operating.md, Repeating), takes over its idempotency key, and has the task's whole retry budget; "+
			"rerun starts over. "+askTwice,
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

// each applies the operation to the named runs, even after a failure. The command exits with the code of the first
// failure.
func (s *session) each(
	ctx context.Context, op operation, args []string, changes *core.ChangeOptions, dryRun bool,
) error {
	code := ExitOK
	for n, given := range args {
		err := s.changeOneRun(ctx, op, given, changes, dryRun)
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
		return &exitError{code: code}
	}
	return nil
}

func (s *session) changeOneRun(
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

// notGiven marks an unset duration flag. No user can enter it.
const notGiven = time.Duration(math.MinInt64)

// pruneOrphans removes bodies without a run: no run can need them, so it does not ask.
func (s *session) pruneOrphans(ctx context.Context, dryRun bool) error {
	rt, err := s.rt(ctx)
	if err != nil {
		return err
	}
	found, err := rt.Runs().OrphanedBodies(ctx, &core.OrphanOptions{Remove: !dryRun})
	if err != nil {
		return err
	}
	if s.json {
		return s.emit("orphans", found)
	}
	s.line("%d of %d bodies belong to no run, with %d bytes; %d removed", found.Orphans, found.Seen, found.Bytes, found.Removed)
	return nil
}

// keptRuns counts what ticks will remove by the rule in force.
func (s *session) keptRuns(ctx context.Context, limit int) error {
	rt, err := s.rt(ctx)
	if err != nil {
		return err
	}
	keeping, err := rt.Runs().Keeping(ctx, cmp.Or(limit, runlane.MaxPageLimit))
	if err != nil {
		return err
	}
	seen := shown.KeepingOf(keeping)
	if s.json {
		return s.emit("keeping", seen)
	}
	s.line("finished runs are kept %s", seen.Keep)
	for _, id := range slices.Sorted(maps.Keys(seen.Tasks)) {
		s.line("%s: %s", id, seen.Tasks[id])
	}
	for _, of := range seen.Overdue {
		s.line("past their time: %s of %s", plural(of.Runs, of.Status+" run", of.Status+" runs"), of.TaskID)
	}
	switch {
	case seen.More:
		s.line("there are more")
	case len(seen.Overdue) == 0:
		s.line("no run is past its time")
	}
	return nil
}

func runsPruneCommand() *command {
	return &command{
		name:  "prune",
		short: "Remove runs that ended long enough ago, with their histories",
		long: "The oldest go first. Runs that still retain an idempotency key stay, unless --release-owners is given: " +
			"without them a duplicate trigger would be accepted. Without an age, --dry-run counts what ticks will remove." +
			askHelp,
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
				"DURATION since the runs ended, like 90d; 0 is all that ended; required without --dry-run",
			)
			flags.Var(&which, "status", "STATUSES of finished runs, with commas between; all three unless given")
			flags.BoolVar(&options.ReleaseOwners, "release-owners", false, "also runs that retain an idempotency key")
			after := flags.String("after", "", "CURSOR from an interrupted call, to continue it")
			dryRun := flags.Bool("dry-run", false, "count, and remove nothing")
			limit := flags.Int("limit", 0, "NUMBER of runs at most; all unless given")
			yes := flags.Bool("yes", false, "do not ask")
			orphans := flags.Bool("orphans", false, "remove large bodies that belong to no run, and nothing else")
			return func(ctx context.Context, s *session, _ []string) error {
				switch {
				case *orphans && options.OlderThan == notGiven:
					return s.pruneOrphans(ctx, *dryRun)
				case *dryRun && options.OlderThan == notGiven:
					if len(which) > 0 || *after != "" || options.ReleaseOwners {
						return usagef("give --older-than, too; ", "without it, --dry-run takes --limit only")
					}
					return s.keptRuns(ctx, *limit)
				case *orphans:
					return usagef("give one of them; ", "--orphans and --older-than exclude each other")
				case options.OlderThan == notGiven:
					return usagef(
						"give a duration like 90d, or 0 for all runs that have ended; ",
						"--older-than is required",
					)
				case options.OlderThan < 0:
					return usagef("give 0 or more; ", "--older-than is %s", runlane.FormatDuration(options.OlderThan))
				case options.OlderThan == 0:
					options.OlderThan = 1 // core treats 0 as unset
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
						after = "" // the cursor of a removal is not valid for a count, which never sees removed runs
					}
					if dry {
						limit = runlane.MaxPageLimit // of the list; the user's limit applies to matching runs
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
