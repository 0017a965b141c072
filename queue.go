package runlane

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Priorities, see [TriggerOptions].Priority.
const (
	// MaxPriority is the highest priority of a run, and -MaxPriority the lowest.
	MaxPriority = 8
	// PriorityStep is the time of waiting for which one step of priority counts.
	PriorityStep = 10 * time.Minute
)

// Limits of a queue's policy.
const (
	// MaxQueueConcurrency is the largest limit of a bounded queue.
	MaxQueueConcurrency = 1000
	// MaxQueueRate is the most starts a second of one concurrency key: each start writes one item of its key.
	MaxQueueRate = 1000
	// MaxQueueBurst is the largest [Queue].Burst.
	MaxQueueBurst = 1000
	// MaxRatePeriod is the longest [Rate].Period.
	MaxRatePeriod = 24 * time.Hour
)

// Rate is a number of starts in a period: Count / Period. The zero value is no limit.
type Rate struct {
	Count  int
	Period time.Duration
}

// PerSecond is the rate of n starts a second.
func PerSecond(n int) Rate { return Rate{n, time.Second} }

// PerMinute is the rate of n starts a minute.
func PerMinute(n int) Rate { return Rate{n, time.Minute} }

// PerHour is the rate of n starts an hour.
func PerHour(n int) Rate { return Rate{n, time.Hour} }

// String is like "10/min".
func (r Rate) String() string {
	switch r.Period {
	case 0:
		return ""
	case time.Second:
		return fmt.Sprintf("%d/s", r.Count)
	case time.Minute:
		return fmt.Sprintf("%d/min", r.Count)
	case time.Hour:
		return fmt.Sprintf("%d/h", r.Count)
	default:
		return fmt.Sprintf("%d/%s", r.Count, r.Period)
	}
}

// MarshalText returns the text of String.
func (r Rate) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText reads the text of String: a count and a period, which is s, min, h or a duration such as 90s.
func (r *Rate) UnmarshalText(text []byte) error {
	count, period, ok := strings.Cut(string(text), "/")
	n, err := strconv.Atoi(count)
	read := Rate{Count: n}
	switch period {
	case "s":
		read.Period = time.Second
	case "min":
		read.Period = time.Minute
	case "h":
		read.Period = time.Hour
	default:
		var bad error
		if read.Period, bad = time.ParseDuration(period); bad != nil {
			err = bad
		}
	}
	if !ok || err != nil || read == (Rate{}) || read.fault() != "" {
		return &Error{
			Code: ErrValidationFailed, Message: "it is no rate", Hint: "write a count and a period, such as 600/min or 5/s",
		}
	}
	*r = read
	return nil
}

// fault is why the rate cannot work, or "".
func (r Rate) fault() string {
	switch {
	case r == (Rate{}):
		return ""
	case r.Count < 1 || r.Period <= 0 || r.Period > MaxRatePeriod:
		return fmt.Sprintf("has Rate %d in %s: use at least 1, in up to %s", r.Count, r.Period, MaxRatePeriod)
	case int64(r.Count) > int64(MaxQueueRate*r.Period/time.Second):
		return fmt.Sprintf("has Rate %s: use at most %d a second", r, MaxQueueRate)
	default:
		return ""
	}
}

// Queue is a plain comparable value: declare each once as a package variable and name it in the tasks that use it. Two
// different values with one name make opening a runtime fail with [ErrConfigurationInvalid].
type Queue struct {
	Name QueueName

	// Concurrency bounds how many runs of one concurrency key (without keys, of the whole queue) execute or hold a slot
	// at once, across all processes. 0 means unbounded; at most MaxQueueConcurrency.
	Concurrency int

	// DispatchTimeout is how long a reserved slot, or a start within the Rate, waits for its worker. 0 means
	// DefaultDispatchTimeout. Only for bounded queues.
	DispatchTimeout time.Duration

	// Rate bounds the starts of the runs of one concurrency key (without keys, of the whole queue), across all
	// processes: in any span of time at most Rate × span + Burst. Every attempt is a start, and so is every resumption
	// of a run that waited. A run that must wait starts at its time. The zero value means unlimited.
	Rate Rate `json:",omitzero"`

	// Burst is how many runs may start at once after a pause. 0 means 1. Only with a Rate.
	Burst int `json:",omitzero"`
}

// DefaultQueue serves every task that names no queue. It is unbounded.
var DefaultQueue = Queue{Name: "default"}

// Bounded reports whether the queue limits its runs, by Concurrency or by Rate.
func (q Queue) Bounded() bool { return q.Concurrency > 0 || q.Rated() }

// Rated reports whether the queue has a Rate.
func (q Queue) Rated() bool { return q.Rate != Rate{} }

// Validate returns [ErrConfigurationInvalid] if the queue cannot work.
func (q Queue) Validate() error {
	if err := q.Name.Validate(); err != nil {
		return &Error{
			Code:    ErrConfigurationInvalid,
			Message: "queue has a bad name",
			Hint:    "name it with printable text without ':'",
			Cause:   err,
		}
	}
	fault := ""
	switch {
	case q.Concurrency < 0 || q.Concurrency > MaxQueueConcurrency:
		fault = fmt.Sprintf("has Concurrency %d: use 0 (unbounded) to %d", q.Concurrency, MaxQueueConcurrency)
	case q.DispatchTimeout < 0:
		fault = "has a negative DispatchTimeout"
	case q.DispatchTimeout > 0 && !q.Bounded():
		fault = "has a DispatchTimeout but no Concurrency or Rate: only bounded queues reserve slots"
	case q.Burst < 0 || q.Burst > MaxQueueBurst:
		fault = fmt.Sprintf("has Burst %d: use 0 (one) to %d", q.Burst, MaxQueueBurst)
	case q.Burst > 0 && !q.Rated():
		fault = "has a Burst but no Rate"
	default:
		fault = q.Rate.fault()
	}
	if fault == "" {
		return nil
	}
	return &Error{
		Code:    ErrConfigurationInvalid,
		Message: fmt.Sprintf("queue %q %s", q.Name, fault),
		Hint:    "correct the runlane.Queue value",
	}
}
