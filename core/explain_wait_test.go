package core

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

var waitNoon = time.Date(2026, time.March, 4, 12, 0, 0, 0, time.UTC)

// waiting builds situations: an unbounded, known queue and a run without a delivery, unless told otherwise.
func waiting(status runlane.Status, changes ...func(*situation)) *situation {
	s := &situation{
		run: &runlane.Run{ID: "run_1", Queue: "default", Status: status, UpdatedAt: waitNoon}, now: waitNoon,
		queue: runlane.DefaultQueue, known: true, redelivered: true, maxAbandoned: 3,
	}
	for _, change := range changes {
		change(s)
	}
	return s
}

func withRow(status lane.OutboxStatus) func(*situation) {
	return func(s *situation) {
		s.delivery = &lane.OutboxMessage{Status: status, AvailableAt: waitNoon, Failure: runlane.Failure{Message: "refused"}, Attempts: 10}
		if status == lane.OutboxClaimed {
			s.delivery.ClaimUntil = waitNoon.Add(30 * time.Second)
		}
	}
}

func runAt(after time.Duration) func(*situation) {
	return func(s *situation) { s.run.RunAt = waitNoon.Add(after) }
}

func leaseEnds(after time.Duration) func(*situation) {
	return func(s *situation) {
		s.run.Lease = runlane.Lease{Token: "secret", WorkerID: "w", ExpiresAt: waitNoon.Add(after)}
	}
}

func reservationEnds(after time.Duration) func(*situation) {
	return func(s *situation) { s.run.DispatchedAt, s.run.DispatchExpiresAt = waitNoon, waitNoon.Add(after) }
}

func boundedBy(limit int, ends ...time.Duration) func(*situation) {
	return func(s *situation) {
		s.queue = runlane.Queue{Name: "default", Concurrency: limit}
		for i, after := range ends {
			s.holders = append(s.holders, slotHeld{runlane.RunID(fmt.Sprintf("run_h%d", i)), waitNoon.Add(after)})
		}
	}
}

// rated is a queue of one start a minute, whose tickets are given out up to the time.
func rated(line time.Duration) func(*situation) {
	return func(s *situation) {
		s.queue = runlane.Queue{Name: "default", Rate: runlane.PerMinute(1)}
		s.pace = lane.Pace{Line: waitNoon.Add(line).UnixMicro(), Span: lane.RateInterval(s.queue) + lane.RateSlack(s.queue)}
	}
}

func unknownQueue(s *situation) { s.known = false }

// waitsFor is a wait for a signal "approved", or for two ends; with a limit where the time is among the kinds.
func waitsFor(kinds ...runlane.WaitingFor) func(*situation) {
	return func(s *situation) {
		s.run.Waiting = &runlane.Waiting{For: kinds, Names: []string{"approved"}, Need: 2, Prompt: "raise the quota"}
		if s.run.Waiting.Has(runlane.WaitingTime) {
			s.run.Waiting.Until = s.run.RunAt
		}
	}
}

func TestExplain_Table(t *testing.T) {
	t.Parallel()
	const tick = time.Minute
	for name, c := range map[string]struct {
		s     *situation
		want  Wait
		until time.Duration // after noon; 0: none
	}{
		"succeeded": {waiting(runlane.StatusSucceeded), WaitNone, 0},
		"failed":    {waiting(runlane.StatusFailed), WaitNone, 0},
		"cancelled": {waiting(runlane.StatusCancelled), WaitNone, 0},

		"running": {waiting(runlane.StatusRunning, leaseEnds(time.Second)), WaitLease, time.Second},
		"running, lease over at this millisecond": {waiting(runlane.StatusRunning, leaseEnds(0)), WaitTick, tick},
		"running, lease over, unknown queue":      {waiting(runlane.StatusRunning, leaseEnds(0), unknownQueue), WaitQueue, 0},
		"running in an unknown queue":             {waiting(runlane.StatusRunning, leaseEnds(1), unknownQueue), WaitLease, 1},
		"cancelling":                              {waiting(runlane.StatusCancellationRequested, leaseEnds(time.Second)), WaitCancellation, time.Second},
		"cancelling, lease over":                  {waiting(runlane.StatusCancellationRequested, leaseEnds(0), unknownQueue), WaitTick, tick},

		"scheduled":                        {waiting(runlane.StatusScheduled, runAt(time.Hour), withRow(lane.OutboxPending)), WaitTime, time.Hour},
		"retrying":                         {waiting(runlane.StatusRetrying, runAt(time.Hour)), WaitTime, time.Hour},
		"released":                         {waiting(runlane.StatusReleased, runAt(time.Hour)), WaitTime, time.Hour},
		"released, bounded and full":       {waiting(runlane.StatusReleased, runAt(time.Hour), boundedBy(1, time.Second)), WaitTime, time.Hour},
		"created alone for later":          {waiting(runlane.StatusQueued, runAt(time.Hour), boundedBy(1)), WaitTime, time.Hour},
		"retrying, due":                    {waiting(runlane.StatusRetrying, runAt(0)), WaitTick, tick},
		"released, due, unknown queue":     {waiting(runlane.StatusReleased, runAt(0), unknownQueue), WaitQueue, 0},
		"scheduled, due":                   {waiting(runlane.StatusScheduled, runAt(0), withRow(lane.OutboxPending)), WaitPublish, tick},
		"scheduled, due, refused":          {waiting(runlane.StatusScheduled, runAt(0), withRow(lane.OutboxFailed)), WaitPublish, tick},
		"scheduled, due, handed over":      {waiting(runlane.StatusScheduled, runAt(0), withRow(lane.OutboxPublished)), WaitWakeup, tick},
		"scheduled, due, given up":         {waiting(runlane.StatusScheduled, runAt(0), withRow(lane.OutboxDeadLettered)), WaitOperator, 0},
		"scheduled, due, bounded and full": {waiting(runlane.StatusScheduled, runAt(0), boundedBy(1, time.Second)), WaitSlot, time.Second},

		"queued, pending":           {waiting(runlane.StatusQueued, withRow(lane.OutboxPending)), WaitPublish, tick},
		"queued, being handed over": {waiting(runlane.StatusQueued, withRow(lane.OutboxClaimed)), WaitPublish, 30 * time.Second},
		"queued, refused for now": {waiting(runlane.StatusQueued, withRow(lane.OutboxFailed), func(s *situation) {
			s.delivery.AvailableAt = waitNoon.Add(5 * time.Second)
		}), WaitPublish, 5 * time.Second},
		"queued, handed over": {waiting(runlane.StatusQueued, withRow(lane.OutboxPublished), func(s *situation) {
			s.redeliverAt = waitNoon.Add(9 * time.Minute)
		}), WaitWakeup, 9 * time.Minute},
		"queued, handed over by a clock ahead": {waiting(runlane.StatusQueued, runAt(3*time.Second), withRow(lane.OutboxPublished), func(s *situation) {
			s.redeliverAt = waitNoon.Add(9 * time.Minute)
		}), WaitWakeup, 9 * time.Minute},
		"queued, handed over too long ago": {waiting(runlane.StatusQueued, withRow(lane.OutboxPublished), func(s *situation) {
			s.redeliverAt = waitNoon.Add(-time.Minute)
		}), WaitWakeup, tick},
		"queued, handed over, never found again": {waiting(runlane.StatusQueued, withRow(lane.OutboxPublished), func(s *situation) {
			s.redelivered = false
		}), WaitWakeup, 0},
		"queued, handed over, unknown queue": {waiting(runlane.StatusQueued, withRow(lane.OutboxPublished), unknownQueue), WaitWakeup, tick},
		"queued, given up":                   {waiting(runlane.StatusQueued, withRow(lane.OutboxDeadLettered)), WaitOperator, 0},
		"queued, given up, bounded":          {waiting(runlane.StatusQueued, withRow(lane.OutboxDeadLettered), boundedBy(1, 1)), WaitOperator, 0},
		"queued without a delivery":          {waiting(runlane.StatusQueued), WaitTick, tick},
		"queued without one, unknown queue":  {waiting(runlane.StatusQueued, unknownQueue), WaitQueue, 0},

		"reserved":                     {waiting(runlane.StatusQueued, reservationEnds(time.Second), withRow(lane.OutboxPublished), boundedBy(1)), WaitReservation, time.Second},
		"reserved, unknown queue":      {waiting(runlane.StatusQueued, reservationEnds(time.Second), withRow(lane.OutboxPublished), unknownQueue), WaitReservation, time.Second},
		"reserved, refused":            {waiting(runlane.StatusQueued, reservationEnds(time.Second), withRow(lane.OutboxFailed), boundedBy(1)), WaitPublish, time.Second},
		"reservation over, slot free":  {waiting(runlane.StatusQueued, reservationEnds(0), withRow(lane.OutboxPublished), boundedBy(1)), WaitTick, tick},
		"reservation over, slot taken": {waiting(runlane.StatusQueued, reservationEnds(0), withRow(lane.OutboxPublished), boundedBy(1, 5)), WaitSlot, 5},
		"reservation over, no limit":   {waiting(runlane.StatusQueued, reservationEnds(0), withRow(lane.OutboxPublished)), WaitTick, tick},
		"reservation over, unknown":    {waiting(runlane.StatusQueued, reservationEnds(0), withRow(lane.OutboxPublished), unknownQueue), WaitQueue, 0},
		"slots taken":                  {waiting(runlane.StatusQueued, boundedBy(2, 9, 4)), WaitSlot, 4},
		"a dead holder keeps its slot": {waiting(runlane.StatusQueued, boundedBy(1, -time.Hour)), WaitSlot, tick},
		"one slot of two taken":        {waiting(runlane.StatusQueued, boundedBy(2, 9)), WaitTick, tick},
		"handed over, bounded since":   {waiting(runlane.StatusQueued, withRow(lane.OutboxPublished), boundedBy(1, 9)), WaitSlot, 9},

		"with a ticket":              {waiting(runlane.StatusQueued, reservationEnds(time.Minute+runlane.DefaultDispatchTimeout), withRow(lane.OutboxPublished), rated(0)), WaitRate, time.Minute},
		"its ticket's time has come": {waiting(runlane.StatusQueued, reservationEnds(runlane.DefaultDispatchTimeout), withRow(lane.OutboxPublished), rated(0)), WaitReservation, runlane.DefaultDispatchTimeout},
		"in line for the rate":       {waiting(runlane.StatusQueued, rated(10*time.Minute)), WaitRate, 10 * time.Minute},
		"a ticket is free":           {waiting(runlane.StatusQueued, rated(0)), WaitTick, tick},

		"for a signal": {waiting(runlane.StatusReleased, runAt(time.Hour), waitsFor(runlane.WaitingSignal, runlane.WaitingTime)), WaitSignal, time.Hour},
		"for an answer, with no limit": {waiting(runlane.StatusReleased, runAt(time.Hour), waitsFor(runlane.WaitingSignal, runlane.WaitingInput)),
			WaitInput, 0},
		"for anything":        {waiting(runlane.StatusReleased, runAt(time.Hour), waitsFor(runlane.WaitingAnything)), WaitSignal, 0},
		"for children":        {waiting(runlane.StatusReleased, runAt(time.Hour), waitsFor(runlane.WaitingChildren)), WaitRuns, 0},
		"for ends":            {waiting(runlane.StatusScheduled, runAt(time.Hour), waitsFor(runlane.WaitingEnds)), WaitRuns, 0},
		"for an operator":     {waiting(runlane.StatusReleased, runAt(time.Hour), waitsFor(runlane.WaitingBlocked)), WaitBlocked, 0},
		"a sleep":             {waiting(runlane.StatusReleased, runAt(time.Hour), waitsFor(runlane.WaitingTime)), WaitTime, time.Hour},
		"a wait that is over": {waiting(runlane.StatusReleased, runAt(-time.Hour), waitsFor(runlane.WaitingSignal)), WaitTick, tick},

		"a status of a newer version": {waiting("hibernating"), WaitOperator, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := c.s.explain()
			until := time.Time{}
			if c.until != 0 {
				until = waitNoon.Add(c.until)
			}
			if e.Wait != c.want || !e.Until.Equal(until) || e.RunID != "run_1" || e.Status != c.s.run.Status {
				t.Errorf("got %+v, want %s until %v", e, c.want, until)
			}
			if e.Next == "" || !strings.HasSuffix(e.Next, ".") || strings.Contains(e.Next, "%!") {
				t.Errorf("says %q", e.Next)
			}
			if strings.Contains(fmt.Sprintf("%+v", e), "secret") {
				t.Errorf("shows a lease token: %+v", e)
			}
			failed := c.s.delivery != nil && (c.s.delivery.Status == lane.OutboxFailed || c.s.delivery.Status == lane.OutboxDeadLettered)
			if shown := e.Failure.Message == "refused"; shown != failed {
				t.Errorf("failure is %+v", e.Failure)
			}
		})
	}
}

// Whatever the state, there is exactly one wait, and it is one of the list.
func TestExplain_EveryStateHasAWait(t *testing.T) {
	t.Parallel()
	waits := Waits()
	seen := map[Wait]bool{}
	rows := []lane.OutboxStatus{
		"", lane.OutboxPending, lane.OutboxClaimed, lane.OutboxPublished, lane.OutboxFailed, lane.OutboxDeadLettered, "of a newer version",
	}
	times := []func(*situation){runAt(-time.Hour), runAt(time.Hour), func(*situation) {}}
	leases := []func(*situation){leaseEnds(-time.Hour), leaseEnds(time.Hour), reservationEnds(-time.Hour), reservationEnds(time.Hour), func(*situation) {}}
	queues := []func(*situation){
		boundedBy(1), boundedBy(1, time.Hour), unknownQueue, func(*situation) {}, rated(0), rated(time.Hour),
		waitsFor(runlane.WaitingSignal), waitsFor(runlane.WaitingInput), waitsFor(runlane.WaitingEnds), waitsFor(runlane.WaitingBlocked),
	}
	for _, status := range append(runlane.Statuses(), "of a newer version") {
		for _, row := range rows {
			for i := range times {
				for j := range leases {
					for k := range queues {
						s := waiting(status, times[i], leases[j], queues[k])
						if row != "" {
							withRow(row)(s)
						}
						e := s.explain()
						seen[e.Wait] = true
						if !slices.Contains(waits, e.Wait) || e.Next == "" || (e.Wait == WaitNone) != status.Terminal() {
							t.Errorf("%s, row %q, time %d, lease %d, queue %d: %+v", status, row, i, j, k, e)
						}
						if !e.Until.IsZero() && !e.Until.After(s.now) {
							t.Errorf("%s, row %q, time %d, lease %d, queue %d: waits until %v", status, row, i, j, k, e.Until)
						}
					}
				}
			}
		}
	}
	paused := waiting(runlane.StatusQueued, func(s *situation) { s.pauses = []lane.Pause{{Queue: "q", Since: s.now}} })
	e := paused.explain()
	paused.paused(e)
	seen[e.Wait] = true
	if len(seen) != len(waits) {
		t.Errorf("only %v occurred", seen)
	}
}

func TestExplain_OfTwoPauses_NamesBothAndWaitsForTheLast(t *testing.T) {
	t.Parallel()
	for _, forever := range []bool{false, true} {
		s := waiting(runlane.StatusQueued, func(s *situation) {
			s.pauses = []lane.Pause{{Task: "t", Until: s.now.Add(time.Hour)}, {Queue: "q", Until: s.now.Add(time.Minute)}}
			if forever {
				s.pauses[1].Until = time.Time{}
			}
		})
		want := s.pauses[0].Until
		if forever {
			want = time.Time{}
		}
		e := s.explain()
		s.paused(e)
		if !e.Until.Equal(want) || !strings.Contains(e.Next, `Task "t"`) || !strings.Contains(e.Next, `Queue "q"`) {
			t.Errorf("waits until %s: %s", e.Until, e.Next)
		}
	}
}

func TestExplain_OfAnOrderedQueue_NamesTheTurnOfARunWithAKeyThatHasAWakeup(t *testing.T) {
	t.Parallel()
	ordered := func(s *situation) { s.ordered = true }
	keyed := func(s *situation) { s.run.ConcurrencyKey = "ada" }
	for name, c := range map[string]struct {
		s    *situation
		says bool
	}{
		"handed over":        {waiting(runlane.StatusQueued, withRow(lane.OutboxPublished), ordered, keyed), true},
		"without a key":      {waiting(runlane.StatusQueued, withRow(lane.OutboxPublished), ordered), false},
		"in any other queue": {waiting(runlane.StatusQueued, withRow(lane.OutboxPublished), keyed), false},
		"not handed over":    {waiting(runlane.StatusQueued, withRow(lane.OutboxPending), ordered, keyed), false},
		"executed":           {waiting(runlane.StatusRunning, leaseEnds(time.Second), ordered, keyed), false},
	} {
		e := c.s.explain()
		c.s.inTurn(e)
		if says := strings.Contains(e.Next, "Its queue is ordered"); says != c.says {
			t.Errorf("%s: %q", name, e.Next)
		}
	}
}

func TestExplain_NamesTheBoundOnAbandonedAttempts(t *testing.T) {
	t.Parallel()
	for attempts, names := range map[int]bool{2: false, 3: true, 4: true} {
		s := waiting(runlane.StatusRunning, leaseEnds(0), unknownQueue)
		s.run.Counters.Attempts, s.abandoned = attempts, attempts
		if e := s.explain(); strings.Contains(e.Next, string(runlane.ErrLeaseExpired)) != names {
			t.Errorf("after %d attempts: %+v", attempts, e)
		}
	}
	s := waiting(runlane.StatusRunning, leaseEnds(0))
	s.run.Counters.Attempts, s.abandoned, s.maxAbandoned = 10, 10, -1
	if e := s.explain(); strings.Contains(e.Next, string(runlane.ErrLeaseExpired)) {
		t.Errorf("without a bound: %+v", e)
	}
}

// Who set no ErrorMessages is told where the text is.
func TestExplain_TextThatIsNotKept_IsSaid(t *testing.T) {
	t.Parallel()
	for message, want := range map[string]bool{foreignFailure: true, "the card was declined": false} {
		s := waiting(runlane.StatusFailed)
		s.run.Failure = runlane.Failure{Code: runlane.ErrTaskFailed, Message: message}
		if next := s.explain().Next; strings.Contains(next, "ErrorMessages") != want {
			t.Errorf("%q: %s", message, next)
		}
	}
}
