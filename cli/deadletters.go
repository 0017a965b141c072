package cli

import (
	"context"
	"flag"
	"fmt"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
)

func deadLettersCommand() *command {
	return &command{
		name:  "deadletters",
		short: "Look at wakeups that were given up, and ask for new ones",
		long:  "Their runs wait until the wakeup is requeued or the run is cancelled.",
		below: []*command{deadLettersListCommand(), deadLettersRequeueCommand()},
	}
}

func deadLettersListCommand() *command {
	return &command{
		name:     "list",
		short:    "List dead letters, the oldest first",
		examples: []string{"deadletters list --queue emails"},
		act: func(flags *flag.FlagSet) action {
			var selected filter
			selected.define(flags)
			all := flags.Bool("all", false, "every page, not only the first")
			after := flags.String("after", "", "CURSOR of the page before")
			limit := flags.Int("limit", runlane.DefaultPageLimit, "NUMBER in a page, at most 500; 50 unless given")
			return func(ctx context.Context, s *session, _ []string) error {
				rt, err := s.rt(ctx)
				if err != nil {
					return err
				}
				chosen, err := selected.build(ctx, s)
				if err != nil {
					return err
				}
				options := &core.ListOptions{RunFilter: chosen, After: runlane.Cursor(*after), Limit: *limit}
				shown, err := s.listDeadLetters(ctx, rt, options, *all)
				if err != nil {
					return err
				}
				if shown == 0 && options.After == "" {
					selected.doubt(ctx, s)
				}
				return s.showNext(options.After)
			}
		},
	}
}

func (s *session) listDeadLetters(
	ctx context.Context, rt *core.Runtime, options *core.ListOptions, all bool,
) (shown int, err error) {
	t := &table{header: []string{"RUN", "QUEUE", "TRIES", "SINCE", "FAILURE"}, shrink: 4, spare: []int{2}}
	for {
		page, err := rt.DeadLetters().List(ctx, options)
		if err != nil {
			return 0, err
		}
		for i := range page.Items {
			letter := &page.Items[i]
			if s.json {
				if err := s.emit("deadletter", letter); err != nil {
					return 0, err
				}
			}
			t.add(
				string(letter.RunID),
				string(letter.Queue),
				fmt.Sprint(letter.Attempts),
				s.when(letter.Since),
				failureText(letter.Failure),
			)
		}
		options.After = page.Next
		if page.Next == "" || !all && len(page.Items) > 0 {
			break
		}
	}
	if !s.json {
		s.write(t)
		if len(t.rows) == 0 {
			s.note("there are no dead letters")
		}
	}
	return len(t.rows), nil
}

func deadLettersRequeueCommand() *command {
	return operationCommand("requeue", "Ask for fresh wakeups of runs whose wakeups were given up",
		"Correct the cause first: \"deadletters list\" shows it.",
		[]string{"deadletters requeue run_01J8ZQ4T", "deadletters requeue --queue emails --yes"},
		operation{
			verb: "requeue",
			done: "requeued",
			one: func(
				ctx context.Context, rt *core.Runtime, id runlane.RunID, o *core.ChangeOptions,
			) (*runlane.Run, runlane.TriggerOutcome, error) {
				if err := rt.DeadLetters().Requeue(ctx, id, o); err != nil {
					return nil, "", err
				}
				run, err := rt.Runs().Get(ctx, id)
				return run, "", err
			},
			all: func(ctx context.Context, rt *core.Runtime, o *core.BulkOptions) (*core.BulkResult, error) {
				return rt.DeadLetters().RequeueAll(ctx, o)
			},
		})
}
