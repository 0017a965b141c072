package sqlitelane

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/embedded"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/sqlitelane/internal/record"
)

// ClaimOutboxMessages claims due rows for a publisher.
func (s *Storage) ClaimOutboxMessages(
	ctx context.Context, c *lane.ClaimOutboxCommand,
) (messages []lane.OutboxMessage, err error) {
	if err := embedded.Ended(ctx); err != nil {
		return nil, err
	}
	limit, err := embedded.JudgeOutboxClaim(c)
	if err != nil {
		return nil, err
	}
	err = s.write(ctx, func(t *tx) error {
		messages = nil
		env, err := s.names.find(t.Conn, c.Environment.Name())
		if err != nil || env == 0 {
			return err
		}
		var due []*entry
		if c.IDs != nil {
			due, err = t.dueAmong(env, c, limit)
		} else {
			due, err = t.dueRows(env, c, limit)
		}
		if err != nil {
			return err
		}
		for _, e := range due {
			d := e.Live()
			d.Claim(s.nextToken(), embedded.At(c.ClaimUntil))
			if err := t.save(e); err != nil {
				return err
			}
			messages = append(messages, e.Message(d))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return messages, nil
}

// dueRows returns runs with due rows, in due order.
func (t *tx) dueRows(env int64, c *lane.ClaimOutboxCommand, limit int) ([]*entry, error) {
	var due []*entry
	now := embedded.At(c.At)
	unpublished := deliveriesOf(embedded.Unpublished)
	without, err := t.numbersOf(c.Without)
	if err != nil {
		return nil, err
	}
	if without != "" {
		unpublished.where += " AND queue NOT IN (" + without + ")"
	}
	w := newWalk(t.Conn, env, c.Environment, nil, now, false, unpublished)
	for len(due) < limit {
		next, ok, err := w.next()
		if err != nil {
			return nil, err
		}
		if !ok {
			break
		}
		if next.Underway(now, c.Patience) {
			continue
		}
		over, err := reservationOver(t.Conn, next.entry, now)
		if err != nil {
			return nil, err
		}
		if over {
			continue
		}
		e, err := t.find(env, c.Environment, next.Run.ID) // with the writer's cached state
		if err != nil {
			return nil, err
		}
		due = append(due, e)
	}
	return due, nil
}

// numbersOf returns the numbers of queues, separated by commas.
func (t *tx) numbersOf(queues []runlane.QueueName) (string, error) {
	var numbers []string
	for _, name := range slices.Sorted(slices.Values(queues)) {
		n, err := t.s.names.find(t.Conn, string(name))
		if err != nil {
			return "", err
		}
		if n != 0 {
			numbers = append(numbers, fmt.Sprint(n))
		}
	}
	return strings.Join(numbers, ","), nil
}

// dueAmong returns the runs of the rows in c.IDs that are live and due.
func (t *tx) dueAmong(env int64, c *lane.ClaimOutboxCommand, limit int) ([]*entry, error) {
	var due []*entry
	now := embedded.At(c.At)
	for _, id := range c.IDs {
		if len(due) == limit {
			break
		}
		e, d, err := t.row(env, c.Environment, id)
		if err != nil {
			return nil, err
		}
		if d == nil || d != e.Live() || slices.Contains(due, e) || e.places.Delivery != embedded.Unpublished ||
			e.places.DeliveryAt > now {
			continue
		}
		over, err := reservationOver(t.Conn, e, now)
		if err != nil {
			return nil, err
		}
		if !over {
			due = append(due, e)
		}
	}
	return due, nil
}

// row finds a row by its ID, nil if it is gone.
func (t *tx) row(env int64, environment runlane.Environment, id string) (*entry, *record.Delivery, error) {
	run, sequence, ok := embedded.ParseEventID(id)
	if !ok {
		return nil, nil, nil
	}
	e, err := t.find(env, environment, run)
	if err != nil || e == nil {
		return nil, nil, err
	}
	return e, e.Delivery(sequence), nil
}

// MarkOutboxMessagesPublished marks rows as published.
func (s *Storage) MarkOutboxMessagesPublished(ctx context.Context, c *lane.MarkPublishedCommand) error {
	now := embedded.At(c.At)
	return mark(ctx, s, c.Environment, c.Messages,
		func(m lane.OutboxRef) lane.OutboxRef { return m },
		func(e *entry, d *record.Delivery, _ lane.OutboxRef) { e.Publish(e.known(), d, now) })
}

// MarkOutboxMessagesFailed marks rows for another try.
func (s *Storage) MarkOutboxMessagesFailed(ctx context.Context, c *lane.MarkFailedCommand) error {
	return mark(ctx, s, c.Environment, c.Messages, failureRef,
		func(_ *entry, d *record.Delivery, f lane.OutboxFailure) { d.Fail(&f) })
}

// MarkOutboxMessagesDeadLettered marks rows as dead letters.
func (s *Storage) MarkOutboxMessagesDeadLettered(ctx context.Context, c *lane.MarkDeadLetteredCommand) error {
	now := embedded.At(c.At)
	return mark(ctx, s, c.Environment, c.Messages, failureRef,
		func(_ *entry, d *record.Delivery, f lane.OutboxFailure) { d.GiveUp(&f, now) })
}

func failureRef(f lane.OutboxFailure) lane.OutboxRef { return f.OutboxRef }

// mark judges each message on its own. Messages with an expired claim stay unchanged; one conflict names them all.
func mark[M any](
	ctx context.Context, s *Storage, environment runlane.Environment, messages []M,
	ref func(M) lane.OutboxRef, apply func(*entry, *record.Delivery, M),
) error {
	if err := embedded.Ended(ctx); err != nil {
		return err
	}
	var stale []string
	err := s.write(ctx, func(t *tx) error {
		stale = nil
		env, err := s.names.find(t.Conn, environment.Name())
		if err != nil {
			return err
		}
		for _, m := range messages {
			marked := ref(m)
			e, d, err := t.row(env, environment, marked.ID)
			if err != nil {
				return err
			}
			if d == nil || !d.ClaimedBy(marked.ClaimToken) {
				stale = append(stale, marked.ID)
				continue
			}
			apply(e, d, m)
			e.Settle(e.known())
			if err := t.save(e); err != nil {
				return err
			}
		}
		return nil
	})
	return cmp.Or(err, embedded.StaleClaims(stale))
}
