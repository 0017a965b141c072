package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"
)

// group is what a job survives once its insertion has returned. Rows are compared within a group only.
type group string

// The groups.
const (
	memory   group = "memory"
	process  group = "process"
	machine  group = "machine"
	emulated group = "emulated"
)

// groups in the order of the report, and what each means.
var groups = []struct {
	group   group
	meaning string
}{
	{memory, "nothing survives the process"},
	{process, "a job survives the process that inserted it; the last ones may be lost with the machine"},
	{machine, "a job survives the machine: every commit waits for fsync"},
	{emulated, "AWS emulated on this machine: a remark, comparable with nothing"},
}

// subject is one system in one configuration.
type subject struct {
	name  string
	group group
	// setup is the configuration in words.
	setup string
	// settles is how long after the last job its workers are idle, where that is longer than some milliseconds.
	settles time.Duration
	// away is how long an idle worker of it may look away: where a job arrives in that time is left to chance.
	away time.Duration
	// fewest is how many jobs a phase of working takes at least: several rounds of whatever it fetches or completes at
	// once.
	fewest int
	// slow says that -quick leaves it out, and why.
	slow string
	// open starts anew, with nothing inserted. handle is called for every job that executes, from many goroutines.
	open func(ctx context.Context, handle func(job)) (session, error)
}

// key is what -only matches.
func (s *subject) key() string { return string(s.group) + "/" + s.name }

// session is a subject in use: first without workers, and with them from work on.
type session interface {
	// insert returns when the job is as durable as the group says. Many goroutines may insert at once.
	insert(ctx context.Context, j job) error
	// work starts so many workers; close ends them.
	work(ctx context.Context, workers int) error
	// await returns when n jobs have completed since work, as the system itself records it.
	await(ctx context.Context, n int) error
	close(ctx context.Context) error
}

// batchInserter is a session that inserts many jobs in one call.
type batchInserter interface {
	insertBatch(ctx context.Context, jobs []job) error
}

// unavailableError is a reason to leave something out: it cannot be had on this machine.
type unavailableError struct{ reason string }

func (e *unavailableError) Error() string { return e.reason }

func unavailable(format string, arguments ...any) error {
	return &unavailableError{reason: fmt.Sprintf(format, arguments...)}
}

// tally counts completed jobs for one goroutine that awaits a number of them. The zero value is not usable: see
// newTally.
type tally struct {
	completed atomic.Int64
	wanted    atomic.Int64
	reached   chan struct{}
}

func newTally() *tally {
	t := &tally{reached: make(chan struct{}, 1)}
	t.wanted.Store(-1)
	return t
}

func (t *tally) add(n int64) {
	now := t.completed.Add(n)
	if wanted := t.wanted.Load(); wanted >= 0 && now >= wanted {
		select {
		case t.reached <- struct{}{}:
		default: // told already
		}
	}
}

func (t *tally) await(ctx context.Context, n int) error {
	t.wanted.Store(int64(n))
	defer t.wanted.Store(-1)
	for t.completed.Load() < int64(n) {
		select {
		case <-t.reached:
		case <-ctx.Done():
			return fmt.Errorf("%d of %d jobs completed: %w", t.completed.Load(), n, context.Cause(ctx))
		}
	}
	return nil
}
