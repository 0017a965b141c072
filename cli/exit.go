package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"syscall"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/causes"
	"github.com/runlane/runlane-go/internal/shown"
)

// The exit codes. Their meaning never changes.
const (
	// ExitOK: the command succeeded.
	ExitOK = 0
	// ExitFailed: the command failed, or the run that it waited for failed.
	ExitFailed = 1
	// ExitUsage: the command line, or an input that it names, is invalid. Nothing was changed.
	ExitUsage = 2
	// ExitNotFound: the run, task, schedule, flow, queue or key does not exist.
	ExitNotFound = 3
	// ExitConflict: another process was first, the object's state does not allow the command, or the run that it waited
	// for was cancelled.
	ExitConflict = 4
	// ExitUnavailable: storage or transport cannot be reached or refuses: an outage, a throttle, expired credentials or
	// a missing permission. The error names the cause, and whether only a retry can help.
	ExitUnavailable = 5
	// ExitInterrupted: an interrupt ended the command. stderr reports the rest.
	ExitInterrupted = 130
)

// usageError is an error in the command line.
type usageError struct{ message, next string }

func (e *usageError) Error() string { return e.message }

func usagef(next, format string, args ...any) error {
	return &usageError{message: fmt.Sprintf(format, args...), next: next}
}

type unfinished struct{ message, next string }

func (e *unfinished) Error() string { return e.message }

// exitError is an exit code without a message, since the reason was already shown.
type exitError struct{ code int }

func (e *exitError) Error() string { return "" }

// stateError wraps the error of a call that the object's state does not allow.
type stateError struct{ cause error }

func (e *stateError) Error() string { return e.cause.Error() }
func (e *stateError) Unwrap() error { return e.cause }

// withNext replaces the hint of an error that has none, or has one in terms of Go.
type withNext struct {
	cause error
	next  string
}

func (e *withNext) Error() string { return e.cause.Error() }
func (e *withNext) Unwrap() error { return e.cause }

func exitCode(err error) int {
	if quiet, ok := errors.AsType[*exitError](err); ok {
		return quiet.code
	}
	if _, ok := errors.AsType[*usageError](err); ok {
		return ExitUsage
	}
	if _, ok := errors.AsType[*stateError](err); ok {
		return ExitConflict
	}
	switch runlane.CodeOf(err) {
	case runlane.ErrValidationFailed, runlane.ErrConfigurationInvalid, runlane.ErrCapabilityUnsupported:
		return ExitUsage
	case runlane.ErrRunNotFound, runlane.ErrScheduleNotFound, runlane.ErrTaskNotFound, runlane.ErrFlowNotFound,
		runlane.ErrQueueNotFound:
		return ExitNotFound
	case runlane.ErrStorageConflict:
		return ExitConflict
	case runlane.ErrStorageUnavailable, runlane.ErrTransportUnavailable, runlane.ErrTransportPublishFailed,
		runlane.ErrOverloaded:
		return ExitUnavailable
	default:
		return ExitFailed
	}
}

// nextFor holds default hints by code.
var nextFor = map[runlane.ErrorCode]string{
	runlane.ErrRunNotFound: "look for it with \"runlane runs list\"; --env chooses another environment",
	runlane.ErrScheduleNotFound: "look for it with \"runlane schedules list\"; definitions are known to the program that " +
		"has them",
	runlane.ErrFlowNotFound:         "look for it with \"runlane flows list\"; --env chooses another environment",
	runlane.ErrTaskNotFound:         "check the task's name, or use the program that has its handler",
	runlane.ErrStorageConflict:      "look at the run with \"runlane runs explain\", then repeat",
	runlane.ErrStorageUnavailable:   "run \"runlane doctor\", then repeat",
	runlane.ErrTransportUnavailable: "run \"runlane doctor\", then repeat",
	runlane.ErrConfigurationInvalid: "run \"runlane doctor\"",
	runlane.ErrValidationFailed:     "correct the input; --help shows what is accepted",
}

// wording replaces the names of Go options in core's texts by flags.
var wording = strings.NewReplacer(
	"ListOptions.After", "--after", "BulkOptions.After", "--after", "PruneOptions.After", "--after",
	"EventOptions.After", "--after", "FlowListOptions.After", "--after", "FlowListOptions.Limit", "--limit",
	"ListOptions.Statuses", "--status", "BulkOptions.Statuses", "--status", "PruneOptions.Statuses", "--status",
	"ListOptions.Limit", "--limit", "PruneOptions.Limit", "--limit", "TickOptions.Limit", "--limit",
	"EventOptions.Follow", "--follow", "EventOptions.Descending", "--descending", "WorkOptions.Queues", "--queue",
	"both Delay and RunAt", "both --delay and --at", "clear StrictPayload", "leave out --strict-payload",
	"ask Runs().Explain what it waits for", "ask \"runlane runs explain\" what it waits for",
)

type fault struct {
	Code     string        `json:"code"`
	Conflict string        `json:"conflict,omitempty"`
	Message  string        `json:"message"`
	Next     string        `json:"next"`
	RunID    runlane.RunID `json:"runId,omitempty"`
	Cause    string        `json:"cause,omitempty"`
	Exit     int           `json:"exit"`
}

// maxCause limits the text of a cause: drivers quote requests.
const maxCause = 300

// describe converts an error and removes the secrets of this process.
func (s *session) describe(err error) fault {
	f := faultOf(err)
	f.Message, f.Next = s.withProgramName(s.discreet(f.Message)), s.withProgramName(s.discreet(f.Next))
	f.Cause = shortened(s.withProgramName(s.discreet(f.Cause)), maxCause)
	return f
}

// signedToken matches a session token in AWS's quotation of a refused signature.
var signedToken = regexp.MustCompile(`(?i)(x-amz-security-token\W+)[\w+/=-]+`)

// discreet removes credentials from text of other programs.
func (s *session) discreet(text string) string {
	for _, name := range []string{"AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"} {
		if secret := s.getenv(name); len(secret) >= minSecret {
			text = strings.ReplaceAll(text, secret, "…")
		}
	}
	return signedToken.ReplaceAllString(text, "$1…")
}

// minSecret is the shortest secret that is hidden. Real secrets are longer; dummy keys of emulators may be ordinary
// words.
const minSecret = 8

func faultOf(err error) fault {
	f := fault{Code: "failed", Message: err.Error(), Exit: exitCode(err)}
	if e, ok := errors.AsType[*usageError](err); ok {
		f.Code, f.Message, f.Next = "usage", e.message, e.next
	} else if e, ok := errors.AsType[*unfinished](err); ok {
		f.Code, f.Message, f.Next = "time_limit", e.message, e.next
	} else if e, ok := errors.AsType[*runlane.Error](err); ok {
		f.Code, f.Conflict, f.Message, f.Next, f.RunID = string(e.Code), string(e.Conflict), e.Message, e.Hint, e.RunID
		f.Cause = strings.Join(strings.Fields(strings.Join(causes.Omitted(e.Message, e.Cause), "; ")), " ")
		if f.Next == "" {
			f.Next = nextFor[e.Code]
		}
		if e.Conflict != "" && e.RunID != "" && e.Hint == "" {
			f.Next = fmt.Sprintf("look at it with \"runlane runs explain %s\", then repeat", e.RunID)
		}
		f.Message, f.Next = wording.Replace(f.Message), wording.Replace(f.Next)
		if number, ok := strings.CutPrefix(f.Message, "n is "); ok { // of Preview; "a run is" ends the same way
			f.Message = "--count is " + number
		}
	}
	if e, ok := errors.AsType[*withNext](err); ok {
		f.Next = e.next
	}
	if f.Next == "" {
		f.Next = "run \"runlane doctor\"; with --verbose the command tells more"
	}
	f.Next = strings.TrimRight(f.Next, "; ") // hints end like this where another may follow
	return f
}

func (s *session) finish(ctx context.Context, err error) int {
	if err == nil {
		return ExitOK
	}
	if _, quiet := errors.AsType[*exitError](err); quiet {
		return exitCode(err)
	}
	if errors.Is(err, syscall.EPIPE) {
		return ExitOK // the reader closed the pipe
	}
	if _, late := errors.AsType[*unfinished](err); !late && ctx.Err() != nil {
		s.note("interrupted")
		return ExitInterrupted
	}
	s.report(err)
	return exitCode(err)
}

func (s *session) report(err error) {
	f := s.describe(err)
	if s.json {
		line, encodeErr := shown.Object("error", f)
		if encodeErr == nil {
			fmt.Fprintf(s.stderr, "%s\n", line)
			return
		}
	}
	fmt.Fprintf(s.stderr, "%s %s\n", s.paint(s.stderr, red, "error:"), f.Message)
	if f.Cause != "" {
		fmt.Fprintf(s.stderr, "cause: %s\n", f.Cause)
	}
	fmt.Fprintf(s.stderr, "next: %s\n", f.Next)
}

// jsonFault finds the first error in JSON text: line and column, counted from 1.
func jsonFault(text []byte) (message string, faulty bool) {
	var value json.RawMessage
	err := json.Unmarshal(text, &value)
	if err == nil {
		return "", false
	}
	offset := len(text)
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		offset = min(int(syntax.Offset), len(text))
	}
	before := string(text[:max(offset-1, 0)])
	line := 1 + strings.Count(before, "\n")
	column := 1 + len([]rune(before[strings.LastIndex(before, "\n")+1:]))
	return fmt.Sprintf("line %d, column %d: %s", line, column, strings.TrimPrefix(err.Error(), "json: ")), true
}
