package runlane

import "context"

// Codec changes payloads, outputs and results of steps on their way to the storage and back: package sealed encrypts
// with one. A runtime
// that is given a codec (core.Options.Codec) reads and writes as before; its storage keeps only what Encode returned,
// with the name of the key. Implementations must be safe for concurrent use. They must be able to read bytes that were
// stored years ago.
//
// An error that is [ErrPayloadUnreadable] says that these bytes cannot be opened here: the run is returned without
// them, see [Sealed]. Any other error fails the call that needed the bytes; one that is no *Error counts as
// [ErrStorageUnavailable].
type Codec interface {
	// Encode returns what is stored in place of plain, and the name of the key that Decode will need: 1 to 64 bytes of
	// printable text. It must not change plain. It may return different bytes for the same plain each time.
	Encode(ctx context.Context, of BodyRef, plain []byte) (stored []byte, key string, err error)
	// Decode returns what Encode was given. It must refuse bytes that were stored for another body. If key is "", the
	// bytes were stored without a codec and are plain: Decode returns them as they are, or refuses them.
	Decode(ctx context.Context, of BodyRef, key string, stored []byte) (plain []byte, err error)
}

// BodyRef names the bytes of one run: its payload, its output, or what it keeps beside its history.
type BodyRef struct {
	// Environment and RunID name the run. The environment is spelled out.
	Environment Environment
	RunID       RunID
	// TaskID is the run's for its payload, and "" for everything else.
	TaskID TaskID
	// Output is true for the output, false for everything else.
	Output bool
	// Kind says what else the bytes are. "" for payload and output.
	Kind BodyKind
	// Name is theirs among those of their kind.
	Name string
}

// BodyKind is what bytes are that are neither payload nor output.
type BodyKind string

// The kinds of bytes.
const (
	// BodyStep: the result of the step that BodyRef.Name names, or of another record of the run.
	BodyStep BodyKind = "step"
	// BodySignal: the body of the signal that BodyRef.Name names, as "name:id".
	BodySignal BodyKind = "signal"
)

// Sealed tells how a [Codec] keeps the bytes of a run that was read from the storage. It is nil for a run without a
// codec, and not part of the run's history.
type Sealed struct {
	PayloadKey string `json:"payloadKey,omitempty"` // names the key that encoded the payload
	OutputKey  string `json:"outputKey,omitempty"`  // names the key that encoded the output

	// PayloadFault and OutputFault say why this process could not decode the bytes. Payload or Output is nil then.
	PayloadFault string `json:"payloadFault,omitempty"`
	OutputFault  string `json:"outputFault,omitempty"`
}

// PayloadError is why the payload could not be opened by the process that read the run, [ErrPayloadUnreadable], or nil.
func (r *Run) PayloadError() error {
	if r.Sealed == nil || r.Sealed.PayloadFault == "" {
		return nil
	}
	return r.unreadable("payload", r.Sealed.PayloadKey, r.Sealed.PayloadFault)
}

// OutputError is why the output could not be opened by the process that read the run, [ErrPayloadUnreadable], or nil.
func (r *Run) OutputError() error {
	if r.Sealed == nil || r.Sealed.OutputFault == "" {
		return nil
	}
	return r.unreadable("output", r.Sealed.OutputKey, r.Sealed.OutputFault)
}

func (r *Run) unreadable(what, key, fault string) error {
	e := &Error{
		Code:      ErrPayloadUnreadable,
		Message:   "the " + what + " cannot be read here: " + fault,
		RunID:     r.ID,
		Retryable: true,
		Hint:      "give this process the codec and the keys of the one that stored it",
	}
	if key != "" {
		e.Meta = map[string]string{"key": key}
	}
	return e
}
