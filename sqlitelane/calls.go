package sqlitelane

import (
	"cmp"
	"context"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/embedded"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/sqlitelane/internal/file"
)

// calls returns the run's calls by name, or only the call with the name.
func calls(c *file.Conn, e *entry, name string) (found []lane.RunCall, err error) {
	err = c.Each(`SELECT name, task, count, ended, sum, at FROM calls
		WHERE run = ? AND created = ? AND (? = '' OR name = ?) ORDER BY name`,
		func(row []driverValue) (bool, error) {
			found = append(found, lane.RunCall{
				Name:   text(row[0]),
				TaskID: runlane.TaskID(text(row[1])),
				Count:  int(number(row[2])),
				Ended:  int(number(row[3])),
				Sum:    text(row[4]),
				At:     embedded.Millis(number(row[5])).Time(),
			})
			return true, nil
		}, e.n, int64(embedded.At(e.Run.CreatedAt)), name, name)
	return found, err
}

// notificationPending reports whether the run has ended and still owes notifications, see [lane.MustNotify].
func notificationPending(c *file.Conn, e *entry) (bool, error) {
	row, err := c.One("SELECT 1 FROM untold WHERE run = ?", e.n)
	return row != nil, err
}

// allUnfinished reports whether each of the calls has children that have not ended.
func allUnfinished(c *file.Conn, e *entry, names []string) (bool, error) {
	for _, name := range names {
		found, err := calls(c, e, name)
		if err != nil || len(found) == 0 || found[0].Whole() {
			return false, err
		}
	}
	return true, nil
}

// BeginCall stores a call of a run.
func (s *Storage) BeginCall(ctx context.Context, c *lane.CallCommand) (kept *lane.RunCall, err error) {
	if err := embedded.Ended(ctx); err != nil {
		return nil, err
	}
	if err := c.Validate(); err != nil {
		return nil, err
	}
	err = s.write(ctx, func(t *tx) error {
		_, e, err := t.run(c.Environment, c.RunID)
		if err := cmp.Or(err, embedded.JudgeCall(e.known(), c)); err != nil {
			return err
		}
		found, err := calls(t.Conn, e, c.Call.Name)
		if err != nil {
			return err
		}
		if len(found) > 0 {
			kept = &found[0]
			return nil
		}
		kept = new(c.Call)
		kept.At = runlane.UTCMillis(kept.At)
		err = t.Exec(`INSERT INTO calls(run, created, name, task, count, ended, sum, at)
			VALUES(?, ?, ?, ?, ?, 0, ?, ?)`,
			e.n, int64(embedded.At(c.CreatedAt)), kept.Name, string(kept.TaskID), int64(kept.Count), kept.Sum,
			int64(embedded.At(kept.At)))
		if err != nil || e.Calls {
			return err
		}
		e.Calls = true
		return t.save(e)
	})
	return kept, err
}

// ReadCalls returns the calls of a run.
func (s *Storage) ReadCalls(ctx context.Context, q *lane.CallQuery) (read *lane.CallsRead, err error) {
	if err := embedded.Ended(ctx); err != nil {
		return nil, err
	}
	err = s.read(ctx, true, func(c *file.Conn) error {
		e, err := s.readRun(c, q.Environment, q.RunID)
		switch {
		case err != nil:
			return err
		case e == nil:
			return embedded.NotFound(q.RunID)
		}
		read = &lane.CallsRead{Run: e.bareRun()}
		if read.NotificationPending, err = notificationPending(c, e); err != nil || !e.Calls {
			return err
		}
		read.Calls, err = calls(c, e, q.Name)
		return err
	})
	if err != nil {
		return nil, err
	}
	return read, nil
}

// runsToNotify lists ended runs that owe notifications, by when they ended.
var runsToNotify = list{column: "at", where: "TRUE", from: "untold CROSS JOIN runs ON runs.n = untold.run"}

// ListRunsToNotify returns ended runs that owe notifications.
func (s *Storage) ListRunsToNotify(ctx context.Context, q *lane.DueQuery) (*runlane.Page[lane.RunRef], error) {
	return s.scan(ctx, "ListRunsToNotify", q,
		func(*file.Conn, *entry, *lane.RunRef) (embedded.Verdict, error) { return embedded.Take, nil }, nil, runsToNotify)
}

// NotifyEnd notifies one caller of an end, once.
func (s *Storage) NotifyEnd(ctx context.Context, c *lane.NotifyCommand) (*lane.Commit, error) {
	if err := embedded.Ended(ctx); err != nil {
		return nil, err
	}
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if c.Resume == nil {
		return nil, s.write(ctx, func(t *tx) error {
			if err := t.judgeNotification(c); err != nil {
				return err
			}
			return t.settleEnd(c)
		})
	}
	return s.commit(ctx, &c.Resume.Transition, c.Resume.Outbox, judgment{
		eligibility: func(t *tx, e *entry, todo *plan) error {
			if err := t.judgeNotification(c); err != nil {
				return err
			}
			todo.notify = c
			return embedded.JudgeAppend(e.known(), &c.Resume.Transition)
		},
	})
}

// judgeNotification returns why the notification is not due.
func (t *tx) judgeNotification(c *lane.NotifyCommand) error {
	e, err := t.created(c.RunKey, embedded.At(c.CreatedAt))
	if err != nil {
		return err
	}
	if e == nil {
		return c.AlreadyNotified()
	}
	if is, err := notificationPending(t.Conn, e); err != nil || !is {
		if err == nil {
			err = c.AlreadyNotified()
		}
		return err
	}
	if c.To == nil {
		return nil
	}
	to, err := t.created(lane.RunKey{Environment: c.Environment, RunID: c.To.RunID}, embedded.At(c.To.CreatedAt))
	if err != nil {
		return err
	}
	if to == nil {
		return c.AlreadyNotified()
	}
	found, err := calls(t.Conn, to, c.To.Name)
	if err != nil {
		return err
	}
	var kept *lane.RunCall
	if len(found) > 0 {
		kept = &found[0]
	}
	return embedded.JudgeNotification(to.known(), c, kept)
}

// created returns the run if it was created at that time, else nil.
func (t *tx) created(key lane.RunKey, at embedded.Millis) (*entry, error) {
	_, e, err := t.run(key.Environment, key.RunID)
	if err != nil || e == nil || embedded.At(e.Run.CreatedAt) != at {
		return nil, err
	}
	return e, nil
}

// settleEnd removes the mark and counts the child as ended.
func (t *tx) settleEnd(c *lane.NotifyCommand) error {
	e, err := t.created(c.RunKey, embedded.At(c.CreatedAt))
	if err == nil {
		err = t.Exec("DELETE FROM untold WHERE run = ?", e.n)
	}
	if err != nil || c.To == nil {
		return err
	}
	created := embedded.At(c.To.CreatedAt)
	to, err := t.created(lane.RunKey{Environment: c.Environment, RunID: c.To.RunID}, created)
	if err != nil {
		return err
	}
	return t.Exec("UPDATE calls SET ended = ended + 1 WHERE run = ? AND created = ? AND name = ?",
		to.n, int64(created), c.To.Name)
}

// markToNotify marks a run that has just ended if it owes notifications, and reports that.
func (t *tx) markToNotify(e *entry) (bool, error) {
	if !lane.MustNotify(&e.Run, e.Calls) {
		return false, nil
	}
	return true, t.Exec("INSERT INTO untold(run) VALUES(?)", e.n)
}

func (t *tx) needed(e *entry, p *embedded.Pruning) (bool, error) {
	if is, err := notificationPending(t.Conn, e); is || err != nil {
		return is, err
	}
	needed, err := t.neededBySource(e, p)
	if needed || err != nil {
		return needed, err
	}
	return p.Remembered(e.Run.ID, e.known(), func(id runlane.RunID) (*embedded.State, error) {
		run, err := t.find(e.env, e.Run.Environment, id)
		return run.known(), err
	})
}

func (t *tx) neededBySource(e *entry, p *embedded.Pruning) (bool, error) {
	switch source := &e.Run.Source; {
	case source.Type == runlane.SourceFlow:
		f, err := flow(t.Conn, e.env, source.FlowID)
		return err == nil && p.Needed(source, f, nil), err
	case source.Type == runlane.SourceCall || lane.Repeats(source):
		from, err := t.find(e.env, e.Run.Environment, source.RunID)
		return err == nil && p.Needed(source, nil, from.known()), err
	default:
		return false, nil
	}
}
