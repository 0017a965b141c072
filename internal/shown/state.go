package shown

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
)

type Finding struct {
	Check  string `json:"check"`
	Status string `json:"status"` // ok, warning or failed
	Detail string `json:"detail,omitempty"`
	Code   string `json:"code,omitempty"`
	Cause  string `json:"cause,omitempty"`
	Fix    string `json:"fix,omitempty"`
}

type Queue struct {
	Name            runlane.QueueName `json:"queue"`
	Concurrency     int               `json:"concurrency"`
	DispatchTimeout string            `json:"dispatchTimeout,omitempty"`
	Rate            string            `json:"rate,omitempty"`
	Burst           int               `json:"burst,omitempty"`
	Known           bool              `json:"known"`
	Stored          bool              `json:"stored,omitempty"`
	Bound           bool              `json:"bound"`
	Carrier         runlane.QueueName `json:"carrier,omitempty"`
	Ordered         bool              `json:"ordered,omitempty"`
	Pause           *Pause            `json:"pause,omitempty"`
}

// Pause is the pause of a queue or a task, or its end while runs get their wakeups.
type Pause struct {
	Queue     runlane.QueueName `json:"queue,omitempty"`
	Task      runlane.TaskID    `json:"taskId,omitempty"`
	Since     time.Time         `json:"since"`
	Until     time.Time         `json:"until,omitzero"`
	Actor     runlane.Actor     `json:"actor"`
	Reason    string            `json:"reason,omitempty"`
	ResumedAt time.Time         `json:"resumedAt,omitzero"`
}

func PauseOf(p *lane.Pause) *Pause {
	if p == nil {
		return nil
	}
	return &Pause{p.Queue, p.Task, p.Since, p.Until, p.Actor, p.Reason, p.ResumedAt}
}

func QueueOf(state *core.QueueState) Queue {
	return Queue{
		Name:            state.Queue.Name,
		Concurrency:     state.Queue.Concurrency,
		DispatchTimeout: Duration(state.Queue.DispatchTimeout),
		Rate:            state.Queue.Rate.String(),
		Burst:           state.Queue.Burst,
		Known:           state.Known,
		Stored:          state.Stored,
		Bound:           state.Bound,
		Carrier:         state.Carrier,
		Ordered:         state.Ordered,
		Pause:           PauseOf(state.Pause),
	}
}

type Stats struct {
	Queue
	At            time.Time       `json:"at"`
	Waiting       int             `json:"waiting"`
	Reserved      int             `json:"reserved,omitempty"`
	OldestWaiting time.Time       `json:"oldestWaiting,omitzero"`
	Running       int             `json:"running"`
	Delayed       int             `json:"delayed"`
	NextDue       time.Time       `json:"nextDue,omitzero"`
	AtLeast       bool            `json:"atLeast,omitempty"`
	KeysAtLeast   bool            `json:"keysAtLeast,omitempty"`
	Keys          []core.KeyStats `json:"keys,omitempty"`
	MoreKeys      int             `json:"moreKeys,omitempty"`
	Backlog       int             `json:"backlog"`
	InFlight      int             `json:"inFlight"`
}

// KnownQueue checks the stats of a queue that a caller named: runlane.ErrQueueNotFound if it is neither in use nor has
// runs. It takes the state from inUse, which includes what other programs have stored.
func KnownQueue(stats *core.QueueStats, inUse []core.QueueState) error {
	for i := range inUse {
		if inUse[i].Queue.Name == stats.Queue.Name {
			stats.QueueState = inUse[i]
			return nil
		}
	}
	if stats.Waiting+stats.Running+stats.Delayed+max(stats.Backlog, 0)+max(stats.InFlight, 0) > 0 {
		return nil
	}
	return &runlane.Error{
		Code:    runlane.ErrQueueNotFound,
		Message: fmt.Sprintf("no program of this environment uses queue %q, and it has no active run", stats.Queue.Name),
		Hint:    "look at the list of queues; a queue comes with the first program that uses it",
	}
}

func StatsOf(stats *core.QueueStats) *Stats {
	return &Stats{
		Queue:         QueueOf(&stats.QueueState),
		At:            stats.At,
		Waiting:       stats.Waiting,
		Reserved:      stats.Reserved,
		OldestWaiting: stats.OldestWaiting,
		Running:       stats.Running,
		Delayed:       stats.Delayed,
		NextDue:       stats.NextDue,
		AtLeast:       stats.AtLeast,
		KeysAtLeast:   stats.KeysAtLeast,
		Keys:          stats.Keys,
		MoreKeys:      stats.MoreKeys,
		Backlog:       stats.Backlog,
		InFlight:      stats.InFlight,
	}
}

type Task struct {
	ID              runlane.TaskID    `json:"taskId"`
	Queue           runlane.QueueName `json:"queue"`
	Concurrency     int               `json:"concurrency"`
	DispatchTimeout string            `json:"dispatchTimeout,omitempty"`
	Rate            string            `json:"rate,omitempty"`
	Burst           int               `json:"burst,omitempty"`
	MaxAttempts     int               `json:"maxAttempts"`
	Backoff         string            `json:"backoff,omitempty"`
	Timeout         string            `json:"timeout,omitempty"`
	IdempotencyTTL  string            `json:"idempotencyTtl"`
	Keys            []string          `json:"keys"`
	ErrorMessages   bool              `json:"errorMessages"`
	Keep            *Keep             `json:"keep,omitempty"`
	KeepLogs        bool              `json:"keepLogs,omitempty"`
	Version         int               `json:"version,omitempty"`
	Known           bool              `json:"known"`
	SeenAt          time.Time         `json:"seenAt,omitzero"`
	Gone            bool              `json:"gone,omitempty"`
	Schema          json.RawMessage   `json:"schema,omitempty"` // not in lists
	Pause           *Pause            `json:"pause,omitempty"`
}

// WhileActive is the text for an idempotency TTL of runlane.WhileActive.
const WhileActive = "while-active"

func TaskOf(task *core.TaskState, now time.Time) *Task {
	ttl := WhileActive
	if task.IdempotencyTTL != runlane.WhileActive {
		ttl = runlane.FormatDuration(task.IdempotencyTTL)
	}
	return &Task{
		ID:              task.ID,
		Queue:           task.Queue.Name,
		Concurrency:     task.Queue.Concurrency,
		DispatchTimeout: Duration(task.Queue.DispatchTimeout),
		Rate:            task.Queue.Rate.String(),
		Burst:           task.Queue.Burst,
		MaxAttempts:     task.MaxAttempts,
		Backoff:         task.Backoff,
		Timeout:         Duration(task.Timeout),
		IdempotencyTTL:  ttl,
		Keys:            KeyNames(task.Keys),
		ErrorMessages:   task.ErrorMessages,
		Keep:            KeepOf(task.Keep),
		KeepLogs:        task.KeepLogs,
		Version:         task.Version,
		Known:           task.Known,
		SeenAt:          task.SeenAt,
		Gone:            task.Gone(now),
		Pause:           PauseOf(task.Pause),
	}
}

// Keep is a runlane.Keep; what it does not say is missing.
type Keep struct {
	Succeeded string `json:"succeeded,omitempty"`
	Failed    string `json:"failed,omitempty"`
	Cancelled string `json:"cancelled,omitempty"`
}

// KeepForever is the text for a time of runlane.KeepForever.
const KeepForever = "forever"

// KeepOf is nil for a rule that says nothing.
func KeepOf(rule runlane.Keep) *Keep {
	if rule == (runlane.Keep{}) {
		return nil
	}
	return &Keep{keepTime(rule.Succeeded), keepTime(rule.Failed), keepTime(rule.Cancelled)}
}

func keepTime(d time.Duration) string {
	if d == runlane.KeepForever {
		return KeepForever
	}
	return Duration(d)
}

// Keeping is a core.Keeping.
type Keeping struct {
	Keep     *Keep                    `json:"keep"`
	Tasks    map[runlane.TaskID]*Keep `json:"tasks,omitempty"`
	LookedAt time.Time                `json:"lookedAt,omitzero"`
	Overdue  []Overdue                `json:"overdue"`
	More     bool                     `json:"more"`
}

// Overdue counts finished runs that are past their time.
type Overdue struct {
	TaskID runlane.TaskID `json:"taskId"`
	Status string         `json:"status"`
	Runs   int            `json:"runs"`
}

func KeepingOf(k *core.Keeping) *Keeping {
	seen := &Keeping{
		Keep: KeepOf(k.Rule), Tasks: map[runlane.TaskID]*Keep{}, LookedAt: k.LookedAt, Overdue: []Overdue{}, More: k.More,
	}
	for id, keep := range k.Tasks {
		seen.Tasks[id] = KeepOf(keep)
	}
	for _, of := range k.Overdue {
		seen.Overdue = append(seen.Overdue, Overdue{of.TaskID, string(of.Status), of.Runs})
	}
	return seen
}

// String is one time, or the time of each status that has one.
func (k *Keep) String() string {
	if k.Succeeded == k.Failed && k.Failed == k.Cancelled {
		return k.Succeeded
	}
	var parts []string
	for _, part := range []struct {
		time   string
		status runlane.Status
	}{
		{k.Succeeded, runlane.StatusSucceeded}, {k.Failed, runlane.StatusFailed}, {k.Cancelled, runlane.StatusCancelled},
	} {
		if part.time != "" {
			parts = append(parts, fmt.Sprintf("%s %s", part.status, part.time))
		}
	}
	return strings.Join(parts, ", ")
}

// Duration formats a duration; 0 or less is "".
func Duration(d time.Duration) string {
	if d <= 0 {
		return ""
	}
	return runlane.FormatDuration(d)
}

// KeyNames returns the kinds of keys, as named in flags and JSON.
func KeyNames(keys runlane.TaskKeys) []string {
	names := []string{}
	for _, key := range []struct {
		has  bool
		name string
	}{{keys.Concurrency, "concurrency"}, {keys.Idempotency, "idempotency"}, {keys.Singleton, "singleton"}} {
		if key.has {
			names = append(names, key.name)
		}
	}
	return names
}

type Tick struct {
	Stages []Stage `json:"stages"`
	More   bool    `json:"more"`
}

type Stage struct {
	Name    string `json:"name"`
	Done    int    `json:"done"`
	Skipped int    `json:"skipped"`
	Failed  int    `json:"failed"`
	More    bool   `json:"more"`
}

func TickOf(result *core.TickResult) *Tick {
	seen := &Tick{More: result.More}
	for _, one := range []struct {
		name   string
		result core.StageResult
	}{
		{"cancelled", result.Cancelled},
		{"abandoned", result.Abandoned},
		{"told", result.Told},
		{"delivered", result.Delivered},
		{"redelivered", result.Redelivered},
		{"woken", result.Woken},
		{"scheduled", result.Scheduled},
		{"dispatched", result.Dispatched},
		{"flushed", result.Flushed},
		{"pruned", result.Pruned},
	} {
		seen.Stages = append(seen.Stages, Stage{
			Name:    one.name,
			Done:    one.result.Done,
			Skipped: one.result.Skipped,
			Failed:  one.result.Failed,
			More:    one.result.More,
		})
	}
	return seen
}
