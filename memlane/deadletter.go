package memlane

import (
	"context"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/embedded"
	"github.com/runlane/runlane-go/lane"
)

// ListDeadLetters pages given-up wakeups, oldest first.
func (s *Storage) ListDeadLetters(
	ctx context.Context, q *lane.DeadLetterQuery,
) (*runlane.Page[runlane.DeadLetter], error) {
	if err := embedded.Ended(ctx); err != nil {
		return nil, err
	}
	scope := embedded.NewScope("ListDeadLetters", q.Environment, string(q.Queue))
	limit, after, err := embedded.OpenPage(&q.PageQuery, scope)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	env := s.find(q.Environment)
	if env == nil {
		return &runlane.Page[runlane.DeadLetter]{}, nil
	}
	return embedded.FillPage(ascend(env.sets(dead), placeOf(after)).pop, scope, limit, 0, func(i item) (runlane.DeadLetter, embedded.Verdict, error) {
		e := i.entry
		if q.Queue != "" && e.created.Queue != q.Queue {
			return runlane.DeadLetter{}, embedded.Skip, nil
		}
		return e.liveRow().DeadLetter(e.id, e.created.Queue), embedded.Take, nil
	})
}

// RequeueDeadLetters makes rows pending again and due at once, with no attempts.
func (s *Storage) RequeueDeadLetters(ctx context.Context, c *lane.RequeueCommand) (requeued int, err error) {
	if err := embedded.Ended(ctx); err != nil {
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
		if r != nil && e.outbox.Requeue(e.known(), r, embedded.At(c.At)) {
			env.reindex(e)
			requeued++
		}
	}
	return requeued, nil
}
