package main

import "time"

// The storm: every attempt fails for so long, after a while in which all is well.
const (
	stormCalm = 5 * time.Minute
	stormTime = 10 * time.Minute
	stormRest = 45 * time.Minute
	// stormAttempts is what the task allows, with the product's own backoff between them.
	stormAttempts = 10
	// stormLumps are how many cohorts a second stand for the runs of a high rate: fewer than elsewhere, each has many
	// attempts.
	stormLumps = 50
)

// storm is what failures everywhere do to a rate.
type storm struct {
	Name       string     `json:"name"`
	Deployment deployment `json:"deployment"`
	Rate       float64    `json:"runsPerSecond"`
	Attempts   float64    `json:"attemptsPerSecond"`       // at the storm's end
	PeakUnits  float64    `json:"peakWriteUnitsPerSecond"` // in a minute
	CalmUnits  float64    `json:"calmWriteUnitsPerSecond"`
	Waiting    float64    `json:"activeAtTheEnd"`    // runs that were active when the storm ended
	Failed     float64    `json:"failedForGood"`     // part of the runs that were triggered in the storm
	Minutes    float64    `json:"minutesToNormal"`   // after the storm; negative: not within the time that was watched
	Peak       float64    `json:"peakRunsPerSecond"` // that ended, after the storm
	Asked      float64    `json:"deliveriesAsked"`   // by ticks, for runs whose wakeup was late
	TurnedAway float64    `json:"turnedAway"`        // part of the triggers, all the time
	Dead       float64    `json:"deadLetters"`
	Limit      string     `json:"limit"`
}

// sizedFor is a deployment that carries a rate with room, whose partitions have had time to split.
func sizedFor(rate float64) deployment {
	d := freshDeployment()
	l := load{Rate: rate, Handler: handlerTime}
	ceiling := ceilings(d, handlerTime)
	for _, limit := range []string{limitTable, limitTableQuota, limitDue, limitDueShard, limitBridge, limitAccount} {
		if ceiling[limit] < rate*room {
			raise(&d, limit, &l)
		}
	}
	d.IndexPartitions, d.Scaled = 0, true
	return d
}

func stormy(seed uint64, name string, d deployment, rate, weight float64) storm {
	began, ended := stormCalm, stormCalm+stormTime
	l := load{
		Rate: rate, During: ended + stormRest, Handler: handlerTime, Weight: weight, Attempts: stormAttempts,
		Failing: func(now time.Duration, _ int) bool { return now >= began && now < ended },
	}
	w := simulate(seed, d, l)
	o := &w.outcome
	s := storm{
		Name: name, Deployment: d, Rate: rate, Asked: o.asked, TurnedAway: o.turnedAway / o.offered, Dead: w.queue.dead,
		Failed: o.failed / (rate * stormTime.Seconds()), Minutes: -1,
	}
	for i, m := range o.minutes {
		at := time.Duration(i+1) * time.Minute
		switch {
		case at == began:
			s.CalmUnits = m.writes / 60
		case at == ended:
			s.Attempts, s.Waiting = m.attempts/60, m.active
		case at > ended:
			s.Peak = max(s.Peak, m.ended/60)
			if s.Minutes < 0 && m.active < rate*2 {
				s.Minutes = (at - ended).Minutes()
			}
		}
		s.PeakUnits = max(s.PeakUnits, m.writes/60)
	}
	s.Limit = o.most(0.1 * o.attempts)
	return s
}

// storms are rates that meet one, each on a deployment for the rate and on one for five times the rate.
func storms(seed uint64, rates []float64) []storm {
	var found []storm
	for _, rate := range rates {
		weight := max(1, rate/stormLumps)
		found = append(found, stormy(seed, "for the rate", sizedFor(rate), rate, weight))
		if sizedFor(5*rate) != sizedFor(rate) {
			found = append(found, stormy(seed, "for five times the rate", sizedFor(5*rate), rate, weight))
		}
	}
	return found
}
