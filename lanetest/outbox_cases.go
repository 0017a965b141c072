package lanetest

import (
	"slices"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// docs/internals/contract.md, Outbox.
func outboxCases() []storageCase {
	return []storageCase{
		{"MessagesCarryWhatATransportNeeds", needsOutbox, outboxContent},
		{"RowsBeginAsTheirBirthSays", needsOutbox, outboxBirth},
		{"RowsAreDueFromTheExactMillisecond", needsOutbox, outboxExact},
		{"RowsForLaterArePendingWhateverIsAsked", needsOutbox, outboxLater},
		{"AnExpiredClaimIsClaimableAgain", needsOutbox, outboxExpiredClaim},
		{"OnlyTheLatestRowOfAQueuedOrScheduledRunIsDue", needsBoth(needsOutbox, needsLeases), outboxSuperseded},
		{"OfSeveralRequestsInOneCommitTheLastCounts", needsOutbox, outboxSeveral},
		{"ClaimsByIDNeverWiden", needsOutbox, outboxByID},
		{"ClaimsTakeTheLongestDueFirstUpToTheLimit", needsOutbox, outboxLimit},
		{"ClaimsLeaveQueuesOut", needsOutbox, outboxWithout},
		{"ConcurrentClaimersShareTheRows", needsOutbox, outboxRace},
		{"LimitsAreValidated", needsOutbox, outboxLimits},
		{"EveryKindOfDueRowIsTakenFromItsExactMillisecond", needsOutbox, outboxDueKinds},
		{"RowsThatAreNotDueStarveNobody", needsBoth(needsOutbox, needsLeases), outboxStarvation},
		{"InstantsAreCutToTheMillisecond", needsBoth(needsOutbox, needsLeases), outboxMillis},
	}
}

// row is the outbox message of a run's latest delivery.
func (b *bundle) row(id runlane.RunID) *lane.OutboxMessage {
	b.t.Helper()
	return b.inspect(id).Delivery
}

// runsOf are the runs that messages are about.
func runsOf(messages []lane.OutboxMessage) []runlane.RunID {
	ids := []runlane.RunID{}
	for _, m := range messages {
		ids = append(ids, m.Wakeup.RunID)
	}
	return ids
}

// wantDue demands what a claim of everything due takes.
func (b *bundle) wantDue(what string, at time.Time, want ...runlane.RunID) []lane.OutboxMessage {
	b.t.Helper()
	var all []lane.OutboxMessage
	b.eventually(func() string {
		all = append(all, b.outbox(at)...)
		return difference(sorted(want), sorted(runsOf(all)))
	})
	if d := difference(sorted(want), sorted(runsOf(all))); d != "" {
		b.t.Fatalf("%s (-want +got):\n%s", what, d)
	}
	return all
}

func outboxContent(t *testing.T, b *bundle) {
	plain := b.append(b.Creation(t, noon, RunOptions{}))
	keyed := b.append(b.Creation(t, noon, RunOptions{
		ConcurrencyKey: "customer:7", TraceCarrier: map[string]string{"traceparent": "00-1"}, Queue: "special",
	}))
	want := func(c *lane.Commit, group string, trace map[string]string) lane.OutboxMessage {
		return lane.OutboxMessage{
			OutboxRef: lane.OutboxRef{ID: c.Outbox[0].ID},
			Wakeup: lane.Wakeup{
				RunKey:       b.key(c.Run.ID),
				Queue:        c.Run.Queue,
				RequestedAt:  noon,
				TraceCarrier: trace,
			},
			GroupKey:    group,
			Status:      lane.OutboxPending,
			AvailableAt: noon,
		}
	}
	wanted := []lane.OutboxMessage{
		want(plain, string(plain.Run.ID), nil), want(keyed, "customer:7", map[string]string{"traceparent": "00-1"}),
	}
	equal(t, "rows of the commits", wanted, slices.Concat(plain.Outbox, keyed.Outbox))

	claimed := b.outboxOf(noon.Add(time.Second), wanted[0].ID, wanted[1].ID)
	slices.SortFunc(claimed, func(a, b lane.OutboxMessage) int { return slices.Compare([]byte(a.ID), []byte(b.ID)) })
	tokens := map[string]bool{}
	for i := range claimed {
		if claimed[i].ClaimToken == "" {
			t.Fatal("a claimed row has no token")
		}
		tokens[claimed[i].ID+claimed[i].ClaimToken] = true
		wanted[i].Status, wanted[i].ClaimToken = lane.OutboxClaimed, claimed[i].ClaimToken
		wanted[i].ClaimUntil = noon.Add(time.Second + claimTime)
	}
	equal(t, "claimed rows", wanted, claimed)
}

func outboxBirth(t *testing.T, b *bundle) {
	pending := b.append(b.Creation(t, noon, RunOptions{}))
	claimed := b.append(b.Creation(t, noon, RunOptions{Outbox: lane.InitialOutbox{ClaimUntil: noon.Add(claimTime)}}))
	published := b.append(b.Creation(t, noon, RunOptions{Outbox: lane.InitialOutbox{Published: true}}))
	for _, c := range []struct {
		commit *lane.Commit
		want   lane.OutboxStatus
	}{{pending, lane.OutboxPending}, {claimed, lane.OutboxClaimed}, {published, lane.OutboxPublished}} {
		if len(c.commit.Outbox) != 1 || c.commit.Outbox[0].Status != c.want {
			t.Fatalf("row is %+v, want it %s", c.commit.Outbox, c.want)
		}
		if got := b.row(c.commit.Run.ID); got == nil || got.Status != c.want {
			t.Fatalf("inspected row is %+v, want it %s", got, c.want)
		}
	}
	if row := claimed.Outbox[0]; row.ClaimToken == "" || !row.ClaimUntil.Equal(noon.Add(claimTime)) {
		t.Fatalf("row claimed from the start: %+v", row)
	}
	b.wantDue("due at once", noon, pending.Run.ID)
	b.mark(t, claimed.Outbox[0].OutboxRef, noon)
	if got := b.row(claimed.Run.ID); got.Status != lane.OutboxPublished {
		t.Fatalf("row claimed from the start, then acknowledged: %+v", got)
	}
	b.wantDue("due an hour later", noon.Add(time.Hour), pending.Run.ID)
}

// mark acknowledges a row, which must succeed.
func (b *bundle) mark(t testing.TB, ref lane.OutboxRef, at time.Time) {
	t.Helper()
	err := b.storage.MarkOutboxMessagesPublished(b.ctx(), &lane.MarkPublishedCommand{
		Environment: b.env,
		At:          at,
		Messages:    []lane.OutboxRef{ref},
	})
	if err != nil {
		t.Fatalf("mark published: %v", err)
	}
}

func outboxExact(t *testing.T, b *bundle) {
	scheduled := b.create(noon, RunOptions{RunAt: noon.Add(time.Hour)})
	id := b.row(scheduled.ID).ID
	if got := b.outboxOf(noon.Add(time.Hour-time.Millisecond), id); len(got) != 0 {
		t.Fatalf("claimed a millisecond early: %+v", got)
	}
	if got := b.outboxOf(noon.Add(time.Hour), id); len(got) != 1 {
		t.Fatal("not claimable at the millisecond it is due")
	}
}

func outboxLater(t *testing.T, b *bundle) {
	for name, initial := range map[string]lane.InitialOutbox{
		"claimed": {ClaimUntil: noon.Add(claimTime)}, "published": {Published: true}, "nothing": {},
	} {
		commit := b.append(b.Creation(t, noon, RunOptions{RunAt: noon.Add(time.Minute), Outbox: initial}))
		row := commit.Outbox[0]
		if row.Status != lane.OutboxPending || row.ClaimToken != "" || !row.AvailableAt.Equal(noon.Add(time.Minute)) {
			t.Errorf("asked for %s: row is %+v, want it pending for a minute later", name, row)
		}
		if got := b.outboxOf(noon.Add(time.Minute), row.ID); len(got) != 1 {
			t.Errorf("asked for %s: not claimable when it is due", name)
		}
	}
}

func outboxExpiredClaim(t *testing.T, b *bundle) {
	eager := b.append(b.Creation(t, noon, RunOptions{
		Outbox: lane.InitialOutbox{ClaimUntil: noon.Add(claimTime)},
	})).Outbox[0]
	if got := b.outboxOf(noon.Add(claimTime-time.Millisecond), eager.ID); len(got) != 0 {
		t.Fatalf("claimed under a living claim: %+v", got)
	}
	second := b.outboxOf(noon.Add(claimTime), eager.ID)
	if len(second) != 1 || second[0].ClaimToken == eager.ClaimToken {
		t.Fatalf("claimed at the claim's end: %+v", second)
	}
	err := b.storage.MarkOutboxMessagesPublished(b.ctx(), &lane.MarkPublishedCommand{
		Environment: b.env, At: noon.Add(claimTime), Messages: []lane.OutboxRef{eager.OutboxRef},
	})
	wantStale(t, err, eager.ID)
	b.mark(t, second[0].OutboxRef, noon.Add(claimTime))
}

// wantStale demands a conflict that names exactly the given rows.
func wantStale(t testing.TB, err error, ids ...string) {
	t.Helper()
	wantConflict(t, err, runlane.ConflictOutboxClaim, "")
	e, _ := asError(err)
	equal(t, "rows named by the conflict", sorted(ids), sorted(splitIDs(e.Meta["outbox_ids"])))
}

func outboxSuperseded(t *testing.T, b *bundle) {
	later := noon.Add(time.Hour)
	requested := b.append(b.Creation(t, noon, RunOptions{}))
	again := b.deliver(requested.Run, noon.Add(time.Minute), noon.Add(time.Minute), lane.InitialOutbox{})
	heldLong := b.append(b.Creation(t, noon, RunOptions{
		Outbox: lane.InitialOutbox{ClaimUntil: noon.Add(2 * time.Minute)},
	}))
	anew := b.deliver(heldLong.Run, noon.Add(time.Minute), noon.Add(time.Minute), lane.InitialOutbox{})
	claimed := b.append(b.Creation(t, noon, RunOptions{}))
	b.claim(claimed.Run, noon, noon.Add(time.Minute))
	cancelled := b.append(b.Creation(t, noon, RunOptions{}))
	b.push(cancelled.Run, noon, &runlane.RunCancelled{})
	waiting := b.append(b.Creation(t, noon, RunOptions{RunAt: noon.Add(time.Second)}))
	b.claim(waiting.Run, noon.Add(time.Second), noon.Add(time.Minute))
	held := b.append(b.Creation(t, noon, RunOptions{Outbox: lane.InitialOutbox{ClaimUntil: noon.Add(claimTime)}}))
	b.push(held.Run, noon, &runlane.RunCancelled{})
	retried := b.append(b.Creation(t, noon, RunOptions{}))
	run := b.claim(retried.Run, noon, noon.Add(time.Minute))
	b.push(run, noon, Retried(run, noon.Add(2*time.Minute)))

	for name, c := range map[string]*lane.Commit{
		"by a later request":                            requested,
		"by a later request, while a publisher held it": heldLong,
		"by a claim":                            claimed,
		"by a cancellation":                     cancelled,
		"by a claim of the scheduled run":       waiting,
		"by the end, while a publisher held it": held,
		"by a claim that ended in a retry":      retried,
	} {
		if got := b.outboxOf(later, c.Outbox[0].ID); len(got) != 0 {
			t.Errorf("superseded %s, and claimed by id", name)
		}
	}
	b.wantDue("due in the end", later, again.Run.ID, anew.Run.ID)
	if got := b.row(claimed.Run.ID); got != nil {
		t.Errorf("the delivery of a claimed run is inspected as %+v", got)
	}
}

func outboxSeveral(t *testing.T, b *bundle) {
	run := b.create(noon, RunOptions{NoDelivery: true})
	commit := b.append(b.Append(t, run, noon, Delivery(run, noon, noon), Delivery(run, noon, noon)))
	if len(commit.Outbox) != 2 || commit.Outbox[0].ID == commit.Outbox[1].ID {
		t.Fatalf("outbox of two requests: %+v", commit.Outbox)
	}
	got := b.outboxOf(noon, commit.Outbox[0].ID, commit.Outbox[1].ID)
	if len(got) != 1 || got[0].ID != commit.Outbox[1].ID {
		t.Fatalf("claimed %+v, want the second row alone", got)
	}
}

func outboxByID(t *testing.T, b *bundle) {
	first, second := b.create(noon, RunOptions{}), b.create(noon, RunOptions{})
	future := b.create(noon, RunOptions{RunAt: noon.Add(time.Hour)})
	id := b.row(first.ID).ID
	if got := b.outboxOf(noon, "no such row", id, id, b.row(future.ID).ID); len(got) != 1 || got[0].ID != id {
		t.Fatalf("claimed %+v, want %s once", got, id)
	}
	none := must(b.storage.ClaimOutboxMessages(b.ctx(), &lane.ClaimOutboxCommand{
		Environment: b.env,
		IDs:         []string{},
		At:          noon,
		ClaimUntil:  noon.Add(claimTime),
	}))(t)
	if len(none) != 0 {
		t.Fatalf("an empty list of ids claimed %+v", none)
	}
	b.wantDue("what was not named", noon, second.ID)
}

func outboxLimit(t *testing.T, b *bundle) {
	var want []runlane.RunID
	for i := range 5 { // made in another order than due
		at := noon.Add(time.Duration((i*3)%5) * time.Minute)
		want = append(want, b.create(at, RunOptions{ID: runlane.RunID("run_at_" + at.Format("1504"))}).ID)
	}
	slices.Sort(want)
	var got []runlane.RunID
	for len(got) < len(want) {
		b.eventually(func() string {
			claimed := must(b.storage.ClaimOutboxMessages(b.ctx(), &lane.ClaimOutboxCommand{
				Environment: b.env,
				At:          noon.Add(time.Hour),
				ClaimUntil:  noon.Add(time.Hour + claimTime),
				Limit:       2,
			}))(t)
			if len(claimed) == 0 {
				return "rows are due, and none was claimed"
			}
			if len(claimed) > 2 {
				t.Fatalf("limit 2 claimed %d rows", len(claimed))
			}
			got = append(got, runsOf(claimed)...)
			return ""
		})
	}
	if !b.h.EventuallyConsistent { // there a row may be seen late
		equal(t, "runs in the order of their claims", want, got)
	}
	equal(t, "runs claimed", want, sorted(got))
}

func outboxRace(t *testing.T, b *bundle) {
	var ids []string
	for range 5 {
		ids = append(ids, b.append(b.Creation(t, noon, RunOptions{})).Outbox[0].ID)
	}
	got, failed := race(callers, func(int) ([]lane.OutboxMessage, error) {
		return b.storage.ClaimOutboxMessages(b.ctx(), &lane.ClaimOutboxCommand{
			Environment: b.env,
			IDs:         ids,
			At:          noon,
			ClaimUntil:  noon.Add(claimTime),
			Limit:       len(ids),
		})
	})
	if len(failed) > 0 {
		t.Fatal(failed[0])
	}
	var claimed []string
	for _, m := range slices.Concat(got...) {
		claimed = append(claimed, m.ID)
	}
	equal(t, "rows claimed by all together", sorted(ids), sorted(claimed))
}

// Rows of the queues that are left out come first, and are more than a claim takes. Given ids are taken whatever their
// queue.
func outboxWithout(t *testing.T, b *bundle) {
	var aside []runlane.RunID
	for i := range 6 {
		aside = append(aside, b.create(noon, RunOptions{Queue: [...]runlane.QueueName{"aside", "lost"}[i%2]}).ID)
	}
	want := b.create(noon.Add(time.Minute), RunOptions{}).ID
	at := noon.Add(time.Hour)
	claim := lane.ClaimOutboxCommand{
		Environment: b.env,
		At:          at,
		ClaimUntil:  at.Add(claimTime),
		Limit:       2,
		Without:     []runlane.QueueName{"lost", "aside", "of no run"},
	}
	var got []runlane.RunID
	b.eventually(func() string {
		got = append(got, runsOf(must(b.storage.ClaimOutboxMessages(b.ctx(), &claim))(t))...)
		return difference([]runlane.RunID{want}, got)
	})
	equal(t, "claimed", []runlane.RunID{want}, got)
	if again := must(b.storage.ClaimOutboxMessages(b.ctx(), &claim))(t); len(again) != 0 {
		t.Fatalf("claimed again, or from a queue that was left out: %+v", again)
	}
	claim.IDs, claim.Limit = []string{b.row(aside[0]).ID}, 1
	equal(t, "claimed by id", aside[:1], runsOf(must(b.storage.ClaimOutboxMessages(b.ctx(), &claim))(t)))
	claim.IDs, claim.Without = nil, nil
	b.wantDue("when no queue is left out", at, aside[1:]...)
}

func outboxLimits(t *testing.T, b *bundle) {
	for _, limit := range []int{-1, runlane.MaxPageLimit + 1} {
		_, err := b.storage.ClaimOutboxMessages(b.ctx(), &lane.ClaimOutboxCommand{
			Environment: b.env,
			At:          noon,
			ClaimUntil:  noon.Add(claimTime),
			Limit:       limit,
		})
		wantError(t, err, runlane.ErrValidationFailed)
	}
}
