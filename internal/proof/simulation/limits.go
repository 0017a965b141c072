package main

import "time"

// What AWS publishes. docs/simulation.md, Assumptions, names the source of each.
const (
	// partitionWrites and partitionReads are what one partition of a table or an index takes a second.
	partitionWrites = 1000
	partitionReads  = 3000
	// freshWrites is what a new on-demand table, and each index of it, takes a second.
	freshWrites = 4000
	// tableQuota is what an account lets each table, and each index by itself, use a second until the quota is raised.
	tableQuota = 40_000

	// firstBatches, batchesAMinute and mostBatches are how many batches a mapping of a standard queue handles at once:
	// at first, more of them for each minute in which messages wait, and at most.
	firstBatches   = 5
	batchesAMinute = 300
	mostBatches    = 1250
	// mostConcurrency is the largest value of a mapping's MaximumConcurrency.
	mostConcurrency = 1000

	// newEnvironments a function may get within environmentsWindow, on top of those it has.
	newEnvironments    = 1000
	environmentsWindow = 10 * time.Second
	// accountConcurrency is how many environments an account runs at once until the quota is raised.
	accountConcurrency = 1000

	// mostInFlight is how many messages of a standard queue may be received and not deleted.
	mostInFlight = 120_000

	// streamPolls is how often a second the mapping of a stream looks into each shard of it.
	streamPolls = 4
)

// What AWS does not publish, or what depends on the application: assumptions.
const (
	// heatTime is how long a partition is used by more than heatShare of its writes, or refuses some, before it is
	// split.
	heatTime  = 10 * time.Minute
	heatShare = 0.5
	// burstTime is how much of its unused capacity a partition still has later. 300 s are published; a partition never
	// goes beyond its own limit with them, so all that counts here is the spread within a moment.
	burstTime = time.Second

	// How long requests take from within the region.
	transactionTime = 12 * time.Millisecond
	writeTime       = 5 * time.Millisecond
	readTime        = 4 * time.Millisecond
	indexTime       = 5 * time.Millisecond
	sendTime        = 6 * time.Millisecond
	pollTime        = 10 * time.Millisecond
	// coldStart is what a new environment takes before its first batch.
	coldStart = 150 * time.Millisecond
)
