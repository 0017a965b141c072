package cli

import (
	"context"
	"errors"
	"flag"

	"github.com/runlane/runlane-go"
)

func idempotencyCommand() *command {
	return &command{
		name: "idempotency", short: "Look at the owner of an idempotency key, and free it",
		below: []*command{
			{
				name: "get", usage: "TASK KEY", short: "Show the run that owns a key", min: 2, max: 2,
				words: taskNames, examples: []string{"idempotency get emails.welcome u_1"},
				act: func(*flag.FlagSet) action { return getKey },
			},
			{
				name: "reset", usage: "TASK KEY", short: "Free a key that a finished run still retains", min: 2, max: 2,
				long:  "The next trigger with the key makes a new run. A key of an active run stays: cancel the run first.",
				words: taskNames, examples: []string{"idempotency reset emails.welcome u_1"},
				act: func(*flag.FlagSet) action { return resetKey },
			},
		},
	}
}

func getKey(ctx context.Context, s *session, args []string) error {
	rt, err := s.rt(ctx)
	if err != nil {
		return err
	}
	run, err := rt.Runs().FindCurrent(ctx, runlane.TaskID(args[0]), args[1])
	if err != nil {
		return unowned(err)
	}
	return s.showRun(ctx, run)
}

func resetKey(ctx context.Context, s *session, args []string) error {
	rt, err := s.rt(ctx)
	if err != nil {
		return err
	}
	if err := rt.IdempotencyKeys().Reset(ctx, runlane.TaskID(args[0]), args[1]); err != nil {
		return unowned(err)
	}
	if s.json {
		freed := struct {
			Task runlane.TaskID `json:"taskId"`
			Key  string         `json:"idempotencyKey"`
		}{runlane.TaskID(args[0]), args[1]}
		return s.emit("key.reset", &freed)
	}
	s.line("the key is free")
	return nil
}

func unowned(err error) error {
	if errors.Is(err, runlane.ErrRunNotFound) {
		return &withNext{cause: err, next: "nothing has to be freed: no run of this task and environment owns the key"}
	}
	return err
}
