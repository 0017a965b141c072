package core

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core/internal/origin"
	"github.com/runlane/runlane-go/internal/blind"
	"github.com/runlane/runlane-go/lane"
)

var _ runlane.Signaler = (*Runtime)(nil)

const (
	// signalRounds limits the tries of a signal that conflicts with other signals.
	signalRounds = 10
	// signalBackoff is the pause before the second round; it doubles.
	signalBackoff = 2 * time.Millisecond
)

// Signal sends a signal to a run, see runlane.Signaler for its errors. When it returns nil the signal is durable and a
// run that waits for it is due, without a tick: its wakeup was published, or the outbox keeps it. A lane that keeps no
// signals is runlane.ErrCapabilityUnsupported.
func (rt *Runtime) Signal(
	ctx context.Context, id runlane.RunID, value runlane.SignalValue, options *runlane.SignalOptions,
) error {
	if err := rt.gate.enterLate(); err != nil {
		return err
	}
	defer rt.gate.leave()
	s, err := rt.newSignal(id, value, options)
	if err != nil {
		return err
	}
	return s.send(ctx)
}

// sending is a signal on its way to a run.
type sending struct {
	rt       *Runtime
	key      lane.RunKey
	name, id string
	given    bool            // the caller chose the id: the signal may exist
	created  time.Time       // of the addressed run; zero for any with the id
	source   *runlane.Source // of the addressed run; nil for any
	body     []byte
	actor    runlane.Actor
	answer   bool                   // sent by a token
	fresh    bool                   // the id is new: no other call sends it
	receipt  *runlane.SignalReceipt // nil for none
}

func (rt *Runtime) newSignal(
	id runlane.RunID, value runlane.SignalValue, options *runlane.SignalOptions,
) (*sending, error) {
	if options == nil {
		options = &runlane.SignalOptions{}
	}
	if err := rt.suspends(); err != nil {
		return nil, err
	}
	s := &sending{
		rt:      rt,
		key:     lane.RunKey{Environment: rt.environment, RunID: id},
		name:    value.Name(),
		id:      options.ID,
		given:   options.ID != "",
		fresh:   options.ID == "",
		actor:   options.Actor,
		receipt: options.Receipt,
	}
	if s.actor == (runlane.Actor{}) {
		s.actor = runlane.SystemActor
	}
	if !s.given {
		s.id = rt.world.NewID("signal_")
	}
	err := firstError(
		id.Validate(),
		runlane.ValidateSignalName(s.name),
		checkSignalID(s.id),
		checkActor(s.actor),
	)
	if err != nil {
		return nil, err
	}
	if s.body, err = value.Prepare(); err == nil {
		err = rt.checkSize("signal", s.body)
	}
	return s, err
}

// suspends refuses storages without mail and records.
func (rt *Runtime) suspends() error {
	if rt.lane.Capabilities().Storage.SuspendsRuns {
		return nil
	}
	return &runlane.Error{
		Code:    runlane.ErrCapabilityUnsupported,
		Message: "this lane's storage keeps no signals and no records of runs",
		Hint:    "use a lane that reports suspendsRuns",
	}
}

func checkSignalID(id string) error {
	if len(id) > runlane.MaxSignalIDBytes {
		return invalidInput(
			fmt.Sprintf("use at most %d bytes", runlane.MaxSignalIDBytes), "SignalOptions.ID has %d bytes", len(id))
	}
	if err := runlane.ValidateKey("SignalOptions.ID", id); err != nil {
		return err
	}
	return nil
}

func (s *sending) send(ctx context.Context) error {
	wait := signalBackoff
	for range signalRounds {
		done, err := s.round(ctx)
		if done || err != nil {
			return err
		}
		if !pause(ctx, s.rt.world.around(wait)) {
			return cancelled(ctx, s.key.RunID)
		}
		wait = min(2*wait, 50*time.Millisecond)
	}
	return &runlane.Error{
		Code:      runlane.ErrStorageUnavailable,
		RunID:     s.key.RunID,
		Message:   fmt.Sprintf("the run got other signals, or changed, during each of %d tries", signalRounds),
		Hint:      "send it again, with the same ID",
		Retryable: true,
		Meta:      map[string]string{"outcome": "not committed"},
	}
}

// round reads the run's mail and puts the signal at that state. done is false if the state changed meanwhile.
func (s *sending) round(ctx context.Context) (done bool, err error) {
	q := &lane.MailQuery{RunKey: s.key}
	if s.given {
		q.Names, q.ID = []string{s.name}, s.id
	}
	mail, err := s.rt.storage().ReadMail(ctx, q)
	if err != nil {
		return false, err
	}
	if existing, err := s.judge(ctx, mail); existing || err != nil {
		s.fillReceipt(existing)
		return existing, err
	}
	defer func() {
		if done {
			s.fillReceipt(false)
		}
	}()
	c := &lane.SignalCommand{
		RunKey:    s.key,
		CreatedAt: mail.Run.CreatedAt,
		Count:     mail.Count,
		Signal: lane.Signal{
			Name:   s.name,
			ID:     s.id,
			Number: mail.Count + 1,
			SentAt: s.rt.now(),
			Body:   s.body,
		},
	}
	if mail.Run.Waiting != nil {
		c.Wait = mail.Run.EventSequence
	}
	satisfied, err := s.satisfies(ctx, mail.Run.Waiting)
	if err == nil {
		err = s.checkLimit(ctx, mail, satisfied)
	}
	if err != nil {
		return false, err
	}
	if satisfied {
		if c.Resume, err = s.resumption(mail.Run, c.Signal.SentAt); err != nil {
			return false, err
		}
	}
	commit, err := s.rt.storage().SendSignal(ctx, c)
	switch {
	case isConflict(err, runlane.ConflictWait), isConflict(err, runlane.ConflictEventSequence):
		return false, nil
	case isConflict(err, runlane.ConflictSignal):
		s.given = true // the signal exists: the next round compares it
		return false, nil
	case err != nil:
		return false, err
	case commit == nil:
		return true, nil
	}
	s.rt.resumed(ctx, commit)
	return true, nil
}

func (s *sending) fillReceipt(existing bool) {
	if s.receipt != nil {
		s.receipt.Existing = existing && !s.fresh
	}
}

// judge compares the signal with an existing one of its id. It refuses signals that can never be put, or do not fit the
// schema of the run's wait. Callers that may not read bodies get the existing signal without a comparison.
func (s *sending) judge(ctx context.Context, mail *lane.Mail) (existing bool, err error) {
	run := mail.Run
	switch {
	case s.source != nil && !origin.Same(run.Source, *s.source):
		return false, origin.Stranger(run, *s.source)
	case !s.created.IsZero() && !run.CreatedAt.Equal(s.created):
		return false, ended(run, "the addressed run is gone, and another run has its id")
	case s.given && len(mail.Signals) > 0:
		if blind.Is(ctx) || bytes.Equal(mail.Signals[0].Body, s.body) {
			return true, nil
		}
		e := runlane.NewConflict(
			runlane.ConflictSignal,
			fmt.Sprintf("signal %q was sent with this id and another body", s.name),
		)
		e.RunID, e.Retryable, e.Hint = run.ID, false, "the first one counts; all links to one question are one answer"
		return false, e
	case run.Status.Terminal():
		return false, ended(run, fmt.Sprintf("the run is %s: no signal reaches it", run.Status))
	}
	err = run.Waiting.CheckBody(s.name, s.body)
	if e, ok := asError(err); ok {
		e.RunID = run.ID
	}
	return false, err
}

// checkLimit refuses a signal to a run that has the maximum, unless the run waits for it: an answer by a token, one per
// name, or the first signal of a name that the run waits for.
func (s *sending) checkLimit(ctx context.Context, mail *lane.Mail, satisfied bool) error {
	if mail.Count < runlane.MaxRunSignals || s.answer {
		return nil
	}
	w := mail.Run.Waiting
	if satisfied || w.Has(runlane.WaitingSignal) && slices.Contains(w.Names, s.name) { // of a wait for all
		there, err := s.rt.storage().ReadMail(ctx, &lane.MailQuery{
			RunKey: s.key, Names: []string{s.name}, WithoutBodies: true,
		})
		if err != nil || len(there.Signals) == 0 {
			return err
		}
	}
	return &runlane.Error{
		Code:    runlane.ErrValidationFailed,
		RunID:   s.key.RunID,
		Message: fmt.Sprintf("the run has %d signals, the most that it keeps without a wait for them", mail.Count),
		Hint: "send what it waits for, or an answer by a token: these are always taken; send others to a run for " +
			"each round, or fewer of them",
		Retryable: w == nil, // it may wait for this one next
	}
}

func ended(run *runlane.Run, message string) error {
	return &runlane.Error{
		Code:    runlane.ErrRunEnded,
		Message: message,
		RunID:   run.ID,
		Hint:    "a finished run never changes again",
		Cause:   runlane.ErrValidationFailed,
	}
}

// satisfies reports whether the signal ends the wait. For a wait for all it reads the other signals now; one that comes
// after the count was read fails the write.
func (s *sending) satisfies(ctx context.Context, w *runlane.Waiting) (bool, error) {
	switch {
	case w.Has(runlane.WaitingAnything):
		return true, nil
	case !w.Has(runlane.WaitingSignal) && !w.Has(runlane.WaitingInput) || !slices.Contains(w.Names, s.name):
		return false, nil
	case !w.All:
		return true, nil
	}
	q := &lane.MailQuery{RunKey: s.key, WithoutBodies: true}
	for _, name := range w.Names {
		if name != s.name {
			q.Names = append(q.Names, name)
		}
	}
	if len(q.Names) == 0 {
		return true, nil
	}
	mail, err := s.rt.storage().ReadMail(ctx, q)
	if err != nil {
		return false, err
	}
	return len(mail.Signals) == len(q.Names), nil
}

func (s *sending) resumption(run *runlane.Run, at time.Time) (*lane.AppendCommand, error) {
	by := runlane.WaitingSignal
	if run.Waiting.Has(runlane.WaitingInput) {
		by = runlane.WaitingInput
	}
	return s.rt.resumption(run, at, s.actor, &runlane.RunResumed{By: by, Name: s.name, ID: s.id})
}

// Signal sends a signal to another run.
func (x *execution) Signal(
	ctx context.Context, id runlane.RunID, value runlane.SignalValue, options *runlane.SignalOptions,
) error {
	return x.rt.Signal(ctx, id, value, x.asWorker(options))
}

// asWorker copies the options. Without an actor the worker is the sender.
func (x *execution) asWorker(options *runlane.SignalOptions) *runlane.SignalOptions {
	given := runlane.SignalOptions{}
	if options != nil {
		given = *options
	}
	if given.Actor == (runlane.Actor{}) {
		given.Actor = x.actor()
	}
	return &given
}
