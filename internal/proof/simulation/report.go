package main

import "time"

// report is everything that the program finds out.
type report struct {
	Seed     uint64         `json:"seed"`
	Rates    []ladder       `json:"rates"`
	Frontier []frontierStep `json:"frontier"`
	Shards   []shardStep    `json:"shards"`
	Young    young          `json:"newIndex"`
	OneKey   float64        `json:"oneConcurrencyKeyRunsPerSecond"`
	FullKeys []fullKey      `json:"fullConcurrencyKey"`
	Warming  []warming      `json:"newTable"`
	Drains   []drain        `json:"backlog"`
	Full     []saturated    `json:"fullQueue"`
	Storms   []storm        `json:"retryStorm"`
}

// extent is how much of it: tests ask for less.
type extent struct {
	rates   []float64 // runs a second
	shards  []int
	backlog float64
	weight  float64 // of the backlog's cohorts
	full    []float64
	limits  []int // of a full key
}

// everything is what the program reports.
var everything = extent{
	rates:   []float64{10, 1_000, 100_000},
	shards:  []int{defaultShards, 32, 256},
	backlog: 1e7,
	weight:  100,
	full:    []float64{12_000, 100_000},
	limits:  []int{1, 10, 100, maxLimit},
}

// investigate makes the report. Equal seeds make equal ones.
func investigate(seed uint64, x extent) *report {
	r := &report{Seed: seed}
	for _, rate := range x.rates {
		r.Rates = append(r.Rates, climb(seed, rate))
	}
	r.Frontier = frontier(seed, x.rates[len(x.rates)-1])
	r.Shards = shardCounts(seed, x.shards)
	r.Young = youngIndex(seed, 1000)
	if len(x.shards) > 0 {
		r.OneKey, _ = oneKey(seed)
	}
	for _, rate := range x.rates {
		if ceilings(freshDeployment(), handlerTime)[limitTable] < rate && rate <= 10_000 {
			r.Warming = append(r.Warming, warm(seed, rate, 20))
		}
	}
	r.Drains = drains(seed, x.backlog, x.weight)
	r.FullKeys = fullKeys(seed, x.limits, []time.Duration{handlerTime, longHandler})
	r.Full = saturatedQueues(seed, x.full)
	r.Storms = storms(seed, x.rates)
	return r
}
