package cli

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/internal/shown"
)

func flowsCommand() *command {
	return &command{
		name:  "flows",
		short: "Look at flows, stop them, repeat what failed",
		long:  "A flow is a graph of runs: docs/workflows.md. Programs start them.",
		below: []*command{flowsListCommand(), flowsShowCommand(), flowsCancelCommand(), flowsRetryCommand()},
	}
}

type flowStatuses []runlane.FlowStatus

func (st *flowStatuses) Set(text string) error {
	found, unknown := shown.FlowStatuses(text)
	if unknown != nil {
		known := shown.FlowStatusWords()
		return usagef(
			fmt.Sprintf("%sstatuses of flows are %s; ", didYouMean(*unknown, known), strings.Join(known, ", ")),
			"there is no status %s",
			quoted(*unknown),
		)
	}
	*st = append(*st, found...)
	return nil
}

func (st *flowStatuses) String() string { return "" }

func flowsListCommand() *command {
	return &command{
		name:  "list",
		short: "List flows",
		long: "Flows that have not finished come first, by their ids, then the others, the latest first. Lists lag " +
			"a little behind \"flows show\".",
		examples: []string{"flows list --status active,waiting", "flows list --status failed --json --all"},
		act: func(flags *flag.FlagSet) action {
			var selected flowStatuses
			flags.Var(&selected, "status", "STATUSES with commas between: "+strings.Join(shown.FlowStatusWords(), ", "))
			all := flags.Bool("all", false, "every page, not only the first")
			after := flags.String("after", "", "CURSOR of the page before")
			limit := flags.Int("limit", runlane.DefaultPageLimit, "NUMBER of flows, 50 unless given")
			return func(ctx context.Context, s *session, _ []string) error {
				if *limit < 1 {
					return usagef("ask for at least 1; ", "--limit is %d", *limit)
				}
				rt, err := s.rt(ctx)
				if err != nil {
					return err
				}
				options := &core.FlowListOptions{Statuses: selected, After: runlane.Cursor(*after)}
				found, err := s.listFlows(ctx, rt, options, *limit, *all)
				if err != nil {
					return err
				}
				if found == 0 && options.After == "" && !s.json {
					s.note("no flows match")
				}
				return s.showNext(options.After)
			}
		},
	}
}

// listFlows shows flows up to the limit, or all, one page at a time. It sets options.After to the next page.
func (s *session) listFlows(
	ctx context.Context, rt *core.Runtime, options *core.FlowListOptions, limit int, all bool,
) (found int, err error) {
	var unseen []runlane.FlowState
	headed := false
	show := func() error {
		err := s.showFlows(unseen, headed)
		headed, unseen = headed || len(unseen) > 0, nil
		return err
	}
	for pages := 1; ; pages++ {
		options.Limit = runlane.MaxPageLimit
		if !all {
			options.Limit = min(limit-found, runlane.MaxPageLimit)
		}
		page, err := rt.Flows().List(ctx, options)
		if err != nil {
			return found, errors.Join(show(), err)
		}
		unseen = append(unseen, page.Items...)
		found += len(page.Items)
		options.After = page.Next
		if page.Next == "" || !all && (found >= limit || pages >= emptyPages) {
			return found, show()
		}
		if len(unseen) < runlane.MaxPageLimit {
			continue
		}
		if err := show(); err != nil {
			return found, err
		}
	}
}

func (s *session) showFlows(flows []runlane.FlowState, headed bool) error {
	if s.json {
		for i := range flows {
			if err := s.emit("flow", &flows[i]); err != nil {
				return err
			}
		}
		return s.results.Flush()
	}
	t := &table{
		header: []string{"FLOW", "STATUS", "RETRIES", "CREATED", "FINISHED"},
		shrink: 0,
		spare:  []int{2, 3},
		headed: headed,
		color:  map[int]func(string) string{1: statusColor},
	}
	for i := range flows {
		f := &flows[i]
		t.add(string(f.ID), string(f.Status), strconv.Itoa(f.Retries), s.when(f.CreatedAt), s.when(f.FinishedAt))
	}
	s.write(t)
	return s.results.Flush()
}

func flowsShowCommand() *command {
	return &command{
		name:     "show",
		usage:    "FLOW",
		short:    "Show a flow with its nodes, exactly as it is now",
		min:      1,
		max:      1,
		words:    flowNames,
		long:     "Each node is indented below its predecessors. STATUS is its run's, waits, or not made.",
		examples: []string{"flows show release-42", "flows show release-42 --mermaid"},
		act: func(flags *flag.FlagSet) action {
			mermaid := flags.Bool("mermaid", false, "only a diagram, in the language of that name")
			return func(ctx context.Context, s *session, args []string) error {
				if *mermaid && s.json {
					return usagef("leave one of them out; ", "--mermaid and --json exclude each other")
				}
				rt, err := s.rt(ctx)
				if err != nil {
					return err
				}
				state, err := rt.Flows().Get(ctx, runlane.FlowID(args[0]))
				if err != nil {
					return s.suggestFlow(ctx, args[0], err)
				}
				if *mermaid {
					s.line("%s", strings.TrimSuffix(state.Mermaid(), "\n"))
					return nil
				}
				if err := rt.Flows().ReadSizes(ctx, state); err != nil {
					return err
				}
				return s.showFlow(state)
			}
		},
	}
}

func (s *session) showFlow(state *runlane.FlowState) error {
	if s.json {
		return s.emit("flow", state)
	}
	cancelled := ""
	if state.Cancelled && !state.Status.Ended() {
		cancelled = "yes"
	}
	s.facts(
		[2]string{"flow", string(state.ID)},
		[2]string{"status", s.paint(s.stdout, statusColor(string(state.Status)), string(state.Status))},
		[2]string{"cancelled", cancelled},
		[2]string{"retries", numberText(state.Retries)},
		[2]string{"created", s.at(state.CreatedAt)},
		[2]string{"finished", s.at(state.FinishedAt)},
	)
	s.line("")
	t := &table{
		header: []string{"NODE", "STATUS", "AFTER", "OUTPUT", "RUN", "DETAIL"},
		shrink: 5,
		spare:  []int{3, 4},
		color:  map[int]func(string) string{1: statusColor},
	}
	depth := shown.Depths(state)
	for i := range state.Nodes {
		n := &state.Nodes[i]
		detail := failureText(n.Failure)
		if !n.Waiting.Has(runlane.WaitingEnds) && n.Waiting != nil {
			detail = "waits for " + waitingText(s, n.Waiting)
		}
		size := ""
		if n.OutputBytes > 0 {
			size = sizeText(n.OutputBytes)
		}
		t.add(strings.Repeat("  ", depth[n.Name])+n.Name, n.Words(), shown.After(n), size, string(n.RunID), detail)
	}
	s.write(t)
	return nil
}

func numberText(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

func sizeText(bytes int) string {
	if bytes < 10_000 {
		return plural(bytes, "byte", "bytes")
	}
	return fmt.Sprintf("%d kB", (bytes+500)/1000)
}

func flowsCancelCommand() *command {
	return &command{
		name:  "cancel",
		usage: "FLOW",
		short: "Stop a flow",
		min:   1,
		max:   1,
		words: flowNames,
		long: "Runs that have not ended are cancelled. Nodes that go on if others failed, or always, still run and " +
			"undo what had begun.",
		examples: []string{"flows cancel release-42 --reason \"wrong branch\""},
		act: func(flags *flag.FlagSet) action {
			var by change
			by.define(flags)
			everything := flags.Bool("everything", false, "end nodes that undo, too")
			return func(ctx context.Context, s *session, args []string) error {
				rt, changes, err := by.begin(ctx, s)
				if err != nil {
					return err
				}
				state, err := rt.Flows().Cancel(ctx, runlane.FlowID(args[0]), &core.CancelFlowOptions{
					ChangeOptions: changes,
					Everything:    *everything,
				})
				if err != nil {
					return refused(s.suggestFlow(ctx, args[0], err))
				}
				if s.json {
					return s.emit("flow.change", shown.FlowChangeOf(state, nil))
				}
				s.line("%s is %s", state.ID, state.Status)
				var undo, stopping []string
				for i := range state.Nodes {
					n := &state.Nodes[i]
					switch {
					case !shown.OpenNode(n):
					case n.Status == runlane.StatusCancellationRequested:
						stopping = append(stopping, n.Name)
					default:
						undo = append(undo, n.Name)
					}
				}
				if len(stopping) > 0 {
					s.line("asked to stop: %s", strings.Join(stopping, ", "))
				}
				if len(undo) > 0 {
					s.line("still to run: %s; --everything ends them, too", strings.Join(undo, ", "))
				}
				return nil
			}
		},
	}
}

func flowsRetryCommand() *command {
	return &command{
		name:  "retry",
		usage: "FLOW",
		short: "Repeat a finished flow's nodes that did not succeed, and later ones",
		min:   1,
		max:   1,
		words: flowNames,
		long: "Nodes that succeeded stay. The new runs have the payloads of the old ones. A flow in which a node " +
			"ran because others failed is refused, since the retry cannot redo what it undid: start another flow, " +
			"or use --nothing-undone.",
		examples: []string{
			"flows retry release-42 --dry-run",
			"flows retry release-42 --reason \"the printer has paper\"",
			"flows retry release-42 --nothing-undone",
		},
		act: func(flags *flag.FlagSet) action {
			var by change
			by.define(flags)
			dryRun := flags.Bool("dry-run", false, "name the nodes, and make no runs")
			number := flags.Int("number", 0, "RETRY to make, at most once: the flow's retries plus one; 0: the next")
			nothingUndone := flags.Bool("nothing-undone", false, "nodes that ran because others failed undid nothing")
			return func(ctx context.Context, s *session, args []string) error {
				rt, changes, err := by.begin(ctx, s)
				if err != nil {
					return err
				}
				id := runlane.FlowID(args[0])
				options := &core.RetryFlowOptions{
					ChangeOptions: changes, Number: *number, NothingUndone: *nothingUndone,
				}
				renewed, err := rt.Flows().PlanRetry(ctx, id, options)
				if err != nil {
					return refused(s.suggestFlow(ctx, args[0], err))
				}
				var state *runlane.FlowState
				if *dryRun {
					state, err = rt.Flows().Get(ctx, id)
				} else {
					state, err = rt.Flows().Retry(ctx, id, options)
				}
				if err != nil {
					return refused(err)
				}
				done := shown.FlowChangeOf(state, renewed)
				done.Dry = *dryRun
				switch {
				case s.json:
					return s.emit("flow.change", done)
				case *dryRun:
					s.line("%s would get new runs for %s; it is %s", id, strings.Join(renewed, ", "), state.Status)
				default:
					s.line("%s is %s, with new runs for %s", id, state.Status, strings.Join(renewed, ", "))
				}
				return nil
			}
		},
	}
}

// suggestFlow adds the nearest ID to the error about an unknown flow.
func (s *session) suggestFlow(ctx context.Context, given string, err error) error {
	if !errors.Is(err, runlane.ErrFlowNotFound) {
		return err
	}
	if name, ok := nearest(given, flowNames(ctx, s)); ok {
		return &withNext{cause: err, next: fmt.Sprintf("did you mean %q?", name)}
	}
	return err
}

// flowNames returns IDs of the first flows, open and finished.
func flowNames(ctx context.Context, s *session) (names []string) {
	rt, err := s.rt(ctx)
	if err != nil {
		return nil // completion shows no errors
	}
	options := core.FlowListOptions{Limit: runlane.MaxPageLimit}
	for range 2 {
		page, err := rt.Flows().List(ctx, &options)
		if err != nil {
			return names
		}
		for i := range page.Items {
			names = append(names, string(page.Items[i].ID))
		}
		if options.After = page.Next; page.Next == "" {
			break
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
