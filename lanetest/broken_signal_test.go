package lanetest_test

import (
	"context"
	"errors"
	"maps"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// sleepsThroughMail suspends whatever came since its look.
type sleepsThroughMail struct{ sound }

func (s sleepsThroughMail) AppendRunEvents(ctx context.Context, c *lane.AppendCommand) (*lane.Commit, error) {
	blind := *c
	blind.Look = nil
	return s.sound.AppendRunEvents(ctx, &blind)
}

// resumesApart puts the signal, and then resumes the run.
type resumesApart struct{ sound }

func (s resumesApart) SendSignal(ctx context.Context, c *lane.SignalCommand) (*lane.Commit, error) {
	if c.Resume == nil {
		return s.sound.SendSignal(ctx, c)
	}
	alone := *c
	alone.Resume = nil
	if run, err := s.GetRun(ctx, c.RunKey); err == nil {
		alone.Wait = run.EventSequence
	}
	if _, err := s.sound.SendSignal(ctx, &alone); err != nil {
		return nil, err
	}
	return s.sound.AppendRunEvents(ctx, c.Resume)
}

// ignoresWaits puts a signal beside a run that began to wait since.
type ignoresWaits struct{ sound }

func (s ignoresWaits) SendSignal(ctx context.Context, c *lane.SignalCommand) (*lane.Commit, error) {
	forced := *c
	if run, err := s.GetRun(ctx, c.RunKey); err == nil {
		forced.Wait = run.EventSequence
	}
	return s.sound.SendSignal(ctx, &forced)
}

// countsAnew takes any count.
type countsAnew struct{ sound }

func (s countsAnew) SendSignal(ctx context.Context, c *lane.SignalCommand) (*lane.Commit, error) {
	forced := *c
	if mail, err := s.ReadMail(ctx, &lane.MailQuery{RunKey: c.RunKey}); err == nil {
		forced.Count, forced.Signal.Number = mail.Count, mail.Count+1
	}
	return s.sound.SendSignal(ctx, &forced)
}

// toldTwice takes a repetition for a success.
type toldTwice struct{ sound }

func (s toldTwice) SendSignal(ctx context.Context, c *lane.SignalCommand) (*lane.Commit, error) {
	commit, err := s.sound.SendSignal(ctx, c)
	if errors.Is(err, runlane.ConflictSignal) {
		return nil, nil
	}
	return commit, err
}

// readsByID takes the smallest id for the first signal.
type readsByID struct{ sound }

func (s readsByID) ReadMail(ctx context.Context, q *lane.MailQuery) (*lane.Mail, error) {
	if q.ID == "" {
		for _, id := range []string{"a", "0", "1"} {
			of := *q
			of.ID = id
			if mail, err := s.sound.ReadMail(ctx, &of); err != nil || len(mail.Signals) == len(q.Names) && len(q.Names) > 0 {
				return mail, err
			}
		}
	}
	return s.sound.ReadMail(ctx, q)
}

func init() {
	maps.Copy(broken, map[string]struct {
		storage func(sound) lane.Storage
		fails   string // group/case
	}{
		"sleepsThroughMail": {func(s sound) lane.Storage { return sleepsThroughMail{s} }, "Signals/ASuspensionDependsOnTheMailThatWasLookedAt"},
		"resumesApart":      {func(s sound) lane.Storage { return resumesApart{s} }, "Signals/OnAStaleSequenceNothingIsPut"},
		"ignoresWaits":      {func(s sound) lane.Storage { return ignoresWaits{s} }, "Signals/DependOnTheWaitThatWasRead"},
		"countsAnew":        {func(s sound) lane.Storage { return countsAnew{s} }, "Signals/DependOnTheCountThatWasRead"},
		"readsByID":         {func(s sound) lane.Storage { return readsByID{s} }, "Signals/OfANameTheOneThatCameFirstIsRead"},
		"toldTwice":         {func(s sound) lane.Storage { return toldTwice{s} }, "Signals/OneOfANameAndIDIsPut"},
	})
}
