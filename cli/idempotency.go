package cli

import (
	"context"
	"errors"
	"flag"
	"slices"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/shown"
)

func idempotencyCommand() *command {
	return &command{
		name: "idempotency", short: "Look at the owner of an idempotency key, and free it",
		below: []*command{
			{
				name:     "get",
				usage:    "TASK KEY",
				short:    "Show the run that owns a key",
				min:      2,
				max:      2,
				words:    taskNames,
				examples: []string{"idempotency get emails.welcome u_1"},
				act:      func(*flag.FlagSet) action { return getKey },
			},
			{
				name:     "reset",
				usage:    "TASK KEY",
				short:    "Free a key that a finished run still retains",
				min:      2,
				max:      2,
				long:     "The next trigger with the key makes a new run. Cancel an active run first.",
				words:    taskNames,
				examples: []string{"idempotency reset emails.welcome u_1"},
				act:      func(*flag.FlagSet) action { return resetKey },
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
		return s.explainUnowned(ctx, args[0], err)
	}
	return s.showRun(ctx, run)
}

func resetKey(ctx context.Context, s *session, args []string) error {
	rt, err := s.rt(ctx)
	if err != nil {
		return err
	}
	if err := rt.IdempotencyKeys().Reset(ctx, runlane.TaskID(args[0]), args[1]); err != nil {
		return s.explainUnowned(ctx, args[0], err)
	}
	if s.json {
		return s.emit("key.reset", shown.KeyReset{Task: runlane.TaskID(args[0]), Key: args[1]})
	}
	s.line("the key is free")
	return nil
}

// explainUnowned adds a hint to the error about a key without an owner: the task's name may be wrong.
func (s *session) explainUnowned(ctx context.Context, task string, err error) error {
	if !errors.Is(err, runlane.ErrRunNotFound) {
		return err
	}
	next := "nothing has to be freed: no run of this task and environment owns the key"
	known := taskNames(ctx, s)
	if name, ok := nearest(task, known); ok && !slices.Contains(known, task) {
		next = "no task " + quoted(task) + " is known here: did you mean " + quoted(name) + "?"
	}
	return &withNext{cause: err, next: next}
}
