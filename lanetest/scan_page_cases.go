package lanetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// docs/internals/contract.md, Scans.
func scanCancellationOrder(_ *testing.T, b *bundle) {
	var order []*runlane.Run
	for _, i := range []int{2, 0, 3, 1} { // made in another order than due
		end := noon.Add(time.Duration(i+1) * time.Minute)
		run := b.running(noon, end, RunOptions{Queue: runlane.QueueName(fmt.Sprint("queue", i%2))})
		order = append(order, b.push(run, noon, &runlane.RunCancellationRequested{}))
	}
	order = []*runlane.Run{order[1], order[3], order[0], order[2]}
	list := b.storage.ListRunsNeedingCancellationFinalization
	for i := range order {
		end := noon.Add(time.Duration(i+1) * time.Minute)
		b.wantScanOrder("a millisecond early", list, b.due(end.Add(-time.Millisecond)), order[:i]...)
		b.wantScanOrder("at the millisecond", list, b.due(end), order[:i+1]...)
	}
	q := b.due(noon.Add(time.Hour))
	q.Queues = []runlane.QueueName{"queue1"}
	b.wantScanOrder("of one queue", list, q, order[1], order[3])
	b.eventually(func() string { // a reference
		want := lane.RunRef{
			RunKey:      b.key(order[1].ID),
			Queue:       "queue1",
			Status:      runlane.StatusCancellationRequested,
			AvailableAt: noon.Add(2 * time.Minute),
			Sequence:    order[1].EventSequence,
		}
		return difference([]lane.RunRef{want}, b.scanAll(list, q)[:1])
	})
}

func scanRedeliveryOrder(_ *testing.T, b *bundle) {
	var order []*runlane.Run
	for _, i := range []int{2, 0, 3, 1} {
		at := noon.Add(time.Duration(i) * time.Minute)
		order = append(order, b.create(at, RunOptions{Outbox: lane.InitialOutbox{Published: true}}))
	}
	order = []*runlane.Run{order[1], order[3], order[0], order[2]}
	for i := range order {
		due := noon.Add(time.Duration(i)*time.Minute + 10*time.Minute)
		b.wantScanOrder(
			"a millisecond early",
			b.storage.ListRunsNeedingRedelivery,
			b.due(due.Add(-time.Millisecond)),
			order[:i]...,
		)
		b.wantScanOrder("at the millisecond", b.storage.ListRunsNeedingRedelivery, b.due(due), order[:i+1]...)
	}
}

// scans are all of them, with what makes a run that each finds an hour later.
func (b *bundle) scans() map[string]struct {
	list scan
	made func(queue runlane.QueueName) *runlane.Run
} {
	end := noon.Add(time.Minute)
	type found = struct {
		list scan
		made func(queue runlane.QueueName) *runlane.Run
	}
	return map[string]found{
		"runnable": {b.storage.ListRunnableRuns, func(queue runlane.QueueName) *runlane.Run {
			return b.create(noon, RunOptions{Queue: queue, RunAt: end})
		}},
		"needing delivery": {b.storage.ListRunsNeedingDelivery, func(queue runlane.QueueName) *runlane.Run {
			return b.running(noon, end, RunOptions{Queue: queue})
		}},
		"needing redelivery": {b.storage.ListRunsNeedingRedelivery, func(queue runlane.QueueName) *runlane.Run {
			return b.create(noon, RunOptions{Queue: queue, Outbox: lane.InitialOutbox{Published: true}})
		}},
		"needing cancellation": {
			b.storage.ListRunsNeedingCancellationFinalization,
			func(queue runlane.QueueName) *runlane.Run {
				return b.push(b.running(noon, end, RunOptions{Queue: queue}), noon, &runlane.RunCancellationRequested{})
			},
		},
		"needing dispatch": {b.storage.ListRunsNeedingDispatch, func(queue runlane.QueueName) *runlane.Run {
			return b.limited(100).waiting(noon, RunOptions{Queue: queue})
		}},
	}
}

func (b *bundle) scanQuery(what string, limit int) *lane.DueQuery {
	q := b.due(noon.Add(time.Hour))
	q.Limit = limit
	if what == "needing dispatch" {
		q.Bounded = []runlane.Queue{{Name: "wanted", Concurrency: 100}, {Name: "skipped", Concurrency: 100}}
	}
	return q
}

// docs/internals/contract.md, Pages and cursors.
func pagingScanCursors(t *testing.T, b *bundle) {
	cursors := map[string]runlane.Cursor{}
	for what, s := range b.scans() {
		for range 2 {
			s.made("wanted")
		}
		q := b.scanQuery(what, 1)
		cursors[what] = b.firstCursor(func() (runlane.Cursor, error) {
			page, err := s.list(b.ctx(), q)
			if err != nil {
				return "", err
			}
			return page.Next, nil
		})
	}
	for what, s := range b.scans() {
		refused := func(why string, after runlane.Cursor, change func(q *lane.DueQuery)) {
			t.Helper()
			q := b.scanQuery(what, 1)
			q.After = after
			change(q)
			if _, err := s.list(b.ctx(), q); runlane.CodeOf(err) != runlane.ErrValidationFailed {
				t.Errorf("%s, %s: error is %v, want %q", what, why, err, runlane.ErrValidationFailed)
			}
		}
		mine := cursors[what]
		refused("another environment", mine, func(q *lane.DueQuery) { q.Environment += "-elsewhere" })
		refused("other queues", mine, func(q *lane.DueQuery) { q.Queues = []runlane.QueueName{"wanted"} })
		refused("without a queue", mine, func(q *lane.DueQuery) { q.Without = []runlane.QueueName{"skipped"} })
		refused("an invented cursor", "no cursor", func(*lane.DueQuery) {})
		refused("a cursor cut short", mine[:len(mine)-4], func(*lane.DueQuery) {})
		for i := range mine[:len(mine)-1] { // of the last character some bits may say nothing
			altered := []byte(mine)
			if altered[i] = 'A'; mine[i] == 'A' {
				altered[i] = 'B'
			}
			refused(
				fmt.Sprintf("a cursor whose character %d was altered", i),
				runlane.Cursor(altered),
				func(*lane.DueQuery) {},
			)
		}
		for other, cursor := range cursors {
			if other != what {
				refused("the cursor of runs "+other, cursor, func(*lane.DueQuery) {})
			}
		}
		for _, limit := range []int{-1, runlane.MaxPageLimit + 1} {
			refused("limit "+fmt.Sprint(limit), "", func(q *lane.DueQuery) { q.Limit = limit })
		}
	}
}

// Rows of another queue are older than those that are wanted, and more than a page.
func pagingEveryScan(t *testing.T, b *bundle) {
	for what := range b.scans() {
		c := newBundle(t, b.h) // an environment a scan: what one finds another may as well
		scans := c.scans()[what]
		var wanted []*runlane.Run
		for i := range 7 {
			if i%3 == 2 {
				wanted = append(wanted, scans.made("wanted"))
			} else {
				scans.made("skipped")
			}
		}
		for _, limit := range []int{1, 2, 3, 100} {
			q := c.scanQuery(what, limit)
			q.Queues = []runlane.QueueName{"wanted"}
			c.wantScan(fmt.Sprintf("%s, limit %d", what, limit), scans.list, q, wanted...)
			q.Queues, q.Without = nil, []runlane.QueueName{"skipped"}
			c.wantScan(fmt.Sprintf("%s, limit %d, without the other queue", what, limit), scans.list, q, wanted...)
		}
		c.verify()
	}
}
