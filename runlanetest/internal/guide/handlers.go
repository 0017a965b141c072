package guide

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/runlane/runlane-go"
)

// Mailer sends mail.
type Mailer interface {
	Send(ctx context.Context, userID string) error
	Ready(userID string) bool
}

// Bank takes money, once for each key.
type Bank interface {
	Charge(ctx context.Context, key string, cents int64) (receipt string, err error)
}

// Errors of the bank.
var (
	ErrDeclined = errors.New("declined")
	ErrBusy     = errors.New("busy")
)

// App holds the dependencies of the handlers.
type App struct {
	Mail Mailer
	Bank Bank
	// Lines imports lines of a file and returns where to go on; 0 at its end.
	Lines func(ctx context.Context, file string, from int) (next int, err error)
}

// Handlers are the tasks that a program with this app executes.
func (app *App) Handlers() []runlane.Handler {
	return []runlane.Handler{
		SendWelcome.Handle(app.SendWelcome), // the compiler checks the payload's type
		ChargeCard.Handle(app.ChargeCard),
		ImportFile.Handle(app.ImportFile),
		CloseMonth.Handle(app.CloseMonth),
		MakeReport.Handle(app.MakeReport),
	}
}

// SendWelcome is the handler of the task.
func (app *App) SendWelcome(ctx context.Context, _ *runlane.Attempt, w Welcome) error {
	if !app.Mail.Ready(w.UserID) {
		return runlane.Release(10*time.Minute, "mailbox is not provisioned") // waiting, not failing
	}
	return app.Mail.Send(ctx, w.UserID) // an error is retried
}

// ChargeCard is the handler of the task.
func (app *App) ChargeCard(ctx context.Context, a *runlane.Attempt, c Charge) error {
	receipt, err := app.Bank.Charge(ctx, c.OrderID, c.Cents) // the order is the key: charging again is charging once
	switch {
	case errors.Is(err, ErrDeclined):
		return runlane.Permanent(&runlane.Error{Code: "card_declined", Message: "the bank declined the card"})
	case errors.Is(err, ErrBusy):
		return runlane.RetryAfter(time.Minute, err)
	case err != nil:
		return err
	}
	return a.SetOutput(map[string]string{"receipt": receipt})
}

// ImportFile is the handler of the task.
func (app *App) ImportFile(ctx context.Context, a *runlane.Attempt, i Import) error {
	next, err := app.Lines(ctx, i.File, i.From)
	if err != nil {
		if ctx.Err() != nil && errors.Is(context.Cause(ctx), runlane.ErrCancelRequested) {
			return errors.Join(ctx.Err(), app.discard(context.WithoutCancel(ctx), i))
		}
		return err
	}
	_ = a.Progress(ctx, fmt.Sprintf("imported up to line %d", next))
	if next == 0 {
		return nil
	}
	_, err = a.Trigger(ctx, ImportFile.With(Import{File: i.File, From: next}), &runlane.TriggerOptions{
		IdempotencyKey: a.EffectID("next"), // another attempt, or a retry of this run, triggers no second one
	})
	return err
}

// discard removes the remains of a cancelled import.
func (app *App) discard(context.Context, Import) error { return nil }

// CloseMonth is the handler of the task.
func (app *App) CloseMonth(ctx context.Context, a *runlane.Attempt, month string) error {
	total, err := MakeReport.Call(ctx, a, month, nil)
	if err != nil {
		return err // as it is: it suspends this run until the report is there, or says that there will be none
	}
	return a.SetOutput(total)
}

// MakeReport is the handler of the task.
func (app *App) MakeReport(_ context.Context, _ *runlane.Attempt, month string) (int, error) {
	return len(month), nil
}

type txKey struct{}

// InTransaction gives every attempt a transaction, which is committed when the handler succeeds.
func InTransaction(db *sql.DB) runlane.Middleware {
	return func(ctx context.Context, _ *runlane.Attempt, next func(context.Context) error) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }() // does nothing after a commit
		if err := next(context.WithValue(ctx, txKey{}, tx)); err != nil {
			return err // a panic of the handler comes here as an error, too
		}
		return tx.Commit()
	}
}
