package memlane

import (
	"context"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// ListDeadLetters pages given-up wakeups, oldest first.
func (s *Storage) ListDeadLetters(
	ctx context.Context, q *lane.DeadLetterQuery,
) (*runlane.Page[runlane.DeadLetter], error) {
	if err := ended(ctx); err != nil {
		return nil, err
	}
	scope := newScope("ListDeadLetters", q.Environment, string(q.Queue))
	limit, after, err := openPage(&q.PageQuery, scope)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	env := s.find(q.Environment)
	if env == nil {
		return &runlane.Page[runlane.DeadLetter]{}, nil
	}
	return fillPage(ascend(env.sets(dead), after.place()), scope, limit, 0, func(i item) (runlane.DeadLetter, verdict) {
		e := i.entry
		if q.Queue != "" && e.created.Queue != q.Queue {
			return runlane.DeadLetter{}, skip
		}
		r := e.liveRow()
		return runlane.DeadLetter{
			RunID:    e.id,
			OutboxID: eventID(e.id, r.sequence),
			Queue:    e.created.Queue,
			Attempts: r.attempts,
			Failure:  r.failure.Clone(),
			Since:    r.since.time(),
		}, take
	}), nil
}

// RequeueDeadLetters makes rows pending again, due at once, as if they had never been tried.
func (s *Storage) RequeueDeadLetters(ctx context.Context, c *lane.RequeueCommand) (requeued int, err error) {
	if err := ended(ctx); err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	env := s.find(c.Environment)
	if env == nil {
		return 0, nil
	}
	for _, id := range c.IDs {
		e, r := env.row(id)
		if r == nil || r != e.liveRow() || r.status != lane.OutboxDeadLettered {
			continue
		}
		r.status, r.attempts, r.failure, r.availableAt = lane.OutboxPending, 0, nil, at(c.At)
		env.reindex(e)
		requeued++
	}
	return requeued, nil
}
