// Package jobs names what can be triggered. Web services import it, and no handler with it.
package jobs

import (
	"time"

	"github.com/runlane/runlane-go"
)

// Order is a payload.
type Order struct {
	ID    string `json:"id"`
	Email string `json:"email"`
}

// Confirm tells a customer that the order has arrived, once an order.
var Confirm = runlane.NewTask("orders.confirm", &runlane.TaskOptions[Order]{
	IdempotencyKey: func(o Order) string { return o.ID },
	Retry:          runlane.Retry{MaxAttempts: 5, Backoff: runlane.Exponential{Max: 10 * time.Minute}},
})
