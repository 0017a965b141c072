package memlane_test

import (
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/lanetest"
	"github.com/runlane/runlane-go/memlane"
)

// A tick leaves the rows of a queued run to their maker, until patience is over.
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
