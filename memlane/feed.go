package memlane

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"

	"github.com/runlane/runlane-go/internal/embedded"
	"github.com/runlane/runlane-go/lane"
)

// feed is the order of commits. Its lock is taken last, inside the lock of the run's shard: a commit is in the feed
// before its caller gets the answer, and the feed has no gaps.
type feed struct {
	on atomic.Bool

	mu    sync.Mutex
	items []feedItem // the latest ones; each at its position modulo len(items)
	last  int64      // the last position
	tag   int64      // identifies this feed
}

type feedItem struct {
	environment string
	item        lane.FeedItem
}

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
			Position:  lane.FeedPosition{Number: f.last, Tag: f.tag},
			RunID:     e.id,
			CreatedAt: e.state.CreatedAt.Time(),
			First:     t.ExpectedSequence + 1,
			Last:      t.ExpectedSequence + int64(len(t.Events)),
		},
	}
}

// BeginFeed implements lane.Storage. It waits for commits under way, which are not in the feed.
func (s *Storage) BeginFeed(ctx context.Context) (lane.FeedPosition, error) {
	if err := embedded.Ended(ctx); err != nil {
		return lane.FeedPosition{}, err
	}
	h := s.lockAll()
	defer h.unlock()
	if !s.feed.on.Swap(true) {
		s.feed.tag = rand.Int64() // needs to differ, is no secret
	}
	return lane.FeedPosition{Number: s.feed.last, Tag: s.feed.tag}, nil
}

// ReadFeed implements lane.Storage.
func (s *Storage) ReadFeed(ctx context.Context, q *lane.FeedQuery) (*lane.FeedPage, error) {
	if err := embedded.Ended(ctx); err != nil {
		return nil, err
	}
	f := &s.feed
	f.mu.Lock()
	defer f.mu.Unlock()
	after := q.After.Number
	if q.Again {
		after--
	}
	if !f.on.Load() || q.After.Tag != f.tag || q.After.Number > f.last || after < f.last-int64(len(f.items)) {
		return nil, lane.FeedLost()
	}
	next := min(f.last, after+int64(q.Limit))
	page := &lane.FeedPage{Next: lane.FeedPosition{Number: next, Tag: f.tag}, More: next < f.last}
	for at := after; at < next; at++ {
		if kept := &f.items[at%lane.FeedKept]; kept.environment == q.Environment.Name() {
			page.Items = append(page.Items, kept.item)
		}
	}
	return page, nil
}
