package lanetest

import (
	"strings"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// docs/internals/contract.md, Outbox: marks.
func markCases() []storageCase {
	return []storageCase{
		{"ABatchIsJudgedRowByRow", needsOutbox, marksRowByRow},
		{"AFailedRowIsDueAtItsNextTry", needsOutbox, markFailed},
		{"AMarkEndsTheClaim", needsOutbox, markEndsClaim},
		{"TheHolderOfASupersededRowMayStillMarkIt", needsBoth(needsOutbox, needsLeases), markSuperseded},
	}
}

func splitIDs(text string) []string { return strings.Split(text, ",") }

var refusal = runlane.NewFailure(runlane.ErrTransportPublishFailed, "refused", map[string]string{"status": "400"})

// markFailure records a failure of one row, which must succeed.
func (b *bundle) markFailure(ref lane.OutboxRef, attempts int, at, next time.Time) {
	b.t.Helper()
	err := b.storage.MarkOutboxMessagesFailed(b.ctx(), &lane.MarkFailedCommand{
		Environment: b.env,
		At:          at,
		Messages: []lane.OutboxFailure{
			{OutboxRef: ref, Attempts: attempts, Failure: refusal, NextAvailableAt: next},
		},
	})
	if err != nil {
		b.t.Fatalf("mark failed: %v", err)
	}
}

// giveUp dead-letters one row, which must succeed.
func (b *bundle) giveUp(ref lane.OutboxRef, attempts int, at time.Time) {
	b.t.Helper()
	err := b.storage.MarkOutboxMessagesDeadLettered(b.ctx(), &lane.MarkDeadLetteredCommand{
		Environment: b.env,
		At:          at,
		Messages: []lane.OutboxFailure{
			{OutboxRef: ref, Attempts: attempts, Failure: refusal},
		},
	})
	if err != nil {
		b.t.Fatalf("mark dead-lettered: %v", err)
	}
}

// eagerRow is a new row that its maker has claimed.
func (b *bundle) eagerRow(at time.Time) lane.OutboxMessage {
	b.t.Helper()
	return b.append(b.Creation(b.t, at, RunOptions{
		Outbox: lane.InitialOutbox{ClaimUntil: at.Add(claimTime)},
	})).Outbox[0]
}

func marksRowByRow(t *testing.T, b *bundle) {
	stale := func(m lane.OutboxMessage) lane.OutboxRef {
		return lane.OutboxRef{ID: m.ID, ClaimToken: "another's"}
	}
	failure := func(ref lane.OutboxRef) lane.OutboxFailure {
		return lane.OutboxFailure{OutboxRef: ref, Attempts: 1, Failure: refusal, NextAvailableAt: noon.Add(time.Hour)}
	}
	for name, mark := range map[string]struct {
		call func(refs []lane.OutboxRef) error
		want lane.OutboxStatus
	}{
		"published": {func(refs []lane.OutboxRef) error {
			return b.storage.MarkOutboxMessagesPublished(b.ctx(), &lane.MarkPublishedCommand{
				Environment: b.env,
				At:          noon,
				Messages:    refs,
			})
		}, lane.OutboxPublished},
		"failed": {func(refs []lane.OutboxRef) error {
			c := &lane.MarkFailedCommand{Environment: b.env, At: noon}
			for _, ref := range refs {
				c.Messages = append(c.Messages, failure(ref))
			}
			return b.storage.MarkOutboxMessagesFailed(b.ctx(), c)
		}, lane.OutboxFailed},
		"dead-lettered": {func(refs []lane.OutboxRef) error {
			c := &lane.MarkDeadLetteredCommand{Environment: b.env, At: noon}
			for _, ref := range refs {
				c.Messages = append(c.Messages, failure(ref))
			}
			return b.storage.MarkOutboxMessagesDeadLettered(b.ctx(), c)
		}, lane.OutboxDeadLettered},
	} {
		first, second, third := b.eagerRow(noon), b.eagerRow(noon), b.eagerRow(noon)
		err := mark.call([]lane.OutboxRef{
			first.OutboxRef,
			stale(second),
			third.OutboxRef,
			{ID: "no such row", ClaimToken: "x"},
		})
		wantConflict(t, err, runlane.ConflictOutboxClaim, "")
		e, _ := asError(err)
		equal(
			t,
			name+": rows that the conflict names",
			sorted([]string{second.ID, "no such row"}),
			sorted(splitIDs(e.Meta["outbox_ids"])),
		)
		for _, c := range []struct {
			m    lane.OutboxMessage
			want lane.OutboxStatus
		}{{first, mark.want}, {second, lane.OutboxClaimed}, {third, mark.want}} {
			if got := b.row(c.m.Wakeup.RunID).Status; got != c.want {
				t.Errorf("%s: row is %s, want it %s", name, got, c.want)
			}
		}
	}
}

func markFailed(t *testing.T, b *bundle) {
	eager := b.eagerRow(noon)
	next := noon.Add(7 * time.Second)
	b.markFailure(eager.OutboxRef, 3, noon, next)
	row := b.row(eager.Wakeup.RunID)
	if row.Status != lane.OutboxFailed || row.Attempts != 3 || !row.AvailableAt.Equal(next) {
		t.Fatalf("failed row is %+v", row)
	}
	equal(t, "failure", refusal, row.Failure)
	if got := b.outboxOf(next.Add(-time.Millisecond), eager.ID); len(got) != 0 {
		t.Fatal("claimed a millisecond before its next try")
	}
	b.wantDue("at its next try", next, eager.Wakeup.RunID)
}

func markEndsClaim(t *testing.T, b *bundle) {
	failed, published := b.eagerRow(noon), b.eagerRow(noon)
	b.markFailure(failed.OutboxRef, 1, noon, noon.Add(time.Second))
	b.mark(t, published.OutboxRef, noon)
	again := b.outboxOf(noon.Add(time.Second), failed.ID, published.ID)
	if len(again) != 1 || again[0].ID != failed.ID {
		t.Fatalf("claimed %+v, want the failed row alone", again)
	}
	for _, stale := range []lane.OutboxMessage{failed, published} {
		err := b.storage.MarkOutboxMessagesFailed(b.ctx(), &lane.MarkFailedCommand{
			Environment: b.env,
			At:          noon.Add(time.Second),
			Messages: []lane.OutboxFailure{
				{OutboxRef: stale.OutboxRef, Attempts: 9, Failure: refusal, NextAvailableAt: noon.Add(2 * time.Second)},
			},
		})
		wantStale(t, err, stale.ID)
	}
	if got := b.row(published.Wakeup.RunID); got.Status != lane.OutboxPublished {
		t.Fatalf("published row became %s", got.Status)
	}
}

func markSuperseded(t *testing.T, b *bundle) {
	later := noon.Add(24 * time.Hour)
	for name, mark := range map[string]func(lane.OutboxRef){
		"published":     func(ref lane.OutboxRef) { b.mark(t, ref, noon) },
		"failed":        func(ref lane.OutboxRef) { b.markFailure(ref, 1, noon, noon.Add(time.Second)) },
		"dead-lettered": func(ref lane.OutboxRef) { b.giveUp(ref, 1, noon) },
	} {
		claimed, ended, replaced := b.eagerRow(noon), b.eagerRow(noon), b.eagerRow(noon)
		b.claim(b.get(claimed.Wakeup.RunID), noon, later.Add(time.Hour))
		b.push(b.get(ended.Wakeup.RunID), noon, &runlane.RunCancelled{})
		fresh := b.deliver(b.get(replaced.Wakeup.RunID), noon, noon, lane.InitialOutbox{Published: true})
		for _, m := range []lane.OutboxMessage{claimed, ended, replaced} {
			mark(m.OutboxRef)
			if got := b.outboxOf(later, m.ID); len(got) != 0 {
				t.Errorf("%s: a superseded row came due again", name)
			}
		}
		if got := b.row(replaced.Wakeup.RunID); got == nil || got.ID != fresh.Outbox[0].ID ||
			got.Status != lane.OutboxPublished {
			t.Errorf("%s: the mark of a superseded row changed the latest to %+v", name, got)
		}
	}
	b.wantDue("after marks of superseded rows", later)
	if b.h.Capabilities.KeepsDeadLetters {
		equal(t, "dead letters", nil, b.deadLetters(""))
	}
}

// docs/internals/contract.md, Dead letters.
func deadLetterCases() []storageCase {
	return []storageCase{
		{"AreListedOldestFirst", needsDeadLetters, deadLettersListed},
		{"AreNobodysWorkUntilRequeued", needsBoth(needsDeadLetters, needsLeases), deadLettersRest},
		{"AreRequeuedWithoutAttempts", needsDeadLetters, deadLettersRequeued},
		{"LeaveTheListWhenTheirRunMovesOn", needsBoth(needsDeadLetters, needsLeases), deadLettersLeave},
		{"CursorsBelongToTheirRequest", needsDeadLetters, deadLetterCursors},
	}
}

func (b *bundle) deadLetters(queue runlane.QueueName) []runlane.DeadLetter {
	b.t.Helper()
	q := &lane.DeadLetterQuery{PageQuery: lane.PageQuery{Environment: b.env}, Queue: queue}
	return collect(b.t, &q.PageQuery, func() (*runlane.Page[runlane.DeadLetter], error) {
		return b.storage.ListDeadLetters(b.ctx(), q)
	})
}

func (b *bundle) wantDeadLetters(queue runlane.QueueName, want ...runlane.DeadLetter) {
	b.t.Helper()
	b.eventually(func() string { return difference(want, b.deadLetters(queue)) })
}

func deadLettersListed(t *testing.T, b *bundle) {
	var all, special []runlane.DeadLetter
	for i := range 4 {
		queue := Queue
		if i%2 == 1 {
			queue = "special"
		}
		m := b.append(b.Creation(t, noon, RunOptions{
			Queue:  queue,
			Outbox: lane.InitialOutbox{ClaimUntil: noon.Add(claimTime)},
		})).Outbox[0]
		since := noon.Add(time.Duration(i) * time.Second)
		b.giveUp(m.OutboxRef, i+1, since)
		letter := runlane.DeadLetter{
			RunID:    m.Wakeup.RunID,
			OutboxID: m.ID,
			Queue:    queue,
			Attempts: i + 1,
			Failure:  refusal,
			Since:    since,
		}
		all = append(all, letter)
		if i%2 == 1 {
			special = append(special, letter)
		}
	}
	b.wantDeadLetters("", all...)
	b.wantDeadLetters("special", special...)
	for limit := 1; limit <= len(all); limit++ {
		q := &lane.DeadLetterQuery{PageQuery: lane.PageQuery{Environment: b.env, Limit: limit}}
		b.eventually(func() string {
			return difference(
				all,
				collect(t, &q.PageQuery, func() (*runlane.Page[runlane.DeadLetter], error) {
					return b.storage.ListDeadLetters(b.ctx(), q)
				}),
			)
		})
	}
}

func deadLettersRest(t *testing.T, b *bundle) {
	queued := b.eagerRow(noon)
	b.giveUp(queued.OutboxRef, 10, noon)
	scheduled := b.create(noon, RunOptions{RunAt: noon.Add(time.Minute)})
	row := b.outboxOf(noon.Add(time.Minute), b.row(scheduled.ID).ID)[0]
	b.giveUp(row.OutboxRef, 10, noon.Add(time.Minute))

	later := noon.Add(24 * time.Hour)
	b.wantDue("outbox with dead letters only", later)
	if got := b.outboxOf(later, queued.ID, row.ID); len(got) != 0 {
		t.Fatalf("claimed dead letters by id: %+v", got)
	}
	b.wantScan("delivery recovery", b.storage.ListRunsNeedingDelivery, b.due(later))
	if b.h.Capabilities.FindsLostWakeups {
		b.wantScan("redelivery", b.storage.ListRunsNeedingRedelivery, b.due(later))
	}
}

func deadLettersRequeued(t *testing.T, b *bundle) {
	dead, alive := b.eagerRow(noon), b.eagerRow(noon)
	b.giveUp(dead.OutboxRef, 10, noon)
	at := noon.Add(time.Hour)
	requeue := &lane.RequeueCommand{Environment: b.env, IDs: []string{dead.ID, alive.ID, "no such row"}, At: at}
	if n := must(b.storage.RequeueDeadLetters(b.ctx(), requeue))(t); n != 1 {
		t.Fatalf("requeued %d rows, want 1", n)
	}
	row := b.row(dead.Wakeup.RunID)
	if row.Status != lane.OutboxPending || row.Attempts != 0 {
		t.Fatalf("requeued row is %+v", row)
	}
	if n := must(b.storage.RequeueDeadLetters(b.ctx(), requeue))(t); n != 0 {
		t.Fatalf("requeued %d rows the second time, want 0", n)
	}
	b.wantDeadLetters("")
	if got := b.row(alive.Wakeup.RunID); got.Status != lane.OutboxClaimed {
		t.Fatalf("a row that was no dead letter became %s", got.Status)
	}
	if got := b.outboxOf(at, dead.ID); len(got) != 1 || got[0].Attempts != 0 {
		t.Fatalf("claimed after requeueing: %+v", got)
	}
}

func deadLettersLeave(t *testing.T, b *bundle) {
	claimed, cancelled, requested, stays := b.eagerRow(noon), b.eagerRow(noon), b.eagerRow(noon), b.eagerRow(noon)
	for _, m := range []lane.OutboxMessage{claimed, cancelled, requested, stays} {
		b.giveUp(m.OutboxRef, 10, noon)
	}
	b.claim(b.get(claimed.Wakeup.RunID), noon, noon.Add(time.Minute))
	b.push(b.get(cancelled.Wakeup.RunID), noon, &runlane.RunCancelled{})
	b.deliver(b.get(requested.Wakeup.RunID), noon, noon, lane.InitialOutbox{})
	b.wantDeadLetters("", runlane.DeadLetter{
		RunID:    stays.Wakeup.RunID,
		OutboxID: stays.ID,
		Queue:    Queue,
		Attempts: 10,
		Failure:  refusal,
		Since:    noon,
	})
	for _, m := range []lane.OutboxMessage{claimed, cancelled, requested} {
		if n := must(b.storage.RequeueDeadLetters(b.ctx(), &lane.RequeueCommand{
			Environment: b.env,
			IDs:         []string{m.ID},
			At:          noon,
		}))(t); n != 0 {
			t.Error("requeued a superseded row")
		}
	}
}
