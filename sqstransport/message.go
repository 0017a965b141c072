package sqstransport

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

const messageVersion = 1

// body is the stored message. The names are a contract between versions of this program.
type body struct {
	Version      int                 `json:"v"`
	Environment  runlane.Environment `json:"environment"`
	RunID        runlane.RunID       `json:"runId"`
	Queue        runlane.QueueName   `json:"queue"`
	RequestedAt  time.Time           `json:"requestedAt"`
	TraceCarrier map[string]string   `json:"traceCarrier,omitempty"`
}

// encodeWakeup returns the message of a wakeup in ASCII, because SQS refuses some other characters.
func encodeWakeup(w lane.Wakeup) (string, error) {
	text, err := json.Marshal(body{
		Version:      messageVersion,
		Environment:  runlane.Environment(w.Environment.Name()),
		RunID:        w.RunID,
		Queue:        w.Queue,
		RequestedAt:  runlane.UTCMillis(w.RequestedAt),
		TraceCarrier: w.TraceCarrier,
	})
	if err != nil {
		return "", err
	}
	return string(escapeNonASCII(text)), nil
}

// escapeNonASCII escapes JSON text, which has other characters only inside strings.
func escapeNonASCII(text []byte) []byte {
	if bytes.IndexFunc(text, func(r rune) bool { return r >= 0x7F }) < 0 {
		return text
	}
	out := make([]byte, 0, len(text)+len(text)/2)
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		text = text[size:]
		switch {
		case r < 0x7F:
			out = append(out, byte(r))
		case r > 0xFFFF:
			high, low := utf16.EncodeRune(r)
			out = fmt.Appendf(out, `\u%04x\u%04x`, high, low)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
	}
	return out
}

// ParseMessage decodes the wakeup in a message's body. Anything but a complete wakeup of a known version is
// runlane.ErrValidationFailed; the error never repeats the body. It ignores unknown fields.
func ParseMessage(text string) (lane.Wakeup, error) {
	if len(text) > MaxMessageBytes {
		return lane.Wakeup{}, malformed(fmt.Sprintf("message has %d bytes", len(text)), nil)
	}
	// A map has exact names; with a struct, encoding/json ignores their case.
	var fields map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &fields); err != nil || fields == nil {
		return lane.Wakeup{}, malformed("message is not a JSON object", nil)
	}
	var b body
	if err := decodeField(fields, "v", &b.Version); err != nil {
		return lane.Wakeup{}, err
	}
	if b.Version != messageVersion {
		return lane.Wakeup{}, &runlane.Error{
			Code: runlane.ErrValidationFailed, Message: fmt.Sprintf("message has version %d", b.Version),
			Hint: fmt.Sprintf(
				"this program reads version %d: update the program that reads, or the one that wrote",
				messageVersion,
			),
		}
	}
	err := errors.Join(
		decodeField(fields, "environment", &b.Environment),
		decodeField(fields, "runId", &b.RunID),
		decodeField(fields, "queue", &b.Queue),
		decodeField(fields, "requestedAt", &b.RequestedAt),
	)
	if err != nil {
		return lane.Wakeup{}, malformed("message is incomplete", err)
	}
	if raw, ok := fields["traceCarrier"]; ok {
		if err := json.Unmarshal(raw, &b.TraceCarrier); err != nil {
			return lane.Wakeup{}, malformed("message has a traceCarrier that is no object of strings", nil)
		}
	}
	if b.Environment == "" {
		return lane.Wakeup{}, malformed("message has an empty environment", nil)
	}
	if err := errors.Join(b.Environment.Validate(), b.RunID.Validate(), b.Queue.Validate()); err != nil {
		return lane.Wakeup{}, malformed("message has a bad name", err)
	}
	return lane.Wakeup{
		RunKey:       lane.RunKey{Environment: b.Environment, RunID: b.RunID},
		Queue:        b.Queue,
		RequestedAt:  runlane.UTCMillis(b.RequestedAt),
		TraceCarrier: b.TraceCarrier,
	}, nil
}

func decodeField(fields map[string]json.RawMessage, name string, into any) error {
	raw, ok := fields[name]
	if !ok || string(raw) == "null" {
		return malformed(fmt.Sprintf("message has no %q", name), nil)
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return malformed(fmt.Sprintf("message has a bad %q", name), nil)
	}
	return nil
}

func malformed(message string, cause error) *runlane.Error {
	return &runlane.Error{
		Code:    runlane.ErrValidationFailed,
		Message: message,
		Cause:   cause,
		Hint:    "only wakeups of this program belong into this queue; the message is left for its dead-letter queue",
	}
}
