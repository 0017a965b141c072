package memlane

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/runlane/runlane-go/lane"
)

var _ lane.Feed = (*Storage)(nil)

// feed is the order of commits. Its lock is taken last, within that of the run's shard: so a commit is in the feed when
// it is answered, and the feed has no gap.
type feed struct {
	on atomic.Bool

	mu    sync.Mutex
	items []feedItem // the latest ones, at their position modulo their number
	last  int64      // position
}

// feedItem is one commit.
type feedItem struct {
	environment string
	item        lane.FeedItem
}

// note keeps a commit, once the feed was begun.
func (f *feed) note(e *entry, t *lane.Transition) {
	if !f.on.Load() {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.last++
	if len(f.items) < lane.FeedKept {
		f.items = append(f.items, feedItem{})
	}
	f.items[(f.last-1)%lane.FeedKept] = feedItem{
		environment: t.Projected.Environment.Name(),
		item: lane.FeedItem{
			Position:  f.last,
			RunID:     e.id,
			CreatedAt: e.state.createdAt.time(),
			First:     t.ExpectedSequence + 1,
			Last:      t.ExpectedSequence + int64(len(t.Events)),
		},
	}
}

// BeginFeed implements lane.Feed. It waits for commits under way: those are not in the feed.
func (s *Storage) BeginFeed(ctx context.Context) (int64, error) {
	if err := ended(ctx); err != nil {
		return 0, err
	}
	h := s.lockAll()
	defer h.unlock()
	s.feed.on.Store(true)
	return s.feed.last, nil
}

// ReadFeed implements lane.Feed.
func (s *Storage) ReadFeed(ctx context.Context, q *lane.FeedQuery) (*lane.FeedPage, error) {
	if err := ended(ctx); err != nil {
		return nil, err
	}
	f := &s.feed
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.on.Load() || q.After > f.last || q.After < f.last-int64(len(f.items)) {
		return nil, lane.FeedLost()
	}
	page := &lane.FeedPage{Next: min(f.last, q.After+int64(q.Limit))}
	page.More = page.Next < f.last
	for at := q.After; at < page.Next; at++ {
		if kept := &f.items[at%lane.FeedKept]; kept.environment == q.Environment.Name() {
			page.Items = append(page.Items, kept.item)
		}
	}
	return page, nil
}
