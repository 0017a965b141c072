// Package invoices sends invoices and reminds of those that are late: a service that keeps its work in Runlane. It shows
// keys against duplicates, a limit for each customer, retries, steps, an answer by a link, a schedule, and a worker beside
// the HTTP server in one process. docs/tutorial.md builds it step by step.
package invoices

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/runlane/runlane-go"
)

// Invoice is what a customer is to pay.
type Invoice struct {
	ID       string    `json:"id"`
	Customer string    `json:"customer"`
	Cents    int64     `json:"cents"`
	Due      time.Time `json:"due"`
}

// Sent is the output of a run that sent an invoice.
type Sent struct {
	Number string `json:"number"`
}

// Decision is what a person answers to whether an invoice may be sent.
type Decision struct {
	Approved bool   `json:"approved"`
	By       string `json:"by"`
}

// Programs that trigger or answer need these alone, without the handlers.
var (
	// Send books an invoice, lets a person approve a large one, and mails it.
	Send = runlane.NewFunc[Invoice, Sent]("invoices.send", &runlane.TaskOptions[Invoice]{
		// The same invoice twice is one run, whoever triggers it.
		IdempotencyKey: func(i Invoice) string { return i.ID },
		// Two invoices at once for each customer; the others wait.
		Queue:          runlane.Queue{Name: "invoices", Concurrency: 2},
		ConcurrencyKey: func(i Invoice) string { return i.Customer },
		// A failure is tried again after 2 s, 4 s, 8 s …, ten minutes at most.
		Retry:   runlane.Retry{MaxAttempts: 8, Backoff: runlane.Exponential{Base: 2 * time.Second, Max: 10 * time.Minute}},
		Timeout: time.Minute,
	})
	// Remind mails a reminder of each invoice that is late.
	Remind = runlane.NewTask("invoices.remind", &runlane.TaskOptions[Today]{Retry: runlane.Retry{MaxAttempts: 5}})
	// Nightly reminds at six in the morning, Berlin time, also on the days when clocks change.
	Nightly = runlane.Schedule{
		ID: "remind-nightly", When: runlane.Cron("0 6 * * *").In("Europe/Berlin"), Call: Remind.With(Today{}),
	}
	// Decided is the answer that a large invoice waits for.
	Decided = runlane.NewSignal[Decision]("decided").WithSchema(runlane.SchemaOf[Decision]())
)

// Today is the payload of Remind: nothing.
type Today struct{}

const (
	// approvalFrom is the sum from which on a person has to approve.
	approvalFrom = 1_000_00
	approvalTime = 7 * 24 * time.Hour
)

// App has what the handlers work with. Attempts may repeat a call: each gives a key, under which a call that is repeated
// does nothing new.
type App struct {
	Books interface {
		// Book gives an invoice its number.
		Book(ctx context.Context, key string, i Invoice) (number string, err error)
		// Late lists invoices that are due and not paid.
		Late(ctx context.Context) ([]Invoice, error)
	}
	Mail interface {
		Invoice(ctx context.Context, key string, i Invoice, number string) error
		Reminder(ctx context.Context, key string, i Invoice) error
		// Approval asks for an answer: link leads to the page of [Service].
		Approval(ctx context.Context, i Invoice, link string) error
	}
	// Address is where customers and colleagues reach [Service], such as https://invoices.example.com.
	Address string
}

// Handlers are the tasks that a program with this App executes.
func (app *App) Handlers() []runlane.Handler {
	return []runlane.Handler{Send.Handle(app.Send), Remind.Handle(app.Remind)}
}

// Send is called again from its beginning after a failure, a wait or the death of its worker. A step that has succeeded
// is not repeated: its result is stored.
func (app *App) Send(ctx context.Context, a *runlane.Attempt, i Invoice) (Sent, error) {
	if i.Cents <= 0 {
		return Sent{}, runlane.Permanent(errors.New("an invoice has a sum")) // trying again does not help
	}
	number, err := runlane.Step(ctx, a, "book", func(ctx context.Context) (string, error) {
		return app.Books.Book(ctx, i.ID, i)
	})
	if err != nil {
		return Sent{}, err
	}
	if i.Cents >= approvalFrom {
		if err := app.approve(ctx, a, i); err != nil {
			return Sent{}, err
		}
	}
	err = a.Do(ctx, "mail", func(ctx context.Context) error { return app.Mail.Invoice(ctx, i.ID, i, number) })
	return Sent{Number: number}, err
}

// approve mails a link, once, and waits for the answer. The run holds no worker and no slot meanwhile.
func (app *App) approve(ctx context.Context, a *runlane.Attempt, i Invoice) error {
	err := a.Do(ctx, "ask", func(ctx context.Context) error {
		token, err := Decided.Token(ctx, a, &runlane.TokenOptions{TTL: approvalTime + time.Hour})
		if err != nil {
			return err
		}
		return app.Mail.Approval(ctx, i, app.Address+"/approve/"+token)
	})
	if err != nil {
		return err
	}
	decision, err := Decided.Wait(ctx, a, &runlane.WaitOptions{
		Prompt:  fmt.Sprintf("Send invoice %s of %d.%02d € to %s?", i.ID, i.Cents/100, i.Cents%100, i.Customer),
		Timeout: approvalTime,
	})
	switch {
	case errors.Is(err, runlane.ErrWaitTimedOut):
		return refused("no one approved in time")
	case err != nil:
		return err // as it is: it suspends the run
	case !decision.Approved:
		return refused("refused by " + decision.By)
	}
	return nil
}

func refused(message string) error {
	return runlane.Permanent(&runlane.Error{Code: "invoice_refused", Message: message})
}

// Remind mails each reminder in a step of its own: after a failure it goes on behind the last one that was mailed.
func (app *App) Remind(ctx context.Context, a *runlane.Attempt, _ Today) error {
	late, err := runlane.Step(ctx, a, "late", app.Books.Late) // the list is the same in every attempt
	if err != nil {
		return err
	}
	for _, i := range late {
		key := a.EffectID(i.ID)
		err := a.Do(ctx, "remind "+i.ID, func(ctx context.Context) error { return app.Mail.Reminder(ctx, key, i) })
		if err != nil {
			return err
		}
	}
	return nil
}
