package core

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

func limitRecord(name string) string { return name + ":limit" }

var _ runlane.WaitHost = (*execution)(nil)

// Wait implements runlane.WaitHost: it answers a wait or suspends the attempt. Like a step's result, an answer is
// recorded before the handler gets it, and the first one wins.
func (x *execution) Wait(ctx context.Context, request runlane.WaitRequest) (answer runlane.WaitAnswer, err error) {
	if err := x.checkWait(&request); err != nil {
		return answer, err
	}
	if err := x.takeInboxes(ctx, &request); err != nil {
		return answer, err
	}
	call := runlane.StepCall{Name: request.Name, Kind: runlane.StepKindWait}
	var found keptAnswer
	for refer := false; ; refer = true {
		kept, err := x.Remember(ctx, call, func(ctx context.Context) (json.RawMessage, error) {
			if refer {
				return json.Marshal(referTo(&found))
			}
			looked, err := x.lookFor(ctx, &request)
			if err != nil {
				return nil, err
			}
			found.WaitAnswer = looked
			if found.Missing = nil; looked.TimedOut {
				found.Missing = missingOf(&request, &looked)
			}
			return json.Marshal(found)
		})
		tooLarge := len(found.Signals) > 0 && runlane.CodeOf(err) == runlane.ErrValidationFailed
		switch {
		case tooLarge && !refer: // no record was kept
		case err != nil:
			return answer, err
		default:
			return x.readAnswer(ctx, &request, kept)
		}
	}
}

// lookFor looks for the answer of a wait; without one, its error suspends the attempt. It counts the mail first, so
// that the suspension notices later signals.
func (x *execution) lookFor(
	ctx context.Context, request *runlane.WaitRequest,
) (answer runlane.WaitAnswer, err error) {
	mail, err := x.mailFor(ctx, request)
	if err != nil {
		return answer, err
	}
	until, err := x.keptLimit(ctx, request)
	if err != nil {
		return answer, err
	}
	if !until.IsZero() { // signals after the limit are too late, even if no worker looked before
		mail.Signals = slices.DeleteFunc(mail.Signals, func(s lane.Signal) bool { return !s.SentAt.Before(until) })
	}
	answer, answered := answerOf(request, mail)
	if !answered {
		if until, err = x.waitLimit(ctx, request); err != nil {
			return answer, err
		}
		answer.TimedOut = request.Timeout < 0 || !until.IsZero() && !x.rt.now().Before(until)
	}
	if !answered && !answer.TimedOut {
		reason := "waits for " + strings.Join(request.Names, ", ")
		return answer, x.suspend(request.Name, reason, x.waiting(request, until), mail.Count)
	}
	return answer, nil
}

func decodeRecord(x *execution, kept *runlane.StepRecord, into any) error {
	if kept.Fault != "" {
		return &runlane.Error{
			Code:      runlane.ErrPayloadUnreadable,
			Message:   fmt.Sprintf("the record %q cannot be read here: %s", kept.Name, kept.Fault),
			RunID:     x.started.ID,
			Retryable: true,
			Hint:      "give this process the codec and the keys of the one that stored it",
		}
	}
	if err := json.Unmarshal(kept.Result, into); err != nil {
		return stepFault(x, kept.Name, "use the version that recorded it", "has a record that does not decode")
	}
	return nil
}

func missingOf(request *runlane.WaitRequest, answer *runlane.WaitAnswer) []string {
	return slices.DeleteFunc(slices.Clone(request.Names), func(name string) bool {
		return slices.ContainsFunc(answer.Signals, func(s runlane.ReceivedSignal) bool { return s.Name == name })
	})
}

func referTo(answer *keptAnswer) *answerRefs {
	refs := &answerRefs{Signals: map[string]string{}, TimedOut: answer.TimedOut, Missing: answer.Missing}
	for i := range answer.Signals {
		refs.Signals[answer.Signals[i].Name] = answer.Signals[i].ID
	}
	return refs
}

// readAnswer reads a wait's answer from its record, and the bodies that did not fit into it.
func (x *execution) readAnswer(
	ctx context.Context, request *runlane.WaitRequest, kept *runlane.StepRecord,
) (answer runlane.WaitAnswer, err error) {
	var refs answerRefs
	if kept.Fault != "" || json.Unmarshal(kept.Result, &refs) != nil {
		return answer, decodeRecord(x, kept, &answer)
	}
	answer.TimedOut = refs.TimedOut
	for _, name := range request.Names {
		id, received := refs.Signals[name]
		if !received {
			continue
		}
		signal, err := x.signalOf(ctx, name, id)
		if err != nil {
			return answer, err
		}
		answer.Signals = append(answer.Signals, *signal)
	}
	return answer, nil
}

// signalOf reads a signal that answered a wait of this run, or of one that it goes on from.
func (x *execution) signalOf(ctx context.Context, name, id string) (*runlane.ReceivedSignal, error) {
	for _, run := range append([]*runlane.Run{x.started}, x.steps.predecessors...) {
		mail, err := x.rt.storage().ReadMail(ctx, &lane.MailQuery{
			RunKey: lane.RunKey{Environment: x.rt.environment, RunID: run.ID}, Names: []string{name}, ID: id,
		})
		if err != nil {
			return nil, err
		}
		if len(mail.Signals) > 0 {
			return &runlane.ReceivedSignal{Name: name, ID: id, Body: mail.Signals[0].Body}, nil
		}
	}
	return nil, &runlane.Error{
		Code:    runlane.ErrInvariantViolation,
		Message: fmt.Sprintf("signal %q answered a wait, and is gone", name),
		RunID:   x.started.ID,
	}
}

// checkWait refuses an impossible wait before any read or write.
func (x *execution) checkWait(request *runlane.WaitRequest) error {
	if err := x.rt.suspends(); err != nil {
		return err
	}
	w := x.waiting(request, time.Time{})
	if err := w.Validate(); err != nil {
		return err
	}
	if err := runlane.ValidateKey("wait", request.Name); err != nil {
		return err
	}
	if len(limitRecord(request.Name)) > runlane.MaxStepNameBytes {
		return waitInvalid("the name of a wait has %d bytes", len(request.Name))
	}
	if request.Timeout > runlane.MaxReleaseDelay {
		return waitInvalid("the time limit of wait %q is more than %s", request.Name,
			runlane.FormatDuration(runlane.MaxReleaseDelay))
	}
	return nil
}

func (x *execution) waiting(request *runlane.WaitRequest, until time.Time) *runlane.Waiting {
	w := &runlane.Waiting{
		For:    []runlane.WaitingFor{runlane.WaitingSignal},
		Names:  request.Names,
		All:    request.All && len(request.Names) > 1,
		Prompt: request.Prompt,
		Until:  until,

		Schemas: request.Schemas,
	}
	if request.Prompt != "" {
		w.For = append(w.For, runlane.WaitingInput)
		w.Questions = []runlane.Question{{Name: request.Name, Prompt: request.Prompt}}
	}
	if !until.IsZero() {
		w.For = append(w.For, runlane.WaitingTime)
	}
	return w
}

// waitLimit is the end of the wait, counted from the first attempt that called it; zero for none.
func (x *execution) waitLimit(ctx context.Context, request *runlane.WaitRequest) (until time.Time, err error) {
	if request.Timeout <= 0 {
		return until, nil
	}
	call := runlane.StepCall{Name: limitRecord(request.Name), Kind: runlane.StepKindLimit}
	kept, err := x.Remember(ctx, call, func(context.Context) (json.RawMessage, error) {
		return json.Marshal(ceilMillis(x.rt.now().Add(request.Timeout)).UTC())
	})
	if err == nil {
		err = decodeRecord(x, kept, &until)
	}
	return until, err
}

// keptLimit is the recorded end of a wait; zero for none.
func (x *execution) keptLimit(ctx context.Context, request *runlane.WaitRequest) (until time.Time, err error) {
	if request.Timeout <= 0 {
		return until, nil
	}
	s := &x.steps
	s.mu.Lock()
	err = x.load(ctx)
	kept := s.known[limitRecord(request.Name)]
	s.mu.Unlock()
	if err == nil && kept != nil && kept.Kind == runlane.StepKindLimit {
		err = decodeRecord(x, kept, &until)
	}
	return until, err
}

// suspend adds a wait to the attempt and returns the error for the handler. mailed is the number of signals when the
// call looked; -1 if it does not wait for signals.
func (x *execution) suspend(name, reason string, w *runlane.Waiting, mailed int64) error {
	return x.suspendFor(reason, pendingWait{name: name, wait: w, mailed: mailed})
}

func (x *execution) suspendFor(reason string, p pendingWait) error {
	w := p.wait
	if x.rt.coded {
		w.Prompt, w.Questions = "", nil // encoded elsewhere, so never plain here
	}
	s := &x.suspended
	s.mu.Lock()
	defer s.mu.Unlock()
	again := func(other pendingWait) bool { return other.name == p.name && other.wait.For[0] == w.For[0] }
	size := w.SchemaBytes()
	for _, other := range s.waits {
		if size > 0 && !again(other) {
			size += other.wait.SchemaBytes()
		}
	}
	if size > runlane.MaxWaitSchemaBytes {
		return waitInvalid("the schemas of the attempt's waits have %d bytes, more than %d", size, runlane.MaxWaitSchemaBytes)
	}
	if i := slices.IndexFunc(s.waits, again); i >= 0 {
		p.mailed = min(p.mailed, s.waits[i].mailed) // either both have looked or neither
		s.waits[i] = p
	} else {
		s.waits = append(s.waits, p)
	}
	if s.call == nil {
		s.call = &handlerCall{}
	}
	return &callWaits{ReleaseError: &runlane.ReleaseError{Reason: reason, Waiting: w}, in: s.call}
}

// staleWait is the failure of a handler that returns the error of another attempt's or call's wait.
const staleWait = "The handler returned the error of a wait of another attempt, or of an earlier call in this one: " +
	"call again, and do not keep such errors."

// suspensionOf turns the handler's return into a suspension. A handler that succeeds while a call has no answer lost
// that call's error: the attempt is suspended, and the log names the call. A failure stays a failure. The handler's own
// Release or Block also ends the wait. The error of another attempt's wait is a failure: this attempt has not looked
// for it.
func (x *execution) suspensionOf(ctx context.Context, v verdict) verdict {
	s := &x.suspended
	s.mu.Lock()
	defer s.mu.Unlock()
	var own []*runlane.ReleaseError
	for _, r := range v.asked {
		switch r.in {
		case nil:
			own = append(own, r.ReleaseError)
		case s.call:
		default:
			return failed(runlane.NewFailure(runlane.ErrValidationFailed, staleWait, nil))
		}
	}
	if v.lost != "" {
		x.rt.logger.LogAttrs(ctx, slog.LevelWarn,
			"the handler joined a failure to a suspension: it waits, and the failure is not recorded",
			append(runAttrs(x.started), slog.String("code", v.lost))...)
	}
	if len(s.waits) == 0 {
		if len(own) > 1 {
			v.waitForAny(nil, own, x.rt.now())
		}
		return v
	}
	names := s.names()
	attrs := append(runAttrs(x.started), slog.String("waits", names))
	switch {
	case v.kind == verdictReleased && (v.wait != nil || len(own) > 0):
	case v.kind == verdictSucceeded:
		x.rt.logger.LogAttrs(ctx, slog.LevelWarn,
			"the handler returned no error although it was suspended: it waits; return the errors of waits", attrs...)
		v = verdict{kind: verdictReleased, reason: "waits for " + names}
	case v.kind == verdictFailed && !v.final:
		x.rt.logger.LogAttrs(ctx, slog.LevelWarn,
			"the handler returned another error than that of a wait: the attempt failed", attrs...)
		return v
	default:
		return v
	}
	var wait *runlane.Waiting
	wait, v.mailed, v.calls = s.all(x.rt.now())
	v.waitForAny(wait, own, x.rt.now())
	v.reason = clipReason(v.reason)
	return v
}

// waitForAny makes a released run wait for the first of its calls' waits, nil for none, and its handler's own ones.
func (v *verdict) waitForAny(calls *runlane.Waiting, own []*runlane.ReleaseError, now time.Time) {
	wait := calls.Clone()
	for _, r := range own {
		also := r.Waiting
		if also == nil {
			also = &runlane.Waiting{
				For:   []runlane.WaitingFor{runlane.WaitingTime},
				Until: ceilMillis(now.Add(r.Delay)),
			}
			v.delay = min(cmp.Or(v.delay, r.Delay), r.Delay)
		}
		wait = wait.Union(also)
	}
	if v.wait = wait.Kept(); v.wait.Timed() && calls == nil {
		v.wait = nil // only releases
	}
}

// lookAgain resets the attempt for another call of its handler: mail or an end came between look and suspension.
func (x *execution) lookAgain() {
	s := &x.suspended
	s.mu.Lock()
	s.waits, s.call, s.again = nil, nil, true
	s.mu.Unlock()
	x.steps.mu.Lock()
	x.steps.used, x.steps.begun, x.steps.inboxes = map[string]bool{}, 0, inboxesOf(x.steps.known)
	x.steps.mu.Unlock()
	x.notes.mu.Lock()
	x.notes.over = false
	x.notes.mu.Unlock()
	x.checkpoints.mu.Lock()
	x.checkpoints.over = false
	x.checkpoints.mu.Unlock()
	if l := x.kept; l != nil {
		l.mu.Lock()
		l.over = false
		l.mu.Unlock()
	}
	x.stateMu.Lock()
	x.returned, x.verdict = false, verdict{}
	x.stateMu.Unlock()
	x.mu.Lock()
	x.over = false
	x.mu.Unlock()
	x.set.beatLater(x, x.nextBeat())
}
