package main

import "github.com/runlane/runlane-go/spec/explore"

// world is a small world: what there is, what may happen, and which rules hold.
type world struct {
	name             string
	runs, processes  int
	limits           []int8 // of successive deployments; 0: none
	maxAbandoned     int8
	maxFailures      int8
	reservation      int8
	deferred, polled bool // deferred and scheduled triggers; workers that poll
	cancel, retry    bool
	refusals         bool // sends that fail, for a while or for good
	heartbeat        bool
	native           bool // the transport delays wakeups of short waits
	loss, duplicates bool // of wakeups
	skew             bool // each reader may be one unit ahead
	stops            bool // workers and publishers may stop too
	windows          bool // claims read first what is at or above the limit, then some numbers below it
	strangers        bool // processes that give the slot of a run back which they do not execute
	folded           bool // commit, send and mark in one step
	mixed            bool // a deployment meets commits with the old limit
	doubling         bool // reserveDoubles is followed: multiplies states, see livelock.go
	latency          int8 // > 0: nothing fails, and every wakeup takes so long
	removed          explore.Rules
}

func (w *world) limit(s *state) int8 { return w.limits[s.deployed] }

// redeliverIn is short where reservations bring a published run back before: that saves states.
func (w *world) redeliverIn() int8 {
	if w.limits[0] != 0 && len(w.limits) == 1 {
		return 2
	}
	return redeliverIn
}

// worlds are explored one by one.
func worlds() []*world {
	all := []*world{
		{
			name:       "unbounded",
			runs:       1,
			processes:  2,
			limits:     []int8{0},
			deferred:   true,
			polled:     true,
			cancel:     true,
			refusals:   true,
			heartbeat:  true,
			loss:       true,
			duplicates: true,
			retry:      true,
			native:     true,
		},
		{
			name:       "unbounded, three at work",
			runs:       1,
			processes:  3,
			limits:     []int8{0},
			deferred:   true,
			polled:     true,
			cancel:     true,
			refusals:   true,
			heartbeat:  true,
			loss:       true,
			duplicates: true,
			retry:      true,
		},
		{name: "bounded", runs: 2, processes: 2, limits: []int8{1}, loss: true, duplicates: true, cancel: true},
		{
			name:      "bounded, poll and retry",
			runs:      2,
			processes: 2,
			limits:    []int8{1},
			loss:      true,
			polled:    true,
			retry:     true,
			native:    true,
		},
		{
			name:       "bounded, refused",
			runs:       1,
			processes:  3,
			limits:     []int8{1},
			refusals:   true,
			deferred:   true,
			loss:       true,
			duplicates: true,
			cancel:     true,
			heartbeat:  true,
			retry:      true,
		},
		{name: "bounded, three at work", runs: 2, processes: 3, limits: []int8{1}, loss: true, folded: true},
		{name: "limit lowered to 2", runs: 3, processes: 2, limits: []int8{3, 2}, folded: true},
		{name: "lowered, by windows", runs: 3, processes: 2, limits: []int8{3, 2}, folded: true, windows: true},
		{
			name:       "bounded, by windows",
			runs:       2,
			processes:  3,
			limits:     []int8{2, 1},
			loss:       true,
			duplicates: true,
			folded:     true,
			windows:    true,
		},
		{name: "bounded, given back", runs: 2, processes: 2, limits: []int8{1}, loss: true, strangers: true},
		{name: "lowered, given back", runs: 2, processes: 2, limits: []int8{2, 1}, strangers: true, folded: true},
		{name: "limit lowered to 1", runs: 2, processes: 2, limits: []int8{2, 1}, loss: true, folded: true},
		{name: "old limit in flight", runs: 2, processes: 2, limits: []int8{2, 1}, mixed: true, folded: true},
		{name: "clocks apart", runs: 2, processes: 2, limits: []int8{1}, skew: true, loss: true},
		{name: "limit lifted", runs: 2, processes: 2, limits: []int8{1, 0}, loss: true, folded: true},
		{
			name:      "limit lifted, refused",
			runs:      1,
			processes: 2,
			limits:    []int8{1, 0},
			loss:      true,
			refusals:  true,
			deferred:  true,
			retry:     true,
		},
		{
			name:      "limit given, refused",
			runs:      1,
			processes: 2,
			limits:    []int8{0, 1},
			loss:      true,
			refusals:  true,
			deferred:  true,
			retry:     true,
		},
		{name: "limit lifted and back", runs: 2, processes: 1, limits: []int8{1, 0, 1}, loss: true, cancel: true},
		{name: "limit comes and goes", runs: 2, processes: 1, limits: []int8{0, 1, 0}, deferred: true, loss: true},
		{name: "limit given", runs: 2, processes: 2, limits: []int8{0, 1}, loss: true, cancel: true},
	}
	for _, w := range all {
		w.maxAbandoned, w.reservation, w.stops = 2, 2, w.limits[0] != 3
		if w.retry {
			w.maxFailures = 1
		}
	}
	return all
}
