package memlane_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/memlane"
)

var (
	nightly    = lane.ScheduleKey{Environment: "test", ScheduleID: "nightly"}
	registered = time.Date(2026, 11, 2, 3, 4, 5, 678_000_000, time.UTC)
)

// planned is a storage with one schedule and a separate clock.
type planned struct {
	*testing.T
	storage *memlane.Storage
	now     time.Time
}

func newPlanned(t *testing.T) *planned {
	t.Helper()
	p := &planned{T: t, now: registered}
	p.storage = memlane.NewStorage(&memlane.StorageOptions{Now: func() time.Time { return p.now }})
	_, err := p.storage.PutSchedule(t.Context(), &lane.PutScheduleCommand{
		Environment: "test", Record: runlane.ScheduleRecord{ID: nightly.ScheduleID, RegisteredAt: registered},
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// claim is the token of an occurrence, "" when it was lost.
func (p *planned) claim(fire time.Time) string {
	p.Helper()
	claim, err := p.storage.ClaimScheduleOccurrence(p.Context(), &lane.ClaimOccurrenceCommand{
		ScheduleKey: nightly, OccurrenceID: "occ_1", FireTime: fire, At: p.now, ClaimUntil: p.now.Add(30 * time.Second),
	})
	if err != nil {
		p.Fatal(err)
	}
	return claim.Token
}

func (p *planned) complete(fire time.Time) {
	p.Helper()
	err := p.storage.CompleteScheduleOccurrence(p.Context(), &lane.CompleteOccurrenceCommand{
		ScheduleKey: nightly, OccurrenceID: "occ_1", FireTime: fire, Token: p.claim(fire), RunIDs: []runlane.RunID{"run_1"},
	})
	if err != nil {
		p.Fatal(err)
	}
}

func (p *planned) list(after runlane.Cursor) *runlane.Page[runlane.Occurrence] {
	p.Helper()
	page, err := p.storage.ListScheduleOccurrences(p.Context(), &lane.OccurrenceQuery{
		PageQuery: lane.PageQuery{Environment: "test", After: after}, ScheduleID: nightly.ScheduleID,
	})
	if err != nil {
		p.Fatal(err)
	}
	return page
}

// An occurrence without a record does not fire again.
func TestHazard16_ExpiredOccurrence_IsNotClaimedAgain(t *testing.T) {
	t.Parallel()
	p := newPlanned(t)
	p.complete(registered)
	p.now = registered.Add(40 * 24 * time.Hour)
	if page := p.list(""); len(page.Items) != 1 {
		t.Errorf("within its time: %v", page.Items)
	}
	p.now = p.now.Add(30 * time.Second)
	if page := p.list(""); len(page.Items) != 0 {
		t.Errorf("after its time: %v", page.Items)
	}
	for range 2 { // the first claim makes the storage forget
		if p.claim(registered) != "" {
			t.Error("claimed again")
		}
	}
	p.complete(registered.Add(time.Hour))
	if page := p.list(""); len(page.Items) != 1 {
		t.Errorf("a later one: %v", page.Items)
	}
}

// Claims that were never completed are passed over, 1,000 a page at most, and starve nothing behind them.
func TestListScheduleOccurrences_ManyClaims_BoundsThePage(t *testing.T) {
	t.Parallel()
	p := newPlanned(t)
	p.complete(registered)
	for i := range 1005 {
		if p.claim(registered.Add(time.Duration(i+1)*time.Minute)) == "" {
			t.Fatal(fmt.Sprint("lost claim ", i))
		}
	}
	first := p.list("")
	if len(first.Items) != 0 || first.Next == "" {
		t.Fatalf("%+v", first)
	}
	if second := p.list(first.Next); len(second.Items) != 1 || second.Next != "" || !second.Items[0].FireTime.Equal(registered) {
		t.Fatalf("%+v", second)
	}
}
