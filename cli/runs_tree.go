package cli

import (
	"cmp"
	"context"
	"flag"
	"fmt"

	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/internal/shown"
)

func runsTreeCommand() *command {
	return &command{
		name:  "tree",
		usage: "RUN",
		short: "Show a run with what it called, and what that called",
		min:   1,
		max:   1,
		long: fmt.Sprintf("At most %d runs are shown. Of a call, failed runs come first, then those that have not ended; the "+
			"others are counted by their status. Calls: docs/workflows.md.", core.MaxTreeShown),
		examples: []string{"runs tree run_01J8ZQ4T", "runs tree run_01J8ZQ4T --each 100 --json"},
		act: func(flags *flag.FlagSet) action {
			each := flags.Int("each", core.DefaultTreeEach, "NUMBER of runs to show of each call, 20 unless given")
			return func(ctx context.Context, s *session, args []string) error {
				if *each < 1 {
					return usagef("ask for at least 1; ", "--each is %d", *each)
				}
				run, err := s.findRun(ctx, args[0], false)
				if err != nil {
					return err
				}
				tree, err := s.runtime.Runs().Tree(ctx, run.ID, &core.TreeOptions{Each: *each})
				if err != nil {
					return err
				}
				return s.showTree(tree)
			}
		},
	}
}

func (s *session) showTree(tree *core.RunTree) error {
	if s.json {
		return s.emit("run.tree", shown.TreeOf(tree))
	}
	t := &table{
		header: []string{"RUN", "TASK", "STATUS", "DETAIL"},
		shrink: 3,
		spare:  []int{1},
		color:  map[int]func(string) string{2: statusColor},
	}
	s.addTree(t, tree, "")
	s.write(t)
	return nil
}

func (s *session) addTree(t *table, tree *core.RunTree, indent string) {
	run := tree.Run
	detail := failureText(run.Failure)
	if waits := waitingText(s, run.Waiting); waits != "" {
		detail = "waits for " + waits
	}
	t.add(indent+string(run.ID), string(run.TaskID), string(run.Status), cmp.Or(detail, s.when(run.FinishedAt)))
	for i := range tree.Calls {
		call := &tree.Calls[i]
		t.add(fmt.Sprintf("%s  %s: %d of %d ended", indent, call.Name, call.Ended, call.Count), "", "", "")
		for n := range call.Runs {
			s.addTree(t, &call.Runs[n], indent+"    ")
		}
		if more := shown.More(call); more != "" {
			t.add(indent+"    "+more, "", "", "")
		}
	}
}
