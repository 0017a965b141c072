package cli

import (
	"context"
	"flag"
	"slices"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/internal/shown"
	"github.com/runlane/runlane-go/lane"
)

// pauseCommand pauses a "queue" or a "task".
func pauseCommand(what string) *command {
	return &command{
		name: "pause", usage: "NAME", min: 1, max: 1, words: pausable(what),
		short: "Keep runs of a " + what + " from starting, in every process",
		long: "Runs are still made, and attempts in progress go on. Every process knows within 5 s. Pausing again " +
			"replaces the end and the reason.",
		examples: []string{what + "s pause emails --for 2h --reason \"a fault downstream\""},
		act: func(flags *flag.FlagSet) action {
			var by change
			var until time.Time
			var length time.Duration
			by.define(flags)
			timeFlag(flags, &until, "until", "TIME at which the pause ends; else it lasts until \"resume\"")
			timeoutFlag(flags, &length, "for", "DURATION of the pause, like 90s or 2h")
			return func(ctx context.Context, s *session, args []string) error {
				switch {
				case length > 0 && !until.IsZero():
					return usagef("use one of them; ", "--for and --until exclude each other")
				case !until.IsZero() && !until.After(s.now()):
					return usagef("use a later time, or --for; ", "--until has passed")
				}
				rt, changes, err := by.begin(ctx, s)
				if err != nil {
					return err
				}
				if length > 0 {
					until = s.now().Add(length)
				}
				known := pausable(what)(ctx, s) // before the pause: it makes a queue known
				options := &core.PauseOptions{ChangeOptions: changes, Until: until}
				if what == "task" {
					err = s.showPause(rt.Tasks().Pause(ctx, runlane.TaskID(args[0]), options))
				} else {
					err = s.showPause(rt.Queues().Pause(ctx, runlane.QueueName(args[0]), options))
				}
				if err == nil && !slices.Contains(known, args[0]) {
					s.note("no known program has %s %s, though a new one may; %s\"runlane %ss list\" shows the known ones",
						what, quoted(args[0]), didYouMean(args[0], known), what)
				}
				return err
			}
		},
	}
}

func resumeCommand(what string) *command {
	return &command{
		name: "resume", usage: "NAME", min: 1, max: 1, words: pausable(what),
		short:    "Let runs of a paused " + what + " start again",
		long:     "The first ones start at once, all others with the next ticks.",
		examples: []string{what + "s resume emails"},
		act: func(flags *flag.FlagSet) action {
			var by change
			by.define(flags)
			return func(ctx context.Context, s *session, args []string) error {
				rt, changes, err := by.begin(ctx, s)
				if err != nil {
					return err
				}
				if what == "task" {
					return s.showPause(rt.Tasks().Resume(ctx, runlane.TaskID(args[0]), &changes))
				}
				return s.showPause(rt.Queues().Resume(ctx, runlane.QueueName(args[0]), &changes))
			}
		},
	}
}

func pausable(what string) func(context.Context, *session) []string {
	if what == "task" {
		return taskNames
	}
	return queueNames
}

func (s *session) showPause(p *lane.Pause, err error) error {
	if err != nil {
		return err
	}
	if s.json {
		return s.emit("pause", shown.PauseOf(p))
	}
	s.line("%s", s.pauseText(p))
	return nil
}

func (s *session) notePause(p *lane.Pause) {
	if p != nil {
		s.note("%s", s.pauseText(p))
	}
}

func (s *session) pauseText(p *lane.Pause) string {
	if !p.Active(s.now()) {
		return p.Name() + " is resumed; its runs get their wakeups"
	}
	text := p.Name() + " is paused until someone resumes it"
	if !p.Until.IsZero() {
		text = p.Name() + " is paused until " + s.at(p.Until)
	}
	if p.Actor.ID != "" {
		text += ", by " + p.Actor.ID
	}
	if p.Reason != "" {
		text += ": " + quoted(p.Reason)
	}
	return text
}
