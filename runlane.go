// Package runlane holds the types of an application: tasks, queues, schedules, runs, events and errors.
//
// Define a task with [NewTask], give it a handler with [Task.Handle], open a runtime with core.Open and start runs with
// its Trigger method. A run is a task plus a payload, stored before anything executes. Its history is an append-only
// list of [Event] values; its current state, [Run], is the fold of that history.
//
// The package imports only the standard library, so every program that triggers tasks can share their definitions.
// Adapter authors start at package lane; the runtime is package core.
package runlane

import (
	"fmt"
	"time"
	"unicode"
	"unicode/utf8"
)

// IDs are opaque; never parse one. An ID has 1 to [MaxIDBytes] bytes of printable text without ':', which storages
// reserve for composite keys. "/", "." and ".." are invalid because no URL path can name them.
type (
	// RunID names a run within its environment. Generated ones are "run_" and a ULID.
	RunID string
	// TaskID names a task forever: renaming a task orphans its waiting runs.
	TaskID string
	// QueueName is unique within an environment.
	QueueName string
	// ScheduleID names a schedule forever.
	ScheduleID string
	// Environment scopes every key, read and write. "" means [DefaultEnvironment].
	Environment string
)

// Limits on input.
const (
	// MaxIDBytes bounds run, task, queue and schedule IDs and environment names.
	MaxIDBytes = 200
	// MaxKeyBytes bounds idempotency, singleton and concurrency keys.
	MaxKeyBytes = 512
	// MaxPayloadBytes bounds a payload as the application passes it. Storages may hold less, because they count encoded
	// bytes.
	MaxPayloadBytes = 4 << 20
	// MaxBodyBytes bounds payloads, outputs, results of steps and bodies of signals of runtimes that allow more than
	// MaxPayloadBytes: see core.Options.
	MaxBodyBytes = 128 << 20
	// MaxMetaBytes bounds the keys and values of a run's meta and trace carrier together.
	MaxMetaBytes = 2 << 10
	// MaxReleaseDelay bounds the delay of [Release].
	MaxReleaseDelay = 366 * 24 * time.Hour
	// MaxDebounced bounds the events of a run that [Debounce] delays: the next trigger then makes a new run.
	MaxDebounced = 1000
	// MaxReasonBytes bounds the reason of a release, a cancellation or an operator's change.
	MaxReasonBytes = 256
	// MaxFailureMessageBytes bounds the message of a [Failure]. Longer text is cut and marked.
	MaxFailureMessageBytes = 1 << 10
	// MaxFailureMetaBytes bounds the keys and values of a failure's meta together.
	MaxFailureMetaBytes = 4 << 10
)

// Defaults. The comment of each option names its default.
const (
	// DefaultEnvironment is used when a program names no environment.
	DefaultEnvironment Environment = "default"
	// DefaultIdempotencyTTL is how long a successful or cancelled run keeps its idempotency key, counted from creation.
	DefaultIdempotencyTTL = 30 * 24 * time.Hour
	// DefaultDispatchTimeout is how long a reserved slot of a bounded queue waits for its worker.
	DefaultDispatchTimeout = 2 * time.Minute
	// DefaultLease is the lease of long-lived workers, which renew it after every third of it.
	DefaultLease = time.Minute
	// DefaultOutboxClaim is how long a publisher owns a claimed outbox row.
	DefaultOutboxClaim = 30 * time.Second
	// DefaultGrace is how long running attempts may take to finish after their worker starts to stop.
	DefaultGrace = 30 * time.Second
	// DefaultConcurrency is how many attempts a worker executes at once.
	DefaultConcurrency = 10
	// DefaultMaxAbandoned is how many attempts of a run may end without an outcome before the run fails.
	DefaultMaxAbandoned = 3
	DefaultPageLimit    = 50
	MaxPageLimit        = 500
	// DefaultPruneLimit is how many runs one prune call removes at most.
	DefaultPruneLimit = 100
)

// Actors of the runtime itself.
var (
	// SystemActor stands for the runtime: triggers without an actor, maintenance.
	SystemActor = Actor{Type: ActorSystem}
	// OperatorActor stands for a person without a more specific identity.
	OperatorActor = Actor{Type: ActorOperator}
)

// Name returns the environment's name, with the default filled in. Every durable key is scoped by it.
func (e Environment) Name() string {
	if e == "" {
		return string(DefaultEnvironment)
	}
	return string(e)
}

// Validate returns [ErrValidationFailed] if e is not a valid ID. "" is valid: the default environment.
func (e Environment) Validate() error {
	if e == "" {
		return nil
	}
	return validateID("environment", string(e))
}

// Validate returns [ErrValidationFailed] if the ID is invalid.
func (id RunID) Validate() error { return validateID("run id", string(id)) }

// Validate returns [ErrValidationFailed] if the ID is invalid.
func (id TaskID) Validate() error { return validateID("task id", string(id)) }

// Validate returns [ErrValidationFailed] if the name is not a valid ID.
func (n QueueName) Validate() error { return validateID("queue name", string(n)) }

// Validate returns [ErrValidationFailed] if the ID is invalid.
func (id ScheduleID) Validate() error { return validateID("schedule id", string(id)) }

func validateID(what, id string) error {
	fault, hint := "", ""
	switch {
	case id == "":
		fault = "is empty"
	case id == "/" || id == "." || id == "..": // browsers and servers drop these from a path
		fault, hint = fmt.Sprintf("is %q, which no address can name", id), "add a letter or a digit"
	case len(id) > MaxIDBytes:
		fault = fmt.Sprintf("has %d bytes", len(id))
	default:
		fault = textFault(id, ':')
	}
	if fault == "" {
		return nil
	}
	if hint == "" {
		hint = fmt.Sprintf("use 1 to %d bytes of printable text without ':'", MaxIDBytes)
	}
	return &Error{
		Code:    ErrValidationFailed,
		Message: what + " " + fault,
		Hint:    hint,
		Meta:    map[string]string{"value": clip(id, MaxIDBytes)},
	}
}

// ValidateKey checks an idempotency, singleton or concurrency key: at most [MaxKeyBytes] bytes of printable text, ':'
// allowed. "" means no key and is valid. The error is [ErrValidationFailed]; it names the key by what and does not
// repeat it, because keys often contain personal data.
func ValidateKey(what, key string) error {
	fault := ""
	if len(key) > MaxKeyBytes {
		fault = fmt.Sprintf("has %d bytes", len(key))
	} else {
		fault = textFault(key, -1)
	}
	if fault == "" {
		return nil
	}
	return &Error{
		Code:    ErrValidationFailed,
		Message: what + " " + fault,
		Hint:    fmt.Sprintf("use at most %d bytes of printable text; hash longer keys", MaxKeyBytes),
	}
}

func textFault(s string, forbidden rune) string {
	if !utf8.ValidString(s) {
		return "is not valid UTF-8"
	}
	for _, r := range s {
		if r == forbidden {
			return fmt.Sprintf("contains %q", r)
		}
		if (r < ' ' || r > '~') && !unicode.IsPrint(r) {
			return fmt.Sprintf("contains the unprintable character %U", r)
		}
	}
	return ""
}

// clip shortens s to at most limit bytes, on a rune boundary, and marks the cut.
func clip(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	const mark = "…"
	cut := max(limit-len(mark), 0)
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + mark
}

// UTCMillis converts t to the form that every storage keeps: UTC, whole milliseconds, rounded down. The zero time stays
// zero.
func UTCMillis(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return t.UTC().Truncate(time.Millisecond)
}

// Cursor resumes a list. It is opaque and holds the list's filter and order; with any other request it is
// [ErrValidationFailed].
type Cursor string

// Page is one page of a list. It may be short or empty and still have a Next, which is empty only on the last page.
type Page[T any] struct {
	Items []T    `json:"items"`
	Next  Cursor `json:"next,omitempty"`
}
