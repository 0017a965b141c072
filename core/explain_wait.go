package core

import (
	"fmt"
	"strings"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// explain explains a situation, without I/O or a clock. Only the order of its questions matters. Every state has an
// answer.
func (s *situation) explain() *Explanation {
	e := &Explanation{RunID: s.run.ID, Status: s.run.Status}
	switch status := s.run.Status; {
	case status.Terminal():
		s.finished(e)
	case status.Owned():
		s.owned(e)
	case status.Waiting(), status == runlane.StatusQueued:
		s.unowned(e)
	default:
		e.says(
			WaitOperator,
			time.Time{},
			fmt.Sprintf("Its status %q was written by a newer version. Use that version to look at it.",
				s.run.Status),
		)
	}
	return e
}

// unreadable adds that the payload cannot be read here. A worker may have more keys than this process.
func (s *situation) unreadable(e *Explanation) {
	if s.run.Status.Active() && s.run.PayloadError() != nil {
		e.Next += " Its payload cannot be read here: " + s.run.Sealed.PayloadFault +
			". A worker that cannot read it either hands its wakeup back."
	}
}

// inTurn adds the harmless reason: an ordered queue delivers a group's wakeups one after the other.
func (s *situation) inTurn(e *Explanation) {
	if s.ordered && e.Wait == WaitWakeup && s.run.ConcurrencyKey != "" {
		e.Next += " Its queue is ordered: it has its turn when the runs of its concurrency key whose wakeups were " +
			"published before have ended or wait."
	}
}

// prioritized adds how the run's priority moves it among those that wait for a slot.
func (s *situation) prioritized(e *Explanation) {
	switch counts := lane.Precedence(s.run.Priority); {
	case e.Wait != WaitSlot || counts == 0:
	case counts > 0:
		e.Next += fmt.Sprintf(" Its priority of %d counts as %s of waiting.",
			s.run.Priority, runlane.FormatDuration(counts))
	default:
		e.Next += fmt.Sprintf(" Its priority of %d takes off %s of its waiting.",
			s.run.Priority, runlane.FormatDuration(-counts))
	}
}

// paused replaces what would start a run by the pauses that hold it back, and adds them to a wait. The last one to end
// counts.
func (s *situation) paused(e *Explanation) {
	if len(s.pauses) == 0 {
		return
	}
	var texts []string
	until, forever := time.Time{}, false
	for i := range s.pauses {
		p := &s.pauses[i]
		texts = append(texts, pauseText(p))
		forever = forever || p.Until.IsZero()
		if p.Until.After(until) {
			until = p.Until
		}
	}
	if forever {
		until = time.Time{}
	}
	text := strings.Join(texts, " ")
	switch e.Wait {
	case WaitSlot, WaitRate, WaitPublish, WaitWakeup, WaitReservation, WaitTick, WaitQueue:
		e.Failure, e.Holders = runlane.Failure{}, nil
		after := " The run starts after that."
		if len(texts) > 1 {
			after = " The run starts after both."
		}
		e.says(WaitPaused, until, text+after)
	case WaitTime, WaitSignal, WaitInput, WaitRuns, WaitBlocked:
		e.Next += " " + text
	case WaitNone, WaitLease, WaitCancellation, WaitPaused, WaitOperator: // nothing would start the run
	}
}

// pauseText says who paused what, since and until when.
func pauseText(p *lane.Pause) string {
	by := string(p.Actor.Type)
	if p.Actor.ID != "" {
		by += " " + p.Actor.ID
	}
	what, name := "Queue", string(p.Queue)
	if p.Task != "" {
		what, name = "Task", string(p.Task)
	}
	text := fmt.Sprintf("%s %q is paused since %s by %s", what, name, p.Since.UTC().Format(time.RFC3339), by)
	if p.Reason != "" {
		text += ": " + strings.TrimRight(p.Reason, ".")
	}
	resume := fmt.Sprintf("runlane %ss resume %s", strings.ToLower(what), name)
	if p.Until.IsZero() {
		return text + `. It lasts until someone resumes it: "` + resume + `".`
	}
	return text + ". It ends at " + p.Until.UTC().Format(time.RFC3339) + `, or with "` + resume + `".`
}

func (e *Explanation) says(wait Wait, until time.Time, next string) {
	e.Wait, e.Until, e.Next = wait, until, next
}

// nextTick is when maintenance runs at the latest, if a process ticks.
func (s *situation) nextTick() time.Time { return s.now.Add(tickEvery) }

// upcoming is at if it lies ahead, else the next tick.
func (s *situation) upcoming(at time.Time) time.Time {
	if at.After(s.now) {
		return at
	}
	return s.nextTick()
}

func (s *situation) finished(e *Explanation) {
	e.Failure = s.run.Failure
	next := "It is finished and never changes again. Rerun makes a new run of it."
	if s.run.Status == runlane.StatusFailed {
		next = "It failed for good and never changes again. Retry makes a new run of it; Attempts shows what each " +
			"attempt ended with."
		if s.retry != nil {
			next = fmt.Sprintf("It failed for good and never changes again. It was retried as %s, which is %s.",
				s.retry.ID, s.retry.Status)
		}
		if s.run.Failure.Message == foreignFailure {
			next += " The error's text is not kept, as it may quote secrets: the worker's log has it. The task's option " +
				"ErrorMessages keeps such texts."
		}
	}
	e.says(WaitNone, time.Time{}, next)
}

// owned explains a run with a lease, live or expired.
func (s *situation) owned(e *Explanation) {
	lease := s.run.Lease
	over, cancelling := lease.Expired(s.now), s.run.Status == runlane.StatusCancellationRequested
	if !over {
		e.Owner = runlane.Lease{WorkerID: lease.WorkerID, ExpiresAt: lease.ExpiresAt}
	}
	switch {
	case over && cancelling:
		e.says(
			WaitTick,
			s.nextTick(),
			"Its worker is gone and left it running. The next tick cancels it; if that does not happen, no process "+
				"ticks.",
		)
	case cancelling:
		e.says(WaitCancellation, lease.ExpiresAt,
			"Its worker was asked to stop and decides how it ends. If the worker dies, its lease ends then and a "+
				"tick cancels the run. A handler that ignores its context keeps the lease for as long as it likes: "+
				"stop that worker.")
	case !over:
		e.says(WaitLease, lease.ExpiresAt,
			"A worker executes it. A long-lived worker extends the lease; if it dies, the lease ends then and "+
				"another worker takes over. Cancel asks it to stop.")
	case s.doomed():
		e.says(WaitTick, s.nextTick(), fmt.Sprintf(
			"Its worker is gone, and %d attempts in a row ended without an outcome. The next tick, or a worker, "+
				"fails it with %s.",
			s.abandoned, runlane.ErrLeaseExpired))
	case !s.known:
		s.inUnknownQueue(e, "Its worker is gone.")
	default:
		e.says(
			WaitTick,
			s.nextTick(),
			"Its worker is gone. The next tick asks another worker to take over; if that does not happen, no process "+
				"ticks.",
		)
	}
}

// doomed reports a run that will be failed instead of executed, after too many abandoned attempts.
func (s *situation) doomed() bool {
	return s.maxAbandoned > 0 && s.abandoned >= s.maxAbandoned && s.run.Status == runlane.StatusRunning &&
		s.run.Lease.Expired(s.now)
}

// suspected adds a remark on a run that may have killed its worker.
func (s *situation) suspected(e *Explanation) {
	if s.abandoned == 0 || s.doomed() || s.run.Status == runlane.StatusCancellationRequested || e.Wait == WaitLease {
		return
	}
	bound := ""
	if s.maxAbandoned > 0 {
		bound = fmt.Sprintf(" After %d in a row it fails.", s.maxAbandoned)
	}
	if s.abandoned == 1 {
		e.Next += " Its last attempt ended without an outcome: the worker died, or lost the lease." + bound
		return
	}
	e.Next += fmt.Sprintf(" Its last %d attempts ended without an outcome: it is executed apart from others, which may "+
		"take a little longer.%s", s.abandoned, bound)
}

// unowned explains a run without a worker.
func (s *situation) unowned(e *Explanation) {
	if s.delivery != nil && s.delivery.Status == lane.OutboxDeadLettered {
		e.Failure = s.delivery.Failure
		e.says(
			WaitOperator,
			time.Time{},
			fmt.Sprintf(
				"Its wakeup was given up after %d refusals. Correct the cause, then requeue the dead letter; or "+
					"cancel the run.",
				s.delivery.Attempts,
			),
		)
		return
	}
	// A queued run is due even if its writer's clock was ahead, unless it was created for later, without a delivery.
	early := s.run.RunAt.After(s.now) && (s.run.Status != runlane.StatusQueued || s.delivery == nil)
	switch {
	case early:
		s.early(e)
	case s.run.Status == runlane.StatusQueued && lane.ReservationActive(s.run, s.now):
		s.reserved(e)
	case s.known && s.queue.Bounded():
		s.slotless(e)
	case s.run.Status == runlane.StatusQueued && lane.ReservationExpired(s.run, s.now):
		s.unlimited(e)
	case s.delivery != nil:
		s.delivering(e)
	case !s.known:
		s.inUnknownQueue(e, "It is due.")
	default:
		e.says(
			WaitTick,
			s.nextTick(),
			"It is due. A wakeup that was sent ahead, or the next tick, brings it to a worker; if neither does, no "+
				"process ticks.",
		)
	}
}

// suspended explains a wait that something other than time may end.
func (s *situation) suspended(e *Explanation) {
	w := s.run.Waiting
	e.Waiting = w.Clone()
	names := ""
	if len(w.Names) > 0 {
		joined := " or "
		if w.All {
			joined = " and "
		}
		names = " " + strings.Join(w.Names, joined)
	}
	asked := ""
	switch asks := w.Asks(); len(asks) {
	case 0:
	case 1:
		asked = " The question is: " + asks[0].Prompt
	default:
		asked = " The questions are:"
		for _, q := range asks {
			asked += fmt.Sprintf(" %s: %s", q.Name, q.Prompt)
		}
	}
	limit := " It has no time limit."
	if !w.Until.IsZero() {
		limit = " At the end of its time limit the handler is called, too."
	}
	const ends = " Resume calls the handler at once, which looks again. Cancel ends it."
	switch {
	case w.Has(runlane.WaitingEnds):
		const after = "It goes after %d other runs of its flow: the last of their ends resumes or cancels it."
		e.says(WaitRuns, w.Until, fmt.Sprintf(after+" Cancel ends it.", w.Need))
	case w.Has(runlane.WaitingBlocked):
		e.says(WaitBlocked, w.Until, fmt.Sprintf(
			"Its handler asked for an operator: %s. Resume calls the handler again. Cancel ends it.", w.Prompt))
	case w.Has(runlane.WaitingInput):
		e.says(WaitInput, w.Until, "A person has to answer: send the signal"+names+"."+asked+limit+ends)
	case w.Has(runlane.WaitingSignal), w.Has(runlane.WaitingAnything):
		e.says(WaitSignal, w.Until, "It waits for the signal"+names+"."+limit+ends)
	default:
		e.says(WaitRuns, w.Until, fmt.Sprintf("It waits for the ends of %d other runs.", w.Need)+limit+ends)
	}
}

func (s *situation) early(e *Explanation) {
	if !s.run.Waiting.Timed() {
		s.suspended(e)
		return
	}
	next := "It is delivered then. Cancel ends it before."
	switch s.run.Status {
	case runlane.StatusRetrying:
		e.Failure = s.run.Failure
		next = fmt.Sprintf(
			"Its attempt %d failed and the next one begins then. Cancel ends it before.",
			s.run.Counters.Attempts,
		)
	case runlane.StatusReleased:
		next = fmt.Sprintf(
			"Its handler released it in attempt %d and it resumes then. Cancel ends it before.",
			s.run.Counters.Attempts,
		)
	default:
		if d := s.run.Debounced; d != nil {
			next = debouncedText(d)
		}
	}
	e.says(WaitTime, s.run.RunAt, next)
}

func debouncedText(d *runlane.Debounced) string {
	latest := ""
	if !d.Latest.IsZero() {
		latest = ", at the latest at " + d.Latest.Format(time.RFC3339)
	}
	return fmt.Sprintf("It is debounced and starts then, unless it is triggered again%s. So far it was triggered %d times; "+
		"the last payload counts. Cancel ends it before.", latest, d.Triggers)
}

// reserved explains a run with a slot of its bounded queue, and no worker yet.
func (s *situation) reserved(e *Explanation) {
	if s.delivery != nil && s.delivery.Status != lane.OutboxPublished {
		s.delivering(e)
		if s.run.DispatchExpiresAt.Before(e.Until) {
			e.Until = s.run.DispatchExpiresAt // then it waits for a slot again
		}
		return
	}
	if ticket := lane.TicketTime(s.run, s.queue); s.known && ticket.After(s.now) {
		e.says(WaitRate, ticket, "It "+s.waitsForRate()+": it starts then.")
		return
	}
	if s.known && s.queue.Concurrency > 0 && !s.holds {
		e.says(WaitReservation, s.run.DispatchExpiresAt,
			"Its wakeup was handed over, but the workers that got it cannot execute it, and gave its slot to the next "+
				"run. One that can takes it with a free slot; otherwise it waits for a slot again from then on. Start "+
				"a worker with its task.")
		return
	}
	e.says(WaitReservation, s.run.DispatchExpiresAt,
		"It has a slot and its wakeup was handed over. If no worker takes it until then, it waits for a slot again "+
			"and the next reservation lasts twice as long. Check that a worker receives from its queue.")
}

// waitsForRate names the rate, and the key that counts.
func (s *situation) waitsForRate() string {
	text := fmt.Sprintf("waits for the rate of queue %q (%s", s.queue.Name, s.queue.Rate)
	if s.run.ConcurrencyKey != "" {
		text += fmt.Sprintf(", key %q", s.run.ConcurrencyKey)
	}
	return text + ")"
}

// slotless explains a due run of a bounded queue without a live reservation.
func (s *situation) slotless(e *Explanation) {
	slotFree := s.queue.Concurrency == 0 || len(s.holders) < s.queue.Concurrency
	next, ok := new(s.pace).Ticket(s.queue, s.now, s.now.Add(lane.TicketsAhead))
	switch {
	case slotFree && s.queue.Rated() && !ok:
		e.says(WaitRate, next, "It "+s.waitsForRate()+", in line: higher priorities and longer waits go first. "+
			"The next of the line "+
			"starts about then. Raise the queue's Rate, or cancel runs before it.")
		return
	case slotFree && s.queue.Rated():
		e.says(WaitTick, s.nextTick(), "It is due and the rate of its queue allows a start. The next tick gives it a "+
			"time; if that does not happen, no process that knows the queue ticks.")
		return
	case slotFree:
		e.says(
			WaitTick,
			s.nextTick(),
			"It is due and a slot of its queue is free. The next tick reserves it; if that does not happen, "+
				"no process that knows the queue ticks.",
		)
		return
	}
	until := time.Time{}
	for _, held := range s.holders {
		e.Holders = append(e.Holders, held.run)
		if until.IsZero() || held.until.Before(until) {
			until = held.until
		}
	}
	e.says(WaitSlot, s.upcoming(until), fmt.Sprintf(
		"All slots of its queue (Concurrency %d) are taken for its concurrency key. The first that is freed goes to "+
			"the run that waits longest; a holder that extends its lease keeps its slot beyond this time. Raise the "+
			"queue's Concurrency, or cancel a holder.",
		s.queue.Concurrency))
}

// unlimited explains a run that lost its reservation in a queue without a known limit.
func (s *situation) unlimited(e *Explanation) {
	if !s.known {
		s.inUnknownQueue(e, "Its slot was not used in time.")
		return
	}
	e.says(
		WaitTick,
		s.nextTick(),
		"It waited for a slot, and its queue has no limit any more. The next tick asks for its wakeup.",
	)
}

func (s *situation) delivering(e *Explanation) {
	switch s.delivery.Status {
	case lane.OutboxPublished:
		s.awaiting(e)
	case lane.OutboxClaimed:
		e.says(
			WaitPublish,
			s.upcoming(s.delivery.ClaimUntil),
			"Its wakeup is being handed over. If the process that does it dies, another tries again after this time.",
		)
	case lane.OutboxFailed:
		e.Failure = s.delivery.Failure
		e.says(
			WaitPublish,
			s.upcoming(s.delivery.AvailableAt),
			fmt.Sprintf(
				"Handing over its wakeup failed and is tried again by the first tick after this time. After %d "+
					"refusals of the wakeup itself it is given up; during an outage it is tried again without limit. "+
					"Look at the failure.",
				maxPublishFailures,
			),
		)
	default:
		e.says(
			WaitPublish,
			s.upcoming(s.delivery.AvailableAt),
			"Its wakeup is to be handed over: by the relay, else by the next tick. If it stays, neither runs.",
		)
	}
}

func (s *situation) awaiting(e *Explanation) {
	const check = "Check that a worker with a handler for its task receives from its queue, and that queue's dead " +
		"letters."
	switch {
	case s.run.Status == runlane.StatusScheduled: // still scheduled although due: maintenance asks again
		e.says(
			WaitWakeup,
			s.nextTick(),
			"Its wakeup was handed over and no worker came yet. The next tick asks again. "+check,
		)
	case s.redelivered:
		e.says(
			WaitWakeup,
			s.upcoming(s.redeliverAt),
			"Its wakeup was handed over and no worker came yet. Then the wakeup counts as lost "+
				"and a tick sends another, unless the queue is so full that it is only late. "+check,
		)
	default:
		e.says(
			WaitWakeup,
			time.Time{},
			"Its wakeup was handed over and no worker came yet. This storage does not find lost wakeups: if the "+
				"transport lost it, cancel and rerun the run. "+check,
		)
	}
}

func (s *situation) inUnknownQueue(e *Explanation, what string) {
	e.says(
		WaitQueue,
		time.Time{},
		fmt.Sprintf("%s This runtime does not know its queue %q, so cannot tell whether it needs a slot. It moves "+
			"on when a deployment that knows the queue ticks: name it in core.Options.Queues, or open the program "+
			"that has its tasks.",
			what, s.run.Queue),
	)
}
