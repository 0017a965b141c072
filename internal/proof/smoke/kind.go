package main

import (
	"fmt"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/examples/webhooks"
)

const (
	delay = 5 * time.Second
	// waiting is longer than any delayed message: a run that is put off so far has sent nothing yet when it is
	// cancelled.
	waiting = time.Hour
)

// kind is a life that a run may have. Exactly one of each is in the table of results.
type kind struct {
	name    string
	do      string // what the handler is asked for
	options runlane.TriggerOptions
	fifo    bool // needs a FIFO queue, and its runs have one key
	cancel  bool // while it waits
	twice   bool // triggered a second time with the same idempotency key
	want    runlane.Run
}

func kinds() []kind {
	succeeded := func(c runlane.Counters) runlane.Run {
		return runlane.Run{Status: runlane.StatusSucceeded, Counters: c}
	}
	once := succeeded(runlane.Counters{Attempts: 1})
	return []kind{
		{name: "eager", do: webhooks.CheckSucceed, want: once},
		{name: "deferred", do: webhooks.CheckSucceed, want: once, options: runlane.TriggerOptions{Deferred: true}},
		{name: "delayed", do: webhooks.CheckSucceed, want: once, options: runlane.TriggerOptions{Delay: delay}},
		{
			name: "retried",
			do:   webhooks.CheckRetry,
			want: succeeded(runlane.Counters{Attempts: 2, Failures: 1, Retries: 1}),
		},
		{name: "released", do: webhooks.CheckRelease, want: succeeded(runlane.Counters{Attempts: 2, Releases: 1})},
		{name: "duplicate", do: webhooks.CheckSucceed, want: once, twice: true},
		{
			name: "cancelled", do: webhooks.CheckSucceed, cancel: true,
			want: runlane.Run{Status: runlane.StatusCancelled}, options: runlane.TriggerOptions{Delay: waiting},
		},
		{name: "fifo", do: webhooks.CheckSucceed, want: once, fifo: true},
	}
}

// probe is one run of the check.
type probe struct {
	*kind
	options runlane.TriggerOptions
	id      runlane.RunID
	second  runlane.RunID // the id that the second trigger proposes, which no run may get

	triggered, committed time.Time // on this machine's clock
	run                  *runlane.Run
	events               []runlane.EventRecord
	fault                error // the first
}

// fail keeps the first fault: what follows is mostly its consequence.
func (p *probe) fail(err error) {
	if p.fault == nil && err != nil {
		p.fault = err
	}
}

// plan decides on all runs, ids included, before anything is written: what there may be to clean up is known from then
// on.
func plan(prefix string, each int, standard, fifo runlane.QueueName) []*probe {
	var probes []*probe
	for _, k := range kinds() {
		if k.fifo && fifo == "" {
			continue
		}
		for n := range each {
			id := fmt.Sprintf("%s_%s_%d", prefix, k.name, n+1)
			p := &probe{kind: &k, options: k.options, id: runlane.RunID(id)}
			p.options.RunID, p.options.Queue = p.id, runlane.Queue{Name: standard}
			if k.fifo {
				p.options.Queue, p.options.ConcurrencyKey = runlane.Queue{Name: fifo}, prefix
			}
			if k.twice {
				p.options.IdempotencyKey, p.second = id, p.id+"_again"
			}
			probes = append(probes, p)
		}
	}
	return probes
}

// judge compares a run that ended with what its kind wants.
func (p *probe) judge() {
	if p.fault != nil || p.run == nil {
		return
	}
	if p.run.Status != p.want.Status || p.run.Counters != p.want.Counters {
		p.fail(fmt.Errorf("%s after %+v, want %s after %+v; failure: %q",
			p.run.Status, p.run.Counters, p.want.Status, p.want.Counters, p.run.Failure.Message))
	}
	if p.options.Delay > 0 && p.run.Status == runlane.StatusSucceeded && p.run.StartedAt.Before(p.run.RunAt) {
		p.fail(fmt.Errorf("started at %s, before its time %s", p.run.StartedAt, p.run.RunAt))
	}
}

// judgeOrder demands that runs of one FIFO key followed each other as they were triggered.
func judgeOrder(probes []*probe) {
	var last *probe
	for _, p := range probes {
		if !p.fifo || p.run == nil {
			continue
		}
		if last != nil && p.run.StartedAt.Before(last.run.FinishedAt) {
			p.fail(fmt.Errorf("started before %s, which was triggered first, had ended", last.id))
		}
		last = p
	}
}
