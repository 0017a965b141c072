package main

import "time"

// drain is how a backlog goes down.
type drain struct {
	Name       string     `json:"name"`
	Deployment deployment `json:"deployment"`
	Backlog    float64    `json:"backlog"`
	Hours      float64    `json:"hours"` // until the last run has ended
	Carried    float64    `json:"runsPerSecond"`
	Best       float64    `json:"bestRunsPerSecond"` // in a minute
	Limit      string     `json:"limit"`             // that held most back
	Refused    float64    `json:"requestsRefusedPerRun"`
	Looked     float64    `json:"markersMoved"` // by ticks
	Again      float64    `json:"wakeupsSentAgain"`
	Ignored    float64    `json:"wakeupsIgnored"` // that came late or twice
	Dead       float64    `json:"deadLetters"`    // of SQS; ticks find their runs
	Units      float64    `json:"writeUnitsPerRun"`
	Found      float64    `json:"hoursUntilADeadWorkersRunGoesOn"`
}

// drains lets a backlog of so many simple runs go down, on several deployments.
func drains(seed uint64, backlog, weight float64) []drain {
	warmed := freshDeployment()
	warmed.TablePartitions, warmed.IndexPartitions = tableQuota/partitionWrites, 0
	wide := warmed
	wide.Concurrency = 500
	large := wide
	large.Quota, large.TablePartitions, large.Concurrency, large.Shards = 200_000, 200, mostConcurrency, 32
	var drains []drain
	for _, c := range []struct {
		name string
		d    deployment
	}{
		{"as deployed, table never busy before", freshDeployment()},
		{"as deployed, table warmed up to its quota", warmed},
		{"and BridgeConcurrency 500", wide},
		{"BridgeConcurrency 1000, quota and table 200,000 units, 32 shards", large},
	} {
		drains = append(drains, drainOne(seed, c.name, c.d, backlog, weight))
	}
	return drains
}

func drainOne(seed uint64, name string, d deployment, backlog, weight float64) drain {
	l := load{
		Backlog:  backlog,
		Weight:   weight,
		Handler:  handlerTime,
		Attempts: 1,
		Then:     7 * 24 * time.Hour,
		Lost:     time.Minute,
	}
	w := simulate(seed, d, l)
	o := &w.outcome
	result := drain{
		Name:       name,
		Deployment: d,
		Backlog:    backlog,
		Hours:      o.lastEnd.Hours(),
		Looked:     o.looked,
		Again:      o.again,
		Ignored:    o.ignored,
		Dead:       w.queue.dead,
		Units:      w.total.Writes / backlog,
		Found:      (o.foundAt - o.lostAt).Hours(),
	}
	result.Carried = (o.succeeded + o.failed) / o.lastEnd.Seconds()
	for _, m := range o.minutes {
		result.Best = max(result.Best, m.ended/60)
	}
	for limit, r := range o.refusals {
		if !holding[limit] {
			result.Refused += r.runs / backlog
		}
	}
	result.Limit = o.most(0.05 * backlog)
	return result
}
