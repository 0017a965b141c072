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

// takeInboxes assigns signal names to a wait, across attempts. A signal answers one wait, so that a late answer to one
// round does not answer the next.
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

// inboxesOf maps the signals that answered waits, or came too late for them, to their wait.
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

// namesOf returns the signal names of a recorded answer.
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

// mailFor reads the signals of a wait. Names are read one by one; if the first of several counts, it reads again after
// a signal in between. A run has at most runlane.MaxRunSignals.
func (x *execution) mailFor(ctx context.Context, request *runlane.WaitRequest) (*lane.Mail, error) {
	for {
		mail, err := x.rt.storage().ReadMail(ctx, &lane.MailQuery{
			RunKey: lane.RunKey{Environment: x.rt.environment, RunID: x.started.ID},
			Names:  request.Names,
		})
		uncounted := func(s lane.Signal) bool { return s.Number > mail.Count }
		if err != nil || request.All || len(request.Names) == 1 || !slices.ContainsFunc(mail.Signals, uncounted) {
			if err == nil {
				err = x.addUnread(ctx, mail, request.Names)
			}
			return mail, err
		}
	}
}

// answerOf returns the answer in the mail; for a wait for any name, the signal that came first.
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

type keptAnswer struct {
	runlane.WaitAnswer
	// Missing are the signals that did not come in time. They answer no other wait.
	Missing []string `json:"missing,omitempty"`
}

// answerRefs records an answer by reference, if its bodies are too large for one record: signals are kept as long as
// their run. A program that does not know this form cannot decode it, and leaves the run to one that does.
type answerRefs struct {
	Signals  map[string]string `json:"signals"` // ids by name
	TimedOut bool              `json:"timedOut,omitempty"`
	Missing  []string          `json:"missing,omitempty"`
}

func waitInvalid(format string, args ...any) error {
	return invalidInput("see runlane.WaitOptions", format, args...)
}
