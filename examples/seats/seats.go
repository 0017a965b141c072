// Package seats sells the seats of a hall: a seat is booked and its ticket mailed, or neither, although the seats are in
// a table of their own: docs/transactions.md.
package seats

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/dynamostore"
)

// Booking is a guest's wish. Its ID is made by the guest's page, so that a second click is the same booking.
type Booking struct {
	ID    string `json:"id"`
	Seat  string `json:"seat"`
	Guest string `json:"guest"`
}

// ErrTaken is what a guest hears who was not the first.
var ErrTaken = errors.New("the seat is taken")

// SendTicket mails a ticket.
var SendTicket = runlane.NewTask("tickets.send", &runlane.TaskOptions[Booking]{
	IdempotencyKey: func(b Booking) string { return b.ID },
	Retry:          runlane.Retry{MaxAttempts: 10},
})

// Hall has what booking and mailing need.
type Hall struct {
	Table string // of the seats, with the key pk and sk
	Runs  runlane.Triggerer
	// Mail sends a ticket. Called with a booking again, it sends nothing.
	Mail func(ctx context.Context, b Booking) error
}

// Book books the seat, and makes the run that mails the ticket, in one transaction. A booking that is sent again books
// nothing: its run is there.
func (h *Hall) Book(ctx context.Context, b Booking) error {
	text := func(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }
	_, err := h.Runs.Trigger(ctx, SendTicket.With(b), &runlane.TriggerOptions{
		StrictPayload: true, // another booking under this id would make no writes of its own
		Writes: dynamostore.Writes{{Put: &types.Put{
			TableName: &h.Table,
			Item: map[string]types.AttributeValue{
				"pk": text("seat#" + b.Seat), "sk": text("seat"), "guest": text(b.Guest), "booking": text(b.ID),
			},
			ConditionExpression: aws.String("attribute_not_exists(pk)"),
		}}},
	})
	if errors.Is(err, runlane.ConflictWrites) {
		return ErrTaken
	}
	return err
}

// Handlers are the tasks that a program with this hall executes.
func (h *Hall) Handlers() []runlane.Handler {
	return []runlane.Handler{SendTicket.Handle(func(ctx context.Context, _ *runlane.Attempt, b Booking) error {
		return h.Mail(ctx, b)
	})}
}
