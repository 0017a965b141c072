package sqlitelane

import (
	"context"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/embedded"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/sqlitelane/internal/file"
	"github.com/runlane/runlane-go/sqlitelane/internal/record"
)

// CountRuns implements lane.Storage from the indexes of the lists.
func (s *Storage) CountRuns(ctx context.Context, q *lane.CountQuery) (counts *lane.RunCounts, err error) {
	if err := embedded.Ended(ctx); err != nil {
		return nil, err
	}
	err = s.read(ctx, true, func(c *file.Conn) error {
		counts = &lane.RunCounts{}
		env, err := s.names.known(c, q.Environment.Name())
		if err != nil || env == 0 {
			return err
		}
		queue, err := s.names.known(c, string(q.Queue))
		if err != nil || queue == 0 {
			return err
		}
		found, err := s.choose(c, env, byKind, &choice{
			queue: queue, value: ofKinds(record.Queued, record.Waiting, record.Leased, record.Cancelling),
		})
		if err != nil {
			return err
		}
		for _, l := range found {
			if err := countList(c, env, queue, l, q, counts); err != nil {
				return err
			}
		}
		reserved, err := c.Number("SELECT count(*) FROM slots WHERE env = ? AND queue = ? AND until > ?",
			env, queue, int64(embedded.At(q.At)))
		counts.Reserved = int(reserved)
		return err
	})
	return counts, err
}

// countList counts one list. Group 0 has rows from older programs, of any queue.
func countList(c *file.Conn, env, queue int64, l listed, q *lane.CountQuery, counts *lane.RunCounts) error {
	where, arguments := " FROM runs WHERE env = ?1 AND kind = ?2 + 0 AND grp = ?3 + 0 AND at > ?4 + 0 AND at <= ?5 + 0",
		[]any{env, l.value, l.group, int64(beforeAll), int64(embedded.BehindAll)}
	if l.group == 0 {
		where, arguments = where+" AND queue = ?6", append(arguments, queue)
	}
	kind := record.Kind(l.value)
	if kind == record.Leased || kind == record.Cancelling {
		n, err := c.Number("SELECT count(*)"+where, arguments...)
		counts.Owned += int(n)
		return err
	}
	until := int64(embedded.CountUntil(q, kind == record.Queued))
	for _, due := range []bool{true, false} {
		if arguments[3], arguments[4] = int64(beforeAll), until; !due {
			arguments[3], arguments[4] = until, int64(embedded.BehindAll)
		}
		first, err := c.One("SELECT at, id"+where+" ORDER BY at, id LIMIT 1", arguments...)
		if err != nil || first == nil {
			if err != nil {
				return err
			}
			continue
		}
		at, id := embedded.Millis(number(first[0])), runlane.RunID(text(first[1]))
		n, err := c.Number("SELECT count(*)"+where, arguments...)
		if err != nil {
			return err
		}
		counts.Saw(due, int(n), at.Time(), id)
	}
	return nil
}
