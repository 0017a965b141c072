package cli

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"strings"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/internal/doctor"
	"github.com/runlane/runlane-go/internal/shown"
)

// Check is one check of doctor. Programs add their own with [Options].
type Check struct {
	// Name describes the check in a few words.
	Name string
	// Run returns a text if all is well, or an error with the problem as its message and the fix as its hint. The
	// runtime is nil if it could not be opened. Run must be harmless and end with the context.
	Run func(ctx context.Context, rt *core.Runtime) (detail string, err error)
}

func doctorCommand() *command {
	return &command{
		name:  "doctor",
		short: "Check whether everything works, and how to fix it",
		long: "Checks configuration, schema, access, queues, work that no worker takes, dead letters, and the " +
			"storage's invariants; of a table also the clock and events that a bus refused; of a file also format, " +
			"every page, log, room on the disk and syncing. Writes that try access change nothing. The exit code is " +
			"that of the first failed check.",
		examples: []string{"doctor", "doctor --all --json"},
		act: func(flags *flag.FlagSet) action {
			all := flags.Bool("all", false, "check the invariants of every run, not of a sample")
			sample := flags.Int("sample", 20, "NUMBER of runs whose events are projected again; 20 unless given")
			publish := flags.Bool(
				"publish",
				false,
				"send each queue a wakeup that workers ignore",
			)
			return func(ctx context.Context, s *session, _ []string) error {
				if *sample < 0 || *sample > runlane.MaxPageLimit {
					return usagef("", "--sample is %d, not 0 to %d", *sample, runlane.MaxPageLimit)
				}
				return s.doctor(ctx, *sample, *all, *publish)
			}
		},
	}
}

func (s *session) doctor(ctx context.Context, sample int, all, publish bool) error {
	code := ExitOK
	try := func(check Check, limit time.Duration) error {
		bounded, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		detail, err := check.Run(bounded, s.runtime)
		if err != nil && ctx.Err() != nil {
			return ctx.Err()
		}
		if _, mild := errors.AsType[*doctor.Warning](err); err != nil && !mild && code == ExitOK {
			code = max(exitCode(err), ExitFailed)
		}
		return s.showFinding(s.findingOf(check.Name, detail, err))
	}
	opening := Check{Name: "configuration and schema", Run: func(ctx context.Context, _ *core.Runtime) (string, error) {
		rt, err := s.rt(ctx)
		if err != nil {
			return "", err
		}
		return fmt.Sprintf(
			"lane %s, chosen by %s, environment %s, %s",
			rt.Lane().Name,
			cmp.Or(s.choice, "the program"),
			rt.Environment(),
			plural(len(rt.Definitions()), "task", "tasks"),
		), nil
	}}
	if err := try(opening, doctor.CheckTime); err != nil {
		return err
	}
	for _, check := range s.boundedChecks(publish) {
		if err := try(check, doctor.CheckTime); err != nil {
			return err
		}
	}
	if s.runtime != nil {
		if err := s.examine(ctx, func(err error) { code = cmp.Or(code, max(exitCode(err), ExitFailed)) }); err != nil {
			return err
		}
		for _, f := range doctor.Bodies(ctx, s.runtime, all) {
			if f.Status == doctor.Failing {
				err := &runlane.Error{Code: runlane.ErrorCode(f.Code), Message: f.Detail, Hint: f.Fix}
				code = cmp.Or(code, max(exitCode(err), ExitFailed))
			}
			if err := s.showFinding(f); err != nil {
				return err
			}
		}
		progress := func(pages int) { s.note("%d pages checked", pages) }
		for _, check := range doctor.Invariants(sample, all, progress) {
			if err := try(Check(check), 24*time.Hour); err != nil {
				return err
			}
		}
	}
	if code != ExitOK {
		return &exitError{code: code}
	}
	return nil
}

// examine shows the storage's findings about the place of its state, which may take long. It calls failed for each
// failure.
func (s *session) examine(ctx context.Context, failed func(error)) error {
	findings, err := doctor.Examine(ctx, s.runtime)
	if err != nil {
		if ctx.Err() == nil {
			failed(err)
		}
		return errors.Join(ctx.Err(), s.showFinding(s.findingOf("file", "", err)))
	}
	for _, f := range findings {
		if f.Status == doctor.Failing {
			err := &runlane.Error{Code: runlane.ErrorCode(f.Code), Message: f.Detail, Hint: f.Fix}
			failed(err)
			f = s.findingOf(f.Check, "", err)
		}
		if err := s.showFinding(f); err != nil {
			return err
		}
	}
	return nil
}

// boundedChecks returns all checks except opening and invariants. Without a runtime it omits those needing one.
func (s *session) boundedChecks(publish bool) (checks []Check) {
	if s.runtime != nil {
		for _, check := range doctor.Standard(s.runtime, publish) {
			checks = append(checks, Check(check))
		}
	}
	if s.getenv(tableVariable) != "" {
		checks = append(checks, Check{Name: "clock", Run: s.checkClock})
	}
	return append(checks, s.checks...)
}

// findingOf formats the result of a check; errors read like a command's.
func (s *session) findingOf(name, detail string, err error) shown.Finding {
	f := doctor.FindingOf(name, detail, err)
	if f.Status == doctor.Failing {
		seen := s.describe(err)
		f.Detail, f.Code, f.Cause, f.Fix = seen.Message, seen.Code, seen.Cause, seen.Next
	}
	return f
}

func (s *session) showFinding(f shown.Finding) error {
	f.Detail, f.Fix = s.withProgramName(f.Detail), s.withProgramName(f.Fix)
	color := map[string]string{doctor.OK: green, doctor.Warned: yellow, doctor.Failing: red}[f.Status]
	if s.json {
		if err := s.emit("finding", &f); err != nil {
			return err
		}
		return s.results.Flush()
	}
	indent := strings.Repeat(" ", len("warning"+gap))
	text := func(name, text string) string {
		text = indent + name + ": " + text
		if columns, ok := s.width(s.stdout); ok {
			return wrapped(text, indent, columns)
		}
		return text
	}
	s.line(
		"%s  %s",
		s.paint(s.stdout, color, fmt.Sprintf("%-7s", f.Status)),
		strings.TrimPrefix(text(f.Check, f.Detail), indent),
	)
	if f.Cause != "" {
		s.line("%s", text("cause", f.Cause))
	}
	if f.Fix != "" {
		s.line("%s", text("fix", f.Fix))
	}
	return s.results.Flush()
}
