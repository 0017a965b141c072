package memlane

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/embedded"
	"github.com/runlane/runlane-go/lane"
)

// row is one outbox row: a wakeup to publish.
type row = embedded.Delivery[uint64]

func (s *Storage) nextToken() uint64 { return s.tokens.Add(1) }

const tokenPrefix = "claim_"

func tokenText(token uint64) string { return tokenPrefix + strconv.FormatUint(token, 36) }

func holds(r *row, text string) bool {
	number, ok := strings.CutPrefix(text, tokenPrefix)
	token, err := strconv.ParseUint(number, 36, 64)
	return ok && err == nil && r.ClaimedBy(token)
}

func (e *entry) liveRow() *row { return e.outbox.Live(e.known()) }

// message returns a copy of the row for callers.
func (e *entry) message(r *row) lane.OutboxMessage {
	c := e.created
	return r.Message(lane.RunKey{Environment: e.environment, RunID: e.id}, c.Queue, c.ConcurrencyKey,
		e.state.traceCarrier, tokenText)
}

// ClaimOutboxMessages claims due rows for a publisher.
func (s *Storage) ClaimOutboxMessages(ctx context.Context, c *lane.ClaimOutboxCommand) ([]lane.OutboxMessage, error) {
	if err := embedded.Ended(ctx); err != nil {
		return nil, err
	}
	limit, err := embedded.JudgeOutboxClaim(c)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	env, now := s.find(c.Environment), embedded.At(c.At)
	if env == nil {
		return nil, nil
	}
	var due []*entry
	if c.IDs != nil {
		due = env.dueAmong(c.IDs, now, limit)
	} else {
		due = env.dueRows(now, c, limit)
	}
	var messages []lane.OutboxMessage
	for _, e := range due {
		r := e.liveRow()
		r.Claim(s.nextToken(), embedded.At(c.ClaimUntil))
		env.reindex(e)
		messages = append(messages, e.message(r))
	}
	return messages, nil
}

// dueRows returns runs with due rows, in due order.
func (env *environment) dueRows(now embedded.Millis, c *lane.ClaimOutboxCommand, limit int) []*entry {
	var due []*entry
	for w := ascend(env.sets(unpublished), nil); len(due) < limit; w.advance() {
		next, ok := w.peek()
		if !ok || next.at > now {
			break
		}
		left := slices.Contains(c.Without, next.entry.created.Queue)
		if !left && !next.entry.underway(now, c.Patience) && !env.reservationOver(next.entry, now) {
			due = append(due, next.entry)
		}
	}
	return due
}

// dueAmong returns the runs of the rows in ids that are live and due.
func (env *environment) dueAmong(ids []string, now embedded.Millis, limit int) []*entry {
	var due []*entry
	chosen := map[*entry]bool{}
	for _, id := range ids {
		e, r := env.row(id)
		if r == nil || r != e.liveRow() || chosen[e] || len(due) == limit {
			continue
		}
		if e.delivery.set == &e.shard.indexes.unpublished && e.delivery.at <= now && !env.reservationOver(e, now) {
			chosen[e], due = true, append(due, e)
		}
	}
	return due
}

// row finds a row by its ID, nil if it is gone.
func (env *environment) row(id string) (*entry, *row) {
	runID, sequence, ok := embedded.ParseEventID(id)
	e := env.run(runID)
	if !ok || e == nil || e.unpacked == nil { // a packed run has only settled rows
		return nil, nil
	}
	if r := e.outbox.Delivery(sequence); r != nil {
		return e, r
	}
	return nil, nil
}

// MarkOutboxMessagesPublished marks rows as published.
func (s *Storage) MarkOutboxMessagesPublished(ctx context.Context, c *lane.MarkPublishedCommand) error {
	now := embedded.At(c.At)
	return mark(ctx, s, c.Environment, c.Messages,
		func(m lane.OutboxRef) lane.OutboxRef { return m },
		func(e *entry, r *row, _ lane.OutboxRef) { e.outbox.Publish(e.known(), r, now) })
}

// MarkOutboxMessagesFailed marks rows for another try.
func (s *Storage) MarkOutboxMessagesFailed(ctx context.Context, c *lane.MarkFailedCommand) error {
	return mark(ctx, s, c.Environment, c.Messages, failureRef,
		func(_ *entry, r *row, f lane.OutboxFailure) { r.Fail(&f) })
}

// MarkOutboxMessagesDeadLettered marks rows as dead letters.
func (s *Storage) MarkOutboxMessagesDeadLettered(ctx context.Context, c *lane.MarkDeadLetteredCommand) error {
	now := embedded.At(c.At)
	return mark(ctx, s, c.Environment, c.Messages, failureRef,
		func(_ *entry, r *row, f lane.OutboxFailure) { r.GiveUp(&f, now) })
}

// markOne returns false if the claim has ended.
func (s *Storage) markOne(name runlane.Environment, marked lane.OutboxRef, apply func(*entry, *row)) bool {
	id, _, ok := embedded.ParseEventID(marked.ID)
	if !ok {
		return false
	}
	h := s.lockUnlimited(name, id, "")
	defer h.unlock()
	env := s.find(name)
	e, r := env.row(marked.ID)
	if r == nil || !holds(r, marked.ClaimToken) {
		return false
	}
	apply(e, r)
	e.outbox.Settle(e.known())
	env.reindex(e)
	e.pack()
	return true
}

func failureRef(f lane.OutboxFailure) lane.OutboxRef { return f.OutboxRef }

// mark judges each message on its own. Messages with an expired claim stay unchanged; one conflict names them all.
func mark[M any](
	ctx context.Context, s *Storage, name runlane.Environment, messages []M,
	ref func(M) lane.OutboxRef, apply func(e *entry, r *row, m M),
) error {
	if err := embedded.Ended(ctx); err != nil {
		return err
	}
	var stale []string
	for _, m := range messages {
		if marked := ref(m); !s.markOne(name, marked, func(e *entry, r *row) { apply(e, r, m) }) {
			stale = append(stale, marked.ID)
		}
	}
	return embedded.StaleClaims(stale)
}
