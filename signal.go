package runlane

import (
	"context"
	"encoding/json"
	"time"
)

// Bounds of signals.
const (
	MaxSignalIDBytes = 256
	// MaxRunSignals bounds the signals stored for one run. Beyond it only the first signal of a name that the run waits
	// for is accepted, or an answer by token, so that a flood of signals cannot keep an answer away.
	MaxRunSignals = 1000
)

// Signal is a durable name with a body type: a run can wait for it and anyone can send it. Declare it next to the task.
type Signal[T any] struct {
	name   string
	schema json.RawMessage // nil: none
}

// NewSignal defines a signal. An invalid name (see [ValidateSignalName]) is refused on use.
func NewSignal[T any](name string) *Signal[T] { return &Signal[T]{name: name} }

// Name returns the signal's name.
func (s *Signal[T]) Name() string { return s.name }

// Named returns a signal of the same type and schema under another name. A run that asks repeatedly names each round
// ("approved/2"), so that a late answer to one round does not answer the next.
func (s *Signal[T]) Named(name string) *Signal[T] { return &Signal[T]{name: name, schema: s.schema} }

// With pairs the signal with a body. The body is encoded when it is sent, and errors surface there.
func (s *Signal[T]) With(body T) SignalValue {
	return SignalValue{name: s.name, prepare: func() (json.RawMessage, error) { return encodePayload("signal", body) }}
}

// Wait returns the body of the first signal of this name, whether it came earlier or comes later. Until then the error
// is a suspension ([Suspended]): return it, and the handler runs again from its beginning once the signal is there.
// [ErrWaitTimedOut] means that the time limit is over. The answer is remembered, so every later attempt gets the same.
// A signal answers one wait: a second wait of the same name in an attempt, or a wait for a signal that belongs to
// another wait of the run, is [ErrValidationFailed].
func (s *Signal[T]) Wait(ctx context.Context, a *Attempt, options *WaitOptions) (T, error) {
	if options != nil && options.Name != "" {
		s = s.Named(options.Name)
	}
	var body *T
	err := waitFor(ctx, a, options, false, []Case{s.Into(&body)})
	if body == nil {
		var zero T
		return zero, err
	}
	return *body, err
}

// Into makes the signal a case of [WaitAny] or [WaitAll]. *body stays nil unless this signal is received.
func (s *Signal[T]) Into(body **T) Case {
	return Case{name: s.name, schema: s.schema, decode: func(b []byte) error {
		received := new(T)
		if err := json.Unmarshal(b, received); err != nil {
			return &Error{
				Code:    ErrValidationFailed,
				Message: "the body of signal " + s.name + " does not decode",
				Hint:    "sender and handler have different types of this signal",
				Cause:   err,
			}
		}
		*body = received
		return nil
	}}
}

// Token returns a token for a link in a mail. Its holder can send this signal to this run once, until it expires, with
// core.Runtime.Answer. It is signed with core.Options.TokenKeys and not stored; without keys the error is
// [ErrCapabilityUnsupported]. All tokens of one run and name are equivalent: the first answer counts.
func (s *Signal[T]) Token(_ context.Context, a *Attempt, options *TokenOptions) (string, error) {
	if a.host.Waits == nil {
		return "", noHost("for tokens")
	}
	ttl := defaultTokenTTL
	if options != nil && options.TTL != 0 {
		ttl = options.TTL
	}
	if ttl < 0 {
		return "", &Error{
			Code:    ErrValidationFailed,
			Message: "a token's TTL is negative",
			Hint:    "use 0 for seven days, or more than 0",
		}
	}
	if err := ValidateSignalName(s.name); err != nil {
		return "", err
	}
	return a.host.Waits.Token(s.name, ttl)
}

const defaultTokenTTL = 7 * 24 * time.Hour

// TokenOptions of [Signal.Token]. nil means the defaults.
type TokenOptions struct {
	TTL time.Duration // 0 means seven days
}

// Case is one of several signals, made by [Signal.Into].
type Case struct {
	name   string
	schema json.RawMessage
	decode func([]byte) error
}

// WaitAny waits, like [Signal.Wait], for any of several signals; the earliest one wins. The answer is remembered under
// options.Name, or the first case's name.
func WaitAny(ctx context.Context, a *Attempt, options *WaitOptions, cases ...Case) error {
	return waitFor(ctx, a, options, false, cases)
}

// WaitAll waits, like [Signal.Wait], for one of each signal. After [ErrWaitTimedOut] the received ones are filled in.
func WaitAll(ctx context.Context, a *Attempt, options *WaitOptions, cases ...Case) error {
	return waitFor(ctx, a, options, true, cases)
}

func waitFor(ctx context.Context, a *Attempt, options *WaitOptions, all bool, cases []Case) error {
	if a.host.Waits == nil {
		return noHost("for waits")
	}
	if outer, ok := ctx.Value(stepKey{}).(within); ok && outer.attempt == a {
		return stepInvalid(outer.name, "wait before the step or behind it", "waits for a signal")
	}
	if options == nil {
		options = &WaitOptions{}
	}
	request := WaitRequest{Name: options.Name, All: all, Prompt: options.Prompt, Timeout: options.Timeout}
	decode := make(map[string]func([]byte) error, len(cases))
	for _, c := range cases {
		if _, twice := decode[c.name]; twice {
			return &Error{
				Code:    ErrValidationFailed,
				Message: "a wait has signal " + c.name + " twice",
				Hint:    "name each signal once",
			}
		}
		decode[c.name] = c.decode
		request.Names = append(request.Names, c.name)
		if c.schema != nil {
			if request.Schemas == nil {
				request.Schemas = map[string]json.RawMessage{}
			}
			request.Schemas[c.name] = c.schema
		}
	}
	if request.Name == "" && len(cases) > 0 {
		request.Name = cases[0].name
	}
	answer, err := a.host.Waits.Wait(ctx, request)
	if err != nil {
		return err
	}
	for _, received := range answer.Signals {
		if into := decode[received.Name]; into != nil {
			if err := into(received.Body); err != nil {
				return Permanent(err)
			}
		}
	}
	if answer.TimedOut {
		return Permanent(&Error{
			Code:    ErrWaitTimedOut,
			Message: "the time limit of the wait " + request.Name + " is over",
			RunID:   a.Run.ID,
		})
	}
	return nil
}

func noHost(purpose string) error {
	return &Error{
		Code:    ErrConfigurationInvalid,
		Message: "this attempt has no runtime " + purpose,
		Hint:    "in a test, use runlanetest",
	}
}

// WaitOptions of a wait. nil means none.
type WaitOptions struct {
	// Name of the wait, unique in the run; the answer is remembered under it. For [Signal.Wait] it also renames the
	// signal, like [Signal.Named]: senders and tokens must use it. "" means the name of the first signal.
	Name string
	// Prompt is a question to a person, at most [MaxPromptBytes]; with it the wait is one for input. Like names it is
	// stored in the clear, and left out if payloads are encoded.
	Prompt string
	// Timeout counts from the first attempt that waits. 0 means no limit; NoWait accepts only a signal that is already
	// there.
	Timeout time.Duration
}

// NoWait, as a time limit, answers at once with the signals that are already there.
const NoWait time.Duration = -1

// WaitHost answers the waits of an attempt. It is for runtimes and test helpers.
type WaitHost interface {
	// Wait returns the answer of a wait. Until there is one, the error is a suspension.
	Wait(ctx context.Context, request WaitRequest) (WaitAnswer, error)
	// Token makes an answer token for signals of this name to the attempt's run.
	Token(name string, ttl time.Duration) (string, error)
}

// WaitRequest is a wait as a runtime receives it.
type WaitRequest struct {
	// Name under which the answer is recorded.
	Name  string
	Names []string
	// All: one of each is needed.
	All     bool
	Prompt  string
	Timeout time.Duration
	// Schemas are JSON Schemas of bodies by signal name, see [Signal.WithSchema]. nil means none.
	Schemas map[string]json.RawMessage
}

// WaitAnswer is the remembered result of a wait.
type WaitAnswer struct {
	// Signals received, in the order of the request; one for a wait for any.
	Signals []ReceivedSignal `json:"signals,omitempty"`
	// TimedOut: the time limit came first.
	TimedOut bool `json:"timedOut,omitempty"`
}

// ReceivedSignal is a signal stored for a run.
type ReceivedSignal struct {
	Name string          `json:"name"`
	ID   string          `json:"id"`
	Body json.RawMessage `json:"body"`
}

// SignalValue is a signal with a body, before it is sent.
type SignalValue struct {
	name    string
	prepare func() (json.RawMessage, error)
}

// NewRawSignal makes a signal from JSON bytes, for command lines and HTTP endpoints.
func NewRawSignal(name string, body json.RawMessage) SignalValue {
	return SignalValue{name: name, prepare: func() (json.RawMessage, error) { return encodePayload("signal", body) }}
}

// Name returns the signal's name.
func (v SignalValue) Name() string { return v.name }

// Prepare encodes the body. Invalid JSON, or more than [MaxPayloadBytes], is [ErrValidationFailed].
func (v SignalValue) Prepare() (json.RawMessage, error) {
	if v.prepare == nil {
		return nil, &Error{Code: ErrValidationFailed, Message: "empty signal", Hint: "build signals with Signal.With"}
	}
	return v.prepare()
}

// SignalOptions of a signal. nil means none.
type SignalOptions struct {
	// Actor is the sender, kept with the event of a run that it resumes. The zero value means SystemActor.
	Actor Actor
	// ID makes sending again a success without effect; another body under the same ID is [ConflictSignal]. At most
	// [MaxSignalIDBytes] of printable text. "" means a new one.
	ID string
	// Receipt, if not nil, is filled in before the call returns nil. Do not share one between concurrent calls.
	Receipt *SignalReceipt
}

// SignalReceipt describes the effect of sending a signal.
type SignalReceipt struct {
	// Existing: the signal already existed with this ID and body, so this call changed nothing. A try that succeeded
	// without its answer arriving counts as an earlier call.
	Existing bool
}

// Signaler sends signals: *core.Runtime or *Attempt.
//
// When Signal returns nil, the signal is durable and a run that waits for it is due. A signal without a wait is kept
// for a later wait. Errors:
//
//   - [ErrRunEnded]: the run has ended. It also matches [ErrValidationFailed].
//   - [ErrRunNotFound]: no such run.
//   - [ErrValidationFailed]: name, ID or body are invalid, or the run has [MaxRunSignals] already and does not wait
//     for this one; retryable if the run is not waiting at the moment.
//   - [ConflictSignal]: a signal of this name and ID has another body.
//   - [ErrStorageUnavailable]: every try lost a race against other signals to this run. Retryable.
//
// SignalNode sends to the latest run of a flow's node at that time: a retry of a flow keeps its nodes but makes new
// runs. Its errors are those of Signal, [ErrFlowNotFound], [ErrValidationFailed] if the node is not in the flow, and
// [ErrRunNotFound] if its run is not made yet.
type Signaler interface {
	Signal(ctx context.Context, id RunID, value SignalValue, options *SignalOptions) error
	SignalNode(ctx context.Context, node Node, value SignalValue, options *SignalOptions) error
}

var _ Signaler = (*Attempt)(nil)

// Signal sends a signal to another run. Attempts repeat, so give it an ID.
func (a *Attempt) Signal(ctx context.Context, id RunID, value SignalValue, options *SignalOptions) error {
	if a.host.Signal == nil {
		return noHost("for signals")
	}
	return a.host.Signal.Signal(ctx, id, value, options)
}

// SignalNode sends a signal to the latest run of a node, see [Signaler]. Attempts repeat, so give it an ID.
func (a *Attempt) SignalNode(ctx context.Context, node Node, value SignalValue, options *SignalOptions) error {
	if a.host.Signal == nil {
		return noHost("for signals")
	}
	return a.host.Signal.SignalNode(ctx, node, value, options)
}
