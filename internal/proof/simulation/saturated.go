package main

import "time"

// saturated is what due runs of a bounded queue without room do to others.
type saturated struct {
	Rows    float64 `json:"dueRows"`
	Found   float64 `json:"minutesUntilAnotherQueuesRunIsAskedFor"` // after the first tick
	Moved   float64 `json:"rowsMovedByTheFirstTick"`
	Cleared float64 `json:"minutesUntilAllHaveMoved"` // after the first tick
}

// saturatedQueues lets so many rows of a full queue stand before a run of another queue that is due a second later.
func saturatedQueues(seed uint64, rows []float64) []saturated {
	var list []saturated
	for _, n := range rows {
		list = append(list, saturate(seed, n))
	}
	return list
}

func saturate(seed uint64, rows float64) saturated {
	d := freshDeployment()
	d.TablePartitions, d.IndexPartitions = tableQuota/partitionWrites, 0
	w := newWorld(seed, d, load{Full: rows, Weight: 10, Attempts: 1, Handler: handlerTime})
	waits := func(weight float64, full bool, at time.Duration) *cohort {
		c := w.newCohort(weight)
		c.status, c.full, c.dueAt = retrying, full, at
		w.index.move(c, &move{to: waiting, at: at})
		return c
	}
	for left := rows; left > 0; left -= w.load.Weight {
		waits(min(left, w.load.Weight), true, 0)
	}
	other := waits(1, false, time.Second)
	w.bridge.start()
	w.ticks()
	result := saturated{Rows: rows}
	const first = time.Minute // when the first tick begins
	w.run(first+tickTimeout, func() bool { return w.now > first && other.status != retrying })
	result.Found = max(0, (w.now - first).Minutes())
	w.run(first+tickTimeout, nil)
	result.Moved = w.outcome.looked
	w.run(24*time.Hour, func() bool { return w.outcome.looked >= rows && other.status != retrying })
	result.Cleared = (w.now - first).Minutes()
	if other.status == retrying {
		result.Found = w.now.Minutes()
	}
	return result
}
