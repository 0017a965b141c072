package main

import (
	"maps"
	"math"
	"slices"
	"time"
)

// More names of what may hold runs up.
const (
	limitReads        = "table reads"
	limitSlots        = "slots of one key"
	limitSlotReads    = "reads of slots of one key"
	limitWaiting      = "reads of runs that wait for a slot"
	limitInFlight     = "messages in flight"
	limitPollers      = "scaling of the mapping"
	limitBridge       = "bridge concurrency"
	limitAccount      = "account concurrency"
	limitEnvironments = "new environments"
)

// outcome is what is counted of a world.
type outcome struct {
	offered, created, turnedAway float64
	succeeded, failed            float64
	active                       float64 // created and not ended
	attempts, ignored            float64
	outcomesLost                 float64
	handedOver                   float64 // slots that were reserved for runs that waited
	visible                      float64 // most runs whose wakeups waited
	busy                         float64 // most batches at once

	from, until time.Duration // the window that is measured: without the beginning
	measured    float64       // runs that ended in it
	refusals    map[string]refusals
	starts      quantiles // from due to handler
	lastEnd     time.Duration
	minutes     []minute

	looked, asked, again float64 // by ticks: markers moved, deliveries asked for, lost wakeups sent again
	lost                 *cohort // the run whose worker died
	lostAt, foundAt      time.Duration
}

// refusals is what one limit refused, or kept waiting.
type refusals struct {
	runs    float64
	first   time.Duration
	lasting float64 // of runs, those in the window that is measured
}

// minute is what happened in one.
type minute struct {
	created, ended, failed, attempts, writes float64
	active                                   float64 // at its end
}

func (m minute) minus(before minute) minute {
	return minute{
		created: m.created - before.created, ended: m.ended - before.ended, failed: m.failed - before.failed,
		attempts: m.attempts - before.attempts, writes: m.writes - before.writes, active: m.active,
	}
}

// count is what happened so far.
func (o *outcome) count(w *world) minute {
	return minute{
		created:  o.created,
		ended:    o.succeeded + o.failed,
		failed:   o.failed,
		attempts: o.attempts,
		writes:   w.total.Writes,
		active:   o.active,
	}
}

func newOutcome(l load) outcome {
	return outcome{refusals: map[string]refusals{}, from: l.During / 3, until: l.During}
}

// carried is how many runs ended a second in the window.
func (o *outcome) carried() float64 {
	if o.until == o.from {
		return 0
	}
	return o.measured / (o.until - o.from).Seconds()
}

// binding is the limit that keeps a load from being carried: the one that refuses most, or, where nothing is refused,
// the one behind which most runs wait. "" when all is carried and starts within two seconds.
func (o *outcome) binding(rate float64) string {
	const negligible, slow = 0.01, 2 * time.Second
	asked := rate * (o.until - o.from).Seconds()
	waits := o.carried() < (1-negligible)*rate || o.starts.at(0.99) > slow
	binding, most := "", 0.0
	for _, limit := range slices.Sorted(maps.Keys(o.refusals)) {
		refused := o.refusals[limit].lasting
		if holding[limit] {
			if !waits {
				continue
			}
			refused *= 1e-9 // what refuses comes first: the wait may be for the tries that follow
		} else if refused < negligible*asked {
			continue
		}
		if refused > most {
			binding, most = limit, refused
		}
	}
	return binding
}

// most is the limit that refused most, or where none did so often the one behind which most waited.
func (o *outcome) most(often float64) string {
	found, worst := "", 0.0
	for _, limit := range slices.Sorted(maps.Keys(o.refusals)) {
		runs := o.refusals[limit].runs
		if runs < often {
			continue
		}
		if holding[limit] {
			runs *= 1e-9
		}
		if runs > worst {
			found, worst = limit, runs
		}
	}
	return found
}

// holding limits keep runs waiting and refuse nothing.
var holding = map[string]bool{limitPollers: true, limitBridge: true, limitAccount: true}

// refuse counts requests that a limit refused, or runs that waited behind one which refuses nothing.
func (o *outcome) refuse(now time.Duration, limit string, runs float64) {
	r, known := o.refusals[limit]
	if !known {
		r.first = now
	}
	r.runs += runs
	if now >= o.from && now < o.until {
		r.lasting += runs
	}
	o.refusals[limit] = r
}

// start notes how long after it was due a run's first attempt began.
func (o *outcome) start(now, after time.Duration, weight float64) {
	if now >= o.from {
		o.starts.add(after, weight)
	}
}

func (o *outcome) end(now time.Duration, c *cohort, s status) {
	o.active -= c.weight
	if s == succeeded {
		o.succeeded += c.weight
	} else {
		o.failed += c.weight
	}
	if now >= o.from && now < o.until {
		o.measured += c.weight
	}
	o.lastEnd = now
}

// dies picks the run whose worker dies: the first that begins once it is time.
func (o *outcome) dies(now, at time.Duration) bool { return at > 0 && o.lost == nil && now >= at }

// quantiles counts times in steps of a tenth.
type quantiles struct {
	counts map[int]float64
	total  float64
}

func (q *quantiles) add(d time.Duration, weight float64) {
	if q.counts == nil {
		q.counts = map[int]float64{}
	}
	step := 0
	if d > time.Millisecond {
		step = int(math.Ceil(math.Log(float64(d)/float64(time.Millisecond)) / math.Log(1.1)))
	}
	q.counts[step] += weight
	q.total += weight
}

// at is the time within which so large a part stayed, up to a tenth more.
func (q *quantiles) at(part float64) time.Duration {
	sum, last := 0.0, 0
	for step := range q.counts {
		last = max(last, step)
	}
	for step := 0; step <= last; step++ {
		if sum += q.counts[step]; sum >= part*q.total && q.total > 0 {
			return time.Duration(math.Pow(1.1, float64(step)) * float64(time.Millisecond))
		}
	}
	return 0
}

// recovered notices that a process takes care of the run whose worker died.
func (o *outcome) recovered(now time.Duration, c *cohort) {
	if o.lost == c && o.foundAt == 0 {
		o.foundAt = now
	}
}
