// Package runlane has the types that an application uses: tasks, queues, schedules, runs, events and errors.
//
// Define a task with [NewTask], give it a handler with [Task.Handle], open a runtime with core.Open and start runs with
// its Trigger method. A run is a task plus a payload, durable before anything executes; its history is an append-only
// list of [Event] values and its current state, [Run], is the fold of that history.
//
// The package imports only the standard library, so the definitions of tasks can be shared by every program that
// triggers them. Adapter authors want package lane; the runtime is package core.
package runlane

import (
	"fmt"
	"time"
	"unicode"
	"unicode/utf8"
)

// Ids are opaque: never parse one. They are non-empty, at most [MaxIDBytes] bytes of printable text, and hold no ':',
// which storages reserve for composing keys. "/", "." and ".." are none: no address could name them.
type (
	// RunID names a run within its environment. Generated ones are "run_" and a ULID.
	RunID string
	// TaskID names a task for ever: renaming one orphans the runs that wait for it.
	TaskID string
	// QueueName is unique within an environment.
	QueueName string
	// ScheduleID names a schedule for ever.
	ScheduleID string
	// Environment scopes every key, read and write. "" means [DefaultEnvironment].
	Environment string
)

// Limits of what a caller may hand over.
const (
	// MaxIDBytes bounds run, task, queue and schedule ids and environment names.
	MaxIDBytes = 200
	// MaxKeyBytes bounds idempotency, singleton and concurrency keys.
	MaxKeyBytes = 512
	// MaxPayloadBytes bounds a payload as the application gives it. Storages may hold less: they count encoded bytes.
	MaxPayloadBytes = 4 << 20
	// MaxMetaBytes bounds the keys and values of meta and trace carrier of one run together.
	MaxMetaBytes = 2 << 10
	// MaxReleaseDelay bounds the delay of [Release].
	MaxReleaseDelay = 366 * 24 * time.Hour
	// MaxReasonBytes bounds the reason of a release, a cancellation or an operator's change.
	MaxReasonBytes = 256
	// MaxFailureMessageBytes and MaxFailureMetaBytes bound a [Failure]; longer texts are cut with a mark.
	MaxFailureMessageBytes = 1 << 10
	// MaxFailureMetaBytes bounds the keys and values of a failure's meta together.
	MaxFailureMetaBytes = 4 << 10
)

// Defaults. Every option that has one names it.
const (
	// DefaultEnvironment is the environment of programs that name none.
	DefaultEnvironment Environment = "default"
	// DefaultIdempotencyTTL is how long a successful or cancelled run keeps its idempotency key, counted from creation.
	DefaultIdempotencyTTL = 30 * 24 * time.Hour
	// DefaultDispatchTimeout is how long a reserved slot of a bounded queue waits for its worker.
	DefaultDispatchTimeout = 2 * time.Minute
	// DefaultLease is the lease of long-lived workers; they renew it every third of that time.
	DefaultLease = time.Minute
	// DefaultOutboxClaim is how long a publisher owns an outbox row it claimed.
	DefaultOutboxClaim = 30 * time.Second
	// DefaultGrace is how long attempts may finish after a worker was told to stop.
	DefaultGrace = 30 * time.Second
	// DefaultConcurrency is how many attempts a worker executes at once.
	DefaultConcurrency = 10
	// DefaultMaxAbandoned is how many attempts of a run may end without an outcome before the run fails.
	DefaultMaxAbandoned = 3
	// DefaultPageLimit is the size of a page when none is asked for.
	DefaultPageLimit = 50
	// MaxPageLimit is the largest page that may be asked for.
	MaxPageLimit = 500
	// DefaultPruneLimit is how many runs one prune call removes at most.
	DefaultPruneLimit = 100
)

// The actors that the runtime itself names.
var (
	// SystemActor stands for the runtime: triggers without an actor, maintenance.
	SystemActor = Actor{Type: ActorSystem}
	// OperatorActor stands for a person who gave no more specific identity.
	OperatorActor = Actor{Type: ActorOperator}
)

// Name is the environment's name, with the default filled in. Every durable key is scoped by it.
func (e Environment) Name() string {
	if e == "" {
		return string(DefaultEnvironment)
	}
	return string(e)
}

// Validate reports a name that breaks the rules of ids as [ErrValidationFailed]. "" is the default environment and
// valid.
func (e Environment) Validate() error {
	if e == "" {
		return nil
	}
	return validateID("environment", string(e))
}

// Validate reports an id that breaks the rules of ids as [ErrValidationFailed].
func (id RunID) Validate() error { return validateID("run id", string(id)) }

// Validate reports an id that breaks the rules of ids as [ErrValidationFailed].
func (id TaskID) Validate() error { return validateID("task id", string(id)) }

// Validate reports a name that breaks the rules of ids as [ErrValidationFailed].
func (n QueueName) Validate() error { return validateID("queue name", string(n)) }

// Validate reports an id that breaks the rules of ids as [ErrValidationFailed].
func (id ScheduleID) Validate() error { return validateID("schedule id", string(id)) }

func validateID(what, id string) error {
	fault, hint := "", "" // nothing is made of an id that is right
	switch {
	case id == "":
		fault = "is empty"
	case id == "/" || id == "." || id == "..": // a part of an address that browsers and servers drop
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
// allowed. what names the key in the error, which is [ErrValidationFailed]. "" means no key and is valid. The key
// itself is not repeated in the error: keys are often made of personal data.
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

// textFault names what is wrong with s, or returns "".
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
	cut := limit - len(mark)
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + mark
}

// UTCMillis is t as every storage keeps it: UTC, whole milliseconds, rounded down. The zero time stays zero.
func UTCMillis(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return t.UTC().Truncate(time.Millisecond)
}

// Cursor resumes a list. It is opaque, carries the filter and the order it was made for, and is [ErrValidationFailed]
// with any other request.
type Cursor string

// Page is one page of a list. It may be short or empty and still have a Next; Next is empty only on the last page.
type Page[T any] struct {
	Items []T    `json:"items"`
	Next  Cursor `json:"next,omitempty"`
}
