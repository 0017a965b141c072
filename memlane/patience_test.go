package memlane_test

import (
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/lanetest"
	"github.com/runlane/runlane-go/memlane"
)

// docs/internals/layout.md, Indexes: patience is the reader's. It covers queued runs whose wakeup is on its way and what was claimed from
// there, and waits short enough for a transport's own delay.
func TestScans_PatienceLeavesOutWhatSomebodyIsAtWorkOn(t *testing.T) {
	t.Parallel()
	const queued, short = time.Minute, 30 * time.Second
	start := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	type world struct {
		s *memlane.Storage
		f *lanetest.Factory
	}
	create := func(w world, o lanetest.RunOptions) *runlane.Run {
		t.Helper()
		commit, err := w.s.AppendRunEvents(t.Context(), w.f.Creation(t, start, o))
		if err != nil {
			t.Fatal(err)
		}
		return commit.Run
	}
	claim := func(w world, run *runlane.Run, at, leaseEnd time.Time, byWakeup bool) {
		t.Helper()
		c := w.f.Claim(t, run, at, leaseEnd, "token")
		c.ByWakeup = byWakeup
		if got, err := w.s.ClaimRunLease(t.Context(), c); err != nil || got.Outcome != lane.Acquired {
			t.Fatal(got, err)
		}
	}
	handedOver := lane.InitialOutbox{ClaimUntil: start.Add(runlane.DefaultOutboxClaim)}
	for name, c := range map[string]struct {
		make  func(w world)
		due   time.Time     // without patience
		waits time.Duration // how much later with it
	}{
		"queued, wakeup handed over":     {func(w world) { create(w, lanetest.RunOptions{Outbox: handedOver}) }, start, queued},
		"queued, wakeup published":       {func(w world) { create(w, lanetest.RunOptions{Outbox: lane.InitialOutbox{Published: true}}) }, start, queued},
		"queued, wakeup left to a relay": {func(w world) { create(w, lanetest.RunOptions{}) }, start, 0},
		"short wait": {func(w world) {
			create(w, lanetest.RunOptions{RunAt: start.Add(15 * time.Minute)})
		}, start.Add(15 * time.Minute), short},
		"long wait": {func(w world) {
			create(w, lanetest.RunOptions{RunAt: start.Add(15*time.Minute + time.Millisecond)})
		}, start.Add(15*time.Minute + time.Millisecond), 0},
		"claimed by a wakeup, dead before patience is over": {func(w world) {
			claim(w, create(w, lanetest.RunOptions{Outbox: handedOver}), start, start.Add(10*time.Second), true)
		}, start.Add(10 * time.Second), queued - 10*time.Second},
		"claimed by a wakeup, dead much later": {func(w world) {
			claim(w, create(w, lanetest.RunOptions{Outbox: handedOver}), start, start.Add(time.Hour), true)
		}, start.Add(time.Hour), 0},
		"claimed by a poll worker": {func(w world) {
			claim(w, create(w, lanetest.RunOptions{Outbox: handedOver}), start, start.Add(10*time.Second), false)
		}, start.Add(10 * time.Second), 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := world{memlane.NewStorage(nil), lanetest.NewFactory("patience")}
			c.make(w)
			found := func(at time.Time, patience lane.Patience) bool {
				page, err := w.s.ListRunnableRuns(t.Context(), &lane.DueQuery{
					PageQuery: lane.PageQuery{Environment: "patience"}, At: at, Patience: patience,
				})
				if err != nil {
					t.Fatal(err)
				}
				return len(page.Items) == 1
			}
			patience := lane.Patience{Queued: queued, ShortWait: short}
			for _, look := range []struct {
				at       time.Time
				patience lane.Patience
				want     bool
			}{
				{c.due.Add(-time.Millisecond), lane.Patience{}, false},
				{c.due, lane.Patience{}, true},
				{c.due.Add(c.waits - time.Millisecond), patience, false},
				{c.due.Add(c.waits), patience, true},
			} {
				if got := found(look.at, look.patience); got != look.want {
					t.Errorf("at %s with patience %+v: found %t, want %t", look.at, look.patience, got, look.want)
				}
			}
		})
	}
}

func TestClaimOutbox_PatienceLeavesRowsToTheirEagerPublisher(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	s, f := memlane.NewStorage(nil), lanetest.NewFactory("patience")
	for _, initial := range []lane.InitialOutbox{{ClaimUntil: start.Add(runlane.DefaultOutboxClaim)}, {}} {
		if _, err := s.AppendRunEvents(t.Context(), f.Creation(t, start, lanetest.RunOptions{Outbox: initial})); err != nil {
			t.Fatal(err)
		}
	}
	claim := func(at time.Time) int {
		rows, err := s.ClaimOutboxMessages(t.Context(), &lane.ClaimOutboxCommand{
			Environment: "patience", At: at, ClaimUntil: at.Add(time.Hour), Patience: lane.Patience{Queued: time.Minute},
		})
		if err != nil {
			t.Fatal(err)
		}
		return len(rows)
	}
	if n := claim(start.Add(time.Minute - time.Millisecond)); n != 1 {
		t.Fatalf("claimed %d rows, want the pending one alone", n)
	}
	if n := claim(start.Add(time.Minute)); n != 1 {
		t.Fatalf("claimed %d rows, want the one whose publisher is gone", n)
	}
}
