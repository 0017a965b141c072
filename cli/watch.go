package cli

import (
	"context"
	"flag"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
)

func runsWatchCommand() *command {
	return &command{
		name:  "watch",
		usage: "RUN",
		short: "Follow a run to its end",
		min:   1,
		max:   1,
		long: "The exit code is the run's: 0 succeeded, 1 failed, 4 cancelled. An interrupt stops the watching, " +
			"never the run. Events go to stderr.",
		examples: []string{"runs watch run_01J8ZQ4T", "runs watch run_01J8ZQ4T --timeout 10m && deploy"},
		act: func(*flag.FlagSet) action {
			return func(ctx context.Context, s *session, args []string) error {
				run, err := s.findRun(ctx, args[0], false)
				if err != nil {
					return err
				}
				return s.watch(ctx, run.ID)
			}
		},
	}
}

// watch follows a run to its end and returns the matching exit code.
func (s *session) watch(ctx context.Context, id runlane.RunID) error {
	rt, err := s.rt(ctx)
	if err != nil {
		return err
	}
	for record, err := range rt.Runs().Events(ctx, id, &core.EventOptions{Follow: true}) {
		if err != nil {
			if ctx.Err() != nil {
				s.note("the run goes on: follow it with \"runlane runs watch %s\"", id)
			}
			return err
		}
		if !s.json && record.Type() != runlane.EventLeaseHeartbeat {
			s.note("%s", s.eventText(s.stderr, &record))
		}
	}
	run, err := rt.Runs().Get(ctx, id)
	if err != nil {
		return err
	}
	if err := s.showRun(ctx, run); err != nil {
		return err
	}
	return ending(run.Status)
}

func ending(status runlane.Status) error {
	switch status.End() {
	case runlane.StatusFailed:
		return &exitError{code: ExitFailed}
	case runlane.StatusCancelled:
		return &exitError{code: ExitConflict}
	default:
		return nil
	}
}
