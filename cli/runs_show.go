package cli

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/internal/shown"
)

func runsGetCommand() *command {
	return &command{
		name:     "get",
		usage:    "RUN...",
		short:    "Show runs, exactly as they are now",
		min:      1,
		max:      -1,
		long:     "RUN is an id, or its first six characters or more; this holds for every command.",
		examples: []string{"runs get run_01J8ZQ4T", "runs get run_01J8ZQ4T --output"},
		act: func(flags *flag.FlagSet) action {
			payload := flags.Bool("payload", false, "only the payload, byte by byte")
			output := flags.Bool("output", false, "only the output, byte by byte")
			return func(ctx context.Context, s *session, args []string) error {
				if *payload && *output {
					return usagef("give one of them; ", "--payload and --output exclude each other")
				}
				for n, given := range args {
					run, err := s.findRun(ctx, given, false)
					if err != nil {
						return err
					}
					if *payload || *output { // with the bodies that findRun leaves
						if run, err = s.runtime.Runs().Get(ctx, run.ID); err != nil {
							return err
						}
					}
					switch {
					case *payload:
						if err = run.PayloadError(); err == nil {
							_, err = s.results.Write(run.Payload)
						}
					case *output:
						if err = run.OutputError(); err == nil {
							_, err = s.results.Write(run.Output)
						}
					default:
						if n > 0 && !s.json {
							s.line("")
						}
						err = s.showRun(ctx, run)
					}
					if err != nil {
						return err
					}
				}
				return nil
			}
		},
	}
}

func (s *session) showRun(ctx context.Context, run *runlane.Run) error {
	if s.json {
		return s.emit("run", shown.Run(run))
	}
	next := ""
	if run.Status == runlane.StatusFailed {
		retries, err := s.runtime.Runs().Retries(ctx, []runlane.RunSummary{run.Summary()})
		if err != nil {
			return err
		}
		if retry := retries[run.ID]; retry != nil {
			next = fmt.Sprintf("%s, which is %s", retry.ID, retry.Status)
		}
	}
	s.facts(
		[2]string{"run", string(run.ID)},
		[2]string{"task", string(run.TaskID)},
		[2]string{"status", s.paint(s.stdout, statusColor(string(run.Status)), string(run.Status))},
		[2]string{"queue", string(run.Queue)},
		[2]string{"environment", string(run.Environment)},
		[2]string{"source", sourceText(run.Source)},
		[2]string{"created", s.at(run.CreatedAt)},
		[2]string{"due", s.at(knownDue(run.RunAt))},
		[2]string{"waits for", waitingText(s, run.Waiting)},
		[2]string{"started", s.at(run.StartedAt)},
		[2]string{"finished", s.at(run.FinishedAt)},
		[2]string{"attempts", countersText(run.Counters)},
		[2]string{"failure", failureText(run.Failure)},
		[2]string{"retried by", next},
		[2]string{"worker", leaseText(s, run.Lease)},
		[2]string{"progress", s.progress(ctx, run)},
		[2]string{"idempotency key", run.IdempotencyKey},
		[2]string{"singleton key", run.SingletonKey},
		[2]string{"concurrency key", run.ConcurrencyKey},
		[2]string{"meta", pairsText(run.Meta)},
		[2]string{"payload", cmp.Or(apartText(run, "payload"), bodyText(run.Payload, run.PayloadError()))},
		[2]string{"output", cmp.Or(apartText(run, "output"), bodyText(run.Output, run.OutputError()))},
		[2]string{"encrypted with", keysText(run.Sealed)},
	)
	return nil
}

// knownDue returns zero for the time that means no limit.
func knownDue(at time.Time) time.Time {
	if at.Equal(runlane.FarMoment()) {
		return time.Time{}
	}
	return at
}

// waitingText describes what a suspended run waits for, until when, and the question it asks.
func waitingText(s *session, w *runlane.Waiting) string {
	text := shown.WaitsFor(w)
	if w != nil && !w.Until.IsZero() {
		text += ", until " + s.at(w.Until)
	}
	if asks := shown.Asked(w); asks != "" {
		text += ": " + asks
	}
	return text
}

// shownBody limits a payload or output among other values.
const shownBody = 500

// bodyText returns a payload or output, or the reason why it cannot be read.
func bodyText(body []byte, unreadable error) string {
	if e, ok := errors.AsType[*runlane.Error](unreadable); ok {
		return e.Message
	}
	return shortened(string(body), shownBody)
}

// apartText describes a large body, which findRun leaves apart from its run; "" if there is none.
func apartText(run *runlane.Run, name string) string {
	if run.Sealed == nil {
		return ""
	}
	about := run.Sealed.PayloadApart
	if name == "output" {
		about = run.Sealed.OutputApart
	}
	if about.Bytes == 0 || run.PayloadError() != nil || run.OutputError() != nil {
		return ""
	}
	return fmt.Sprintf("%d bytes apart from the run, sha256 %s; --%s writes it", about.Bytes, about.SHA256, name)
}

func keysText(sealed *runlane.Sealed) string {
	switch {
	case sealed == nil:
		return ""
	case sealed.OutputKey == "" || sealed.OutputKey == sealed.PayloadKey:
		return sealed.PayloadKey
	default:
		return strings.TrimPrefix(sealed.PayloadKey+", the output with "+sealed.OutputKey, ", ")
	}
}

func (s *session) progress(ctx context.Context, run *runlane.Run) string {
	if !run.Status.Active() || s.runtime == nil {
		return ""
	}
	note, err := s.runtime.Runs().Progress(ctx, run.ID)
	if err != nil || note == nil {
		return "" // optional, like the note itself
	}
	return note.Note + ", " + s.at(note.At)
}

func sourceText(source runlane.Source) string {
	text := string(source.Type)
	if source.RunID != "" {
		text += " of " + string(source.RunID)
	}
	if source.ScheduleID != "" {
		text += " " + string(source.ScheduleID)
	}
	if source.FlowID != "" {
		text += fmt.Sprintf(" %s, node %s", source.FlowID, source.Node)
	}
	if !source.FireTime.IsZero() {
		text += " at " + instant(source.FireTime)
	}
	return text
}

func countersText(c runlane.Counters) string {
	return fmt.Sprintf("%d started, %d failed, %d retried, %d released", c.Attempts, c.Failures, c.Retries, c.Releases)
}

func failureText(f runlane.Failure) string {
	if f.IsZero() {
		return ""
	}
	message, code := f.Message, string(f.Code)
	if message == code {
		return message
	}
	// A wrapped error of ours has its code in its text.
	message = strings.TrimSuffix(strings.TrimPrefix(message, code+": "), ": "+code)
	message = strings.Replace(message, ": "+code+": ", ": ", 1)
	return message + " [" + code + "]"
}

func leaseText(s *session, lease runlane.Lease) string {
	if lease.WorkerID == "" {
		return ""
	}
	return lease.WorkerID + ", until " + s.at(lease.ExpiresAt)
}

func pairsText(pairs map[string]string) string {
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(pairs)) {
		parts = append(parts, key+"="+pairs[key])
	}
	return strings.Join(parts, ", ")
}

func runsEventsCommand() *command {
	return &command{
		name:     "events",
		usage:    "RUN",
		short:    "List what happened to a run",
		min:      1,
		max:      1,
		examples: []string{"runs events run_01J8ZQ4T", "runs events run_01J8ZQ4T --follow --json"},
		act: func(flags *flag.FlagSet) action {
			var options core.EventOptions
			flags.BoolVar(&options.Descending, "descending", false, "the newest first")
			flags.BoolVar(&options.Follow, "follow", false, "wait for more until the run is finished")
			after := flags.String("after", "", "CURSOR of the last event that was seen, as --json shows it")
			limit := flags.Int("limit", 0, "NUMBER of events; all unless given")
			return func(ctx context.Context, s *session, args []string) error {
				if *limit < 0 {
					return usagef("ask for at least 1, or leave it out; ", "--limit is %d", *limit)
				}
				run, err := s.findRun(ctx, args[0], false)
				if err != nil {
					return err
				}
				options.After = runlane.Cursor(*after)
				shown := 0
				for record, err := range s.runtime.Runs().Events(ctx, run.ID, &options) {
					if err != nil {
						return err
					}
					if err := s.showEvent(&record); err != nil {
						return err
					}
					if shown++; shown == *limit {
						break
					}
				}
				return nil
			}
		},
	}
}

// showEvent writes one event and flushes: a user may be watching.
func (s *session) showEvent(record *runlane.EventRecord) error {
	if s.json {
		if err := s.emit("event", shown.EventOf(record)); err != nil {
			return err
		}
		return s.results.Flush()
	}
	s.line("%s", s.eventText(s.stdout, record))
	return s.results.Flush()
}

func runsAttemptsCommand() *command {
	return &command{
		name:     "attempts",
		usage:    "RUN",
		short:    "List the outcome of each attempt of a run",
		min:      1,
		max:      1,
		examples: []string{"runs attempts run_01J8ZQ4T"},
		act: func(*flag.FlagSet) action {
			return func(ctx context.Context, s *session, args []string) error {
				run, err := s.findRun(ctx, args[0], false)
				if err != nil {
					return err
				}
				attempts, err := s.runtime.Runs().Attempts(ctx, run.ID)
				if err != nil {
					return err
				}
				t := &table{
					header: []string{"ATTEMPT", "STATUS", "STARTED", "FINISHED", "WORKER", "FAILURE"},
					shrink: 5,
					spare:  []int{4, 2},
					color:  map[int]func(string) string{1: statusColor},
				}
				for i := range attempts {
					a := &attempts[i]
					if s.json {
						if err := s.emit("attempt", a); err != nil {
							return err
						}
					}
					t.add(
						fmt.Sprint(a.Number),
						string(a.Status),
						s.when(a.StartedAt),
						s.when(a.FinishedAt),
						a.WorkerID,
						failureText(a.Failure),
					)
				}
				if s.json {
					return nil
				}
				if len(attempts) == 0 {
					s.note("the run has not started yet: \"runlane runs explain %s\" says why", run.ID)
				}
				s.write(t)
				return nil
			}
		},
	}
}

func runsExplainCommand() *command {
	return &command{
		name:     "explain",
		usage:    "RUN",
		short:    "Explain the state of a run, and what happens next",
		min:      1,
		max:      1,
		long:     "docs/operating.md explains each wait, and what to do about it.",
		examples: []string{"runs explain run_01J8ZQ4T"},
		act: func(*flag.FlagSet) action {
			return func(ctx context.Context, s *session, args []string) error {
				run, err := s.findRun(ctx, args[0], false)
				if err != nil {
					return err
				}
				explanation, err := s.runtime.Runs().Explain(ctx, run.ID)
				if err != nil {
					return err
				}
				return s.showExplanation(run, explanation)
			}
		},
	}
}

// limitsFlag is the flag of programs without tasks that sets the limits of queues.
const limitsFlag = "limits"

// operations are words of core's hints, and the commands for them.
var operations = strings.NewReplacer(
	"Rerun makes", `"runlane runs rerun RUN" makes`,
	"Retry makes", `"runlane runs retry RUN" makes`,
	"Attempts shows", `"runlane runs attempts RUN" shows`,
	"Cancel ends", `"runlane runs cancel RUN" ends`,
	"Cancel asks", `"runlane runs cancel RUN" asks`,
	"Resume calls", `"runlane runs resume RUN" calls`,
	"requeue the dead letter", `"runlane deadletters requeue RUN"`,
)

// commandsIn replaces operations in core's hint by commands that can be copied.
func (s *session) commandsIn(e *core.Explanation) string {
	text := strings.ReplaceAll(operations.Replace(e.Next), ` RUN"`, " "+string(e.RunID)+`"`)
	if w := e.Waiting; w != nil && (w.Has(runlane.WaitingSignal) || w.Has(runlane.WaitingInput)) {
		name := "NAME"
		if len(w.Names) == 1 {
			name = w.Names[0]
		}
		text += fmt.Sprintf(` "runlane runs signal %s %s --body JSON" sends the signal.`, e.RunID, name)
	}
	return s.withProgramName(text)
}

// nextOf replaces a Go option in core's hint by the flag, if the program has it.
func (s *session) nextOf(run *runlane.Run, e *core.Explanation) string {
	for _, v := range s.variables {
		if v.Flag == limitsFlag {
			hint := fmt.Sprintf("set its limit with --%s %s=N (%s; 0 is no limit)", v.Flag, run.Queue, v.Name)
			return strings.ReplaceAll(e.Next, "name it in core.Options.Queues", hint)
		}
	}
	return e.Next
}

func (s *session) showExplanation(run *runlane.Run, e *core.Explanation) error {
	e.Next = s.nextOf(run, e)
	if s.json {
		return s.emit("explanation", e)
	}
	var holders []string
	for _, id := range e.Holders {
		holders = append(holders, string(id))
	}
	s.facts(
		[2]string{"run", string(e.RunID)},
		[2]string{"task", string(run.TaskID)},
		[2]string{"status", s.paint(s.stdout, statusColor(string(e.Status)), string(e.Status))},
		[2]string{"waits for", string(e.Wait)},
		[2]string{"until", s.at(e.Until)},
		[2]string{"slots held by", strings.Join(holders, "\n")},
		[2]string{"worker", leaseText(s, e.Owner)},
		[2]string{"failure", failureText(e.Failure)},
		[2]string{"next", s.commandsIn(e)},
	)
	return nil
}

// refused makes core's validation error a conflict: the options were already checked, so the run's state is the reason.
func refused(err error) error {
	if errors.Is(err, runlane.ErrValidationFailed) {
		return &stateError{cause: err}
	}
	return err
}
