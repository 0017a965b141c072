package lanetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// docs/internals/contract.md, Outbox: no ids are given, so that the storage has to find the rows.
func outboxDueKinds(t *testing.T, b *bundle) {
	for i, made := range []func(due time.Time) runlane.RunID{
		func(due time.Time) runlane.RunID { return b.create(due, RunOptions{}).ID },
		func(due time.Time) runlane.RunID { return b.create(noon, RunOptions{RunAt: due}).ID },
		func(due time.Time) runlane.RunID { return b.eagerRow(due.Add(-claimTime)).Wakeup.RunID },
		func(due time.Time) runlane.RunID {
			eager := b.eagerRow(noon)
			b.markFailure(eager.OutboxRef, 1, noon, due)
			return eager.Wakeup.RunID
		},
	} {
		due := noon.Add(time.Duration(i+1) * time.Hour)
		id := made(due)
		b.wantDue("a millisecond early", due.Add(-time.Millisecond))
		got := b.wantDue("at the millisecond", due, id)
		if got[0].Status != lane.OutboxClaimed || !got[0].ClaimUntil.Equal(due.Add(claimTime)) {
			t.Fatalf("claimed row is %+v", got[0])
		}
		b.mark(t, got[0].OutboxRef, due)
	}
}

// Rows that were superseded, claimed, given up or are not due yet are older than those that are due, and more than a
// call takes.
func outboxStarvation(t *testing.T, b *bundle) {
	var due []runlane.RunID
	for range 3 {
		b.claim(b.create(noon, RunOptions{}), noon, noon.Add(48*time.Hour))
		b.push(b.create(noon, RunOptions{}), noon, &runlane.RunCancelled{})
		b.append(b.Creation(t, noon, RunOptions{Outbox: lane.InitialOutbox{ClaimUntil: noon.Add(48 * time.Hour)}}))
		b.append(b.Creation(t, noon, RunOptions{Outbox: lane.InitialOutbox{Published: true}}))
		b.markFailure(b.eagerRow(noon).OutboxRef, 1, noon, noon.Add(48*time.Hour))
		b.create(noon, RunOptions{RunAt: noon.Add(48 * time.Hour)})
		if b.h.Capabilities.KeepsDeadLetters {
			b.giveUp(b.eagerRow(noon).OutboxRef, 10, noon)
		}
		due = append(due, b.create(noon.Add(time.Hour), RunOptions{}).ID)
	}
	at := noon.Add(2 * time.Hour)
	var got []runlane.RunID
	for len(got) < len(due) {
		b.eventually(func() string {
			claimed := must(b.storage.ClaimOutboxMessages(b.ctx(), &lane.ClaimOutboxCommand{
				Environment: b.env,
				At:          at,
				ClaimUntil:  at.Add(claimTime),
				Limit:       1,
			}))(t)
			got = append(got, runsOf(claimed)...)
			if len(claimed) == 0 {
				return "a row is due, and a claim of one took none"
			}
			return ""
		})
	}
	equal(t, "claimed", sorted(due), sorted(got))
}

// docs/internals/contract.md, Append: instants are cut, not rounded, and so are those by which something is judged.
func outboxMillis(t *testing.T, b *bundle) {
	const fraction = 999_999 * time.Nanosecond
	due := noon.Add(time.Hour)
	run := b.create(noon, RunOptions{RunAt: due.Add(fraction)})
	row := b.row(run.ID)
	if !row.AvailableAt.Equal(due) || row.AvailableAt.Location() != time.UTC {
		t.Fatalf("row is available at %s, want %s", row.AvailableAt, due)
	}
	if got := b.outboxOf(due.Add(-time.Nanosecond), row.ID); len(got) != 0 {
		t.Fatal("claimed a nanosecond early")
	}
	claimed := must(b.storage.ClaimOutboxMessages(b.ctx(), &lane.ClaimOutboxCommand{
		Environment: b.env,
		IDs:         []string{row.ID},
		At:          due.Add(fraction),
		ClaimUntil:  due.Add(claimTime + fraction),
	}))(t)
	if len(claimed) != 1 || !claimed[0].ClaimUntil.Equal(due.Add(claimTime)) {
		t.Fatalf("claimed %+v", claimed)
	}
	b.markFailure(claimed[0].OutboxRef, 1, due.Add(fraction), due.Add(time.Minute+fraction))
	if got := b.row(run.ID).AvailableAt; !got.Equal(due.Add(time.Minute)) {
		t.Fatalf("the next try is due at %s", got)
	}
	b.wantScan("runnable, a nanosecond early", b.storage.ListRunnableRuns, b.due(due.Add(-time.Nanosecond)))
	b.wantScan("runnable, within the millisecond", b.storage.ListRunnableRuns, b.due(due.Add(fraction)), run)
	if got := b.tryClaim(run, due, due.Add(-time.Nanosecond)); got.Outcome != lane.LostEligibility {
		t.Fatalf("claim a nanosecond early: outcome %q", got.Outcome)
	}
	if got := b.tryClaim(run, due, due.Add(fraction)); got.Outcome != lane.Acquired {
		t.Fatalf("claim within the millisecond: outcome %q", got.Outcome)
	}
}

// docs/internals/contract.md, Pages and cursors.
func deadLetterCursors(t *testing.T, b *bundle) {
	for i := range 3 {
		b.giveUp(b.eagerRow(noon).OutboxRef, 1, noon.Add(time.Duration(i)*time.Second))
	}
	q := lane.DeadLetterQuery{PageQuery: lane.PageQuery{Environment: b.env, Limit: 1}}
	q.After = b.firstCursor(func() (runlane.Cursor, error) {
		page, err := b.storage.ListDeadLetters(b.ctx(), &q)
		if err != nil {
			return "", err
		}
		return page.Next, nil
	})
	for name, change := range map[string]func(q *lane.DeadLetterQuery){
		"another queue":       func(q *lane.DeadLetterQuery) { q.Queue = Queue },
		"another environment": func(q *lane.DeadLetterQuery) { q.Environment += "-elsewhere" },
		"an invented cursor":  func(q *lane.DeadLetterQuery) { q.After = "no cursor" },
		"a negative limit":    func(q *lane.DeadLetterQuery) { q.Limit, q.After = -1, "" },
		"a limit too high":    func(q *lane.DeadLetterQuery) { q.Limit, q.After = runlane.MaxPageLimit+1, "" },
	} {
		other := q
		change(&other)
		if _, err := b.storage.ListDeadLetters(b.ctx(), &other); runlane.CodeOf(err) != runlane.ErrValidationFailed {
			t.Errorf("%s: %v, want %q", name, err, runlane.ErrValidationFailed)
		}
	}
	b.eventually(func() string {
		q.After = ""
		q.After = must(b.storage.ListDeadLetters(b.ctx(), &q))(t).Next
		rest := must(b.storage.ListDeadLetters(b.ctx(), &q))(t).Items
		if len(rest) != 1 || !rest[0].Since.Equal(noon.Add(time.Second)) {
			return fmt.Sprintf("behind the first page: %+v", rest)
		}
		return ""
	})
}
