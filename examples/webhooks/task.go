// Package webhooks is the reference application: it delivers webhooks reliably.
//
// Read it in this order: task.go names the task, sender.go executes it, open.go wires both to a runtime. lines.go reads
// webhooks from a file; cmd/demo sends 329 real ones to a receiver that fails now and then.
package webhooks

import (
	"time"
	"unicode/utf8"

	"github.com/runlane/runlane-go"
)

// Queue is where deliveries wait.
var Queue = runlane.Queue{Name: "webhooks"}

// Delivery is one webhook for one endpoint: what a run carries.
type Delivery struct {
	ID       string  `json:"id"`       // unique; tells the receiver, too, which deliveries are the same
	Event    string  `json:"event"`    // what happened, for example "issues"
	Endpoint string  `json:"endpoint"` // a name: its URL is configuration, so a run that waits survives a move
	Payload  Payload `json:"payload"`
}

// Payload is the body of a webhook. The receiver checks a signature over these very bytes, so they must not change on
// the way, not even in spacing. A json.RawMessage would not do: inside a struct, encoding/json compacts it. As the text
// of a JSON string the bytes pass through untouched, stay readable to operators, and compress as well as the original
// (base64 does not).
type Payload string

// MarshalText refuses what is no UTF-8, and therefore no JSON: encoding/json would replace the bad bytes without a
// word.
func (p Payload) MarshalText() ([]byte, error) {
	if !utf8.ValidString(string(p)) {
		return nil, &runlane.Error{
			Code:    runlane.ErrValidationFailed,
			Message: "webhook payload is not valid UTF-8",
			Hint:    "JSON is always UTF-8: encode it again",
		}
	}
	return []byte(p), nil
}

// MaxAttempts is how many failures fail a delivery.
const MaxAttempts = 12

// Deliver is the task. A receiver that is down is tried again after 5 s, 10 s, 20 s … 1 h, for two and a half hours in
// all.
var Deliver = Task(runlane.Exponential{Base: 5 * time.Second, Max: time.Hour})

// Task is [Deliver] with another backoff, for programs in a hurry: tests and the demo. All share one name, so a program
// uses either one or the other.
func Task(backoff runlane.Backoff) *runlane.Task[Delivery] {
	return runlane.NewTask("webhooks.deliver", &runlane.TaskOptions[Delivery]{
		IdempotencyKey: func(d Delivery) string { return d.ID }, // triggering twice delivers once
		Queue:          Queue,
		Retry:          runlane.Retry{MaxAttempts: MaxAttempts, Backoff: backoff},
		Timeout:        RequestTimeout + 5*time.Second, // a net under the client's own timeout
	})
}
