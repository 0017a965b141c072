package main

import (
	"math"
	"time"
)

// step of the way from a fresh deployment to one that carries any rate: what it carries, and the limit that is next.
type frontierStep struct {
	Deployment deployment `json:"deployment"`
	Carries    float64    `json:"carriesRunsPerSecond"`
	Limit      string     `json:"limit"`
	Ceiling    float64    `json:"ceiling"` // of that limit, by arithmetic
	Remedy     string     `json:"remedy,omitempty"`
}

// lumps are how many cohorts a second stand for the runs of a high rate.
const lumps = 1000

// weightFor is how many runs a cohort has, so that a simulated second of any rate costs about as much.
func weightFor(rate float64) float64 { return math.Max(1, math.Round(rate/lumps)) }

// carries is the highest rate up to a bound that a deployment carries of a kind of load, within a twentieth, and the
// limit above it; "" when it carries the bound. The search begins at low; 0 means that not even a half of that is
// carried.
func carries(seed uint64, d deployment, kind load, low, bound float64) (rate float64, limit string) {
	binding := func(rate float64) string {
		l := kind
		l.Rate, l.During, l.Then, l.Weight, l.Attempts = rate, 45*time.Second, 10*time.Second, weightFor(rate), 1
		w := simulate(seed, d, l)
		return w.outcome.binding(rate)
	}
	high := low
	for limit = binding(high); limit == ""; limit = binding(high) {
		if low = high; low == bound {
			return low, ""
		}
		high = min(2*high, bound)
	}
	if low == high { // the first try was too much
		if low /= 2; binding(low) != "" {
			return 0, limit
		}
	}
	for high/low > 1.05 {
		middle := math.Sqrt(low * high)
		if found := binding(middle); found == "" {
			low = middle
		} else {
			high, limit = middle, found
		}
	}
	return low, limit
}

// frontier raises one limit after the other, as far as the goal needs, until the goal is carried.
func frontier(seed uint64, goal float64) []frontierStep {
	const mostSteps = 12
	d := freshDeployment()
	d.Scaled = true
	l := load{Rate: goal, Handler: handlerTime}
	steps := []frontierStep{}
	low := min(50, goal)
	for range mostSteps {
		rate, limit := carries(seed, d, l, low, goal)
		s := frontierStep{Deployment: d, Carries: rate, Limit: limit, Ceiling: ceilings(d, handlerTime)[limit]}
		more := false
		if limit != "" {
			s.Remedy, more = raise(&d, limit, &l)
		}
		steps = append(steps, s)
		if !more {
			break
		}
		low = rate
	}
	return steps
}
