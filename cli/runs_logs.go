package cli

import (
	"context"
	"flag"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/internal/shown"
)

func runsLogsCommand() *command {
	return &command{
		name:  "logs",
		usage: "RUN",
		short: "Show what the attempts of a run logged",
		min:   1,
		max:   1,
		long: "Each line has its time, its attempt, its level, its message and its attributes. Only tasks with KeepLogs " +
			"keep what their attempts log: docs/tasks.md.",
		examples: []string{"runs logs run_01J8ZQ4T", "runs logs run_01J8ZQ4T --attempt 2 -f"},
		act: func(flags *flag.FlagSet) action {
			var options core.LogOptions
			flags.BoolVar(&options.Follow, "follow", false, "wait for more until the run, or the attempt, has ended")
			flags.BoolVar(&options.Follow, "f", false, "the same as --follow")
			flags.IntVar(&options.Attempt, "attempt", 0, "NUMBER of the only attempt to show")
			after := flags.String("after", "", "CURSOR of the last line that was seen, as --json shows it")
			return func(ctx context.Context, s *session, args []string) error {
				if options.Attempt < 0 {
					return usagef("attempts count from 1; ", "--attempt is %d", options.Attempt)
				}
				run, err := s.findRun(ctx, args[0], false)
				if err != nil {
					return err
				}
				options.After = runlane.Cursor(*after)
				return s.logs(ctx, run, &options)
			}
		},
	}
}

func (s *session) logs(ctx context.Context, run *runlane.Run, options *core.LogOptions) error {
	found := false
	for line, err := range s.runtime.Runs().Logs(ctx, run.ID, options) {
		if err != nil {
			return err
		}
		found = true
		if s.json {
			err = s.emit("log", &line)
		} else {
			s.line("%s", s.logText(&line))
		}
		if err == nil {
			err = s.results.Flush() // a user may be watching
		}
		if err != nil {
			return err
		}
	}
	if !found && !s.json && options.After == "" {
		s.note("run %s has no log: its task keeps none (KeepLogs), or nothing was logged yet", run.ID)
	}
	return nil
}

// logText is a line for a terminal. Attributes stay JSON, in their order. On a narrow terminal it is several lines.
func (s *session) logText(line *core.LogLine) string {
	attempt := fmt.Sprintf("#%d", line.Attempt)
	switch {
	case line.Fault != "":
		return attempt + "  lines cannot be read here: " + shown.Printable(line.Fault)
	case line.Dropped > 0:
		return fmt.Sprintf("%s  %s dropped", attempt, plural(line.Dropped, "line was", "lines were"))
	}
	said := shown.LogTextOf(line.Line)
	var rest []string
	for _, attribute := range said.Attributes {
		rest = append(rest, shown.Printable(attribute))
	}
	head := fmt.Sprintf("%s  %s  %-5s", shown.Printable(said.At), attempt, shown.Printable(said.Level))
	detail := shown.Printable(said.Message) + "  " + strings.Join(rest, " ")
	text := strings.TrimRight(head+"  "+detail, " ")
	if columns, ok := s.width(s.stdout); ok && utf8.RuneCountInString(text) > columns {
		return strings.TrimRight(head, " ") + "\n" + wrapped(detail, strings.Repeat(" ", 5), columns)
	}
	return text
}
