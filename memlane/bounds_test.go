package memlane_test

import (
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/lanetest"
	"github.com/runlane/runlane-go/memlane"
)

// A page looks at a bounded number of rows, and its cursor goes on behind them.
func TestPages_LookAtABoundedNumberOfRows(t *testing.T) {
	t.Parallel()
	s, f, at := memlane.NewStorage(nil), lanetest.NewFactory("bounds"), time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	create := func(queue runlane.QueueName) {
		if _, err := s.AppendRunEvents(t.Context(), f.Creation(t, at, lanetest.RunOptions{Queue: queue, NoDelivery: true})); err != nil {
			t.Fatal(err)
		}
	}
	for range 2500 {
		create("heavy")
	}
	create("rare")
	q := &lane.DueQuery{PageQuery: lane.PageQuery{Environment: "bounds"}, At: at.Add(time.Hour), Queues: []runlane.QueueName{"rare"}}
	var sizes []int
	for {
		page, err := s.ListRunsNeedingRedelivery(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		sizes = append(sizes, len(page.Items))
		if q.After = page.Next; q.After == "" {
			break
		}
	}
	if len(sizes) != 3 || sizes[0] != 0 || sizes[1] != 0 || sizes[2] != 1 {
		t.Fatalf("pages have %v runs, want the only one on the third", sizes)
	}
}
