package dynamostore_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/dynamostore"
	"github.com/runlane/runlane-go/internal/proof/awstest"
	"github.com/runlane/runlane-go/internal/proof/fault/front"
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
	return openTheater(t, awstest.DynamoDB(t), nil)
}

func openTheater(t *testing.T, client *dynamodb.Client, options *core.Options) *theater {
	t.Helper()
	h := &theater{T: t, client: client, seats: awstest.Table(t, client), runs: awstest.Table(t, client)}
	queues := memlane.NewTransport(nil)
	l, err := lane.New(dynamostore.New(client, h.runs, nil), queues, nil)
	if err != nil {
		t.Fatal(err)
	}
	if h.rt, err = core.Open(t.Context(), l, options); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.rt.Close(context.Background()) })
	return h
}

// reversed is a codec.
type reversed struct{}

func (reversed) Encode(_ context.Context, _ runlane.BodyRef, plain []byte) ([]byte, string, error) {
	out := slices.Clone(plain)
	slices.Reverse(out)
	return out, "reversed", nil
}

func (c reversed) Decode(ctx context.Context, of runlane.BodyRef, key string, stored []byte) ([]byte, error) {
	plain, _, err := c.Encode(ctx, of, stored)
	return plain, err
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

func TestWrites_WhatCannotBe_IsSaidBeforehand(t *testing.T) {
	h := newTheater(t)
	own := h.book(1)
	own.Put.TableName = aws.String("arn:aws:dynamodb:eu-west-1:123456789012:table/" + h.runs)
	nowhere := h.book(1)
	nowhere.Put.TableName = aws.String("no-such-table")
	for name, writes := range map[string]dynamostore.Writes{
		"no item": {{Put: &types.Put{TableName: &h.seats}}}, "no expression": {{Update: &types.Update{TableName: &h.seats, Key: h.seat(1)}}},
		"too many": make(dynamostore.Writes, dynamostore.MaxWrites+1), "the runs' table": {own}, "no table": {nowhere}, "nothing": {{}},
	} {
		if _, err := h.trigger(runlane.TriggerOptions{}, writes...); !errors.Is(err, runlane.ErrValidationFailed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Every way to make a run takes writes, through a codec, too; a run that is returned made its own.
func TestWrites_OfEveryTrigger(t *testing.T) {
	t.Parallel()
	h := openTheater(t, awstest.DynamoDB(t), &core.Options{
		Codec: reversed{}, Handlers: []runlane.Handler{mail.Handle(func(context.Context, *runlane.Attempt, string) error { return nil })},
	})
	now, err := h.rt.RunNow(t.Context(), mail.With("now"), &runlane.TriggerOptions{Writes: dynamostore.Writes{h.book(1)}})
	if err != nil || now.Run.Status != runlane.StatusSucceeded || !h.booked(1) {
		t.Errorf("at once: %+v, %v", now, err)
	}
	item := func(seats ...int) core.BatchItem {
		var writes dynamostore.Writes
		for _, seat := range seats {
			writes = append(writes, h.book(seat))
		}
		return core.BatchItem{Call: mail.With("one"), Options: &runlane.TriggerOptions{Writes: writes}}
	}
	batch, err := h.rt.TriggerBatch(t.Context(), []core.BatchItem{item(2), item(3, 1), item(4)})
	if err != nil || batch[0].Err != nil || !errors.Is(batch[1].Err, runlane.ConflictWrites) || batch[2].Err != nil {
		t.Errorf("a batch: %+v, %v", batch, err)
	}
	if !h.booked(2) || h.booked(3) || !h.booked(4) {
		t.Error("an item of the batch has another's writes")
	}
	attach := runlane.TriggerOptions{SingletonKey: "tour", ReturnActive: true}
	first, err := h.trigger(attach, h.book(5))
	if err != nil || first.Outcome != runlane.TriggerCreated || !h.booked(5) {
		t.Errorf("the first: %+v, %v", first, err)
	}
	second, err := h.trigger(attach, h.book(6))
	if err != nil || second.Outcome != runlane.TriggerReturnedExisting || second.Run.ID != first.Run.ID || h.booked(6) {
		t.Errorf("who attached: %+v, %v", second, err)
	}
}

// A write that is no condition is made once for each run, however many answers get lost.
func TestWrites_AreMadeOnceWhereAnswersGetLost(t *testing.T) {
	t.Parallel()
	_, client := awstest.Front(t, &front.Options{Lost: 0.2})
	h := openTheater(t, client, nil)
	const guests = 10
	count := types.TransactWriteItem{Update: &types.Update{
		TableName: &h.seats, Key: h.seat(0), UpdateExpression: aws.String("ADD guests :one"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":one": &types.AttributeValueMemberN{Value: "1"}},
	}}
	var all sync.WaitGroup
	for guest := range guests {
		all.Go(func() {
			options := runlane.TriggerOptions{IdempotencyKey: strconv.Itoa(guest)}
			_, err := h.trigger(options, count)
			for errors.Is(err, runlane.ErrStorageUnavailable) { // the same key settles it
				_, err = h.trigger(options, count)
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	out, err := client.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: &h.seats, Key: h.seat(0), ConsistentRead: aws.Bool(true)})
	if err != nil {
		t.Fatal(err)
	}
	if n, ok := out.Item["guests"].(*types.AttributeValueMemberN); !ok || n.Value != strconv.Itoa(guests) {
		t.Errorf("%d guests were counted as %+v", guests, out.Item["guests"])
	}
}
