// Package chaos breaks what is below the functions, everything at once, while runs are triggered, and accounts for
// every run afterwards. The functions are the processes that would be deployed; between them and DynamoDB Local, which
// has its data on disk and is killed and started again, stands a [Proxy] that refuses requests and loses answers. What
// happens when is a [Plan], made from a seed.
package chaos

import (
	"time"

	"github.com/runlane/runlane-go"
)

// The environment variables of testdata/program, beside those of every function and the ledger and clock of package
// lambdatest.
const (
	// ForwardVariable puts the clock of the whole machine forward, by a duration: that of the process, as a program's
	// own clock does, and that of the service that tells it its deadline.
	ForwardVariable = "FORWARD"
)

// What the tasks allow an attempt, and how they are retried: only a task that never lets its worker end runs out of
// attempts.
const (
	attemptTime = 2 * time.Second
	maxAttempts = 100
	retryDelay  = 500 * time.Millisecond
)

// Job is the payload.
type Job struct {
	// Milliseconds the attempt takes, half of them before its effect.
	Milliseconds int `json:"milliseconds,omitempty"`
	// Failures come first, without an effect.
	Failures int `json:"failures,omitempty"`
	// Key partitions the narrow queue.
	Key string `json:"key,omitempty"`
}

// Narrow is a bounded queue.
var Narrow = runlane.Queue{Name: "narrow", Concurrency: 2, DispatchTimeout: 10 * time.Second}

// The tasks. An attempt of Steady and of Tight has one effect, a line in the ledger; Poison takes its process along.
var (
	Steady = newTask("steady", runlane.DefaultQueue)
	Tight  = newTask("tight", Narrow)
	Poison = newTask("poison", runlane.DefaultQueue)
)

func newTask(id runlane.TaskID, queue runlane.Queue) *runlane.Task[Job] {
	return runlane.NewTask(id, &runlane.TaskOptions[Job]{
		ConcurrencyKey: func(j Job) string { return j.Key },
		Queue:          queue,
		Retry:          runlane.Retry{MaxAttempts: maxAttempts, Backoff: runlane.Fixed(retryDelay)},
		Timeout:        attemptTime,
	})
}
