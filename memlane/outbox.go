package memlane

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/embedded"
	"github.com/runlane/runlane-go/lane"
)

// row is one delivery that was requested: a wakeup to publish.
type row struct {
	sequence    int64 // of its run.delivery_requested, which names it
	status      lane.OutboxStatus
	attempts    int
	token       uint64 // of the latest claim
	requestedAt embedded.Millis
	availableAt embedded.Millis
	claimUntil  embedded.Millis
	since       embedded.Millis // when it was published or given up
	failure     *runlane.Failure
}

func (s *Storage) nextToken() uint64 { return s.tokens.Add(1) }

const tokenPrefix = "claim_"

func tokenText(token uint64) string { return tokenPrefix + strconv.FormatUint(token, 36) }

// holds reports whether the text is the token of the row's claim, which is not over.
func (r *row) holds(text string) bool {
	number, ok := strings.CutPrefix(text, tokenPrefix)
	token, err := strconv.ParseUint(number, 36, 64)
	return ok && err == nil && r.status == lane.OutboxClaimed && r.token == token
}

// addRow makes the row of a delivery request. It supersedes every earlier row. Earlier rows stay only while a publisher
// holds them and may still mark them.
func (e *entry) addRow(
	sequence int64, d *runlane.Delivery, occurred embedded.Millis, initial lane.InitialOutbox, token func() uint64,
) *row {
	e.rows = slices.DeleteFunc(e.rows, func(r row) bool { return r.status != lane.OutboxClaimed })
	r := row{
		sequence:    sequence,
		status:      lane.OutboxPending,
		requestedAt: embedded.At(d.RequestedAt),
		availableAt: embedded.At(d.AvailableAt),
		claimUntil:  embedded.Absent,
	}
	switch {
	case r.availableAt > occurred: // for later: always pending
	case initial.Published:
		r.status, r.since = lane.OutboxPublished, occurred
		e.published(occurred)
	case !initial.ClaimUntil.IsZero():
		r.status, r.claimUntil, r.token = lane.OutboxClaimed, embedded.At(initial.ClaimUntil), token()
	}
	e.rows = append(e.rows, r)
	return &e.rows[len(e.rows)-1]
}

// outboxWithdrawn is the status of a row for which nothing is sent: the run waits for a slot. No method returns such a
// row.
const outboxWithdrawn lane.OutboxStatus = "withdrawn"

// withdrawRows supersedes every row and makes none that could be due.
func (e *entry) withdrawRows(sequence int64) {
	e.rows = slices.DeleteFunc(e.rows, func(r row) bool { return r.status != lane.OutboxClaimed })
	e.rows = append(e.rows, row{sequence: sequence, status: outboxWithdrawn, claimUntil: embedded.Absent})
}

// liveRow is the only row of a run that can be due: the latest one, while the run is queued or scheduled. Every way out
// of these two states supersedes it, and every way into them makes a new one or withdraws it.
func (e *entry) liveRow() *row {
	if len(e.rows) == 0 || e.state.status != runlane.StatusQueued && e.state.status != runlane.StatusScheduled {
		return nil
	}
	latest := &e.rows[len(e.rows)-1]
	if latest.status == outboxWithdrawn {
		return nil
	}
	return latest
}

func (r *row) dead() bool { return r.status == lane.OutboxDeadLettered }

// dropMarked forgets superseded rows whose holders have marked them.
func (e *entry) dropMarked() {
	if len(e.rows) == 0 {
		return
	}
	latest := e.rows[len(e.rows)-1].sequence
	e.rows = slices.DeleteFunc(e.rows, func(r row) bool {
		return r.sequence != latest && r.status != lane.OutboxClaimed
	})
}

func (e *entry) published(now embedded.Millis) {
	if e.firstPublished == embedded.Absent {
		e.firstPublished = now
	}
}

// message is the row as callers get it: their own copy.
func (e *entry) message(r *row, id string) lane.OutboxMessage {
	m := lane.OutboxMessage{
		OutboxRef: lane.OutboxRef{ID: id},
		Wakeup: lane.Wakeup{
			RunKey:       lane.RunKey{Environment: e.environment, RunID: e.id},
			Queue:        e.created.Queue,
			RequestedAt:  r.requestedAt.Time(),
			TraceCarrier: maps.Clone(e.state.traceCarrier),
		},
		GroupKey:    e.created.ConcurrencyKey,
		Status:      r.status,
		Attempts:    r.attempts,
		AvailableAt: r.availableAt.Time(),
	}
	if m.GroupKey == "" {
		m.GroupKey = string(e.id)
	}
	if r.status == lane.OutboxClaimed {
		m.ClaimToken, m.ClaimUntil = tokenText(r.token), r.claimUntil.Time()
	}
	if r.failure != nil {
		m.Failure = r.failure.Clone()
	}
	return m
}

// ClaimOutboxMessages gives the caller due rows to publish.
func (s *Storage) ClaimOutboxMessages(ctx context.Context, c *lane.ClaimOutboxCommand) ([]lane.OutboxMessage, error) {
	if err := embedded.Ended(ctx); err != nil {
		return nil, err
	}
	page := lane.PageQuery{Limit: c.Limit}
	limit, err := page.PageLimit()
	if err != nil {
		return nil, err
	}
	if !c.ClaimUntil.After(c.At) {
		return nil, embedded.Violation("", "a claim until %s made at %s is over at once", c.ClaimUntil, c.At)
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
		r.status, r.token, r.claimUntil = lane.OutboxClaimed, s.nextToken(), embedded.At(c.ClaimUntil)
		env.reindex(e)
		messages = append(messages, e.message(r, embedded.EventID(e.id, r.sequence)))
	}
	return messages, nil
}

// dueRows are the runs whose live rows are due, in due order.
func (env *environment) dueRows(now embedded.Millis, c *lane.ClaimOutboxCommand, limit int) []*entry {
	var due []*entry
	for w := ascend(env.sets(unpublished), nil); len(due) < limit; w.advance() {
		next, ok := w.peek()
		if !ok || next.at > now {
			break
		}
		left := slices.Contains(c.Without, next.entry.created.Queue)
		if !left && !next.entry.underway(now, c.Patience) && !next.entry.reservationOver(now) {
			due = append(due, next.entry)
		}
	}
	return due
}

// dueAmong are those of the given rows that are live and due, and no others.
func (env *environment) dueAmong(ids []string, now embedded.Millis, limit int) []*entry {
	var due []*entry
	chosen := map[*entry]bool{}
	for _, id := range ids {
		e, r := env.row(id)
		if r == nil || r != e.liveRow() || chosen[e] || len(due) == limit {
			continue
		}
		if e.delivery.set == &e.shard.indexes.unpublished && e.delivery.at <= now && !e.reservationOver(now) {
			chosen[e], due = true, append(due, e)
		}
	}
	return due
}

// row finds a row by its id, nil when it is gone.
func (env *environment) row(id string) (*entry, *row) {
	runID, sequence, ok := embedded.ParseEventID(id)
	e := env.run(runID)
	if !ok || e == nil || e.unpacked == nil { // the rows of a packed run are settled
		return nil, nil
	}
	for i := range e.rows {
		if e.rows[i].sequence == sequence {
			return e, &e.rows[i]
		}
	}
	return nil, nil
}

// MarkOutboxMessagesPublished acknowledges rows.
func (s *Storage) MarkOutboxMessagesPublished(ctx context.Context, c *lane.MarkPublishedCommand) error {
	now := embedded.At(c.At)
	return mark(
		ctx,
		s,
		c.Environment,
		c.Messages,
		func(m lane.OutboxRef) lane.OutboxRef { return m },
		func(e *entry, r *row, _ lane.OutboxRef) {
			r.status, r.since, r.failure = lane.OutboxPublished, now, nil
			if r == e.liveRow() {
				e.published(now)
			}
		},
	)
}

// MarkOutboxMessagesFailed records failures.
func (s *Storage) MarkOutboxMessagesFailed(ctx context.Context, c *lane.MarkFailedCommand) error {
	return mark(ctx, s, c.Environment, c.Messages, failureRef, func(_ *entry, r *row, f lane.OutboxFailure) {
		r.status, r.attempts, r.availableAt = lane.OutboxFailed, f.Attempts, embedded.At(f.NextAvailableAt)
		r.fail(f.Failure)
	})
}

// MarkOutboxMessagesDeadLettered gives rows up.
func (s *Storage) MarkOutboxMessagesDeadLettered(ctx context.Context, c *lane.MarkDeadLetteredCommand) error {
	now := embedded.At(c.At)
	return mark(ctx, s, c.Environment, c.Messages, failureRef, func(_ *entry, r *row, f lane.OutboxFailure) {
		r.status, r.attempts, r.since = lane.OutboxDeadLettered, f.Attempts, now
		r.fail(f.Failure)
	})
}

// markOne reports whether the claim was still in force.
func (s *Storage) markOne(name runlane.Environment, marked lane.OutboxRef, apply func(*entry, *row)) bool {
	id, _, ok := embedded.ParseEventID(marked.ID)
	if !ok {
		return false
	}
	h := s.lockUnlimited(name, id, "")
	defer h.unlock()
	env := s.find(name)
	e, r := env.row(marked.ID)
	if r == nil || !r.holds(marked.ClaimToken) {
		return false
	}
	apply(e, r)
	e.dropMarked()
	env.reindex(e)
	e.pack()
	return true
}

func failureRef(f lane.OutboxFailure) lane.OutboxRef { return f.OutboxRef }

func (r *row) fail(failure runlane.Failure) {
	kept := failure.Clone()
	r.failure = &kept
}

// mark checks each message separately: those whose claim is over stay as they are and are named in one conflict.
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
	if len(stale) == 0 {
		return nil
	}
	err := runlane.NewConflict(runlane.ConflictOutboxClaim, "the claim on some outbox rows is over")
	err.Meta = map[string]string{"outbox_ids": strings.Join(stale, ",")}
	return err
}
