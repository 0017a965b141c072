package seats_test

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/dynamostore"
	"github.com/runlane/runlane-go/examples/seats"
	"github.com/runlane/runlane-go/internal/proof/awstest"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/memlane"
)

// Eight guests want two seats, and everybody clicks twice: two bookings, and a ticket for each.
func TestBook_OneBookingOneTicket(t *testing.T) {
	t.Parallel()
	client := awstest.DynamoDB(t)
	mailed := make(chan seats.Booking, 8)
	hall := &seats.Hall{Table: awstest.Table(t, client), Mail: func(_ context.Context, b seats.Booking) error {
		mailed <- b
		return nil
	}}
	l, err := lane.New(dynamostore.New(client, awstest.Table(t, client), nil), memlane.NewTransport(nil), nil)
	if err != nil {
		t.Fatal(err)
	}
	rt, err := core.Open(t.Context(), l, &core.Options{Handlers: hall.Handlers()})
	if err != nil {
		t.Fatal(err)
	}
	hall.Runs = rt
	worker, stop := context.WithCancel(t.Context())
	worked := make(chan error, 1)
	go func() { worked <- rt.Work(worker, nil) }()
	t.Cleanup(func() {
		stop()
		if err := errors.Join(<-worked, rt.Close(context.Background())); err != nil {
			t.Error(err)
		}
	})

	var guests sync.WaitGroup
	var mu sync.Mutex
	booked := map[string]int{} // clicks that were told of a seat, by guest and seat
	for i := range 16 {
		b := seats.Booking{ID: "booking-" + strconv.Itoa(i%8), Seat: strconv.Itoa(i % 2), Guest: "guest " + strconv.Itoa(i%8)}
		guests.Go(func() {
			switch err := hall.Book(t.Context(), b); {
			case err == nil:
				mu.Lock()
				defer mu.Unlock()
				booked[b.ID]++
			case !errors.Is(err, seats.ErrTaken):
				t.Error(err)
			}
		})
	}
	guests.Wait()
	tickets := map[string]seats.Booking{}
	for range 2 {
		b := <-mailed
		tickets[b.Seat] = b
		if booked[b.ID] != 2 {
			t.Errorf("%d clicks of booking %s were told of its seat", booked[b.ID], b.ID)
		}
	}
	if len(tickets) != 2 || len(booked) != 2 {
		t.Errorf("tickets %v for bookings %v", tickets, booked)
	}
	found, err := client.Scan(t.Context(), &dynamodb.ScanInput{TableName: &hall.Table})
	if err != nil || len(found.Items) != 2 {
		t.Errorf("%d seats are booked, %v", len(found.Items), err)
	}
}
