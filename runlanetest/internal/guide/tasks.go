// Package guide is the code of docs/tasks.md, which quotes it. Its tests check the claims of the document.
package guide

import (
	"encoding/json"
	"time"

	"github.com/runlane/runlane-go"
)

// Mail is where everything waits that sends mail: at most four attempts at a time for each tenant.
var Mail = runlane.Queue{Name: "mail", Concurrency: 4}

// Welcome is the payload of SendWelcome.
type Welcome struct {
	Tenant string `json:"tenant"`
	UserID string `json:"userId"`
}

// SendWelcome greets a new user, once.
var SendWelcome = runlane.NewTask("mail.welcome", &runlane.TaskOptions[Welcome]{
	ConcurrencyKey: func(w Welcome) string { return w.Tenant },
	IdempotencyKey: func(w Welcome) string { return w.UserID },
	Queue:          Mail,
	Retry:          runlane.Retry{MaxAttempts: 5, Backoff: runlane.Exponential{Base: 10 * time.Second, Max: time.Hour}},
	Timeout:        30 * time.Second,
})

// Charge is the payload of ChargeCard. Until March it had the amount as a number of euros.
type Charge struct {
	OrderID string `json:"orderId"`
	Cents   int64  `json:"cents"`
}

// UnmarshalJSON reads both forms: runs that were triggered by the old version may still wait.
func (c *Charge) UnmarshalJSON(b []byte) error {
	type current Charge // without this method
	old := struct {
		*current
		Euros int64 `json:"euros"`
	}{current: (*current)(c)}
	if err := json.Unmarshal(b, &old); err != nil {
		return err
	}
	if old.Euros != 0 {
		c.Cents = 100 * old.Euros
	}
	return nil
}

// ChargeCard takes the money for an order.
var ChargeCard = runlane.NewTask("cards.charge", &runlane.TaskOptions[Charge]{
	Retry: runlane.Retry{MaxAttempts: 8},
})

// Import is the payload of ImportFile: one step of a long import.
type Import struct {
	File string `json:"file"`
	From int    `json:"from"`
}

// ImportFile imports a file, a step a run. One import a file at a time.
var ImportFile = runlane.NewTask("files.import", &runlane.TaskOptions[Import]{
	Retry: runlane.Retry{MaxAttempts: 10},
})

// CloseMonth calls for a report and keeps its total.
var CloseMonth = runlane.NewTask[string]("months.close", nil)

// MakeReport computes the report of a month: a task with a result.
var MakeReport = runlane.NewFunc[string, int]("months.report", nil)
