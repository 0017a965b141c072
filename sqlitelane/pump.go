package sqlitelane

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/sqlitelane/internal/file"
)

// announce wakes the queue's receptions, in this and other processes, when a wakeup becomes visible.
func (t *Transport) announce(tx *file.Tx, queue runlane.QueueName, visible time.Time) {
	tx.Ring()
	tx.After(func(bool) {
		t.mu.Lock()
		defer t.mu.Unlock()
		for _, r := range t.receptions[queue] {
			r.lookAt(visible)
		}
	})
}

// lookAt schedules a look at a time, unless one is due earlier.
func (r *reception) lookAt(at time.Time) {
	now := r.now()
	wait := at.Sub(now)
	if wait <= 0 {
		r.nudge()
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over || r.due != nil && r.dueAt.After(now) && !at.Before(r.dueAt) {
		return
	}
	if r.due != nil {
		r.due.Stop()
	}
	r.dueAt, r.due = at, time.AfterFunc(wait, r.nudge)
}

// pump takes wakeups for the reception's idle workers and keeps the handled ones from becoming visible.
func (t *Transport) pump(ctx context.Context, r *reception) {
	keep := time.NewTicker(visibility / 3)
	defer keep.Stop()
	t.adjustToClock(ctx, r)
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.closed:
			return
		case <-keep.C:
			t.extendVisibility(ctx, r)
			t.adjustToClock(ctx, r)
			r.nudge() // the clock may be ahead of the timer
		case <-r.look:
			t.take(ctx, r)
		}
	}
}

func (t *Transport) take(ctx context.Context, r *reception) {
	idle := r.reserve(cap(r.handed))
	if idle == 0 {
		return // the next idle worker looks again
	}
	r.backlog.Store(false)
	now := t.storage.now()
	found, next, err := t.findVisible(ctx, r, now)
	var taken []message
	if err == nil && found {
		err = t.storage.write(ctx, func(tx *tx) (err error) {
			taken, err = t.takeRows(tx, r, idle)
			return err
		})
	}
	if err != nil {
		taken = nil
	}
	if ctx.Err() == nil && !t.isClosed() {
		t.logOutcome(ctx, r, err)
		if err != nil {
			r.lookAt(now.Add(time.Second)) // the file may be usable again
		}
	}
	for _, m := range taken {
		t.handOver(r, m, true)
	}
	r.unreserve(idle - len(taken))
	if !next.IsZero() {
		r.lookAt(next)
	}
	if len(taken) > 0 {
		r.nudge() // for the rest
	}
}

// logOutcome logs once when the file becomes unusable and once when it is usable again.
func (t *Transport) logOutcome(ctx context.Context, r *reception, err error) {
	switch {
	case err == nil && r.failing.CompareAndSwap(true, false):
		t.log().InfoContext(ctx, "wakeups are taken again", "queues", r.queues)
	case err != nil && r.failing.CompareAndSwap(false, true):
		t.log().ErrorContext(ctx, "wakeups cannot be taken; looking again every second", "queues", r.queues,
			"code", runlane.CodeOf(err), "error", strings.TrimPrefix(err.Error(), string(runlane.CodeOf(err))+": "))
	default: // logged already
	}
}

func (t *Transport) queueNumbers(c *file.Conn, r *reception) (map[int64]runlane.QueueName, error) {
	queues := map[int64]runlane.QueueName{}
	for _, name := range r.queues {
		n, err := t.storage.names.find(c, inbox(t.environment, name))
		if err != nil {
			return nil, err
		}
		if n != 0 {
			queues[n] = name
		}
	}
	return queues, nil
}

// findVisible reports whether a wakeup is visible, else when the next one will be. It only reads.
func (t *Transport) findVisible(ctx context.Context, r *reception, now time.Time) (found bool, next time.Time, err error) {
	err = t.storage.read(ctx, true, func(c *file.Conn) error {
		queues, err := t.queueNumbers(c, r)
		for n := range queues {
			row, err := c.One("SELECT min(visible) FROM messages WHERE queue = ?", n)
			if err != nil {
				return err
			}
			if len(row) == 0 || row[0] == nil {
				continue
			}
			if number(row[0]) == parked {
				continue
			}
			at := time.UnixMilli(number(row[0]))
			switch {
			case !at.After(now):
				found = true
			case next.IsZero() || at.Before(next):
				next = at
			}
		}
		return err
	})
	return found, next, err
}

// takeRows takes the wakeups that became visible first.
func (t *Transport) takeRows(tx *tx, r *reception, most int) (taken []message, err error) {
	queues, err := t.queueNumbers(tx.Conn, r)
	if err != nil {
		return nil, err
	}
	now := t.storage.now()
	var damaged []message
	for queue, name := range queues {
		orders, err := t.isOrdered(tx, name)
		if err != nil {
			return nil, err
		}
		take := &taking{tx: tx, queue: queue, name: name, now: now.UnixMilli(), orders: orders}
		if err := take.first(most); err != nil {
			return nil, err
		}
		if !orders && take.keyed && len(take.found) == most {
			if err := take.inTurn(r.turns, most); err != nil {
				return nil, err
			}
		}
		taken, damaged = append(taken, take.found...), append(damaged, take.damaged...)
	}
	slices.SortFunc(taken, func(a, b message) int {
		return cmp.Or(cmp.Compare(a.visible, b.visible), cmp.Compare(a.n,
			b.n))
	})
	taken = taken[:min(len(taken), most)]
	for i := range damaged {
		if err := remove(tx.Tx, &damaged[i], now); err != nil {
			return nil, err
		}
	}
	for i := range taken {
		m := &taken[i]
		m.take = nextTake()
		err := tx.Exec("UPDATE messages SET visible = ?, told = ?, taken = ? WHERE n = ?",
			now.Add(visibility).UnixMilli(), now.UnixMilli(), m.take, m.n)
		if err != nil {
			return nil, err
		}
	}
	return taken, nil
}

// extendVisibility extends the visibility timeout of wakeups that are being handled, unless another process took them.
func (t *Transport) extendVisibility(ctx context.Context, r *reception) {
	r.mu.Lock()
	flying := maps.Clone(r.flying)
	r.mu.Unlock()
	if len(flying) == 0 {
		return
	}
	_ = t.storage.write(ctx, func(tx *tx) error { // if it fails, they are redelivered, which is harmless
		for take, n := range flying {
			now := t.storage.now()
			err := tx.Exec("UPDATE messages SET visible = ?, told = ? WHERE n = ? AND taken = ?",
				now.Add(visibility).UnixMilli(), now.UnixMilli(), n, take)
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// adjustToClock finds wakeups written while the clock was ahead of now. They wait their whole delay again from now on:
// the part that has passed is unknown.
func (t *Transport) adjustToClock(ctx context.Context, r *reception) {
	const ahead = " FROM messages WHERE queue = ?1 AND visible > ?3 + 0 AND visible < ?2 AND told > ?3 + 0"
	t.correct(ctx, r, "SELECT 1"+ahead+" LIMIT 1",
		"UPDATE messages SET visible = visible - told + ?3, told = ?3 WHERE n IN (SELECT n"+ahead+")", int64(parked))
	t.unpark(ctx, r)
}

// correct changes wakeups of the reception's queues if find returns any. Both statements get the queue, value and
// time.
func (t *Transport) correct(ctx context.Context, r *reception, find, change string, value int64) {
	now := t.storage.now().UnixMilli()
	var found []int64
	err := t.storage.read(ctx, true, func(c *file.Conn) error {
		queues, err := t.queueNumbers(c, r)
		for queue := range queues {
			n, err := c.Number(find, queue, value, now)
			if err != nil {
				return err
			}
			if n > 0 {
				found = append(found, queue)
			}
		}
		return err
	})
	if err != nil || len(found) == 0 {
		return // callers that wait for an answer get the error
	}
	_ = t.storage.write(ctx, func(tx *tx) error {
		for _, queue := range found {
			if err := tx.Exec(change, queue, value, now); err != nil {
				return err
			}
		}
		return nil
	})
}

// watch makes all receptions look when another process wrote to the file.
func (t *Transport) watch(ctx context.Context) {
	f, err := t.storage.opened()
	if err != nil {
		return
	}
	f.Watch(ctx, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		for _, rs := range t.receptions {
			for _, r := range rs {
				r.nudge()
			}
		}
	})
}
