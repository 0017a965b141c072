package lives

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/runlane/runlane-go"
)

type payload struct {
	Key     string  `json:"key,omitempty"` // of the concurrency
	N       int     `json:"n"`
	Program program `json:"program,omitempty"`
}

const (
	slotQueue  = runlane.QueueName("slots") // its limit changes from deployment to deployment
	plainQueue = runlane.QueueName("plain")
	mostSlots  = 3 // the largest limit of a deployment; 0 is none
	// maxDelay is how long a transport holds a wakeup.
	maxDelay = 15 * time.Minute
)

// concurrencyKeys are those in use.
var concurrencyKeys = []string{"", "a"}

// task is a task that lives make runs of, as an oracle knows it; the real one is made from it.
type task struct {
	id       runlane.TaskID
	queue    runlane.QueueName
	attempts int
	fixed    time.Duration // the backoff; 0 means the default one, with jitter
	timeout  time.Duration
	ttl      time.Duration // of idempotency keys
	strange  bool          // has no handler anywhere
}

const month = 30 * 24 * time.Hour

var tasks = []*task{
	{id: "once", queue: "default", attempts: 1, ttl: time.Hour},
	{id: "again", queue: "default", attempts: 3, ttl: month},
	{id: "exact", queue: plainQueue, attempts: 4, fixed: 10 * time.Second, timeout: 30 * time.Second, ttl: month},
	{id: "slow", queue: plainQueue, attempts: 2, fixed: 20 * time.Minute, ttl: month},
	{id: "slot", queue: slotQueue, attempts: 3, fixed: 5 * time.Second, ttl: month},
	{id: "strange", queue: "default", attempts: 1, ttl: month, strange: true},
}

// waiters are tasks of lives without an oracle: their handlers do what a program of their payload says.
var waiters = []*task{
	{id: "program", queue: "default", attempts: 3, ttl: month},
	{id: "program in a slot", queue: slotQueue, attempts: 2, fixed: 5 * time.Second, ttl: month},
}

// everyTask has them all.
var everyTask = slices.Concat(tasks, waiters)

func taskOf(id runlane.TaskID) *task {
	for _, t := range everyTask {
		if t.id == id {
			return t
		}
	}
	panic("no task " + id)
}

// waits reports a task whose runs have programs.
func (t *task) waits() bool { return slices.Contains(waiters, t) }

// define makes the real task. Only in virtual time has it a timeout: the context of a handler ends by the real clock,
// not
// by that of a life.
func (t *task) define(limit int, virtual bool) *runlane.Task[payload] {
	options := &runlane.TaskOptions[payload]{
		ConcurrencyKey: func(p payload) string { return p.Key },
		IdempotencyTTL: time.Hour,
		Queue:          runlane.Queue{Name: t.queue},
	}
	if virtual {
		options.IdempotencyTTL, options.Timeout = t.ttl, t.timeout
	}
	if t.attempts > 1 {
		options.Retry.MaxAttempts = t.attempts
	}
	if t.fixed > 0 {
		options.Retry.Backoff, options.Retry.NoJitter = runlane.Fixed(t.fixed), true
	}
	if t.queue == slotQueue {
		options.Queue.Concurrency = limit
	}
	return runlane.NewTask(t.id, options)
}

// defined are the real tasks, by the limit of a deployment.
type defined [mostSlots + 1]map[runlane.TaskID]*runlane.Task[payload]

func define(virtual bool) (all defined) {
	for limit := range all {
		all[limit] = map[runlane.TaskID]*runlane.Task[payload]{}
		for _, t := range everyTask {
			all[limit][t.id] = t.define(limit, virtual)
		}
	}
	return all
}

var (
	definitions        = sync.OnceValue(func() defined { return define(false) })
	virtualDefinitions = sync.OnceValue(func() defined { return define(true) })
)

// outcome is what a handler does in the end.
type outcome struct {
	kind  string
	delay time.Duration
}

func (o outcome) String() string {
	if o.delay == 0 {
		return o.kind
	}
	return fmt.Sprintf("%s %s", o.kind, o.delay)
}

const (
	succeeds   = "success"
	outputs    = "output"
	triggers   = "child" // another run, then succeeds
	fails      = "fail"
	failsCode  = "code"
	failsFinal = "permanent"
	retryAfter = "retry after"
	releases   = "release"
	panics     = "panic"
	stops      = "context error"
	blocks     = "block"
	kills      = "dies" // the process, in the handler; with an oracle nothing that the attempt writes arrives any more
)

var errForeign = errors.New("foreign")

// returns is what a handler returns for its outcome, where that is all.
func (o outcome) returns(ctx context.Context) error {
	switch o.kind {
	case fails:
		return errForeign
	case failsFinal:
		return runlane.Permanent(errForeign)
	case retryAfter:
		return runlane.RetryAfter(o.delay, errForeign)
	case releases:
		return runlane.Release(o.delay, "waits")
	case blocks:
		return runlane.Block("an operator is to look at it")
	case panics:
		panic("handler")
	case stops:
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return context.Canceled // of some client of the handler's
	}
	return nil
}

// described is a call in the words of a history.
func described(t *task, load payload, o *runlane.TriggerOptions) string {
	text := []string{fmt.Sprintf("%s %+v", t.id, load)}
	for _, option := range []struct {
		name string
		set  bool
		is   any
	}{
		{"id", o.RunID != "", o.RunID}, {"idempotency", o.IdempotencyKey != "", o.IdempotencyKey},
		{"ttl", o.IdempotencyTTL != 0, o.IdempotencyTTL},
		{"strict", o.StrictPayload, true},
		{"singleton", o.SingletonKey != "", o.SingletonKey}, {"return active", o.ReturnActive, true},
		{"delay", o.Delay != 0, o.Delay},
		{"at", !o.RunAt.IsZero(), o.RunAt.Format(time.RFC3339)}, {"deferred", o.Deferred, true},
	} {
		if option.set {
			text = append(text, fmt.Sprintf("%s=%v", option.name, option.is))
		}
	}
	return strings.Join(text, " ")
}
