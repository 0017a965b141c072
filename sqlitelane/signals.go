package sqlitelane

import (
	"bytes"
	"context"

	"github.com/runlane/runlane-go/internal/embedded"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/sqlitelane/internal/file"
	"github.com/runlane/runlane-go/sqlitelane/internal/record"
)

func signalCount(c *file.Conn, e *entry) (int64, error) {
	row, err := c.One("SELECT count(*) FROM signals WHERE run = ? AND created = ?",
		e.n, int64(embedded.At(e.Run.CreatedAt)))
	if err != nil || row == nil {
		return 0, err
	}
	return number(row[0]), nil
}

// ReadMail returns signals sent to a run.
func (s *Storage) ReadMail(ctx context.Context, q *lane.MailQuery) (mail *lane.Mail, err error) {
	if err := embedded.Ended(ctx); err != nil {
		return nil, err
	}
	err = s.read(ctx, true, func(c *file.Conn) error {
		mail = &lane.Mail{}
		e, err := s.readRun(c, q.Environment, q.RunID)
		switch {
		case err != nil:
			return err
		case e == nil:
			return embedded.NotFound(q.RunID)
		}
		mail.Run = e.bareRun()
		if mail.Count, err = signalCount(c, e); err != nil {
			return err
		}
		for _, name := range q.Names {
			signal, err := signalOf(c, e, name, q.ID, !q.WithoutBodies)
			if err != nil {
				return err
			}
			if signal != nil {
				mail.Signals = append(mail.Signals, *signal)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return mail, nil
}

// signalOf returns a signal by its ID, or the first one with the name if id is "", or nil. With min, SQLite returns
// the other columns of the same row without sorting.
func signalOf(c *file.Conn, e *entry, name, id string, bodies bool) (*lane.Signal, error) {
	row, err := c.One(`SELECT id, min(number), at, place, body FROM signals
		WHERE run = ? AND created = ? AND name = ? AND (? = '' OR id = ?)`,
		e.n, int64(embedded.At(e.Run.CreatedAt)), name, id, id)
	if err != nil || row == nil || row[1] == nil {
		return nil, err
	}
	signal := &lane.Signal{
		Name:   name,
		ID:     text(row[0]),
		Number: number(row[1]),
		SentAt: embedded.Millis(number(row[2])).Time(),
	}
	if bodies {
		body, err := record.Open(record.Place(number(row[3])), blob(row[4]))
		if err != nil {
			return nil, err
		}
		signal.Body = bytes.Clone(body)
	}
	return signal, nil
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
		return nil, s.write(ctx, func(t *tx) error {
			_, e, err := t.run(c.Environment, c.RunID)
			if err != nil {
				return err
			}
			if err := t.judgeSignal(e, c); err != nil {
				return err
			}
			return t.putSignal(e, c)
		})
	}
	return s.commit(ctx, &c.Resume.Transition, c.Resume.Outbox, judgment{
		eligibility: func(t *tx, e *entry, todo *plan) error {
			if err := t.judgeSignal(e, c); err != nil {
				return err
			}
			todo.signal = c
			return embedded.JudgeAppend(e.known(), &c.Resume.Transition)
		},
	})
}

func (t *tx) judgeSignal(e *entry, c *lane.SignalCommand) error {
	known := e.known()
	if !known.Is(embedded.At(c.CreatedAt)) {
		return lane.Moved(c.RunID)
	}
	there, err := signalOf(t.Conn, e, c.Signal.Name, c.Signal.ID, false)
	if err != nil {
		return err
	}
	count, err := signalCount(t.Conn, e)
	if err != nil {
		return err
	}
	return embedded.JudgeSignal(known, c, there != nil, count)
}

func (t *tx) putSignal(e *entry, c *lane.SignalCommand) error {
	place, body := record.Shelve(c.Signal.Body)
	return t.Exec("INSERT INTO signals(run, created, name, id, number, at, place, body) VALUES(?, ?, ?, ?, ?, ?, ?, ?)",
		e.n, int64(embedded.At(e.Run.CreatedAt)), c.Signal.Name, c.Signal.ID, c.Signal.Number,
		int64(embedded.At(c.Signal.SentAt)), int64(place), body)
}
