package runlanetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/runlane/runlane-go"
)

// Called returns the handler's calls in order, including ones that suspended it.
func (a *Attempt) Called() []runlane.CallRequest {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.mail.called)
}

// mailHost holds the test's input for an attempt.
type mailHost struct {
	signals  []runlane.ReceivedSignal
	children map[string][]End
	nodes    map[string]End
	called   []runlane.CallRequest
	inboxes  map[string]string // names of signals, each with its wait
}

func (m *mailHost) send(value runlane.SignalValue) error {
	if err := runlane.ValidateSignalName(value.Name()); err != nil {
		return err
	}
	body, err := value.Prepare()
	if err == nil {
		id := fmt.Sprintf("signal-%d", len(m.signals)+1)
		m.signals = append(m.signals, runlane.ReceivedSignal{Name: value.Name(), ID: id, Body: body})
	}
	return err
}

type waitHost struct{ *Attempt }

var _ runlane.WaitHost = (*waitHost)(nil)

// Token implements runlane.WaitHost.
func (a *waitHost) Token(name string, _ time.Duration) (string, error) {
	return "token of " + name, nil
}

// Wait implements runlane.WaitHost and records the answer.
func (a *waitHost) Wait(
	ctx context.Context, request runlane.WaitRequest,
) (answer runlane.WaitAnswer, err error) {
	if err := a.takeInboxes(&request); err != nil {
		return answer, err
	}
	call := runlane.StepCall{Name: request.Name, Kind: runlane.StepKindWait}
	kept, err := a.steps.Remember(ctx, call, func(context.Context) (json.RawMessage, error) {
		for _, name := range request.Names {
			if err := runlane.ValidateSignalName(name); err != nil {
				return nil, err
			}
			at := slices.IndexFunc(a.mail.signals, func(s runlane.ReceivedSignal) bool { return s.Name == name })
			if at >= 0 {
				answer.Signals = append(answer.Signals, a.mail.signals[at])
			}
		}
		switch {
		case request.All && len(answer.Signals) == len(request.Names), !request.All && len(answer.Signals) == 1:
		case !request.All && len(answer.Signals) > 1: // the earliest one
			at := slices.IndexFunc(a.mail.signals, func(s runlane.ReceivedSignal) bool {
				return slices.Contains(request.Names, s.Name)
			})
			answer.Signals = a.mail.signals[at : at+1]
		case request.Timeout < 0:
			answer.TimedOut = true
		default:
			w := unanswered(&request)
			if err := w.Validate(); err != nil {
				return nil, err
			}
			return nil, a.steps.suspend(request.Name, "waits for "+strings.Join(request.Names, ", "), w)
		}
		return json.Marshal(answer)
	})
	if err == nil {
		answer = runlane.WaitAnswer{}
		err = json.Unmarshal(kept.Result, &answer)
	}
	return answer, err
}

// takeInboxes refuses a wait for a signal that belongs to another wait.
func (a *waitHost) takeInboxes(request *runlane.WaitRequest) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, name := range request.Names {
		if of, taken := a.mail.inboxes[name]; taken && of != request.Name {
			return refusedStep("the signal %q of wait %q answers wait %q of this run", name, request.Name, of)
		}
	}
	if a.mail.inboxes == nil {
		a.mail.inboxes = map[string]string{}
	}
	for _, name := range request.Names {
		a.mail.inboxes[name] = request.Name
	}
	return nil
}

func unanswered(request *runlane.WaitRequest) *runlane.Waiting {
	w := &runlane.Waiting{
		For:    []runlane.WaitingFor{runlane.WaitingSignal},
		Names:  request.Names,
		All:    request.All && len(request.Names) > 1,
		Prompt: request.Prompt,

		Schemas: request.Schemas,
	}
	if request.Prompt != "" {
		w.For = append(w.For, runlane.WaitingInput)
	}
	if request.Timeout > 0 {
		w.For, w.Until = append(w.For, runlane.WaitingTime), time.Now().Add(request.Timeout)
	}
	return w
}

// callHost answers calls with the ends from the test.
type callHost struct{ *Attempt }

var _ runlane.Caller = (*callHost)(nil)

// CallRuns implements runlane.Caller.
func (h *callHost) CallRuns(_ context.Context, request runlane.CallRequest) ([]*runlane.Run, error) {
	if err := runlane.ValidateCallName(request.Name); err != nil {
		return nil, err
	}
	if _, err := h.steps.begin(request.Name, runlane.StepKindCall); err != nil {
		return nil, err
	}
	h.mu.Lock()
	h.mail.called = append(h.mail.called, request)
	h.mu.Unlock()
	ends := h.mail.children[request.Name]
	if len(ends) > len(request.Calls) {
		return nil, refusedStep("call %q has %d runs, and AttemptOptions.Children %d", request.Name,
			len(request.Calls), len(ends))
	}
	runs := make([]*runlane.Run, len(ends))
	for i, call := range request.Calls {
		prepared, err := call.Prepare()
		if err != nil {
			return nil, err
		}
		if i == len(ends) {
			break
		}
		id := runlane.RunID(fmt.Sprintf("%s_%s_%d", h.Run.ID, request.Name, i+1))
		if runs[i], err = ends[i].run(id, call.Task.ID); err != nil {
			return nil, err
		}
		runs[i].Payload = prepared.Payload
	}
	if need := len(request.Calls) - len(ends); need > 0 {
		reason := fmt.Sprintf("waits for %d runs of %s", need, request.Calls[0].Task.ID)
		return nil, h.steps.suspend(request.Name, reason, &runlane.Waiting{
			For:   []runlane.WaitingFor{runlane.WaitingChildren},
			Names: []string{request.Name},
			Need:  need,
		})
	}
	return runs, nil
}

func (e End) run(id runlane.RunID, task runlane.TaskID) (*runlane.Run, error) {
	run := &runlane.Run{
		ID:          id,
		Environment: runlane.DefaultEnvironment,
		TaskID:      task,
		Status:      runlane.StatusSucceeded,
	}
	switch {
	case errors.Is(e.Err, runlane.ErrRunCancelled):
		run.Status = runlane.StatusCancelled
	case e.Err != nil:
		run.Status = runlane.StatusFailed
		code := runlane.CodeOf(e.Err)
		if code == "" || code == runlane.ErrInternal {
			code = runlane.ErrTaskFailed
		}
		run.Failure = runlane.NewFailure(code, e.Err.Error(), nil)
	case e.Output != nil:
		output, err := json.Marshal(e.Output)
		if err != nil {
			return nil, err
		}
		run.Output = output
	}
	return run, nil
}

// nodeHost answers with the ends of nodes from the test.
type nodeHost struct{ *Attempt }

var _ runlane.NodeWaiter = (*nodeHost)(nil)

// WaitNode implements runlane.NodeWaiter.
func (h *nodeHost) WaitNode(_ context.Context, node runlane.Node) (*runlane.Run, error) {
	end, known := h.mail.nodes[node.Name]
	if !known {
		return nil, &runlane.Error{
			Code:    runlane.ErrValidationFailed,
			Message: fmt.Sprintf("node %q has not ended", node.Name),
			Hint:    "give its end in AttemptOptions.Nodes",
		}
	}
	return end.run(runlane.RunID(fmt.Sprintf("%s_%s", h.Run.ID, node.Name)), end.Task)
}
