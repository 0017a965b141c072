package cli

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strings"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/internal/shown"
)

func schedulesCommand() *command {
	return &command{
		name:  "schedules",
		short: "Look at schedules, pause and resume them",
		long:  "Next, resume and trigger need the program that defines the schedule.",
		below: []*command{
			schedulesListCommand(), schedulesNextCommand(), schedulesChangeCommand("pause"),
			schedulesChangeCommand("resume"),
			schedulesTriggerCommand(),
		},
	}
}

func schedulesListCommand() *command {
	return &command{
		name:  "list",
		short: "List schedules",
		long: "STATE is active, paused, new (not stored yet) or elsewhere (another program defines it, and knows " +
			"WHEN). --absolute shows its times in its zone.",
		examples: []string{"schedules list"},
		act: func(*flag.FlagSet) action {
			return func(ctx context.Context, s *session, _ []string) error {
				rt, err := s.rt(ctx)
				if err != nil {
					return err
				}
				t := &table{
					header: []string{"SCHEDULE", "STATE", "WHEN", "LAST", "NEXT", "LAST RUN"},
					shrink: 2,
					spare:  []int{5, 3},
				}
				for state, err := range rt.Schedules().List(ctx) {
					if err != nil {
						return err
					}
					if s.json {
						if err := s.emit("schedule", &state); err != nil {
							return err
						}
					}
					when, known := rt.Schedules().When(state.ID)
					text, next := "", s.whenIn(state.Next, when.Location())
					if known {
						text = strings.TrimPrefix(when.String(), "cron ")
					}
					if state.Paused {
						next = "" // a paused schedule does not fire
					}
					t.add(
						string(state.ID),
						scheduleText(&state),
						text,
						s.whenIn(state.LastFire, when.Location()),
						next,
						string(state.LastRunID),
					)
				}
				if s.json {
					return nil
				}
				s.write(t)
				if len(t.rows) == 0 {
					s.note("there are no schedules")
				}
				return nil
			}
		},
	}
}

func scheduleText(state *core.ScheduleState) string {
	switch {
	case state.Paused:
		return "paused"
	case !state.Known:
		return "elsewhere"
	case state.RegisteredAt.IsZero():
		return "new"
	default:
		return "active"
	}
}

func schedulesNextCommand() *command {
	return &command{
		name:     "next",
		usage:    "SCHEDULE",
		short:    "Show when a schedule fires next",
		min:      1,
		max:      1,
		words:    scheduleNames,
		examples: []string{"schedules next nightly --count 10"},
		act: func(flags *flag.FlagSet) action {
			count := flags.Int("count", 5, "NUMBER of times, 1 to 1000; 5 unless given")
			return func(ctx context.Context, s *session, args []string) error {
				rt, err := s.rt(ctx)
				if err != nil {
					return err
				}
				times, err := rt.Schedules().Preview(runlane.ScheduleID(args[0]), *count)
				if err != nil {
					return s.suggestSchedule(ctx, args[0], err)
				}
				when, _ := rt.Schedules().When(runlane.ScheduleID(args[0]))
				for _, at := range times {
					if !s.json {
						s.line("%s", s.atIn(at, when.Location()))
						continue
					}
					if err := s.emit("fire", shown.Fire{ID: runlane.ScheduleID(args[0]), At: at}); err != nil {
						return err
					}
				}
				if len(times) == 0 {
					s.note("it fires no more")
				}
				return nil
			}
		},
	}
}

func schedulesChangeCommand(verb string) *command {
	short := "Stop a schedule from firing, in every process"
	if verb == "resume" {
		short = "Let a paused schedule fire again; what came due meanwhile is skipped"
	}
	return &command{
		name:     verb,
		usage:    "SCHEDULE",
		short:    short,
		min:      1,
		max:      1,
		words:    scheduleNames,
		examples: []string{"schedules " + verb + " nightly --reason \"migration\""},
		act: func(flags *flag.FlagSet) action {
			var by change
			by.define(flags)
			return func(ctx context.Context, s *session, args []string) error {
				rt, changes, err := by.begin(ctx, s)
				if err != nil {
					return err
				}
				id, change := runlane.ScheduleID(args[0]), rt.Schedules().Pause
				if verb == "resume" {
					change = rt.Schedules().Resume
				}
				if err := change(ctx, id, &changes); err != nil {
					return s.suggestSchedule(ctx, args[0], err)
				}
				state, err := rt.Schedules().Get(ctx, id)
				if err != nil {
					return err
				}
				if s.json {
					return s.emit("schedule", state)
				}
				s.line("%s is %s", id, scheduleText(state))
				return nil
			}
		},
	}
}

func schedulesTriggerCommand() *command {
	return &command{
		name:     "trigger",
		usage:    "SCHEDULE",
		short:    "Make a run of a schedule at once",
		min:      1,
		max:      1,
		words:    scheduleNames,
		examples: []string{"schedules trigger nightly --wait"},
		act: func(flags *flag.FlagSet) action {
			var by change
			by.define(flags)
			wait := flags.Bool("wait", false, "follow the run to its end")
			return func(ctx context.Context, s *session, args []string) error {
				rt, changes, err := by.begin(ctx, s)
				if err != nil {
					return err
				}
				run, err := rt.Schedules().TriggerNow(ctx, runlane.ScheduleID(args[0]), &changes)
				if err != nil {
					return s.suggestSchedule(ctx, args[0], err)
				}
				made := shown.TriggeredOf(&runlane.TriggerResult{Run: run, Outcome: runlane.TriggerCreated}, 0)
				if err := s.showTriggered(made, *wait); err != nil || !*wait {
					return err
				}
				return s.watch(ctx, run.ID)
			}
		},
	}
}

// suggestSchedule adds the nearest name to the error about an unknown schedule.
func (s *session) suggestSchedule(ctx context.Context, given string, err error) error {
	if !errors.Is(err, runlane.ErrScheduleNotFound) {
		return err
	}
	var names []string
	for state, listErr := range s.runtime.Schedules().List(ctx) {
		if listErr != nil {
			return err
		}
		if string(state.ID) == given {
			return &withNext{
				cause: err,
				next:  "the schedule is known, its definition is not: use the program that has it",
			}
		}
		names = append(names, string(state.ID))
	}
	if name, ok := nearest(given, names); ok {
		return &withNext{cause: err, next: fmt.Sprintf("did you mean %q?", name)}
	}
	return err
}

func scheduleNames(ctx context.Context, s *session) []string {
	rt, err := s.rt(ctx)
	if err != nil {
		return nil // completion shows no errors
	}
	var names []string
	for state, err := range rt.Schedules().List(ctx) {
		if err != nil {
			break
		}
		names = append(names, string(state.ID))
	}
	return names
}
