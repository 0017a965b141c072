package runlane

import (
	"encoding/json"
	"strings"
	"time"
)

// MaxReceiptBytes bounds an encoded [Receipt]; longer texts are cut.
const MaxReceiptBytes = 8 << 10

const (
	maxReceiptHeaders = 16
	maxReceiptField   = 256 // bytes of a request, a header or its value
)

// The targets of receipts.
const (
	// ReceiptHTTP is the target of a request.
	ReceiptHTTP = "http"
	// ReceiptCommand is the target of a command.
	ReceiptCommand = "command"
)

// Receipt is what an attempt keeps of a request or a command that it made, beside its outcome ([Attempt.SetReceipt]).
// Operators read it; later attempts do not.
type Receipt struct {
	// Attempt is set by the runtime.
	Attempt int `json:"attempt"`
	// Target is ReceiptHTTP or ReceiptCommand.
	Target    string    `json:"target"`
	StartedAt time.Time `json:"startedAt"`
	EndedAt   time.Time `json:"endedAt"`

	// Request is the method and the origin of a request, like "POST https://example.com". Paths may hold secrets.
	Request string `json:"request,omitempty"`
	// Status of the response, 0 without one.
	Status int `json:"status,omitempty"`
	// Headers of the response: a choice of them.
	Headers map[string]string `json:"headers,omitempty"`
	// Body is the beginning of the response's body, if it is kept.
	Body string `json:"body,omitempty"`
	// BodyBytes counts the bytes of the response's body that were read.
	BodyBytes int64 `json:"bodyBytes,omitempty"`

	// Command is the program of a command, without its arguments.
	Command string `json:"command,omitempty"`
	// ExitCode is nil for a command that did not start, or that a signal ended.
	ExitCode *int `json:"exitCode,omitempty"`
	// Signal that ended the command, like "killed".
	Signal string `json:"signal,omitempty"`
	// Stdout and Stderr are the ends of a command's output.
	Stdout string `json:"stdout,omitempty"`
	Stderr string `json:"stderr,omitempty"`

	// Cut reports that a body or an output is not whole.
	Cut bool `json:"cut,omitempty"`
	// Fault is the reason why this process could not read the receipt. It is never stored.
	Fault string `json:"fault,omitempty"`
}

// ReceiptHost keeps the receipt of an attempt. It is for runtimes and test helpers.
type ReceiptHost interface {
	// ReportReceipt keeps an encoded Receipt and replaces an earlier one.
	ReportReceipt(receipt json.RawMessage)
}

// SetReceipt keeps what the attempt did, whether it succeeds or not. The last call wins. It is stored before the
// outcome, best effort: an error is logged and does not affect the run. Texts are cut so that the receipt has at most
// [MaxReceiptBytes]: an output at its beginning, a body at its end. Keep no secrets in it.
func (a *Attempt) SetReceipt(r Receipt) {
	if a.host.Receipts != nil {
		r.Attempt, r.Fault = a.Number, ""
		a.host.Receipts.ReportReceipt(r.encoded())
	}
}

// encoded returns the receipt as JSON of at most MaxReceiptBytes.
func (r Receipt) encoded() json.RawMessage {
	r.StartedAt, r.EndedAt = UTCMillis(r.StartedAt), UTCMillis(r.EndedAt)
	for _, text := range []*string{&r.Target, &r.Request, &r.Command, &r.Signal} {
		*text = cutText(*text, maxReceiptField)
	}
	headers := r.Headers
	r.Headers = map[string]string{}
	for name, value := range headers {
		if len(r.Headers) < maxReceiptHeaders && len(name) <= maxReceiptField {
			r.Headers[name] = cutText(value, maxReceiptField)
		}
	}
	for {
		b, err := encode(r)
		over := len(b) - MaxReceiptBytes
		if err == nil && over <= 0 {
			return b
		}
		if err != nil { // times that JSON cannot hold
			r.StartedAt, r.EndedAt = time.Time{}, time.Time{}
			continue
		}
		longest := &r.Body
		for _, text := range []*string{&r.Stdout, &r.Stderr} {
			if len(*text) > len(*longest) {
				longest = text
			}
		}
		if *longest == "" {
			r.Headers = nil // with control characters alone they are too long
			continue
		}
		r.Cut = true
		keep := len(*longest) - min(max(over/6, 64), len(*longest)/2+1) // a byte has at most six in JSON
		if longest == &r.Body {
			r.Body = cutText(r.Body, keep)
		} else {
			*longest = strings.ToValidUTF8((*longest)[len(*longest)-keep:], "")
		}
	}
}

// cutText keeps the beginning of a text, as valid UTF-8.
func cutText(text string, limit int) string {
	if len(text) > limit {
		text = strings.ToValidUTF8(text[:limit], "")
	}
	return text
}
