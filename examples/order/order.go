// Package order is an order that is paid, approved by a person, and sent; whatever ends badly is undone. It shows
// steps, answers by a link, and a flow of two nodes, the second of which undoes the first: docs/workflows.md.
package order

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/runlane/runlane-go"
)

// Order is what a customer wants.
type Order struct {
	ID       string `json:"id"`
	Customer string `json:"customer"`
	Cents    int64  `json:"cents"`
}

// Decision is what a person says of an order.
type Decision struct {
	Approved bool   `json:"approved"`
	By       string `json:"by"`
}

// Withdrawal is what a customer says who does not want the order any more.
type Withdrawal struct {
	Reason string `json:"reason"`
}

// Payment is what the bank answers.
type Payment struct {
	ID string `json:"id"`
}

// Parcel is what the carrier answers.
type Parcel struct {
	Tracking string `json:"tracking"`
}

// Receipt is of an order that was sent.
type Receipt struct {
	Payment  string `json:"payment"`
	Tracking string `json:"tracking"`
}

// What other programs may name: tasks and signals, without a handler.
var (
	// Place charges, asks and sends. It ends badly as soon as one of them does.
	Place = runlane.NewFunc[Order, Receipt]("orders.place", &runlane.TaskOptions[Order]{
		Retry: runlane.Retry{MaxAttempts: 5, Backoff: runlane.Exponential{Base: time.Second, Max: time.Minute}},
	})
	// Undo takes back what Place may have done, and tries for long.
	Undo = runlane.NewTask("orders.undo", &runlane.TaskOptions[Order]{
		Retry: runlane.Retry{MaxAttempts: 100, Backoff: runlane.Exponential{Max: time.Hour}},
	})

	// Decided is the answer of the person who was asked, Withdrawn one of the customer.
	Decided   = runlane.NewSignal[Decision]("decided")
	Withdrawn = runlane.NewSignal[Withdrawal]("withdrawn")
)

// Flow places an order and undoes it when that ends in any other way than by success: refused, withdrawn, failed,
// cancelled while it waited, or abandoned by its workers. No handler is called in the last two cases, so the undoing is
// a separate run, and not a few lines at the end of Place. It begins when Place has ended, so all that it undoes has to
// be done by Place itself: what Place would call could go on beside it.
func Flow(o Order) *runlane.Flow {
	f := runlane.NewFlow(runlane.FlowID("order-" + o.ID))
	place := f.Add("place", Place.With(o), nil)
	f.Add("undo", Undo.With(o), &runlane.NodeOptions{After: []runlane.Node{place}, If: runlane.IfFailed})
	return f
}

// Node is where signals about an order go, also after an operator has retried it.
func Node(id string) runlane.Node {
	return runlane.Node{Flow: runlane.FlowID("order-" + id), Name: "place"}
}

const (
	// approvalFrom is what an order costs that a person has to approve.
	approvalFrom = 100_00
	// approvalTime is how long there is for an answer.
	approvalTime = 72 * time.Hour
)

// Shop has what the handlers need. Each call has the order's id as its key: who is called with a key again does nothing
// and answers as before.
type Shop struct {
	Bank interface {
		Charge(ctx context.Context, key string, cents int64) (Payment, error)
		Refund(ctx context.Context, key string) error
	}
	Mail interface {
		AskForApproval(ctx context.Context, o Order, token string) error
	}
	Carrier interface {
		Send(ctx context.Context, key string) (Parcel, error)
		Recall(ctx context.Context, key string) error
	}
}

// Handlers are the tasks that a program with this shop executes.
func (s *Shop) Handlers() []runlane.Handler {
	return []runlane.Handler{Place.Handle(s.Place), Undo.Handle(s.Undo)}
}

// Place charges first: an order that is not paid is not worth a question.
func (s *Shop) Place(ctx context.Context, a *runlane.Attempt, o Order) (Receipt, error) {
	payment, err := runlane.Step(ctx, a, "charge", func(ctx context.Context) (Payment, error) {
		return s.Bank.Charge(ctx, o.ID, o.Cents)
	})
	if err != nil {
		return Receipt{}, err
	}
	if o.Cents >= approvalFrom {
		if err := s.approve(ctx, a, o); err != nil {
			return Receipt{}, err
		}
	}
	parcel, err := runlane.Step(ctx, a, "send", func(ctx context.Context) (Parcel, error) {
		return s.Carrier.Send(ctx, o.ID)
	})
	if err != nil {
		return Receipt{}, err
	}
	return Receipt{Payment: payment.ID, Tracking: parcel.Tracking}, nil
}

// approve mails a link once, and waits for the answer. Only one that approves is no error.
func (s *Shop) approve(ctx context.Context, a *runlane.Attempt, o Order) error {
	err := a.Do(ctx, "ask", func(ctx context.Context) error {
		token, err := Decided.Token(ctx, a, &runlane.TokenOptions{TTL: approvalTime})
		if err != nil {
			return err
		}
		return s.Mail.AskForApproval(ctx, o, token)
	})
	if err != nil {
		return err
	}
	var decision *Decision
	var withdrawal *Withdrawal
	err = runlane.WaitAny(ctx, a, &runlane.WaitOptions{
		Name:    "approval",
		Prompt:  fmt.Sprintf("Approve order %s of %s?", o.ID, o.Customer),
		Timeout: approvalTime,
	}, Decided.Into(&decision), Withdrawn.Into(&withdrawal))
	switch {
	case errors.Is(err, runlane.ErrWaitTimedOut):
		return ended("order_expired", "no one approved in time")
	case err != nil:
		return err
	case withdrawal != nil:
		return ended("order_withdrawn", "the customer withdrew the order")
	case !decision.Approved:
		return ended("order_refused", "the order was refused")
	}
	return nil
}

func ended(code runlane.ErrorCode, message string) error {
	return runlane.Permanent(&runlane.Error{Code: code, Message: message})
}

// Undo takes back whatever there is to take back. Carrier and bank take it well when there is nothing.
func (s *Shop) Undo(ctx context.Context, a *runlane.Attempt, o Order) error {
	if err := a.Do(ctx, "recall", func(ctx context.Context) error { return s.Carrier.Recall(ctx, o.ID) }); err != nil {
		return err
	}
	return a.Do(ctx, "refund", func(ctx context.Context) error { return s.Bank.Refund(ctx, o.ID) })
}
