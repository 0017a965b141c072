package sqlitelane

import (
	"context"
	"slices"
	"sync"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/embedded"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/sqlitelane/internal/file"
	"github.com/runlane/runlane-go/sqlitelane/internal/record"
)

// ListRunsNeedingDispatch implements [lane.Storage].
func (s *Storage) ListRunsNeedingDispatch(
	ctx context.Context, q *lane.DueQuery,
) (page *runlane.Page[lane.RunRef], err error) {
	if err := embedded.Ended(ctx); err != nil {
		return nil, err
	}
	scope := embedded.DueScope("ListRunsNeedingDispatch", q)
	limit, after, err := embedded.OpenPage(&q.PageQuery, scope)
	if err != nil {
		return nil, err
	}
	if err := s.limitAll(ctx, q); err != nil {
		return nil, err
	}
	page = &runlane.Page[lane.RunRef]{}
	err = s.read(ctx, true, func(c *file.Conn) error {
		env, err := s.names.known(c, q.Environment.Name())
		if err != nil || env == 0 {
			return err
		}
		d := dispatch{s, c, q, env, embedded.At(q.At)}
		if q.ConcurrencyKey != nil {
			page.Items, err = d.waitingWith(*q.ConcurrencyKey, limit)
			return err
		}
		found, err := d.due(after, limit+1)
		for n, i := range found {
			if n == limit {
				page.Next = scope.Cursor(found[n-1].Place(0))
				break
			}
			page.Items = append(page.Items, i.ref())
		}
		return err
	})
	return page, err
}

// limitAll starts indexing the query's queues that were never limited.
func (s *Storage) limitAll(ctx context.Context, q *lane.DueQuery) error {
	var news []runlane.QueueName
	err := s.read(ctx, true, func(c *file.Conn) error {
		for _, queue := range q.Bounded {
			n, err := c.Number(`SELECT count(*) FROM limited WHERE env = (SELECT id FROM names WHERE name = ?)
				AND queue = (SELECT id FROM names WHERE name = ?)`, q.Environment.Name(), string(queue.Name))
			if err != nil {
				return err
			}
			known, err := s.names.known(c, q.Environment.Name())
			if err != nil {
				return err
			}
			if n == 0 && known != 0 {
				news = append(news, queue.Name)
			}
		}
		return nil
	})
	if err != nil || len(news) == 0 {
		return err
	}
	return s.write(ctx, func(t *tx) error {
		env, err := s.names.ensure(t.Tx, q.Environment.Name())
		for _, name := range news {
			var queue int64
			if err == nil {
				queue, err = s.names.ensure(t.Tx, string(name))
			}
			if err == nil {
				err = t.limit(env, queue)
			}
		}
		return err
	})
}

// dispatch is one search for runs that want slots.
type dispatch struct {
	s   *Storage
	c   *file.Conn
	q   *lane.DueQuery
	env int64
	now embedded.Millis
}

// due returns running runs with an expired lease and runs of all partitions that could get a slot.
func (d *dispatch) due(after *embedded.Position, most int) ([]item, error) {
	var found []item
	leased, err := d.s.runsOf(d.c, d.env, choice{wants: d.q.Wants, ranked: true}, record.Leased)
	if err != nil {
		return nil, err
	}
	for w := newWalk(d.c, d.env, d.q.Environment, after, d.now, false, leased...); len(found) < most; {
		next, ok, err := w.next()
		if err != nil {
			return nil, err
		}
		if !ok {
			break
		}
		queue := next.Run.Queue
		if embedded.BoundedPolicy(d.q, queue).Bounded() && d.q.Wants(queue) && !next.Underway(d.now, d.q.Patience) {
			found = append(found, next)
		}
	}
	for _, policy := range d.q.Bounded {
		if !policy.Bounded() || !d.q.Wants(policy.Name) {
			continue
		}
		queue, err := d.s.names.known(d.c, string(policy.Name))
		if err != nil {
			return nil, err
		}
		if found, err = d.ofQueue(found, queue, policy, after, most); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(found, item.compare)
	return found, nil
}

const (
	firstLine = `SELECT min(ckey) FROM runs WHERE env = ? AND queue = ? AND wants_at IS NOT NULL`
	nextLine  = firstLine + ` AND ckey > ?`
)

// ofQueue goes from partition to partition, and in each from line to line. Each step is one search, however many runs
// wait in a line.
func (d *dispatch) ofQueue(
	found []item, queue int64, policy runlane.Queue, after *embedded.Position, most int,
) ([]item, error) {
	row, err := d.c.One(firstLine, d.env, queue)
	for err == nil && row != nil && row[0] != nil {
		key, _ := record.CutLine(text(row[0]))
		p := partitionKey{d.env, queue, key}
		var lines []list
		for same := true; same; {
			line := text(row[0])
			lines = append(lines, ofLine(queue, line))
			if row, err = d.c.One(nextLine, d.env, queue, line); err != nil {
				return nil, err
			}
			next, _ := record.CutLine(text(row[0]))
			same = row[0] != nil && next == key
		}
		if found, err = d.candidates(found, p, lines, policy, after, most); err != nil {
			return nil, err
		}
	}
	return found, err
}

// linesOf are the lines of one partition.
func (d *dispatch) linesOf(p partitionKey) ([]list, error) {
	lines := []list{ofLine(p.queue, p.key)}
	line, until := record.LinesBetween(p.key)
	for {
		row, err := d.c.One(nextLine+" AND ckey < ?", d.env, p.queue, line, until)
		if err != nil || row[0] == nil {
			return lines, err
		}
		line = text(row[0])
		lines = append(lines, ofLine(p.queue, line))
	}
}

func ofLine(queue int64, line string) list {
	_, priority := record.CutLine(line)
	return list{
		column: "wants_at", where: "queue = ?6 AND ckey = ?7 AND wants_at IS NOT NULL", values: []any{queue, line},
		precedence: embedded.Precedence(priority),
	}
}

// candidates appends runs that wait in the partition, at most as many as it has room for. lines are its lines, nil if
// they are not known yet.
func (d *dispatch) candidates(
	found []item, p partitionKey, lines []list, policy runlane.Queue, after *embedded.Position, most int,
) ([]item, error) {
	left, err := roomOf(d.c, policy, p, d.q.At, false)
	if err != nil {
		return nil, err
	}
	if left = min(left, most); left <= 0 {
		return found, nil
	}
	if lines == nil {
		if lines, err = d.linesOf(p); err != nil {
			return nil, err
		}
	}
	w := newWalk(d.c, d.env, d.q.Environment, after, d.now, false, lines...)
	for left > 0 {
		next, ok, err := w.next()
		if err != nil || !ok {
			return found, err
		}
		if !next.Run.Status.Owned() && !next.Underway(d.now, d.q.Patience) {
			found = append(found, next)
			left--
		}
	}
	return found, nil
}

// waitingWith returns runs with a concurrency key that wait in partitions with free slots, in the order of their ranks.
func (d *dispatch) waitingWith(key string, limit int) (refs []lane.RunRef, err error) {
	for _, policy := range d.q.Bounded {
		queue, err := d.s.names.known(d.c, string(policy.Name))
		if err != nil {
			return nil, err
		}
		if queue == 0 || !d.q.Wants(policy.Name) {
			continue
		}
		p := partitionKey{d.env, queue, key}
		if limit == 1 {
			waiting, err := d.candidates(nil, p, nil, policy, nil, embedded.OffersAtOnce)
			if err != nil {
				return nil, err
			}
			if len(waiting) > 0 {
				return []lane.RunRef{d.s.offers.next(p, waiting).ref()}, nil
			}
			continue
		}
		waiting, err := d.candidates(nil, p, nil, policy, nil, limit-len(refs))
		if err != nil {
			return nil, err
		}
		for _, i := range waiting {
			refs = append(refs, i.ref())
		}
	}
	return refs, nil
}

// mostOffered bounds the partitions with remembered offers.
const mostOffered = 1024

// offers are runs that were offered to callers of this process that freed a slot.
type offers struct {
	mu    sync.Mutex
	given map[partitionKey][]offer
}

// offer is a run as it was offered. A changed run may be offered again.
type offer struct {
	id       runlane.RunID
	sequence int64
}

// next chooses a run for one free slot, see [embedded.Offer].
func (o *offers) next(p partitionKey, waiting []item) item {
	o.mu.Lock()
	defer o.mu.Unlock()
	asOffered := make([]offer, len(waiting))
	for n, i := range waiting {
		asOffered[n] = offer{i.Run.ID, i.Run.EventSequence}
	}
	next, given := embedded.Offer(o.given[p], asOffered)
	if len(o.given) >= mostOffered {
		clear(o.given)
	}
	o.given[p] = given
	return waiting[next]
}
