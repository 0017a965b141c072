package lives

import (
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/lanetest"
)

// CheckOffers has a run get the slot that was offered, and wait again from the same millisecond on. The next free slot
// is for the one that has waited longest, which it is by its id.
func CheckOffers(t *testing.T, s lane.Storage) {
	t.Helper()
	const name = "offers"
	f, ctx := lanetest.NewFactory(name), t.Context()
	now := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	const limit = 2
	offered := func() runlane.RunID {
		t.Helper()
		key := ""
		page, err := s.ListRunsNeedingDispatch(ctx, &lane.DueQuery{
			PageQuery: lane.PageQuery{Environment: name, Limit: 1}, At: now, ConcurrencyKey: &key,
			Bounded: []runlane.Queue{{Name: lanetest.Queue, Concurrency: limit}},
		})
		if err != nil || len(page.Items) != 1 {
			t.Fatal(page, err)
		}
		return page.Items[0].RunID
	}
	var runs []*runlane.Run
	for range 2 {
		creation := f.Creation(t, now, lanetest.RunOptions{Concurrency: limit, NoDelivery: true})
		commit, err := s.AppendRunEvents(ctx, creation)
		if err != nil {
			t.Fatal(err)
		}
		runs = append(runs, commit.Run)
	}
	first := runs[0]
	if got := offered(); got != first.ID {
		t.Fatalf("%s was offered before %s", got, first.ID)
	}
	reserved, err := s.ReserveRunDispatch(ctx, f.Reserve(t, first, now, now.Add(time.Minute), limit))
	if err != nil || reserved.Outcome != lane.Acquired {
		t.Fatal(reserved, err)
	}
	claim := f.Claim(t, reserved.Commit.Run, now, now.Add(time.Minute), f.NewToken())
	claim.Queue.Concurrency, claim.Slot = limit, true
	claimed, err := s.ClaimRunLease(ctx, claim)
	if err != nil || claimed.Outcome != lane.Acquired {
		t.Fatal(claimed, err)
	}
	retried := f.Append(t, claimed.Commit.Run, now, lanetest.Retried(claimed.Commit.Run, now))
	retried.Queue.Concurrency = limit
	if _, err := s.AppendRunEvents(ctx, retried); err != nil {
		t.Fatal(err)
	}
	if got := offered(); got != first.ID {
		t.Errorf("%s was offered, not %s, which waits as long and comes first", got, first.ID)
	}
	if got := offered(); got != runs[1].ID {
		t.Errorf("%s was offered again at once", got)
	}
}
