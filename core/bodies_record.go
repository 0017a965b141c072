package core

import (
	"context"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// KeepRecord implements lane.Storage.
func (s *bodyStorage) KeepRecord(ctx context.Context, c *lane.KeepCommand) (*lane.StepRecord, error) {
	command := c
	if s.large(c.Record.Result) {
		run := &lane.RunInstance{RunID: c.RunID, CreatedAt: c.CreatedAt}
		stored, err := s.put(ctx, c.RunKey, run, c.Record.Result)
		if err != nil {
			return nil, err
		}
		given := *c
		given.Record.Result = stored
		command = &given
	}
	record, err := s.Storage.KeepRecord(ctx, command)
	if err != nil {
		return nil, err
	}
	return record, s.wholeRecord(ctx, c.RunKey, record)
}

// ListRecords implements lane.Storage.
func (s *bodyStorage) ListRecords(ctx context.Context, q *lane.RecordQuery) (*runlane.Page[lane.StepRecord], error) {
	page, err := s.Storage.ListRecords(ctx, q)
	if err != nil {
		return nil, err
	}
	key := lane.RunKey{Environment: q.Environment, RunID: q.RunID}
	for i := range page.Items {
		if err := s.wholeRecord(ctx, key, &page.Items[i]); err != nil {
			return nil, err
		}
	}
	return page, nil
}

func (s *bodyStorage) wholeRecord(ctx context.Context, key lane.RunKey, r *lane.StepRecord) (err error) {
	r.Result, _, r.Fault, err = s.get(ctx, key, r.Result)
	return err
}

// SendSignal implements lane.Storage.
func (s *bodyStorage) SendSignal(ctx context.Context, c *lane.SignalCommand) (*lane.Commit, error) {
	k, resume, err := s.keepResume(ctx, c.Resume)
	if err != nil {
		return nil, err
	}
	run := &lane.RunInstance{RunID: c.RunID, CreatedAt: c.CreatedAt}
	stored, err := s.put(ctx, c.RunKey, run, c.Signal.Body)
	if err != nil {
		return nil, err
	}
	command := *c
	command.Signal.Body, command.Resume = stored, resume
	commit, err := s.Storage.SendSignal(ctx, &command)
	k.commit(commit)
	return commit, err
}

// ReadMail implements lane.Storage. It fails if a body cannot be had: its caller needs it.
func (s *bodyStorage) ReadMail(ctx context.Context, q *lane.MailQuery) (*lane.Mail, error) {
	mail, err := s.Storage.ReadMail(ctx, q)
	if err != nil || q.WithoutBodies {
		return mail, err
	}
	for i := range mail.Signals {
		signal := &mail.Signals[i]
		body, _, fault, err := s.get(ctx, q.RunKey, signal.Body)
		if err == nil && fault != "" {
			err = unreadableSignal(q.RunID, signal.Name, fault, "")
		}
		if err != nil {
			return nil, err
		}
		signal.Body = body
	}
	return mail, nil
}
