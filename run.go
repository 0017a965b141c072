package runlane

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"strings"
	"time"
	"unicode/utf8"
)

// Run is the projection of a run: the fold of its events. Times are UTC milliseconds; a zero time, lease or failure
// means absent. (They are values, not pointers: run.Failure.Message is always safe, and a projection cannot alias an
// event.) The JSON form is for display; the fields hold the exact bytes of payload and output.
type Run struct {
	ID            RunID           `json:"runId"`
	Environment   Environment     `json:"environment"`
	TaskID        TaskID          `json:"taskId"`
	Queue         QueueName       `json:"queue"`
	Status        Status          `json:"status"`
	EventSequence int64           `json:"eventSequence"` // of the last event, counted from 1
	Counters      Counters        `json:"counters"`
	Payload       json.RawMessage `json:"payload,omitempty"`
	Output        json.RawMessage `json:"output,omitempty"` // nil if the handler set none
	Sealed        *Sealed         `json:"sealed,omitempty"` // nil without a codec
	RunAt         time.Time       `json:"runAt,omitzero"`
	StartedAt     time.Time       `json:"startedAt,omitzero"`  // of the latest attempt
	FinishedAt    time.Time       `json:"finishedAt,omitzero"` // terminal runs only
	// bounded queues: when the slot was reserved
	DispatchedAt      time.Time `json:"dispatchedAt,omitzero"`
	DispatchExpiresAt time.Time `json:"dispatchExpiresAt,omitzero"` // bounded queues: when the reservation ends
	Waiting           *Waiting  `json:"waiting,omitempty"`          // of a suspended run; nil if it waits only for RunAt
	Failure           Failure   `json:"failure,omitzero"`           // zero unless the last attempt failed
	Lease             Lease     `json:"lease,omitzero"`             // zero unless a worker owns the run
	ConcurrencyKey    string    `json:"concurrencyKey,omitempty"`
	IdempotencyKey    string    `json:"idempotencyKey,omitempty"`
	// of the idempotency key, captured at creation
	Retention    KeyRetention      `json:"idempotencyRetention,omitzero"`
	Debounced    *Debounced        `json:"debounced,omitempty"` // of a trigger with Debounce; nil for others
	SingletonKey string            `json:"singletonKey,omitempty"`
	Priority     int               `json:"priority,omitempty"`
	Source       Source            `json:"source"`
	TraceCarrier map[string]string `json:"traceCarrier,omitempty"`
	Meta         map[string]string `json:"meta,omitempty"`
	CreatedAt    time.Time         `json:"createdAt"`
	UpdatedAt    time.Time         `json:"updatedAt"` // of the last event
}

// Clone returns a deep copy. Storages use it on the way in and out. A nil run stays nil.
func (r *Run) Clone() *Run {
	if r == nil {
		return nil
	}
	c := *r
	c.Payload = bytes.Clone(r.Payload)
	c.Output = bytes.Clone(r.Output)
	if r.Sealed != nil {
		c.Sealed = new(*r.Sealed)
	}
	c.Waiting = r.Waiting.Clone()
	c.Debounced = r.Debounced.Clone()
	c.Failure = r.Failure.Clone()
	c.TraceCarrier = maps.Clone(r.TraceCarrier)
	c.Meta = maps.Clone(r.Meta)
	return &c
}

// EffectID is a key for effects outside, equal in all attempts of a run and of its retries: the ID of the first of them.
// See [Attempt.EffectID].
func (r *Run) EffectID() string { return string(cmp.Or(r.Source.OriginID, r.ID)) }

// DecodeOutput reads the output that [Attempt.SetOutput] stored. ok is false without one. If this process could not
// open the output, the error is [ErrPayloadUnreadable].
func (r *Run) DecodeOutput(v any) (ok bool, err error) {
	if err := r.OutputError(); err != nil {
		return true, err
	}
	if len(r.Output) == 0 {
		return false, nil
	}
	if err := json.Unmarshal(r.Output, v); err != nil {
		return true, &Error{Code: ErrValidationFailed, Message: "output does not decode", RunID: r.ID, Cause: err}
	}
	return true, nil
}

// RunnableAt returns when a worker may take the run. ok is false if no time alone makes it runnable.
func (r *Run) RunnableAt() (at time.Time, ok bool) {
	due := r.RunAt
	if due.IsZero() {
		due = time.Time{} // a zero time in another zone would not compare equal
	}
	return RunnableSince(r.Status, r.UpdatedAt, due, r.Lease.ExpiresAt, time.Time{})
}

// Abandoned counts all attempts whose lease had ended without an outcome at t. The limit ([DefaultMaxAbandoned]) counts
// only consecutive ones: once an attempt had an outcome, they can be counted only from the history.
func (r *Run) Abandoned(t time.Time) int {
	n := r.Counters.Attempts - r.Counters.Failures - r.Counters.Releases
	if r.Status.Owned() && t.Before(r.Lease.ExpiresAt) {
		n--
	}
	return n
}

// Summary returns the run as lists show it.
func (r *Run) Summary() RunSummary {
	return RunSummary{
		ID:          r.ID,
		TaskID:      r.TaskID,
		Queue:       r.Queue,
		Status:      r.Status,
		Counters:    r.Counters,
		FailureCode: r.Failure.Code,
		Waiting:     r.Waiting.Clone(),
		Source:      r.Source,
		RunAt:       r.RunAt,
		CreatedAt:   r.CreatedAt,
		FinishedAt:  r.FinishedAt,

		ConcurrencyKey:    r.ConcurrencyKey,
		Priority:          r.Priority,
		DispatchExpiresAt: r.DispatchExpiresAt,
	}
}

// RunSummary is a run in a list: without payload, output, failure detail and meta.
type RunSummary struct {
	ID          RunID     `json:"runId"`
	TaskID      TaskID    `json:"taskId"`
	Queue       QueueName `json:"queue"`
	Status      Status    `json:"status"`
	Counters    Counters  `json:"counters"`
	FailureCode ErrorCode `json:"failureCode,omitempty"`
	Waiting     *Waiting  `json:"waiting,omitempty"` // of a suspended run
	Source      Source    `json:"source"`
	RunAt       time.Time `json:"runAt,omitzero"`
	CreatedAt   time.Time `json:"createdAt"`
	FinishedAt  time.Time `json:"finishedAt,omitzero"`

	ConcurrencyKey    string    `json:"concurrencyKey,omitempty"`
	Priority          int       `json:"priority,omitempty"`         // on DynamoDB only of active runs
	DispatchExpiresAt time.Time `json:"dispatchExpiresAt,omitzero"` // bounded queues: when the reservation of its slot ends
}

// Counters are derived from a run's events.
type Counters struct {
	Attempts int `json:"attempts"` // started
	Failures int `json:"failures"` // terminal and retried
	Retries  int `json:"retries"`  // failures that scheduled another attempt
	Releases int `json:"releases"` // waits, which are not failures
}

// Failure of an attempt or of a publish. Build one with [NewFailure], which applies the limits.
type Failure struct {
	Code    ErrorCode         `json:"code"`
	Message string            `json:"message"`
	Meta    map[string]string `json:"meta,omitempty"`
}

// NewFailure cuts message and meta to [MaxFailureMessageBytes] and [MaxFailureMetaBytes] and marks each cut. Meta
// values share the remaining bytes equally. Invalid UTF-8 is replaced, because storages keep text.
func NewFailure(code ErrorCode, message string, meta map[string]string) Failure {
	f := Failure{Code: code, Message: clip(strings.ToValidUTF8(message, "\ufffd"), MaxFailureMessageBytes)}
	if len(meta) == 0 {
		return f
	}
	meta = validText(meta)
	size := 0
	for k, v := range meta {
		size += len(k) + len(v)
	}
	f.Meta = maps.Clone(meta)
	if size <= MaxFailureMetaBytes {
		return f
	}
	share := MaxFailureMetaBytes / len(meta)
	for k, v := range meta {
		delete(f.Meta, k)
		if room := share - len(k); room > len("…") {
			f.Meta[k] = clip(v, room)
		}
	}
	return f
}

// validText returns meta itself if all of it is UTF-8, else a copy with invalid bytes replaced.
func validText(meta map[string]string) map[string]string {
	valid := true
	for k, v := range meta {
		valid = valid && utf8.ValidString(k) && utf8.ValidString(v)
	}
	if valid {
		return meta
	}
	replaced := make(map[string]string, len(meta))
	for k, v := range meta {
		replaced[strings.ToValidUTF8(k, "\ufffd")] = strings.ToValidUTF8(v, "\ufffd")
	}
	return replaced
}

// Clone returns a deep copy.
func (f Failure) Clone() Failure {
	f.Meta = maps.Clone(f.Meta)
	return f
}

// IsZero reports whether f is empty.
func (f Failure) IsZero() bool { return f.Code == "" && f.Message == "" && len(f.Meta) == 0 }

// Lease is a worker's ownership of a run. The owner's writes are checked by the token, never by time alone.
type Lease struct {
	Token     string    `json:"token"`
	WorkerID  string    `json:"workerId"`
	ExpiresAt time.Time `json:"expiresAt"` // the lease has expired at this millisecond
}

// Expired reports whether the lease is over at t. A zero lease is expired.
func (l Lease) Expired(t time.Time) bool { return !t.Before(l.ExpiresAt) }

// Source records where a run comes from. It never changes.
type Source struct {
	Type       SourceType `json:"type"`
	RunID      RunID      `json:"runId,omitempty"`      // the run that was repeated, or that triggered or called this one
	ScheduleID ScheduleID `json:"scheduleId,omitempty"` // schedule
	FireTime   time.Time  `json:"fireTime,omitzero"`    // schedule: the planned time of the occurrence; for a run made by hand, the time of that request
	Call       string     `json:"call,omitempty"`       // call: its name in the calling run
	Depth      int        `json:"depth,omitempty"`      // call: the number of calls above this run
	CreatedAt  time.Time  `json:"createdAt,omitzero"`   // creation time of the calling or repeated run, or of the flow
	FlowID     FlowID     `json:"flowId,omitempty"`     // flow
	Node       string     `json:"node,omitempty"`       // flow: the run's node
	Round      int        `json:"round,omitempty"`      // flow: its number of retries when the run was made

	// OriginID is the run that did this piece of work first: of a retried run, of a node that its flow retries, and of a
	// run that a retried run calls again. Empty for the first one. See [Run.EffectID].
	OriginID RunID `json:"originId,omitempty"`
}

// SourceType is the way a run was made.
type SourceType string

// The sources of a run.
const (
	SourceTrigger  SourceType = "trigger"
	SourceSchedule SourceType = "schedule"
	// SourceRerun: an operator repeated a terminal run.
	SourceRerun SourceType = "rerun"
	// SourceManualRetry: an operator retried a failed run.
	SourceManualRetry SourceType = "manual_retry"
	// SourceCall: a run called it and waits for its end.
	SourceCall SourceType = "call"
	SourceFlow SourceType = "flow"
)

// Actor is who caused an event.
type Actor struct {
	Type ActorType `json:"type"`
	ID   string    `json:"id,omitempty"`
}

// ActorType is the kind of an [Actor].
type ActorType string

// The kinds of actors.
const (
	ActorSystem ActorType = "system"
	// ActorOperator is a person, or a tool on their behalf.
	ActorOperator ActorType = "operator"
	ActorSchedule ActorType = "schedule"
	ActorWorker   ActorType = "worker"
)

// Debounced is what a run knows of the triggers that it answers, see [Debounce].
type Debounced struct {
	Latest   time.Time `json:"latest,omitzero"` // when no further trigger delays it; zero: never
	Triggers int       `json:"triggers"`        // so far, the first one included
}

// Clone returns a copy. nil stays nil.
func (d *Debounced) Clone() *Debounced {
	if d == nil {
		return nil
	}
	return new(*d)
}

// KeyRetention is the idempotency policy, captured at creation of the key's owner. The zero value releases the key at
// the run's end.
type KeyRetention struct {
	WhileActive bool          // the key is free as soon as the run is terminal
	TTL         time.Duration // otherwise kept until creation + TTL, unless the run failed
	Window      bool          // kept until creation + TTL, whatever becomes of the run: of a [Throttle]
	UntilDue    bool          // kept until the run may start, or is cancelled before: of a [Debounce]
}

type keyRetentionJSON struct {
	WhileActive bool   `json:"whileActive,omitempty"`
	TTL         string `json:"ttl,omitempty"`
	Window      bool   `json:"window,omitempty"`
	UntilDue    bool   `json:"untilDue,omitempty"`
}

// MarshalJSON writes the TTL as text, see [FormatDuration].
func (k KeyRetention) MarshalJSON() ([]byte, error) {
	out := keyRetentionJSON{WhileActive: k.WhileActive, Window: k.Window, UntilDue: k.UntilDue}
	if k.TTL != 0 {
		out.TTL = FormatDuration(k.TTL)
	}
	return json.Marshal(out)
}

// UnmarshalJSON reads the form that MarshalJSON writes.
func (k *KeyRetention) UnmarshalJSON(b []byte) error {
	var in keyRetentionJSON
	if err := json.Unmarshal(b, &in); err != nil {
		return err
	}
	*k = KeyRetention{WhileActive: in.WhileActive, Window: in.Window, UntilDue: in.UntilDue}
	if in.TTL == "" {
		return nil
	}
	ttl, err := ParseDuration(in.TTL)
	k.TTL = ttl
	return err
}

// Progress is the latest note of an attempt. It is not part of the run's history.
type Progress struct {
	Attempt int       `json:"attempt"`
	Note    string    `json:"note"` // at most MaxReasonBytes
	At      time.Time `json:"at"`
}

// DeadLetter is a wakeup that publishers gave up. Its run waits until the delivery is requeued or the run is cancelled.
type DeadLetter struct {
	RunID    RunID     `json:"runId"`
	OutboxID string    `json:"outboxId"`
	Queue    QueueName `json:"queue"`
	Attempts int       `json:"attempts"`
	Failure  Failure   `json:"failure"`
	Since    time.Time `json:"since"`
}
