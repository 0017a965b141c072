package core

import (
	"context"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// ratePauses is how often a delivery waits in place for its queue's rate. A run on its ticket is late by little, because
// the one before it was.
const ratePauses = 2

// takeTicket takes the next start time of a partition, unless tickets reach too far ahead already.
func (rt *Runtime) takeTicket(
	ctx context.Context, queue runlane.Queue, key string, at time.Time,
) (start time.Time, ok bool, err error) {
	ahead := lane.TicketsAhead
	if longest := rt.lane.Transport.MaxDelay(queue.Name); rt.delays && longest > 0 {
		ahead = min(ahead, longest)
	}
	return rt.storage().TakeTicket(ctx, &lane.TicketCommand{
		Environment: rt.environment, Queue: queue, ConcurrencyKey: key, At: at, Until: at.Add(ahead),
	})
}

// holdUntil lets the wakeups of a ticketed run arrive at its time.
func holdUntil(outbox []lane.OutboxMessage, start time.Time) {
	for i := range outbox {
		outbox[i].NotBefore = start
	}
}

// ticketOf is the time of the run's ticket, zero without one that is still good.
func (rt *Runtime) ticketOf(run *runlane.Run, now time.Time) time.Time {
	queue, known := rt.queues[run.Queue]
	if !known || !queue.Rated() || !lane.ReservationActive(run, now) {
		return time.Time{}
	}
	return lane.TicketTime(run, queue)
}

// pauseForRate waits for the next start in place: up to a second for a run on its ticket, a tenth of it for others.
func (d *delivery) pauseForRate(ctx context.Context, run *runlane.Run, at time.Time) bool {
	again, _ := new(d.pace).Start(d.rt.policy(run.Queue), at)
	wait, longest := again.Sub(at), shortWait/10
	if !d.rt.ticketOf(run, at).IsZero() {
		longest = shortWait
	}
	if d.pauses++; !d.byWakeup || d.pauses > ratePauses || wait > longest {
		return false
	}
	return pause(ctx, wait)
}

// late gives a run whose wakeup came too late for its ticket, or without one, the next ticket. Without a ticket it waits
// in the line, for those that start or for a tick. A polled run stays where it is: polling finds it.
func (d *delivery) late(ctx context.Context, run *runlane.Run, at time.Time) error {
	rt, queue := d.rt, d.rt.policy(run.Queue)
	if !d.byWakeup || run.Status == runlane.StatusRunning {
		return nil
	}
	start, ok, err := rt.takeTicket(ctx, queue, run.ConcurrencyKey, at)
	if err != nil {
		return err
	}
	reserved := lane.ReservationActive(run, at)
	if ok && reserved && start.Before(run.DispatchExpiresAt) && rt.canDelay(run.Queue, start.Sub(at)) {
		later := rt.delayedWakeup(run, start.Sub(at))
		later.Early = true
		return rt.sendDelayed(ctx, later)
	}
	if reserved {
		commit, err := rt.requestDelivery(ctx, run, at)
		if err != nil {
			return unlessMoved(err)
		}
		run = commit.Run
	}
	if !ok {
		return nil
	}
	got, err := rt.reserveFor(ctx, run, at, start)
	_, err = rt.publishReserved(ctx, got, err)
	return err
}

func unlessMoved(err error) error {
	if isConflict(err, runlane.ConflictEventSequence) {
		return nil
	}
	return err
}

// offerTicket gives the next ticket to the longest-waiting run of the partition, beside the attempt that took a start.
// Without waiting runs it does nothing. The result waits for it.
func (d *delivery) offerTicket(ctx context.Context, run *runlane.Run, at time.Time) (wait func()) {
	queue := d.rt.policy(run.Queue)
	if !queue.Rated() || !d.pace.LineIsLong(at) {
		return func() {}
	}
	done, as := make(chan struct{}), *run // the attempt changes its run meanwhile
	go func() {                           // ends with the offer, which has a time limit
		defer close(done)
		d.rt.offerNext(ctx, queue, &as)
	}()
	return func() { <-done }
}
