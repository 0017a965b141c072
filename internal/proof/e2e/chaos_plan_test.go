package main

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// Kind is what goes wrong.
type Kind string

// The kinds. Those of the first group have a time in the plan, the others a rate.
const (
	// EmulatorKilled is the end of DynamoDB Local, which starts again with its data.
	EmulatorKilled Kind = "emulator_killed"
	// FunctionKilled is the end of one process of a function, busy or idle.
	FunctionKilled Kind = "function_killed"
	// KilledAtDeadline is the end of a process that did not answer in time: all processes of one bridge are stopped.
	KilledAtDeadline Kind = "killed_at_deadline"
	// QueueEmptied is when all messages of all work queues get lost.
	QueueEmptied Kind = "queue_emptied"
	// TickStopped is a time without ticks.
	TickStopped Kind = "tick_stopped"
	// PoisonTask is a run whose every attempt takes its process along.
	PoisonTask Kind = "poison_task"
	// PoisonMessage is a message that no program can read.
	PoisonMessage Kind = "poison_message"

	// Conflict is a write that meets another transaction and is not carried out.
	Conflict Kind = "conflict"
	// Throttle is a request that is refused for its rate.
	Throttle Kind = "throttle"
	// LostResponse is a request that is carried out, and its sender hears nothing.
	LostResponse Kind = "lost_response"
	// DuplicateDelivery is an event that two processes get at the same time.
	DuplicateDelivery Kind = "duplicate_delivery"
	// ClockSkew is a process whose clock is 2.5 s ahead or behind.
	ClockSkew Kind = "clock_skew"
)

// Kinds are all there are.
func Kinds() []Kind {
	return []Kind{
		EmulatorKilled, FunctionKilled, KilledAtDeadline, QueueEmptied, TickStopped, PoisonTask, PoisonMessage,
		Conflict, Throttle, LostResponse, DuplicateDelivery, ClockSkew,
	}
}

// The rates, as parts of 1.
const (
	// RefusedRate is how many requests of the functions are refused: writes half by a conflict and half by a throttle,
	// reads by a throttle.
	RefusedRate = 0.20
	// LostRate is how many answers get lost.
	LostRate = 0.05
	// DuplicateRate is how many events are delivered twice.
	DuplicateRate = 0.20
	// Skew is how far the clocks of the bridges are from the right time, one ahead and one behind.
	Skew = 2500 * time.Millisecond
)

// The long form, whose times the shorter ones scale.
const (
	longDuration = 30 * time.Minute
	longOutage   = 5 * time.Minute // without ticks
)

// outageOf scales the time without ticks.
func outageOf(d time.Duration) time.Duration { return d / (longDuration / longOutage) }

// Step is one fault with a time.
type Step struct {
	At   time.Duration // since the beginning
	Kind Kind
	For  time.Duration // how long it lasts; 0 for what happens at once
}

// Plan is what happens when. The same seed and duration give the same plan.
type Plan struct {
	Seed     uint64
	Duration time.Duration
	Steps    []Step // by their times
}

// rule says how often a kind happens, and in which part of the duration.
type rule struct {
	kind     Kind
	every    time.Duration
	least    int
	from, to float64
	shortest time.Duration
	longest  time.Duration
}

// NewPlan draws a plan. Each kind with a time is in it at least once. Queues are emptied in the first half only, and
// messages that no program can read come in the second: one that gets lost proves nothing.
func NewPlan(seed uint64, duration time.Duration) *Plan {
	random := rand.New(rand.NewPCG(seed, 0)) // repeatable
	outage := outageOf(duration)
	p := &Plan{Seed: seed, Duration: duration}
	for _, r := range []rule{
		{
			kind:     EmulatorKilled,
			every:    2 * time.Minute,
			least:    2,
			from:     0.15,
			to:       0.85,
			shortest: 200 * time.Millisecond,
			longest:  1500 * time.Millisecond,
		},
		{kind: FunctionKilled, every: 6 * time.Second, least: 6, from: 0.05, to: 0.95},
		{kind: KilledAtDeadline, every: 45 * time.Second, least: 2, from: 0.10, to: 0.70},
		{kind: QueueEmptied, every: 6 * time.Minute, least: 1, from: 0.25, to: 0.50},
		{kind: TickStopped, every: longDuration, least: 1, from: 0.40, to: 0.60, shortest: outage, longest: outage},
		{kind: PoisonTask, every: 10 * time.Minute, least: 1, from: 0.02, to: 0.05},
		{kind: PoisonMessage, every: 10 * time.Minute, least: 1, from: 0.50, to: 0.55},
	} {
		n := max(r.least, int(duration/r.every))
		begin, width := float64(duration)*r.from, float64(duration)*(r.to-r.from)/float64(n)
		for i := range n {
			s := Step{Kind: r.kind, At: time.Duration(begin + width*(float64(i)+random.Float64())), For: r.shortest}
			if r.longest > r.shortest {
				s.For += time.Duration(random.Int64N(int64(r.longest - r.shortest)))
			}
			s.At, s.For = s.At.Round(time.Millisecond), s.For.Round(time.Millisecond)
			p.Steps = append(p.Steps, s)
		}
	}
	slices.SortStableFunc(p.Steps, func(a, b Step) int { return cmp.Compare(a.At, b.At) })
	return p
}

// String is the plan, a line a step.
func (p *Plan) String() string {
	var b strings.Builder
	fmt.Fprintf(
		&b,
		"chaos plan: seed=%d duration=%s scale=1:%.4g (the outage of the tick is %s of 5m)\n",
		p.Seed,
		p.Duration,
		float64(longDuration)/float64(p.Duration),
		outageOf(p.Duration),
	)
	fmt.Fprintf(&b, "  all the time  refused %.0f %%, lost responses %.0f %%, duplicates %.0f %%, clocks ± %s\n",
		RefusedRate*100, LostRate*100, DuplicateRate*100, Skew)
	for _, s := range p.Steps {
		fmt.Fprintf(&b, "  %12s  %s", s.At, s.Kind)
		if s.For > 0 {
			fmt.Fprintf(&b, " for %s", s.For)
		}
		b.WriteByte('\n')
	}
	return b.String()
}
