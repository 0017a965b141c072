package functions_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/functions"
	"github.com/runlane/runlane-go/internal/proof/e2e/lambdatest"
	"github.com/runlane/runlane-go/memlane"
)

// functionVariable makes this test's binary the function's: Start needs a separate process, whose end is the test's.
const functionVariable = "FUNCTIONS_TEST_OPENER"

// startedAsFunction serves the role from the environment, on one of the openers below, and does not return then.
func startedAsFunction() bool {
	openers := map[string]functions.Opener{
		"good": func(ctx context.Context) (*core.Runtime, error) {
			slog.Info("opened")
			return core.Open(ctx, memlane.New(), &core.Options{Environment: "prod"})
		},
		"unconfigured": func(context.Context) (*core.Runtime, error) {
			return nil, &runlane.Error{Code: runlane.ErrConfigurationInvalid, Message: "THING is not set", Hint: "set it"}
		},
		"denied": func(context.Context) (*core.Runtime, error) {
			return nil, &runlane.Error{
				Code: runlane.ErrStorageUnavailable, Message: "access denied", Hint: "let the policy allow the action that the cause names",
				Cause: errors.New("not authorized to perform dynamodb:DescribeTable"),
			}
		},
		"faulty": func(ctx context.Context) (*core.Runtime, error) {
			return core.Open(ctx, memlane.New(), &core.Options{Environment: "prod", MaxAbandoned: -2, Middleware: []runlane.Middleware{nil}})
		},
		"quoting": func(context.Context) (*core.Runtime, error) {
			cause := errors.New("secret db/prod is missing")
			return nil, &runlane.Error{
				Code: runlane.ErrConfigurationInvalid, Message: "keys: " + cause.Error(), Hint: "make it", Cause: fmt.Errorf("%w", cause),
			}
		},
		"too long": func(ctx context.Context) (*core.Runtime, error) {
			handle := func(context.Context, *runlane.Attempt, string) error { return nil }
			return core.Open(ctx, memlane.New(), &core.Options{Environment: "prod", Handlers: []runlane.Handler{
				runlane.NewTask("report", &runlane.TaskOptions[string]{Timeout: 2 * time.Minute}).Handle(handle),
				runlane.NewTask("import", &runlane.TaskOptions[string]{Timeout: 57 * time.Second}).Handle(handle),
				runlane.NewTask("fits", &runlane.TaskOptions[string]{Timeout: 56 * time.Second}).Handle(handle), greet.Handle(handle),
			}})
		},
		"close": func(ctx context.Context) (*core.Runtime, error) {
			handle := func(context.Context, *runlane.Attempt, string) error { return nil }
			return core.Open(ctx, memlane.New(), &core.Options{Environment: "prod", Handlers: []runlane.Handler{
				runlane.NewTask("close", &runlane.TaskOptions[string]{Timeout: core.LongestTimeout(time.Minute + 2*time.Second)}).Handle(handle),
			}})
		},
		"outage": outage(),
		"informed": func(ctx context.Context) (*core.Runtime, error) {
			if os.Getenv("WEBHOOK_SECRET") != "pa55" {
				return nil, &runlane.Error{Code: runlane.ErrConfigurationInvalid, Message: "WEBHOOK_SECRET is not set", Hint: "set it"}
			}
			return core.Open(ctx, memlane.New(), &core.Options{Environment: "prod"})
		},
		"empty": func(context.Context) (*core.Runtime, error) { return nil, nil },
	}
	open := openers[os.Getenv(functionVariable)]
	if open == nil {
		return false
	}
	functions.Start(open)
	return true
}

// outage opens at the third try.
func outage() functions.Opener {
	tries := 0
	return func(ctx context.Context) (*core.Runtime, error) {
		if tries++; tries < 3 {
			return nil, &runlane.Error{Code: runlane.ErrStorageUnavailable, Message: "no answer", Hint: "wait", Retryable: true}
		}
		return core.Open(ctx, memlane.New(), &core.Options{Environment: "prod"})
	}
}

// serve runs a function's process until it has answered all events; it returns the answers and what it logged.
func serve(t *testing.T, role, opener string, environment []string, payloads ...string) (answers []string, log string) {
	t.Helper()
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	f := lambdatest.New(lambdatest.Options{
		Program: binary, InitTimeout: time.Minute, // a busy machine
		Environment: append([]string{functions.RoleVariable + "=" + role, functionVariable + "=" + opener}, environment...),
	})
	defer f.Close()
	for _, payload := range payloads {
		answer, err := f.Invoke(t.Context(), []byte(payload))
		if err != nil {
			t.Fatal(err)
		}
		kind := "response: "
		if answer.Failure != "" {
			kind = "error: "
		}
		answers = append(answers, kind+string(answer.Payload))
	}
	if n := len(f.Processes()); n != 1 {
		t.Errorf("%d processes: one of them ended", n)
	}
	return answers, f.Log()
}

// logLines are the JSON log lines about opening.
func logLines(t *testing.T, log string) []map[string]any {
	t.Helper()
	var lines []map[string]any
	for line := range strings.Lines(log) {
		var fields map[string]any
		if json.Unmarshal([]byte(line), &fields) == nil && fields["message"] == "the runtime cannot open" {
			delete(fields, "timestamp")
			lines = append(lines, fields)
		}
	}
	return lines
}

func TestStart_EachRole_AnswersItsEvents(t *testing.T) {
	t.Parallel()
	batch := string(marshal(t, events.SQSEvent{Records: []events.SQSMessage{
		message("good", wakeup("run_never"), standardARN, 1), message("bad", "{}", standardARN, 1),
	}}))
	for role, tc := range map[string]struct{ event, want string }{
		"bridge": {batch, `response: {"batchItemFailures":[{"itemIdentifier":"bad"}]}`},
		"relay":  {`{"Records":[{"eventName":"REMOVE","dynamodb":{"SequenceNumber":"1"}}]}`, `response: {"batchItemFailures":[]}`},
		"tick":   {`{"detail-type":"Scheduled Event"}`, `response: null`},
	} {
		t.Run(role, func(t *testing.T) {
			t.Parallel()
			answers, log := serve(t, role, "good", nil, tc.event)
			equal(t, "answers", answers, []string{tc.want})
			if !strings.Contains(log, `"message":"opened"`) {
				t.Errorf("Lambda's logger is not slog's default: %s", log)
			}
		})
	}
}

func TestStart_UnknownRole_FailsInvocationsAndSaysWhatToSet(t *testing.T) {
	t.Parallel()
	for _, role := range []string{"", "worker"} {
		answers, log := serve(t, role, "good", nil, "{}", "{}")
		if len(answers) != 2 || !strings.HasPrefix(answers[0], "error: ") || !strings.Contains(answers[1], "configuration_invalid") {
			t.Errorf("answers are %v", answers)
		}
		equal(t, "log", logLines(t, log), []map[string]any{{
			"level": "ERROR", "message": "the runtime cannot open", "code": "configuration_invalid",
			"error": fmt.Sprintf("RUNLANE_FUNCTION is %q", role), "hint": "set it to bridge, relay or tick",
		}})
	}
}

func TestStart_RuntimeCannotOpen_IsLoggedOnceAndFailsEveryInvocation(t *testing.T) {
	t.Parallel()
	for _, role := range []string{"bridge", "relay", "tick"} {
		t.Run(role, func(t *testing.T) {
			t.Parallel()
			answers, log := serve(t, role, "unconfigured", nil, "{}", "{}", "{}")
			for _, answer := range answers {
				if !strings.HasPrefix(answer, "error: ") || !strings.Contains(answer, "configuration_invalid: THING is not set (set it)") {
					t.Errorf("answer is %s", answer)
				}
			}
			equal(t, "log", logLines(t, log), []map[string]any{{
				"level": "ERROR", "message": "the runtime cannot open", "code": "configuration_invalid", "error": "THING is not set", "hint": "set it",
			}})
		})
	}
}

// The causes of an opening with several faults stand in its message already, and so does one that the message tells.
func TestStart_CauseOfAFailedOpening_IsLoggedOnce(t *testing.T) {
	t.Parallel()
	for opener, want := range map[string]map[string]any{
		"denied": {
			"code": "storage_unavailable", "error": "access denied", "hint": "let the policy allow the action that the cause names",
			"cause": "not authorized to perform dynamodb:DescribeTable",
		},
		"faulty": {
			"code": "configuration_invalid", "error": "the runtime cannot open: 1. Options.MaxAbandoned is -2; 2. Options.Middleware[0] is nil",
			"hint": "1. use -1 for no bound, 0 for the default, or a bound; 2. leave it out",
		},
		"quoting": {"code": "configuration_invalid", "error": "keys: secret db/prod is missing", "hint": "make it"},
	} {
		t.Run(opener, func(t *testing.T) {
			t.Parallel()
			_, log := serve(t, "bridge", opener, nil, "{}")
			want["level"], want["message"] = "ERROR", "the runtime cannot open"
			equal(t, "log", logLines(t, log), []map[string]any{want})
		})
	}
}

// Lambda says with an invocation how long it may take. The other roles execute nothing.
func TestStart_TimeoutBeyondAnInvocation_RefusesTheBridgeAndNamesBoth(t *testing.T) {
	t.Parallel()
	answers, log := serve(t, "bridge", "too long", nil, `{"Records":[]}`, `{"Records":[]}`)
	for _, want := range []string{`task "report" has a timeout of 2m`, `task "import" has a timeout of 57s`, "an invocation of 1m has 56s for a handler"} {
		for _, answer := range answers {
			if !strings.HasPrefix(answer, "error: ") || !strings.Contains(strings.ReplaceAll(answer, `\"`, `"`), want) {
				t.Errorf("answer does not say %q: %s", want, answer)
			}
		}
		lines := logLines(t, log)
		if len(lines) != 1 || lines[0]["level"] != "ERROR" || !strings.Contains(fmt.Sprint(lines[0]["error"]), want) {
			t.Errorf("log does not say %q once: %v", want, lines)
		}
	}
	if strings.Contains(log, `"fits\"`) || strings.Contains(log, "greet") {
		t.Errorf("a task that fits is named: %s", log)
	}
	for _, role := range []string{"tick", "relay"} {
		answers, _ := serve(t, role, "too long", nil, `{"Records":[]}`)
		if len(answers) != 1 || !strings.HasPrefix(answers[0], "response: ") {
			t.Errorf("%s answers %v", role, answers)
		}
	}
}

// An environment that starts because an event waits opens with the event, one that starts ahead of events opens before it asks.
func TestStart_OutageWhileOpening_EndsWithTheOutage(t *testing.T) {
	t.Parallel()
	for kind, failures := range map[string]int{"": 2, "on-demand": 2, "provisioned-concurrency": 1} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			answers, log := serve(t, "tick", "outage", []string{"AWS_LAMBDA_INITIALIZATION_TYPE=" + kind}, "{}", "{}", "{}")
			for n, answer := range answers {
				if n < failures && !strings.Contains(answer, "storage_unavailable") || n >= failures && answer != "response: null" {
					t.Errorf("answer %d is %s", n, answer)
				}
			}
			equal(t, "answers", len(answers), 3)
			equal(t, "log lines", len(logLines(t, log)), 1)
		})
	}
}

func TestStart_OpenerReturnsNothing_IsAnError(t *testing.T) {
	t.Parallel()
	answers, _ := serve(t, "tick", "empty", nil, "{}")
	if len(answers) != 1 || !strings.Contains(answers[0], "configuration_invalid") {
		t.Errorf("answers are %v", answers)
	}
}

// Invocations seem shorter than they are where the environment's clock is ahead of the one that computed the deadline. A batch is not
// refused for a difference that every guarantee bears.
func TestStart_TimeoutWithinTheDifferenceOfClocks_RefusesNoInvocation(t *testing.T) {
	t.Parallel()
	answers, log := serve(t, "bridge", "close", nil, `{"Records":[]}`, `{"Records":[]}`)
	for _, answer := range answers {
		if !strings.HasPrefix(answer, "response: ") {
			t.Errorf("answer is %s, log %v", answer, log)
		}
	}
}
