package sqlitelane

import (
	"context"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/embedded"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/sqlitelane/internal/file"
)

// ListDeadLetters pages given-up wakeups, oldest first.
func (s *Storage) ListDeadLetters(
	ctx context.Context, q *lane.DeadLetterQuery,
) (page *runlane.Page[runlane.DeadLetter], err error) {
	if err := embedded.Ended(ctx); err != nil {
		return nil, err
	}
	scope := embedded.NewScope("ListDeadLetters", q.Environment, string(q.Queue))
	limit, after, err := embedded.OpenPage(&q.PageQuery, scope)
	if err != nil {
		return nil, err
	}
	err = s.read(ctx, true, func(c *file.Conn) error {
		env, err := s.names.known(c, q.Environment.Name())
		if err != nil {
			return err
		}
		w := newWalk(c, env, q.Environment, after, embedded.BehindAll, false, deliveriesOf(embedded.Dead))
		page, err = embedded.FillPage(w.next, scope, limit, 0, func(i item) (runlane.DeadLetter, embedded.Verdict, error) {
			d := i.Live()
			if d == nil || q.Queue != "" && i.Run.Queue != q.Queue {
				return runlane.DeadLetter{}, embedded.Skip, nil
			}
			return d.DeadLetter(i.Run.ID, i.Run.Queue), embedded.Take, nil
		})
		return err
	})
	return page, err
}

// RequeueDeadLetters implements [lane.Storage].
func (s *Storage) RequeueDeadLetters(ctx context.Context, c *lane.RequeueCommand) (requeued int, err error) {
	if err := embedded.Ended(ctx); err != nil {
		return 0, err
	}
	err = s.write(ctx, func(t *tx) error {
		requeued = 0
		env, err := s.names.find(t.Conn, c.Environment.Name())
		if err != nil {
			return err
		}
		for _, id := range c.IDs {
			e, d, err := t.row(env, c.Environment, id)
			if err != nil {
				return err
			}
			if d == nil || !e.Requeue(e.known(), d, embedded.At(c.At)) {
				continue
			}
			if err := t.save(e); err != nil {
				return err
			}
			requeued++
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	return requeued, nil
}
