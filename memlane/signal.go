package memlane

import (
	"bytes"
	"context"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/embedded"
	"github.com/runlane/runlane-go/lane"
)

// mailbox holds the signals sent to a run.
type mailbox struct {
	count int64
	byID  map[string]map[string]*lane.Signal // by name and ID; signals are never modified
}

func (e *entry) mail() *mailbox { return e.shard.mail[e.id] }

func (e *entry) signalCount() int64 {
	if m := e.mail(); m != nil {
		return m.count
	}
	return 0
}

// find returns a signal by its ID, or the first one with the name if id is "".
func (m *mailbox) find(name, id string) *lane.Signal {
	if m == nil {
		return nil
	}
	if id != "" {
		return m.byID[name][id]
	}
	var first *lane.Signal
	for _, s := range m.byID[name] {
		if first == nil || s.Number < first.Number {
			first = s
		}
	}
	return first
}

func (e *entry) put(s *lane.Signal) {
	m := e.mail()
	if m == nil {
		m = &mailbox{byID: map[string]map[string]*lane.Signal{}}
		if e.shard.mail == nil {
			e.shard.mail = map[runlane.RunID]*mailbox{}
		}
		e.shard.mail[e.id] = m
	}
	if m.byID[s.Name] == nil {
		m.byID[s.Name] = map[string]*lane.Signal{}
	}
	kept := *s
	kept.Body, kept.SentAt = bytes.Clone(s.Body), runlane.UTCMillis(s.SentAt)
	m.byID[s.Name][s.ID] = &kept
	m.count++
}

// ReadMail returns signals sent to a run.
func (s *Storage) ReadMail(ctx context.Context, q *lane.MailQuery) (*lane.Mail, error) {
	if err := embedded.Ended(ctx); err != nil {
		return nil, err
	}
	h, env := s.lockRun(q.Environment, q.RunID)
	defer h.unlock()
	e := env.run(q.RunID)
	if e == nil {
		return nil, embedded.NotFound(q.RunID)
	}
	mail := &lane.Mail{Run: e.view().project(false), Count: e.signalCount()}
	for _, name := range q.Names {
		if found := e.mail().find(name, q.ID); found != nil {
			signal := *found
			if signal.Body = nil; !q.WithoutBodies {
				signal.Body = bytes.Clone(found.Body)
			}
			mail.Signals = append(mail.Signals, signal)
		}
	}
	return mail, nil
}

// SendSignal stores a signal for an active run.
func (s *Storage) SendSignal(ctx context.Context, c *lane.SignalCommand) (*lane.Commit, error) {
	if err := embedded.Ended(ctx); err != nil {
		return nil, err
	}
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if c.Resume == nil {
		h, env := s.lockRun(c.Environment, c.RunID)
		defer h.unlock()
		e := env.run(c.RunID)
		if err := judgeSignal(e, c); err != nil {
			return nil, err
		}
		e.put(&c.Signal)
		return nil, nil
	}
	r, err := s.commit(&c.Resume.Transition, c.Resume.Outbox, nil, func(_ *environment, e *entry) error {
		if err := judgeSignal(e, c); err != nil {
			return err
		}
		if err := embedded.JudgeAppend(e.known(), &c.Resume.Transition); err != nil {
			return err
		}
		e.put(&c.Signal)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &r.commit, nil
}

func judgeSignal(e *entry, c *lane.SignalCommand) error {
	if e == nil {
		return lane.Moved(c.RunID)
	}
	known := e.view().known()
	if !known.Is(embedded.At(c.CreatedAt)) {
		return lane.Moved(c.RunID)
	}
	return embedded.JudgeSignal(known, c, e.mail().find(c.Signal.Name, c.Signal.ID) != nil, e.signalCount())
}
