package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/examples/webhooks"
)

const (
	delay = 5 * time.Second
	// waiting is longer than any delayed message: a run that is put off so far has sent nothing yet when it is
	// cancelled.
	waiting = time.Hour
	// byRelay is how much later than a run that its trigger wakes a run may start that the relay wakes: a tick wakes it
	// after a minute.
	byRelay = 45 * time.Second
)

// kind is a life that a run may have. Exactly one of each is in the table of results.
type kind struct {
	name    string
	do      string // what the handler is asked for
	options runlane.TriggerOptions
	queue   runlane.QueueName
	further bool // the queue is not the first of its sort
	fifo    bool // needs a FIFO queue, and its runs have one key
	cancel  bool // while it waits
	twice   bool // triggered a second time with the same idempotency key
	unsent  bool // the trigger does not reach SQS, and the relay looks at new rows only: the tick has to send
	want    runlane.Run
}

// label is how the report names it.
func (k *kind) label() string {
	if k.further {
		return k.name + " in " + string(k.queue)
	}
	return k.name
}

// everyKind has all lives for the first standard queue, and one in order for a FIFO queue.
func everyKind() []kind {
	succeeded := func(c runlane.Counters) runlane.Run {
		return runlane.Run{Status: runlane.StatusSucceeded, Counters: c}
	}
	once := succeeded(runlane.Counters{Attempts: 1})
	return []kind{
		{name: "eager", do: webhooks.CheckSucceed, want: once},
		{name: "deferred", do: webhooks.CheckSucceed, want: once, options: runlane.TriggerOptions{Deferred: true}},
		{
			name:   "unsent",
			do:     webhooks.CheckSucceed,
			want:   once,
			unsent: true,
		},
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

// kindsFor are those that a check of these queues has, with a task that can do what payloads has. The first standard
// queue gets every life; each further one a run that is woken at once, so that no queue is left out; each FIFO queue
// gets runs in order. What is left out is told with its reason.
func kindsFor(queues map[runlane.QueueName]string, payloads map[string]json.RawMessage) (chosen []kind, without []gap) {
	standard, fifo := sorts(queues)
	for _, k := range everyKind() {
		of := standard
		if k.fifo {
			of = fifo
		} else if k.name != "eager" {
			of = standard[:min(len(standard), 1)]
		}
		if payloads[k.do] == nil {
			without = append(without, gap{k.name, "the task is not told how"})
			continue
		}
		if len(of) == 0 {
			without = append(without, gap{k.name, "the deployment has no such queue"})
		}
		for n, queue := range of {
			k.queue, k.further = queue, n > 0
			chosen = append(chosen, k)
		}
	}
	return chosen, without
}

// gap is a kind that a check does not have, and why.
type gap struct{ name, reason string }

// sorts parts the queues, each in the order of names. SQS demands the suffix of FIFO queues.
func sorts(queues map[runlane.QueueName]string) (standard, fifo []runlane.QueueName) {
	for _, name := range slices.Sorted(maps.Keys(queues)) {
		if strings.HasSuffix(queues[name], ".fifo") {
			fifo = append(fifo, name)
		} else {
			standard = append(standard, name)
		}
	}
	return standard, fifo
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
func plan(prefix string, each int, kinds []kind) []*probe {
	var probes []*probe
	for place, k := range kinds {
		for n := range each {
			id := fmt.Sprintf("%s_%s_%d", prefix, k.name, n+1)
			if k.further {
				id = fmt.Sprintf("%s_%s_%d_%d", prefix, k.name, place, n+1)
			}
			p := &probe{kind: &k, options: k.options, id: runlane.RunID(id)}
			p.options.RunID, p.options.Queue = p.id, runlane.Queue{Name: k.queue}
			if k.fifo {
				p.options.ConcurrencyKey = prefix
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

// judgeRelay demands that runs which the relay has to wake started about as soon as those of their queue that the
// trigger woke. The difference does not depend on how this machine's clock stands to the deployment's.
func judgeRelay(probes []*probe) {
	untilStart := func(p *probe) time.Duration { return p.run.StartedAt.Sub(p.committed) }
	for _, p := range probes {
		if !p.options.Deferred || p.run == nil {
			continue
		}
		for _, eager := range probes {
			if eager.name != "eager" || eager.queue != p.queue || eager.run == nil {
				continue
			}
			if late := untilStart(p) - untilStart(eager); late > byRelay {
				p.fail(fmt.Errorf("started %s later than %s: the relay did not wake it, a tick did", late, eager.id))
			}
		}
	}
}

// judgeOrder demands that runs of one FIFO queue, which have one key, followed each other as they were triggered.
func judgeOrder(probes []*probe) {
	lasts := map[runlane.QueueName]*probe{}
	for _, p := range probes {
		if !p.fifo || p.run == nil {
			continue
		}
		if last := lasts[p.queue]; last != nil && p.run.StartedAt.Before(last.run.FinishedAt) {
			p.fail(fmt.Errorf("started before %s, which was triggered first, had ended", last.id))
		}
		lasts[p.queue] = p
	}
}
