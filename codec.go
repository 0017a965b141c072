package runlane

import "context"

// Codec transforms payloads, outputs and results of steps on their way to the storage and back; package sealed encrypts
// with one. With a codec (core.Options.Codec) a runtime reads and writes as before, and its storage keeps only the
// result of Encode and the name of the key. Implementations must be safe for concurrent use and must be able to read
// bytes stored years ago.
//
// [ErrPayloadUnreadable] means that these bytes cannot be opened here: the run is returned without them, see [Sealed].
// Any other error fails the call that needed the bytes; if it is not an *Error, it counts as [ErrStorageUnavailable].
type Codec interface {
	// Encode returns the bytes to store for plain and the name of the key for Decode: 1 to 64 bytes of printable text.
	// It must not change plain. It may return different bytes for the same plain.
	Encode(ctx context.Context, of BodyRef, plain []byte) (stored []byte, key string, err error)
	// Decode returns the bytes passed to Encode. It must refuse bytes stored for another body. A key of "" means that
	// the bytes were stored without a codec: Decode returns them as they are, or refuses them.
	Decode(ctx context.Context, of BodyRef, key string, stored []byte) (plain []byte, err error)
}

// BodyRef identifies bytes of one run: its payload, its output, or a record kept apart from its history.
type BodyRef struct {
	// Environment and RunID identify the run. The environment is spelled out.
	Environment Environment
	RunID       RunID
	// TaskID is the run's task for a payload, otherwise "".
	TaskID TaskID
	// Output is true only for the output.
	Output bool
	// Kind of other bytes. "" for payload and output.
	Kind BodyKind
	// Name within the kind.
	Name string
}

// BodyKind is the kind of bytes other than payload and output.
type BodyKind string

// The kinds of bytes.
const (
	// BodyStep: the result of the step BodyRef.Name, or another record of the run.
	BodyStep BodyKind = "step"
	// BodyLog: lines that an attempt logged.
	BodyLog BodyKind = "log"
	// BodySignal: the body of a signal; BodyRef.Name is "name:id".
	BodySignal BodyKind = "signal"
)

// Sealed describes how the bytes of a run that was read are stored, if not in the run as they are: encoded by a [Codec],
// or apart from the run. It is not part of the run's history.
type Sealed struct {
	PayloadKey string `json:"payloadKey,omitempty"` // names the key that encoded the payload
	OutputKey  string `json:"outputKey,omitempty"`  // names the key that encoded the output

	// PayloadFault and OutputFault are the reasons why this process could not decode the bytes. Payload or Output is
	// nil then.
	PayloadFault string `json:"payloadFault,omitempty"`
	OutputFault  string `json:"outputFault,omitempty"`

	// PayloadApart and OutputApart describe stored bytes that the lane keeps apart from the run, because of their size.
	PayloadApart BodyApart `json:"payloadApart,omitzero"`
	OutputApart  BodyApart `json:"outputApart,omitzero"`
}

// BodyApart describes a body that a lane keeps apart from its run, in the stored form: after a [Codec].
type BodyApart struct {
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"` // in hexadecimal digits
}

// PayloadError returns [ErrPayloadUnreadable] if the process that read the run could not open the payload.
func (r *Run) PayloadError() error {
	if r.Sealed == nil || r.Sealed.PayloadFault == "" {
		return nil
	}
	return r.unreadable("payload", r.Sealed.PayloadKey, r.Sealed.PayloadFault, r.Sealed.PayloadApart)
}

// OutputError returns [ErrPayloadUnreadable] if the process that read the run could not open the output.
func (r *Run) OutputError() error {
	if r.Sealed == nil || r.Sealed.OutputFault == "" {
		return nil
	}
	return r.unreadable("output", r.Sealed.OutputKey, r.Sealed.OutputFault, r.Sealed.OutputApart)
}

func (r *Run) unreadable(what, key, fault string, apart BodyApart) error {
	e := &Error{
		Code:      ErrPayloadUnreadable,
		Message:   "the " + what + " cannot be read here: " + fault,
		RunID:     r.ID,
		Retryable: true,
		Hint:      "give this process the codec and the keys of the one that stored it",
	}
	switch {
	case key != "":
		e.Meta = map[string]string{"key": key}
	case apart != BodyApart{}:
		e.Hint = "give this process the lane's store of bodies; if the body is lost there, restore it or cancel the run"
		e.Meta = map[string]string{"sha256": apart.SHA256}
	}
	return e
}
