package cli

import (
	"cmp"
	"context"
	"flag"
	"strconv"
	"strings"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/internal/shown"
)

func runsCommand() *command {
	return &command{name: "runs", short: "Look at runs, stop them, repeat them, remove them", below: []*command{
		runsListCommand(), runsGetCommand(), runsEventsCommand(), runsAttemptsCommand(), runsStepsCommand(),
		runsLogsCommand(),
		runsReceiptsCommand(),
		runsTreeCommand(),
		runsExplainCommand(),
		runsWatchCommand(),
		runsSignalCommand(), runsAnswerCommand(),
		runsCancelCommand(), runsResumeCommand(), runsRetryCommand(), runsRerunCommand(), runsPruneCommand(),
	}}
}

// emptyPages limits the empty pages that are skipped before the user decides whether to continue.
const emptyPages = 20

func runsListCommand() *command {
	return &command{
		name:  "list",
		short: "List runs",
		long: "Active runs come first, by when they next need attention, then finished ones, the newest first. " +
			"Lists lag a little behind \"runs get\". ABOUT is why a run failed, its concurrency key, what it waits " +
			"for or asks, and the schedule or flow that made it.",
		examples: []string{
			"runs list --status failed --task emails.welcome",
			"runs list --status active --json --all",
			"runs list --waiting input",
		},
		act: func(flags *flag.FlagSet) action {
			var selected filter
			selected.define(flags)
			all := flags.Bool("all", false, "every page, not only the first")
			after := flags.String("after", "", "CURSOR of the page before")
			limit := flags.Int("limit", runlane.DefaultPageLimit, "NUMBER of runs, 50 unless given")
			return func(ctx context.Context, s *session, _ []string) error {
				if *limit < 1 {
					return usagef("ask for at least 1; ", "--limit is %d", *limit)
				}
				rt, err := s.rt(ctx)
				if err != nil {
					return err
				}
				chosen, err := selected.build(ctx, s)
				if err != nil {
					return err
				}
				options := &core.ListOptions{RunFilter: chosen, After: runlane.Cursor(*after)}
				shown, err := s.listRuns(ctx, rt, options, *limit, *all)
				if err != nil {
					return err
				}
				if shown == 0 && options.After == "" {
					if !s.json {
						s.note("no runs match")
					}
					selected.doubt(ctx, s)
					if hint := otherEnvironments(ctx, rt); hint != "" {
						s.note("%s", hint)
					}
				}
				return s.showNext(options.After)
			}
		},
	}
}

// listRuns shows runs page by page up to the limit, or all. It sets options.After to the next page.
func (s *session) listRuns(
	ctx context.Context, rt *core.Runtime, options *core.ListOptions, limit int, all bool,
) (shown int, err error) {
	empty := 0
	for {
		options.Limit = runlane.MaxPageLimit
		if !all {
			options.Limit = min(limit-shown, runlane.MaxPageLimit)
		}
		page, err := rt.Runs().List(ctx, options)
		if err != nil {
			return shown, err
		}
		var retries map[runlane.RunID]*runlane.Run
		if !s.json {
			if retries, err = rt.Runs().Retries(ctx, page.Items); err != nil {
				return shown, err
			}
		}
		if err := s.showRuns(page.Items, retries, shown > 0, options.Waiting == runlane.WaitingInput); err != nil {
			return shown, err
		}
		shown += len(page.Items)
		options.After = page.Next
		if len(page.Items) == 0 {
			empty++
		}
		// A short page is not filled up: the user can ask for the next one.
		if page.Next == "" ||
			!all && (shown >= limit || shown > 0 && limit <= runlane.MaxPageLimit || empty >= emptyPages) {
			return shown, nil
		}
	}
}

// showRuns shows a page of runs, and by what failed ones were retried. With asked it includes the questions that runs
// ask a person.
func (s *session) showRuns(
	runs []runlane.RunSummary, retries map[runlane.RunID]*runlane.Run, headed, asked bool,
) error {
	if s.json {
		for i := range runs {
			if err := s.emit("run.summary", &runs[i]); err != nil {
				return err
			}
		}
		return s.results.Flush()
	}
	t := &table{
		header: []string{"RUN", "STATUS", "TASK", "TRIES", "AGE", "DUE/ENDED", "ABOUT"},
		shrink: about,
		least:  leastAbout,
		spare:  []int{3, 4},
		headed: headed,
		color:  map[int]func(string) string{1: statusColor},
	}
	if s.absolute {
		t.header[4] = "CREATED"
	}
	if asked {
		t.header[about] = "QUESTION"
	}
	for i := range runs {
		run := &runs[i]
		age, text := instant(run.CreatedAt), aboutRun(run)
		if retries[run.ID] != nil {
			text = "retried, " + text
		}
		if !s.absolute {
			age = rough(s.now().Sub(run.CreatedAt))
		}
		if asked {
			text = shown.Asked(run.Waiting)
		}
		t.add(string(run.ID), string(run.Status), string(run.TaskID), strconv.Itoa(run.Counters.Attempts), age,
			s.when(dueOrEnded(run)), shortened(text, longestAbout))
	}
	s.write(t)
	return s.results.Flush()
}

// about is the column that says what a run is about.
const (
	about        = 6
	leastAbout   = 16
	longestAbout = 60
)

// aboutRun returns what tells a run from others of its task: why it failed, its key, what it waits for, what made it.
func aboutRun(run *runlane.RunSummary) string {
	var parts []string
	add := func(prefix, text string) {
		if text != "" {
			parts = append(parts, prefix+text)
		}
	}
	add("", string(run.FailureCode))
	add("key ", run.ConcurrencyKey)
	if asks := shown.Asked(run.Waiting); asks != "" {
		add("asks: ", asks)
	} else {
		add("for ", shown.WaitsFor(run.Waiting))
	}
	add("schedule ", string(run.Source.ScheduleID))
	if run.Source.FlowID != "" {
		add("flow ", string(run.Source.FlowID)+"/"+run.Source.Node)
	}
	return strings.Join(parts, ", ")
}

func dueOrEnded(run *runlane.RunSummary) time.Time {
	return cmp.Or(run.FinishedAt, knownDue(run.RunAt))
}
