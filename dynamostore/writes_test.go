package dynamostore_test

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/dynamostore"
	"github.com/runlane/runlane-go/internal/proof/awstest"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/memlane"
)

var mail = runlane.NewTask[string]("mail", nil)

// theater has seats in a table of its own, and a runtime whose triggers book them.
type theater struct {
	*testing.T
	client *dynamodb.Client
	rt     *core.Runtime
	seats  string
	runs   string
}

func newTheater(t *testing.T) *theater {
	t.Helper()
	t.Parallel()
	client := awstest.DynamoDB(t)
	h := &theater{T: t, client: client, seats: awstest.Table(t, client), runs: awstest.Table(t, client)}
	queues := memlane.NewTransport(nil)
	l, err := lane.New(dynamostore.New(client, h.runs, nil), queues, nil)
	if err != nil {
		t.Fatal(err)
	}
	if h.rt, err = core.Open(t.Context(), l, nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.rt.Close(context.Background()) })
	return h
}

// book is the write of a seat that nobody has.
func (h *theater) book(seat int) types.TransactWriteItem {
	return types.TransactWriteItem{Put: &types.Put{
		TableName:           &h.seats,
		Item:                h.seat(seat),
		ConditionExpression: aws.String("attribute_not_exists(pk)"),
	}}
}

func (h *theater) seat(n int) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{
		"pk": &types.AttributeValueMemberS{Value: "seat " + strconv.Itoa(n)}, "sk": &types.AttributeValueMemberS{Value: "seat"},
	}
}

func (h *theater) booked(seat int) bool {
	h.Helper()
	out, err := h.client.GetItem(h.Context(), &dynamodb.GetItemInput{TableName: &h.seats, Key: h.seat(seat)})
	if err != nil {
		h.Fatal(err)
	}
	return out.Item != nil
}

func (h *theater) trigger(o runlane.TriggerOptions, writes ...types.TransactWriteItem) (*runlane.TriggerResult, error) {
	o.Writes = dynamostore.Writes(writes)
	return h.rt.Trigger(h.Context(), mail.With("booked"), &o)
}

func TestWrites_AreMadeWithTheRunOrNeither(t *testing.T) {
	h := newTheater(t)
	if _, err := h.trigger(runlane.TriggerOptions{RunID: "first"}, h.book(1), h.book(2)); err != nil {
		t.Fatal(err)
	}
	if !h.booked(1) || !h.booked(2) {
		t.Error("the run exists without its writes")
	}
	_, err := h.trigger(runlane.TriggerOptions{RunID: "second"}, h.book(3), h.book(2))
	reasons, ok := errors.AsType[*types.TransactionCanceledException](err)
	if !errors.Is(err, runlane.ConflictWrites) || !ok || len(reasons.CancellationReasons) != 2 ||
		aws.ToString(reasons.CancellationReasons[1].Code) != "ConditionalCheckFailed" {
		t.Fatalf("error is %v", err)
	}
	if h.booked(3) {
		t.Error("a write was made without the others")
	}
	if _, err := h.rt.Runs().Get(t.Context(), "second"); !errors.Is(err, runlane.ErrRunNotFound) {
		t.Errorf("the run exists without its writes: %v", err)
	}
}

// What the run itself conflicts with comes first, so a repeated trigger is not told that its own writes are there.
func TestWrites_KeysComeFirst(t *testing.T) {
	h := newTheater(t)
	keyed := runlane.TriggerOptions{IdempotencyKey: "order 7"}
	made, err := h.trigger(keyed, h.book(1))
	if err != nil {
		t.Fatal(err)
	}
	again, err := h.trigger(keyed, h.book(1))
	if err != nil || again.Outcome != runlane.TriggerReturnedExisting || again.Run.ID != made.Run.ID {
		t.Fatalf("a repeated trigger: %+v, %v", again, err)
	}
	single := runlane.TriggerOptions{SingletonKey: "cinema"}
	held, err := h.trigger(single, h.book(2))
	if err != nil {
		t.Fatal(err)
	}
	_, err = h.trigger(single, h.book(3))
	if e, ok := errors.AsType[*runlane.Error](err); !ok || e.Conflict != runlane.ConflictSingletonKey || e.RunID != held.Run.ID || h.booked(3) {
		t.Errorf("the singleton key is held by %s: %v", held.Run.ID, err)
	}
	// The second run finds no slot: it waits, and its seat is booked.
	bounded := runlane.TriggerOptions{Queue: runlane.Queue{Name: "one", Concurrency: 1}}
	for seat := 4; seat < 6; seat++ {
		if _, err := h.trigger(bounded, h.book(seat)); err != nil || !h.booked(seat) {
			t.Errorf("seat %d in a bounded queue: %v", seat, err)
		}
	}
}

func TestWrites_OneOfManyGetsTheSeat(t *testing.T) {
	h := newTheater(t)
	var won atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			_, err := h.trigger(runlane.TriggerOptions{}, h.book(1))
			switch {
			case err == nil:
				won.Add(1)
			case !errors.Is(err, runlane.ConflictWrites):
				t.Error(err)
			}
		})
	}
	all.Wait()
	runs := 0
	for _, err := range h.rt.Runs().All(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		runs++
	}
	if won.Load() != 1 || runs != 1 {
		t.Errorf("%d callers got the seat, and there are %d runs", won.Load(), runs)
	}
}

func TestWrites_WhatCannotBe_IsSaidBeforehand(t *testing.T) {
	h := newTheater(t)
	own := h.book(1)
	own.Put.TableName = aws.String("arn:aws:dynamodb:eu-west-1:123456789012:table/" + h.runs)
	nowhere := h.book(1)
	nowhere.Put.TableName = aws.String("no-such-table")
	for name, writes := range map[string]dynamostore.Writes{
		"too many": make(dynamostore.Writes, dynamostore.MaxWrites+1), "the runs' table": {own}, "no table": {nowhere}, "nothing": {{}},
	} {
		if _, err := h.trigger(runlane.TriggerOptions{}, writes...); !errors.Is(err, runlane.ErrValidationFailed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
