package main

import "time"

// relay publishes pending rows: the mapping of the table's stream looks into each shard four times a second,
// and hands what it finds there to one invocation a shard at a time.
type relay struct {
	world  *world
	shards map[*part]*streamShard
}

// streamShard is that of one partition of the table.
type streamShard struct {
	pending []*cohort
	busy    bool
}

// notice is a stream record that passes the filter.
func (r *relay) notice(c *cohort) {
	if r.shards == nil {
		r.shards = map[*part]*streamShard{}
	}
	p := r.world.table.part(c.place)
	shard := r.shards[p]
	if shard == nil {
		shard = &streamShard{}
		r.shards[p] = shard
	}
	shard.pending = append(shard.pending, c)
	r.poll(shard)
}

// poll waits for the mapping's next look at the shard, wherever between two of them this is.
func (r *relay) poll(shard *streamShard) {
	if shard.busy || len(shard.pending) == 0 {
		return
	}
	shard.busy = true
	r.world.after(time.Duration(r.world.uniform()*float64(time.Second)/streamPolls), func() {
		var batch []*cohort
		weight := 0.0
		for len(shard.pending) > 0 && (weight == 0 || weight+shard.pending[0].weight <= relayBatchSize) {
			weight += shard.pending[0].weight
			batch = append(batch, shard.pending[0])
			shard.pending = shard.pending[1:]
		}
		left := len(batch)
		for _, c := range batch {
			r.world.publishRow(c, func() {
				if left--; left == 0 {
					shard.busy = false
					r.poll(shard)
				}
			})
		}
	})
}

// publishRow reads the run and its delivery row, claims the row, sends the wakeup, and records that: the run is
// deliverable from then on.
func (w *world) publishRow(c *cohort, then func()) {
	w.send(step{request: &readRuns, cohort: c, then: func(result) {
		w.send(step{request: &readDelivery, cohort: c, then: func(result) {
			if c.status != queued || c.sent != 0 {
				then()
				return
			}
			w.send(step{request: &claimOutbox, cohort: c, then: func(r result) {
				if r == refused {
					then() // the tick finds it
					return
				}
				w.publish(c, func() {
					if c.marker != unpublished {
						then()
						return
					}
					w.send(step{
						request: &moveMarker,
						cohort:  c,
						move:    &move{to: deliverable, at: c.created},
						then:    func(result) { then() },
					})
				})
			}})
		}})
	}})
}
