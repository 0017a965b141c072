package memlane_test

import (
	"testing"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/proof/scenarios"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/memlane"
)

func TestFeed_IsExact(t *testing.T) {
	t.Parallel()
	scenarios.RunFeed(t, scenarios.FeedHarness{NewLane: func(testing.TB) *lane.Lane { return memlane.New() }})
}

// What is kept is bounded, and a position before it is refused.
func TestFeed_OldPositions_AreRefused(t *testing.T) {
	t.Parallel()
	s := memlane.NewStorage(nil)
	begun, err := s.BeginFeed(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s.Note(lane.FeedKept + 7)
	q := &lane.FeedQuery{After: begun, Limit: 10}
	if _, err := s.ReadFeed(t.Context(), q); runlane.CodeOf(err) != runlane.ErrValidationFailed {
		t.Errorf("what is not kept: %v", err)
	}
	q.After.Number = 7
	page, err := s.ReadFeed(t.Context(), q)
	if err != nil || len(page.Items) != 10 || page.Items[0].Position.Number != 8 || page.Next.Number != 17 || !page.More {
		t.Errorf("%v: %+v", err, page)
	}
}

func TestFeed_PositionOfAnotherLane_IsRefused(t *testing.T) {
	t.Parallel()
	gone, s := memlane.NewStorage(nil), memlane.NewStorage(nil)
	after, err := gone.BeginFeed(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.BeginFeed(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.ReadFeed(t.Context(), &lane.FeedQuery{After: after, Limit: 1}); runlane.CodeOf(err) != runlane.ErrValidationFailed {
		t.Error(err)
	}
}
