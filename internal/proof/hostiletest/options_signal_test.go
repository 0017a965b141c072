package hostiletest_test

import (
	"context"
	"strings"
	"time"

	"github.com/runlane/runlane-go"
)

var signalOfRules = runlane.NewSignal[int]("approved")

// sendingSignal is a refusal by the calls that send a signal.
func sendingSignal(what string, o runlane.SignalOptions) refusal {
	return failed(what, func(w *world) []error {
		return []error{w.rt.Signal(w.ctx(), "run_1", signalOfRules.With(1), &o)}
	})
}

// waiting is a refusal of a wait as an error of the attempt's host: a runtime's is asked by the scenarios, and here by its validation.
func waiting(what string, o runlane.WaitOptions) refusal {
	return failed(what, func(*world) []error {
		w := runlane.Waiting{
			For: []runlane.WaitingFor{runlane.WaitingSignal}, Names: []string{"approved"}, Prompt: o.Prompt,
		}
		return []error{w.Validate()}
	})
}

func signalRules() map[string]rule {
	host := runlane.AttemptHost{Waits: tokens{}}
	return map[string]rule{
		"runlane.SignalOptions.Actor": refuses(
			sendingSignal("an unknown type", runlane.SignalOptions{Actor: runlane.Actor{Type: "robot"}}),
			sendingSignal("no type", runlane.SignalOptions{Actor: runlane.Actor{ID: "me"}}),
		),
		"runlane.SignalOptions.ID": refuses(
			sendingSignal("too long", runlane.SignalOptions{ID: strings.Repeat("i", runlane.MaxSignalIDBytes+1)}),
			sendingSignal("unprintable", runlane.SignalOptions{ID: unprintable}),
		),
		"runlane.SignalOptions.Receipt": legal("nil asks for none; any other is filled in"),
		"runlane.WaitOptions.Prompt": refuses(
			waiting("too long", runlane.WaitOptions{Prompt: strings.Repeat("p", runlane.MaxPromptBytes+1)}).as("prompt"),
			waiting("no text", runlane.WaitOptions{Prompt: notUTF8}).as("prompt"),
		),
		"runlane.WaitOptions.Name":    legal("what cannot be a record's name is refused in an attempt: bad waits and signals are refused before anything is written"),
		"runlane.WaitOptions.Timeout": legal("one beyond the longest release is refused in an attempt, by the same scenario; NoWait is below 0"),
		"runlane.CallOptions.Name":    legal("what cannot be a call's name is refused in an attempt: bad calls are refused before anything is written"),
		"runlane.CallOptions.Queue":   legal("refused by the trigger of each run, as TriggerOptions.Queue is"),
		"runlane.CallOptions.Meta":    legal("refused by the trigger of each run, as TriggerOptions.Meta is"),
		"runlane.TokenOptions.TTL": refuses(failed("negative", func(*world) []error {
			_, err := signalOfRules.Token(context.Background(), runlane.NewAttempt(runlane.Run{}, 1, host), &runlane.TokenOptions{TTL: -1})
			return []error{err}
		})),
	}
}

// tokens makes tokens, and answers no wait.
type tokens struct{ runlane.WaitHost }

func (tokens) Token(string, time.Duration) (string, error) { return "token", nil }
