package lives

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// scanned is a run as a scan has it.
type scanned struct {
	id runlane.RunID
	at time.Time
}

// checkScans holds what the scans of due runs say against the projections: where an index says something else, the index is wrong.
// Indexes of DynamoDB may be late, and the scans of bounded queues go by their slots.
func (l *life) checkScans() {
	if !l.world.DoorMeets {
		return
	}
	for _, scan := range []struct {
		name string
		list func(context.Context, *lane.DueQuery) (*runlane.Page[lane.RunRef], error)
		due  func(*runlane.Run) (time.Time, bool)
	}{
		{"runnable", l.truth.ListRunnableRuns, lane.RunnableAt},
		{"delivery", l.truth.ListRunsNeedingDelivery, lane.DeliveryRecoveryAt},
		{"cancellation", l.truth.ListRunsNeedingCancellationFinalization, lane.CancellationFinalizationAt},
	} {
		want, got := l.due(scan.due), l.scan(scan.list)
		if !slices.Equal(want, got) { // unless a heartbeat came between
			for _, run := range l.book.runs() {
				l.lookAt(run.ID)
			}
			want, got = l.due(scan.due), l.scan(scan.list)
		}
		if scan.name == "delivery" {
			want = slices.DeleteFunc(want, l.givenUp)
		}
		if !slices.Equal(want, got) {
			l.fail("the scan %s has %v, and the projections say %v", scan.name, got, want)
		}
	}
}

// givenUp reports a run that waits for an operator: its wakeup is a dead letter.
func (l *life) givenUp(run scanned) bool {
	key := lane.RunKey{Environment: l.world.Environment, RunID: run.id}
	seen, err := l.truth.InspectRun(l.ctx, &lane.InspectQuery{RunKey: key})
	if err != nil {
		l.fail("inspect: %v", err)
	}
	return seen.Delivery != nil && seen.Delivery.Status == lane.OutboxDeadLettered
}

// due are the runs that a scan has to list, in its order.
func (l *life) due(of func(*runlane.Run) (time.Time, bool)) (runs []scanned) {
	for _, run := range l.book.runs() {
		if at, ok := of(run); ok && run.Queue != slotQueue && !at.After(l.clock.Now()) {
			runs = append(runs, scanned{run.ID, at})
		}
	}
	slices.SortFunc(runs, func(a, b scanned) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.id, b.id)) })
	return runs
}

func (l *life) scan(list func(context.Context, *lane.DueQuery) (*runlane.Page[lane.RunRef], error)) (runs []scanned) {
	q := &lane.DueQuery{At: l.clock.Now(), Without: []runlane.QueueName{slotQueue}}
	for q.Environment, q.Limit = l.world.Environment, 3; ; {
		page, err := list(l.ctx, q)
		if err != nil {
			l.fail("scan: %v", err)
		}
		for _, ref := range page.Items {
			runs = append(runs, scanned{ref.RunID, ref.AvailableAt})
		}
		if q.After = page.Next; q.After == "" {
			return runs
		}
	}
}
