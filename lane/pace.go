package lane

import (
	"time"

	"github.com/runlane/runlane-go"
)

// Pace is what a storage keeps of a partition of a queue with a rate: the runs of one concurrency key, "" for runs
// without. It is the generic cell rate algorithm, in microseconds. The zero value is a partition without starts. A
// storage may forget it once both times have passed.
//
// The times of the starts alone prove the rate, whatever the clocks of the processes do: a start at t needs
// Next − (burst − 1) intervals <= t, and then Next is at least one interval later.
type Pace struct {
	// Next is the earliest time of the next start, with no burst.
	Next int64
	// Line is the same for tickets, which are given out ahead of the starts. It only spreads them.
	Line int64
	// Span is the time of a whole burst, burst × interval, when they were counted. Up to Next − Span the rate is used up.
	Span int64
}

// TicketCommand asks for the next start time of a partition from At on, at most Until. Queue is the current policy.
type TicketCommand struct {
	// Environment and ConcurrencyKey, with the queue's name, are the partition.
	Environment    runlane.Environment
	Queue          runlane.Queue
	ConcurrencyKey string // "" for runs without
	At, Until      time.Time
}

// TicketsAhead is how far ahead tickets reach: further than the time between two ticks, so that a tick finds the runs
// whose time comes, and not so far that a cancelled run leaves a long gap.
const TicketsAhead = 2 * time.Minute

// Start counts a start at that time, or returns the earliest time at which one is allowed.
func (p *Pace) Start(q runlane.Queue, at time.Time) (again time.Time, ok bool) {
	now, interval, slack := p.enter(q, at)
	if p.Next-slack > now {
		return fromMicros(p.Next - slack), false
	}
	p.Next = max(p.Next, now) + interval
	return at, true
}

// Ticket gives out the next start time from at on, unless it is after until.
func (p *Pace) Ticket(q runlane.Queue, at, until time.Time) (start time.Time, ok bool) {
	now, interval, slack := p.enter(q, at)
	due := max(p.Line, p.Next, now)
	start = fromMicros(max(due-slack, now))
	if start.After(until) {
		return start, false
	}
	p.Line = due + interval
	return start, true
}

// Starts is how many runs may start at that time.
func (p Pace) Starts(q runlane.Queue, at time.Time) int {
	now, interval, slack := p.enter(q, at)
	return room(now+slack-max(p.Next, now), interval)
}

// Tickets is how many tickets there are from at to until.
func (p Pace) Tickets(q runlane.Queue, at, until time.Time) int {
	now, interval, slack := p.enter(q, at)
	return room(until.UnixMicro()+slack-max(p.Line, p.Next, now), interval)
}

// LineIsLong reports that tickets reach so far ahead that runs may wait without one. Then each start gives out the next.
func (p Pace) LineIsLong(at time.Time) bool { return p.Line > at.Add(TicketsAhead/2).UnixMicro() }

// Over reports whether the pace says no more than the zero value.
func (p Pace) Over(at time.Time) bool { return max(p.Next, p.Line) <= at.UnixMicro() }

func (p *Pace) enter(q runlane.Queue, at time.Time) (now, interval, slack int64) {
	now, interval = at.UnixMicro(), RateInterval(q)
	slack = RateSlack(q)
	if more := slack + interval - p.Span; more != 0 && p.Span > 0 {
		// The time up to which the rate is used up stays, and is past: the next start is at most an interval away, and
		// processes with two policies do not give each other the burst again.
		p.Next, p.Line = p.Next+more, p.Line+more
		if more < 0 {
			p.Line = p.Next // tickets given out may be far apart: others come between
		}
	}
	p.Span = slack + interval
	return now, interval, slack
}

func room(left, interval int64) int {
	if left < 0 {
		return 0
	}
	return int(left/interval) + 1
}

// RateInterval is the time between two starts, in whole microseconds, rounded up.
func RateInterval(q runlane.Queue) int64 {
	count := int64(max(q.Rate.Count, 1))
	return max((q.Rate.Period.Microseconds()+count-1)/count, 1)
}

// RateSlack is how much earlier than its time a start may be, because of the burst.
func RateSlack(q runlane.Queue) int64 { return int64(max(q.Burst, 1)-1) * RateInterval(q) }

// TicketTime is the time of the ticket that a queued run of a queue with a rate has, by its reservation. It is zero for
// a run without.
func TicketTime(run *runlane.Run, q runlane.Queue) time.Time {
	if !q.Rated() || run.Status != runlane.StatusQueued || run.DispatchExpiresAt.IsZero() {
		return time.Time{}
	}
	start, latest := run.DispatchExpiresAt.Add(-DispatchTimeout(q)), run.DispatchedAt.Add(TicketsAhead)
	if start.After(latest) { // from when the queue had no rate, or a longer timeout
		return latest
	}
	return start
}

// DispatchTimeout is the queue's, or its default.
func DispatchTimeout(q runlane.Queue) time.Duration {
	if q.DispatchTimeout > 0 {
		return q.DispatchTimeout
	}
	return runlane.DefaultDispatchTimeout
}

// fromMicros rounds up to the milliseconds of commands.
func fromMicros(us int64) time.Time { return time.UnixMilli((us + 999) / 1000).UTC() }
