package core

import (
	"context"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

func (s *codedStorage) SendSignal(ctx context.Context, c *lane.SignalCommand) (*lane.Commit, error) {
	if s.codec == nil {
		return s.Storage.SendSignal(ctx, c)
	}
	given, changed := *c, ""
	if len(c.Signal.Body) > 0 {
		stored, _, err := s.encodeBody(ctx, signalBody(c.RunKey, &c.Signal), c.Signal.Body)
		if err != nil {
			return nil, err
		}
		given.Signal.Body, changed = stored, codecChanged(c.Signal.Body, stored)
	}
	if c.Resume == nil {
		_, err := s.Storage.SendSignal(ctx, &given)
		return nil, withCodecSizes(err, changed)
	}
	coded, err := s.encodeTransition(ctx, &c.Resume.Transition)
	if err != nil {
		return nil, err
	}
	given.Resume = coded.appended(c.Resume)
	commit, err := s.Storage.SendSignal(ctx, &given)
	if err != nil {
		return nil, withCodecSizes(err, changed)
	}
	coded.commit(commit)
	return commit, nil
}

func (s *codedStorage) NotifyEnd(ctx context.Context, c *lane.NotifyCommand) (*lane.Commit, error) {
	if s.codec == nil || c.Resume == nil {
		return s.Storage.NotifyEnd(ctx, c)
	}
	coded, err := s.encodeTransition(ctx, &c.Resume.Transition)
	if err != nil {
		return nil, err
	}
	given := *c
	given.Resume = coded.appended(c.Resume)
	commit, err := s.Storage.NotifyEnd(ctx, &given)
	if err == nil {
		coded.commit(commit)
	}
	return commit, err
}

// ReadMail fails if a body cannot be opened: its caller needs the body.
func (s *codedStorage) ReadMail(ctx context.Context, q *lane.MailQuery) (*lane.Mail, error) {
	mail, err := s.Storage.ReadMail(ctx, q)
	if err != nil || q.WithoutBodies {
		return mail, err
	}
	for i := range mail.Signals {
		signal := &mail.Signals[i]
		plain, key, fault, err := s.decodeBody(ctx, signalBody(q.RunKey, signal), signal.Body)
		if err == nil && fault != "" {
			err = unreadableSignal(q.RunID, signal.Name, fault, key)
		}
		if err != nil {
			return nil, err
		}
		signal.Body = plain
	}
	return mail, nil
}

func unreadableSignal(run runlane.RunID, name, fault, key string) error {
	return &runlane.Error{
		Code:      runlane.ErrPayloadUnreadable,
		Message:   "the body of signal " + name + " cannot be read here: " + fault,
		RunID:     run,
		Retryable: true,
		Hint:      "give this process the codec and the keys, and the store of bodies, of the one that stored it",
		Meta:      map[string]string{"key": key},
	}
}

func signalBody(key lane.RunKey, signal *lane.Signal) runlane.BodyRef {
	return runlane.BodyRef{
		Environment: runlane.Environment(key.Environment.Name()),
		RunID:       key.RunID,
		Kind:        runlane.BodySignal,
		Name:        signal.Name + ":" + signal.ID,
	}
}
