package runlane

import (
	"context"
	"encoding/json"
	"time"
)

// Bounds of signals.
const (
	// MaxSignalIDBytes bounds the id of a signal.
	MaxSignalIDBytes = 256
	// MaxRunSignals bounds the signals that are kept beside one run. Beyond it the first signal of a name that the run
	// waits for is taken, and an answer by a token: who fills the mail keeps no run from its answer.
	MaxRunSignals = 1000
)

// Signal is a durable name with the type of a body: what a run can wait for and anybody can send. Declare it beside the
// task.
type Signal[T any] struct {
	name   string
	schema json.RawMessage // nil: none
}

// NewSignal defines a signal. A bad name (see [ValidateSignalName]) is refused where it is used.
func NewSignal[T any](name string) *Signal[T] { return &Signal[T]{name: name} }

// Name is the signal's.
func (s *Signal[T]) Name() string { return s.name }

// Named is a signal of the same type and schema under another name. A run that asks again gives each round its name
// ("approved/2"), so that a late answer to one round is not taken for one to the next.
func (s *Signal[T]) Named(name string) *Signal[T] { return &Signal[T]{name: name, schema: s.schema} }

// With pairs the signal with a body. It is encoded when it is sent; an error surfaces there.
func (s *Signal[T]) With(body T) SignalValue {
	return SignalValue{name: s.name, prepare: func() (json.RawMessage, error) { return encodePayload("signal", body) }}
}

// Wait returns the body of the signal, whether it came before or comes now: the first of this name. Until there is one,
// the error is a suspension ([Suspended]): return it, and the handler is called again from its beginning when the
// signal is there. [ErrWaitTimedOut] says that the time limit is over. What a wait was answered is remembered: every
// later attempt gets the same. A signal answers one wait: a second wait of the same name in an attempt, and one
// for a signal that another wait of the run is for, are [ErrValidationFailed].
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

// Into makes the signal one of several that [WaitAny] or [WaitAll] waits for. *body stays nil unless this one was
// received.
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

// Token is for a link in a mail: who has it can send this signal to this run, once, until it expires, with
// core.Runtime.Answer. It is signed with core.Options.TokenKeys, without which it is [ErrCapabilityUnsupported], and
// stored nowhere. A token of the same run and name is worth the same: the first answer counts.
func (s *Signal[T]) Token(_ context.Context, a *Attempt, options *TokenOptions) (string, error) {
	if a.host.Waits == nil {
		return "", noHost("makes tokens")
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

// WaitAny waits for the first of several signals, as [Signal.Wait] does: of those that are there, the one that came
// first. It is remembered under options.Name, or the first case's name.
func WaitAny(ctx context.Context, a *Attempt, options *WaitOptions, cases ...Case) error {
	return waitFor(ctx, a, options, false, cases)
}

// WaitAll waits for one of each signal, as [Signal.Wait] does. After [ErrWaitTimedOut] those that came are filled in.
func WaitAll(ctx context.Context, a *Attempt, options *WaitOptions, cases ...Case) error {
	return waitFor(ctx, a, options, true, cases)
}

func waitFor(ctx context.Context, a *Attempt, options *WaitOptions, all bool, cases []Case) error {
	if a.host.Waits == nil {
		return noHost("waits")
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

func noHost(does string) error {
	return &Error{
		Code:    ErrConfigurationInvalid,
		Message: "this attempt has no runtime that " + does,
		Hint:    "in a test, use runlanetest",
	}
}

// WaitOptions of a wait. nil means none.
type WaitOptions struct {
	// Name of the wait, unique in the run: its answer is remembered under it. Of [Signal.Wait] it is also the name of
	// the signal that is waited for, as [Signal.Named] gives it: who sends it, or makes a token for it, uses the same.
	// "" means the signal's, of several the first one's.
	Name string
	// Prompt is the question to a person, at most [MaxPromptBytes]: it makes the wait one for input. It is kept in the
	// clear, as names are, and left out where payloads are encoded.
	Prompt string
	// Timeout is counted from the first attempt that asks. 0 means none; NoWait, what is there now.
	Timeout time.Duration
}

// NoWait, as a time limit, answers with what is there already.
const NoWait time.Duration = -1

// WaitHost answers the waits of an attempt. It is for runtimes and test helpers.
type WaitHost interface {
	// Wait returns what answers a wait. Until there is something its error is a suspension.
	Wait(ctx context.Context, request WaitRequest) (WaitAnswer, error)
	// Token makes an answer token for signals of a name to the attempt's run.
	Token(name string, ttl time.Duration) (string, error)
}

// WaitRequest is a wait as a runtime gets it.
type WaitRequest struct {
	// Name of the record of the answer.
	Name string
	// Names of the signals.
	Names []string
	// All says that one of each is needed.
	All bool
	// Prompt and Timeout are those of [WaitOptions].
	Prompt  string
	Timeout time.Duration
	// Schemas are the JSON Schemas of bodies by the names of their signals, see [Signal.WithSchema]. nil means none.
	Schemas map[string]json.RawMessage
}

// WaitAnswer is what ended a wait, as it is remembered.
type WaitAnswer struct {
	// Signals that were there, in the order of the request; of a wait for any, one.
	Signals []ReceivedSignal `json:"signals,omitempty"`
	// TimedOut says that the time limit was over first.
	TimedOut bool `json:"timedOut,omitempty"`
}

// ReceivedSignal is a signal beside a run.
type ReceivedSignal struct {
	Name string          `json:"name"`
	ID   string          `json:"id"`
	Body json.RawMessage `json:"body"`
}

// SignalValue is a signal with a body, not yet sent.
type SignalValue struct {
	name    string
	prepare func() (json.RawMessage, error)
}

// NewRawSignal is a signal from bytes that are JSON already, for command lines and HTTP endpoints.
func NewRawSignal(name string, body json.RawMessage) SignalValue {
	return SignalValue{name: name, prepare: func() (json.RawMessage, error) { return encodePayload("signal", body) }}
}

// Name is the signal's.
func (v SignalValue) Name() string { return v.name }

// Prepare encodes the body. Bytes that are not JSON, and more than [MaxPayloadBytes], are [ErrValidationFailed].
func (v SignalValue) Prepare() (json.RawMessage, error) {
	if v.prepare == nil {
		return nil, &Error{Code: ErrValidationFailed, Message: "empty signal", Hint: "build signals with Signal.With"}
	}
	return v.prepare()
}

// SignalOptions of a signal. nil means none.
type SignalOptions struct {
	// Actor is who sent it, kept with the event of a run that it resumes. The zero value means SystemActor.
	Actor Actor
	// ID makes sending it again a success that changes nothing: another body under it is [ConflictSignal]. At most
	// [MaxSignalIDBytes] of printable text. "" means a new one.
	ID string
	// Receipt, where there is one, is filled in before the call returns nil. One receipt is for one call at a time.
	Receipt *SignalReceipt
}

// SignalReceipt is what sending a signal did.
type SignalReceipt struct {
	// Existing says that the signal was there already, with its ID and body: this call changed nothing. A try whose
	// answer was lost counts as another call.
	Existing bool
}

// Signaler sends signals. *core.Runtime does, *Attempt does.
//
// When Signal returns nil the signal is durable, and a run that waits for it is due. One that is not waited for yet is
// kept for the wait that comes. Errors:
//
//   - [ErrRunEnded]: the run has ended. It is [ErrValidationFailed] too.
//   - [ErrRunNotFound]: there is no such run.
//   - [ErrValidationFailed]: name, id or body are wrong, or the run has [MaxRunSignals] already and
//     does not wait for this one. Retryable where the run does not wait at the moment.
//   - [ConflictSignal]: a signal of this name and id has another body.
//   - [ErrStorageUnavailable]: so many were sent to this run at once that each try met another. Retryable.
//
// SignalNode sends to the latest run of a flow's node, as it is when the signal is sent: a node stays the same when its
// flow is retried, and its runs do not. Its errors are those of Signal, [ErrFlowNotFound], and [ErrValidationFailed]
// for a node that is not in the flow. [ErrRunNotFound] is a node whose run is not made.
type Signaler interface {
	Signal(ctx context.Context, id RunID, value SignalValue, options *SignalOptions) error
	SignalNode(ctx context.Context, node Node, value SignalValue, options *SignalOptions) error
}

var _ Signaler = (*Attempt)(nil)

// Signal sends a signal to another run. Attempts are repeated: give it an ID.
func (a *Attempt) Signal(ctx context.Context, id RunID, value SignalValue, options *SignalOptions) error {
	if a.host.Signal == nil {
		return noHost("sends signals")
	}
	return a.host.Signal.Signal(ctx, id, value, options)
}

// SignalNode sends a signal to the latest run of a node, see [Signaler]. Attempts are repeated: give it an ID.
func (a *Attempt) SignalNode(ctx context.Context, node Node, value SignalValue, options *SignalOptions) error {
	if a.host.Signal == nil {
		return noHost("sends signals")
	}
	return a.host.Signal.SignalNode(ctx, node, value, options)
}
