package core

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// takeInboxes gives the inboxes of a wait to it: a signal answers one wait, so that the late answer to one round is
// none to the next. Those of earlier attempts are known by their answers.
func (x *execution) takeInboxes(ctx context.Context, request *runlane.WaitRequest) error {
	s := &x.steps
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := x.load(ctx); err != nil {
		return err
	}
	for _, name := range request.Names {
		if of, taken := s.inboxes[name]; taken && of != request.Name {
			return waitInvalid("the signal %q of wait %q answers wait %q of this run: give each wait its own signal, "+
				"as Signal.Named does", name, request.Name, of)
		}
	}
	for _, name := range request.Names {
		s.inboxes[name] = request.Name
	}
	return nil
}

// inboxesOf are the names of the signals that have answered waits, or came too late for them, each with that wait.
func inboxesOf(known map[string]*runlane.StepRecord) map[string]string {
	inboxes := map[string]string{}
	for _, record := range known {
		if record.Kind == runlane.StepKindWait && record.Fault == "" {
			for _, name := range namesOf(record.Result) {
				inboxes[name] = record.Name
			}
		}
	}
	return inboxes
}

// namesOf are the names of the signals of a recorded answer.
func namesOf(result json.RawMessage) []string {
	var refs answerRefs
	if json.Unmarshal(result, &refs) == nil {
		return slices.AppendSeq(refs.Missing, maps.Keys(refs.Signals))
	}
	var answer keptAnswer
	if json.Unmarshal(result, &answer) != nil {
		return nil
	}
	for i := range answer.Signals {
		answer.Missing = append(answer.Missing, answer.Signals[i].Name)
	}
	return answer.Missing
}

// mailFor reads the signals of a wait. Of a wait for any of several the one that came first counts: it is known only
// where none came while the names were read, one after the other. A run has at most runlane.MaxRunSignals.
func (x *execution) mailFor(ctx context.Context, request *runlane.WaitRequest) (*lane.Mail, error) {
	for {
		mail, err := x.rt.storage().ReadMail(ctx, &lane.MailQuery{
			RunKey: lane.RunKey{Environment: x.rt.environment, RunID: x.started.ID},
			Names:  request.Names,
		})
		uncounted := func(s lane.Signal) bool { return s.Number > mail.Count }
		if err != nil || request.All || len(request.Names) == 1 || !slices.ContainsFunc(mail.Signals, uncounted) {
			return mail, err
		}
	}
}

// answerOf is what the mail answers: of a wait for any, the signal that came first.
func answerOf(request *runlane.WaitRequest, mail *lane.Mail) (answer runlane.WaitAnswer, answered bool) {
	signals := mail.Signals
	if !request.All && len(signals) > 1 {
		signals = []lane.Signal{slices.MinFunc(signals, func(a, b lane.Signal) int {
			return cmp.Compare(a.Number, b.Number)
		})}
	}
	for i := range signals {
		signal := &signals[i]
		answer.Signals = append(answer.Signals, runlane.ReceivedSignal{
			Name: signal.Name, ID: signal.ID, Body: signal.Body,
		})
	}
	return answer, len(signals) > 0 && !request.All || len(signals) == len(request.Names)
}

// keptAnswer is the record of an answer.
type keptAnswer struct {
	runlane.WaitAnswer
	// Missing are the names of signals that did not come in time. They answer no other wait.
	Missing []string `json:"missing,omitempty"`
}

// answerRefs are an answer whose bodies together are too large for a record: signals stay beside their run as long as
// it does. A program that does not know it cannot decode it, and leaves the run to one that does.
type answerRefs struct {
	Signals  map[string]string `json:"signals"` // ids by name
	TimedOut bool              `json:"timedOut,omitempty"`
	Missing  []string          `json:"missing,omitempty"`
}

func waitInvalid(format string, args ...any) error {
	return invalidInput("see runlane.WaitOptions", format, args...)
}
